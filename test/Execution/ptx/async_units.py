"""What runs beside the threads of a block: barriers that count, copies of boxes, and products of tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Sequence

import numpy as np

from .scalars import from_bf16

# Where dynamic shared memory begins: swizzles are patterns of addresses.
SHARED = 1024


class Barrier:
    """An mbarrier: a phase ends when so many have arrived and all bytes that were announced are there."""

    def __init__(self, count: int) -> None:
        self.count = self.pending = count
        self.bytes = 0
        self.phase = 0

    def arrive(self, announced: int = 0) -> None:
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

    def has_ended(self, parity: int) -> bool:
        return self.phase != parity


@dataclass
class TensorMap:
    """A tensor as boxes of it are copied: `dims` names its dimension for each of the box, innermost first."""

    tensor: np.ndarray
    box: Sequence[int]
    dims: Sequence[int]

    def read(self, coordinates: Sequence[int]) -> np.ndarray:
        """(rows, columns); what lies outside is zero."""
        if any(size != 1 for size in self.box[2:]):
            raise NotImplementedError(f"a box of {self.box}")
        columns, rows = self.box[:2]
        index: List[object] = [0] * self.tensor.ndim
        for dim, at in zip(self.dims[2:], coordinates[2:]):
            index[dim] = at
        index[self.dims[0]] = index[self.dims[1]] = slice(None)
        plane = self.tensor[tuple(index)]
        box = np.zeros((rows, columns), np.uint16)
        (first_row, first_column), shape = (coordinates[1], coordinates[0]), plane.shape
        inside = plane[max(first_row, 0) : first_row + rows, max(first_column, 0) : first_column + columns]
        if shape[0] > first_row and shape[1] > first_column and inside.size:
            top, left = max(-first_row, 0), max(-first_column, 0)
            box[top : top + inside.shape[0], left : left + inside.shape[1]] = inside
        return box


def swizzle(addresses: np.ndarray) -> np.ndarray:
    """The pattern of 128 bytes: which eighth of a row changes with the row."""
    return addresses ^ (((addresses >> 7) & 7) << 4)


def write_box(shared: np.ndarray, to: int, box: np.ndarray) -> None:
    rows, columns = box.shape
    if columns != 64:
        raise NotImplementedError(f"rows of {columns} elements: they swizzle by another pattern")
    addresses = to + np.arange(rows)[:, None] * 128 + np.arange(columns)[None, :] * 2
    shared.view(np.uint16)[swizzle(addresses) // 2] = box


def read_operand(shared: np.ndarray, descriptor: int, count: int, rows_are_k: bool) -> np.ndarray:
    """Of `count` rows or columns and 16 of the sum: (count, 16), whatever lies together in memory."""
    start, leading, stride = (((descriptor >> bit) & 0x3FFF) << 4 for bit in (0, 16, 32))
    if descriptor >> 62 != 1:
        raise NotImplementedError("a descriptor of another swizzle")
    outer, k = np.arange(count)[:, None], np.arange(16)[None, :]
    if rows_are_k:
        addresses = start + (outer // 64) * leading + (k // 8) * stride + (k % 8) * 128 + (outer % 64) * 2
    else:
        addresses = start + (outer // 8) * stride + (outer % 8) * 128 + k * 2
    return from_bf16(shared.view(np.uint16)[swizzle(addresses) // 2])


def gather_rows(registers: Sequence[np.ndarray]) -> np.ndarray:
    """16 rows of an operand in the registers of a warp, (16, 16): pairs of a quad lie side by side."""
    tile = np.zeros((16, 16), np.float32)
    lanes = np.arange(32)
    for number, register in enumerate(registers):
        row, column = lanes // 4 + 8 * (number % 2), lanes % 4 * 2 + 8 * (number // 2)
        tile[row, column] = from_bf16(register & np.uint32(0xFFFF))
        tile[row, column + 1] = from_bf16(register >> np.uint32(16))
    return tile


def locate(register: int) -> "tuple[np.ndarray, np.ndarray]":
    """(row, column) of an accumulator's register in each lane of a warp, of its 16 rows."""
    lanes = np.arange(32)
    return lanes // 4 + 8 * (register % 4 // 2), lanes % 4 * 2 + 8 * (register // 4) + register % 2
