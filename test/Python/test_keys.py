"""A kernel is found again only where a trace would read the same: whoever changed what, and how."""

import builtins
import dataclasses
import enum
import functools
import os
import types

import numpy as np
import pytest

import attn
import reference
from attn._scan import Scan

config = types.ModuleType("config")
config.part = types.ModuleType("part")
number = 1.0


class Plain:
    alpha = 1.0


class Heir(Plain):
    def method(self, s):
        return s * self.alpha

    @staticmethod
    def static(s):
        return s * 1.0

    @classmethod
    def of_class(cls, s):
        return s * cls.alpha

    def __call__(self, s, b, h, q, kv):
        return self.method(s)

    @property
    def computed(self):
        return self.alpha

    def of_super(self, s, b, h, q, kv):
        return s * super().alpha


@dataclasses.dataclass
class Record:
    alpha: float = 1.0


class Slotted:
    __slots__ = ("alpha",)


class Meta(type):
    @property
    def computed(cls):
        return cls.alpha


class OfMeta(metaclass=Meta):
    alpha = 1.0


class Mode(enum.Enum):
    ONE = 1.0
    THREE = 3.0


class Dynamic:
    def __init__(self):
        self.values = {"alpha": 1.0}

    def __getattr__(self, name):
        return self.__dict__["values"][name]


heir, record, slotted, dynamic = Heir(), Record(), Slotted(), Dynamic()
space = types.SimpleNamespace(mode=Mode.ONE, inner=types.SimpleNamespace(alpha=1.0))
table, scalars, functions = {"alpha": 1.0}, [np.float32(1)], [lambda s: s * 1.0]
get = table.get


def attribute(s, b, h, q, kv):
    return s * attribute.alpha


def default(s, b, h, q, kv, config=config, factor=1.0):
    return s * config.alpha * factor


def given(holder, s, b, h, q, kv):
    return s * holder.alpha


def inside(s, b, h, q, kv):
    import os as here

    return s * float(here.environ["ATTN_TEST_ALPHA"])


def nested(s, b, h, q, kv):
    def inner(x):
        return x * config.alpha

    return inner(s)


def alias(s, b, h, q, kv):
    name = config
    return s * name.alpha


@functools.wraps(np.tanh)
def named_like_a_library(s, b, h, q, kv):
    return s * config.alpha


def write(holder, name="alpha"):
    return lambda x: setattr(holder, name, x)


def write_environment(x):
    os.environ["ATTN_TEST_ALPHA"] = str(x)


def write_table(x):
    table["alpha"] = x


def write_global(x):
    global number
    number = x


CASES = {
    "module": (lambda s, b, h, q, kv: s * config.alpha, write(config)),
    "module in a module": (lambda s, b, h, q, kv: s * config.part.alpha, write(config.part)),
    "class": (lambda s, b, h, q, kv: s * Plain.alpha, write(Plain)),
    "base class": (lambda s, b, h, q, kv: s * Heir.alpha, write(Plain)),
    "class of an object": (lambda s, b, h, q, kv: s * heir.alpha, write(Plain)),
    "class in a method": (lambda s, b, h, q, kv: heir.method(s), write(Plain)),
    "class method": (lambda s, b, h, q, kv: Heir.of_class(s), write(Plain)),
    "static method": (
        lambda s, b, h, q, kv: Heir.static(s),
        lambda x: setattr(Heir, "static", staticmethod(lambda s: s * x)),
    ),
    "super": (heir.of_super, write(Plain)),
    "callable object": (heir, write(Plain)),
    "property": (lambda s, b, h, q, kv: s * heir.computed, write(Plain)),
    "property of a metaclass": (lambda s, b, h, q, kv: s * OfMeta.computed, write(OfMeta)),
    "__getattr__": (
        lambda s, b, h, q, kv: s * dynamic.alpha,
        lambda x: dynamic.values.update(alpha=x),
    ),
    "dataclass": (lambda s, b, h, q, kv: s * record.alpha, write(record)),
    "slot": (lambda s, b, h, q, kv: s * slotted.alpha, write(slotted)),
    "namespace": (lambda s, b, h, q, kv: s * space.inner.alpha, write(space.inner)),
    "enum": (
        lambda s, b, h, q, kv: s * (1.0 if space.mode is Mode.ONE else 3.0),
        lambda x: setattr(space, "mode", Mode(x)),
    ),
    "dict": (lambda s, b, h, q, kv: s * table["alpha"], write_table),
    "method of a dict": (lambda s, b, h, q, kv: s * get("alpha"), write_table),
    "scalar of NumPy": (
        lambda s, b, h, q, kv: s * scalars[0],
        lambda x: scalars.__setitem__(0, np.float32(x)),
    ),
    "function in a list": (
        lambda s, b, h, q, kv: functions[0](s),
        lambda x: functions.__setitem__(0, lambda s: s * x),
    ),
    "environment": (
        lambda s, b, h, q, kv: s * float(os.environ["ATTN_TEST_ALPHA"]),
        write_environment,
    ),
    "getenv": (lambda s, b, h, q, kv: s * float(os.getenv("ATTN_TEST_ALPHA")), write_environment),
    "import": (inside, write_environment),
    "global": (lambda s, b, h, q, kv: s * number, write_global),
    "globals()": (lambda s, b, h, q, kv: s * globals()["number"], write_global),
    "builtin": (
        lambda s, b, h, q, kv: s * attn_test_alpha,  # noqa: F821
        write(builtins, "attn_test_alpha"),
    ),
    "getattr": (lambda s, b, h, q, kv: s * getattr(config, "alpha"), write(config)),
    "alias": (alias, write(config)),
    "function's attribute": (attribute, write(attribute)),
    "default": (default, write(config)),
    "value of a default": (default, lambda x: setattr(default, "__defaults__", (config, x))),
    "partial": (functools.partial(given, config), write(config)),
    "function inside": (nested, write(config)),
    "decorated": (named_like_a_library, write(config)),
    "attribute of a library": (lambda s, b, h, q, kv: s * np.attn_test, write(np, "attn_test")),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_the_call(make, name):
    score, change = CASES[name]
    config.alpha = 1.0
    inputs = make(b=1, h=1, hkv=1, m=3, n=4, d=8)
    wanted = [reference.attention(*inputs, score=lambda s, *_: s * x)[0] for x in (1, 3)]
    for index in (0, 1, 0):
        change((1.0, 3.0)[index])
        reference.check(attn.attention(*inputs, score=score), wanted[index])
    change(1.0)


@pytest.mark.parametrize("is_gradient", (False, True), ids=("forward", "gradient"))
def test_states_of_libraries_are_those_of_the_call(make, is_gradient):
    """Functions that libraries have written in Python, too."""
    inputs = make(b=1, h=1, hkv=1, m=3, n=4, d=8)
    score = lambda s, b, h, q, kv: s * (3.0 if np.geterr()["over"] == "raise" else 1.0)  # noqa: E731
    for state, factor in (("warn", 1.0), ("raise", 3.0), ("warn", 1.0)):
        constant = lambda s, *_: s * factor  # noqa: E731
        with np.errstate(over=state):
            if is_gradient:
                got = attn.gradient(*inputs, inputs[0], score=score)
                wanted = attn.gradient(*inputs, inputs[0], score=constant)
                assert all(map(np.array_equal, got, wanted))
            else:
                wanted = reference.attention(*inputs, score=constant)[0]
                reference.check(attn.attention(*inputs, score=score), wanted)


def test_functions_of_libraries_that_have_no_state():
    torch = pytest.importorskip("torch")
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    relu = torch.nn.functional.relu
    assert not Scan(lambda s, b, h, q, kv: relu(s)).is_volatile
    causal, near = lambda b, h, q, kv: q >= kv, lambda b, h, q, kv: q - kv < 3  # noqa: E731
    assert not Scan(flex.and_masks(causal, flex.or_masks(near, flex.noop_mask))).is_volatile
    assert Scan(lambda s, b, h, q, kv: s * torch.initial_seed()).is_volatile
    precision = torch.get_float32_matmul_precision
    assert Scan(lambda s, b, h, q, kv: s * (precision() == "high")).is_volatile


def test_what_is_read_by_name_is_traced_once():
    config.alpha = config.part.alpha = slotted.alpha = 1.0
    by_name = "module", "class", "base class", "class in a method", "dataclass", "slot"
    for name in (*by_name, "namespace", "function inside", "default", "callable object"):
        assert not Scan(CASES[name][0]).is_volatile, name
    slopes = np.float32([1, 2])
    scan = Scan(lambda s, b, h, q, kv: attn.tanh(s) * np.pi + np.tanh(s) * slopes[h] + abs(q))
    assert not scan.is_volatile and len(scan.arrays) == 1


def test_which_of_equal_functions_is_called():
    def times(x):
        return lambda s: s * x

    one, two = times(1.0), times(2.0)

    def chain(*functions):
        return lambda s, b, h, q, kv: functools.reduce(lambda x, f: f(x), functions, s)

    assert Scan(chain(one, two, one)).key != Scan(chain(one, two, two)).key


def test_strides_decide_on_a_gpu(monkeypatch):
    sources = []

    class Plan:
        def direct(self, *arguments):
            return ()

    def make_plan(source, *arguments):
        sources.append(source.text.forward)
        return Plan()

    monkeypatch.setattr(attn._eager, "make_plan", make_plan)
    monkeypatch.setattr(attn._eager, "_check_matrices", lambda *arguments: None)
    monkeypatch.setattr(attn._eager, "_plans", {})
    x = types.SimpleNamespace(
        get_device=lambda: 0, dtype="bfloat16", shape=(1, 2, 8, 64), requires_grad=False
    )
    rows = np.zeros((8, 8), "float32")

    def call(bias):
        attn.attention(x, x, x, score=lambda s, b, h, q, kv: s + bias[q, kv])

    for bias in (rows, rows.T, rows + 1, rows[:, ::-1], rows[:, :1].T):
        call(bias)
    assert [text.count("%bias: tensor<?x?xf32> {attn.strided}") for text in sources] == [0, 1]


def test_lists_that_hold_themselves(make):
    values = [2.0]
    values.append(values)
    inputs = make()
    got = attn.attention(*inputs, score=lambda s, b, h, q, kv: s * values[0])
    reference.check(got, reference.attention(*inputs, score=lambda s, *_: s * 2)[0])


def test_arrays_of_classes_and_modules(make, rng):
    config.slopes, Plain.slopes = (rng.standard_normal(4).astype("float32") for _ in range(2))
    inputs = make()
    for _ in range(2):
        score = lambda s, b, h, q, kv: s * config.slopes[h] + Plain.slopes[h]  # noqa: E731
        assert not Scan(score).is_volatile
        reference.check(
            attn.attention(*inputs, score=score), reference.attention(*inputs, score=score)[0]
        )
        config.slopes = config.slopes[::-1].copy()
