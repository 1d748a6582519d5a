"""Ulysses within nodes and gathering between them: ranks of a node exchange heads for positions, so that each has the
rows and keys of its node, of some heads; then it fetches the keys that these rows keep from the ranks of other nodes
that have the same heads."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, List, NamedTuple, Tuple

import torch
import torch.distributed as dist

from ._exchange import Route, exchange
from ._group import find_by_name, name_group
from ._plan import Plan
from ._shared import Shared
from ._shardings import Intervals, join


class Nodes(NamedTuple):
    """What a rank knows of a plan with nodes."""

    # Of the ranks of its node, which turn heads, and of its peers of all nodes, which gather.
    inner: Plan
    outer: Plan
    # Names of the groups of these.
    node: str
    peers: str
    # Its number in its node.
    place: int


def _unite(parts: Tuple[Intervals, ...]) -> Intervals:
    return join([x for mine in parts for x in mine])


@functools.lru_cache(maxsize=64)
def cut_nodes(plan: Plan) -> Plan:
    """The plan of nodes, each of which is one rank to others."""
    cut = [slice(i, i + plan.node) for i in range(0, plan.ranks, plan.node)]
    rows, keys = (tuple(_unite(held[x]) for x in cut) for held in (plan.rows, plan.keys))
    fetched = tuple(plan.fetched[x.start] for x in cut)
    work = tuple(sum(plan.work[x]) for x in cut)
    return Plan(plan.total, rows, keys, fetched, "gather", plan.sharding, work, plan.steps)


@functools.lru_cache(maxsize=64)
def _make_groups(name: str, node: int) -> Tuple[str, str]:
    """Once for each group: all of its ranks do so at the same call."""
    group = find_by_name(name)
    ranks, rank = dist.get_process_group_ranks(group), dist.get_rank(group)
    first, place = rank // node * node, rank % node
    # Who is in none of two groups need not know of them.
    own = [dist.new_group(x, use_local_synchronization=True) for x in (ranks[first : first + node], ranks[place::node])]
    return name_group(own[0]), name_group(own[1])


def find_nodes(plan: Plan, group: Any) -> Nodes:
    rank = dist.get_rank(group)
    first, place = rank // plan.node * plan.node, rank % plan.node
    mine = slice(first, first + plan.node)
    fields = dict(rows=plan.rows[mine], keys=plan.keys[mine], fetched=plan.fetched[mine], work=plan.work[mine], node=0)
    inner = dataclasses.replace(plan, **fields)  # type: ignore[arg-type]
    return Nodes(inner, cut_nodes(plan), *_make_groups(name_group(group), plan.node), place)


def join_shared(nodes: Nodes, shared: Tuple[Shared, ...], arrays: List[Any]) -> List[Any]:
    """Captured arrays of which ranks have parts, with the parts of the node: what it is one rank with."""
    found, group = list(arrays), find_by_name(nodes.node)
    for number, of, dim in shared:
        held, x = getattr(nodes.inner, of), arrays[number]
        # Collectives know no bools, and views of another type have no gradient.
        is_bool = x.dtype is torch.bool
        whole = exchange(x.view(torch.uint8) if is_bool else x, dim, _find_route(held), group)
        found[number] = whole.view(torch.bool) if is_bool else whole
    return found


@functools.lru_cache(maxsize=64)
def _find_route(held: Tuple[Intervals, ...]) -> Route:
    return Route(held, (_unite(held),) * len(held))
