"""The tensors of a call, as the library takes them."""

from __future__ import annotations

import ctypes
import struct
from typing import Any, List, Tuple

from . import _arrays
from ._library import Error, check, library

CPU, CUDA = 1, 2
_device_word = struct.Struct("<ii").pack_into
_type_word = struct.Struct("<iBBH").pack_into
pack = {rank: struct.Struct(f"<{2 * rank}q").pack_into for rank in range(0, 65)}
pack_matrices = struct.Struct("<32q").pack_into
_pack_float = struct.Struct("<f").pack_into


class Frame:
    """The DLPack tensors of one call, in memory that calls share one after the other.

    Six words each: data, device, ndim and dtype, shape, strides, offset; then their addresses; then
    shapes and strides, those of `first` in front; and one word for the factor of the products.
    """

    def __init__(self, types: List[Tuple[str, int]], first: List[int], device: int) -> None:
        count = len(types)
        words = 7 * count + 2 * sum(rank for _, rank in types) + 1
        self.memory = bytearray(8 * words)
        self.words = memoryview(self.memory).cast("q")
        self.buffer = (ctypes.c_char * len(self.memory)).from_buffer(self.memory)
        base = ctypes.addressof(self.buffer)
        self.scale = len(self.memory) - 8
        self.extents = [0] * count
        # Shapes and strides of q, k and v that the memory holds, where it holds those of the output
        # too: they seldom change from call to call.
        self.layout: Any = None
        # Shape and strides of the output as the caller sees it.
        self.output: Tuple[Tuple[int, ...], Tuple[int, ...]] = ((), ())
        offset = 7 * count
        for i in first + [i for i in range(count) if i not in first]:
            type_, rank = types[i]
            code, bits, _ = _arrays.TYPES[type_]
            _device_word(self.memory, 48 * i + 8, *((CPU, 0) if device < 0 else (CUDA, device)))
            _type_word(self.memory, 48 * i + 16, rank, code, bits, 1)
            self.words[6 * i + 3] = base + 8 * offset
            self.words[6 * i + 4] = base + 8 * (offset + rank)
            self.words[6 * count + i] = base + 48 * i
            self.extents[i] = 8 * offset
            offset += 2 * rank
        # As ctypes takes it without a conversion.
        self.tensors = ctypes.c_void_p(base + 48 * count)
        self.scale_address = base + self.scale

    def put(self, index: int, address: int, shape: Any, strides: Any) -> None:
        self.words[6 * index] = address
        pack[len(shape)](self.memory, self.extents[index], *shape, *strides)

    def hold_scale(self, index: int) -> None:
        """Makes tensor `index` the number: it is in host memory on every device."""
        _device_word(self.memory, 48 * index + 8, CPU, 0)
        self.words[6 * index] = self.scale_address

    def put_scale(self, scale: Any) -> None:
        try:
            if type(scale) is not float:
                scale = _arrays.to_number(scale, "scale")
            _pack_float(self.memory, self.scale, scale)
        except OverflowError:
            raise Error(
                "invalid argument", f"scale: expected a number that f32 holds, got {scale!r}"
            ) from None


def address_of(x: Any) -> int:
    """Of an array that attn has made."""
    return x.data_ptr() if hasattr(x, "data_ptr") else x.__array_interface__["data"][0]


# How many threads the library was told to use.
threads_in_use = [0]


def use_threads(count: int) -> None:
    if count != threads_in_use[0]:
        check(library.attn_set_num_threads(count))
        threads_in_use[0] = count
