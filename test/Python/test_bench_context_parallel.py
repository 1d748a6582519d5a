"""The bench of many GPUs, on two processes of a CPU: its logic, not its numbers."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("PyTorch without torch.distributed", allow_module_level=True)
BENCH = pathlib.Path(__file__).parents[2] / "bench" / "gpu" / "context_parallel.py"


@pytest.mark.long
@pytest.mark.skipif(torch.cuda.is_available(), reason="it would measure")
def test_rows(tmp_path):
    out = tmp_path / "rows.json"
    program = [sys.executable, "-B", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(BENCH)]
    asked = ["--cells", "causal/512/2:1,documents/512/2:1", "--rounds", "1", "--peer", "--refusals", "--out", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*program, *asked], capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(out.read_text())
    assert [row["case"] for row in found["rows"]] == ["causal", "documents"] and found["rates"]["link"] > 0
    for row in found["rows"]:
        assert row["bits"] and row["bits_of_d_query"] and row["received"] == row["expected"] and row["error"] == 0
        assert {"gather", "gather, both", "parts", "parts, both", "one", "one, both"} <= set(row["ms"])
        assert row["predicted"]["gather"] > 0
    assert len(found["refusals"]) == 6 and all(x["attn_off_by"] < 1e-2 for x in found["refusals"])


def test_rates_of_many_ranks(monkeypatch):
    """What the picture draws: shares of a rate."""
    monkeypatch.syspath_prepend(str(BENCH.parents[1]))
    import contexts

    for heads in contexts.HEADS:
        shares = [contexts.find_rate(16, tokens, heads, "gather") for tokens in contexts.TOKENS]
        assert 0 < shares[0] < min(shares[1:]) and max(shares) <= 1
