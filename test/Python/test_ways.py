"""The kernels between which calls on a GPU choose: the same from Python, C and attn-run. The driver is one
that only answers, so that there need be no GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import attn
from attn import _library

BUILD = _library.library_path.parent.parent
DRIVER = BUILD / "test" / "Unit" / "libFakeCuda.so"
RUN = BUILD / "bin" / "attn-run"
EXAMPLE = Path(__file__).parent.parent / "Simulator" / "attn-run-ways.mlir"
needs_driver = pytest.mark.skipif(not DRIVER.exists(), reason="a driver that only answers is not built")

# (batch, heads, key heads, rows, keys): prompts, decoding, heads that share keys, captions, short sequences.
SHAPES = [
    *[(b, h, k, 1, n) for b in (1, 16) for h, k in ((32, 8), (8, 8), (64, 1)) for n in (512, 8192)],
    *[(b, 32, 8, m, 4096) for b in (1, 64) for m in (2, 16, 17, 100, 129)],
    *[(2, 16, 16, m, n) for m in (256, 257, 4096) for n in (77, 100, 154)],
    *[(1, 16, 4, m, n) for m, n in ((1024, 1024), (1025, 1025), (4096, 4096), (300, 70), (0, 9), (9, 0))],
    *[(1, 128, 1, 1, 4096), (3, 12, 2, 5, 129), (1, 2, 2, 8192, 8192)],
]
# Bits of the memory's bus, with which the driver's clock gives an H200's 4916 GB/s and an H100's 3352.
CARDS = {"H200": 6144, "H100": 4189}


def run_with_driver(tmp_path, program, bus, *arguments):
    """What a program of Python prints, as JSON, where the driver is the one that only answers."""
    link = tmp_path / "libcuda.so.1"
    if not link.exists():
        link.symlink_to(DRIVER)
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(tmp_path),
        "FAKE_CUDA_MEMORY_BUS": str(bus),
        "ATTN_CACHE_DIR": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


# Python's own text and names, and the text of the C interface with its functions.
CHOOSE = """
import ctypes, json, sys
import attn
from attn import _library, _tensors

causal, shapes = json.loads(sys.argv[1])
kernel = attn.compile("bfloat16", 64, causal=causal, device="cuda:0", options={"lazy": True})

class Spec(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("type", ctypes.c_char_p), ("d", ctypes.c_int64),
                ("dv", ctypes.c_int64), ("causal", ctypes.c_int32), ("has_scale", ctypes.c_int32),
                ("has_sink", ctypes.c_int32), ("lse", ctypes.c_int32), ("left", ctypes.c_int64),
                ("right", ctypes.c_int64)]

library, text, handle = _library.library, ctypes.c_char_p(), ctypes.c_void_p()
spec = Spec(ctypes.sizeof(Spec), b"bf16", 64, 0, 2 if causal else 0, 0, 0, 0, -1, -1)
library.attn_write_source.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
_library.check(library.attn_write_source(ctypes.byref(spec), ctypes.byref(text)))
with _library.Options((("device", "cuda:0"), ("lazy", "on"))) as options:
    _library.check(library.attn_compile(text.value, options.handle, ctypes.byref(handle)))

def choose_in_c(q, k):
    class Kernel:
        device = 0
    tensors = _tensors.Tensors(Kernel())
    for shape in (q, k, k, q):
        tensors.add_shape(shape, "bf16")
    name = ctypes.c_void_p()
    arguments = _tensors.make_arguments(handle, tensors.tensors, None)[:3]
    _library.check(library.attn_choose_way(*arguments, ctypes.byref(name)))
    return ctypes.string_at(name).decode()

found = []
for b, h, hkv, m, n in shapes:
    q, k = (b, h, m, 64), (b, hkv, n, 64)
    found.append([kernel.way(q, k, k), choose_in_c(q, k)])
print(json.dumps(found))
"""


@needs_driver
@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("causal", [False, True])
def test_python_and_c_take_the_same_kernel(tmp_path, causal, card):
    found = run_with_driver(tmp_path, CHOOSE, CARDS[card], json.dumps([causal, SHAPES]))
    assert len(SHAPES) >= 40
    for shape, (python, c) in zip(SHAPES, found):
        assert python == c, shape
    ways = {python.removesuffix("-whole") for python, _ in found}
    expected = {"packed2", "packed4", "packed64", "short", ""}
    assert ways >= expected | ({"few"} if not causal else set())
    assert ("narrow" in ways) == (card == "H200" and not causal)


@needs_driver
@pytest.mark.parametrize("shape", SHAPES[::6])
def test_attn_run_takes_it_too(tmp_path, shape):
    """The simulator's device is an H200."""
    ((way, _),) = run_with_driver(tmp_path, CHOOSE, CARDS["H200"], json.dumps([False, [shape]]))
    extents = ",".join(f"{name}={x}" for name, x in zip(("B", "H", "Hkv", "M", "N"), shape))
    done = subprocess.run(
        [RUN, EXAMPLE, "--device=sim", "--predict", "--shape", extents], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    kernels = [x for x in done.stdout.split() if x.startswith("@attention_")]
    suffix = way.replace("-", "_")
    # A kernel alone is not named.
    assert not kernels or all(x.startswith(f"@attention_{suffix}_") for x in kernels), done.stdout
    assert bool(kernels) == (way.startswith("packed") and not way.endswith("whole"))


LOG = """
import json
import attn
lines = []
attn._library.set_log(lines.append)
kernel = attn.compile("bfloat16", 128, device="cuda", options={"lazy": True})
q, k = (1, 32, 1, 128), (1, 8, 8192, 128)
kernel.prepare(q, k, k)
size = kernel.workspace_size(q, k, k)
kernel.prepare()
try:
    kernel.prepare((1, 2, 3), k, k)
except attn.Error as error:
    lines.append(error.message)
print(json.dumps([size, lines]))
"""


@needs_driver
def test_prepare_compiles_what_calls_take(tmp_path):
    size, lines = run_with_driver(tmp_path, LOG, CARDS["H200"])
    # Sums and log-sum-exps of four slots for each row, in f32, by parts.
    assert size > 0 and size % (8 * 4 * (128 + 1) * 4) in range(0, 8 * 4 * 129 * 4)
    assert lines[0].startswith("attention: a call takes the way 'packed4', compiled in ")
    assert len(lines) > 10 and lines[-1] == "q: expected a shape of 4 dimensions, got (1, 2, 3)"


def test_a_cpu_has_one_kernel():
    kernel = attn.compile("float32", 16)
    shape = (1, 2, 3, 16)
    kernel.prepare()
    kernel.prepare(shape, shape, shape)
    assert kernel.way(shape, shape, shape) == "" and kernel.workspace_size(shape, shape, shape) == 0
    x = np.ones(shape, np.float32)
    with pytest.raises(attn.Error, match="workspace: expected one with out=, got none"):
        kernel(x, x, x, workspace=x)
    out = np.empty_like(x)
    assert kernel(x, x, x, out=out, workspace=np.empty(0, np.uint8)) is out
    np.testing.assert_allclose(out, x)
