"""Masks and biases that are given as tensors of all pairs, read as they are."""

from __future__ import annotations

from typing import Any, Callable


def read_table(table: Any) -> Callable:
    """The elements of (B or 1, H or 1, M or 1, N or 1) as a function of b, h, q and kv."""
    b1, h1, q1, kv1 = (extent == 1 for extent in table.shape)

    def read(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return table[0 if b1 else b, 0 if h1 else h, 0 if q1 else q, 0 if kv1 else kv]

    return read
