"""Words of other attentions, and what says the same here (docs/Migration.md has whole calls)."""

from __future__ import annotations

from typing import Any, Iterable, NoReturn

_MASK = "mask=lambda b, h, i, j: keep[b, h, i, j]"
_BIAS = "score=lambda s, b, h, i, j: s + bias[b, h, i, j]"
_BOTH = f"{_MASK} of bools, {_BIAS} of floats"
_SINK = "sink=, one logit for each head"

_WORDS = {
    "alibi_slopes": "score=lambda s, b, h, i, j: s - slopes[h] * abs(i + n - j), n being N - M",
    "attn_bias": _BOTH,
    "attn_mask": _BOTH,
    "attention_mask": _BOTH,
    "bias": _BIAS,
    "block_mask": "mask=, with the function of the block mask",
    "deterministic": 'options={"fused": "off"}',
    "dropout": "dropout_p=",
    "enable_gqa": "nothing: fewer heads of k and v are shared",
    "is_causal": 'causal="top_left" as PyTorch counts, causal=True from the last row and the last key',
    "learnable_sink": _SINK,
    "local_window_size": "window=(left, right)",
    "mask_mod": "mask=",
    "p": "dropout_p=",
    "return_attn_probs": "nothing: the weights are never stored",
    "s_aux": _SINK,
    "scaling": "scale=",
    "score_mod": "score=",
    "sinks": _SINK,
    "sliding_window": "window=(left, right)",
    "sm_scale": "scale=",
    "softcap": "score=lambda s, b, h, i, j: c * attn.tanh(s / c)",
    "softmax_scale": "scale=",
    "window_size": "window=(left, right)",
}


def fail_unexpected(function: str, names: Iterable[str]) -> NoReturn:
    """As Python says it, with what is meant here."""
    name = next(iter(names))
    hint = f" (here: {_WORDS[name]})" if name in _WORDS else ""
    raise TypeError(f"{function}() got an unexpected keyword argument '{name}'{hint}")
