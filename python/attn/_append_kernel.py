"""The kernels of `append` and `rotate`: attn.append and attn.rotary, for arrays that they take as they are."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from . import _arrays, _dynamo
from ._library import Kernel
from ._places import MOST_BLOCKS, get_ordinal, name_device
from ._plan import remember
from ._tensors import Tensors

_kernels: Dict[Tuple, Kernel] = {}


def _is_dense(x: Any) -> bool:
    """Whether kernels read it: its last elements lie next to each other, and there is one."""
    if _arrays.is_numpy(x):
        return bool(x.size) and x.strides[-1] == x.itemsize and x.flags.aligned
    return bool(x.numel()) and x.stride(-1) == 1


def has_kernel(rows: Any, *others: Any, tables: Tuple = (), out: Any = None) -> bool:
    """Whether kernels take these rows, numbers, tables (cos, sin) and cache: nobody looks at what becomes of them."""
    given = [rows, *others, *tables, *(() if out is None else (out,))]
    if tables and tables[0].dtype != tables[1].dtype:
        return False
    if out is not None and _arrays.is_numpy(out) and not out.flags.writeable:
        return False
    if not _arrays.is_numpy(rows):
        if _dynamo.is_compiling() or rows.device.type not in ("cpu", "cuda"):
            return False
        if rows.device.type == "cuda" and (rows.shape[-1] % 8 or rows.shape[1] > MOST_BLOCKS):
            return False
        if _arrays.is_watched(rows, rows, rows, *given):
            return False
    return all(_is_dense(x) for x in given)


def _name(x: Any) -> str:
    """The type of its elements."""
    return _arrays.type_name(x.dtype) or ""


def _write(
    rows: Tuple[str, int], numbers: Optional[str], table: Optional[Tuple[str, str, int]], style: str
) -> str:
    """The function of rows (T, H, D), the types of slots, of positions and of tables with so many pairs."""
    type_, columns = rows
    source = f"tensor<?x?x{columns}x{type_}>"
    result = f"tensor<?x?x?x{columns}x{type_}>" if numbers else source
    slots = f"tensor<?x{numbers}>"
    given = [f"%x: {source}"] + ([f"%slots: {slots}"] if numbers else [])
    turn = ""
    if table:
        at, angles = f"tensor<?x{table[0]}>", f"tensor<?x{table[2]}x{table[1]}>"
        given += [f"%at: {at}", f"%cos: {angles}", f"%sin: {angles}"]
        turn = f"rotary(%at, %cos, %sin : {at}, {angles}, {angles}) {style}"
    if numbers:
        given += ["%pages: tensor<?xi8>", "%rows: tensor<?xi8>"]
    sizes = [("%pages", 0, "tensor<?xi8>"), ("%rows", 0, "tensor<?xi8>")] if numbers else [("%x", 0, source)]
    sizes.append(("%x", 1, source))
    lines = [f"func.func @{'append' if numbers else 'rotate'}({', '.join(given)}) -> {result} {{"]
    lines += [f"  %c{i} = arith.constant {i} : index" for i in range(2)]
    for i, (like, dim, like_type) in enumerate(sizes):
        lines.append(f"  %d{i} = tensor.dim {like}, %c{dim} : {like_type}")
    dims = ", ".join(f"%d{i}" for i in range(len(sizes)))
    lines.append(f"  %e = tensor.empty({dims}) : {result}")
    if numbers:
        op = f"attn.append %x[%slots] {turn} into %e : {source}, {slots}, {result}"
    else:
        op = f"attn.rotary %x at %at by %cos, %sin {style} outs(%e) : {source}, {at}, {angles}, {angles}, {result}"
    return "\n".join([*lines, f"  %r = {op} -> {result}", f"  return %r : {result}", "}", ""])


def run(rows: Any, slots: Any, turn: Optional[Tuple[Any, Any, Any, bool]], out: Any) -> None:
    """Rows (T, H, D) into `out`: pages (Np, P, H, D) where there are slots, else (T, H, D). `turn` is positions,
    cos, sin and whether pairs are next to each other."""
    ordinal = get_ordinal(rows)
    style = "interleaved" if turn and turn[3] else ""
    table = (_name(turn[0]), _name(turn[1]), int(turn[1].shape[1])) if turn else None
    numbers = _name(slots) if slots is not None else None
    key = (_name(rows), int(rows.shape[-1])), numbers, table, style
    device = name_device(ordinal)
    kernel = _kernels.get((*key, device))
    if kernel is None:
        kernel = Kernel(_write(*key), (("device", device),))
        remember(_kernels, (*key, device), kernel)
    arrays: List[Tuple[str, Any]] = [("rows", rows)]
    if slots is not None:
        arrays.append(("slots", slots))
    if turn:
        arrays += [("positions", turn[0]), ("rotary.cos", turn[1]), ("rotary.sin", turn[2])]
    tensors = Tensors(kernel)
    for what, array in arrays:
        tensors.add(*_arrays.view(array, what, ordinal), _name(array), ordinal)
    if slots is not None:
        # The sizes of the cache alone, which nothing reads.
        address = _arrays.view(rows, "rows", ordinal)[0]
        for count in out.shape[:2]:
            tensors.add(address, (int(count),), (0,), "i8", ordinal)
    tensors.add(*_arrays.view(out, "cache", ordinal), _name(out), ordinal)
    tensors.run()
