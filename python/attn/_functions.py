"""Functions of NumPy, PyTorch and JAX by their names, made of operations that kernels have."""

from __future__ import annotations

import math
from typing import Any

from ._operations import (
    UNARY,
    absolute,
    binary,
    clip,
    compare,
    divide,
    fail,
    floor_divide,
    kind,
    logic,
    maximum,
    minimum,
    power,
    remainder,
    resolve,
    shift,
    sigmoid,
    unary,
    where,
)

# ===- Rounding -------------------------------------------------------------------------------===#


def _add(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    return binary("add", a, b if alpha == 1 else binary("mul", b, alpha))


def _subtract(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    return binary("sub", a, b if alpha == 1 else binary("mul", b, alpha))


def _divide(a: Any, b: Any, *, rounding_mode: Any = None) -> Any:
    if rounding_mode is None:
        return divide(a, b)
    if rounding_mode == "floor":
        return floor_divide(a, b)
    if rounding_mode == "trunc":
        return _divide_towards_zero(a, b)
    fail(f'expected "floor", "trunc" or None as the rounding mode, got {rounding_mode!r}')


def _divide_towards_zero(a: Any, b: Any) -> Any:
    if "float" in (kind(a), kind(b)):
        return _truncate(divide(a, b))
    down = floor_divide(a, b)
    is_below = logic("andi", compare("lt", down, 0), compare("ne", binary("mul", down, b), a))
    return binary("add", down, is_below)


def _remainder_of_dividend(a: Any, b: Any) -> Any:
    """As in C: the sign of the dividend."""
    return binary("sub", a, binary("mul", _divide_towards_zero(a, b), b))


def _truncate(x: Any) -> Any:
    if kind(x) != "float":
        return x
    return where(compare("lt", x, 0.0), unary("ceil", x), unary("floor", x))


def _round(x: Any, decimals: int = 0) -> Any:
    """To the nearest integer, of two to the even one."""
    if decimals != 0:
        fail(f"expected no decimals, got {decimals!r}", "multiply before it and divide after")
    if kind(x) != "float":
        return x
    down = unary("floor", x)
    rest = binary("sub", x, down)
    up = binary("add", down, 1.0)
    nearest = where(compare("gt", rest, 0.5), up, down)
    is_odd = compare("ne", remainder(down, 2.0), 0.0)
    return where(logic("andi", compare("eq", rest, 0.5), is_odd), up, nearest)


def _sign(x: Any) -> Any:
    size = binary("sub", compare("gt", x, 0), compare("lt", x, 0))
    return binary("mul", size, 1.0) if kind(x) == "float" else size


# ===- Activations ----------------------------------------------------------------------------===#


def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        cubed = binary("mul", binary("mul", x, x), x)
        inner = binary(
            "mul", math.sqrt(2 / math.pi), binary("add", x, binary("mul", 0.044715, cubed))
        )
        share = unary("tanh", inner)
    else:
        share = unary("erf", binary("mul", x, math.sqrt(0.5)))
    return binary("mul", binary("mul", 0.5, x), binary("add", 1.0, share))


def _softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    scaled = binary("mul", x, float(beta))
    # Of a large number the exponential would be none.
    small = clip(scaled, None, float(threshold))
    soft = divide(unary("log", binary("add", 1.0, unary("exp", small))), float(beta))
    return where(compare("gt", scaled, float(threshold)), x, soft)


def _relu(x: Any, inplace: bool = False) -> Any:
    # At 0 its derivative is 0; a maximum shares it out.
    return where(compare("le", x, 0), 0.0 if kind(x) == "float" else 0, x)


def _hardtanh(x: Any, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False) -> Any:
    # At its ends its derivative is 0, unlike that of a clamp.
    above = where(compare("le", x, min_val), min_val, x)
    return where(compare("ge", x, max_val), max_val, above)


def _leaky_relu(x: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    return where(compare("gt", x, 0.0), x, binary("mul", x, float(negative_slope)))


def _elu(x: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    # Of a large number the exponential would be none.
    below = binary("sub", unary("exp", clip(x, None, 0.0)), 1.0)
    return where(compare("gt", x, 0.0), x, binary("mul", below, float(alpha)))


def _log_sigmoid(x: Any) -> Any:
    return binary("mul", _softplus(binary("mul", x, -1.0)), -1.0)


# ===- By name --------------------------------------------------------------------------------===#


def _is_finite(x: Any) -> Any:
    return compare("lt", absolute(x), math.inf)


def _same(x: Any) -> Any:
    """There is one copy, and it lies as it lies."""
    return resolve(x)


BY_NAME = {
    **{name: (lambda x, name=name: unary(name, x)) for name in UNARY},
    "abs": absolute,
    "absolute": absolute,
    "fabs": absolute,
    "add": _add,
    "subtract": _subtract,
    "sub": _subtract,
    "rsub": lambda a, b, *, alpha=1: _subtract(b, a, alpha=alpha),
    "multiply": lambda a, b: binary("mul", a, b),
    "mul": lambda a, b: binary("mul", a, b),
    "divide": _divide,
    "true_divide": divide,
    "div": _divide,
    "floor_divide": floor_divide,
    "remainder": remainder,
    "fmod": _remainder_of_dividend,
    "trunc": _truncate,
    "fix": _truncate,
    "round": _round,
    "rint": _round,
    "sign": _sign,
    "tan": lambda x: divide(unary("sin", x), unary("cos", x)),
    "log10": lambda x: binary("mul", unary("log2", x), math.log10(2)),
    "power": power,
    "pow": power,
    "maximum": maximum,
    "minimum": minimum,
    "fmax": maximum,
    "fmin": minimum,
    "max": maximum,
    "min": minimum,
    "where": where,
    "clip": clip,
    "clamp": clip,
    "clamp_min": lambda x, low: clip(x, low),
    "clamp_max": lambda x, high: clip(x, None, high),
    "relu": _relu,
    "silu": lambda x, inplace=False: binary("mul", x, sigmoid(x)),
    "gelu": _gelu,
    "softplus": _softplus,
    "leaky_relu": _leaky_relu,
    "elu": _elu,
    "hardtanh": _hardtanh,
    "relu6": lambda x, inplace=False: _hardtanh(x, 0.0, 6.0),
    "log_sigmoid": _log_sigmoid,
    "logsigmoid": _log_sigmoid,
    "square": lambda x: binary("mul", x, x),
    "reciprocal": lambda x: divide(1.0, x),
    "full_like": lambda x, value, **how: resolve(x).new_full((), value, **how),
    "zeros_like": lambda x, **how: resolve(x).new_zeros((), **how),
    "ones_like": lambda x, **how: resolve(x).new_ones((), **how),
    "masked_fill": lambda x, mask, value: where(mask, value, x),
    "sigmoid": sigmoid,
    "negative": lambda x: -x,
    "neg": lambda x: -x,
    "logical_and": lambda a, b: logic("andi", compare("ne", a, 0), compare("ne", b, 0)),
    "logical_or": lambda a, b: logic("ori", compare("ne", a, 0), compare("ne", b, 0)),
    "logical_xor": lambda a, b: logic("xori", compare("ne", a, 0), compare("ne", b, 0)),
    "logical_not": lambda a: compare("eq", a, 0),
    "bitwise_not": lambda a: logic("xori", a, True if kind(a) == "bool" else -1),
    "bitwise_left_shift": lambda a, b: shift("shli", a, b),
    "left_shift": lambda a, b: shift("shli", a, b),
    "bitwise_right_shift": lambda a, b: shift("shrsi", a, b),
    "right_shift": lambda a, b: shift("shrsi", a, b),
    "isnan": lambda x: compare("ne", x, x),
    "isfinite": _is_finite,
    "isinf": lambda x: compare("eq", absolute(x), math.inf),
    "clone": _same,
    "contiguous": _same,
    "bitwise_and": lambda a, b: logic("andi", a, b),
    "bitwise_or": lambda a, b: logic("ori", a, b),
    "bitwise_xor": lambda a, b: logic("xori", a, b),
    "equal": lambda a, b: compare("eq", a, b),
    "not_equal": lambda a, b: compare("ne", a, b),
    "less": lambda a, b: compare("lt", a, b),
    "less_equal": lambda a, b: compare("le", a, b),
    "greater": lambda a, b: compare("gt", a, b),
    "greater_equal": lambda a, b: compare("ge", a, b),
    "eq": lambda a, b: compare("eq", a, b),
    "ne": lambda a, b: compare("ne", a, b),
    "lt": lambda a, b: compare("lt", a, b),
    "le": lambda a, b: compare("le", a, b),
    "gt": lambda a, b: compare("gt", a, b),
    "ge": lambda a, b: compare("ge", a, b),
}
