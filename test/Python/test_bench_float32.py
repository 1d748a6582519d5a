"""The bench of f32, on a CPU: its logic, not its numbers."""

import json

import pytest

torch = pytest.importorskip("torch")
SMALL = ["--tokens", "128", "--hidden", "64", "--dims", "32", "--lengths", "64", "--rounds", "1", "--seconds", "0.01"]


def test_rows(import_bench, tmp_path):
    out = tmp_path / "float32.json"
    assert import_bench("float32").main([*SMALL, "--out", str(out)]) == 0
    rows = json.loads(out.read_text())["problems"]
    assert [row["causal"] for row in rows] == [False, True]
    for row in rows:
        for kind in ("forward", "backward"):
            assert set(row[kind]["of"]) <= {"efficient", "math"} and "math" in row[kind]["of"]
            assert 0 < row[kind]["errors"]["attn"] < 1e-5 and row[kind]["tflops"]["attn"] > 0


def test_what_is_wrong_is_told(import_bench, monkeypatch):
    bench = import_bench("float32")
    list_calls = bench.list_calls

    def list_wrong_calls(*given):
        calls = list_calls(*given)
        return {**calls, "attn": lambda: calls["attn"]() * 1.001}

    monkeypatch.setattr(bench, "list_calls", list_wrong_calls)
    assert bench.main(SMALL) == 1
