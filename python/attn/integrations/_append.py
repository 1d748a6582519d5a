"""New keys and values, written into a cache after those that it holds."""

from __future__ import annotations

from typing import Any

import torch

from .._library import refuse
from ._arguments import check_tensor


def check_new(
    k: Any, v: Any, k_cache: Any, v_cache: Any, num_batches: int, lengths: Any, capacity: int
) -> None:
    if (k is None) != (v is None):
        refuse("v" if v is None else "k", "new keys with new values", None)
    for name, x, cache in (("k", k, k_cache), ("v", v, v_cache)):
        check_tensor(name, x, "B, S, H, D")
        expected = (num_batches, k.shape[1], *cache.shape[2:])
        if tuple(x.shape) != expected or x.dtype != cache.dtype or x.device != cache.device:
            refuse(
                name,
                f"{cache.dtype} of shape {expected} on {cache.device}",
                f"{x.dtype} of shape {tuple(x.shape)} on {x.device}",
            )
    free = capacity - (lengths if isinstance(lengths, int) else 0)
    if k.shape[1] > free:
        refuse("k", f"{free} new keys at most, as k_cache has room for", k.shape[1])


def append(cache: torch.Tensor, new: torch.Tensor, lengths: Any, batches: Any) -> None:
    """Writes `new` after the filled part of each batch. What does not fit is dropped: each place of the
    cache is written once, with a new row or with the row that it holds."""
    count, capacity = new.shape[1], cache.shape[1]
    begin = lengths.clamp(0, capacity - count)
    of_batches = torch.arange(new.shape[0], device=new.device) if batches is None else batches
    steps = torch.arange(count, device=new.device)
    places = begin[:, None] + steps
    row = places - lengths[:, None]
    is_new = (row >= 0) & (row < count)
    known = cache[of_batches[:, None], places]
    index = row.clamp(0, count - 1)[..., None, None].expand(-1, -1, *new.shape[2:])
    rows = torch.where(is_new[..., None, None], new.gather(1, index), known)
    cache.index_put_((of_batches[:, None].expand_as(places), places), rows)
