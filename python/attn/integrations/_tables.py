"""Masks and biases that are given as tensors of all pairs, read as they are."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence, Tuple

from .. import _dynamo
from .._library import refuse


def fit_table(name: str, shape: Sequence[Any], whole: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """The shape in 4 dimensions. Raises Error where it does not broadcast to `whole`, (B, H, M, N). An extent that
    nobody knows yet is None."""
    found = (1,) * (4 - len(shape)) + tuple(shape)
    if len(found) != 4 or any(x not in (1, None) and y not in (x, None) for x, y in zip(found, whole)):
        refuse(name, f"a shape that broadcasts to {whole}", tuple(shape))
    return found


def read_table(table: Any) -> Callable:
    """The elements of (B or 1, H or 1, M or 1, N or 1) as a function of b, h, q and kv."""
    b1, h1, q1, kv1 = (extent == 1 for extent in table.shape)

    def read(b: Any, h: Any, q: Any, kv: Any) -> Any:
        # Dynamo of PyTorch 2.9 takes indices that are all symbols, or none; of kv nobody asks whether
        # it is read.
        zero = kv * 0 if _dynamo.is_compiling() else 0
        return table[zero if b1 else b, zero if h1 else h, zero if q1 else q, zero if kv1 else kv]

    return read


def add_table(table: Any, score: Optional[Callable] = None) -> Callable:
    """A score to which the elements of a table are added, after the score that is given."""
    read = read_table(table)
    if score is None:
        return lambda s, b, h, q, kv: s + read(b, h, q, kv)
    return lambda s, b, h, q, kv: score(s, b, h, q, kv) + read(b, h, q, kv)
