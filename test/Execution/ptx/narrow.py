"""Floats of 8 bits: e4m3, which has no infinity, and e5m2."""

from __future__ import annotations

from typing import Dict, Sequence

import numpy as np

from .async_units import swizzle


def _make_table(mantissa_bits: int, bias: int) -> np.ndarray:
    """The number of each byte; what has no finite one is NaN."""
    codes = np.arange(128)
    fractions, exponents = codes % 2**mantissa_bits / 2**mantissa_bits, codes >> mantissa_bits
    numbers = np.where(exponents == 0, fractions * 2.0 ** (1 - bias), (1 + fractions) * 2.0 ** (exponents - bias))
    numbers[127 if mantissa_bits == 3 else 124 :] = np.nan
    return np.concatenate([numbers, -numbers]).astype(np.float32)


TABLES: Dict[str, np.ndarray] = {"e4m3": _make_table(3, 7), "e5m2": _make_table(2, 15)}
LARGEST = 448.0


def from_narrow(codes: np.ndarray, kind: str = "e4m3") -> np.ndarray:
    return TABLES[kind][codes]


def to_e4m3(values: np.ndarray) -> np.ndarray:
    """To the nearest, ties to even, and to the largest at most."""
    table = TABLES["e4m3"][:127].astype(np.float64)
    sizes = np.minimum(np.abs(values.astype(np.float64)), LARGEST)
    upper = np.clip(np.searchsorted(table, sizes), 0, 126)
    lower = np.maximum(upper - 1, 0)
    below, above = sizes - table[lower], table[upper] - sizes
    codes = np.where((below < above) | ((below == above) & (lower % 2 == 0)), lower, upper)
    return np.where(np.isnan(values), 127, codes + np.where(np.signbit(values), 128, 0)).astype(np.uint8)


def read_operand(shared: np.ndarray, descriptor: int, count: int, kind: str) -> np.ndarray:
    """Of `count` rows 32 elements of the sum, which lie together: (count, 32)."""
    start, _, stride = (((descriptor >> bit) & 0x3FFF) << 4 for bit in (0, 16, 32))
    if not descriptor >> 62:
        raise NotImplementedError("a descriptor without a swizzle")
    row = 256 >> (descriptor >> 62)
    outer, k = np.arange(count)[:, None], np.arange(32)[None, :]
    return from_narrow(shared[swizzle(start + (outer // 8) * stride + (outer % 8) * row + k, row)], kind)


def gather_rows(registers: Sequence[np.ndarray], kind: str) -> np.ndarray:
    """16 rows of an operand in the registers of a warp, (16, 32): a lane has four neighbours of a row."""
    tile = np.zeros((16, 32), np.float32)
    lanes = np.arange(32)
    for number, register in enumerate(registers):
        row, column = lanes // 4 + 8 * (number % 2), lanes % 4 * 4 + 16 * (number // 2)
        for i in range(4):
            tile[row, column + i] = from_narrow((register >> np.uint32(8 * i)) & np.uint32(255), kind)
    return tile


def permute(low: np.ndarray, high: np.ndarray, selector: int) -> np.ndarray:
    """prmt: four bytes of two words, by the lower three bits of each digit."""
    both = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    result = np.zeros(both.shape, np.uint32)
    for digit in range(4):
        number = (selector >> 4 * digit) & 15
        if number > 7:
            raise NotImplementedError(f"prmt of signs, {selector:#x}")
        byte = (both >> np.uint64(8 * number)) & np.uint64(255)
        result |= (byte << np.uint64(8 * digit)).astype(np.uint32)
    return result
