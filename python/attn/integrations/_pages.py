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


# Rows of sequences that a call of their own attends, in batches of longer ones: those of steps, with a few guesses.
FEW_ROWS = 4


class Steps(NamedTuple):
    """Sequences with few rows among longer ones."""

    # (B,): of the last FEW_ROWS rows the first that exists where a sequence has few; FEW_ROWS elsewhere.
    start: Any
    # (B,): of the last `most` rows the first that exists where a sequence has more; `most` elsewhere.
    start_of_others: Any
    # (T,): whether a row's sequence has few.
    are_of_few: Any


class Padding(NamedTuple):
    """How rows of sequences of any lengths are found among as many rows for each sequence, and back. All layers
    of a step share it."""

    # (B, most): the row that each of these is.
    rows: Any
    # (T,): the sequence of each row, its place there, and whether it has one.
    sequence: Any
    place: Any
    exists: Any
    # (B,): the first row of each sequence that exists. A GPU computes no tile of rows before it.
    start: Any = None
    # None where no sequence has more than FEW_ROWS.
    steps: Optional[Steps] = None


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
    count = count.clamp(0, most)
    start, found = (most - count).int(), None
    if most > FEW_ROWS:
        is_few = count <= FEW_ROWS
        few = torch.where(is_few, FEW_ROWS - count, FEW_ROWS).int()
        found = Steps(few, torch.where(is_few, most, start).int(), is_few[sequence])
    return Padding(rows, sequence, place.clamp(0, most - 1), exists, start, found)


def _keep_rows(start: Any, functions: Functions) -> Functions:
    """Without the rows before the first of each sequence."""
    mask = functions.mask
    if mask is None:
        return Functions(functions.score, lambda b, h, q, kv: q >= start[b])
    return Functions(functions.score, lambda b, h, q, kv: (q >= start[b]) & mask(b, h, q, kv))


def attend_pages_ragged(
    q: Any, padding: Padding, pages: Pages, window: Window, how: How, functions: Functions = Functions()
) -> Tuple[Any, Any]:
    """q (T, H, D), rows of sequences: (T, H, Dv) and (H, T). Rows in no sequence, and those before the last
    `most`, give 0 and -inf. To functions, the last row of each sequence is number most - 1."""
    total, (rows, sequence, place, exists, start, steps) = q.shape[0], padding
    if not total or not rows.numel():
        padded = q.new_zeros((*rows.shape, *q.shape[1:]))
        output, lse = attend_pages(padded, pages, window, how, functions)
        empty = q.new_zeros((total, q.shape[1], output.shape[-1]))
        return empty, lse.new_full((q.shape[1], total), -torch.inf)
    # Functions count rows from the first of `most`, which rows of steps alone do not have.
    if steps is None or functions != Functions():
        output, lse = attend_pages(q[rows], pages, window, how, _keep_rows(start, functions))
        output, lse = output[sequence, place], lse[sequence, :, place]
    else:
        output, lse = _attend_apart(q, padding, steps, pages, window, how)
    output = torch.where(exists[:, None, None], output, 0.0)
    lse = torch.where(exists, lse.T, -torch.inf)
    return output, lse


def _attend_apart(
    q: Any, padding: Padding, steps: Steps, pages: Pages, window: Window, how: How
) -> Tuple[Any, Any]:
    """(T, H, Dv) and (T, H): sequences of few rows by a call that reads keys once for all heads that share
    them, and the others by one whose tiles are full of rows. Each passes over what is the other's."""
    rows, sequence, place = padding[:3]
    functions = [_keep_rows(x, Functions()) for x in (steps.start, steps.start_of_others)]
    few, few_lse = attend_pages(q[rows[:, -FEW_ROWS:]], pages, window, how, functions[0])
    many, many_lse = attend_pages(q[rows], pages, window, how, functions[1])
    at = (place - (rows.shape[1] - FEW_ROWS)).clamp(min=0)
    is_few = steps.are_of_few[:, None]
    output = torch.where(is_few[..., None], few[sequence, at], many[sequence, place])
    return output, torch.where(is_few, few_lse[sequence, :, at], many_lse[sequence, :, place])


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
