"""Pages as FlashInfer lists them: the pages of all sequences one after the other, and offsets."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch

from .._cache import find_positions, write_rows
from .._library import refuse
from .._serving_how import check_layout


def split_cache(paged_kv_cache: Any, kv_layout: str) -> Tuple[Any, Any]:
    """The pools (Np, P, Hkv, D) and (Np, P, Hkv, Dv), as views."""
    is_pair = isinstance(paged_kv_cache, (tuple, list)) and len(paged_kv_cache) == 2
    if is_pair:
        pools = tuple(paged_kv_cache)
    else:
        is_one = isinstance(paged_kv_cache, torch.Tensor) and paged_kv_cache.dim() == 5
        if not is_one or paged_kv_cache.shape[1] != 2:
            got = getattr(paged_kv_cache, "shape", type(paged_kv_cache).__name__)
            refuse("paged_kv_cache", "(k_cache, v_cache), or one tensor (Np, 2, ...)", got)
        pools = paged_kv_cache.unbind(1)
    for x in pools:
        if not isinstance(x, torch.Tensor) or x.dim() != 4:
            refuse("paged_kv_cache", "tensors of 4 dimensions", getattr(x, "shape", type(x)))
    k, v = pools if check_layout(kv_layout) else (x.transpose(1, 2) for x in pools)
    return k, v


def check_indices(name: str, x: Any, count: Optional[int] = None) -> None:
    is_numbers = isinstance(x, torch.Tensor) and x.dim() == 1
    if not is_numbers or x.dtype not in (torch.int32, torch.int64):
        refuse(name, "int32 of one dimension", getattr(x, "dtype", type(x).__name__))
    if count is not None and x.shape[0] != count:
        refuse(name, f"{count} numbers", x.shape[0])


def get_seq_lens(
    kv_indptr: torch.Tensor, kv_last_page_len: torch.Tensor, page_size: int
) -> torch.Tensor:
    """(B,), how many keys each sequence has; 0 for one without pages."""
    pages = kv_indptr[1:] - kv_indptr[:-1]
    return torch.where(pages > 0, (pages - 1) * page_size + kv_last_page_len, 0)


def make_table(indptr: Any, indices: Any, columns: int) -> torch.Tensor:
    """(B, columns) int32, with -1 after the pages of each sequence."""
    steps = torch.arange(columns, device=indices.device)
    at = indptr[:-1, None].long() + steps
    exists = at < indptr[1:, None]
    if not indices.numel():
        return torch.full(at.shape, -1, dtype=torch.int32, device=indices.device)
    found = indices[at.clamp(0, indices.shape[0] - 1)]
    return torch.where(exists, found, -1).to(torch.int32)


class Table:
    """The pages and the lengths of the sequences of a plan. In graphs they stay where they are."""

    def __init__(self, is_fixed: bool) -> None:
        self._is_fixed = is_fixed
        self.pages: Any = None
        self.lengths: Any = None

    def update(self, indptr: Any, indices: Any, last: Any, page: int, most: int, device: Any) -> None:
        """`most` is how many pages a sequence of a graph may have. Reads offsets on the host."""
        check_indices("paged_kv_indptr", indptr)
        count = indptr.shape[0] - 1
        check_indices("paged_kv_indices", indices)
        check_indices("paged_kv_last_page_len", last, count)
        # Before it is on a GPU, which would have to be waited for.
        columns = int((indptr[1:] - indptr[:-1]).max()) if count else 0
        indptr, indices, last = (x.to(device) for x in (indptr, indices, last))
        lengths = get_seq_lens(indptr, last, page).to(torch.int32)
        if not self._is_fixed or self.pages is None:
            columns = max(columns, most if self._is_fixed else 1, 1)
            self.pages, self.lengths = make_table(indptr, indices, columns), lengths
            return
        if count != self.pages.shape[0] or columns > self.pages.shape[1]:
            expected = f"{self.pages.shape[0]} sequences of {self.pages.shape[1]} pages at most"
            refuse("paged_kv_indptr", f"{expected}, as the graph has", f"{count} of {columns}")
        self.pages.copy_(make_table(indptr, indices, self.pages.shape[1]))
        self.lengths.copy_(lengths)


def get_batch_indices_positions(
    append_indptr: torch.Tensor,
    seq_lens: torch.Tensor,
    nnz: int,
    batch_indices: Optional[torch.Tensor] = None,
    positions: Optional[torch.Tensor] = None,
) -> Tuple[torch.Tensor, torch.Tensor]:
    """(nnz,) int32 each: the sequence of each new key and its position, where seq_lens count the new keys. A
    key of no sequence has sequence -1 and position 0."""
    check_indices("append_indptr", append_indptr)
    check_indices("seq_lens", seq_lens, append_indptr.shape[0] - 1)
    if seq_lens.shape[0]:
        before = seq_lens - (append_indptr[1:] - append_indptr[:-1])
        sequence, position, exists = find_positions(before, append_indptr, nnz)
    else:
        sequence = position = torch.arange(nnz, device=append_indptr.device)
        exists = sequence < 0
    found = []
    for name, x, other, place in (
        ("batch_indices", sequence, -1, batch_indices),
        ("positions", position, 0, positions),
    ):
        x = torch.where(exists, x, other).to(torch.int32)
        if place is not None:
            check_indices(name, place, nnz)
            place.copy_(x)
        found.append(x if place is None else place)
    return found[0], found[1]


def append_paged_kv_cache(
    append_key: torch.Tensor,
    append_value: torch.Tensor,
    batch_indices: torch.Tensor,
    positions: torch.Tensor,
    paged_kv_cache: Any,
    kv_indices: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_last_page_len: torch.Tensor,
    kv_layout: str = "NHD",
) -> None:
    """Writes key t at position positions[t] of sequence batch_indices[t]. One without a place there is
    skipped. append_key is (T, Hkv, D), append_value (T, Hkv, Dv). Nothing is read on the host."""
    pools = split_cache(paged_kv_cache, kv_layout)
    check_indices("kv_indptr", kv_indptr)
    check_indices("kv_indices", kv_indices)
    check_indices("kv_last_page_len", kv_last_page_len, kv_indptr.shape[0] - 1)
    for name, x in (("batch_indices", batch_indices), ("positions", positions)):
        check_indices(name, x, append_key.shape[0])
    for name, x, pool in zip(("append_key", "append_value"), (append_key, append_value), pools):
        expected = (append_key.shape[0], *pool.shape[2:])
        if tuple(x.shape) != expected or x.dtype != pool.dtype:
            refuse(name, f"{pool.dtype} of shape {expected}", f"{x.dtype} of {tuple(x.shape)}")
    if pools[0].shape[:2] != pools[1].shape[:2]:
        refuse("paged_kv_cache", "as many pages and rows of values as of keys", pools[1].shape)
    page, count = pools[0].shape[1], kv_indptr.shape[0] - 1
    if not count or not kv_indices.numel():
        return
    sequence, position = batch_indices.long(), positions.long()
    exists = (sequence >= 0) & (sequence < count) & (position >= 0)
    sequence = sequence.clamp(0, count - 1)
    at = kv_indptr.long()[sequence] + position // page
    exists = exists & (at >= 0) & (at < kv_indptr[sequence + 1])
    pages = kv_indices.long()[at.clamp(0, kv_indices.shape[0] - 1)]
    slots = torch.where(exists & (pages >= 0), pages * page + position % page, -1)
    with torch.no_grad():
        write_rows(pools, (append_key, append_value), slots)
