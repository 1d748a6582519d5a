"""Which options a call of `attention` on a GPU takes where it is given none."""

from __future__ import annotations

import functools
from typing import Any, Mapping, Optional

# One object each, since plans are found by options too. Calls with more rows have other kernels.
_PACKS = {slots: {"pack": slots, "way": "long"} for slots in (2, 4, 8, 16, 32, 64)}
_FEW = {"way": "few"}
_NARROW = {"way": "narrow"}

# Of a call with few rows: they fill one tile at most, and their keys are more than short sequences
# have.
_MOST_ROWS, _SHORT_KEYS = 128, 2048
# Of a head with keys of its own, decoding has as many at least; fewer are soon read.
_DECODED_KEYS = 1024
# Of a call with few keys: they fill one tile of 80, or two, but not one of 128, and rows are more
# than two tiles of 128, of which one of 192 would leave a third empty.
_NARROW_KEYS, _WIDE_KEYS, _LEAST_ROWS = 80, 128, 257
# That a kernel of a GPU has.
_MOST_COLUMNS = 256


def choose_options(
    q: Any, k: Any, v: Any, is_rows_first: bool, is_plain: bool
) -> Optional[Mapping[str, object]]:
    """Options of a kernel for few rows or for few keys, one more to compile, where it is measured to
    be faster, or by the simulator's model: packed heads of other columns than 64 and 128, and of
    heads with keys of their own. `is_plain`: without a mask.
    """
    shape = q.shape
    if len(shape) != 4:
        return None
    heads, rows = (2, 1) if is_rows_first else (1, 2)
    num_rows = shape[rows]
    # Most calls end here.
    if num_rows > _MOST_ROWS and not (is_plain and num_rows >= _LEAST_ROWS):
        return None
    key_shape, value_shape = getattr(k, "shape", ()), getattr(v, "shape", ())
    if not num_rows or len(key_shape) != 4 or len(value_shape) != 4:
        return None
    columns, num_keys = max(shape[3], value_shape[3]), key_shape[rows]
    if num_rows > _MOST_ROWS:
        is_narrow = _is_narrow(num_keys, columns)
        return _NARROW if is_narrow and _reads_fast(q.get_device()) else None
    slots = _count_slots(shape[heads], key_shape[heads], num_rows, num_keys)
    if slots and columns <= _MOST_COLUMNS:
        return _PACKS[slots]
    return _FEW if is_plain and num_keys > _SHORT_KEYS and columns <= 128 else None


@functools.lru_cache(maxsize=None)
def _reads_fast(device: int) -> bool:
    """Whether a GPU reads more than 4 TB/s, as an H200 does. An H100 waits for memory where keys are
    few, and narrow tiles are 0.92 times as fast there."""
    import torch

    properties: Any = torch.cuda.get_device_properties(device)
    # kHz, of which both edges count, and bits.
    clock = getattr(properties, "memory_clock_rate", 0)
    rate = 2 * 1000 * clock * getattr(properties, "memory_bus_width", 0) / 8
    return rate >= 4e12 if rate else properties.total_memory >= 100 << 30


def _is_narrow(num_keys: int, num_columns: int) -> bool:
    """Whether tiles of 80 keys hold them in fewer columns than tiles of 128."""
    fits = 0 < num_keys <= _NARROW_KEYS or _WIDE_KEYS < num_keys <= 2 * _NARROW_KEYS
    return fits and num_columns <= _MOST_COLUMNS


def _count_slots(num_heads: int, num_key_heads: int, num_rows: int, num_keys: int) -> int:
    """Slots for the query heads of each key head where all rows of them fit a tile of 64: decoding.
    0 where they do not. A head with keys of its own leaves a slot empty, for blocks that read keys
    in parts."""
    if num_rows > 32 or not 0 < num_key_heads <= num_heads:
        return 0
    if num_heads == num_key_heads and num_keys < _DECODED_KEYS:
        return 0
    slots = max(2, 1 << (num_heads // num_key_heads - 1).bit_length())
    return slots if num_rows * slots <= 64 else 0
