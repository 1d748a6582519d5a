"""Ways to deal the positions of a sequence to ranks: intervals in ascending order, [begin, end)."""

from __future__ import annotations

import heapq
from typing import List, Sequence, Tuple

import numpy
import torch

Interval = Tuple[int, int]
Intervals = Tuple[Interval, ...]


def count(intervals: Sequence[Interval]) -> int:
    return sum(end - begin for begin, end in intervals)


def join(intervals: Sequence[Interval]) -> Intervals:
    """Sorted, without empty ones; those that meet are one."""
    found: List[Interval] = []
    for begin, end in sorted(x for x in intervals if x[1] > x[0]):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return tuple(found)


def intersect(xs: Sequence[Interval], ys: Sequence[Interval]) -> Intervals:
    """Of intervals in ascending order, what both have."""
    found, i, j = [], 0, 0
    while i < len(xs) and j < len(ys):
        begin, end = max(xs[i][0], ys[j][0]), min(xs[i][1], ys[j][1])
        if begin < end:
            found.append((begin, end))
        if xs[i][1] < ys[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def find_hull(intervals: Intervals) -> Interval:
    return (intervals[0][0], intervals[-1][1]) if intervals else (0, 0)


def make_positions(intervals: Sequence[Interval]) -> torch.Tensor:
    """int64, in the order of the intervals."""
    parts = [torch.arange(begin, end) for begin, end in intervals]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.int64)


def cut(length: int, parts: int) -> List[Interval]:
    """Nearly equal intervals; some are empty where there are more parts than positions."""
    ends = [length * i // parts for i in range(parts + 1)]
    return list(zip(ends, ends[1:]))


def contiguous(length: int, ranks: int) -> List[Intervals]:
    return [join([x]) for x in cut(length, ranks)]


def zigzag(length: int, ranks: int) -> List[Intervals]:
    """A chunk from the front and one from the end for each: equal work under a causal mask."""
    chunks = cut(length, 2 * ranks)
    return [join([chunks[r], chunks[2 * ranks - 1 - r]]) for r in range(ranks)]


def deal(chunks: Sequence[Interval], work: Sequence[float], ranks: int) -> List[Intervals]:
    """As many chunks for each, of nearly the same work: the heaviest first, to the rank with the least."""
    room = -(-len(chunks) // ranks)
    heap: List[Tuple[float, int]] = [(0.0, rank) for rank in range(ranks)]
    dealt: List[List[Interval]] = [[] for _ in range(ranks)]
    for i in sorted(range(len(chunks)), key=lambda i: (-work[i], i)):
        total, rank = heapq.heappop(heap)
        dealt[rank].append(chunks[i])
        if len(dealt[rank]) < room:
            heapq.heappush(heap, (total + work[i], rank))
    return [join(mine) for mine in dealt]


# Where exchanges end: the mean work of ranks over the most.
_BALANCE = 0.985
# The ranks that a rank exchanges with: those with the least work.
_PARTNERS = 32


def is_even(work: Sequence[float]) -> bool:
    """Whether no exchange would gain much."""
    return sum(work) >= _BALANCE * len(work) * max(work)


def deal_near(
    chunks: Sequence[Interval], work: Sequence[float], kept: Sequence[Interval], ranks: int
) -> List[Intervals]:
    """As many chunks of one size for each rank, and few keys to fetch. Ranks begin with neighbours. The rank with the
    most work then exchanges a chunk with another one, until no exchange lowers it or all is even: in each turn the
    exchange that takes most off it for a chunk of keys that has to be fetched. `kept` has the keys of each chunk."""
    size, n = chunks[0][1] - chunks[0][0], len(chunks)
    weights = numpy.asarray(work, dtype=float)
    first = numpy.array([a // size for a, _ in kept])
    after = numpy.array([-(-b // size) for _, b in kept])
    owner = numpy.arange(n) * ranks // n
    load = numpy.bincount(owner, weights, ranks)
    target = load.mean() / _BALANCE
    missing = numpy.zeros((ranks, n + 1), dtype=int)

    def find_missing(rank: int) -> None:
        """How many chunks of keys before each one a rank neither has nor fetches."""
        marks = numpy.zeros(n + 1, dtype=int)
        mine = owner == rank
        numpy.add.at(marks, first[mine], 1)
        numpy.add.at(marks, after[mine], -1)
        missing[rank, 1:] = numpy.cumsum(~((numpy.cumsum(marks)[:n] > 0) | mine))

    for rank in range(ranks):
        find_missing(rank)
    for _ in range(4 * n):
        rank = int(load.argmax())
        if load[rank] <= target:
            break
        partners = numpy.argsort(load, kind="stable")[: min(_PARTNERS, ranks - 1)]
        mine, others = numpy.flatnonzero(owner == rank), numpy.flatnonzero(numpy.isin(owner, partners))
        less = weights[mine][:, None] - weights[others]
        peers = owner[others]
        most = numpy.maximum(numpy.maximum(load[rank] - less, load[peers] + less), target)
        fetched = missing[peers[None], after[mine][:, None]] - missing[peers[None], first[mine][:, None]]
        fetched = fetched + missing[rank, after[others]] - missing[rank, first[others]]
        worth = (load[rank] - most) / (1 + fetched)
        i, j = numpy.unravel_index(int(worth.argmax()), worth.shape)
        if worth[i, j] <= 0:
            break
        peer = int(peers[j])
        owner[mine[i]], owner[others[j]] = peer, rank
        load[rank] -= less[i, j]
        load[peer] += less[i, j]
        for changed in (rank, peer):
            find_missing(changed)
    return [join([chunks[int(i)] for i in numpy.flatnonzero(owner == rank)]) for rank in range(ranks)]
