"""Rows of captured arrays in traced functions: a few elements, written out one by one.

Their number is that of the array of the call, so that what reads them is traced for each call.
"""

from __future__ import annotations

import operator
from typing import Any, Callable, List

from ._operations import binary, compare, fail, logic, resolve

# Each element is an operation for every score.
_MOST = 1024


class Row:
    """Elements side by side, of which one number is made: by any, all, sum or torch.dot."""

    def __init__(self, items: List[Any]) -> None:
        if not 1 <= len(items) <= _MOST:
            fail(f"expected a row of 1 to {_MOST} elements, got {len(items)}")
        self.items = items

    def _combine(self, other: Any, function: Callable) -> "Row":
        items = to_items(other)
        if len(items) != len(self.items) and 1 not in (len(items), len(self.items)):
            fail(f"expected rows of one length, got {len(self.items)} and {len(items)}")
        count = max(len(items), len(self.items))
        a, b = (x * count if len(x) == 1 else x for x in (self.items, items))
        return Row([function(x, y) for x, y in zip(a, b)])

    def _fold(self, function: Callable) -> Any:
        result = self.items[0]
        for item in self.items[1:]:
            result = function(result, item)
        return result

    def any(self, dim: Any = None, **options: Any) -> Any:
        return self._fold(lambda a, b: logic("ori", a, b))

    def all(self, dim: Any = None, **options: Any) -> Any:
        return self._fold(lambda a, b: logic("andi", a, b))

    def sum(self, dim: Any = None, **options: Any) -> Any:
        return self._fold(lambda a, b: binary("add", a, b))

    def dot(self, other: Any) -> Any:
        return (self * other).sum()

    def _attn_symbol(self) -> Any:
        fail(
            f"expected one element, got a row of {len(self.items)}", "use .any(), .all() or .sum()"
        )

    __hash__ = object.__hash__

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, inputs: Any = (), options: Any = None
    ) -> Any:
        return call_by_name(function.__name__, inputs, options or {})


def _define(name: str, function: Callable) -> None:
    setattr(Row, f"__{name}__", lambda self, other: self._combine(other, function))


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _define(_name, lambda a, b, name=_name: compare(name, a, b))
for _name in ("add", "sub", "mul"):
    _define(_name, lambda a, b, name=_name: binary(name, a, b))
    _define(f"r{_name}", lambda a, b, name=_name: binary(name, b, a))
for _name, _op in (("and", "andi"), ("or", "ori")):
    _define(_name, lambda a, b, op=_op: logic(op, a, b))
    _define(f"r{_name}", lambda a, b, op=_op: logic(op, b, a))


def to_items(x: Any) -> List[Any]:
    """Of a row, of an array that lacks one index, or of one element."""
    row = getattr(x, "_attn_row", None)
    if row is not None:
        x = row()
    return x.items if isinstance(x, Row) else [resolve(x)]


def call_by_name(name: str, inputs: Any, options: Any) -> Any:
    """torch.dot(a, b), torch.any(a) and the like."""
    first, *others = inputs
    if name in ("dot", "any", "all", "sum"):
        return getattr(Row(to_items(first)), name)(*others, **options)
    plain = name.strip("_")
    if plain in ("eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "and", "or"):
        special = getattr(operator, f"__{plain}__")
        return special(Row(to_items(first)), *others)
    fail(f"expected any, all, sum or dot of a row, got torch.{name}")
