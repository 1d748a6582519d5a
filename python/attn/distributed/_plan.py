"""Which rank holds which rows and keys of a sequence, and which keys it fetches."""

from __future__ import annotations

import ast
import dataclasses
import functools
from typing import Any, Dict, List, Literal, Optional, Sequence, Tuple, Union

import numpy
import torch

from .._library import refuse
from .._problem import check_causal, check_window
from ..typing import Causal, Mask, Window
from . import _shardings
from ._exchange import Route, exchange
from ._group import choose_group, count_ranks, find_group, find_rank
from ._kept import FETCHED, TILE, Kept, find_kept
from ._rates import Rates, choose_steps, find_exposed, find_moved_rows
from ._shardings import Intervals, count, find_hull, intersect, join, make_positions

METHODS = ("gather", "pass rows", "ring", "ulysses")
SHARDINGS = ("auto", "contiguous", "zigzag", "dealt", "heads")
KEY_SHARDINGS = ("auto", "contiguous", "interleaved")
# Positions of a chunk that is dealt, from few and large to many and small.
_CHUNKS = (2048, 1024, 512, 256)
# The most chunks that ranks exchange one by one.
_MOST_EXCHANGED = 8192
# Tiles of rows that a kernel of one group of heads has at least: twice the multiprocessors of a GPU.
_TILES_OF_STEP = 256
# Groups of key heads of a backward pass: the most, and the seconds that one takes at least.
_MOST_BACKWARD, _SECONDS_BACKWARD = 4, 8e-3


@dataclasses.dataclass(frozen=True)
class Plan:
    """Equal on all ranks, and data alone: it can be pickled, compared and hashed.

    Attributes:
        total: (M, N) of the whole.
        rows, keys: for each rank the intervals of positions that it holds, ascending.
        fetched: for each rank the intervals of keys that its rows read, its own among them.
        method: "gather", "pass rows", "ring" or "ulysses".
        sharding: how rows were dealt, by name.
        work: for each rank the pairs of the tiles that its rows execute.
        steps: the most groups of key heads that "gather" fetches one after the other, each while the one
            before is computed; 0 where the shapes of a call choose.
        passed: of "pass rows", for each rank the intervals of rows that it computes.
        node: of "ulysses", the ranks that exchange heads, where nodes gather keys from each other; else 0.
        text: the parts that ranks compare.
    """

    total: Tuple[int, int]
    rows: Tuple[Intervals, ...]
    keys: Tuple[Intervals, ...]
    fetched: Tuple[Intervals, ...]
    method: str
    sharding: str
    work: Tuple[int, ...]
    steps: int = 0
    passed: Tuple[Intervals, ...] = ()
    node: int = 0
    text: str = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # It is long, each call asks for it, and torch.compile guards it.
        held = self.total, self.rows, self.keys, self.fetched
        text = repr((*held, self.method, self.work, self.steps, self.passed, self.node))
        object.__setattr__(self, "text", text)

    @property
    def ranks(self) -> int:
        return len(self.rows)

    @functools.cached_property
    def route(self) -> Route:
        """Of keys, to who reads them."""
        return Route(self.keys, self.fetched)

    @functools.cached_property
    def kinds(self) -> Tuple[str, str]:
        """How kernels are told where their rows and keys stand: "own", "origin" or "table", on all ranks
        alike."""
        if self.method == "ulysses":
            return "own", "own"
        rows = self.passed if self.method == "pass rows" else self.rows
        return _find_kind(rows), _find_kind(self.fetched if self.method == "gather" else self.keys)

    @property
    def deals_heads(self) -> bool:
        """Whether a rank has all rows of some of the query heads, and not some rows of all heads."""
        if self.method != "pass rows" or self.ranks == 1:
            return False
        return count(self.rows[0]) == count(self.rows[-1]) == self.total[0]

    def find_passing(self, heads: int) -> Tuple[Route, int]:
        """Of "pass rows": the route of rows or, where so many heads are this rank's, of heads, and its dimension in
        (B, H, M, D)."""
        return (find_head_route(self.ranks, heads), 1) if self.deals_heads else (self.row_route, 2)

    @functools.cached_property
    def row_route(self) -> Route:
        """Of rows, to who computes them with its keys."""
        return Route(self.rows, self.passed)

    @functools.cached_property
    def most_moved(self) -> int:
        """The most keys that a rank receives from others."""
        return max(map(self.count_foreign, range(self.ranks)), default=0)

    def count_steps(self, batch: int, heads: int, key_heads: int, is_backward: bool = False) -> int:
        """Groups of key heads of one call of "gather", for heads of 128 columns of 16 bits and the rates of `Rates`.
        Forward one, unless transfers are so slow that hiding them saves more than it risks. Backward as many as are
        long enough: kernels of fewer heads are faster by themselves (bench/NOTES.md)."""
        if self.steps:
            return min(self.steps, key_heads)
        if self.ranks == 1 or self.method != "gather":
            return 1
        tiles = batch * heads * -(-self.total[0] // (self.ranks * TILE))
        most = max(1, min(key_heads, tiles // _TILES_OF_STEP))
        rates, columns, bytes_of_element = Rates(), 128, 2
        pairs = columns * batch * heads * max(self.work)
        moved = 2 * columns * bytes_of_element * batch * key_heads * self.most_moved
        moved /= rates.link if self.ranks <= rates.node else rates.rail
        if not is_backward:
            return choose_steps(most, moved, 4 * pairs / rates.forward, rates)
        computed = 10 * pairs / rates.backward
        long = min(most, _MOST_BACKWARD, int(computed / _SECONDS_BACKWARD))
        # Keys come again, and their gradients go home.
        return max(long, choose_steps(most, 2 * moved, computed, rates))

    def is_split(self, batch: int, heads: int, key_heads: int) -> bool:
        """Whether a kernel of one call has some of the heads only."""
        if self.method == "gather":
            return any(self.count_steps(batch, heads, key_heads, x) > 1 for x in (False, True))
        return self.method == "ulysses"

    @property
    def balance(self) -> float:
        """The mean work of ranks over the most; 1 is best."""
        most = max(self.work)
        return sum(self.work) / self.ranks / most if most else 1.0

    def positions(self, rank: int, of: str = "rows") -> torch.Tensor:
        """Where this rank's rows, or keys, stand in the whole: int64, ascending."""
        return make_positions(getattr(self, of)[rank])

    def count_foreign(self, rank: int) -> int:
        """Keys that a rank receives from others."""
        fetched = self.fetched[rank]
        return count(fetched) - count(intersect(fetched, self.keys[rank]))

    def count_moved(self, rank: int, node: int) -> Tuple[int, int]:
        """Keys that a rank receives from others of its node, of so many ranks, and from other nodes."""
        first, fetched = rank // node * node, self.fetched[rank]
        mates = [peer for peer in range(first, min(first + node, self.ranks)) if peer != rank]
        near = sum(count(intersect(fetched, self.keys[peer])) for peer in mates)
        return near, self.count_foreign(rank) - near

    def count_passed(self, rank: int, node: int) -> Tuple[int, int, int, int]:
        """Of "pass rows", for all heads: rows that a rank receives to compute, from others of its node and from other
        nodes, and parts of its own rows that come home from these."""
        first = rank // node * node
        found = [0, 0, 0, 0]
        for peer in range(self.ranks):
            is_far = not first <= peer < first + node
            if peer == rank:
                continue
            if self.deals_heads:
                goes = comes = self.total[0] // self.ranks
            else:
                goes = count(intersect(self.rows[peer], self.passed[rank]))
                comes = count(intersect(self.rows[rank], self.passed[peer]))
            found[is_far] += goes
            found[2 + is_far] += comes
        return tuple(found)  # type: ignore[return-value]

    def shard(
        self,
        x: torch.Tensor,
        dim: int,
        rank: Optional[int] = None,
        of: str = "rows",
        group: Any = None,
        mesh: Any = None,
    ) -> torch.Tensor:
        """A rank's part of a tensor that holds the whole along `dim`: of this rank in the group or mesh, if
        None."""
        rank = find_rank(choose_group(group, mesh)) if rank is None else rank
        expected = self.total[of == "keys"]
        if x.shape[dim] != expected:
            refuse("x", f"{expected} positions along dimension {dim}", x.shape[dim])
        return x.index_select(dim, self.positions(rank, of).to(x.device))

    def unshard(
        self, x: torch.Tensor, dim: int, group: Any = None, of: str = "rows", mesh: Any = None
    ) -> torch.Tensor:
        """The whole on every rank; the gradient of a rank's part is the sum of what all ranks make of it."""
        return exchange(x, dim, self.routes_to_all[of], find_group(choose_group(group, mesh)))

    @functools.cached_property
    def routes_to_all(self) -> Dict[str, Route]:
        """Of rows and of keys, to every rank."""

        def make(held: Tuple[Intervals, ...], length: int) -> Route:
            return Route(held, (join([(0, length)]),) * self.ranks)

        return {"rows": make(self.rows, self.total[0]), "keys": make(self.keys, self.total[1])}

    def __repr__(self) -> str:
        rows, columns = self.total
        of_nodes = f" in nodes of {self.node}" if self.node else ""
        return (
            f"<{rows} x {columns} on {self.ranks} ranks, {self.sharding}, {self.method}{of_nodes}: "
            f"balance {self.balance:.3f}>"
        )


@functools.lru_cache(maxsize=64)
def find_head_route(ranks: int, heads: int) -> Route:
    held = tuple(((rank * heads, (rank + 1) * heads),) for rank in range(ranks))
    return Route(held, (((0, ranks * heads),),) * ranks)


def _find_kind(held: Sequence[Intervals]) -> str:
    if any(len(mine) > 1 for mine in held):
        return "table"
    return "origin" if any(mine and mine[0][0] for mine in held) else "own"


@functools.lru_cache(maxsize=64)
def read_plan(text: str) -> Plan:
    """Of the text of one: without what only people read."""
    total, rows, keys, fetched, method, work, steps, passed, node = ast.literal_eval(text)
    return Plan(total, rows, keys, fetched, method, "", work, steps, passed, node)


def _find_fetched(kept: Kept, rows: Intervals, length: int) -> Intervals:
    """Intervals of whole tiles that the rows keep keys of, so that a call's tiles of keys are those of the
    whole; never none, since a call has a key."""
    found = [
        (begin // FETCHED * FETCHED, min(-(-end // FETCHED) * FETCHED, length))
        for begin, end in kept.find_intervals(rows)
    ]
    return join(found) or ((0, min(FETCHED, length)),)


def _read_intervals(sharding: Any, length: int, ranks: int, name: str = "sharding") -> List[Intervals]:
    """Of a caller's own sharding: each position once."""
    if len(sharding) != ranks:
        refuse(name, f"intervals for each of {ranks} ranks", f"{len(sharding)} of them")
    dealt = [tuple((int(a), int(b)) for a, b in mine) for mine in sharding]
    everything = sorted(x for mine in dealt for x in mine if x[0] != x[1])
    ends = [0, *(end for _, end in everything)]
    begins = [*(begin for begin, _ in everything), length]
    if begins != ends:
        refuse(name, f"each of {length} positions once", repr(sharding))
    return [join(mine) for mine in dealt]


def _deal_keys(how: Any, page_size: int, total: Tuple[int, int], rows: List[Intervals]) -> List[Intervals]:
    length, ranks = total[1], len(rows)
    if not isinstance(how, str):
        return _read_intervals(how, length, ranks, "key_sharding")
    if how == "interleaved":
        pages = [(i, min(i + page_size, length)) for i in range(0, length, page_size)]
        return [join(pages[rank::ranks]) for rank in range(ranks)]
    is_one = how == "auto" and total[0] == total[1] and sum(map(count, rows)) == length
    return rows if is_one else _shardings.contiguous(length, ranks)


def _find_passed(kept: Kept, keys: Intervals) -> Tuple[Intervals, int]:
    """The rows that keep some of these keys, by whole tiles, and the pairs of the tiles that a kernel executes for
    them, whose keys lie one after the other."""
    if not keys:
        return (), 0
    begins, ends = numpy.array(keys).T
    before = numpy.concatenate([[0], numpy.cumsum(ends - begins)])

    def find_places(x: numpy.ndarray) -> numpy.ndarray:
        """How many of the keys are before a position."""
        i = numpy.searchsorted(ends, x, "right")
        inside = numpy.minimum(i, len(ends) - 1)
        return before[i] + numpy.where(i < len(ends), numpy.maximum(x - begins[inside], 0), 0)

    first, after = find_places(numpy.asarray(kept.begin)), find_places(numpy.asarray(kept.end))
    found, work = [], 0
    for i in numpy.flatnonzero(first < after):
        begin, end = int(i) * TILE, min((int(i) + 1) * TILE, kept.total[0])
        found.append((begin, end))
        work += (end - begin) * TILE * (-(-int(after[i]) // TILE) - int(first[i]) // TILE)
    return join(found), work


def _list_candidates(
    sharding: str, kept: Kept, length: int, ranks: int
) -> Dict[str, List[Intervals]]:
    found: Dict[str, List[Intervals]] = {}
    if sharding in ("auto", "contiguous"):
        found["contiguous"] = _shardings.contiguous(length, ranks)
    if sharding in ("auto", "zigzag"):
        found["zigzag"] = _shardings.zigzag(length, ranks)
    if sharding in ("auto", "dealt"):
        # Chunks of equal size for all, and some to choose from.
        sizes = [x for x in _CHUNKS if length % (x * ranks) == 0 and length >= 2 * ranks * x]
        parts = {f"dealt by {size}": length // size for size in sizes}
        if sharding == "dealt" and not parts:
            parts["dealt"] = 4 * ranks
        of = _shardings.contiguous(length, ranks), _shardings.zigzag(length, ranks)
        is_even = any(_shardings.is_even([kept.count_work(mine) for mine in rows]) for rows in of)
        for name, count_of_chunks in parts.items():
            chunks = _shardings.cut(length, count_of_chunks)
            work = [kept.count_work((chunk,)) for chunk in chunks]
            found[name] = _shardings.deal(chunks, work, ranks)
            # Exchanges would gain little, or chunks are of other positions than keys, or not of one size.
            is_open = not is_even and kept.total == (length, length) and length % len(chunks) == 0
            if is_open and len(chunks) <= _MOST_EXCHANGED:
                keys = [find_hull(kept.find_intervals((chunk,))) for chunk in chunks]
                found[f"{name}, near"] = _shardings.deal_near(chunks, work, keys, ranks)
    return found


def _estimate(plan: Plan) -> float:
    """Seconds of the slowest rank for both passes, of heads 64:8 of 128 columns of 16 bits."""
    rates = Rates()
    if plan.method == "pass rows":
        return max(_estimate_passing(plan, rank, rates) for rank in range(plan.ranks))
    steps, back = (plan.count_steps(1, 64, 8, is_backward) for is_backward in (False, True))

    def estimate(rank: int) -> float:
        pairs = 128 * 64 * plan.work[rank]
        near, far = plan.count_moved(rank, rates.node)
        moved = 2 * 128 * 2 * 8 * (near / rates.link + far / rates.rail)
        forward, backward = 4 * pairs / rates.forward, 10 * pairs / rates.backward
        # In the backward pass keys come again, and their gradients go home.
        exposed = find_exposed(steps, moved, forward) + find_exposed(back, 2 * moved, backward)
        return forward + backward + exposed + (steps + back) * rates.step

    return max(map(estimate, range(plan.ranks)))


def _estimate_passing(plan: Plan, rank: int, rates: Rates) -> float:
    """The same of a rank to which rows go."""
    pairs, moved = 128 * 64 * plan.work[rank], find_moved_rows(plan.count_passed(rank, rates.node), 64, 128, 2, rates)
    # Gathering has three collectives, whose latency nobody adds there.
    return 4 * pairs / rates.forward + 10 * pairs / rates.backward + sum(moved) - 3 * rates.latency + 2 * rates.step


def plan(
    length: Union[int, Tuple[int, int]],
    group: Any = None,
    *,
    mask: Optional[Mask] = None,
    causal: Causal = False,
    window: Optional[Window] = None,
    sharding: Union[str, Sequence[Sequence[Tuple[int, int]]]] = "auto",
    method: Literal["auto", "gather", "pass rows", "ring", "ulysses"] = "auto",
    batches: int = 1,
    heads: int = 1,
    steps: Optional[int] = None,
    mesh: Any = None,
    key_sharding: Union[str, Sequence[Sequence[Tuple[int, int]]]] = "auto",
    page_size: int = 1,
    node: Optional[int] = None,
) -> Plan:
    """Deals rows and keys of one sequence to ranks.

    Args:
        length: S, or (M, N) where rows and keys are different sequences.
        group, mesh: a process group, or a DeviceMesh of one dimension, by either name; `group` may be a
            number of ranks. None is the default group.
        mask, causal, window: as for `context_parallel_attention`. They decide what ranks fetch, and how
            rows are dealt. Arrays that the mask reads are on the CPU, or are copied there once.
        sharding: "contiguous", "zigzag" (a chunk from the front and one from the end), "dealt" (chunks by
            the work of their rows), "auto" (that of these with the least estimated time), or the
            intervals of each rank, [[(begin, end), ...], ...]. "heads": each rank has all rows of its share
            of the query heads, in the order of ranks, and method is "pass rows".
        method: "gather" (each rank fetches the keys that its rows keep, and makes one call), "ring"
            (keys go round; least memory), "ulysses" (ranks exchange heads for positions), or "pass rows".
            By the last, keys stay and rows go to them, for few rows and many keys as in decoding.
            "auto" is "gather" or "pass rows", by the estimated time.
        batches, heads: how many there are, where the mask reads b or h; what any of them keeps is
            fetched.
        steps: into how many groups of key heads "gather" divides a call. The keys of a group move while
            the group before is computed, and two groups are in memory at a time. None: as many as
            fill a GPU, by the shapes of the call.
        key_sharding: "auto" (as rows, if they are of one sequence, else contiguous), "contiguous",
            "interleaved" (pages of `page_size` keys, dealt in turn), or the intervals of each rank.
        page_size: 1 or more; key n is in page n // page_size.
        node: of "ulysses", how many ranks, one after the other, exchange heads. Their rows keep keys that
            they gather from other nodes. None: all ranks are one node.

    Returns:
        A Plan, the same on every rank.

    Raises:
        Error: an argument that does not fit, by its name.
    """
    total = (length, length) if isinstance(length, int) else tuple(length)
    for extent in total:
        if isinstance(extent, bool) or not isinstance(extent, int) or not 1 <= extent <= 1 << 28:
            refuse("length", "lengths from 1 to 2^28", repr(length))
    ranks, is_own = count_ranks(choose_group(group, mesh)), not isinstance(sharding, str)
    if not is_own and sharding not in SHARDINGS:
        refuse("sharding", f"one of {', '.join(SHARDINGS)}, or intervals", repr(sharding))
    if method not in ("auto", *METHODS):
        refuse("method", f"one of auto, {', '.join(METHODS)}", repr(method))
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
        refuse("steps", "a number of groups of key heads, or None", repr(steps))
    if isinstance(key_sharding, str) and key_sharding not in KEY_SHARDINGS:
        refuse("key_sharding", f"one of {', '.join(KEY_SHARDINGS)}, or intervals", repr(key_sharding))
    if isinstance(page_size, bool) or not isinstance(page_size, int) or page_size < 1:
        refuse("page_size", "a number of keys", repr(page_size))
    if node is not None:
        is_number = isinstance(node, int) and not isinstance(node, bool) and node > 0
        if method != "ulysses":
            refuse("node", 'None without method="ulysses"', repr(node))
        if not is_number or ranks % node:
            refuse("node", f"a number of ranks that divides {ranks}", repr(node))
    has_heads = not is_own and sharding == "heads"
    if has_heads and method not in ("auto", "pass rows"):
        refuse("sharding", 'positions of each rank with method="' + method + '"', '"heads"', 'method="pass rows" has heads')
    causal, window = check_causal(causal), check_window(window)
    kept = find_kept(mask, total, causal, window, batches, heads)
    if is_own:
        candidates = {"own": _read_intervals(sharding, total[0], ranks)}
    elif has_heads:
        candidates = {"heads": [join([(0, total[0])])] * ranks}
    elif method == "pass rows" and sharding == "auto":
        candidates = {"contiguous": _shardings.contiguous(total[0], ranks)}
    else:
        candidates = _list_candidates(sharding, kept, total[0], ranks)
    held = {name: _deal_keys(key_sharding, page_size, total, rows) for name, rows in candidates.items()}
    best = None
    if method != "pass rows" and not has_heads:
        plans = [_make(total, name, rows, held[name], method, kept) for name, rows in candidates.items()]
        times = list(map(_estimate, plans))
        # Of nearly equal ones the first: fewer and larger intervals.
        best = next(x for x, seconds in zip(plans, times) if seconds <= 1.01 * min(times))
        if node is not None and node < ranks:
            best = _join_nodes(best, node, kept)
    if best is None or (method == "auto" and total[0] < total[1]):
        # Rows move wherever they are.
        name = next(iter(candidates))
        passing = _make_passing(total, name, candidates[name], held[name], kept)
        # Its sums are rounded by the number of ranks, so it has to save more than a little.
        if best is None or _estimate(passing) < (1 - Rates().risk) * _estimate(best):
            best = passing
    return dataclasses.replace(best, steps=steps or 0)


def _join_nodes(plan: Plan, node: int, kept: Kept) -> Plan:
    """The same with what the rows of a node keep, for each of its ranks, which share the work."""
    fetched: List[Intervals] = []
    work: List[int] = []
    for first in range(0, plan.ranks, node):
        rows = join([x for mine in plan.rows[first : first + node] for x in mine])
        fetched += [_find_fetched(kept, rows, plan.total[1]) if rows else ()] * node
        work += [kept.count_work(rows) // node] * node
    return dataclasses.replace(plan, fetched=tuple(fetched), work=tuple(work), node=node)


def _make_passing(
    total: Tuple[int, int], name: str, rows: List[Intervals], keys: List[Intervals], kept: Kept
) -> Plan:
    passed, work = zip(*(_find_passed(kept, mine) for mine in keys))
    held = tuple(keys)
    return Plan(total, tuple(rows), held, held, "pass rows", name, tuple(work), passed=tuple(passed))


def _make(
    total: Tuple[int, int], name: str, rows: List[Intervals], keys: List[Intervals], method: str, kept: Kept
) -> Plan:
    everything = ((0, total[1]),)
    fetched = [
        _find_fetched(kept, mine, total[1])
        if method in ("auto", "gather") and mine
        else (everything if mine else ())
        for mine in rows
    ]
    work = tuple(kept.count_work(mine) for mine in rows)
    chosen = "gather" if method == "auto" else method
    return Plan(total, tuple(rows), tuple(keys), tuple(fetched), chosen, name, work)
