"""The bench of whole models, on two layers of each: its logic, not its numbers."""

import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")


@pytest.fixture
def models(import_bench):
    return import_bench("models")


def test_models(models, tmp_path):
    out = tmp_path / "models.json"
    short = ["--tiny", "--length", "48", "--rounds", "1", "--seconds", "0.01", "--passes", "1"]
    chosen = ["--implementations", "attn", "sdpa", "flash_attention_2"]
    assert models.main([*short, *chosen, "--out", str(out)]) == 0
    found = json.loads(out.read_text())["models"]
    # The others have no sdpa.
    natives = {"mistral": "sdpa", "gemma2": "eager", "gpt_oss": "eager"}
    for kind, native in natives.items():
        result = found[kind]
        assert result["best_native"] == native and "flash_attention_2" in result["left_out"]
        assert set(result["implementations"]) == {"attn", native}
        for x in result["implementations"].values():
            assert 0 < x["attention_ms"] and 0 < x["share"] and x["difference"] < 1e-4
        assert result["speedup"] > 0 and result["attention_speedup"] > 0
    assert "softcap" in found["gemma2"]["left_out"]["sdpa"]


def test_that_attention_is_seen(models):
    """What is between the events is attention: a function that takes longer shows."""
    import time

    from transformers import AttentionInterface

    config = models.make_config("mistral", True, 16)
    model = models.make_model("mistral", config, "cpu", torch.float32)
    call = models.make_call(model, "slow", torch.ones(1, 16, dtype=torch.long))
    sdpa = AttentionInterface()["sdpa"]

    def attend(*inputs, **options):
        time.sleep(0.01)
        return sdpa(*inputs, **options)

    AttentionInterface.register("slow", attend)
    try:
        assert 20 <= models.time_attention(call, 1) < 2000
    finally:
        del AttentionInterface._global_mapping["slow"]


def test_layers(models, tmp_path):
    import model_layers

    out = tmp_path / "layers.json"
    chosen = ["--cpu", "--layers", "3", "--length", "96", "--implementations", "attn"]
    assert model_layers.main([*chosen, "--out", str(out)]) == 0
    found = json.loads(out.read_text())["implementations"]
    assert found["eager"]["logits"] == found["eager"]["held"] == 0 and not any(
        found["eager"]["moved"]
    )
    attention = found["attn"]["attention"]
    # Of bfloat16, as eager's.
    assert len(attention) == 3 and max(attention) < 2 * max(found["eager"]["attention"]) < 2e-2
    assert 0 < found["attn"]["held"] < 3e-2
