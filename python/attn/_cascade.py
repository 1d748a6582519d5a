"""A cascade: rows of all sequences attend to the pages that all share, then to their own. The functions of a
call are those of whole sequences; here they are made those of each part."""

from __future__ import annotations

import sys
from typing import Any, Callable, NamedTuple, Optional, Tuple

from . import _arrays


class SharedRows(NamedTuple):
    """Rows of all sequences as those of one: numbers of each, int32 (B * Sq,)."""

    sequence: Any
    # Its number in its sequence's rows.
    row: Any
    # The key at which it stands.
    position: Any


def find_rows(seqused_k: Any, rows: int) -> SharedRows:
    batch = int(seqused_k.shape[0])
    if _arrays.is_numpy(seqused_k):
        numpy = sys.modules["numpy"]
        each = numpy.arange(batch * rows, dtype="int32")
        sequence, row = each // numpy.int32(rows), each % numpy.int32(rows)
        begin = seqused_k.astype("int32") - numpy.int32(rows)
        return SharedRows(sequence, row, begin[sequence] + row)
    torch = sys.modules["torch"]
    each = torch.arange(batch * rows, dtype=torch.int32, device=seqused_k.device)
    sequence, row = each // rows, each % rows
    begin = seqused_k.to(torch.int32) - rows
    return SharedRows(sequence, row, begin[:, None].expand(-1, rows).reshape(-1) + row)


def fill(like: Any, count: int) -> Any:
    """int32 (1,), where `like` is: kernels read it, and none is compiled for another count."""
    if _arrays.is_numpy(like):
        return sys.modules["numpy"].full(1, count, "int32")
    torch = sys.modules["torch"]
    return torch.full((1,), count, dtype=torch.int32, device=like.device)


def make_shared_functions(
    seqused_k: Any,
    rows: int,
    window: Optional[Tuple[int, int]],
    alibi_slopes: Any,
    score: Optional[Callable],
    mask: Optional[Callable],
) -> Tuple[Optional[Callable], Optional[Callable]]:
    """Score and mask of the shared keys, for all rows as if they were of one sequence."""
    has_left = window is not None and window[0] >= 0
    if not has_left and alibi_slopes is None and score is None and mask is None:
        return None, None
    at = find_rows(seqused_k, rows)
    return make_shared_score(at, alibi_slopes, score), make_shared_mask(at, window, mask)


def make_shared_mask(
    at: SharedRows, window: Optional[Tuple[int, int]], mask: Optional[Callable]
) -> Optional[Callable]:
    """Of the shared keys, which all come before every row: only a left side drops one."""
    sequence, row, position = at
    left = -1 if window is None else window[0]
    if left < 0 and mask is None:
        return None

    def keep(b: Any, h: Any, q: Any, kv: Any) -> Any:
        if left < 0:
            return mask(sequence[q], h, row[q], kv)  # type: ignore[misc]
        kept = kv >= position[q] - left
        return kept if mask is None else kept & mask(sequence[q], h, row[q], kv)

    return keep


def make_shared_score(
    at: SharedRows, alibi_slopes: Any, score: Optional[Callable]
) -> Optional[Callable]:
    sequence, row, position = at
    if alibi_slopes is None and score is None:
        return None
    is_of_batches = alibi_slopes is not None and len(alibi_slopes.shape) == 2

    def change(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        if alibi_slopes is not None:
            slope = alibi_slopes[sequence[q], h] if is_of_batches else alibi_slopes[h]
            s = s - slope * abs(position[q] - kv)
        return s if score is None else score(s, sequence[q], h, row[q], kv)

    return change


def make_own_mask(begin: Any, mask: Optional[Callable]) -> Optional[Callable]:
    """Of keys from begin[0] on, which count from 0 there."""
    return None if mask is None else lambda b, h, q, kv: mask(b, h, q, kv + begin[0])


def make_own_score(begin: Any, score: Optional[Callable]) -> Optional[Callable]:
    return None if score is None else lambda s, b, h, q, kv: score(s, b, h, q, kv + begin[0])


def split_lse(lse: Any, batch: int) -> Any:
    """(B, H, Sq) of the (1, H, B * Sq) of shared keys."""
    heads, count = int(lse.shape[1]), int(lse.shape[2])
    return _arrays.swap(lse.reshape(1, heads, batch, count // batch if batch else 0))[0]
