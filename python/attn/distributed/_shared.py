"""Captured arrays of which each rank holds the part of its own rows, or of its own keys. Functions read them at
positions in the whole, and kernels at their own: parts of rows stay where they are, and parts of keys move as keys do."""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import torch

from .. import _arrays
from .._library import refuse
from .._scan import Captured
from .._source import Text
from ._call import Call, Sums
from ._exchange import Route, fetch, find_steps, give_back
from ._plan import Plan
from ._shardings import count


class Shared(NamedTuple):
    """One of the caller's arrays, by number; "rows" or "keys" are dealt along a dimension of it."""

    number: int
    of: str
    dim: int


_LETTERS = {"rows": "m", "keys": "n"}
_READ = re.compile(r"tensor\.extract %(\w+)\[([^\]]*)\] \{attn\.own = array<i64: (\d+)>\}")
_SORTED = re.compile(r"%(\w+) = attn\.assume nondecreasing %(\w+)")


def rows(x: Any, dim: int = 0) -> Captured:
    """Marks an array that score and mask functions read: along `dim` it has the rows of this rank alone, as
    `plan.shard(x, dim)` gives them. There functions index it by their row."""
    return _mark(x, dim, "rows")


def keys(x: Any, dim: int = 0) -> Captured:
    """Marks an array that score and mask functions read: along `dim` it has the keys of this rank alone, as
    `plan.shard(x, dim, of="keys")` gives them. There functions index it by their key. Parts move to the ranks
    whose rows keep these keys, and their gradients come home."""
    return _mark(x, dim, "keys")


def _mark(x: Any, dim: int, of: str) -> Captured:
    array, is_sorted = (x.array, x.is_sorted) if type(x) is Captured else (x, False)
    if not _arrays.is_torch(array):
        refuse("x", "a tensor", _arrays.describe_type(array))
    if type(x) is Captured and x.own is not None:
        refuse("x", "an array that is sharded once", "one of attn.distributed.rows or keys")
    rank = array.dim()
    if isinstance(dim, bool) or not isinstance(dim, int) or not -rank <= dim < rank:
        refuse("dim", f"a dimension of {rank}", repr(dim))
    return Captured(array, is_sorted, own=(dim % rank, _LETTERS[of]))


def find_shared(text: Text, names: Sequence[str]) -> Tuple[Shared, ...]:
    """Of the text that functions were written as. `names` are those of the caller's arrays."""
    sources = {to: of for line in text.before for to, of in _SORTED.findall(line)}
    found: Dict[str, Tuple[str, int]] = {}
    for line in text.regions:
        for name, indices, dim in _READ.findall(line):
            letter = indices.split(", ")[int(dim)].lstrip("%")
            found[sources.get(name, name)] = ("rows" if letter == "m" else "keys", int(dim))
    return tuple(Shared(i, *found[name]) for i, name in enumerate(names) if name in found)


def check_shared(shared: Tuple[Shared, ...], names: Sequence[str], arrays: List[Any], plan: Plan, rank: int) -> None:
    """Raises Error for arrays that are not the parts that the plan says."""
    for number, of, dim in shared:
        if of == "rows" and plan.deals_heads:
            refuse(names[number], "the whole array where each rank has all rows", "a part of rows")
        expected, got = count(getattr(plan, of)[rank]), arrays[number].shape[dim]
        if got != expected:
            hint = f"plan.shard(x, {dim}{'' if of == 'rows' else ', of=' + repr(of)}) is the part of a whole x"
            what = f"{expected} {of} along dimension {dim}, as the plan says"
            refuse(names[number], what, got, hint)


def describe_shared(shared: Tuple[Tuple[int, str, int], ...], arrays: List[Any]) -> str:
    """What ranks compare of captured arrays, whose parts have extents of their own."""
    shapes: List[List[Any]] = [list(x.shape) for x in arrays]
    for number, of, dim in shared:
        shapes[number][dim] = of
    return repr([(x.dtype, shape) for x, shape in zip(arrays, shapes)])


# ===- Transfers --------------------------------------------------------------------------------===#


def _list_moved(call: Call) -> List[Tuple[Shared, Route]]:
    """Those that kernels read other parts of than the rank's own, in one transfer each."""
    plan, shared = call.plan, [Shared(*x) for x in call.parts.shared]
    if plan.method == "ulysses":
        return [(x, plan.routes_to_all[x.of]) for x in shared]
    if plan.method == "pass rows":
        # Rows go, and keys stay.
        return [(x, plan.row_route) for x in shared if x.of == "rows"]
    return [(x, plan.route) for x in shared if x.of == "keys"]


def gather_shared(call: Call) -> Call:
    """The call with captured arrays as kernels read them: of all positions for Ulysses, else of the keys that
    are fetched. All ranks take part."""
    arrays = list(call.captures)
    for (number, _, dim), route in _list_moved(call):
        x = arrays[number]
        steps = find_steps(route, call.rank, x.device)
        # Collectives know no bools.
        whole = fetch(x.detach().view(torch.uint8) if x.dtype is torch.bool else x.detach(), dim, steps, call.group)
        arrays[number] = whole.view(x.dtype)
    return call._replace(captures=arrays)


def bring_home(call: Call, sums: Sums) -> None:
    """Gradients of what `gather_shared` fetched, to who holds it: sums in the order of ranks. `call` is as it
    was before."""
    for (number, _, dim), route in _list_moved(call):
        found = sums.found.get(4 + number)
        if found is not None:
            x = call.captures[number]
            steps = find_steps(route, call.rank, x.device)
            sums.found[4 + number] = give_back(found, dim, x.shape[dim], steps, call.group)
