"""The functions of the package flash_attn, by their names and parameters:

    from attn.integrations.flash_attn import flash_attn_func

Tensors are (B, S, H, D). They may be on the CPU, where D and Dv are free. Parameters that attn
does not serve are refused by name; none is ignored.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

import torch

import attn

from .._library import refuse
from ._arguments import read_margin
from ._kvcache import flash_attn_with_kvcache
from ._varlen import (
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
    give,
    refuse_weights,
)

__all__ = [
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
]


def _make_score(softcap: float, slopes: Optional[torch.Tensor]) -> Optional[Callable]:
    """What comes to a product, softcap before the bias."""
    if not softcap and slopes is None:
        return None
    is_of_batches = slopes is not None and slopes.ndim == 2

    def score(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        if softcap:
            s = softcap * attn.tanh(s / softcap)
        if slopes is not None:
            slope = slopes[b, h] if is_of_batches else slopes[h]
            # Rows count from the last one and the last key.
            s = s - slope * abs(q + attn.key_length - attn.query_length - kv)
        return s

    return score


def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: Optional[float] = None,
    causal: bool = False,
    window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Optional[torch.Tensor] = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    learnable_sink: Optional[torch.Tensor] = None,
    return_lse: bool = False,
    sm_margin: int = 0,
) -> Any:
    """q (B, M, H, D), k (B, N, Hkv, D), v (B, N, Hkv, Dv); returns (B, M, H, Dv), and with return_lse
    also (B, H, M), natural logarithms. With return_attn_probs it returns (output, lse, None).

    `causal` and `window_size` count from the bottom-right, as there. Gradients follow for q, k, v and
    learnable_sink, and are the same bits each time if `deterministic` says so. sm_margin is the option
    `reserve` of `attn.attention`.

    Raises:
        Error: a dropout_p that is no probability, or return_attn_probs with dropout.
    """
    refuse_weights(return_attn_probs, dropout_p)
    left, right = (None if side is None or side < 0 else side for side in window_size)
    wants_lse = return_lse or return_attn_probs
    options: Dict[str, Any] = {**(read_margin(sm_margin) or {}), **({"fused": "off"} if deterministic else {})}
    found = attn.attention(
        q,
        k,
        v,
        scale=softmax_scale,
        causal=causal,
        window=None if left is None and right is None else (left, right),
        score=_make_score(softcap, alibi_slopes),
        sink=learnable_sink,
        layout="bshd",
        return_lse=wants_lse,
        dropout_p=dropout_p,
        options=options or None,
    )
    return give(*found, return_lse, return_attn_probs) if wants_lse else found


def flash_attn_kvpacked_func(
    q: torch.Tensor, kv: torch.Tensor, *arguments: Any, **options: Any
) -> Any:
    """As flash_attn_func; kv is (B, N, 2, Hkv, D)."""
    _check_packed("kv", kv, 2)
    return flash_attn_func(q, *kv.unbind(2), *arguments, **options)


def flash_attn_qkvpacked_func(qkv: torch.Tensor, *arguments: Any, **options: Any) -> Any:
    """As flash_attn_func; qkv is (B, S, 3, H, D)."""
    _check_packed("qkv", qkv, 3)
    return flash_attn_func(*qkv.unbind(2), *arguments, **options)


def _check_packed(name: str, x: torch.Tensor, count: int) -> None:
    if x.dim() != 5 or x.shape[2] != count:
        refuse(name, f"(B, S, {count}, H, D)", f"shape {tuple(x.shape)}")
