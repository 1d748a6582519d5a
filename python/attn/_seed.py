"""Seeds of dropout: an array of one 64-bit integer where the call runs."""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple, Tuple

from . import _arrays, _dynamo
from ._library import Error
from ._problem import check_dropout

_LOW, _HIGH = -(1 << 63), (1 << 63) - 1


class Seed(NamedTuple):
    """What a kernel is compiled for that is given seeds later."""

    dtype: str = "int64"
    shape: Tuple[int, ...] = (1,)


def make_seed(seed: Any, q: Any, device: int) -> Any:
    """The seed of a call beside `q`; drawn if None. An array of an integer type is taken as it is
    where its elements have 64 bits, so that who changes it changes replays of a CUDA graph."""
    if _arrays.is_torch(q):
        return _make_tensor(seed, sys.modules["torch"], q)
    return _make_array(seed)


def make_traced_seed(dropout_p: Any, seed: Any, q: Any) -> Tuple[float, Any]:
    """While torch.compile traces: the probability as a constant of the graph, and its seed."""
    from torch.fx.experimental.symbolic_shapes import guard_scalar

    dropout = check_dropout(guard_scalar(dropout_p))
    return dropout, make_seed(seed, q, -1) if dropout else None


def _refuse(seed: Any) -> Any:
    got = f"{seed.dtype} of shape {tuple(seed.shape)}" if hasattr(seed, "shape") else repr(seed)
    raise Error(
        "invalid argument", f"dropout_seed: expected None, an integer or an array of one, got {got}"
    )


def _make_tensor(seed: Any, torch: Any, q: Any) -> Any:
    if seed is None:
        if type(q).__name__ == "DTensor":
            raise Error(
                "invalid argument",
                "dropout_seed: expected one that all processes share where q is a DTensor, got None",
            )
        return torch.randint(_LOW, _HIGH, (1,), dtype=torch.int64, device=q.device)
    if isinstance(seed, torch.Tensor):
        is_integer = not (seed.is_floating_point() or seed.is_complex() or seed.dtype == torch.bool)
        if not is_integer or seed.numel() != 1:
            _refuse(seed)
        if seed.device != q.device:
            raise Error(
                "invalid argument",
                f"dropout_seed: expected one on {q.device}, got one on {seed.device}",
            )
        return seed.reshape(1).to(torch.int64)
    if _dynamo.is_compiling() and isinstance(seed, int) and not isinstance(seed, bool):
        # It may be a number that changes from call to call, of which Python's functions know nothing.
        return torch.full((1,), seed, dtype=torch.int64, device=q.device)
    return torch.tensor([_to_word(seed)], dtype=torch.int64, device=q.device)


def _make_array(seed: Any) -> Any:
    import numpy as np

    if seed is None:
        return np.random.randint(_LOW, _HIGH, (1,), dtype=np.int64)
    if isinstance(seed, np.ndarray):
        if seed.dtype.kind not in "iu" or seed.size != 1:
            _refuse(seed)
        return seed.reshape(1).astype(np.int64, copy=False)
    return np.array([_to_word(seed)], dtype=np.int64)


def _to_word(seed: Any) -> int:
    """Of an integer, or of an array of one of any library: modulo 2^64, with a sign."""
    if math.prod(getattr(seed, "shape", (0,))) == 1 and hasattr(seed, "item"):
        seed = seed.item()
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        _refuse(seed)
    word = seed.__index__() & ((1 << 64) - 1)
    return word - (1 << 64) if word > _HIGH else word
