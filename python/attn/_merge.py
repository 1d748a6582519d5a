"""merge: attention to parts of the keys, joined into attention to all of them."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple, Union

from . import _arrays, _dynamo, _foreign
from ._library import Kernel, refuse
from ._places import MOST_BLOCKS, get_ordinal, name_device
from ._plan import remember
from ._problem import is_rows_first
from ._tensors import Tensors
from .typing import ArrayT, Layout

_TYPES = ("f16", "bf16", "f32")
_kernels: Dict[Tuple[str, int, int, str], Kernel] = {}


def _list_parts(name: str, parts: Any) -> List[Any]:
    """One array of each part."""
    if not _arrays.is_array(parts):
        try:
            parts = list(parts)
        except TypeError:
            refuse(name, "a sequence of arrays, or one array (S, ...)", type(parts).__name__)
        for x in parts:
            if not _arrays.is_array(x):
                refuse(name, "arrays", type(x).__name__)
    elif not len(parts.shape):
        refuse(name, "a dimension of parts", "an array without dimensions")
    parts = [parts[i] for i in range(len(parts))]
    if not parts:
        refuse(name, "a part or more", "none")
    return parts


def _check(outputs: List[Any], lses: List[Any], rows_first: bool) -> None:
    if len(lses) != len(outputs):
        refuse("lses", f"{len(outputs)} parts, as outputs has", len(lses))
    first = outputs[0]
    shape, rank = tuple(first.shape), len(first.shape)
    if not 2 + rows_first <= rank <= 4:
        refuse("outputs", "parts (B, H, M, Dv), (T, H, Dv) or (M, Dv)", f"shape {shape}")
    if _arrays.type_name(first.dtype) not in _TYPES:
        refuse("outputs", "float16, bfloat16 or float32", first.dtype)
    if not shape[-1]:
        refuse("outputs", "a column or more", f"shape {shape}")
    is_numpy, rows = _arrays.is_numpy(first), shape[:-1]
    if rows_first:
        rows = *rows[:-2], rows[-1], rows[-2]
    wanted = ("outputs", outputs, shape, first.dtype), ("lses", lses, rows, "float32")
    for name, parts, extents, dtype in wanted:
        type_ = _arrays.type_name(dtype)
        for x in parts:
            if _arrays.is_numpy(x) != is_numpy:
                refuse(name, "arrays of one library", _arrays.describe_type(x))
            if tuple(x.shape) != extents or _arrays.type_name(x.dtype) != type_:
                got = f"{x.dtype} of shape {tuple(x.shape)}"
                refuse(name, f"parts of {dtype} and shape {extents}", got)
            if not is_numpy and x.device != first.device:
                refuse(name, f"tensors on {first.device}, as outputs[0] is", x.device)


def _write(type_: str, rank: int, columns: int) -> str:
    """The function of parts (S, ..., Dv) and (S, ...) f32; `rank` is that of an output."""
    rows = "x".join("?" * (rank - 1))
    output, lse = f"tensor<{rows}x{columns}x{type_}>", f"tensor<{rows}xf32>"
    partial, partial_lse = f"tensor<?x{rows}x{columns}x{type_}>", f"tensor<?x{rows}xf32>"
    lines = [f"func.func @merge(%p: {partial}, %l: {partial_lse}) -> ({output}, {lse}) {{"]
    for i in range(1, rank):
        lines.append(f"  %c{i} = arith.constant {i} : index")
        lines.append(f"  %d{i} = tensor.dim %p, %c{i} : {partial}")
    dims = ", ".join(f"%d{i}" for i in range(1, rank))
    lines += [
        f"  %o = tensor.empty({dims}) : {output}",
        f"  %e = tensor.empty({dims}) : {lse}",
        f"  %r:2 = attn.merge %p, %l outs(%o, %e) : {partial}, {partial_lse}, {output}, {lse} "
        f"-> {output}, {lse}",
        f"  return %r#0, %r#1 : {output}, {lse}",
        "}",
        "",
    ]
    return "\n".join(lines)


def _stack(parts: List[Any]) -> Any:
    if _arrays.is_numpy(parts[0]):
        import numpy

        # Parts that are turned alike would be stacked so.
        return numpy.ascontiguousarray(numpy.stack(parts))
    return _arrays.find_torch().stack(parts)


def _swap(extents: Sequence[int]) -> Tuple[int, ...]:
    """(.., M, H, Dv) as (.., H, M, Dv)."""
    return (*extents[:-3], extents[-2], extents[-3], extents[-1])


def _run(outputs: List[Any], lses: List[Any], rows_first: bool) -> Tuple[Any, Any]:
    """By a kernel, of the CPU or of the GPU where the parts are."""
    first, like = outputs[0], lses[0]
    shape = tuple(first.shape)
    type_ = _arrays.type_name(first.dtype) or ""
    output = _arrays.empty_like(first, None, shape)
    lse = _arrays.empty_like(first, "f32", tuple(like.shape))
    if 0 in shape:
        return output, lse
    ordinal = get_ordinal(first)
    key = type_, len(shape), shape[-1], name_device(ordinal)
    kernel = _kernels.get(key)
    if kernel is None:
        kernel = Kernel(_write(*key[:3]), (("device", key[3]),))
        remember(_kernels, key, kernel)
    tensors = Tensors(kernel)
    stacked = _stack(outputs), _stack(lses)
    matrices, rows = (stacked[0], output), (stacked[1], lse)
    for (matrix, row), name in zip(zip(matrices, rows), ("outputs", "out")):
        address, extents, strides = _arrays.view(matrix, name, ordinal)
        if rows_first:
            extents, strides = _swap(extents), _swap(strides)
        tensors.add(address, extents, strides, type_, ordinal)
        tensors.add(*_arrays.view(row, "lses", ordinal), "f32", ordinal)
    tensors.run()
    return output, lse


def _compose(outputs: List[Any], lses: List[Any], rows_first: bool) -> Tuple[Any, Any]:
    """By PyTorch's operations, which autograd and torch.compile know."""
    torch = _arrays.find_torch()
    lse = torch.stack(lses)
    values = lse.detach()
    top = values.amax(0)
    is_finite = top.isfinite()
    # Parts of +inf, or of -inf alone, weigh the same; NaN stays.
    other = torch.where(values == top, torch.zeros_like(top), -top.abs())
    shifted = torch.where(is_finite, lse - torch.where(is_finite, top, 0.0), other)
    weights = shifted.exp()
    total = weights.sum(0)
    merged = torch.where(is_finite, torch.where(is_finite, top, 0.0) + total.log(), top)
    weights = weights / total
    is_read = values != -torch.inf
    if rows_first:
        weights, is_read = weights.transpose(-1, -2), is_read.transpose(-1, -2)
    sums: Any = 0.0
    for part, weight, kept in zip(outputs, weights, is_read):
        sums = sums + weight[..., None] * torch.where(kept[..., None], part.float(), 0.0)
    return sums.to(outputs[0].dtype), merged


def _fits_gpu(shape: Tuple[int, ...], rows_first: bool) -> bool:
    """Whether kernels of a GPU have such columns, and a grid such batches and heads. Rows are as many as
    there are."""
    rows = len(shape) - (3 if rows_first else 2)
    fits = all(x <= MOST_BLOCKS for i, x in enumerate(shape[:-1]) if i != rows)
    return fits and shape[-1] % 8 == 0


def _has_kernel(outputs: List[Any], lses: List[Any], rows_first: bool) -> bool:
    """Whether a kernel may take the parts: there is one, and nobody looks at what becomes of them."""
    first = outputs[0]
    if _arrays.is_numpy(first):
        return True
    if _dynamo.is_compiling() or first.device.type not in ("cpu", "cuda"):
        return False
    if first.device.type == "cuda" and not _fits_gpu(tuple(first.shape), rows_first):
        return False
    return not _arrays.is_watched(first, lses[0], first, *outputs, *lses)


def merge(
    outputs: Union[ArrayT, Sequence[ArrayT]],
    lses: Union[ArrayT, Sequence[ArrayT]],
    *,
    layout: Layout = "bhsd",
) -> Tuple[ArrayT, ArrayT]:
    """Attention to all keys, from attention to each of several parts of them.

    `outputs` and `lses` are what `attention(..., return_lse=True)` gave for the same queries and for
    keys that no other part has. One part at most has the sink. With PyTorch, all of them have gradients.

        merged, lse = attn.merge([o_prefix, o_suffix], [lse_prefix, lse_suffix])

    Args:
        outputs: a sequence of arrays (B, H, M, Dv), (T, H, Dv) or (M, Dv), or one array (S, ...) of S
            parts. float16, bfloat16 or float32.
        lses: natural logarithms of the sums, float32, of the same shapes without the last dimension. A
            part of -inf kept no key: its output is not read, and may be NaN.
        layout: "bhsd", or "bshd" for outputs (B, M, H, Dv) or (T, H, Dv) whose lses are (B, H, M) or
            (H, T).

    Returns:
        (output, lse) in the type, library and device of the parts. A row that no part kept a key
        for gives 0 and -inf. Sums are in float32 and rounded once.

    Raises:
        Error: an argument that does not fit.
    """
    rows_first = is_rows_first(layout)
    given = _list_parts("outputs", outputs)
    parts = [_foreign.import_array(x, "outputs") for x in given]
    sums = [_foreign.import_array(x, "lses") for x in _list_parts("lses", lses)]
    _check(parts, sums, rows_first)
    run = _run if _has_kernel(parts, sums, rows_first) else _compose
    return _foreign.export(run(parts, sums, rows_first), given[0])
