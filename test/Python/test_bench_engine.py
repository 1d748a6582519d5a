"""The bench of an engine's loop, on a CPU: its logic, not its numbers."""

import json

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture
def bench(import_bench):
    return import_bench("engine")


def test_rows(bench, tmp_path):
    """PyTorch's loop makes the same tokens."""
    out = tmp_path / "engine.json"
    sizes = "--requests 5 --longest 40 --tokens 6 --layers 2 --rounds 1".split()
    assert bench.main([*sizes, "--out", str(out)]) == 0
    found = json.loads(out.read_text())
    assert found["same"] == found["of"] == 5 and len(found["rows"]) == 2
    assert all(row["tokens_per_s"] > 0 and row["p99_ms"] > 0 for row in found["rows"].values())


def test_tokens_of_the_peer(bench):
    config = bench.example.Config(page=8, columns=12, pages=60, batch=3, chunk=16)
    requests = bench.example.make_requests(config, 6, 50, 8)
    kernels = {"attn": bench.example.Kernels(), "peer": bench.Gathered()}
    _, tokens = bench.measure(config, kernels, requests, 1)
    assert tokens["attn"] == tokens["peer"]
