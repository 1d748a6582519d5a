"""Where the rows and keys of a call stand in the whole that it is a part of, as arrays that kernels read."""

from __future__ import annotations

import functools
import operator
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import _arrays, _dynamo, _foreign
from ._library import refuse

# For b, h, m and n: "own" is the position in the call, "origin" counts from a number on, and "table" is
# what an array says. The words of #attn.positions.
Kinds = Tuple[str, str, str, str]
Interval = Tuple[int, int]

KINDS = ("own", "origin", "table")
# Names of the captured arrays, of those of b, h, m and n that are not "own", and of M and N of the whole.
_NAMES = ("batch_positions", "head_positions", "row_positions", "key_positions")
TOTAL = "total"
# What the analysis of masks takes positions to be below.
_MOST = 1 << 28


class Placed(NamedTuple):
    """Positions of one call."""

    kinds: Kinds
    # In the order of `list_names`: int32, where q is.
    arrays: List[Any]


class Shape(NamedTuple):
    """What a kernel is compiled for that is given positions later."""

    shape: Tuple[int, ...]
    dtype: str = "int32"


def list_names(kinds: Kinds) -> List[str]:
    return [name for name, kind in zip(_NAMES, kinds) if kind != "own"] + [TOTAL]


def list_least(kinds: Kinds) -> List[int]:
    """The fewest elements of each array; calls compare tables with their rows and keys."""
    return [1 if kind == "origin" else 0 for kind in kinds if kind != "own"] + [2]


def count_elements(kinds: Optional[Kinds], counts: Tuple[int, int]) -> Dict[str, int]:
    """Of the arrays of a call with so many rows and keys, by name."""
    if kinds is None:
        return {}
    extents = {"row_positions": counts[0], "key_positions": counts[1]}
    found = zip(_NAMES, kinds)
    tables = {name: extents.get(name, 1) if kind == "table" else 1 for name, kind in found}
    return {**tables, TOTAL: 2}


def make_shapes(kinds: Kinds) -> List[Shape]:
    return [Shape((extent,)) for extent in list_least(kinds)]


def check_kinds(positions: Any) -> Optional[Kinds]:
    """Of `compile` and `explain`: (rows, keys), each None, "origin" or "table", or what a call gives."""
    if positions is None:
        return None
    return ("own", "own", *(_find_kind(x) for x in check_pair(positions)))  # type: ignore[return-value]


def _find_kind(x: Any) -> str:
    if x is None:
        return "own"
    if isinstance(x, str):
        if x not in KINDS:
            refuse("positions", 'None, "origin" or "table" for rows and for keys', repr(x))
        return x
    if _arrays.is_array(x):
        return "table" if len(x.shape) else "origin"
    if isinstance(x, (list, tuple)):
        return "table" if len(_join(x)) > 1 else "origin"
    return "origin"


# ===- Calls ------------------------------------------------------------------------------------===#


def find_placed(given: Tuple[Any, Any], q: Any, k: Any, rows_first: bool) -> Placed:
    """Of `positions` and `total` of a call, of which one is not None."""
    positions, total = given
    pair = (None, None) if positions is None else check_pair(positions)
    for name, x in (("q", q), ("k", k)):
        if len(getattr(x, "shape", ())) != 4:
            refuse(name, "4 dimensions", _arrays.describe_type(x))
    dim = 1 if rows_first else 2
    counts = q.shape[dim], k.shape[dim]
    whole = check_total(total, pair, counts)
    sizes = zip(("rows", "keys"), counts, whole)
    parts = [Part(name, count, most, q) for name, count, most in sizes]
    kinds, arrays = place_parts(parts, pair, _place)
    return Placed(kinds, [*arrays, make_numbers(whole, q)])


def place_parts(
    parts: List[Part], pair: Tuple[Any, Any], place: Callable[[Part, Any], Tuple[str, Any]]
) -> Tuple[Kinds, List[Any]]:
    """The kinds of b, h, rows and keys, and the arrays of those that have one: `place` says both of a part."""
    found = [place(part, x) for part, x in zip(parts, pair)]
    kinds = "own", "own", *[kind for kind, _ in found]
    return kinds, [array for _, array in found if array is not None]  # type: ignore[return-value]


def match_kinds(placed: Placed, kinds: Kinds, counts: Tuple[int, int]) -> Placed:
    """The same positions for a kernel that was compiled for these kinds: what is an interval can be said
    by a table, whose extents are `counts`."""
    if placed.kinds == kinds:
        return placed
    arrays, found = iter(placed.arrays), []
    for name, kind, wanted, count in zip(("rows", "keys"), placed.kinds[2:], kinds[2:], counts):
        array = None if kind == "own" else next(arrays)
        if kind == wanted:
            found.append(array)
        elif wanted == "own" or kind == "table":
            words = {"own": "None", "origin": "an origin or one interval", "table": "a table"}
            hint = f'compile with positions that have "{kind}" for {name}'
            refuse("positions", f"{words[wanted]} for {name}, as the kernel was compiled", words[kind], hint)
        else:
            found.append(_make_own(wanted, array, count, placed.arrays[-1]))
    return Placed(kinds, [*[x for x in found if x is not None], placed.arrays[-1]])


def _make_own(wanted: str, origin: Any, count: int, like: Any) -> Any:
    """An origin, which is 0 if None, as what a kernel wants."""
    first = make_numbers((0,), like) if origin is None else origin
    if wanted == "origin":
        return first
    return first + make_range(0, count, like)


def check_pair(positions: Any) -> Tuple[Any, Any]:
    if not isinstance(positions, (tuple, list)) or len(positions) != 2:
        got = _arrays.describe_type(positions) if _arrays.is_array(positions) else repr(positions)
        refuse("positions", "(rows, keys)", got, "None for those that are the call's own")
    return positions[0], positions[1]


def to_int(x: Any) -> Any:
    """An integer of any library; None for anything else. While Dynamo traces, it may be a symbol."""
    if isinstance(x, int) and not isinstance(x, bool):
        return x
    if isinstance(x, (bool, str)) or _arrays.is_array(x) or not hasattr(x, "__index__"):
        return x if type(x).__name__ == "SymInt" else None
    try:
        return operator.index(x)
    except TypeError:
        return None


def check_total(total: Any, pair: Tuple[Any, Any], counts: Tuple[int, int]) -> Tuple[int, int]:
    if total is None:
        if pair[0] is not None or pair[1] is not None:
            refuse("total", "(M, N), the rows and keys of the whole, beside positions", "None")
        return counts
    whole = [to_int(x) for x in total] if isinstance(total, (tuple, list)) else []
    if len(whole) != 2 or any(x is None or not 0 <= x <= _MOST for x in whole):
        refuse("total", "(M, N), the rows and keys of the whole, up to 2^28", repr(total))
    for name, x, count, most in zip(("rows", "keys"), pair, counts, whole):
        if x is None and count > most:
            refuse("total", f"{count} {name} or more, as the call has", most)
    return whole[0], whole[1]


class Part(NamedTuple):
    """The rows or the keys of a call."""

    name: str
    extent: int
    # How many the whole has.
    most: int
    q: Any


def _place(part: Part, x: Any) -> Tuple[str, Any]:
    """The kind of positions, and the array that says them; None for the call's own."""
    if x is None:
        return "own", None
    if _arrays.is_array(x):
        return _check_table(part, x)
    if isinstance(x, (list, tuple)):
        intervals = check_intervals(part, x)
        if len(intervals) > 1:
            return "table", make_table(intervals, part.q)
        x = intervals[0][0] if intervals else 0
    origin = to_int(x)
    if origin is None:
        what = f"None, an origin, intervals [(begin, end), ...] or an array of integers for {part.name}"
        refuse("positions", what, repr(x))
    if not 0 <= origin <= part.most - part.extent:
        what = f"an origin from 0 to {part.most - part.extent} for {part.extent} of {part.most} {part.name}"
        refuse("positions", what, origin)
    return "origin", make_numbers((origin,), part.q)


def _join(intervals: Sequence[Any]) -> Tuple[Interval, ...]:
    """Without empty ones; those that meet are one."""
    found: List[Interval] = []
    for pair in intervals:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or None in map(to_int, pair):
            hint = "an array of integers is a table"
            refuse("positions", "intervals [(begin, end), ...] of integers", repr(pair), hint)
        begin, end = map(to_int, pair)
        if begin == end:
            continue
        if begin > end:
            refuse("positions", "intervals (begin, end) that do not end before they begin", repr(pair))
        if found and begin < found[-1][1]:
            what = "intervals in ascending order, none of which overlap"
            refuse("positions", what, f"{pair!r} after {found[-1]}")
        if found and begin == found[-1][1]:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return tuple(found)


def check_intervals(part: Part, intervals: Sequence[Any]) -> Tuple[Interval, ...]:
    found = _join(intervals)
    if found and not (0 <= found[0][0] and found[-1][1] <= part.most):
        refuse("positions", f"intervals of {part.name} from 0 to {part.most}, as total says", repr(intervals))
    count = sum(end - begin for begin, end in found)
    if count != part.extent:
        refuse("positions", f"intervals of {part.extent} {part.name}, as the call has", f"{count}")
    return found


def _check_table(part: Part, x: Any) -> Tuple[str, Any]:
    x, is_torch = _foreign.import_array(x, "positions"), _arrays.is_torch(part.q)
    if is_torch != _arrays.is_torch(x) or (is_torch and x.device != part.q.device):
        where = f"a tensor on {part.q.device}" if is_torch else "a NumPy array"
        got = f"a tensor on {x.device}" if _arrays.is_torch(x) else "a NumPy array"
        refuse("positions", f"{where} for {part.name}, as q is", got)
    if _arrays.type_name(x.dtype) not in ("i8", "i32", "i64"):
        refuse("positions", f"integers of 8, 32 or 64 bits for {part.name}", _arrays.describe_type(x))
    if len(x.shape) == 0:
        return "origin", _to_int32(x.reshape(1))
    if len(x.shape) != 1 or x.shape[0] != part.extent:
        refuse("positions", f"a table of {part.extent} {part.name}, as the call has", f"shape {tuple(x.shape)}")
    check_order(part, x)
    return "table", _to_int32(x)


def check_order(part: Part, x: Any) -> None:
    """Where elements are at hand. On a GPU nobody looks, as with `assume_sorted`."""
    is_hidden = not _arrays.is_numpy(x) and (not x.is_cpu or _is_watched())
    if is_hidden or not part.extent:
        return
    if bool((x[1:] < x[:-1]).any()):
        refuse("positions", f"a table of {part.name} that does not decrease", "one that does")
    if not (0 <= int(x[0]) and int(x[-1]) < part.most):
        what = f"a table of {part.name} from 0 to {part.most - 1}, as total says"
        refuse("positions", what, f"one from {int(x[0])} to {int(x[-1])}")


def _to_int32(x: Any) -> Any:
    if _arrays.is_numpy(x):
        numpy = sys.modules["numpy"]
        return numpy.ascontiguousarray(x, dtype="int32")
    return x.to(sys.modules["torch"].int32).contiguous()


# ===- Arrays -----------------------------------------------------------------------------------===#


def _is_watched() -> bool:
    """Of tensors: whether somebody looks, who may see others in their place."""
    if _dynamo.is_compiling():
        return True
    count_modes, find_transform, _ = _arrays.find_watchers()
    return count_modes() > 0 or find_transform() is not None


def make_numbers(numbers: Tuple[int, ...], like: Any) -> Any:
    """An array of so few integers, where `like` is."""
    if _arrays.is_numpy(like):
        return sys.modules["numpy"].array(numbers, "int32")
    if _dynamo.is_compiling():
        torch = sys.modules["torch"]
        each = [torch.full((1,), x, dtype=torch.int32, device=like.device) for x in numbers]
        return torch.cat(each)
    if not like.is_cuda or _is_watched():
        return _make_tensor(numbers, like.device)
    return _remember_tensor(numbers, like.device)


def make_range(begin: int, end: int, like: Any) -> Any:
    if _arrays.is_numpy(like):
        return sys.modules["numpy"].arange(begin, end, dtype="int32")
    torch = sys.modules["torch"]
    return torch.arange(begin, end, dtype=torch.int32, device=like.device)


def make_table(intervals: Tuple[Interval, ...], like: Any) -> Any:
    """The positions in these intervals, in their order."""
    if _arrays.is_numpy(like):
        parts = [make_range(begin, end, like) for begin, end in intervals]
        return sys.modules["numpy"].concatenate(parts or [make_range(0, 0, like)])
    if _is_watched() or not like.is_cuda:
        return _join_ranges(intervals, like)
    return _remember_table(intervals, like.device)


def _join_ranges(intervals: Tuple[Interval, ...], like: Any) -> Any:
    torch = sys.modules["torch"]
    parts = [make_range(begin, end, like) for begin, end in intervals]
    return torch.cat(parts) if parts else make_range(0, 0, like)


def _make_tensor(numbers: Tuple[int, ...], device: Any) -> Any:
    torch = sys.modules["torch"]
    return torch.tensor(numbers, dtype=torch.int32, device=device)


@functools.lru_cache(maxsize=1024)
def _remember_tensor(numbers: Tuple[int, ...], device: Any) -> Any:
    """A copy to a GPU would wait for it in each call. A call that a CUDA graph captures makes no copy, but
    finds what a call before it has made."""
    with sys.modules["torch"].inference_mode(False):
        return _make_tensor(numbers, device)


@functools.lru_cache(maxsize=128)
def _remember_table(intervals: Tuple[Interval, ...], device: Any) -> Any:
    with sys.modules["torch"].inference_mode(False):
        return _join_ranges(intervals, _make_tensor((), "cpu")).to(device)
