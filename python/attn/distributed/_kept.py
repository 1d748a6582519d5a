"""Which keys tiles of rows keep."""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import numpy

import attn

from ._shardings import Interval, Intervals, join

# Rows and keys of a tile, as work is counted.
TILE = 128
# Keys are fetched by so many: whole tiles of any kernel whose tiles have 64, 96, 128 or 192 keys. CPUs with 8
# lanes have 96.
FETCHED = 384


class Kept(NamedTuple):
    """For each tile of rows the keys from a first one on, up to an end, that some of its rows keep."""

    total: Tuple[int, int]
    begin: Sequence[int]
    end: Sequence[int]

    def find_intervals(self, rows: Sequence[Interval]) -> Intervals:
        """What these rows keep, by whole tiles of rows."""
        tiles = [i for a, b in rows for i in range(a // TILE, -(-b // TILE))]
        return join([(self.begin[i], self.end[i]) for i in tiles])

    def count_work(self, rows: Sequence[Interval]) -> int:
        """Pairs of the tiles that a kernel executes for these rows."""
        work = 0
        for a, b in rows:
            for i in range(a // TILE, -(-b // TILE)):
                height = min(b, (i + 1) * TILE) - max(a, i * TILE)
                tiles = -(-self.end[i] // TILE) - self.begin[i] // TILE
                work += height * TILE * max(0, tiles)
        return work


def find_kept(
    mask: Optional[Callable],
    total: Tuple[int, int],
    causal: Optional[str],
    window: Optional[Tuple[int, int]],
    batches: int,
    heads: int,
) -> Kept:
    m, n = total
    rows = [(i, min(i + TILE, m)) for i in range(0, m, TILE)]
    if mask is None:
        return _find_closed(total, rows, causal, window)
    how: Any = dict(causal=causal or False, window=window, batches=batches, heads=heads)
    found = attn.mask_ranges(m, n, mask=mask, tile=(TILE, TILE), **how)
    # Tiles of which nothing is kept may begin anywhere.
    begin, end = (numpy.where(found.begin < found.end, x, y) for x, y in ((found.begin, n), (found.end, 0)))
    begins, ends = begin.min(axis=(0, 1)), numpy.minimum(end.max(axis=(0, 1)), n)
    return Kept(total, numpy.minimum(begins, ends).tolist(), ends.tolist())


def _find_closed(
    total: Tuple[int, int],
    rows: List[Interval],
    causal: Optional[str],
    window: Optional[Tuple[int, int]],
) -> Kept:
    m, n = total
    left, right = window or (-1, -1)
    begins, ends = [], []
    for first, after in rows:
        begin, end, shift = 0, n, n - m
        if causal:
            end = min(end, after + (0 if causal == "top_left" else shift))
        if right >= 0:
            end = min(end, after + shift + right)
        if left >= 0:
            begin = max(begin, first + shift - left)
        end = max(end, 0)
        # Nothing is kept: an interval without keys.
        begins.append(min(begin, end))
        ends.append(end)
    return Kept(total, begins, ends)
