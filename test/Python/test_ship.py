"""docs/ship-kernels: the texts that it ships are those that calls compile, and its entries are written. The driver is one that
only answers, so that there need be no GPU."""

import json
import runpy
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import attn
from attn import _library
from test_ways import CARDS, needs_driver, run_with_driver

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "ship-kernels"
if not SCRIPT.exists():
    pytest.skip("no checkout beside the tests", allow_module_level=True)
pytestmark = pytest.mark.made_of("docs/ship-kernels", "python/attn/_source.py", "python/attn/_explain.py", "python/attn/_plan.py")
TRANSLATE = _library.library_path.parent.parent / "bin" / "attn-translate"
ship = runpy.run_path(str(SCRIPT))

# What a program compiles that calls, records and differentiates, by torch where it is there and by compile otherwise.
COMPILE = """
import json, sys
import attn
from attn import _plan

texts, compile = [], _plan._compile
def note(text, options):
    # Laziness says when kernels are compiled, and is no part of a key.
    texts.append([text, sorted(x for x in options if x[0] != "lazy")])
    return compile(text, options)
_plan._compile = note
for how in json.loads(sys.argv[1]):
    shape = (2, 8, 1024, how["head_dim"])
    attn.warm_up([{**how, "device": "cuda:0", "gradient": True, "shapes": [(shape, shape, shape)]},
                  {**how, "device": "cuda:0", "shapes": [(shape, shape, shape)]}])
    # As the operator of a compiled graph asks for it.
    plan = attn.compile(**how, device="cuda:0")._plan.recorded()
    plan.gradient(("query", "key", "value"), True, plan.problem.return_low)
print(json.dumps(texts))
"""


@needs_driver
def test_texts_are_those_of_calls(tmp_path):
    asked = [how for how in ship["list_attentions"]() if how["head_dim"] == 128 and how["dtype"] == "bfloat16"]
    plain = [how for how in asked if set(how) == {"dtype", "head_dim", "causal"}]
    assert len(asked) == 8 and len(plain) == 2
    found = run_with_driver(tmp_path, COMPILE, CARDS["H100"], json.dumps(plain))
    # Nothing is said but the device: another word would be another key.
    assert {json.dumps(options) for _, options in found} == {'[["device", "cuda:0"]]'}
    sources = ship["write_sources"](asked, Path(attn.__file__).parents[1], tmp_path / "sources")
    assert {text for text, _ in found} == {path.read_text() for path in sources}


def test_entries(tmp_path):
    """Of the real compiler, with an assembler that writes a word."""
    if not TRANSLATE.exists():
        pytest.skip("attn-translate is not built")
    assembler = tmp_path / "ptxas"
    assembler.write_text('#!/bin/sh\nprintf ELF > "$4"\n')
    assembler.chmod(assembler.stat().st_mode | stat.S_IXUSR)
    source = ship["write_sources"](
        [{"dtype": "bfloat16", "head_dim": 64, "causal": True}], Path(attn.__file__).parents[1], tmp_path / "sources"
    )
    program = "import runpy, sys; from pathlib import Path; x = runpy.run_path(sys.argv[1]); " \
              "print(x['ship'](Path(sys.argv[2]), [Path(sys.argv[3])], Path(sys.argv[4])))"
    done = subprocess.run(
        [sys.executable, "-c", program, SCRIPT, TRANSLATE, source[0], tmp_path / "kernels"],
        capture_output=True, text=True, env={"PATH": f"{tmp_path}:/bin:/usr/bin"},
    )
    # The plan, short sequences, and all other calls.
    assert done.stdout == "3\n", done.stderr
    entries = list((tmp_path / "kernels").iterdir())
    assert len(entries) == 3 and {stat.S_IMODE(path.stat().st_mode) for path in entries} == {0o644}
    contents = [path.read_bytes() for path in entries]
    assert sum(x.count(b"\n.target sm_90a") for x in contents) == 2
    assert sum(x[:-32].endswith(b"ELF") for x in contents) == 2


# The note of the linker's hash, with its 20 bytes after it.
BUILD_ID = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"

CALL = """
import json, os, sys
import attn
shape = (2, 8, 1024, 64)
attn.warm_up([{"dtype": "bfloat16", "head_dim": 64, "causal": True, "device": "cuda:0", "shapes": [(shape, shape, shape)],
               "gradient": True}])
print(json.dumps(sorted(x for x in os.listdir(os.environ["ATTN_CACHE_DIR"]) if x.endswith(".kernel"))))
"""


@needs_driver
def test_a_first_call_compiles_nothing(tmp_path, monkeypatch):
    """Of a library with its kernels, as a wheel installs them. Here a tool has a build of its own, but in a wheel it is the library's."""
    if not TRANSLATE.exists():
        pytest.skip("attn-translate is not built")
    library, tool = tmp_path / "lib" / "libattn.so", tmp_path / "bin" / "attn-translate"
    for path, origin in ((library, _library.library_path), (tool, TRANSLATE)):
        path.parent.mkdir()
        shutil.copy(origin, path)
    contents, program = library.read_bytes(), tool.read_bytes()
    if BUILD_ID not in contents or BUILD_ID not in program:
        pytest.skip("the linker left no hash of 20 bytes")
    at, of_tool = (x.index(BUILD_ID) + len(BUILD_ID) for x in (contents, program))
    tool.write_bytes(program[:of_tool] + contents[at : at + 20] + program[of_tool + 20 :])

    assembler = tmp_path / "ptxas"
    assembler.write_text('#!/bin/sh\nprintf ELF > "$4"\n')
    assembler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    how = {"dtype": "bfloat16", "head_dim": 64, "causal": True}
    asked = [how, {**how, "return_lse": True}, {**how, "gradient": True}]
    sources = ship["write_sources"](asked, Path(attn.__file__).parents[1], tmp_path / "sources")
    assert ship["ship"](tool, sources, library.parent / "kernels") == 8

    monkeypatch.setenv("ATTN_LIBRARY", str(library))
    monkeypatch.delenv("ATTN_CACHE", raising=False)
    (tmp_path / "cache").mkdir(mode=0o700)
    assert run_with_driver(tmp_path, CALL, CARDS["H100"]) == []
    # Without them it compiles just those.
    shipped = sorted(path.name for path in (library.parent / "kernels").iterdir())
    shutil.rmtree(library.parent / "kernels")
    assert run_with_driver(tmp_path, CALL, CARDS["H100"]) == shipped


def test_what_is_missing(tmp_path):
    def fail(*arguments, path="/none"):
        done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, env={"PATH": path})
        assert done.returncode
        return done.stderr

    wheel = tmp_path / "attn-1.0-py3-none-any.whl"
    assert "expected a wheel or --list, got neither" in fail()
    assert "expected ptxas in $PATH, got none (make assembler installs it)" in fail(wheel)


def test_list():
    done = subprocess.run([sys.executable, SCRIPT, "--list"], capture_output=True, text=True)
    listed = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(listed) == 48 and {how["head_dim"] for how in listed} == {64, 128, 256}
