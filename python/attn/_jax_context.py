"""The whole of a sequence that is sharded over an axis of a mesh, as one shard attends to it."""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import jax
import jax.numpy as jnp

from ._indexing import find_indexing, index_as
from ._library import refuse


def gather_whole(
    tensors: Tuple[Any, Any, Any],
    axis_name: str,
    positions: Any,
) -> Tuple[Any, Any, Any]:
    """Of q, k and v of a shard: the keys and values of all, in the order of positions, and where the rows of this
    shard stand among them."""
    query, key, value = tensors
    if query.ndim != 4 or key.ndim != 4 or query.shape[1] != key.shape[1]:
        shapes = f"shapes {query.shape} and {key.shape}"
        refuse("query and key", "(B, T, N, H) and (B, T, K, H) of as many positions", shapes)
    count = query.shape[1]
    if positions is None:
        first = jax.lax.axis_index(axis_name).astype(jnp.int32) * count
        positions = first + jnp.arange(count, dtype=jnp.int32)
    positions = jnp.asarray(positions, jnp.int32)
    if positions.shape != (count,):
        refuse("positions", f"a shape of ({count},)", positions.shape)

    def gather(x: Any, axis: int) -> Any:
        return jax.lax.all_gather(x, axis_name, axis=axis, tiled=True)

    order = jnp.argsort(gather(positions, 0))
    key, value = (jnp.take(gather(x, 1), order, axis=1) for x in (key, value))
    return key, value, positions


def make_mask(
    mask: Optional[Callable],
    causal: Optional[str],
    window: Optional[Tuple[int, int]],
) -> Optional[Callable]:
    """The mask with `causal` and `window`, as `check_causal` and `check_window` give them, of as many rows as keys.
    None keeps all."""
    left, right = window or (-1, -1)
    if causal is None and window is None:
        return mask

    def keep(b: Any, h: Any, q: Any, kv: Any) -> Any:
        kept = mask(b, h, q, kv) if mask is not None else None

        def join(condition: Any) -> Any:
            return condition if kept is None else kept & condition

        if causal:
            kept = join(kv <= q)
        if left >= 0:
            kept = join(kv >= q - left)
        if right >= 0:
            kept = join(kv <= q + right)
        return kept

    return _keep_indexing(keep, mask)


def _keep_indexing(function: Callable, of: Optional[Callable]) -> Optional[Callable]:
    """What indices outside of captured arrays mean to a function that calls another one."""
    return function if not hasattr(of, "_attn_indexing") else index_as(function, find_indexing(of))
