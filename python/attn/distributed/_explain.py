"""What a plan costs: bytes, balance and time, and what bounds it."""

from __future__ import annotations

from typing import List, NamedTuple

from ._plan import Plan
from ._shardings import count


class Rates(NamedTuple):
    """Of one rank. The defaults are of an H200: operations of 16 bits and D = 128, measured, and NVLink at
    0.8 of its nominal rate. Between nodes a rank has a rail of 400 Gb/s: 45e9."""

    # Operations a second.
    forward: float = 640e12
    backward: float = 540e12
    # Bytes a second, in one direction.
    link: float = 360e9
    # Seconds of a collective without bytes.
    latency: float = 30e-6


class _Cost(NamedTuple):
    received: int
    forward: float
    moved: float
    backward: float
    moved_back: float


def _measure(plan: Plan, rank: int, heads: int, key_heads: int, columns: int, batch: int, bytes_: int, rates: Rates) -> _Cost:
    work = batch * heads * plan.work[rank]
    keys = plan.count_foreign(rank)
    if plan.method == "ring":
        keys = plan.total[1] - count(plan.keys[rank])
    received = 2 * batch * key_heads * columns * keys * bytes_
    if plan.method == "ulysses":
        # q, k and v arrive, and the output leaves.
        mine = count(plan.rows[rank]) * (2 * heads + 2 * key_heads)
        received = batch * columns * mine * bytes_ * (plan.ranks - 1) // plan.ranks
    latency = rates.latency if plan.ranks > 1 else 0.0
    forward, backward = 4 * columns * work / rates.forward, 10 * columns * work / rates.backward
    # Keys and values again, and their gradients home.
    return _Cost(received, forward, received / rates.link + latency, backward, 2 * received / rates.link + latency)


def explain(
    plan: Plan,
    *,
    heads: int,
    key_heads: int,
    head_dim: int,
    batch: int = 1,
    bytes_of_element: int = 2,
    rates: Rates = Rates(),
) -> str:
    """A table of one attention by this plan: for each rank the rows that it holds, the share of the work, the
    keys and bytes that it receives, and the time of computing and of moving, forward and backward.

    Args:
        heads, key_heads, head_dim, batch: H, Hkv, D and B.
        bytes_of_element: 2 for 16 bits.
        rates: of the machine; those of an H200 if they are left out.

    Times are estimates by arithmetic: work over rates, nothing of which runs at the same time.
    """
    costs = [
        _measure(plan, rank, heads, key_heads, head_dim, batch, bytes_of_element, rates)
        for rank in range(plan.ranks)
    ]
    whole = sum(plan.work) or 1
    lines: List[str] = [
        f"{plan.total[0]} rows x {plan.total[1]} keys on {plan.ranks} ranks, {plan.sharding}, {plan.method}: "
        f"balance {plan.balance:.3f}",
        "rank      rows   work      keys received  MB received   forward ms (moved)  backward ms (moved)",
    ]
    for rank, cost in enumerate(costs):
        lines.append(
            f"{rank:4} {count(plan.rows[rank]):9} {plan.work[rank] / whole:6.1%} {plan.count_foreign(rank):18} "
            f"{cost.received / 1e6:12.1f} {1e3 * cost.forward:12.3f} ({1e3 * cost.moved:.3f}) "
            f"{1e3 * cost.backward:12.3f} ({1e3 * cost.moved_back:.3f})"
        )
    slowest = max(costs, key=lambda cost: cost.forward + cost.moved)
    bound = "transfers" if slowest.moved > slowest.forward else "computing"
    lines.append(
        f"forward {1e3 * (slowest.forward + slowest.moved):.3f} ms, bound by {bound} on the slowest rank"
    )
    return "\n".join(lines)
