"""What of tensor memory's use is ordered: clocks of warps, which find a wait, a barrier or a fence that is missing.

tcgen05.ld, st and mma run beside the warps that ask for them. One comes after another only where its end was waited for
(wait::ld, wait::st, or a commit and the wait for its barrier), where threads met since, and where tcgen05.fence stands on
both sides of the meeting. A warp's clock says how many of each warp's operations come before its next one. Barriers and
meetings carry clocks from warp to warp, through others that take no part too, and phases of barriers that copies land in.
A finding does not depend on who is late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Sequence, Tuple

import numpy as np

from .async_units import Barrier

# What a cell was last used for. Stores and products write; products read A.
LOAD, STORE, READ, WRITE = range(4)
NAMES = {LOAD: "tcgen05.ld of warp {} reads", STORE: "tcgen05.st of warp {} writes", READ: "tcgen05.mma of warp {} reads",
         WRITE: "tcgen05.mma of warp {} writes"}
# What comes before: loads and stores that have ended, products that were asked for, products that have ended, each of a warp,
# and phases of a barrier, which copies land in.
LOADED, STORED, ISSUED, DONE, LANDED = range(5)
WAITS = {LOADED: "tcgen05.wait::ld", STORED: "tcgen05.wait::st"}
# What barriers carry: with fences on both sides, and as if nobody needed them, which tells what is missing.
FENCED, PLAIN = range(2)
# Parts of 16 lanes, since a product of 64 rows has 16 of each warp's 32.
PARTS, COLUMNS = 8, 512
# Warps or barriers.
SUBJECTS = 128

Conflicts = Sequence[Tuple[int, int]]
LOADS: Conflicts = ((STORE, STORED), (WRITE, DONE))
STORES: Conflicts = ((LOAD, LOADED), (STORE, STORED), (READ, DONE), (WRITE, DONE))
OPERANDS: Conflicts = ((STORE, STORED), (WRITE, DONE))
# Products follow one another in the order in which they are asked for.
SUMS: Conflicts = ((LOAD, LOADED), (STORE, STORED), (READ, ISSUED), (WRITE, ISSUED))


@dataclass(frozen=True)
class Region:
    parts: slice
    columns: slice


class Order:
    def __init__(self, warps: int) -> None:
        # Of each warp, what its next operation comes after, and what it tells others.
        self.seen = np.zeros((warps, 5, SUBJECTS), np.int64)
        self.carried = np.zeros((warps, 2, 5, SUBJECTS), np.int64)
        # Of each warp, its last operation on a cell, and how many it has asked for. Products READ and WRITE by one number.
        self.used = np.zeros((4, warps, PARTS, COLUMNS), np.int64)
        self.counts = np.zeros((4, warps), np.int64)

    def count(self, warp: int, kind: int) -> int:
        return int(self.counts[kind, warp])

    def use(self, warp: int, kind: int, region: Region) -> None:
        """The operand of a product is noted before its sum."""
        if kind != READ:
            self.counts[kind, warp] += 1
        number = self.counts[WRITE, warp] + 1 if kind == READ else self.counts[kind, warp]
        self.used[kind, warp, region.parts, region.columns] = number

    def end(self, warp: int, kind: int, ended: int) -> None:
        """The warp need not wait for its own operations any more."""
        self.seen[warp, ended, warp] = self.carried[warp, PLAIN, ended, warp] = self.counts[kind, warp]

    def forget(self, region: Region) -> None:
        self.used[:, :, region.parts, region.columns] = 0

    def fence_before(self, warp: int) -> None:
        np.maximum(self.carried[warp, FENCED], self.seen[warp], out=self.carried[warp, FENCED])

    def fence_after(self, warp: int) -> None:
        np.maximum(self.seen[warp], self.carried[warp, FENCED], out=self.seen[warp])

    def tell(self, warp: int) -> np.ndarray:
        return self.carried[warp].copy()

    def learn(self, warp: int, barrier: Barrier) -> None:
        """A warp sees that a phase has ended."""
        if barrier.told is not None:
            np.maximum(self.carried[warp], barrier.told, out=self.carried[warp])
        self.carried[warp, :, LANDED, barrier.number] = barrier.ended

    def has_landed(self, warp: int, barrier: int, phase: int) -> bool:
        return bool(self.carried[warp, PLAIN, LANDED, barrier] >= phase)

    def meet(self, warps: Iterable[int]) -> None:
        there = list(warps)
        self.carried[there] = self.carried[there].max(0)

    def commit(self, warp: int, products: int) -> np.ndarray:
        """What a barrier is told when so many products have ended: a commit is a fence as well."""
        told = self.tell(warp)
        np.maximum(told[FENCED], self.seen[warp], out=told[FENCED])
        told[:, DONE, warp] = np.maximum(told[:, DONE, warp], products)
        return told

    def find_unfinished(self, warp: int, region: Region) -> np.ndarray:
        """Cells with a sum whose end the warp does not know of."""
        numbers = self.used[WRITE, :, region.parts, region.columns]
        return np.any(numbers > self.seen[warp, DONE, : len(numbers), None, None], axis=0)

    def check(self, warp: int, region: Region, conflicts: Conflicts, what: str, fenced: bool = True) -> None:
        known = self.seen[warp] if fenced else self.carried[warp, PLAIN]
        for kind, ended in conflicts:
            last = self.used[kind, :, region.parts, region.columns].max((1, 2))
            late = last > known[ended, : last.size]
            if late.any():
                other = int(np.argmax(late))
                first, end = region.columns.start, region.columns.stop - 1
                raise RuntimeError(f"{what} columns {first} to {end}, which {NAMES[kind].format(other)}: "
                                   f"expected {self.explain(warp, other, ended, int(last[other]))}")

    def explain(self, warp: int, other: int, ended: int, number: int) -> str:
        """What is missing between an operation of another warp and the next one of this."""
        if ended in WAITS and self.seen[other, ended, other] < number:
            return f"{WAITS[ended]} after it"
        fenced, plain = self.carried[warp, :, ended, other]
        if plain < number:
            return "a wait for the barrier of its commit" if ended == DONE else "a barrier between them"
        if fenced < number:
            return "tcgen05.fence::before_thread_sync before the barrier between them"
        return "tcgen05.fence::after_thread_sync after the barrier between them"
