"""Which calls of `attention` pack the query heads of a key head into one tile."""

from __future__ import annotations

from typing import Any, Mapping, Optional

# One object each, since plans are found by options too. Calls with more rows have other kernels.
_PACKS = {slots: {"pack": slots, "way": "long"} for slots in (2, 4, 8, 16, 32, 64)}


def choose_pack(q: Any, k: Any, v: Any, is_rows_first: bool) -> Optional[Mapping[str, object]]:
    """Slots for the query heads of each key head where all rows of them fit a tile of 64: decoding.

    Measured for these head dimensions; a kernel for few rows is one more to compile.
    """
    shape = q.shape
    if len(shape) != 4 or shape[3] not in (64, 128):
        return None
    heads, rows = (2, 1) if is_rows_first else (1, 2)
    num_rows = shape[rows]
    if not 0 < num_rows <= 32:
        return None
    key_shape = k.shape
    if len(key_shape) != 4 or not 0 < key_shape[heads] < shape[heads]:
        return None
    num_key_heads = key_shape[heads]
    slots = 1 << (shape[heads] // num_key_heads - 1).bit_length()
    fits = num_rows * slots <= 64 and tuple(v.shape[3:]) == (shape[3],)
    return _PACKS.get(slots) if fits else None
