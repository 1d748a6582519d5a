"""attn: a compiler for attention.

    output = attn.attention(q, k, v, causal=True)

compiles a kernel for this machine once, and calls it. Score and mask functions are plain Python:

    slopes = numpy.float32([0.5, 0.25, 0.125, 0.0625])
    output = attn.attention(
        q, k, v,
        score=lambda s, b, h, q, kv: s - slopes[h] * abs(q - kv),
        mask=lambda b, h, q, kv: (kv <= q) & (q - kv < 1024),
    )

Score and mask functions use the operators of Python, with `& | ~` for and, or and not. They call
the functions of this module, or functions of NumPy or PyTorch with the same name. Captured arrays
are indexed by integers, one element at a time. The value of a captured 0-d array is read at each
call; Python numbers are constants.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

from . import _dump, _dynamo, _imports, _levels, _nvtx, _operations, serving, typing
from ._attention import attention
from ._compile import Attention, AttentionWithLse, compile
from ._derivative import gradient
from ._dump import dump
from ._environment import collect_env
from ._explain import Explanation, explain
from ._float8 import Float8, to_float8
from ._library import Error
from ._library import version as __version__
from ._merge import merge
from ._operations import absolute as abs
from ._operations import clip, maximum, minimum, sigmoid, where
from ._options import Options
from ._picture import MaskPicture, visualize_mask
from ._ranges import MaskRanges, mask_ranges
from ._scan import Captured
from ._trace import Length
from ._tune import tune
from ._tuned_block import Tunings
from ._tuning import Tuning
from ._warm import warm_up
from .typing import Array

_nvtx.start()
_levels.start()
_dump.start()
_dynamo.install()


def _register_operators() -> None:
    """Exported programs name them, and may be loaded before anything of attn is called."""
    # Of a PyTorch older than attn serves, calls say what is missing.
    with contextlib.suppress(ImportError):
        importlib.import_module("attn._autograd")
        importlib.import_module("attn._varlen_operator")


_imports.after("torch", _register_operators)


def tensor(x: Array) -> Captured:
    """Marks an array as captured. Needed where tracing cannot see that a function names the
    array."""
    return Captured(x)


def assume_sorted(x: Array) -> Captured:
    """Promises that the integers of `x` do not decrease along the last dimension.

    A kernel whose mask compares these elements then visits only the keys that matter. If the
    promise is broken, it is unspecified which keys are kept.
    """
    return Captured(x, is_sorted=True)


query_length = Length("query_length", "q")
"""M, the number of queries of a call, inside a score or mask function."""
key_length = Length("key_length", "k")
"""N, the number of keys of a call, inside a score or mask function."""


def tanh(x: Any, *, approximate: bool = False) -> Any:
    """Hyperbolic tangent.

    `approximate` allows a relative error of 2^-11. On a GPU it is one instruction instead of five,
    and softcap is a fifth faster.
    """
    return _operations.tanh(x, approximate)


def exp(x: Any) -> Any:
    """e to the power x."""
    return _operations.unary("exp", x)


def exp2(x: Any) -> Any:
    """2 to the power x."""
    return _operations.unary("exp2", x)


def log(x: Any) -> Any:
    """Natural logarithm."""
    return _operations.unary("log", x)


def log2(x: Any) -> Any:
    """Logarithm to base 2."""
    return _operations.unary("log2", x)


def sqrt(x: Any) -> Any:
    """Square root."""
    return _operations.unary("sqrt", x)


def rsqrt(x: Any) -> Any:
    """1 / sqrt(x)."""
    return _operations.unary("rsqrt", x)


def sin(x: Any) -> Any:
    """Sine, of radians."""
    return _operations.unary("sin", x)


def cos(x: Any) -> Any:
    """Cosine, of radians."""
    return _operations.unary("cos", x)


def erf(x: Any) -> Any:
    """Error function."""
    return _operations.unary("erf", x)


def floor(x: Any) -> Any:
    """The largest whole number up to x, as a float."""
    return _operations.unary("floor", x)


def ceil(x: Any) -> Any:
    """The smallest whole number from x on, as a float."""
    return _operations.unary("ceil", x)


def to_int(x: Any) -> Any:
    """x rounded towards zero, as `.to(int)` of a tensor. Beyond 32 bits the nearest integer of 32
    bits; for NaN the least."""
    return _operations.to_int(x)


__all__ = [
    "Attention",
    "AttentionWithLse",
    "Error",
    "Explanation",
    "Float8",
    "MaskPicture",
    "MaskRanges",
    "Options",
    "Tuning",
    "Tunings",
    "__version__",
    "abs",
    "assume_sorted",
    "attention",
    "ceil",
    "clip",
    "collect_env",
    "compile",
    "cos",
    "dump",
    "erf",
    "exp",
    "exp2",
    "explain",
    "floor",
    "gradient",
    "key_length",
    "log",
    "log2",
    "mask_ranges",
    "maximum",
    "merge",
    "minimum",
    "query_length",
    "rsqrt",
    "sigmoid",
    "sin",
    "sqrt",
    "tanh",
    "tensor",
    "to_float8",
    "to_int",
    "tune",
    "typing",
    "visualize_mask",
    "warm_up",
    "where",
]
