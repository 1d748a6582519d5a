"""What runs beside the threads of a block: barriers that count, copies of boxes, and products of tiles."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Optional, Sequence

import numpy as np

from .scalars import from_bf16

# Where dynamic shared memory begins: swizzles are patterns of addresses.
SHARED = 1024


class Barrier:
    """An mbarrier: a phase ends when so many have arrived and all bytes that were announced are there."""

    def __init__(self, count: int, number: int) -> None:
        self.count = self.pending = count
        self.bytes = 0
        self.phase = 0
        # Of the block's barriers, and how many of its phases have ended.
        self.number, self.ended = number, 0
        # What comes before arrivals in tensor memory (order.py), and before the end of the last phase.
        self.gathered: Optional[np.ndarray] = None
        self.told: Optional[np.ndarray] = None

    def arrive(self, announced: int = 0, told: Optional[np.ndarray] = None) -> None:
        if told is not None:
            self.gathered = told if self.gathered is None else np.maximum(self.gathered, told)
        self.bytes += announced
        self.pending -= 1
        if self.pending < 0:
            raise RuntimeError("expected as many arrivals as the barrier counts, got more")
        self._end()

    def complete(self, bytes_: int) -> None:
        self.bytes -= bytes_
        self._end()

    def _end(self) -> None:
        if self.pending == 0 and self.bytes == 0:
            self.phase ^= 1
            self.pending = self.count
            self.ended += 1
            self.told = self.gathered

    def has_ended(self, parity: int) -> bool:
        return self.phase != parity


@dataclass
class TensorMap:
    """A tensor as boxes of it are copied: `dims` names its dimension for each of the box, innermost first."""

    tensor: np.ndarray
    box: Sequence[int]
    dims: Sequence[int]
    # Of so many bytes, or 0 for none.
    swizzle: int

    def read(self, coordinates: Sequence[int]) -> np.ndarray:
        """(rows, columns), rows of outer dimensions one behind the other; what lies outside is zero."""
        view = self.tensor.transpose(self.dims[::-1])
        places = [at + np.arange(size) for at, size in zip(coordinates[::-1], self.box[::-1])]
        inside = [(place >= 0) & (place < extent) for place, extent in zip(places, view.shape)]
        box = view[np.ix_(*(np.where(there, place, 0) for place, there in zip(places, inside)))]
        everywhere = functools.reduce(np.logical_and.outer, inside)
        return np.where(everywhere, box, box.dtype.type(0)).reshape(-1, self.box[0])


def swizzle(addresses: np.ndarray, pattern: int) -> np.ndarray:
    """Of rows of 128, 64 or 32 bytes: which 16 bytes of a row change with the line of 128 bytes."""
    return addresses ^ (((addresses >> 7) & (pattern // 16 - 1)) << 4)


def write_box(shared: np.ndarray, to: int, box: np.ndarray, pattern: int) -> None:
    rows, columns = box.shape
    row_bytes = columns * box.itemsize
    if pattern not in (0, row_bytes):
        raise NotImplementedError(f"rows of {columns} elements: they swizzle by another pattern")
    addresses = to + np.arange(rows)[:, None] * row_bytes + np.arange(columns)[None, :] * box.itemsize
    shared.view(box.dtype)[(swizzle(addresses, pattern) if pattern else addresses) // box.itemsize] = box


def read_operand(shared: np.ndarray, descriptor: int, count: int, rows_are_k: bool) -> np.ndarray:
    """Of `count` rows or columns and 16 of the sum: (count, 16), whatever lies together in memory."""
    start, leading, stride = (((descriptor >> bit) & 0x3FFF) << 4 for bit in (0, 16, 32))
    if not descriptor >> 62:
        raise NotImplementedError("a descriptor without a swizzle")
    # Bytes of a row, and of the pattern.
    row = 256 >> (descriptor >> 62)
    outer, k = np.arange(count)[:, None], np.arange(16)[None, :]
    if rows_are_k:
        addresses = start + (outer // (row // 2)) * leading + (k // 8) * stride + (k % 8) * row + (outer % (row // 2)) * 2
    else:
        addresses = start + (outer // 8) * stride + (outer % 8) * row + k * 2
    return from_bf16(shared.view(np.uint16)[swizzle(addresses, row) // 2])


def gather_rows(registers: Sequence[np.ndarray]) -> np.ndarray:
    """16 rows of an operand in the registers of a warp, (16, 16): pairs of a quad lie side by side."""
    tile = np.zeros((16, 16), np.float32)
    lanes = np.arange(32)
    for number, register in enumerate(registers):
        row, column = lanes // 4 + 8 * (number % 2), lanes % 4 * 2 + 8 * (number // 2)
        tile[row, column] = from_bf16(register & np.uint32(0xFFFF))
        tile[row, column + 1] = from_bf16(register >> np.uint32(16))
    return tile


def gather_columns(registers: Sequence[np.ndarray]) -> np.ndarray:
    """8 columns of the other operand, (16, 8): a quad has pairs of a column."""
    tile = np.zeros((16, 8), np.float32)
    lanes = np.arange(32)
    for number, register in enumerate(registers):
        row = lanes % 4 * 2 + 8 * number
        tile[row, lanes // 4] = from_bf16(register & np.uint32(0xFFFF))
        tile[row + 1, lanes // 4] = from_bf16(register >> np.uint32(16))
    return tile


def locate(register: int) -> "tuple[np.ndarray, np.ndarray]":
    """(row, column) of an accumulator's register in each lane of a warp, of its 16 rows."""
    lanes = np.arange(32)
    return lanes // 4 + 8 * (register % 4 // 2), lanes % 4 * 2 + 8 * (register // 4) + register % 2
