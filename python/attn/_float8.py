"""Tensors of 16 or 32 bits as elements of 8 bits and scales, prepared so that little is lost."""

from __future__ import annotations

import importlib
import math
from typing import Any, Dict, Literal, NamedTuple, Tuple, Union

from . import _arrays
from ._library import refuse
from ._problem import is_rows_first
from .typing import Array, DType, Layout


class Float8(NamedTuple):
    """Elements of 8 bits and what `attn.attention` has to know of them."""

    q: Any
    k: Any
    v: Any
    how: Dict[str, Any]


def to_float8(
    q: Array,
    k: Array,
    v: Array,
    *,
    per: Union[Literal["tensor", "head"], int] = "head",
    smooth: bool = False,
    rotate: bool = False,
    dtype: DType = "float8_e4m3fn",
    layout: Layout = "bhsd",
) -> Float8:
    """Rounds queries, keys and values to 8 bits, with scales that use their whole range.

        prepared = attn.to_float8(q, k, v, smooth=True, rotate=True)
        output = attn.attention(*prepared[:3], causal=True, **prepared.how)

    Two of its preparations are exact: they change what is rounded, and not what is computed.

    Args:
        q: queries of PyTorch, float16, bfloat16 or float32, on any device.
        k: keys.
        v: values.
        per: which elements share a scale: those of a tensor, of a batch and head, or of as many rows of
            a head as this says. Values share one in a head at least.
        smooth: whether to subtract the mean of all keys of a head from each, which shifts all scores of
            a row alike. The weights stay; the logsumexp and score functions see other scores.
        rotate: whether to multiply queries and keys by a Hadamard matrix, which leaves their products and
            spreads columns that are larger than others. D is a power of two.
        dtype: float8_e4m3fn, or float8_e5m2.
        layout: "bhsd" or "bshd", as for `attn.attention`.

    Returns:
        A tuple of q, k and v in 8 bits and of `how`, the scales by the names of `attn.attention`.

    Raises:
        Error: an argument that does not fit.
    """
    if not all(_arrays.is_torch(x) for x in (q, k, v)):
        refuse("q, k and v", "PyTorch tensors", _arrays.describe_type(q))
    torch = importlib.import_module("torch")
    type_ = _arrays.type_name(dtype)
    if type_ not in ("f8E4M3FN", "f8E5M2"):
        refuse("dtype", "float8_e4m3fn or float8_e5m2", repr(dtype))
    narrow = getattr(torch, _arrays.NAMES_BY_TYPE[str(type_)])
    block = per if isinstance(per, int) and not isinstance(per, bool) else 0
    if per not in ("tensor", "head") and block < 1:
        refuse("per", '"tensor", "head" or a number of rows', repr(per))
    rows = 1 if is_rows_first(layout) else 2
    query, key, value = (x.float() for x in (q, k, v))  # type: ignore[attr-defined]
    if smooth:
        key = key - key.mean(dim=rows, keepdim=True)
    if rotate:
        query, key = _rotate(query), _rotate(key)
    query, q_scale = _round(query, narrow, rows, per, block)
    key, k_scale = _round(key, narrow, rows, per, block)
    value, v_scale = _round(value, narrow, rows, per, 0)
    how: Dict[str, Any] = {"q_descale": q_scale, "k_descale": k_scale, "v_descale": v_scale}
    if block:
        how["descale_block"] = block
    if layout != "bhsd":
        how["layout"] = layout
    return Float8(query, key, value, how)


def _rotate(x: Any) -> Any:
    """The last dimension times a Hadamard matrix whose rows have length 1: sums and differences of halves."""
    columns = x.shape[-1]
    if columns & (columns - 1):
        refuse("rotate", "a power of two as the head dimension", columns)
    torch = importlib.import_module("torch")
    shape, step = x.shape, 1
    while step < columns:
        pairs = x.reshape(*shape[:-1], columns // (2 * step), 2, step)
        first, second = pairs.unbind(-2)
        x = torch.stack((first + second, first - second), dim=-2).reshape(shape)
        step *= 2
    return x / math.sqrt(columns)


def _round(x: Any, dtype: Any, rows: int, per: Any, block: int) -> Tuple[Any, Any]:
    """(codes, scales) of a tensor whose rows are this dimension."""
    torch = importlib.import_module("torch")
    x = x if rows == 2 else x.transpose(1, 2)
    if block:
        count = -(-x.shape[2] // block)
        padded = torch.nn.functional.pad(x, (0, 0, 0, count * block - x.shape[2]))
        largest = padded.unflatten(2, (count, block)).abs().amax(dim=(3, 4))
    elif per == "tensor":
        largest = x.abs().amax().reshape(1, 1)
    else:
        largest = x.abs().amax(dim=(2, 3))
    # Zeros have any scale.
    scale = torch.where(largest > 0, largest / torch.finfo(dtype).max, torch.ones_like(largest))
    of_rows = scale.repeat_interleave(block, dim=2)[:, :, : x.shape[2]] if block else scale[..., None]
    codes = (x / of_rows[..., None]).to(dtype)
    return codes if rows == 2 else codes.transpose(1, 2), scale
