"""Checks of what callers of flash_attn give: errors say their names. Contents of tensors are never looked at."""

from __future__ import annotations

import math
from typing import Any, Dict, Mapping, Optional, Tuple

import torch

from .._library import refuse

TYPES = (torch.float16, torch.bfloat16, torch.float32)
_INTEGERS = (torch.int32, torch.int64)
Window = Tuple[Optional[int], Optional[int]]


def _describe(x: Any) -> str:
    if not isinstance(x, torch.Tensor):
        return type(x).__name__
    return f"{x.dtype} of shape {tuple(x.shape)}"


def check_tensor(name: str, x: Any, dims: str) -> None:
    """`dims` names the dimensions: "T, H, D"."""
    if not isinstance(x, torch.Tensor) or x.dim() != dims.count(",") + 1:
        refuse(name, f"a tensor ({dims})", _describe(x))


def check_matrices(names: Tuple[str, str, str], q: Any, k: Any, v: Any) -> None:
    """Types, devices, heads and columns; the last two dimensions are heads and columns."""
    for name, x in zip(names, (q, k, v)):
        if x.dtype not in TYPES or x.dtype != q.dtype:
            expected = "float16, bfloat16 or float32" if x is q else f"{q.dtype}, as {names[0]} has"
            refuse(name, f"elements of {expected}", str(x.dtype))
        if x.device != q.device:
            refuse(name, f"a tensor on {q.device}, as {names[0]} is", str(x.device))
        if 0 in x.shape[-2:]:
            refuse(name, "one head and one column at least", f"shape {tuple(x.shape)}")
    if k.shape[-1] != q.shape[-1]:
        refuse(names[1], f"{q.shape[-1]} columns, as {names[0]} has", str(k.shape[-1]))
    if v.shape[:-1] != k.shape[:-1]:
        expected = f"shape {tuple(k.shape[:-1])} before its columns, as {names[1]} has"
        refuse(names[2], expected, f"shape {tuple(v.shape)}")
    if q.shape[-2] % k.shape[-2]:
        expected = f"a number of heads that divides {q.shape[-2]}, as {names[0]} has"
        refuse(names[1], expected, f"{k.shape[-2]} heads")


def check_integers(
    name: str, x: Any, like: Any, count: Optional[int] = None, is_wide: bool = False
) -> None:
    """One dimension of int32 where `like` is; int64 too if `is_wide`."""
    # Dynamo, which traces this, formats no text that nobody is told.
    is_integers = (
        isinstance(x, torch.Tensor) and x.dtype in _INTEGERS[: 1 + is_wide] and x.dim() == 1
    )
    if not is_integers or (x.shape[0] < 1 if count is None else x.shape[0] != count):
        refuse(name, f"int32 of shape ({'B + 1' if count is None else count},)", _describe(x))
    _check_device(name, x, like)


def check_floats(name: str, x: Any, like: Any, *shapes: Tuple[int, ...]) -> None:
    if x is None:
        return
    is_floats = isinstance(x, torch.Tensor) and x.is_floating_point()
    if not is_floats or tuple(x.shape) not in shapes:
        refuse(name, "floats of shape " + " or ".join(map(str, shapes)), _describe(x))
    _check_device(name, x, like)


def _check_device(name: str, x: Any, like: Any) -> None:
    if x.device != like.device:
        refuse(name, f"a tensor on {like.device}, as q is", str(x.device))


def read_window(window_size: Any, causal: bool) -> Window:
    """(left, right) with None for no bound; `causal` bounds the right."""
    is_pair = isinstance(window_size, (tuple, list)) and len(window_size) == 2
    if not is_pair or not all(side is None or isinstance(side, int) for side in window_size):
        refuse("window_size", "a pair of integers", repr(window_size))
    # Sums with positions fit 32 bits.
    is_bound = lambda side: side is not None and 0 <= side < 1 << 30  # noqa: E731
    left, right = (side if is_bound(side) else None for side in window_size)
    return left, 0 if causal else right


def read_margin(sm_margin: Any) -> Optional[Dict[str, int]]:
    """The options that leave so many multiprocessors to other kernels; None for none."""
    if isinstance(sm_margin, bool) or not isinstance(sm_margin, int) or not 0 <= sm_margin <= 1 << 20:
        refuse("sm_margin", "a number of multiprocessors", repr(sm_margin))
    return {"reserve": sm_margin} if sm_margin else None


def check_softcap(softcap: Any) -> float:
    if not isinstance(softcap, (int, float)) or not 0 <= softcap < math.inf:
        refuse("softcap", "0 or a bound of scores above it", repr(softcap))
    return float(softcap)


_UNITED = "attn computes one product for the scores"
# Arguments that change results and have no meaning here: what is expected, and what to do instead.
_REFUSED = {
    "qv": ("None", _UNITED + ": give q and qv, k and v as more columns of q and k"),
    "q_descale": ("None", "8-bit elements are not served; convert q"),
    "k_descale": ("None", "8-bit elements are not served; convert k"),
    "v_descale": ("None", "8-bit elements are not served; convert v"),
    "attention_chunk": (
        "0",
        "attn.attention(..., mask=) keeps chunks: (i + n) // size == j // size",
    ),
}


def refuse_others(given: Mapping[str, Any]) -> None:
    """Of arguments in the table, all but those that mean nothing."""
    for name, x in given.items():
        if x is None or (name == "attention_chunk" and x == 0):
            continue
        expected, hint = _REFUSED[name]
        refuse(name, expected, _describe(x) if isinstance(x, torch.Tensor) else repr(x), hint)
