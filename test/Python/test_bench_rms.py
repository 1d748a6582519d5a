"""The bench of root mean squares: its logic, on a CPU, where attn's error is no larger than PyTorch's."""

import json

import pytest

torch = pytest.importorskip("torch")
SMALL = ["--length", "96", "--heads", "1", "--seeds", "2", "--dims", "64"]


@pytest.fixture
def bench(import_bench):
    return import_bench("rms_errors")


def test_rows(bench, tmp_path):
    out = tmp_path / "rms.json"
    assert bench.main([*SMALL, "--goal", "1.1", "--also", "block_m=64", "--out", str(out)]) == 0
    rows = json.loads(out.read_text())["rows"]
    assert [(row["type"], row["data"], row["mask"]) for row in rows[:3]] == [
        ("bf16", "normal", "full"), ("bf16", "normal", "causal"), ("bf16", "outliers", "full")]
    assert len(rows) == 8
    for row in rows:
        assert set(row["ratios"]) == {"attn", "attn block_m=64"}
        assert 1e-5 < row["errors"]["attn"] < 1e-2 and "fa2" in row["errors"]


def test_goal(bench, monkeypatch):
    """An attention that is 3 thousandths too large misses it."""
    ours = bench.make_ours

    def scale(variant, q, k, v, **more):
        call = ours(variant, q, k, v, **more)
        return lambda: (call() * 1.003).to(q.dtype)

    monkeypatch.setattr(bench, "make_ours", scale)
    assert bench.main(SMALL) == 1
