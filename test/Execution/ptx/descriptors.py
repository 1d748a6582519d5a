"""What tcgen05.mma is told in registers: where an operand lies in shared memory, and what the product is.

Decoded by the tables of the PTX manual ("Shared memory descriptor", "Canonical layouts", "Instruction descriptor"). A
field that the manual fixes and that has another value is an error, and so is a layout whose rows overlap or that a
swizzle would tear apart: hardware computes something then, and nobody can say what.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Dict, Tuple

import numpy as np

from .async_units import swizzle
from .narrow import from_narrow
from .scalars import from_bf16

# Bytes of the sum that an instruction takes of each row, whatever the elements.
SUM_BYTES = 32
# Rows of a swizzle's pattern, and of the 16-byte cells that lie together without one.
GROUP = 8
CELL = 16
# Bytes of a row by mode; 1 is the pattern of 128 bytes whose cells are of 32 bytes.
ROWS: Dict[int, int] = {0: CELL, 2: 128, 4: 64, 6: 32}
SIZES: Dict[str, int] = {"f16": 2, "bf16": 2, "e4m3": 1, "e5m2": 1}
# By kind, what the fields of the instruction descriptor may say of operands and of the sum.
OPERANDS: Dict[str, Dict[int, str]] = {"f16": {0: "f16", 1: "bf16"}, "f8f6f4": {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}}
SUMS: Dict[int, str] = {0: "f16", 1: "f32"}


def take(word: int, first: int, count: int) -> int:
    return (word >> first) & ((1 << count) - 1)


def expect(word: int, first: int, count: int, value: int, what: str) -> None:
    got = take(word, first, count)
    if got != value:
        raise RuntimeError(f"expected {value:#x} in bits {first} to {first + count - 1} ({what}), got {got:#x}")


def decode_elements(codes: np.ndarray, kind: str) -> np.ndarray:
    """Of bytes or words of 16 bits."""
    if kind in ("e4m3", "e5m2"):
        return from_narrow(codes, kind)
    return from_bf16(codes) if kind == "bf16" else codes.view(np.float16).astype(np.float32)


@dataclass(frozen=True)
class Instruction:
    """M rows and N columns, of operands and a sum of these types."""

    m: int
    n: int
    sum: str
    # Of A and B: the type, whether it is negated, and whether rows or columns lie together rather than what is summed.
    kinds: Tuple[str, str]
    negated: Tuple[bool, bool]
    transposed: Tuple[bool, bool]

    @property
    def depth(self) -> int:
        return SUM_BYTES // SIZES[self.kinds[0]]


def decode_instruction(word: int, kind: str) -> Instruction:
    expect(word, 0, 3, 0, "sparsity")
    expect(word, 3, 1, 0, "saturation, of integers")
    for bit in (6, 23, 29):
        expect(word, bit, 1, 0, "reserved")
    expect(word, 30, 2, 0, "shift of .ws")
    sum_, left, right = take(word, 4, 2), take(word, 7, 3), take(word, 10, 3)
    if sum_ not in SUMS:
        raise RuntimeError(f"expected 0 (f16) or 1 (f32) as the type of the sum, got {sum_}")
    for code in (left, right):
        if code not in OPERANDS[kind]:
            raise RuntimeError(f"expected one of {sorted(OPERANDS[kind])} as the type of an operand of kind::{kind}, got {code}")
    kinds = OPERANDS[kind][left], OPERANDS[kind][right]
    if not all(name in SIZES for name in kinds) or (kind == "f16" and kinds[0] != kinds[1]):
        raise NotImplementedError(f"a product of {kinds[0]} and {kinds[1]}")
    if kinds[0] == "bf16" and SUMS[sum_] == "f16":
        raise RuntimeError("expected a sum of f32 of operands of bf16, got one of f16")
    n, m = take(word, 17, 6) * 8, take(word, 24, 5) * 16
    transposed = bool(take(word, 15, 1)), bool(take(word, 16, 1))
    if m not in (64, 128):
        raise RuntimeError(f"expected 64 or 128 rows, got {m}")
    # The manual has steps of 8, and CUTLASS of 16 where there are 128 rows: the stricter of both. Columns of 8 bits that lie
    # together come by sixteens.
    step = 16 if m == 128 or (kind == "f8f6f4" and transposed[1]) else 8
    if not step <= n <= 256 or n % step:
        raise RuntimeError(f"expected a multiple of {step} from {step} to 256 as columns of {m} rows, got {n}")
    return Instruction(m, n, SUMS[sum_], kinds, (bool(take(word, 13, 1)), bool(take(word, 14, 1))), transposed)


@dataclass(frozen=True)
class Operand:
    """A matrix in shared memory: where it begins, and what the two offsets and the mode of its swizzle are."""

    start: int
    leading: int
    stride: int
    # Bytes of a row of the pattern; 16 is none.
    row: int

    @functools.lru_cache(maxsize=512)
    def locate(self, count: int, size: int, transposed: bool) -> np.ndarray:
        """The address of each element, (count, depth): `count` rows of A, or columns of B."""
        outer, k = np.arange(count)[:, None], np.arange(SUM_BYTES // size)[None, :]
        # Neighbours lie together along one of them, and groups of eight rows are made of the other.
        along, across = (outer, k) if transposed else (k, outer)
        together = self.row // size
        steps = along // together, across // GROUP
        if self.row == CELL:
            # Cells of 8 rows lie one after another; the offset along M or N is the stride, along the sum the leading one.
            jumps = (self.stride, self.leading) if transposed else (self.leading, self.stride)
        else:
            self.check(count * size, steps, transposed)
            jumps = self.leading, self.stride
        linear = self.start + along % together * size + across % GROUP * self.row
        linear = linear + steps[0] * jumps[0] + steps[1] * jumps[1]
        if np.unique(linear).size != linear.size:
            raise RuntimeError(f"expected offsets that keep rows apart, got {self.leading} (leading) and {self.stride} (stride)")
        return swizzle(linear, self.row) if self.row > CELL else linear

    def check(self, wide: int, steps: Tuple[np.ndarray, np.ndarray], transposed: bool) -> None:
        """A swizzle is a pattern of addresses: what is not where the pattern begins is read from other places."""
        pattern = GROUP * self.row
        if self.start % pattern >= self.row:
            raise RuntimeError(f"expected a start in the first row of a pattern of {pattern} bytes, got {self.start:#x}")
        inside, reach = self.start % self.row, min(wide, self.row) if transposed else SUM_BYTES
        if inside + reach > self.row:
            raise RuntimeError(f"expected {reach} bytes in a row of {self.row}, got a start at byte {inside} of it")
        if not transposed and self.leading not in (0, CELL):
            raise RuntimeError(f"expected no leading offset of rows of one swizzle (0, or 16 as the manual has it), got {self.leading}")
        for step, offset, name in ((steps[0], self.leading, "leading"), (steps[1], self.stride, "stride")):
            if step.max() > 0 and (name == "stride" or transposed) and (offset == 0 or offset % pattern):
                raise RuntimeError(f"expected a {name} offset of patterns of {pattern} bytes, got {offset}")


def decode_operand(word: int) -> Operand:
    for bit in (14, 30):
        expect(word, bit, 2, 0, "reserved")
    expect(word, 46, 3, 1, "constant")
    expect(word, 49, 3, 0, "base offset, of patterns that do not begin where addresses say")
    if take(word, 52, 1):
        raise NotImplementedError("a leading offset that is an address")
    expect(word, 53, 8, 0, "constant")
    mode = take(word, 61, 3)
    if mode == 1:
        raise NotImplementedError("a swizzle of 128 bytes by cells of 32 bytes")
    if mode not in ROWS:
        raise RuntimeError(f"expected a mode of swizzles, 0, 2, 4 or 6, got {mode}")
    return Operand(take(word, 0, 14) << 4, take(word, 16, 14) << 4, take(word, 32, 14) << 4, ROWS[mode])


def read_elements(shared: np.ndarray, addresses: np.ndarray, kind: str) -> np.ndarray:
    if addresses.max() + SIZES[kind] > shared.size:
        raise RuntimeError(f"expected an operand within {shared.size} bytes, got one to {int(addresses.max()) + SIZES[kind]}")
    codes = shared if SIZES[kind] == 1 else shared.view(np.uint16)
    return decode_elements(codes[addresses // SIZES[kind]], kind)
