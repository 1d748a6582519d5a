"""New keys and values, written into a cache after those that each sequence holds."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import torch

from .._cache import Rotary, find_places, find_positions, rotate_rows, write_rows
from .._library import refuse
from ._arguments import check_integers, check_tensor


class New(NamedTuple):
    """Keys and values of all sequences, one after the other: (T, Hkv, D) and (T, Hkv, Dv)."""

    k: Any
    v: Any
    # (B + 1,): which rows are those of a sequence.
    offsets: Any
    # How many each has, or (B,).
    count: Any


class Turn(NamedTuple):
    """How queries and new keys are rotated, and from which position of each sequence on."""

    rotary: Rotary
    begin: Any
    # Whether all rows of a query stand at the first one's position, as without causal and window.
    is_still: bool


def read_new(k: Any, v: Any, caches: Any, num_batches: int, cu_new: Any, free: int) -> New:
    """Raises Error for what does not go into the caches. `free` is how many new keys each batch takes,
    as far as the host knows."""
    if (k is None) != (v is None):
        refuse("v" if v is None else "k", "new keys with new values", None)
    dims = "B, S, H, D" if cu_new is None else "T, H, D"
    for name, x, cache in (("k", k, caches[0]), ("v", v, caches[1])):
        check_tensor(name, x, dims)
        rows = (num_batches, k.shape[1]) if cu_new is None else (k.shape[0],)
        expected = (*rows, *cache.shape[2:])
        if tuple(x.shape) != expected or x.dtype != cache.dtype or x.device != cache.device:
            refuse(
                name,
                f"{cache.dtype} of shape {expected} on {cache.device}",
                f"{x.dtype} of shape {tuple(x.shape)} on {x.device}",
            )
    if cu_new is not None:
        check_integers("cu_seqlens_k_new", cu_new, k, num_batches + 1)
        return New(k, v, cu_new, cu_new[1:] - cu_new[:-1])
    count = k.shape[1]
    if count > free:
        refuse("k", f"{free} new keys at most, as k_cache has room for", count)
    return New(k.flatten(0, 1), v.flatten(0, 1), _count_rows(num_batches, count, k), count)


def _count_rows(num_batches: int, count: int, like: Any) -> torch.Tensor:
    return torch.arange(num_batches + 1, dtype=torch.int32, device=like.device) * count


def append(caches: Any, new: New, lengths: Any, table: Any, turn: Optional[Turn]) -> None:
    """Writes after the `lengths` keys of each sequence. The caches are (Np, P, Hkv, D); without a table,
    sequence b has page b. What has no place is dropped."""
    total = new.k.shape[0]
    if not total or not lengths.shape[0]:
        return
    slots, _ = find_places(lengths, new.offsets, total, caches[0].shape[1], table)
    k = new.k
    if turn is not None:
        k = rotate_rows(k, find_positions(turn.begin, new.offsets, total)[1], turn.rotary)
    write_rows(caches, (k, new.v), slots)


def turn_rows(q: Any, offsets: Any, turn: Turn) -> Any:
    """q (B, M, H, D), or (T, H, D) with offsets, rotated."""
    if not q.numel() or not turn.begin.shape[0]:
        return q
    rows = q.flatten(0, 1) if offsets is None else q
    if offsets is None:
        offsets = _count_rows(q.shape[0], q.shape[1], q)
    sequence, position, _ = find_positions(turn.begin, offsets, rows.shape[0])
    if turn.is_still:
        position = turn.begin[sequence]
    return rotate_rows(rows, position, turn.rotary).view(q.shape)
