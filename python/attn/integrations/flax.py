"""attn as the attention function of Flax:

    from attn.integrations.flax import dot_product_attention
    flax.nnx.MultiHeadAttention(..., attention_fn=dot_product_attention)
    flax.linen.MultiHeadDotProductAttention(..., attention_fn=dot_product_attention)

Flax itself need not be installed.
"""

from __future__ import annotations

import math
from typing import Any, Optional

import jax.numpy as jnp

import jax

from .._library import refuse
from ..jax import attention

__all__ = ["dot_product_attention"]

_PRECISIONS = (None, jax.lax.Precision.DEFAULT, jax.lax.Precision.HIGH, jax.lax.Precision.HIGHEST)


def dot_product_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    bias: Optional[jax.Array] = None,
    mask: Optional[jax.Array] = None,
    broadcast_dropout: bool = True,
    dropout_rng: Optional[jax.Array] = None,
    dropout_rate: float = 0.0,
    deterministic: bool = False,
    dtype: Any = None,
    precision: Any = None,
    module: Any = None,
    promote_dtype: Any = None,
    is_causal: bool = False,
    **others: Any,
) -> jax.Array:
    """dot_product_attention of flax.nnx and flax.linen: the same arguments, shapes and results.

    Args:
        query, key, value: (..., S, H, D); dimensions in front of S are a batch.
        bias, mask: broadcast to (..., H, M, N), and are read as they are.
        dtype: of the computation; that of the three, promoted, if None.
        precision: any: sums are always in float32.
        is_causal: keeps keys up to the row's own position, from the first row and key.

    Returns:
        (..., M, H, Dv).

    Raises:
        Error: dropout that is not deterministic, a module that wants the weights, and functions
            that replace einsum or the promotion of types.
    """
    if dropout_rate > 0.0 and not deterministic:
        hint = "dropout of the output, nnx.Dropout, needs no weights"
        refuse("dropout_rate", "0, or deterministic=True", dropout_rate, hint)
    if module is not None:
        refuse("module", "None", "a module that stores the weights", "weights are never stored")
    for name, x in others.items():
        # Flax calls with all of its own arguments.
        if x is not None and x is not False:
            refuse(name, "None", repr(x))
    if precision not in _PRECISIONS and not isinstance(precision, str):
        refuse("precision", "a jax.lax.Precision", repr(precision))
    if promote_dtype is not None:
        query, key, value = promote_dtype((query, key, value), dtype=dtype)
    dtype = dtype or jnp.result_type(query, key, value)
    batch = query.shape[:-3]
    if key.shape[:-3] != batch or value.shape[:-3] != batch:
        refuse("key and value", f"batches {batch}, as in query", f"{key.shape} and {value.shape}")
    q, k, v = (
        jnp.reshape(x, (math.prod(batch), *x.shape[-3:])).astype(dtype) for x in (query, key, value)
    )
    whole = (*batch, q.shape[2], q.shape[1], k.shape[1])
    bias, mask = _flatten(bias, "bias", whole), _flatten(mask, "mask", whole)
    # Flax makes masks of floats, of which 0 drops a key.
    mask = None if mask is None else mask.astype(bool)
    output = attention(q, k, v, bias, mask, is_causal=is_causal)
    return jnp.reshape(output, (*batch, *output.shape[1:]))


def _flatten(x: Optional[jax.Array], name: str, whole: Any) -> Optional[jax.Array]:
    """As (B, H, M, N), of which each may be 1."""
    if x is None:
        return None
    if x.ndim > len(whole):
        refuse(name, f"a shape that broadcasts to {whole}", x.shape)
    x = jnp.reshape(x, (1,) * (len(whole) - x.ndim) + x.shape)
    batch = x.shape[:-3]
    if math.prod(batch) != 1 and batch != whole[:-3]:
        x = jnp.broadcast_to(x, (*whole[:-3], *x.shape[-3:]))
    return jnp.reshape(x, (math.prod(x.shape[:-3]), *x.shape[-3:]))
