"""Rows of captured arrays in traced functions: a few elements, written out one by one.

Their number is that of the array of the call, so that what reads them is traced for each call.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, Callable, List

from ._functions import BY_NAME
from ._operations import (
    binary,
    compare,
    divide,
    fail,
    floor_divide,
    logic,
    maximum,
    minimum,
    power,
    remainder,
    resolve,
)

# Each element is an operation for every score.
_MOST = 1024

# Of rows: those of two operands, and all.
BINARY_OPERATORS: List[str] = []


class Row:
    """Elements side by side, of which one number is made: by any, all, sum, torch.dot and the like."""

    def __init__(self, items: List[Any]) -> None:
        if not 1 <= len(items) <= _MOST:
            fail(f"expected a row of 1 to {_MOST} elements, got {len(items)}")
        self.items = items

    def _attn_row(self) -> "Row":
        return self

    def _combine(self, other: Any, function: Callable) -> "Row":
        items = to_items(other)
        if len(items) != len(self.items) and 1 not in (len(items), len(self.items)):
            fail(f"expected rows of one length, got {len(self.items)} and {len(items)}")
        count = max(len(items), len(self.items))
        a, b = (x * count if len(x) == 1 else x for x in (self.items, items))
        return Row([function(x, y) for x, y in zip(a, b)])

    def _fold(self, function: Callable, dim: Any, options: Any) -> Any:
        if dim not in (None, 0, -1, (0,), (-1,), [0], [-1]):
            fail(f"expected the only dimension of a row, 0 or -1, got {dim!r}")
        if options.get("keepdim") or options.get("keepdims"):
            fail("expected one number of a row, got keepdim=True")
        return functools.reduce(function, self.items)

    def any(self, dim: Any = None, **options: Any) -> Any:
        return self._fold(lambda a, b: logic("ori", a, b), dim, options)

    def all(self, dim: Any = None, **options: Any) -> Any:
        return self._fold(lambda a, b: logic("andi", a, b), dim, options)

    def sum(self, dim: Any = None, **options: Any) -> Any:
        return self._fold(lambda a, b: binary("add", a, b), dim, options)

    def prod(self, dim: Any = None, **options: Any) -> Any:
        return self._fold(lambda a, b: binary("mul", a, b), dim, options)

    def mean(self, dim: Any = None, **options: Any) -> Any:
        return divide(self.sum(dim, **options), len(self.items))

    def amax(self, dim: Any = None, **options: Any) -> Any:
        return self._fold(maximum, dim, options)

    def amin(self, dim: Any = None, **options: Any) -> Any:
        return self._fold(minimum, dim, options)

    def dot(self, other: Any) -> Any:
        return (self * other).sum()

    __matmul__ = dot

    def __getattr__(self, name: str) -> Any:
        # What is done with one element is done with each.
        function = BY_NAME.get(name)
        if function is None or name.startswith("_"):
            raise AttributeError(f"'Row' object has no attribute '{name}'")
        return functools.partial(_apply, function, self)

    def _attn_symbol(self) -> Any:
        fail(
            f"expected one element, got a row of {len(self.items)}",
            "use .any(), .all(), .sum() or .mean()",
        )

    __hash__ = object.__hash__

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, inputs: Any = (), options: Any = None
    ) -> Any:
        return call_by_name(function.__name__, inputs, options or {})


# Of all elements, by methods and by functions of PyTorch.
_FOLDS = ("any", "all", "sum", "prod", "mean", "amax", "amin", "dot")


def _define(name: str, function: Callable) -> None:
    special = f"__{name}__"
    setattr(Row, special, lambda self, other: self._combine(other, function))
    BINARY_OPERATORS.append(special)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _define(_name, lambda a, b, name=_name: compare(name, a, b))
_ARITHMETIC = {
    **{name: (lambda a, b, name=name: binary(name, a, b)) for name in ("add", "sub", "mul")},
    "truediv": divide,
    "floordiv": floor_divide,
    "mod": remainder,
    "pow": power,
    "and": lambda a, b: logic("andi", a, b),
    "or": lambda a, b: logic("ori", a, b),
}
for _name, _function in _ARITHMETIC.items():
    _define(_name, _function)
    _define(f"r{_name}", lambda a, b, function=_function: function(b, a))
Row.__neg__ = lambda self: _apply(operator.neg, self)  # type: ignore[attr-defined]
Row.__abs__ = lambda self: _apply(BY_NAME["abs"], self)  # type: ignore[attr-defined]
Row.__invert__ = lambda self: _apply(operator.invert, self)  # type: ignore[attr-defined]
ROW_OPERATORS = [*BINARY_OPERATORS, "__neg__", "__abs__", "__invert__", "__matmul__"]


def is_row(x: Any) -> bool:
    """Or an array of which one may be made."""
    return hasattr(type(x), "_attn_row")


def to_items(x: Any) -> List[Any]:
    """Of a row, of an array that lacks one index, or of one element."""
    return x._attn_row().items if is_row(x) else [resolve(x)]


def _apply(function: Callable, *inputs: Any, **options: Any) -> Row:
    """To each element; a number stands beside all of them."""
    rows = [to_items(x) if is_row(x) else None for x in inputs]
    lengths = {len(items) for items in rows if items is not None}
    if len(lengths) > 1:
        fail(f"expected rows of one length, got {' and '.join(map(str, sorted(lengths)))}")
    return Row(
        [
            function(*[x if row is None else row[i] for x, row in zip(inputs, rows)], **options)
            for i in range(lengths.pop())
        ]
    )


def call_by_name(name: str, inputs: Any, options: Any) -> Any:
    """torch.dot(a, b), torch.any(a), torch.exp(a) and the like."""
    first, *others = inputs
    if name in _FOLDS:
        return getattr(Row(to_items(first)), name)(*others, **options)
    plain = name.strip("_")
    if name.startswith("__") and f"__{plain}__" in ROW_OPERATORS:
        return getattr(Row(to_items(first)), f"__{plain}__")(*others)
    function = BY_NAME.get(plain)
    if function is None:
        fail(f"expected a function of elements or {', '.join(_FOLDS)} of a row, got torch.{name}")
    return _apply(function, *inputs, **options)
