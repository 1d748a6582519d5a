"""Ways to deal the positions of a sequence to ranks: intervals in ascending order, [begin, end)."""

from __future__ import annotations

import heapq
from typing import List, Sequence, Tuple

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
