"""What is computed of the values of a traced function: each operation writes a line of IR.

Types and promotion: a value is a bool, an integer or a float (f32). Mixed operands are promoted in
that order; a bool counts as 0 or 1. Integers are 64 bits wide and do not wrap within the positions
and constants of attention; `/` gives a float, `//` and `%` round down as in Python. A Python number
is a constant and takes the type of the other operand: an integer beside a float is a float.
"""

from __future__ import annotations

import math
import os
import struct
import sys
from typing import Any, NoReturn, Optional, Tuple

from . import _arrays
from ._library import Error

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

_RANGES = {
    "i1": (0, 1),
    "i8": (-(1 << 7), (1 << 7) - 1),
    "i32": (-(1 << 31), (1 << 31) - 1),
    "i64": (-(1 << 63), (1 << 63) - 1),
    "index": (-(1 << 63), (1 << 63) - 1),
}


def _is_of_user(frame: Any) -> bool:
    library = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    is_ours = os.path.abspath(frame.f_code.co_filename).startswith(PACKAGE)
    return not is_ours and library not in ("numpy", "torch", "jax")


def user_place() -> str:
    """ "file.py:12" of the innermost frame outside this package and the array libraries."""
    frame: Any = sys._getframe(1)
    while frame is not None and not _is_of_user(frame):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


def fail(message: str, hint: str = "") -> NoReturn:
    raise Error("invalid kernel", message, hint, user_place())


class Value:
    """One SSA value. `type` is f32, index, i1, or that of a captured integer, i8, i32 or i64."""

    __slots__ = ("trace", "name", "type", "low", "high")

    def __init__(
        self, trace: Any, name: str, type_: str, bounds: Optional[Tuple[int, int]] = None
    ) -> None:
        self.trace, self.name, self.type = trace, name, type_
        self.low, self.high = bounds or _RANGES.get(type_, (0, 0))


def resolve(x: Any) -> Any:
    """A value of the kernel, or a Python bool, int or float."""
    if isinstance(x, (Value, bool, int, float)):
        return x
    symbol = getattr(x, "_attn_symbol", None)
    if symbol is not None:
        return symbol()
    # Scalars of the array libraries, and 0-d arrays that are not captured, are constants.
    if getattr(x, "shape", None) == () and hasattr(x, "item"):
        value = x.item()
        if isinstance(value, (bool, int, float)):
            return value
    if hasattr(x, "shape"):
        fail(
            f"expected one element, got an array of shape {tuple(x.shape)}",
            "index captured arrays down to one element",
        )
    fail(f"expected a number or a symbol, got {type(x).__name__}")


def kind(x: Any) -> str:
    """ "bool", "int" or "float"."""
    x = resolve(x)
    if isinstance(x, Value):
        return {"f32": "float", "i1": "bool"}.get(x.type, "int")
    return "bool" if isinstance(x, bool) else "int" if isinstance(x, int) else "float"


def bounds(x: Any) -> Tuple[int, int]:
    return (x.low, x.high) if isinstance(x, Value) else (int(x), int(x))


def trace_of(*values: Any) -> Any:
    for value in values:
        if isinstance(value, Value):
            return value.trace
    return None


def float_text(value: float) -> str:
    """An f32 as MLIR reads it."""
    try:
        bits = struct.pack("<f", value)
    except OverflowError:
        bits = struct.pack("<f", math.copysign(math.inf, value))
    rounded = struct.unpack("<f", bits)[0]
    if math.isinf(rounded) or math.isnan(rounded):
        return f"0x{struct.unpack('<I', bits)[0]:08X}"
    text = repr(float(value)) if abs(value - rounded) <= abs(rounded) * 6e-8 else repr(rounded)
    mantissa, e, exponent = text.partition("e")
    return (mantissa if "." in mantissa else mantissa + ".0") + e + exponent


def to_type(trace: Any, x: Any, type_: str) -> Value:
    """The value as f32, i1, index or an integer type that holds it."""
    if not isinstance(x, Value):
        if type_ == "f32":
            return trace.constant(float_text(float(x)), "f32")
        if type_ == "i1":
            return trace.constant("true" if x else "false", "i1")
        if not -(1 << 62) <= int(x) < 1 << 62:
            fail(f"expected an integer constant below 2^62, got {x}")
        return trace.constant(str(int(x)), type_, (int(x), int(x)))
    if x.type == type_:
        return x
    if type_ == "f32":
        if x.type == "i1":
            return trace.emit(f"arith.uitofp {x.name} : i1 to f32", "f32")
        if x.type == "index":
            # 32 bits convert faster, where they are enough.
            narrow = "i32" if -(1 << 31) <= x.low and x.high < 1 << 31 else "i64"
            x = trace.emit(f"arith.index_cast {x.name} : index to {narrow}", narrow)
        return trace.emit(f"arith.sitofp {x.name} : {x.type} to f32", "f32")
    if type_ == "i1":
        return compare("ne", x, 0)
    if x.type == "i1":
        return trace.emit(f"arith.index_castui {x.name} : i1 to {type_}", type_, (0, 1))
    return trace.emit(f"arith.index_cast {x.name} : {x.type} to {type_}", type_, (x.low, x.high))


TYPE_OF_KIND = {"bool": "i1", "int": "index", "float": "f32"}


def kind_of_dtype(dtype: Any) -> Optional[str]:
    """ "bool", "int" or "float" of a dtype; None for what is none, such as a device."""
    if isinstance(dtype, str) and dtype in ("bool", "int", "float"):
        return dtype
    if dtype is None:
        return None
    name = _arrays.type_name(dtype)
    if name is None:
        # Of other sizes: integers are 64 bits wide, and floats 32.
        text = getattr(dtype, "__name__", str(dtype)).rpartition(".")[2]
        plain = text.strip("_u0123456789")
        return plain if plain in ("bool", "int", "float") else None
    return {"i": "bool" if name == "i1" else "int"}.get(name[0], "float")


def convert(x: Any, wanted: str) -> Any:
    """As `.to` of a tensor."""
    x = resolve(x)
    given = kind(x)
    if given == wanted:
        return x
    if wanted == "int" and given == "float":
        return to_int(x)
    if wanted == "bool":
        return compare("ne", x, 0)
    return to_type(x.trace, x, TYPE_OF_KIND[wanted])


# The ends of 32 bits that a float has.
_LEAST_INT, _MOST_INT = -(1 << 31), (1 << 31) - 128


def to_int(x: Any) -> Any:
    """The whole number towards zero, as `.to(int)` of a tensor; beyond 32 bits the nearest of theirs,
    and of NaN the least."""
    x = resolve(x)
    if kind(x) != "float":
        return convert(x, "int") if isinstance(x, Value) else int(x)
    if not isinstance(x, Value):
        return _LEAST_INT if x != x else int(min(max(x, _LEAST_INT), _MOST_INT))
    least, most = (to_type(x.trace, end, "f32") for end in (_LEAST_INT, _MOST_INT))
    # Of NaN and one number these give the number.
    for op, end in (("maxnumf", least), ("minnumf", most)):
        x = x.trace.emit(f"arith.{op} {x.name}, {end.name} : f32", "f32")
    narrow = x.trace.emit(f"arith.fptosi {x.name} : f32 to i32", "i32")
    return to_type(x.trace, narrow, "index")


def promote(*values: Any) -> Tuple[Any, str]:
    """(trace or None, common type) of resolved values: f32, index or i1."""
    kinds = {kind(value) for value in values}
    type_ = "f32" if "float" in kinds else "index" if "int" in kinds else "i1"
    return trace_of(*values), type_


_PYTHON = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


def _clip(low: int, high: int) -> Tuple[int, int]:
    """What wraps may be anything."""
    least, most = _RANGES["i64"]
    return (low, high) if least <= low and high <= most else (least, most)


def _combine(op: str, a: Tuple[int, int], b: Tuple[int, int]) -> Tuple[int, int]:
    if op == "add":
        return _clip(a[0] + b[0], a[1] + b[1])
    if op == "sub":
        return _clip(a[0] - b[1], a[1] - b[0])
    products = [x * y for x in a for y in b]
    return _clip(min(products), max(products))


def _integer_type(a: Any, b: Any) -> str:
    """That of a captured integer, if the other is of it too or a constant that fits: documents are
    compared as they are stored. Otherwise index."""
    types = {x.type for x in (a, b) if isinstance(x, Value)}
    if len(types) == 1:
        type_ = types.pop()
        low, high = _RANGES[type_]
        fits = all(isinstance(x, Value) or low <= int(x) <= high for x in (a, b))
        if fits and type_ != "i1":
            return type_
    return "index"


def _arithmetic_type(a: Any, b: Any) -> str:
    """Captured integers of 64 bits keep them among themselves: their differences are right where an
    index has 32."""
    return "i64" if _integer_type(a, b) == "i64" else "index"


def binary(op: str, a: Any, b: Any) -> Any:
    """add, sub or mul."""
    a, b = resolve(a), resolve(b)
    trace, type_ = promote(a, b)
    if trace is None:
        return _PYTHON[op](a, b)
    type_ = type_ if type_ == "f32" else _arithmetic_type(a, b)
    x, y = to_type(trace, a, type_), to_type(trace, b, type_)
    if type_ == "f32":
        return trace.emit(f"arith.{op}f {x.name}, {y.name} : f32", "f32")
    range_ = _combine(op, bounds(x), bounds(y))
    return trace.emit(f"arith.{op}i {x.name}, {y.name} : {type_}", type_, range_)


def divide(a: Any, b: Any) -> Any:
    a, b = resolve(a), resolve(b)
    trace, _ = promote(a, b)
    if trace is None:
        return a / b
    x, y = to_type(trace, a, "f32"), to_type(trace, b, "f32")
    return trace.emit(f"arith.divf {x.name}, {y.name} : f32", "f32")


def _divisor(trace: Any, b: Any) -> Value:
    """An integer to divide by. One that is 0 at run time must not end the process: it is 1."""
    if not isinstance(b, Value) and int(b) == 0:
        fail("expected a divisor other than 0")
    y = to_type(trace, b, "index")
    if not y.low <= 0 <= y.high:
        return y
    result = where(compare("eq", y, 0), 1, y)
    result.low = 1 if y.low == 0 else y.low
    return result


def _without_least(x: Value) -> Value:
    """The least integer divided by -1 is none and would end the process: the next one stands for it."""
    least = _RANGES["i64"][0]
    if x.low > least:
        return x
    return maximum(x, x.trace.constant(str(least + 1), "index", (least + 1, least + 1)))


def _floor_divide(x: Value, y: Value) -> Value:
    """Of integers, the divisor not 0."""
    if y.low > 0:
        low = x.low // (y.low if x.low < 0 else y.high)
        range_ = low, x.high // (y.low if x.high >= 0 else y.high)
    else:
        x = _without_least(x)
        size = max(abs(x.low), abs(x.high))
        range_ = -size, size
    return x.trace.emit(f"arith.floordivsi {x.name}, {y.name} : index", "index", _clip(*range_))


def floor_divide(a: Any, b: Any) -> Any:
    a, b = resolve(a), resolve(b)
    trace, type_ = promote(a, b)
    if trace is None:
        return a // b
    if type_ == "f32":
        return unary("floor", divide(a, b))
    return _floor_divide(to_type(trace, a, "index"), _divisor(trace, b))


def remainder(a: Any, b: Any) -> Any:
    """As Python: the sign of the divisor."""
    a, b = resolve(a), resolve(b)
    trace, type_ = promote(a, b)
    if trace is None:
        return a % b
    if type_ == "f32":
        return a - floor_divide(a, b) * b
    x, y = to_type(trace, a, "index"), _divisor(trace, b)
    if x.low >= 0 and y.low > 0:
        return trace.emit(f"arith.remui {x.name}, {y.name} : index", "index", (0, y.high - 1))
    result = binary("sub", x, binary("mul", _floor_divide(x, y), y))
    size = max(abs(y.low), abs(y.high))
    result.low, result.high = (0, y.high - 1) if y.low > 0 else (-size, size)
    return result


def power(a: Any, b: Any) -> Any:
    a, b = resolve(a), resolve(b)
    trace, type_ = promote(a, b)
    if trace is None:
        return a**b
    if isinstance(b, int) and 0 <= b <= 64:
        result: Any = 1 if b == 0 else None
        square = a
        while b:
            if b & 1:
                result = square if result is None else binary("mul", result, square)
            b >>= 1
            square = binary("mul", square, square) if b else square
        return result
    x, y = to_type(trace, a, "f32"), to_type(trace, b, "f32")
    if not isinstance(a, Value) and a > 0:
        return unary("exp2", binary("mul", y, math.log2(a)))
    return trace.emit(f"math.powf {x.name}, {y.name} : f32", "f32")


def logic(op: str, a: Any, b: Any) -> Any:
    """andi, ori or xori: of bools, or bit by bit of integers."""
    a, b = resolve(a), resolve(b)
    trace, type_ = promote(a, b)
    if type_ == "f32":
        fail(
            f"expected bools or integers beside {dict(andi='&', ori='|', xori='^')[op]}, got a float"
        )
    if trace is None:
        return a & b if op == "andi" else a | b if op == "ori" else a ^ b
    x, y = to_type(trace, a, type_), to_type(trace, b, type_)
    range_ = None
    if type_ == "index" and op == "andi" and max(x.low, y.low) >= 0:
        range_ = (0, max(x.high, y.high))
    return trace.emit(f"arith.{op} {x.name}, {y.name} : {type_}", type_, range_)


def shift(op: str, a: Any, b: Any) -> Any:
    a, b = resolve(a), resolve(b)
    if isinstance(b, Value) or not isinstance(b, int) or not 0 <= b < 63:
        fail("expected a shift by a constant from 0 to 62")
    return binary("mul", a, 1 << b) if op == "shli" else floor_divide(a, 1 << b)


_SIGNED = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_FLOAT = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def compare(op: str, a: Any, b: Any) -> Any:
    a, b = resolve(a), resolve(b)
    trace, type_ = promote(a, b)
    if trace is None:
        return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[
            op
        ]
    if type_ == "f32":
        x, y = to_type(trace, a, "f32"), to_type(trace, b, "f32")
        return trace.emit(f"arith.cmpf {_FLOAT[op]}, {x.name}, {y.name} : f32", "i1")
    integer = _integer_type(a, b) if type_ == "index" else "i1"
    # As a signed number of one bit, true is -1.
    integer = "index" if integer == "i1" and op not in ("eq", "ne") else integer
    x, y = to_type(trace, a, integer), to_type(trace, b, integer)
    return trace.emit(f"arith.cmpi {_SIGNED[op]}, {x.name}, {y.name} : {integer}", "i1")


# ===- Functions ------------------------------------------------------------------------------===#


def unary_op(op: str, x: Any, flags: str = "") -> Any:
    x = resolve(x)
    value = to_type(x.trace, x, "f32")
    return x.trace.emit(f"{op} {value.name}{flags} : f32", "f32")


# Functions of one float, with what they are for a Python number.
UNARY = {
    "tanh": math.tanh,
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "log": math.log,
    "log2": math.log2,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sin": math.sin,
    "cos": math.cos,
    "erf": math.erf,
    "log1p": math.log1p,
    "expm1": math.expm1,
    "floor": lambda x: float(math.floor(x)),
    "ceil": lambda x: float(math.ceil(x)),
}


def unary(name: str, x: Any) -> Any:
    x = resolve(x)
    return unary_op(f"math.{name}", x) if isinstance(x, Value) else UNARY[name](x)


def tanh(x: Any, approximate: bool) -> Any:
    x = resolve(x)
    if not isinstance(x, Value):
        return math.tanh(x)
    return unary_op("math.tanh", x, " fastmath<afn>" if approximate else "")


def absolute(x: Any) -> Any:
    x = resolve(x)
    if not isinstance(x, Value):
        return abs(x)
    if x.type == "f32":
        return unary_op("math.absf", x)
    value = to_type(x.trace, x, "index")
    result = maximum(value, binary("sub", 0, value))
    result.low, result.high = 0, max(abs(value.low), abs(value.high))
    return result


def _extreme(name: str, python: Any, a: Any, b: Any) -> Any:
    a, b = resolve(a), resolve(b)
    trace, type_ = promote(a, b)
    if trace is None:
        return python(a, b)
    type_ = type_ if type_ == "f32" else _arithmetic_type(a, b)
    x, y = to_type(trace, a, type_), to_type(trace, b, type_)
    if type_ == "f32":
        return trace.emit(f"arith.{name}imumf {x.name}, {y.name} : f32", "f32")
    range_ = (python(x.low, y.low), python(x.high, y.high))
    return trace.emit(f"arith.{name}si {x.name}, {y.name} : {type_}", type_, range_)


def maximum(a: Any, b: Any) -> Any:
    """The larger value; NaN if one is."""
    return _extreme("max", max, a, b)


def minimum(a: Any, b: Any) -> Any:
    """The smaller value; NaN if one is."""
    return _extreme("min", min, a, b)


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`. Both are evaluated."""
    condition, a, b = resolve(condition), resolve(a), resolve(b)
    if not isinstance(condition, Value):
        return a if condition else b
    if kind(condition) == "float":
        fail("expected a bool as the condition, got a float", "compare it")
    trace = condition.trace
    _, type_ = promote(a, b)
    chosen = to_type(trace, condition, "i1")
    x, y = to_type(trace, a, type_), to_type(trace, b, type_)
    range_ = (min(x.low, y.low), max(x.high, y.high)) if type_ == "index" else None
    return trace.emit(f"arith.select {chosen.name}, {x.name}, {y.name} : {type_}", type_, range_)


def clip(x: Any, low: Any = None, high: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """x, but at least `low` and at most `high`. min= and max= are other names of `low` and `high`.
    At both ends the derivative is 1, as that of x."""
    low, high = (min if low is None else low), (max if high is None else high)
    x = x if low is None else _bound(x, "lt", low, maximum)
    return x if high is None else _bound(x, "gt", high, minimum)


def _bound(x: Any, beyond: str, end: Any, extreme: Any) -> Any:
    """A maximum or a minimum; of floats one that is x where both are equal, and NaN where x is."""
    if promote(*map(resolve, (x, end)))[1] != "f32":
        return extreme(x, end)
    return where(compare(beyond, x, end), end, x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    x = resolve(x)
    return divide(1.0, binary("add", 1.0, unary("exp", binary("mul", x, -1.0))))
