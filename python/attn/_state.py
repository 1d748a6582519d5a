"""attention that starts from the state of a softmax over other keys."""

from __future__ import annotations

from typing import Any, Callable, Tuple

from . import _arrays, _dynamo
from ._library import refuse
from ._merge import merge


def _read(state: Any, q: Any, v: Any, rows_first: bool) -> Tuple[Any, Any]:
    """(output, lse) of keys before, or an Error that says what they should be."""
    if not isinstance(state, (tuple, list)) or len(state) != 2:
        refuse("state", "(output, lse)", type(state).__name__)
    output, lse = state
    rows = tuple(q.shape[:-1])
    wanted = (*rows, v.shape[-1])
    for name, x, shape in (
        ("state[0]", output, wanted),
        ("state[1]", lse, (rows[0], rows[2], rows[1]) if rows_first else rows),
    ):
        if not _arrays.is_array(x):
            refuse(name, f"float32 of shape {shape}", type(x).__name__)
        if _arrays.type_name(x.dtype) != "f32" or tuple(x.shape) != shape:
            refuse(name, f"float32 of shape {shape}", f"{x.dtype} of shape {tuple(x.shape)}")
    return output, lse


def attend_from(
    state: Any, attend: Callable[..., Any], q: Any, k: Any, v: Any, return_lse: bool, how: Any
) -> Any:
    """`attend` is attn.attention, and `how` its arguments but for the state and return_lse."""
    output, lse = _read(state, q, v, how["layout"] == "bshd")
    out_dtype = how.pop("out_dtype")
    if hasattr(q, "get_device") and not _dynamo.is_compiling() and _arrays.is_autocast():
        q, k, v = _arrays.cast(q, k, v)
    found = attend(q, k, v, return_lse=True, out_dtype="float32", **how)
    merged, total = merge([output, found[0]], [lse, found[1]], layout=how["layout"])
    merged = _round(merged, q, out_dtype)
    return (merged, total) if return_lse else merged


def _round(x: Any, q: Any, out_dtype: Any) -> Any:
    """In the type of the output."""
    type_ = _arrays.type_name(q.dtype if out_dtype is None else out_dtype)
    if type_ not in (_arrays.type_name(q.dtype), "f32"):
        refuse("out_dtype", f"{q.dtype} or float32", repr(out_dtype))
    if type_ == "f32":
        return x
    return x.to(q.dtype) if _arrays.is_torch(x) else x.astype(q.dtype)
