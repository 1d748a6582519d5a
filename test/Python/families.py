"""Hugging Face's families of models that attn.integrations.transformers serves, of few layers and
random weights, and batches for them."""

import torch
import transformers as T

SMALL = dict(
    vocab_size=97,
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)
# Name -> (class, configuration), here and below.
DECODERS = {
    "llama": (T.LlamaForCausalLM, lambda: T.LlamaConfig(**SMALL)),
    "mistral": (T.MistralForCausalLM, lambda: T.MistralConfig(**SMALL, sliding_window=7)),
    "qwen2": (T.Qwen2ForCausalLM, lambda: T.Qwen2Config(**SMALL)),
    "qwen3": (T.Qwen3ForCausalLM, lambda: T.Qwen3Config(**SMALL, head_dim=16)),
    "phi3": (T.Phi3ForCausalLM, lambda: T.Phi3Config(**SMALL)),
    "gpt2": (
        T.GPT2LMHeadModel,
        lambda: T.GPT2Config(
            vocab_size=97,
            n_embd=64,
            n_layer=2,
            n_head=4,
            attn_pdrop=0.0,
            embd_pdrop=0.0,
            resid_pdrop=0.0,
        ),
    ),
    "gemma2": (
        T.Gemma2ForCausalLM,
        lambda: T.Gemma2Config(
            **SMALL,
            head_dim=16,
            sliding_window=7,
            query_pre_attn_scalar=4,
            attn_logit_softcapping=2.0,
        ),
    ),
    "gemma3": (
        T.Gemma3ForCausalLM,
        lambda: T.Gemma3TextConfig(**SMALL, head_dim=16, sliding_window=7),
    ),
    "gpt_oss": (
        T.GptOssForCausalLM,
        lambda: T.GptOssConfig(
            **SMALL, head_dim=16, sliding_window=7, num_local_experts=2, num_experts_per_tok=1
        ),
    ),
    "cohere2": (T.Cohere2ForCausalLM, lambda: T.Cohere2Config(**SMALL, sliding_window=7)),
    "deepseek_v3": (
        T.DeepseekV3ForCausalLM,
        lambda: T.DeepseekV3Config(
            **{**SMALL, "num_key_value_heads": 4},
            moe_intermediate_size=32,
            n_routed_experts=4,
            num_experts_per_tok=2,
            n_group=2,
            topk_group=1,
            kv_lora_rank=16,
            q_lora_rank=16,
            qk_rope_head_dim=8,
            qk_nope_head_dim=16,
            v_head_dim=16,
            first_k_dense_replace=1,
        ),
    ),
    "llama4": (
        T.Llama4ForCausalLM,
        lambda: T.Llama4TextConfig(
            **SMALL,
            intermediate_size_mlp=96,
            head_dim=16,
            num_local_experts=2,
            num_experts_per_tok=1,
            attention_chunk_size=8,
        ),
    ),
}

LAYERS = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96)
BOTH = dict(
    vocab_size=97,
    d_model=64,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=96,
    decoder_ffn_dim=96,
)
UNDROPPED = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
# Their outputs are states of tokens or patches.
ENCODERS = {
    "bert": (T.BertModel, lambda: T.BertConfig(vocab_size=97, **LAYERS, **UNDROPPED)),
    "modernbert": (
        T.ModernBertModel,
        lambda: T.ModernBertConfig(vocab_size=97, **LAYERS, local_attention=8, pad_token_id=0),
    ),
    "vit": (T.ViTModel, lambda: T.ViTConfig(**LAYERS, image_size=32, patch_size=8)),
    "clip": (
        T.CLIPModel,
        lambda: T.CLIPConfig(
            text_config=dict(vocab_size=97, max_position_embeddings=32, eos_token_id=2, **LAYERS),
            vision_config=dict(image_size=32, patch_size=8, **LAYERS),
            projection_dim=32,
        ),
    ),
}
# Their decoders read keys of an encoder.
PAIRS = {
    "t5": (
        T.T5ForConditionalGeneration,
        lambda: T.T5Config(
            vocab_size=97, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4, dropout_rate=0.0
        ),
    ),
    "bart": (
        T.BartForConditionalGeneration,
        lambda: T.BartConfig(**BOTH, max_position_embeddings=64, dropout=0.0),
    ),
    "whisper": (
        T.WhisperForConditionalGeneration,
        lambda: T.WhisperConfig(
            **BOTH,
            num_mel_bins=16,
            max_source_positions=20,
            max_target_positions=32,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
            suppress_tokens=None,
            begin_suppress_tokens=None,
        ),
    ),
}
PICTURES = {
    "qwen2_vl": (
        T.Qwen2VLForConditionalGeneration,
        lambda: T.Qwen2VLConfig(
            text_config=dict(
                **SMALL, rope_parameters=dict(rope_type="default", mrope_section=[2, 3, 3])
            ),
            vision_config=dict(depth=2, embed_dim=32, hidden_size=64, num_heads=2, patch_size=8),
            image_token_id=95,
            vision_start_token_id=94,
            vision_end_token_id=93,
        ),
    ),
}
FAMILIES = {**DECODERS, **ENCODERS, **PAIRS, **PICTURES}
# What multiplies to scores.
_OF_SCORES = "q_proj.weight k_proj.weight qkv_proj query.weight key.weight Wqkv".split()


def make(kind):
    torch.manual_seed(len(kind))
    model_class, config = FAMILIES[kind]
    model = model_class(config()).eval()
    # Sinks and biases of new models are zeros, which would hide that they are dropped, and scores are
    # near zero, whatever is made of them.
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if "sinks" in parameter_name:
                parameter.normal_()
            elif parameter_name.endswith("bias"):
                parameter.normal_(std=0.3)
            elif any(x in parameter_name for x in _OF_SCORES):
                parameter.mul_(6)
    return model


def _pad(length, padding):
    """1 for tokens that are there: of the first sequence fewer, of the second all."""
    seen = torch.ones(2, length, dtype=torch.long)
    if padding:
        seen[0, slice(0, 5) if padding == "left" else slice(length - 5, length)] = 0
    return seen


def make_batch(kind, padding=None):
    """(inputs, what a loss reads of the outputs) of two sequences; the first is padded left or right."""
    ids, seen = torch.randint(3, 90, (2, 23)), _pad(23, padding)
    ids = ids * seen
    inputs = dict(input_ids=ids)
    if padding:
        inputs["attention_mask"] = seen
    if kind in PAIRS:
        spoken = _pad(13, padding)
        words = torch.randint(3, 90, (2, 13)) * spoken
        if kind == "whisper":
            inputs = dict(input_features=torch.randn(2, 16, 40))
        inputs["decoder_input_ids"] = words
        if padding:
            inputs["decoder_attention_mask"] = spoken
        return dict(inputs, use_cache=False), lambda found: [found.logits[spoken.bool()]]
    if kind == "vit":
        inputs = dict(pixel_values=torch.randn(2, 3, 32, 32))
        return inputs, lambda found: [found.last_hidden_state]
    if kind == "clip":
        ids[:, 17] = 2
        inputs["pixel_values"] = torch.randn(2, 3, 32, 32)
        return inputs, lambda found: [found.image_embeds, found.text_embeds]
    rows = seen.bool()
    if kind in ENCODERS:
        return inputs, lambda found: [found.last_hidden_state[rows]]
    if kind in PICTURES:
        # An image of 4 x 4 patches in each sequence, 4 of which are one token.
        ids[:, 6], ids[:, 7:11] = 94, 95
        inputs["pixel_values"] = torch.randn(32, 3 * 2 * 8 * 8)
        inputs["image_grid_thw"] = torch.tensor([[1, 4, 4]] * 2)
        inputs["mm_token_type_ids"] = (ids == 95).int()
    return dict(inputs, use_cache=False), lambda found: [found.logits[rows]]
