"""Indices of captured arrays that may lie outside: what they mean, by who calls."""

from __future__ import annotations

import enum
import re
from typing import Any, Callable, Dict, List, Optional

from . import _operations
from ._scan import as_function


class Indexing(str, enum.Enum):
    """The meaning of an index below 0 or beyond the last. A kernel keeps computed indices inside
    the array in any case."""

    # attn.attention: the nearest element at a distance of row and key, else as in Python.
    NEAREST = "nearest"
    # As in Python: from the end.
    FROM_END = "from the end"
    # As in JAX: from the end, then the nearest.
    CLAMPED = "clamped"


def index_as(function: Any, indexing: str) -> Optional[Callable]:
    """The function with its captured arrays indexed in that way; an object that is no function as
    it is."""
    if not callable(function):
        return function
    function = as_function(function)

    def call(*arguments: Any) -> Any:
        return function(*arguments)

    # What a trace depends on includes the attributes of a function.
    call._attn_indexing = Indexing(indexing).value  # type: ignore[attr-defined]
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


def find_indexing(function: Any) -> Indexing:
    return Indexing(getattr(function, "_attn_indexing", Indexing.NEAREST))


def place(trace: Any, capture: Any, dim: int, index: Any) -> Any:
    """The index of an element that is there, as far as arrays that are large enough have it."""
    low, high = _operations.bounds(index)
    if not isinstance(index, _operations.Value):
        # A constant that is not there is an error of the call.
        capture.least[dim] = max(capture.least[dim], index + 1, -index)
        return index if index >= 0 else _operations.binary("add", trace.extent(capture, dim), index)
    is_clamped = trace.indexing == Indexing.CLAMPED
    if low < 0 and not (trace.indexing == Indexing.NEAREST and trace.steps.is_distance(index)):
        from_end = _operations.binary("add", index, trace.extent(capture, dim))
        index = _operations.where(_operations.compare("lt", index, 0), from_end, index)
        index = _operations.maximum(index, 0) if is_clamped else index
    # Calls are refused where an array is shorter than the positions at which it is read.
    if is_clamped and index.name not in _POSITIONS:
        last = _operations.binary("sub", trace.extent(capture, dim), 1)
        index = _operations.minimum(index, last)
    return index


# ===- Distances -------------------------------------------------------------------------------===#

_POSITIONS = ("%b", "%h", "%m", "%n")
# What of a value moves by one with the row, with the key, or with their difference; or nothing.
_NOTHING, _ROW, _KEY, _DISTANCE, _OTHER = range(5)


class Steps:
    """How the values of a region move with row and key, as findDistances of the compiler says it."""

    def __init__(self, lines: List[str]) -> None:
        self._lines, self._count = lines, 0
        self._known: Dict[str, int] = {"%m": _ROW, "%n": _KEY, "%s": _OTHER}

    def is_distance(self, value: Any) -> bool:
        for line in self._lines[self._count :]:
            name, _, text = line.partition(" = ")
            operands = [self._known.get(x, _NOTHING) for x in re.findall(r"%\w+", text)]
            self._known[name] = _find_step(text.partition(" ")[0], operands)
        self._count = len(self._lines)
        return self._known.get(value.name) == _DISTANCE


def _find_step(op: str, operands: List[int]) -> int:
    if not any(operands):
        return _NOTHING
    if op == "arith.index_cast":
        return operands[0]
    if op in ("arith.minsi", "arith.maxsi"):
        return _DISTANCE if operands == [_DISTANCE, _NOTHING] else _OTHER
    if op not in ("arith.addi", "arith.subi"):
        return _OTHER
    if operands[1] == _NOTHING:
        return operands[0]
    if op == "arith.addi":
        return operands[1] if operands[0] == _NOTHING else _OTHER
    return _DISTANCE if set(operands) == {_ROW, _KEY} else _OTHER
