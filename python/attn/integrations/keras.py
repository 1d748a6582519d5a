"""attn as the attention of Keras, with any of its backends torch, jax and tensorflow:

import attn.integrations.keras
with attn.integrations.keras.patch():  # or .undo()
    ...  # keras.layers.MultiHeadAttention, GroupedQueryAttention and keras.ops.dot_product_attention
"""

from __future__ import annotations

import importlib
from typing import Any, Callable, Optional

import keras

import attn

from .._library import refuse
from ._tables import add_table, fit_table, read_table

__all__ = ["Patch", "dot_product_attention", "patch"]

_nn = importlib.import_module("keras.src.backend").nn
_of_keras = _nn.dot_product_attention


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    scale: Optional[float] = None,
    is_causal: bool = False,
    flash_attention: Optional[bool] = None,
    attn_logits_soft_cap: Optional[float] = None,
) -> Any:
    """keras.ops.dot_product_attention: the same arguments, shapes and results.

    Args:
        query, key, value: (B, S, H, D) of the backend. Calls in float64 go to Keras.
        bias, mask: broadcast to (B, H, M, N), and are read as they are; both may be given.
        flash_attention: any; weights are never stored.

    Returns:
        (B, M, H, Dv). A row that keeps no key gives 0.

    Raises:
        Error: attn_logits_soft_cap, which backends of Keras understand in different ways, and
            backends other than torch, jax and tensorflow.
    """
    backend = keras.backend.backend()
    if backend not in _ATTEND:
        refuse("backend", "torch, jax or tensorflow", backend, "set KERAS_BACKEND")
    if attn_logits_soft_cap is not None:
        hint = "attn.attention(..., score=lambda s, b, h, i, j: c * attn.tanh(s / c))"
        refuse("attn_logits_soft_cap", "None", attn_logits_soft_cap, hint)
    q, k, v = (keras.ops.convert_to_tensor(x) for x in (query, key, value))
    dtype = keras.backend.result_type(q.dtype, k.dtype, v.dtype)
    if dtype == "float64":
        return _of_keras(query, key, value, bias, mask, scale, is_causal, False)
    q, k, v = (keras.ops.cast(x, dtype) for x in (q, k, v))
    whole = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
    if bias is not None:
        bias = _to_table(keras.ops.convert_to_tensor(bias), "bias", whole)
    if mask is not None:
        mask = _to_table(keras.ops.convert_to_tensor(mask, dtype="bool"), "mask", whole)
    return _ATTEND[backend](q, k, v, bias, mask, scale, is_causal)


def _to_table(x: Any, name: str, whole: Any) -> Any:
    return keras.ops.reshape(x, fit_table(name, x.shape, whole))


def _attend_torch(q: Any, k: Any, v: Any, bias: Any, mask: Any, scale: Any, is_causal: bool) -> Any:
    score = None if bias is None else add_table(bias)
    keep = None if mask is None else read_table(mask)
    causal = "top_left" if is_causal else False
    how: Any = dict(scale=scale, causal=causal, score=score, mask=keep, layout="bshd")
    return attn.attention(q, k, v, **how)


def _attend_jax(q: Any, k: Any, v: Any, bias: Any, mask: Any, scale: Any, is_causal: bool) -> Any:
    attention = importlib.import_module("attn.jax").attention
    return attention(q, k, v, bias, mask, scale=scale, is_causal=is_causal)


def _attend_tensorflow(
    q: Any, k: Any, v: Any, bias: Any, mask: Any, scale: Any, is_causal: bool
) -> Any:
    attention = importlib.import_module("attn.integrations.tensorflow").attention
    causal = "top_left" if is_causal else False
    how = dict(scale=scale, causal=causal, layout="bshd", bias=bias, keep=mask)
    return attention(q, k, v, **how)


_ATTEND = {"torch": _attend_torch, "jax": _attend_jax, "tensorflow": _attend_tensorflow}


class Patch:
    """The effect of `patch`: `undo`, or the end of a with statement, takes it back."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.before = _nn.dot_product_attention
        _nn.dot_product_attention = function

    def undo(self) -> None:
        _nn.dot_product_attention = self.before

    def __enter__(self) -> "Patch":
        return self

    def __exit__(self, *exception: object) -> None:
        self.undo()


def patch() -> Patch:
    """Makes keras.ops.dot_product_attention call attn, and so do the layers of Keras. Models that
    Keras has compiled into functions keep what they had: compile them after this."""
    return Patch(dot_product_attention)
