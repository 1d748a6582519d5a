"""What a traced function holds: symbols that overload Python's operators, answer to methods of tensors
and to functions of NumPy and PyTorch."""

from __future__ import annotations

import functools
import threading
from typing import Any, Tuple

from . import _rows
from ._functions import BY_NAME
from ._operations import (
    TYPE_OF_KIND,
    UNARY,
    Value,
    absolute,
    binary,
    compare,
    convert,
    divide,
    fail,
    floor_divide,
    kind,
    kind_of_dtype,
    logic,
    power,
    remainder,
    resolve,
    shift,
    to_type,
    unary_op,
)

# .trace is the Trace that runs in this thread.
active = threading.local()

# Positions and extents are below this (s12 of the dialect).
MAX_EXTENT = 1 << 29


class TensorMethods:
    """What masks of PyTorch and of Hugging Face ask of their indices: constants and conversions."""

    shape: Tuple[int, ...] = ()
    ndim = 0
    device = "cpu"

    def new_full(self, size: Any, fill_value: Any, **options: Any) -> Any:
        if not isinstance(size, (tuple, list)) or len(size):
            fail(
                f"expected one element, got new tensors of shape {size!r}", "make them of shape ()"
            )
        value = resolve(fill_value)
        wanted = kind_of_dtype(options.get("dtype")) or kind(self)
        if isinstance(value, Value):
            return convert(value, wanted)
        trace, type_ = resolve(self).trace, TYPE_OF_KIND[wanted]
        return to_type(trace, bool(value) if wanted == "bool" else value, type_)

    def new_ones(self, *size: Any, **options: Any) -> Any:
        return self.new_full(options.pop("size", size[0] if len(size) == 1 else size), 1, **options)

    def new_zeros(self, *size: Any, **options: Any) -> Any:
        return self.new_full(options.pop("size", size[0] if len(size) == 1 else size), 0, **options)

    def new_tensor(self, data: Any, **options: Any) -> Any:
        return self.new_full((), data, **{"dtype": kind(data), **options})

    def to(self, *places: Any, **options: Any) -> Any:
        """To a dtype; there is one device."""
        for x in (*places, options.get("dtype")):
            type_ = kind_of_dtype(x)
            if type_ is not None:
                return convert(self, type_)
        return resolve(self)

    def type_as(self, other: Any) -> Any:
        return convert(self, kind(other))

    astype = to

    def float(self) -> Any:
        return convert(self, "float")

    # Kernels compute in f32.
    half = bfloat16 = double = float

    def bool(self) -> Any:
        return convert(self, "bool")

    def int(self) -> Any:
        return convert(self, "int")

    long = int

    def unsqueeze(self, dim: Any) -> Any:
        """Beside a row of elements, one is what each of them meets."""
        return self

    def __getattr__(self, name: str) -> Any:
        # x.clamp(0, 9) is torch.clamp(x, 0, 9).
        function = BY_NAME.get(name)
        if function is None or name.startswith("_"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return functools.partial(function, self)


class Operand(TensorMethods):
    """What a traced function computes with: overloads Python's operators."""

    # Array libraries leave operators to us and hand their functions over.
    __array_priority__ = 1000

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        name = f"numpy.{ufunc.__name__}"
        if method != "__call__":
            fail(f"expected a call of {name}, got {name}.{method}")
        if options:
            fail(f"expected a call of {name} without {', '.join(options)}")
        return _call_by_name("numpy", ufunc.__name__, inputs)

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        return _call_by_name("numpy", function.__name__, inputs, options)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, inputs: Any = (), options: Any = None
    ) -> Any:
        return _call_by_name("torch", function.__name__, inputs, options)

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        fail(
            "expected an operation on one element, got one on an array that attn cannot see or not index",
            "hold captured arrays in variables of their own or wrap them by attn.tensor, and index them "
            "down to one element",
        )

    def __bool__(self) -> bool:
        fail(
            "expected no decision on a value that is only known when the kernel runs",
            "use attn.where for if, & | ~ for and or not, (a <= b) & (b < c) for a <= b < c, "
            "attn.minimum and attn.maximum for min and max",
        )

    def __float__(self) -> float:
        fail(
            "expected no conversion by float()",
            "use the value as it is, and attn.tanh and the like",
        )

    def __int__(self) -> int:
        fail("expected no conversion by int()", "use attn.to_int(x), x.to(int) or x.long()")

    def __index__(self) -> int:
        fail(
            "expected an array that attn can see, got one indexed by a symbol",
            "hold the array in a variable of its own, or wrap it by attn.tensor",
        )

    def __len__(self) -> int:
        fail("expected an array, got one value")

    def __iter__(self) -> Any:
        fail("expected an array, got one value")

    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Any:
        return binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return binary("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return binary("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return binary("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return binary("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return binary("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return divide(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return floor_divide(other, self)

    def __mod__(self, other: Any) -> Any:
        return remainder(self, other)

    def __rmod__(self, other: Any) -> Any:
        return remainder(other, self)

    def __pow__(self, other: Any) -> Any:
        return power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return power(other, self)

    def __neg__(self) -> Any:
        return binary("sub", 0, self) if kind(self) != "float" else unary_op("arith.negf", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return absolute(self)

    def __and__(self, other: Any) -> Any:
        return logic("andi", self, other)

    def __rand__(self, other: Any) -> Any:
        return logic("andi", other, self)

    def __or__(self, other: Any) -> Any:
        return logic("ori", self, other)

    def __ror__(self, other: Any) -> Any:
        return logic("ori", other, self)

    def __xor__(self, other: Any) -> Any:
        return logic("xori", self, other)

    def __rxor__(self, other: Any) -> Any:
        return logic("xori", other, self)

    def __invert__(self) -> Any:
        return logic("xori", self, True if kind(self) == "bool" else -1)

    def __lshift__(self, other: Any) -> Any:
        return shift("shli", self, other)

    def __rshift__(self, other: Any) -> Any:
        return shift("shrsi", self, other)

    def __eq__(self, other: Any) -> Any:  # type: ignore[override]
        return compare("eq", self, other)

    def __ne__(self, other: Any) -> Any:  # type: ignore[override]
        return compare("ne", self, other)

    def __lt__(self, other: Any) -> Any:
        return compare("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return compare("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return compare("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return compare("ge", self, other)


def _yield_to_rows(name: str) -> None:
    """Beside a row, the operator is that of the row."""
    own = getattr(Operand, name)

    def call(self: Any, other: Any) -> Any:
        return NotImplemented if _rows.is_row(other) else own(self, other)

    setattr(Operand, name, call)


for _name in _rows.BINARY_OPERATORS:
    _yield_to_rows(_name)


class Symbol(Operand, Value):
    """A value that functions compute with."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<symbol {self.name}: {self.type}>"


def _call_by_name(library: str, name: str, inputs: Any, options: Any = None) -> Any:
    """numpy.tanh and torch.tanh of a symbol are attn.tanh."""
    if any(_rows.is_row(x) for x in inputs):
        return _rows.call_by_name(name, inputs, options or {})
    plain = name.strip("_")
    reflected = (
        plain[1:]
        if plain.startswith("r") and plain[1:] in BY_NAME and name.startswith("__")
        else ""
    )
    if name.startswith("__") and reflected:
        return BY_NAME[reflected](*reversed(inputs))
    plain = {
        "truediv": "divide",
        "floordiv": "floor_divide",
        "mod": "remainder",
        "and": "bitwise_and",
        "or": "bitwise_or",
        "xor": "bitwise_xor",
    }.get(plain, plain)
    function = BY_NAME.get(plain)
    if name in ("__getitem__", "getitem"):
        fail(
            "expected an array that attn can see, got one that is made inside of the function",
            "make it outside, hold it in a variable of its own, and index it down to one element",
        )
    if function is None or name.startswith("__array"):
        fail(
            f"expected a function that attn can compile, got {library}.{name}",
            "attn has "
            + ", ".join(sorted([*UNARY, "abs", "where", "minimum", "maximum", "clip", "sigmoid"])),
        )
    return function(*inputs, **(options or {}))
