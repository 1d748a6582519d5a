"""Keys and values in pages, for callers of flash_attn and of PyTorch's varlen_attn. attn.serving attends; here
are the checks by their names, and rows of sequences that lie one after the other."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional, Tuple

import torch

from .. import serving
from .._cache import find_positions
from .._library import refuse
from .._serving_how import check_out
from ._arguments import Window
from ._bounds import Sequences
from ._rows import make_results
from ._rows_schema import How


class Pages(NamedTuple):
    # (Np, P, Hkv, D) and (Np, P, Hkv, Dv).
    k: Any
    v: Any
    # (B, C): page j of each sequence.
    table: Any
    # (B,), the keys of each sequence.
    length: Any
    # (B,), the first key of each sequence that counts; None: all do.
    begin: Any = None


def check_table(name: str, table: Any, like: Any, count: int) -> None:
    """int32 of a row for each sequence, where `like` is."""
    is_tensor = isinstance(table, torch.Tensor)
    if not is_tensor or table.dtype != torch.int32 or table.dim() != 2 or table.shape[0] != count:
        got = f"{table.dtype} of shape {tuple(table.shape)}" if is_tensor else type(table).__name__
        refuse(name, f"int32 of shape ({count}, C)", got)
    if table.device != like.device:
        refuse(name, f"a tensor on {like.device}, as q is", str(table.device))


def check_most(most: Any) -> int:
    if not isinstance(most, int) or most < 0:
        refuse(
            "max_seqlen_q",
            "with pages, the most rows of a sequence",
            repr(most),
            "the number of rows of q is always enough",
        )
    return most


def find_pages_reason(q: Any, k: Any, v: Any, cu_q: Any, used: Any, table: Any) -> str:
    """Why a call of PyTorch's functions is PyTorch's, whose types fit; empty for one that attn serves."""
    is_pool = k.dim() == v.dim() == 4
    if q.dim() != 3 or not is_pool or 0 in (*q.shape[1:], *k.shape[2:], v.shape[3]):
        return "pages of other dimensions"
    if k.shape[:3] != v.shape[:3] or q.shape[2] != k.shape[3] or q.shape[1] % k.shape[2]:
        return "shapes that do not fit"
    count = cu_q.shape[0] - 1
    for x, rank in ((cu_q, 1), (used, 1), (table, 2)):
        is_integers = isinstance(x, torch.Tensor) and x.dtype == torch.int32 and x.dim() == rank
        if not is_integers or x.device != q.device or (x is not cu_q and x.shape[0] != count):
            return "a block_table or lengths that are not int32 of a row for each sequence"
    return ""


class Functions(NamedTuple):
    """A score, and a mask besides lengths and windows, or None; as those of attn.serving.paged_attention."""

    score: Optional[Callable] = None
    mask: Optional[Callable] = None


def _make_mask(begin: Any, mask: Optional[Callable]) -> Optional[Callable]:
    if begin is None:
        return mask
    if mask is None:
        return lambda b, h, q, kv: kv >= begin[b]
    return lambda b, h, q, kv: (kv >= begin[b]) & mask(b, h, q, kv)


def attend_pages(
    q: Any, pages: Pages, window: Window, how: How, functions: Functions = Functions(), out: Any = None
) -> Tuple[Any, Any]:
    """q (B, M, H, D), the last rows of each sequence: (B, M, H, Dv) and (B, H, M). `out` is where the output
    goes, as that of attn.serving.paged_attention."""
    if 0 in q.shape[:2] or 0 in pages.table.shape or 0 in pages.k.shape[:2]:
        output, lse = make_results(q, pages.v)
        if out is not None:
            check_out(out, q, pages.v)
            output = out
        lse.fill_(-torch.inf)
        return output.zero_(), lse if how.sink is None else lse.copy_(how.sink[:, None])
    left, right = window
    is_causal = right == 0
    return serving.paged_attention(
        q,
        pages.k,
        pages.v,
        page_table=pages.table,
        seqused_k=pages.length,
        scale=how.scale,
        causal=is_causal,
        window=None if left is None and (is_causal or right is None) else window,
        softcap=how.softcap or None,
        alibi_slopes=how.slopes,
        sink=None if how.sink is None else how.sink.float(),
        score=functions.score,
        mask=_make_mask(pages.begin, functions.mask),
        out=out,
        return_lse=True,
        fixed_split=how.fixed_split,
    )


class Padding(NamedTuple):
    """How rows of sequences of any lengths are found among as many rows for each sequence, and back. All layers
    of a step share it."""

    # (B, most): the row that each of these is.
    rows: Any
    # (T,): the sequence of each row, its place there, and whether it has one.
    sequence: Any
    place: Any
    exists: Any


def make_padding(total: int, cu_q: Any, used_q: Any, most: int) -> Padding:
    """Of `total` rows, of which sequence s has those from cu_q[s] on; at most `most` of them."""
    begin = cu_q[:-1].long()
    count = cu_q[1:].long() - begin if used_q is None else used_q
    # Rows end with the last one of a sequence; those before its first are rows of others, and of no use.
    steps = torch.arange(most, device=cu_q.device) - most
    rows = ((begin + count)[:, None] + steps).clamp(0, max(total - 1, 0))
    if not rows.numel():
        return Padding(rows, None, None, None)
    sequence, place, exists = find_positions(most - count, cu_q, total)
    exists = exists & (place >= 0) & (place < most)
    return Padding(rows, sequence, place.clamp(0, most - 1), exists)


def attend_pages_ragged(
    q: Any, padding: Padding, pages: Pages, window: Window, how: How, functions: Functions = Functions()
) -> Tuple[Any, Any]:
    """q (T, H, D), rows of sequences: (T, H, Dv) and (H, T). Rows in no sequence, and those before the last
    `most`, give 0 and -inf. To functions, the last row of each sequence is number most - 1."""
    total, (rows, sequence, place, exists) = q.shape[0], padding
    padded = q[rows] if total else q.new_zeros((*rows.shape, *q.shape[1:]))
    output, lse = attend_pages(padded, pages, window, how, functions)
    if not total or not rows.numel():
        empty = q.new_zeros((total, q.shape[1], output.shape[-1]))
        return empty, lse.new_full((q.shape[1], total), -torch.inf)
    output = torch.where(exists[:, None, None], output[sequence, place], 0.0)
    lse = torch.where(exists, lse[sequence, :, place].T, -torch.inf)
    return output, lse


def attend_table(
    q: Any,
    k: Any,
    v: Any,
    sequences: Sequences,
    table: Any,
    most: int,
    window: Window,
    how: How,
) -> Tuple[Any, Any]:
    """(T, H, Dv) and (H, T) of keys in pages."""
    cu_q, cu_k, used_q, used_k = sequences
    with torch.no_grad():
        length = cu_k[1:] - cu_k[:-1] if used_k is None else used_k
        pages, padding = Pages(k, v, table, length), make_padding(q.shape[0], cu_q, used_q, most)
        return attend_pages_ragged(q, padding, pages, window, how)
