"""What attn says about calls, and what it writes of them: ATTN_LOG, ATTN_DUMP, ATTN_NVTX, attn.dump."""

import gc
import os
import re
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

import attn
import attn.__main__
import reference
from attn import _direct, _kernel_name, _memory, _nvtx, _observe, _progress, _tensors, _tools

BIN = Path(attn._library.library_path).parent.parent / "bin"
NEEDS_TOOL = pytest.mark.skipif(
    not (BIN / "attn-run").exists() and os.environ.get("CI") != "true", reason="attn-run was not built"
)


def run_fresh(code, **variables):
    """The code in a process of its own, with these variables of its environment."""
    path = os.path.dirname(os.path.dirname(attn.__file__))
    environment = {**os.environ, "PYTHONPATH": path, **variables}
    done = subprocess.run([sys.executable, "-B", "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def replay(folder, *arguments):
    """The script of one call, with the tools of this build."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [folder / "replay", *arguments], env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    return done


CALLS = """
import numpy, attn
q, k, v = numpy.ones((3, 1, 2, 5, 8), "float32")
for _ in range(2):
    attn.attention(q, k, v, causal=True)
"""


def test_levels():
    said = {level: run_fresh(CALLS, ATTN_LOG=level).stderr for level in ("off", "compile", "decisions", "calls", "values")}
    assert said["off"] == ""
    assert len(said["compile"].splitlines()) == 1 and "the first one" in said["compile"]
    assert "attn:   schedule    rule" in said["decisions"] and "attn:   mask-tiles  keeps" in said["decisions"]
    assert "call 1" not in said["decisions"]
    line = "attn: call 2: attention f32 D=8 causal on cpu: q [1, 2, 5, 8] k [1, 2, 5, 8] v [1, 2, 5, 8]"
    assert line in said["calls"].splitlines() and " mean " not in said["calls"]
    assert "attn: call 2:   q f32 [1, 2, 5, 8]: 1 to 1, mean 1, 0 NaN, 0 infinite" in said["values"].splitlines()
    assert re.search(r"call 2:   o\w* f32 \[1, 2, 5, 8\]: 1 to 1, mean 1, 0 NaN", said["values"])


def test_calls_of_autograd_are_seen():
    pytest.importorskip("torch")
    code = (
        "import torch, attn\n"
        "x = torch.ones(1, 1, 8, 8, requires_grad=True)\n"
        "attn.attention(x, x, x).sum().backward()\n"
    )
    said = run_fresh(code, ATTN_LOG="calls").stderr
    assert "call 1: attention f32 D=8 on cpu" in said
    assert "call 2: gradient f32 D=8 on cpu" in said


def test_a_failing_call_is_told(make, caplog):
    q, k, v = make()
    attn._call_log.logger.setLevel("INFO")
    watcher = attn._call_log.CallLog(has_values=True)
    _observe.watch(watcher)
    try:
        caplog.set_level("INFO", "attn.calls")
        with pytest.raises(attn.Error):
            attn.attention(q, k[:, :, :5], v)
    finally:
        _observe.unwatch(watcher)
    assert "failed: " in caplog.text


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_memory_is_read(dtype, rng):
    type_ = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    array = rng.standard_normal((3, 4, 5)).astype(type_)[::-1, :, ::2]
    tensors = _tensors.Tensors(types.SimpleNamespace(device=-1))
    tensors.add_array(array, "x", 3, attn._arrays.type_name(array.dtype))
    name = attn._arrays.type_name(array.dtype)
    got = _memory.to_f64(_memory.copy(tensors.tensors[0]), name)
    assert (got == array.astype(np.float64)).all()


def test_empty_memory_is_read():
    tensors = _tensors.Tensors(types.SimpleNamespace(device=-1))
    tensors.add_shape((0, 3), "f32")
    assert _memory.copy(tensors.tensors[0]).shape == (0, 3)


@NEEDS_TOOL
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_a_call_is_replayed(make, tmp_path, dtype, layout):
    """attn-run computes the bits that the call had, and finds them right."""
    type_ = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    q, k, v = (x.astype(type_) for x in make(m=33, n=70))
    slopes = np.float32([0.5, 0.25, 0.125, 0.0625])
    if layout == "bshd":
        q, k, v = (np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in (q, k, v))
    how = dict(causal=True, scale=0.3, layout=layout, score=lambda s, b, h, i, j: s - slopes[h] * (i - j))
    with attn.dump(tmp_path / "calls") as folder:
        wanted, lse = attn.attention(q, k, v, return_lse=True, options={"block_m": 32}, **how)
    (call,) = folder.iterdir()
    assert call.name.endswith("-causal-score") and call.name.startswith(f"call-{os.getpid()}-")
    text = (call / "replay").read_text()
    assert "--block-m=32" in text and "--input scale=0.3" in text
    done = replay(call, "--check")
    assert done.returncode == 0 and "right" in done.stdout, done.stdout + done.stderr
    results = sorted(call.glob("*.replayed.npy"))
    assert len(results) == 2
    for path in results:
        name = path.name.partition(".")[0]
        got, kept = (np.load(x).view(np.uint8) for x in (path, call / f"{name}.npy"))
        assert (got == kept).all()
    rows = wanted.view(np.uint16) if dtype == "bfloat16" else wanted
    kept = np.load(call / "o.npy")
    assert (kept == (rows.transpose(0, 2, 1, 3) if layout == "bshd" else rows)).all()
    assert (np.load(call / "lse.npy") == lse).all()


@NEEDS_TOOL
def test_gradients_are_replayed(make, tmp_path):
    q, k, v = make(m=9, n=20)
    d_output = np.ones_like(q)
    with attn.dump(tmp_path):
        wanted = attn.gradient(q, k, v, d_output, causal=True)
    calls = sorted(tmp_path.iterdir(), key=lambda x: int(x.name.split("-")[2]))
    assert ["attention" in calls[0].name, "gradient" in calls[-1].name] == [True, True]
    done = replay(calls[-1])
    assert done.returncode == 0, done.stderr
    for name, x in zip(("query", "key", "value"), wanted):
        assert (np.load(calls[-1] / f"d_{name}.replayed.npy") == x).all()


@NEEDS_TOOL
def test_pages_and_sequences_are_replayed(tmp_path, rng):
    torch = pytest.importorskip("torch")
    q = torch.from_numpy(rng.standard_normal((11, 2, 16)).astype("float32"))
    offsets = torch.tensor([0, 4, 11], dtype=torch.int32)
    with attn.dump(tmp_path):
        attn.serving.varlen_attention(q, q, q, offsets, offsets, max_seqlen_q=7, max_seqlen_k=7, causal=True)
        pool = torch.from_numpy(rng.standard_normal((6, 4, 2, 16)).astype("float32"))
        table = torch.tensor([[3, 1], [0, 5]], dtype=torch.int32)
        used = torch.tensor([7, 5], dtype=torch.int32)
        attn.serving.paged_attention(q[:2, None], pool, pool, page_table=table, seqused_k=used)
    calls = sorted(tmp_path.iterdir(), key=lambda x: int(x.name.split("-")[2]))
    assert ["ragged" in calls[0].name, "paged" in calls[1].name] == [True, True]
    for call in calls:
        done = replay(call)
        assert done.returncode == 0, done.stderr
        for path in call.glob("*.replayed.npy"):
            kept = call / path.name.replace(".replayed", "")
            assert (np.load(path) == np.load(kept)).all()


def test_a_dump_ends_with_its_block(make, tmp_path):
    """Before it and after it calls go the short way; inside of it none does, of the same kernel too."""
    q, k, v = make()
    kernel = attn.compile("float32", 16)
    wanted = kernel(q, k, v)
    plain = _tensors.Tensors.run
    with attn.dump(tmp_path):
        assert _tensors.Tensors.run is not plain
        inside = kernel(q, k, v)
    assert _tensors.Tensors.run is plain
    assert (kernel(q, k, v) == wanted).all() and (inside == wanted).all()
    assert len(list(tmp_path.iterdir())) == 1
    if _direct.extension is not None:
        assert kernel._plan.direct(q, k, v, None, None, [], False, False, None) is not None


def test_dumps_nest_and_share_numbers(make, tmp_path):
    q, k, v = make()
    with attn.dump(tmp_path / "a"):
        with attn.dump(tmp_path / "b"):
            attn.attention(q, k, v)
        attn.attention(q, k, v)
    names = [sorted(x.name for x in (tmp_path / name).iterdir()) for name in "ab"]
    assert len(names[0]) == 2 and set(names[1]) < set(names[0])


def test_wrong_folders(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "x", None):
        with pytest.raises(attn.Error, match="^folder: expected a folder that can be made, got "):
            with attn.dump(folder):
                pass
    assert not _observe._watchers


FAULTS = """
import numpy, attn, warnings
q, k, v = numpy.ones((3, 1, 2, 5, 8), "float32")
attn.attention(q, k, v)
try:
    attn.attention(q, k[:, :, :3], v)
except attn.Error:
    pass
attn.attention(q, k, v, score=lambda s, b, h, i, j: attn.log(s * 0 - 1))
try:
    attn.compile("float32", 8, options={"block_m": -1, "threads": 1})
except attn.Error as error:
    print(error)
"""


@NEEDS_TOOL
def test_failing_calls_are_written(tmp_path):
    done = run_fresh(FAULTS, ATTN_DUMP=str(tmp_path))
    folders = sorted(x.name.partition("-")[0] for x in tmp_path.iterdir())
    assert folders == ["call", "call", "refused"], done.stderr
    assert done.stderr.count("/replay runs it again") == 3
    (nan,) = [x for x in tmp_path.iterdir() if x.name.endswith("score")]
    assert "# failed: NaN in o, with finite arguments" in (nan / "replay").read_text()
    assert replay(nan).returncode == 0
    assert np.isnan(np.load(nan / "o.replayed.npy")).all()
    (shape,) = [x for x in tmp_path.iterdir() if x.name.startswith("call") and x != nan]
    assert replay(shape).returncode != 0
    (refused,) = tmp_path.glob("refused-*")
    again = replay(refused)
    assert again.returncode != 0 and "block" in again.stderr


def test_chosen_calls_are_written(tmp_path):
    run_fresh(CALLS, ATTN_DUMP=str(tmp_path), ATTN_DUMP_CALLS="2,5-7")
    (folder,) = tmp_path.iterdir()
    assert folder.name.split("-")[2] == "2"
    assert {"kernel.mlir", "replay", "q.npy", "k.npy", "v.npy", "o.npy"} == {x.name for x in folder.iterdir()}


@pytest.mark.parametrize(
    "variables, told",
    [
        ({"ATTN_LOG": "loud"}, "ATTN_LOG: expected off, compile, decisions, calls or values, got 'loud'"),
        ({"ATTN_DUMP": "x", "ATTN_DUMP_CALLS": "3-x"}, "expected all, or numbers such as 3,7-9, got '3-x'"),
        ({"ATTN_DUMP_CALLS": "all"}, "ATTN_DUMP_CALLS: expected a folder in ATTN_DUMP too, got none"),
        ({"ATTN_NVTX": "yes"}, "ATTN_NVTX: expected 0 or 1, got 'yes'"),
    ],
)
def test_wrong_variables(variables, told):
    assert told in run_fresh("import attn", **variables).stderr


def test_a_million_failures_fill_no_disk(tmp_path, monkeypatch):
    dump = attn._dump.Dump(tmp_path, None)
    for _ in range(40):
        dump.refused("func.func @f() { return }", (("device", "cpu"), ("pack", "2")), attn.Error("x", "y"))
    assert len(list(tmp_path.iterdir())) == 16
    text = next(tmp_path.iterdir()).joinpath("replay").read_text()
    assert "# left out, since attn-run has no such option: pack=2" in text and "pack=2'" not in text


def test_names():
    source = (
        "func.func @attention(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>, %v: tensor<?x?x?x32xbf16>)"
        " -> (tensor<?x?x?x32xbf16>) {\n  %o = attn.attention %q, %k, %v variants [#attn.causal<bottom_right>, "
        "#attn.window<3, 0>]\n    score(%s: f32) {\n"
    )
    assert _kernel_name.name_kernel(source) == "attention bf16 D=64 Dv=32 causal window score"
    assert _kernel_name.name_kernel("nothing") == "function"


def test_ranges(make, monkeypatch):
    """Around calls that go the short way, and around others."""
    said = []
    ranges = said.append, lambda: said.append("end")
    monkeypatch.setattr(_nvtx, "_found", [ranges])
    monkeypatch.setattr(_direct, "around", None)
    monkeypatch.setattr(_tensors.Tensors, "run", _tensors.Tensors.run)
    q, k, v = make(d=24)
    wanted = attn.attention(q, k, v, causal=True, window=(3, 0))
    gc.collect()
    _nvtx.install()
    monkeypatch.setattr(attn._eager, "_plans", {})
    assert (attn.attention(q, k, v, causal=True, window=(3, 0)) == wanted).all()
    assert said == ["attn attention f32 D=24 causal window", "end"]
    said.clear()
    monkeypatch.setattr(_direct, "_closed", [True])
    monkeypatch.setattr(attn._eager, "_plans", {})
    attn.attention(q, k, v, causal=True, window=(3, 0))
    assert said == ["attn attention f32 D=24 causal window", "end"]
    with pytest.raises(attn.Error):
        attn.attention(q, k[:, :, :5], v, causal=True, window=(3, 0))
    assert said[2:] == ["attn attention f32 D=24 causal window", "end"]


def test_no_library_of_ranges(monkeypatch):
    monkeypatch.setattr(_nvtx, "_found", [])
    monkeypatch.setattr(_nvtx, "_LIBRARIES", ("libno-such.so",))
    monkeypatch.setitem(sys.modules, "nvtx", None)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        pytest.skip("this PyTorch has ranges")
    kernel = types.SimpleNamespace(source="func.func @attention(%q: tensor<?x?x?x8xf32>")
    with pytest.warns(RuntimeWarning, match="ATTN_NVTX: expected PyTorch for CUDA, the package nvtx or"):
        assert _nvtx.around(kernel, lambda x: x + 1)(2) == 3


def test_environment():
    text = attn.collect_env()
    assert repr(text) == str(text)
    for part in (attn.__version__, str(attn._library.library_path), "numpy", np.__version__, "processor"):
        assert part in text
    done = subprocess.run(
        [sys.executable, "-B", "-m", "attn", "env"],
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(attn.__file__)), "ATTN_CACHE": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "ATTN_CACHE        0" in done.stdout and done.stdout.startswith("attn\n  version")


def test_secrets_stay_out(monkeypatch):
    monkeypatch.setenv("ATTN_X", "told")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    monkeypatch.setenv("HF_TOKEN", "hidden")
    text = attn.collect_env()
    assert "told" in text and "hidden" not in text


@NEEDS_TOOL
def test_tools_of_the_package():
    program = [sys.executable, "-B", "-m", "attn"]
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(attn.__file__))}
    done = subprocess.run([*program, "run", "--help"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "--shape" in done.stdout
    told = subprocess.run([*program, "--version"], env=environment, capture_output=True, text=True)
    assert told.stdout == f"attn {attn.__version__}\n"
    tool = subprocess.run([*program, "run", "--version"], env=environment, capture_output=True, text=True)
    assert tool.stdout.startswith(f"attn-run {attn.__version__}")
    wrong = subprocess.run([*program, "walk"], env=environment, capture_output=True, text=True)
    assert wrong.returncode == 1 and wrong.stderr.startswith("usage: python -m attn env")


def test_a_tool_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setattr(_tools, "library_path", tmp_path / "lib" / "libattn.so")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _tools.find_tool("attn-run") == ""
    # An installed script finds itself alone, and does not call itself.
    script = tmp_path / "attn-run"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(script), "--version"])
    with pytest.raises(SystemExit, match="expected attn-run in the package"):
        attn.__main__.run_tool()


def test_a_terminal_hears_of_long_compilations(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "_PATIENCE", 0.01)
    done = threading.Event()
    threading.Timer(0.1, done.set).start()
    _progress.wait(done, "compiling attention")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    done = threading.Event()
    threading.Timer(0.1, done.set).start()
    _progress.wait(done, "compiling attention")
    text = capsys.readouterr().err
    assert text.startswith("\rattn: compiling attention ... 0 s") and text.endswith(" \r")
    monkeypatch.setenv("ATTN_LOG", "off")
    _progress.wait(done, "compiling attention")
    assert capsys.readouterr().err == ""


def test_short_compilations_say_nothing(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    done = threading.Event()
    done.set()
    _progress.wait(done, "compiling attention")
    assert capsys.readouterr().err == ""
