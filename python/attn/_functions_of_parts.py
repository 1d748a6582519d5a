"""Score and mask functions of the whole sequence, as a call sees them whose row i and key j are rows[i] and
keys[j] of it."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional, Tuple

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

    return keep


def place(functions: Functions, rows: Any, keys: Any, total: Any, head: Any = None) -> Functions:
    """`rows` and `keys` are sorted tables of positions, or None where positions are the call's own; `total`
    has M and N of the whole. `head` is an array of the first head, where a call has some of the heads."""
    q = None if rows is None else Captured(rows, is_sorted=True)
    k = None if keys is None else Captured(keys, is_sorted=True)
    score, mask = functions
    total, head = Captured(total), None if head is None else Captured(head)

    def score_there(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        with Lengths(total):
            where = h if head is None else h + head[0]
            return score(s, b, where, i if q is None else q[i], j if k is None else k[j])

    def mask_there(b: Any, h: Any, i: Any, j: Any) -> Any:
        with Lengths(total):
            where = h if head is None else h + head[0]
            return mask(b, where, i if q is None else q[i], j if k is None else k[j])

    return Functions(score and score_there, mask and mask_there)
