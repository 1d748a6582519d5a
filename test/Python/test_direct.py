"""Calls by the extension of python/direct beside the same calls by Python: NumPy's arrays, results
that cannot be had, references and threads. PyTorch's tensors are those of test_torch.py."""

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import attn
from attn import _direct, _plan

if _direct.extension is None and os.environ.get("CI") != "true":
    pytest.skip("the extension was not built for this Python", allow_module_level=True)

DTYPES = ["float32", "float16", "bfloat16"]


def to_dtype(name):
    return pytest.importorskip("ml_dtypes").bfloat16 if name == "bfloat16" else np.dtype(name)


def run_in_python(monkeypatch, kernel, *call, **how):
    """The call without the extension."""
    with monkeypatch.context() as patch:
        patch.setattr(kernel._plan, "direct", _direct.take_nothing)
        return kernel(*call, **how)


@pytest.fixture
def refuse_python(monkeypatch):
    """Calls that Python takes fail from now on."""
    return lambda: monkeypatch.setattr(_plan, "Tensors", None)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_arrays_take_the_short_way(make, monkeypatch, refuse_python, dtype, layout):
    q, k, v = [x.astype(to_dtype(dtype)) for x in make(hkv=4)]
    if layout == "bshd":
        q, k, v = [x.swapaxes(1, 2) for x in (q, k, v)]
    k.flags.writeable = False
    bias, sink = np.float32([1, 2, 3, 4]).astype(to_dtype(dtype)), np.float32([0, 1, 2, 3])
    kept, shift = np.arange(9) % 3 > 0, np.arange(-9, 9)[::-2]
    kernel = attn.compile(
        to_dtype(dtype),
        16,
        scale=True,
        sink=True,
        return_lse=True,
        layout=layout,
        score=lambda s, b, h, i, j: s + bias[h] + shift[j],
        mask=lambda b, h, i, j: kept[j],
    )
    wanted = run_in_python(monkeypatch, kernel, q, k, v, scale=0.5, sink=sink)
    out = np.zeros_like(wanted[0]), np.zeros_like(wanted[1])
    refuse_python()
    got = kernel(q, k, v, scale=0.5, sink=sink)
    assert kernel(q, k, v, scale=0.5, sink=sink, out=out) is out
    for results in (got, out):
        for x, y in zip(results, wanted):
            assert type(x) is np.ndarray and x.dtype == y.dtype and np.array_equal(x, y)
    assert got[0].flags.c_contiguous and got[0].flags.writeable


# Of q, k and v: what they are made of, and whether the extension takes them.
KINDS = {
    "as they are": (lambda x: x, True),
    "read-only": (lambda x: np.frombuffer(x.tobytes(), "float32").reshape(x.shape), True),
    "of any strides": (lambda x: np.repeat(x, 3, axis=2)[:, :, ::3], True),
    "backwards": (lambda x: x[::-1, :, ::-1], True),
    "expanded": (lambda x: np.broadcast_to(x[:, :, :1], x.shape), True),
    "empty": (lambda x: x[:0], True),
    "of no rows": (lambda x: x[:, :, :0], True),
    "of a subclass": (lambda x: x.view(type("Sub", (np.ndarray,), {})), False),
    "masked": (np.ma.masked_array, False),
    "of another order": (lambda x: x.astype(">f4"), False),
    "unaligned": (
        lambda x: np.frombuffer(b"0" + x.tobytes(), "uint8")[1:].view("f4").reshape(x.shape),
        False,
    ),
    "of odd strides": (lambda x: np.zeros(x.shape, [("a", "f4"), ("b", "i1")])["a"], False),
    "structured": (lambda x: np.zeros(x.shape, [("a", "f4")]), False),
    "of four bytes": (lambda x: x.view("V4"), False),
    "of unsigned integers": (lambda x: x.view("uint32"), False),
    "of objects": (lambda x: x.astype(object), False),
    "of another type": (lambda x: x.astype("float64"), False),
    "of another rank": (lambda x: x[0], False),
    "a list": (lambda x: x.tolist(), False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_arrays(make, monkeypatch, kind):
    change, is_taken = KINDS[kind]
    kernel, (q, k, v) = attn.compile("float32", 16), map(change, make(h=2))
    assert isinstance(kernel(*make()), np.ndarray)
    assert (
        kernel._plan.direct(q, k, v, None, None, [], False, False, None) is not None
    ) == is_taken
    try:
        wanted = run_in_python(monkeypatch, kernel, q, k, v)
    except attn.Error as error:
        assert not is_taken
        with pytest.raises(attn.Error) as again:
            kernel(q, k, v)
        assert str(again.value) == str(error)
    else:
        assert np.array_equal(kernel(q, k, v), wanted)


def test_types_without_a_name_of_their_own(make):
    """NumPy calls all types of others alike."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    q, k, v = [x.astype(ml_dtypes.bfloat16) for x in make()]
    kernel = attn.compile(ml_dtypes.bfloat16, 16)
    direct = lambda x: kernel._plan.direct(
        q, x, v, None, None, [], False, False, None
    )  # noqa: E731
    kernel(q, k, v)
    assert direct(k) is not None
    for other in (k.view("V2"), k.view("int16"), k.view("float16")):
        assert direct(other) is None


@pytest.mark.parametrize("short", [True, False])
def test_results_that_are_read_only(make, monkeypatch, short):
    q, k, v = make()
    kernel = attn.compile("float32", 16, return_lse=True)
    run = kernel if short else lambda *x, **how: run_in_python(monkeypatch, kernel, *x, **how)
    for name in ("output", "lse"):
        out = np.zeros_like(q), np.zeros(q.shape[:3], "float32")
        out[name == "lse"].flags.writeable = False
        with pytest.raises(attn.Error, match=f"{name}: expected an array that can be written"):
            run(q, k, v, out=out)
        assert not out[0].any() and not out[1].any()


def test_what_the_extension_leaves_to_python(make):
    q, k, v = make()
    bias = np.zeros((4, 5), "float32")
    kernel = attn.compile("float32", 16, scale=True, score=lambda s, b, h, i, j: s + bias[h, 4])
    kernel(q, k, v, scale=1.0)

    def direct(q=q, k=k, v=v, scale=1.0, sink=None, captured=(bias,), out=None):
        captured = list(captured) if isinstance(captured, tuple) else captured
        return kernel._plan.direct(q, k, v, scale, sink, captured, False, False, out)

    assert direct() is not None
    for refused in (
        direct(q=None),
        direct(scale=None),
        direct(scale=np.float32(1)),
        direct(scale=1e300),
        direct(sink=np.zeros(4, "float32")),
        direct(captured=(bias.astype("float64"),)),
        direct(captured=(bias[:, :4],)),
        direct(captured=()),
        direct(captured=None),
        direct(out=(q, q)),
        direct(out=q[:1]),
        direct(out=q.astype("float16")),
    ):
        assert refused is None


def make_odd(kernel, **how):
    """The extension's Call for a kernel of f32 and 16 columns, made otherwise than Plan does."""
    given = dict(
        owner=kernel._plan.kernel,
        kernel=kernel._plan.kernel.handle,
        count_threads=None,
        on_cpu=True,
        code=2,
        bits=32,
        value_dim=16,
        has_scale=False,
        has_sink=False,
        count_rows=0,
        captures=(),
        torch=None,
        numpy=None,
    )
    return _direct.extension.Call(**{**given, **how}).run


def numpy_with(empty=np.empty, watchers=()):
    f32 = np.dtype("float32")
    return np.ndarray, f32, f32, None, empty, watchers


def test_results_that_are_none(make):
    """Whatever makes them gives something else, or fails."""
    q, k, v = make()
    kernel = attn.compile("float32", 16)
    call = q, k, v, None, None, [], False, False, None
    wanted = kernel(q, k, v)
    assert np.array_equal(make_odd(kernel, numpy=numpy_with())(*call), wanted)
    for odd in (
        lambda shape, dtype: None,
        lambda shape, dtype: np.empty(shape, "float64"),
        lambda shape, dtype: np.ma.empty(shape, dtype),
        lambda shape, dtype: np.broadcast_to(np.zeros((), dtype), shape),
    ):
        assert make_odd(kernel, numpy=numpy_with(odd))(*call) is None

    def fail(shape, dtype):
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        make_odd(kernel, numpy=numpy_with(fail))(*call)
    # Who cannot be asked may be looking.
    assert make_odd(kernel, numpy=numpy_with(watchers=(lambda: 1 / 0,)))(*call) is None
    assert make_odd(kernel, numpy=numpy_with(), count_threads=lambda: 1 / 0)(*call) is None
    assert make_odd(kernel, numpy=numpy_with(), count_threads=lambda: None)(*call) is None


def test_mistakes_of_who_makes_a_call(make):
    kernel = attn.compile("float32", 16)
    for error, how in (
        (TypeError, dict(numpy=numpy_with()[:5])),
        (TypeError, dict(numpy=numpy_with(watchers=None))),
        (TypeError, dict(numpy=numpy_with(), kernel=None)),
        (ValueError, dict(numpy=numpy_with(), captures=((2, 32, 1, 0, (1, 1)),))),
        (ValueError, dict(numpy=numpy_with(), captures=((2, 32, 9, 0, (1,) * 9),))),
        (TypeError, dict(numpy=numpy_with(), captures=(None,))),
        (TypeError, dict(numpy=numpy_with(), wanted=("query",))),
        (ValueError, dict(numpy=numpy_with(), wanted=(4,))),
        (ValueError, dict(numpy=numpy_with(), wanted=(-1,))),
        (ValueError, dict(torch=(None,) * 6 + ((), None, None, 0, 1, 0))),
    ):
        with pytest.raises((error, SystemError) if error is TypeError else error):
            make_odd(kernel, **how)
    for call in ((None, [], None), (0, None, None), (0, [], "stream"), (0, [()], None)):
        with pytest.raises((TypeError, SystemError)):
            _direct.extension.launch(*call)
    assert _direct.extension.launch(0, [()] * 49, None) is None


def test_the_call_keeps_its_kernel(make):
    q, k, v = make()
    kernel = attn.compile("float32", 16)
    wanted = kernel(q, k, v)
    run = kernel._plan._make_direct()
    del kernel
    gc.collect()
    assert np.array_equal(run(q, k, v, None, None, [], False, False, None), wanted)


STRESS = """
import gc, sys, tracemalloc
import numpy as np, attn

make = lambda *shape: np.ones(shape, "float32")
q, k, v, out = make(1, 1, 2, 16), make(1, 1, 3, 16), make(1, 1, 3, 16), make(1, 1, 2, 16)
bias, sink = make(3), make(1)
kernel = attn.compile("float32", 16, sink=True, score=lambda s, b, h, i, j: s + bias[j])
both = attn.compile("float32", 16, return_lse=True)
held = [q, k, v, out, bias, sink, q.dtype, None, np.ndarray, np.empty, kernel._arrays]


def call():
    kernel(q, k, v, sink=sink)
    kernel(q, k, v, sink=sink, out=out)
    both(q, k, v)
    attn.attention(q, k, v)
    # Those that are refused at several places.
    direct = kernel._plan.direct
    for x in (k[0], k.astype("float64"), [1]):
        direct(q, x, v, None, sink, kernel._arrays, False, False, None)
    direct(q, k, v, 1.0, sink, kernel._arrays, False, False, None)
    direct(q, k, v, None, sink, [None], False, False, None)
    direct(q, k, v, None, sink, kernel._arrays, False, False, (out, out))


for _ in range(100):
    call()
gc.collect()
before = [sys.getrefcount(x) for x in held]
tracemalloc.start()
start = tracemalloc.get_traced_memory()[0]
for _ in range(int(sys.argv[1])):
    call()
gc.collect()
grown = tracemalloc.get_traced_memory()[0] - start
after = [sys.getrefcount(x) for x in held]
off = [b - a for a, b in zip(before, after)]
assert max(map(abs, off)) < 20, off
assert grown < 50_000, grown
print("done")
"""


def test_no_reference_is_lost():
    """With Python's own checks of its memory; 10^5 calls."""
    done = subprocess.run(
        [sys.executable, "-B", "-X", "dev", "-W", "ignore", "-c", STRESS, "10000"],
        env={**os.environ, "PYTHONMALLOC": "debug", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr[-3000:]


def test_many_threads(make):
    """One kernel, one list of captured arrays; other kernels come and go meanwhile."""
    q, k, v = make()
    bias = np.float32([1, 2, 3, 4])
    kernel = attn.compile("float32", 16, score=lambda s, b, h, i, j: s + bias[h] * j)
    wanted, failures = kernel(q, k, v), []

    def work(number):
        try:
            out = np.empty_like(wanted)
            for i in range(300):
                if not np.array_equal(kernel(q, k, v, out=out if i % 2 else None), wanted):
                    failures.append((number, i))
                if i % 50 == number:
                    other = attn.compile("float32", 16, options={"threads": number + 1})
                    other(q, k, v)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]


def run_program(program):
    """In a process of its own, which has imported nothing yet."""
    done = subprocess.run(
        [sys.executable, "-B", "-W", "ignore", "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_pytorch_that_comes_later():
    """The plan of a call before it serves its tensors too, afterwards."""
    pytest.importorskip("torch")
    program = """
import numpy as np, sys, attn
from attn import _plan
q = np.ones((1, 1, 2, 16), "float32")
kernel = attn.compile("float32", 16)
wanted = kernel(q, q, q)
assert "torch" not in sys.modules and "direct" not in vars(kernel._plan)
import torch
assert np.array_equal(kernel(q, q, q), wanted) and "direct" in vars(kernel._plan)
x = torch.ones(1, 1, 2, 16)
if hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
    _plan.Tensors = None
assert np.array_equal(kernel(x, x, x).numpy(), wanted)
"""
    run_program(program)


def test_pytorch_that_is_being_imported():
    """By another thread: its module is there, and has nothing in it yet."""
    program = """
import importlib.machinery, sys, types
import numpy as np, attn
half = types.ModuleType("torch")
half.__spec__ = importlib.machinery.ModuleSpec("torch", None)
half.__spec__._initializing = True
sys.modules["torch"] = half
q = np.ones((1, 1, 2, 16), "float32")
kernel = attn.compile("float32", 16)
wanted = kernel(q, q, q)
assert np.array_equal(attn.attention(q, q, q), wanted)
# And where Python takes the call.
assert np.array_equal(kernel(q.view(type("Sub", (np.ndarray,), {})), q, q), wanted)
"""
    run_program(program)
