"""The bench of elements of 8 bits, on a CPU: its logic, not its numbers."""

import json

import pytest

torch = pytest.importorskip("torch")
SMALL = ["--tokens", "128", "--hidden", "64", "--dims", "32", "--lengths", "64", "--rounds", "1", "--seconds", "0.01"]


def test_rows(import_bench, tmp_path):
    out = tmp_path / "float8.json"
    assert import_bench("float8").main([*SMALL, "--out", str(out)]) == 0
    rows = json.loads(out.read_text())["problems"]
    assert [row["causal"] for row in rows] == [False, True]
    for row in rows:
        assert set(row["of"]) == {"attn, 16 bits"} and row["tflops"]["attn"] > 0
        # The kernel loses less than rounding to 8 bits does.
        assert row["own_errors"]["attn"] < 1e-2 < row["errors"]["attn"]
        assert set(row["errors_by_preparation"]) == {"plain", "smooth", "rotated"}


def test_what_is_wrong_is_told(import_bench, monkeypatch):
    bench = import_bench("float8")
    monkeypatch.setattr(bench, "find_error", lambda got, exact: 0.05)
    assert bench.main(SMALL) == 1
