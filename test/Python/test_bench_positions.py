"""The bench of positions, on a CPU: its logic, not its numbers."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")
BENCH = pathlib.Path(__file__).parents[2] / "bench" / "gpu" / "positions.py"
if not BENCH.exists():
    pytest.skip("no benches beside the tests", allow_module_level=True)


def test_positions(tmp_path):
    out = tmp_path / "positions.json"
    small = "--cases causal,alibi --length 64 --heads 2 --rounds 1 --seconds 0.001".split()
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, BENCH, *small, "--out", out], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads(out.read_text())["rows"]
    assert [row["case"] for row in rows] == ["causal", "alibi"]
    for row in rows:
        assert set(map(tuple, row["tiles"].values())) == {("decided", "decided")}
        assert all(max(errors) < 0.05 for errors in row["error"].values()), row["error"]
        assert set(row["backward"]["ratio"]) == set(row["tiles"]) and len(row["tiles"]) == 5
