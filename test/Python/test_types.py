"""Types of what users call, for mypy and for editors, and attn.Options."""

import inspect
import os
import pickle
import re
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest

import attn
import attn.typing

ROOT = Path(__file__).resolve().parents[2]
# Values that are symbols while a function is traced, and arrays of anybody; said in words.
UNTYPED = {"x", "y", "a", "b", "condition", "low", "high", "min", "max", "first", "second", "inputs", "out"}


def need(module):
    """Skips where it is missing, but for CI."""
    try:
        return __import__(module)
    except ImportError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"{module} is not installed")


@pytest.mark.made_of("python/attn", "pyproject.toml", "Makefile", "test/Python/typed_use.py")
def test_mypy():
    need("mypy")
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--no-error-summary"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.made_of("python/attn", "pyproject.toml", "Makefile", "test/Python/typed_use.py")
def test_mypy_refuses(tmp_path):
    """What it would find in a program that is wrong: nothing is Any on the way."""
    need("mypy")
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np, attn\n"
        "x = np.zeros((1, 1, 4, 8), 'float32')\n"
        "attn.attention(x, x, x).no_such_method()\n"
        "attn.attention(x, x, x, casual=3.0, return_lse=True)[2]\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "has no attribute \"no_such_method\"" in done.stdout
    assert "Tuple index out of range" in done.stdout or "casual" in done.stdout


def list_public():
    for module, names in (("attn", attn.__all__), ("attn.serving", attn.serving.__all__)):
        for name in names:
            x = getattr(sys.modules[module], name)
            if inspect.isfunction(x) and x.__module__.startswith("attn"):
                yield pytest.param(x, id=f"{module}.{name}")


@pytest.mark.parametrize("function", [*list_public()])
def test_every_argument_has_a_type(function):
    # get_overloads is of Python 3.11.
    told = [*getattr(typing, "get_overloads", lambda _: [])(function), function][0]
    for name, parameter in inspect.signature(told).parameters.items():
        assert parameter.annotation is not inspect.Parameter.empty, name
        is_any = parameter.annotation == "Any" and parameter.kind is not inspect.Parameter.VAR_KEYWORD
        assert not is_any or name in UNTYPED, name


def test_arrays():
    arrays = [np.zeros(3)]
    if "torch" in sys.modules or _has("torch"):
        import torch

        arrays += [torch.zeros(3), torch.nn.Parameter(torch.zeros(3))]
    if _has("jax"):
        import jax.numpy as jnp

        arrays.append(jnp.zeros(3))
    for x in arrays:
        assert isinstance(x, attn.typing.Array), type(x)
    for x in ([1.0], 1.0, "x", None):
        assert not isinstance(x, attn.typing.Array)


def _has(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True


@pytest.mark.parametrize(
    "code, wanted",
    [
        ("attn.attention(q, k, v, cau", {"causal="}),
        ("attn.attention(q, k, v, ", {"causal=", "score=", "mask=", "window=", "options=", "return_lse="}),
        ("attn.compile('float32', 64, dev", {"device="}),
        ("attn.Options(block", {"block_m=", "block_n="}),
        ("attn.collect", {"collect_env"}),
        ("attn.explain(q, k, v).up", {"upper"}),
        ("attn.tune(q, k, v).mill", {"milliseconds"}),
        ("attn.visualize_mask(64).sv", {"svg"}),
        ("attn.compile('float32', 64).prep", {"prepare"}),
    ],
)
def test_editors_complete(code, wanted):
    jedi = need("jedi")
    environment = jedi.InterpreterEnvironment()
    project = jedi.Project(ROOT, added_sys_path=[str(ROOT / "python")])
    script = jedi.Script(f"import attn\nq = k = v = 0\n{code}", project=project, environment=environment)
    assert wanted <= {x.name for x in script.complete()}


def test_options_are_a_mapping(make):
    q, k, v = make()
    options = attn.Options(block_m=32, cache=False, threads=1)
    assert dict(options) == {"block_m": 32, "cache": False, "threads": 1} and len(options) == 3
    assert options == {"block_m": 32, "cache": False, "threads": 1} and not attn.Options()
    wanted = attn.attention(q, k, v, options=dict(options))
    assert (attn.attention(q, k, v, options=options) == wanted).all()
    assert (attn.attention(q, k, v, options=attn.Options()) == attn.attention(q, k, v)).all()
    assert "block_m" in options and "splits" not in options and "device" not in options
    with pytest.raises(KeyError):
        options["splits"]
    assert dict(pickle.loads(pickle.dumps(options))) == dict(options)
    assert attn.compile("float32", 16, options=options)(q, k, v).shape == v.shape[:1] + q.shape[1:3] + v.shape[3:]
    assert str(attn.explain("float32", 16, options=options)).startswith("// device")
    found = attn.tune(q, k, v, candidates=[attn.Options(block_m=16)], options=options, rounds=1, seconds=0.001)
    assert len(found.milliseconds) == 2


def test_options_are_those_of_the_library():
    with pytest.raises(attn.Error) as error:
        attn.compile("float32", 16, options={"blok_m": 3})
    known = re.search(r"expected (.*), got", error.value.message).group(1)
    names = {x.replace("-", "_") for x in re.split(r", | or ", known)}
    assert set(attn.Options.__dataclass_fields__) == names - {"device", "lazy", "search", "entry"}
    text = inspect.getdoc(attn.Options)
    for name in attn.Options.__dataclass_fields__:
        assert re.search(rf"^    {name}: ", text, re.M), name


@pytest.mark.parametrize("value", [{"block_m": "x"}, {"threads": -1.5}, {"cache": "maybe"}, {"slack": 99}])
def test_wrong_options(value):
    with pytest.raises(attn.Error):
        attn.compile("float32", 16, options=attn.Options(**value))


def test_unknown_options():
    with pytest.raises(TypeError, match="blok_m"):
        attn.Options(blok_m=3)
