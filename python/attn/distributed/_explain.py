"""What a plan costs: bytes, balance and time, and what bounds it."""

from __future__ import annotations

import dataclasses
from typing import List, NamedTuple, Tuple

from ._plan import Plan
from ._rates import Rates, find_exposed, find_moved_rows
from ._shardings import count, intersect, join


class Shape(NamedTuple):
    """Of one attention."""

    batch: int
    heads: int
    key_heads: int
    columns: int
    # Of an element.
    bytes: int


class _Cost(NamedTuple):
    rank: int
    # Bytes from ranks of the same node, and from others.
    near: int
    far: int
    # Bytes, without those of arguments and results, of the pass that takes more.
    memory: int
    # Seconds of computing, and those of moving: all of it, and what nothing hides.
    forward: float
    moved: float
    exposed: float
    backward: float
    exposed_back: float

    @property
    def total(self) -> float:
        return self.forward + self.exposed


def _count_keys(plan: Plan, rank: int, node: int) -> List[int]:
    """Keys that a rank receives from its own node and from others."""
    if plan.method == "ulysses":
        return [0, 0]
    if plan.method == "ring":
        everything = ((0, plan.total[1]),)
        plan = dataclasses.replace(plan, fetched=(everything,) * plan.ranks)
    return list(plan.count_moved(rank, node))


def _count_bytes(plan: Plan, rank: int, shape: Shape, node: int) -> List[int]:
    if plan.node:
        # Within a node as below, of whatever is a node of the machine; keys of some heads from other nodes.
        each = count(plan.rows[rank]) * (2 * shape.heads + 2 * shape.key_heads)
        near = shape.batch * shape.columns * each * shape.bytes // plan.node * (plan.node - 1)
        first = rank // plan.node * plan.node
        own = join([x for mine in plan.keys[first : first + plan.node] for x in mine])
        foreign = count(plan.fetched[rank]) - count(intersect(plan.fetched[rank], own))
        return [near, 2 * shape.batch * shape.key_heads * shape.columns * shape.bytes * foreign // plan.node]
    if plan.method == "ulysses":
        # q, k and v arrive, and the output leaves: of all ranks the same.
        each = count(plan.rows[rank]) * (2 * shape.heads + 2 * shape.key_heads)
        part = shape.batch * shape.columns * each * shape.bytes // plan.ranks
        mates = min(node, plan.ranks) - 1
        return [part * mates, part * (plan.ranks - 1 - mates)]
    if plan.method == "pass rows":
        near, far, near_home, far_home = plan.count_passed(rank, node)
        heads = shape.batch * shape.heads
        row, part = heads * shape.columns * shape.bytes, 4 * heads * (shape.columns + 1)
        return [near * row + near_home * part, far * row + far_home * part]
    of_key = 2 * shape.batch * shape.key_heads * shape.columns * shape.bytes
    return [of_key * keys for keys in _count_keys(plan, rank, node)]


def count_memory(plan: Plan, rank: int, shape: Shape) -> Tuple[int, int]:
    """The most bytes that a call of a rank takes, without its arguments and results: forward, backward."""
    pair = 2 * shape.batch * shape.columns * shape.bytes
    held, fetched = count(plan.keys[rank]), count(plan.fetched[rank])
    others = [peer for peer in range(plan.ranks) if peer != rank]
    sent = sum(count(intersect(plan.keys[rank], plan.fetched[peer])) for peer in others)
    # Of several intervals, which are not received where they belong.
    come = [intersect(plan.keys[peer], plan.fetched[rank]) for peer in others]
    packed = sum(count(x) for x in come if len(x) > 1)
    if plan.method == "ulysses":
        # q, k, v and the output of all positions and some heads; their gradients as well.
        each = count(plan.rows[rank]) * (shape.heads + shape.key_heads)
        # Of a node also the keys of its heads that it fetches, and their gradients.
        keys = pair * shape.key_heads * count(plan.fetched[rank]) // plan.node if plan.node else 0
        return pair * each + keys, 2 * (pair * each + keys)
    if plan.method == "ring":
        # Keys and values of two ranks; in the backward pass with sums of f32.
        most = max(map(count, plan.keys))
        whole = pair * shape.key_heads * most
        rows = 4 * shape.batch * shape.heads * shape.columns * count(plan.rows[rank])
        sums = 8 * shape.batch * shape.key_heads * shape.columns * most
        return 2 * whole + 2 * rows, 2 * (whole + sums) + rows
    if plan.method == "pass rows":
        return _count_memory_of_rows(plan, rank, shape)
    steps, back = _count_steps(plan, shape)
    # Two buffers, one transfer on its way. In the backward pass also gradients of one group that are made, and
    # of another that go home, where those of keys and then those of values are summed in f32. Nothing is fetched any
    # more when those of a second group are made.
    group = pair * -(-shape.key_heads // steps)
    forward = group * (min(2, steps) * fetched + sent + packed)
    group = pair * -(-shape.key_heads // back)
    buffers, coming = group * min(2, back) * fetched, group * (sent + packed)
    home = group * (min(2, back) * fetched + sent + plan.count_foreign(rank))
    home += group // shape.bytes * 2 * held * (plan.ranks > 2)
    rows = shape.batch * -(-shape.heads // back) * shape.columns * shape.bytes * count(plan.rows[rank])
    return forward, buffers + coming * (back > 2) + home + rows * (back > 1)


def _count_memory_of_rows(plan: Plan, rank: int, shape: Shape) -> Tuple[int, int]:
    """Of "pass rows": rows that are sent, come and are in order, then their parts, as they are, as they are sent and as
    they come, then what is merged."""
    each, own = shape.batch * shape.heads * shape.columns, count(plan.rows[rank])
    passed = count(plan.passed[rank])
    if plan.deals_heads:
        own //= plan.ranks
        sent, come = plan.total[0], own * plan.ranks
    else:
        sent = come = sum(count(intersect(plan.rows[rank], x)) for x in plan.passed)
    row, part = each * shape.bytes, 4 * each // shape.columns * (shape.columns + 4)
    there = row * passed
    forward = max(row * (sent + 2 * passed), there + part * (2 * passed + come), there + 2 * part * come + 2 * 4 * each * own)
    # Queries, outputs and their gradients, and gradients of all keys in f32.
    made = 8 * shape.batch * shape.key_heads * shape.columns * count(plan.keys[rank]) + 4 * each * passed
    return forward, max(3 * row * (sent + 2 * passed), 3 * there + made + 4 * each * (passed + come))


def _count_steps(plan: Plan, shape: Shape) -> Tuple[int, int]:
    """Calls that a forward and a backward pass make, one after the other."""
    if plan.method != "gather":
        return (plan.ranks, plan.ranks) if plan.method == "ring" else (1, 1)
    heads = shape.batch, shape.heads, shape.key_heads
    return plan.count_steps(*heads), plan.count_steps(*heads, True)


def _estimate(plan: Plan, rank: int, shape: Shape, rates: Rates) -> _Cost:
    work = shape.batch * shape.heads * shape.columns * plan.work[rank]
    near, far = _count_bytes(plan, rank, shape, rates.node)
    steps, back = _count_steps(plan, shape)
    latency = steps * rates.latency if plan.ranks > 1 else 0.0
    moved = near / rates.link + far / rates.rail + latency
    forward, backward = 4 * work / rates.forward, 10 * work / rates.backward
    memory = max(count_memory(plan, rank, shape))
    if plan.method == "pass rows":
        # Each part waits for the one before.
        passed, heads = plan.count_passed(rank, rates.node), shape.batch * shape.heads
        there, again = find_moved_rows(passed, heads, shape.columns, shape.bytes, rates)
        return _Cost(rank, near, far, memory, forward, there, there, backward, again)
    # In the backward pass keys and values come again, and their gradients go home.
    exposed = find_exposed(steps, moved, forward), find_exposed(back, 2 * moved, backward)
    return _Cost(rank, near, far, memory, forward, moved, exposed[0], backward, exposed[1])


# As many ranks as a table shows; of more, those that decide.
_MOST = 16


def _choose(costs: List[_Cost]) -> List[_Cost]:
    if len(costs) <= _MOST:
        return costs
    keys = (lambda c: c.total), (lambda c: -c.total), (lambda c: c.near + c.far), (lambda c: -c.near - c.far)
    return sorted({max(costs, key=key) for key in keys}, key=lambda c: c.rank)


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
    """A table of one attention by this plan. Each rank has its rows and its share of the work, the megabytes that
    it receives from its own node and from others, and the most megabytes that a call takes, without its
    arguments and results. Milliseconds are those of computing, and those of moving while nothing is
    computed. Of more than 16 ranks, the slowest, the fastest, and those that receive most and least.

    Args:
        heads, key_heads, head_dim, batch: H, Hkv, D and B.
        bytes_of_element: 2 for 16 bits.
        rates: of the machine; the defaults are those of `Rates`.

    Times are estimates by arithmetic, work over rates. While one group of key heads is computed, the next one
    moves: the first has nothing to hide it.
    """
    shape = Shape(batch, heads, key_heads, head_dim, bytes_of_element)
    costs = [_estimate(plan, rank, shape, rates) for rank in range(plan.ranks)]
    whole = sum(plan.work) or 1
    lines = [
        f"{plan.total[0]} rows x {plan.total[1]} keys on {plan.ranks} ranks, {plan.sharding}, {plan.method}: "
        f"balance {plan.balance:.3f}",
        "rank       rows   work    MB near     MB far  MB memory  forward ms  + moved  backward ms  + moved",
    ]
    for c in _choose(costs):
        lines.append(
            f"{c.rank:4} {count(plan.rows[c.rank]):10} {plan.work[c.rank] / whole:6.2%} {c.near / 1e6:10.1f} "
            f"{c.far / 1e6:10.1f} {c.memory / 1e6:10.1f} {1e3 * c.forward:11.3f} {1e3 * c.exposed:8.3f} "
            f"{1e3 * c.backward:12.3f} {1e3 * c.exposed_back:8.3f}"
        )
    slowest = max(costs, key=lambda c: c.total)
    bound = "transfers" if slowest.moved > slowest.forward else "computing"
    ideal = sum(c.forward for c in costs) / plan.ranks
    lines.append(
        f"forward {1e3 * slowest.total:.3f} ms, bound by {bound}; {ideal / slowest.total:.2f} of {plan.ranks} ranks' rate"
    )
    return "\n".join(lines)
