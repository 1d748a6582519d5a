"""The bench of sequences one after the other, on a CPU: its logic, not its numbers."""

import json

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture
def varlen(import_bench):
    return import_bench("varlen")


@pytest.mark.long
def test_rows(varlen, tmp_path):
    out = tmp_path / "varlen.json"
    short = ["--tokens", "200", "--rounds", "1", "--seconds", "0.01", "--out", str(out)]
    assert varlen.main([*short, "--configs", "d128-documents-causal,d64-uniform512-full"]) == 0
    rows = {row["config"]: row for row in json.loads(out.read_text())["rows"]}
    assert set(rows) == {
        "d64-uniform512-full",
        "d128-documents-causal",
        "d128-documents-causal-tail12",
    }
    for row in rows.values():
        assert max(row["errors"]["attn"] + row["errors"]["attn sequences"]) < 1e-2
        assert row["forward"]["ms"]["attn"] and row["backward"]["ratio"]["attn documents"] > 0
        assert row["backward"]["ratio"]["attn sequences"] > 0
    assert "attn dense" in rows["d64-uniform512-full"]["forward"]["tflops"]


def test_lengths(varlen):
    for name in varlen.LENGTHS:
        lengths = varlen.make_lengths(name, 3000)
        assert sum(lengths) == 3000 and min(lengths) > 0
    assert varlen.main(["--configs", "nothing"]) == 1
