"""Copies of intervals of positions between tensors and messages, worked out once for tensors of the same shapes: what
is left of a call is one copy for each interval of each tensor."""

from __future__ import annotations

import functools
from typing import Any, List, NamedTuple, Tuple

import torch

from ._exchange import WIDE
from ._shardings import Interval

# Of a tensor (B, H, S, C): its shape, strides, and where it begins in its memory.
Form = Tuple[Tuple[int, ...], Tuple[int, ...], int]


class _Copy(NamedTuple):
    """In elements of the copy. Offsets of `of` are from the beginning of its memory."""

    # Which tensor of those that move together.
    number: int
    size: Tuple[int, ...]
    of_strides: Tuple[int, ...]
    of_offset: int
    to_strides: Tuple[int, ...]
    to_offset: int


class Copies(NamedTuple):
    """From tensors (B, H, S, C) into memory of one dimension."""

    copies: Tuple[_Copy, ...]
    # Whether elements of 16 bytes move, at the rate of memory.
    is_wide: bool

    def run(self, tensors: List[torch.Tensor], memory: torch.Tensor) -> None:
        if self.is_wide:
            tensors, memory = [x.view(WIDE) for x in tensors], memory.view(WIDE)
        strided = torch.as_strided
        for number, size, of_strides, of_offset, to_strides, to_offset in self.copies:
            to = strided(memory, size, to_strides, to_offset)
            to.copy_(strided(tensors[number], size, of_strides, of_offset))


def find_forms(tensors: List[torch.Tensor]) -> Tuple[Form, ...]:
    return tuple([(x.shape, x.stride(), x.storage_offset()) for x in tensors])


@functools.lru_cache(maxsize=1024)
def list_copies(
    forms: Tuple[Form, ...], size_of_element: int, held: Tuple[Interval, ...], wanted: Tuple[Interval, ...], is_rows: bool
) -> Copies:
    """Positions `held` of the tensors to places `wanted` in memory, interval by interval. In rows all that a position
    has lies together, the first tensor's and then the next one's; otherwise all positions of a tensor do."""
    columns = [shape[0] * shape[1] * shape[3] for shape, _, _ in forms]
    length, total = sum(b - a for a, b in wanted), sum(columns)
    found: List[_Copy] = []
    for number, (shape, strides, begin) in enumerate(forms):
        b, h, _, c = shape
        before = sum(columns[:number])
        row, first = (total, before) if is_rows else (columns[number], length * before)
        for (of, end), (to, _) in zip(held, wanted):
            size = (end - of, b, h, c)
            of_strides = (strides[2], strides[0], strides[1], strides[3])
            found.append(_Copy(number, size, of_strides, begin + of * strides[2], (row, h * c, c, 1), first + to * row))
    return _widen(tuple(found), WIDE.itemsize // size_of_element)


def _widen(copies: Tuple[_Copy, ...], per: int) -> Copies:
    """In elements of so many, where all of them move whole ones."""

    def is_whole(x: _Copy) -> bool:
        numbers = x.size[-1], *x.of_strides[:-1], x.of_offset, *x.to_strides[:-1], x.to_offset
        return x.of_strides[-1] == 1 and all(number % per == 0 for number in numbers)

    if not copies or per < 2 or not all(map(is_whole, copies)):
        return Copies(copies, False)

    def divide(x: _Copy) -> _Copy:
        shrink = lambda strides: (*[stride // per for stride in strides[:-1]], 1)  # noqa: E731
        size = (*x.size[:-1], x.size[-1] // per)
        of, to = (shrink(x.of_strides), x.of_offset // per), (shrink(x.to_strides), x.to_offset // per)
        return _Copy(x.number, size, *of, *to)

    return Copies(tuple(map(divide, copies)), True)
