"""New keys and values, written into a cache by slots, and rotated first. A kernel takes plain arrays; others, and
what torch.compile traces, are PyTorch's operations. Nothing is read on the host, so a CUDA graph replays both for
other slots."""

from __future__ import annotations

import sys
from typing import Any, Literal, NamedTuple, Optional, Tuple, overload

from . import _append_kernel, _arrays
from ._library import refuse
from ._serving_how import check_layout, check_library
from .typing import Array, ArrayT

_FLOATS = ("f16", "bf16", "f32")


class Rotary(NamedTuple):
    """Rotations of pairs of columns, one for each position: the first R columns of D, and any even R.

    Attributes:
        cos: cosines, (positions, R / 2), floats.
        sin: sines, of the same shape.
        interleaved: pairs are columns 2 i and 2 i + 1 (GPT-J), not i and i + R / 2 (GPT-NeoX, Llama).
    """

    cos: Array
    sin: Array
    interleaved: bool = False


def _use(x: Any) -> Any:
    """NumPy or PyTorch, whose functions below have the same names."""
    return sys.modules["numpy" if _arrays.is_numpy(x) else "torch"]


def _to(x: Any, type_: str) -> Any:
    dtype = getattr(_use(x), type_)
    return x.astype(dtype) if _arrays.is_numpy(x) else x.to(dtype)


def _count_up(count: int, like: Any) -> Any:
    """int64 from 0 on, where `like` is."""
    if _arrays.is_numpy(like):
        return _use(like).arange(count)
    return _use(like).arange(count, device=like.device)


def _check(name: str, x: Any, rank: int, dims: str, like: Any, types: Tuple[str, ...]) -> None:
    """Of the library and device of `like`."""
    check_library(**{name: x})
    if _arrays.is_numpy(x) != _arrays.is_numpy(like):
        refuse(name, f"an array of the library of {type(like).__name__}", type(x).__name__)
    if len(x.shape) != rank:
        refuse(name, dims, f"shape {tuple(x.shape)}")
    if _arrays.type_name(x.dtype) not in types:
        refuse(name, " or ".join(_arrays.NAMES_BY_TYPE[type_] for type_ in types), x.dtype)
    if not _arrays.is_numpy(x) and x.device != like.device:
        refuse(name, f"a tensor on {like.device}", x.device)


def check_rotary(rotary: Any, columns: int, like: Any) -> None:
    """Raises Error for what cannot rotate rows of so many columns."""
    if not isinstance(rotary, Rotary):
        refuse("rotary", "attn.serving.Rotary(cos, sin)", type(rotary).__name__)
    cos, sin, interleaved = rotary
    for name, x in (("rotary.cos", cos), ("rotary.sin", sin)):
        _check(name, x, 2, "(positions, R / 2)", like, _FLOATS)
    if tuple(sin.shape) != tuple(cos.shape):
        refuse("rotary.sin", f"the shape of rotary.cos, {tuple(cos.shape)}", tuple(sin.shape))
    if not int(cos.shape[0]) or 2 * int(cos.shape[1]) > columns:
        refuse("rotary.cos", f"a position or more, of {columns // 2} columns at most", cos.shape)
    if not isinstance(interleaved, bool):
        refuse("rotary.interleaved", "a bool", repr(interleaved))


def rotate_rows(x: Any, positions: Any, rotary: Rotary) -> Any:
    """x (T, H, D), of which row t is at positions[t]."""
    xp, half = _use(x), int(rotary.cos.shape[1])
    index = _to(positions, "int64").clip(0, int(rotary.cos.shape[0]) - 1)
    tables: Tuple[Any, Any] = (rotary.cos, rotary.sin)
    cos, sin = (_to(y[index], "float32")[:, None] for y in tables)
    turned, rest = x[..., : 2 * half], x[..., 2 * half :]
    if rotary.interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned[..., :half], turned[..., half:]
    first, second = _to(first, "float32"), _to(second, "float32")
    pair = first * cos - second * sin, second * cos + first * sin
    if rotary.interleaved:
        turned = xp.stack(pair, -1).reshape(turned.shape)
    else:
        turned = xp.concatenate(pair, -1)
    turned = turned.astype(x.dtype) if _arrays.is_numpy(x) else turned.to(x.dtype)
    return xp.concatenate([turned, rest], -1) if int(rest.shape[-1]) else turned


def rotate(x: ArrayT, positions: Array, rotary: Rotary) -> ArrayT:
    """Rotary embedding: x (T, H, D) with the first R columns of each row rotated.

    Args:
        x: queries or keys, (T, H, D), float32, float16 or bfloat16.
        positions: (T,), int32 or int64. One outside of the table is taken for the nearest in it.
        rotary: cosines and sines of each position, and which columns are a pair.

    Returns:
        A new array of the type, library and device of x. Products are in float32 and rounded once. Gradients
        are rotated back.

    Raises:
        Error: an argument that does not fit, by its name.
    """
    _check("x", x, 3, "(T, H, D)", x, _FLOATS)
    _check_numbers("positions", positions, x)
    check_rotary(rotary, int(x.shape[2]), x)
    return _rotate(x, positions, rotary)


def _rotate(x: Any, positions: Any, rotary: Rotary) -> Any:
    """By a kernel where it takes the rows."""
    turns = bool(int(rotary.cos.shape[1]))
    if not turns or not _append_kernel.has_kernel(x, positions, tables=rotary[:2]):
        return rotate_rows(x, positions, rotary)
    turned = _arrays.empty_like(x, None, tuple(x.shape))
    _append_kernel.run(x, None, (positions, *rotary), turned)
    return turned


def _check_numbers(name: str, numbers: Any, rows: Any) -> None:
    """An integer for each row."""
    _check(name, numbers, 1, "(T,)", rows, ("i32", "i64"))
    if int(numbers.shape[0]) != int(rows.shape[0]):
        refuse(name, f"one for each of {int(rows.shape[0])} rows", int(numbers.shape[0]))


def _check_cache(name: str, cache: Any, new: Any, new_name: str, is_rows_first: bool) -> None:
    dims = "(Np, P, Hkv, D)" if is_rows_first else "(Np, Hkv, P, D)"
    _check(name, cache, 4, dims, new, _FLOATS)
    wanted = int(cache.shape[2 if is_rows_first else 1]), int(cache.shape[3])
    if tuple(new.shape[1:]) != wanted or new.dtype != cache.dtype:
        got = f"{new.dtype} of shape {tuple(new.shape)}"
        refuse(new_name, f"{cache.dtype} of shape (T, {wanted[0]}, {wanted[1]}), as {name} has", got)


def write_rows(caches: Tuple[Any, Any], news: Tuple[Any, Any], slots: Any) -> None:
    """caches (Np, P, Hkv, D) and (Np, P, Hkv, Dv), of any strides; news (T, Hkv, D) and (T, Hkv, Dv). A slot
    outside of the caches is skipped.

    A row without a slot is written where the first row that has one is, and as that one. So a place that is
    written twice gets the same number twice, and nobody counts rows."""
    num_pages, page = int(caches[0].shape[0]), int(caches[0].shape[1])
    count = int(slots.shape[0])
    if not num_pages * page or not count:
        return
    slots = _to(slots, "int64")
    exists = (slots >= 0) & (slots < num_pages * page)
    if _arrays.is_numpy(slots):
        slots = slots[exists]
        for cache, new in zip(caches, news):
            cache[slots // page, slots % page] = new[exists]
        return
    torch = _use(slots)
    # Of several that are largest, argmax finds any one.
    first = exists.int().argmax(0, keepdim=True)
    index = torch.where(exists, _count_up(count, slots), first)
    slots = slots.index_select(0, index).clip(0, num_pages * page - 1)
    at, row = slots // page, slots % page
    # Where no row has a slot, memory keeps what it holds.
    is_any = exists.any().expand(count)[:, None, None]
    for cache, new in zip(caches, news):
        rows = torch.where(is_any, new.index_select(0, index), cache[at, row])
        cache.index_put_((at, row), rows)


def find_slots(
    cache_seqlens: ArrayT,
    cu_seqlens: ArrayT,
    total: int,
    *,
    page_size: int,
    page_table: Optional[ArrayT] = None,
) -> Tuple[ArrayT, ArrayT]:
    """Where `append` writes new keys of sequences: after those that each one has.

    New key t belongs to the sequence b with cu_seqlens[b] <= t < cu_seqlens[b + 1]. Its position there is
    cache_seqlens[b] + t - cu_seqlens[b].

    Args:
        cache_seqlens: (B,), int32 or int64: how many keys each sequence has before.
        cu_seqlens: (B + 1,), int32 or int64, the offsets of the new keys.
        total: T, how many new keys there are, those of no sequence included.
        page_size: P, the rows of a page. In a contiguous cache (B, S, Hkv, D) it is S.
        page_table: (B, C), int32 or int64; None for a contiguous cache, whose batch b is page b.

    Returns:
        (slots, positions), int64 (T,). A key of no sequence, or beyond the pages of its sequence, has slot
        -1. The contents of tensors are not looked at.

    Raises:
        Error: an argument that does not fit, by its name.
    """
    for name, x in (("cache_seqlens", cache_seqlens), ("cu_seqlens", cu_seqlens)):
        _check(name, x, 1, "(B,)" if x is cache_seqlens else "(B + 1,)", cache_seqlens, ("i32", "i64"))
    count = int(cache_seqlens.shape[0])
    if int(cu_seqlens.shape[0]) != count + 1:
        refuse("cu_seqlens", f"{count + 1} offsets", int(cu_seqlens.shape[0]))
    for name, number, least in (("total", total, 0), ("page_size", page_size, 1)):
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            refuse(name, f"an integer of {least} or more", repr(number))
    if page_table is not None:
        _check("page_table", page_table, 2, "(B, C)", cache_seqlens, ("i32", "i64"))
        if int(page_table.shape[0]) != count:
            refuse("page_table", f"{count} rows, as cache_seqlens has", int(page_table.shape[0]))
    return find_places(cache_seqlens, cu_seqlens, total, page_size, page_table)


def find_positions(lengths: Any, offsets: Any, total: int) -> Tuple[Any, Any, Any]:
    """Of rows after those that each sequence has, (T,): its sequence, its position there, and whether it has
    one. There is a sequence."""
    row, count = _count_up(total, lengths), int(lengths.shape[0])
    ends = _to(offsets, "int64")
    # Sequences without rows are passed over.
    if _arrays.is_numpy(lengths):
        sequence = _use(lengths).searchsorted(ends[1:], row, side="right")
    else:
        sequence = _use(lengths).searchsorted(ends[1:].contiguous(), row, right=True)
    exists = (sequence < count) & (row >= ends[0])
    sequence = sequence.clip(0, count - 1)
    return sequence, _to(lengths, "int64")[sequence] + row - ends[sequence], exists


def find_places(lengths: Any, offsets: Any, total: int, page: int, table: Any) -> Tuple[Any, Any]:
    """As `find_slots`, of what is checked."""
    xp, row = _use(lengths), _count_up(total, lengths)
    columns = 1 if table is None else int(table.shape[1])
    if not int(lengths.shape[0]) or not columns:
        return xp.full_like(row, -1), xp.zeros_like(row)
    sequence, position, exists = find_positions(lengths, offsets, total)
    exists = exists & (position >= 0) & (position < columns * page)
    column = (position // page).clip(0, columns - 1)
    at = sequence if table is None else _to(table[sequence, column], "int64")
    slots = xp.where(exists & (at >= 0), at * page + position % page, xp.full_like(row, -1))
    return slots, xp.where(exists, position, xp.zeros_like(row))


@overload
def append(
    k: Array,
    v: Array,
    k_cache: Array,
    v_cache: Array,
    slots: Array,
    *,
    kv_layout: Literal["NHD", "HND"] = "NHD",
    rotary: Optional[Rotary] = None,
    positions: Optional[Array] = None,
    q: None = None,
) -> None: ...


@overload
def append(
    k: Array,
    v: Array,
    k_cache: Array,
    v_cache: Array,
    slots: Array,
    *,
    kv_layout: Literal["NHD", "HND"] = "NHD",
    rotary: Rotary,
    positions: Array,
    q: ArrayT,
) -> ArrayT: ...


def append(
    k: Array,
    v: Array,
    k_cache: Array,
    v_cache: Array,
    slots: Array,
    *,
    kv_layout: Literal["NHD", "HND"] = "NHD",
    rotary: Optional[Rotary] = None,
    positions: Optional[Array] = None,
    q: Optional[ArrayT] = None,
) -> Optional[ArrayT]:
    """Writes new keys and values into a cache, each where its slot says.

    Slot n is row n % P of page n // P. A contiguous cache (B, S, Hkv, D) is one whose pages are its
    batches: there slot b * S + n is key n of batch b. `find_slots` makes slots of lengths and a table.

        slots, positions = attn.serving.find_slots(lengths, cu, len(k), page_size=16, page_table=table)
        q = attn.serving.append(k, v, k_cache, v_cache, slots, rotary=rotary, positions=positions, q=q)

    Args:
        k: new keys, (T, Hkv, D), in the type of the cache.
        v: new values, (T, Hkv, Dv).
        k_cache: (Np, P, Hkv, D), of any strides.
        v_cache: (Np, P, Hkv, Dv).
        slots: (T,), int32 or int64. A slot outside of 0 to Np * P - 1 is skipped. If two are equal,
            one of their rows is written; on a GPU each element is that of one of them.
        kv_layout: "NHD" as above, or "HND": caches are (Np, Hkv, P, D).
        rotary: if given, the keys that are written are rotated (`rotate`); values are not.
        positions: (T,), int32 or int64, the position of each key; with rotary alone.
        q: queries of the same rows, (T, H, D), to be rotated too; with rotary alone.

    Returns:
        The rotated q, with its gradient, or None without q. Nothing is recorded of what is written.

    Raises:
        Error: an argument that does not fit, by its name. The contents of slots and positions are not
            looked at.
    """
    is_rows_first = check_layout(kv_layout)
    for name, x, cache in (("k", k, k_cache), ("v", v, v_cache)):
        _check(name, x, 3, "(T, Hkv, D)", k, _FLOATS)
        _check_cache(f"{name}_cache", cache, x, name, is_rows_first)
    rows = (0, 1) if is_rows_first else (0, 2)
    if any(int(v_cache.shape[i]) != int(k_cache.shape[i]) for i in rows):
        wanted = tuple(int(k_cache.shape[i]) for i in rows)
        refuse("v_cache", f"as many pages and rows as k_cache, {wanted}", tuple(v_cache.shape))
    if int(v.shape[0]) != int(k.shape[0]):
        refuse("v", f"as many rows as k, {int(k.shape[0])}", int(v.shape[0]))
    _check_numbers("slots", slots, k)
    for name, given in (("positions", positions), ("q", q)):
        if given is not None and rotary is None:
            refuse(name, "None without rotary", "one")
    if rotary is not None:
        check_rotary(rotary, int(k.shape[2]), k)
        if positions is None:
            refuse("positions", "one for each row, with rotary", None)
        _check_numbers("positions", positions, k)
    if q is not None:
        _check("q", q, 3, "(T, H, D)", k, _FLOATS)
        if int(q.shape[0]) != int(k.shape[0]) or int(q.shape[2]) != int(k.shape[2]):
            refuse("q", f"rows and columns of k, {tuple(k.shape)}", tuple(q.shape))
    return _append(k, v, (k_cache, v_cache), slots, is_rows_first, (rotary, positions, q))


def _append(
    k: Any, v: Any, caches: Tuple[Any, Any], slots: Any, is_rows_first: bool, turn: Tuple
) -> Any:
    rotary, positions, q = turn
    if not _arrays.is_numpy(k) and _use(k).is_grad_enabled():
        with _use(k).no_grad():
            _append(k, v, caches, slots, is_rows_first, (rotary, positions, None))
        return None if q is None else _rotate(q, positions, rotary)
    pools = caches if is_rows_first else (_arrays.swap(caches[0]), _arrays.swap(caches[1]))
    turns = rotary is not None and bool(int(rotary.cos.shape[1]))
    numbers, tables = ([slots, positions], rotary[:2]) if rotary and turns else ([slots], ())
    takes = _append_kernel.has_kernel
    if takes(k, *numbers, tables=tables, out=pools[0]) and takes(v, slots, out=pools[1]):
        _append_kernel.run(k, slots, (positions, *rotary) if turns else None, pools[0])
        _append_kernel.run(v, slots, None, pools[1])
    else:
        if rotary is not None:
            k = rotate_rows(k, positions, rotary)
        write_rows(pools, (k, v), slots)
    return None if q is None else _rotate(q, positions, rotary)
