"""Score and mask functions of the whole sequence, as a call sees them whose row i and key j are rows[i] and
keys[j] of it."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional, Tuple

from ._indexing import find_indexing, index_as
from ._scan import Captured
from ._symbols import active


class Functions(NamedTuple):
    score: Optional[Callable]
    mask: Optional[Callable]


class Lengths:
    """While a function is traced, attn.query_length and attn.key_length are the elements of `total`."""

    def __init__(self, total: Any) -> None:
        self.total, self.before = total, None

    def __enter__(self) -> None:
        self.before, active.lengths = getattr(active, "lengths", None), self

    def __exit__(self, *exception: object) -> None:
        active.lengths = self.before

    def read(self, name: str) -> Any:
        return self.total[("query_length", "key_length").index(name)]


def make_mask(
    mask: Optional[Callable],
    causal: Optional[str],
    window: Optional[Tuple[int, int]],
    shift: int,
) -> Optional[Callable]:
    """The mask with `causal` and `window`, as `check_causal` and `check_window` give them. They count from the
    last row and the last key: a row stands at its position + shift. None keeps all."""
    left, right = window or (-1, -1)
    if causal is None and window is None:
        return mask

    def keep(b: Any, h: Any, q: Any, kv: Any) -> Any:
        kept = mask(b, h, q, kv) if mask is not None else None

        def join(condition: Any) -> Any:
            return condition if kept is None else kept & condition

        if causal:
            kept = join(kv <= q if causal == "top_left" else kv <= q + shift)
        if left >= 0:
            kept = join(kv >= q + shift - left)
        if right >= 0:
            kept = join(kv <= q + shift + right)
        return kept

    return _keep_indexing(keep, mask)


def _keep_indexing(function: Callable, of: Optional[Callable]) -> Callable:
    """What indices outside of captured arrays mean to a function that calls another one."""
    return function if not hasattr(of, "_attn_indexing") else index_as(function, find_indexing(of))


def place(
    functions: Functions, rows: Any, keys: Any, total: Any, head: Any = None, batch: Any = None
) -> Functions:
    """`rows` and `keys` are sorted tables of positions, or None where positions are the call's own; `total`
    has M and N of the whole. `head` and `batch` are arrays of the first one, where a call has some of them."""
    q, k = (None if x is None else Captured(x, is_sorted=True, is_natural=True) for x in (rows, keys))
    score, mask = functions
    total = Captured(total)
    first_head, first_batch = (None if x is None else Captured(x) for x in (head, batch))

    def find(b: Any, h: Any, i: Any, j: Any) -> Tuple[Any, Any, Any, Any]:
        """Where a pair stands in the whole."""
        return (
            b if first_batch is None else b + first_batch[0],
            h if first_head is None else h + first_head[0],
            i if q is None else q[i],
            j if k is None else k[j],
        )

    def score_there(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        with Lengths(total):
            return score(s, *find(b, h, i, j))

    def mask_there(b: Any, h: Any, i: Any, j: Any) -> Any:
        with Lengths(total):
            return mask(*find(b, h, i, j))

    return Functions(
        score and _keep_indexing(score_there, score), mask and _keep_indexing(mask_there, mask)
    )
