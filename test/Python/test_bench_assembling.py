"""The bench of what first calls cost a processor: with the real compiler, and an assembler that waits or refuses."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from attn import _library

BENCH = Path(__file__).resolve().parents[2] / "bench" / "assembling.py"
BIN = _library.library_path.parent.parent / "bin"
if not BENCH.exists() or not (BIN / "attn-translate").exists():
    pytest.skip("no benches beside the tests, or no tools", allow_module_level=True)
pytestmark = pytest.mark.made_of("bench/assembling.py")


def run(tmp_path, body, *arguments):
    """With a ptxas of this body, where there is one."""
    if body:
        path = tmp_path / "ptxas"
        path.write_text(f'#!/bin/sh\n[ "$1" != --version ] || {{ echo "release 13.0, V13.0.88"; exit; }}\n{body}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    command = [sys.executable, BENCH, BIN, "--runs", "1", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={"PATH": f"{tmp_path}:/bin:/usr/bin"})


def test_two_builds(tmp_path):
    # A loop of some 50 ms, for each text; the text is PTX for Hopper.
    work = 'grep -q "^.target sm_90a" "$2" || exit 3; i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; printf ELF > "$4"'
    out = tmp_path / "assembling.json"
    done = run(tmp_path, work, "--beside", str(BIN), "--out", str(out))
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert result["ptxas"] == "V13.0.88" and list(result["calls"]) == ["forward", "with gradients"]
    for row in result["calls"].values():
        assert {tool: len(t) for tool, t in row["seconds"]["other"].items()} == {"attn": 1, "ptxas": 1}
        assert all(0.01 < t < 60 for times in row["seconds"]["this"].values() for t in times)
        # The same build beside itself: one run on a busy machine.
        assert 0.2 < row["total"]["this"] / row["total"]["other"] < 5
        assert row["least"]["this"] <= row["total"]["this"]
    forward, both = (result["calls"][name]["least"]["this"] for name in ("forward", "with gradients"))
    assert both > forward
    assert done.stdout.count(" of it\n") == 2


def test_what_is_missing(tmp_path):
    done = run(tmp_path, "")
    assert done.returncode == 1 and "expected ptxas, got none (make assembler installs it)" in done.stderr
    done = run(tmp_path, "echo ptxas fatal >&2; exit 255")
    assert done.returncode == 1 and "assembling.py: " in done.stderr and "ptxas fatal" in done.stderr
