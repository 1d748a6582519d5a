"""What a rank computes and moves in a second."""

from __future__ import annotations

from typing import NamedTuple, Tuple


class Rates(NamedTuple):
    """Of one rank. The defaults are those of an H200: operations of 16 bits at D = 128, as measured; NVLink at 0.8
    of its nominal rate, and one rail of 400 Gb/s for each GPU at 0.9."""

    # Operations a second.
    forward: float = 640e12
    backward: float = 540e12
    # Bytes a second in one direction: from ranks of the same node, and from those of others.
    link: float = 360e9
    rail: float = 45e9
    # Ranks of a node.
    node: int = 8
    # Seconds of a collective without bytes.
    latency: float = 30e-6
    # Seconds that one more group of key heads takes: launches, and blocks that end at different times.
    step: float = 250e-6
    # What steps have to save, as a share of computing. While keys move, their kernels hold multiprocessors, and blocks
    # that stay wait for all of them: on two H200s two steps took up to 1.43 times as long as one.
    risk: float = 0.1


def find_exposed(steps: int, moved: float, computed: float) -> float:
    """Seconds of moving that nothing hides: the first step, and what is longer than computing of the others."""
    return (moved + (steps - 1) * max(0.0, moved - computed)) / steps


def choose_steps(most: int, moved: float, computed: float, rates: Rates) -> int:
    """How many steps of a call, at most so many, take the least time: one, unless others save more than they risk.
    `moved` and `computed` are the seconds of all of it."""
    find = lambda steps: find_exposed(steps, moved, computed) + steps * rates.step  # noqa: E731
    best = min(range(1, most + 1), key=find)
    return best if find(1) - find(best) > rates.risk * computed else 1


def find_moved_rows(
    passed: Tuple[int, int, int, int], heads: int, columns: int, bytes_of_element: int, rates: Rates
) -> Tuple[float, float]:
    """Seconds that rows and parts of them move, forward and backward. `passed` has rows that come to be computed from
    the same node and from others, and parts that come home from these; all of so many heads."""
    near, far, near_home, far_home = passed
    come, home = near / rates.link + far / rates.rail, near_home / rates.link + far_home / rates.rail
    row = heads * columns * bytes_of_element
    # Parts are f32, with a logsumexp; back go queries, outputs and their gradients, and those of queries come home.
    forward = row * come + 4 * heads * (columns + 1) * home + 2 * rates.latency
    backward = (3 * row + 8 * heads) * come + 4 * heads * columns * home + 3 * rates.latency
    return forward, backward
