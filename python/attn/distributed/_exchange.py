"""Parts of a tensor on their way between ranks, all at once. The gradient of what was received goes back to
whoever holds it, and is summed there in f32, in the order of ranks."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, List, NamedTuple, Tuple

import torch
import torch.distributed as dist

from ._group import waits_for_ranks
from ._shardings import Interval, Intervals, count, intersect, make_positions


@dataclasses.dataclass(frozen=True, eq=False)
class Route:
    """What each rank holds, and what it wants; intervals of positions, ascending. One stands for itself alone in
    tables, since to compare long ones takes longer than a transfer."""

    held: Tuple[Intervals, ...]
    wanted: Tuple[Intervals, ...]


class Steps(NamedTuple):
    """Of one rank: how many positions go to each rank and come from each, which of its own it sends, in the
    order of receivers, for each wanted position its place among those that come, and for each that comes its
    place among the wanted ones."""

    sent: List[int]
    received: List[int]
    send: torch.Tensor
    place: torch.Tensor
    back: torch.Tensor


def find_places(intervals: Intervals, inside: Intervals) -> List[Interval]:
    """Where positions of `inside` stand among those of `intervals`, which have them all."""
    found, offset = [], 0
    for begin, end in intervals:
        for a, b in intersect(((begin, end),), inside):
            found.append((a - begin + offset, b - begin + offset))
        offset += end - begin
    return found


@functools.lru_cache(maxsize=256)
def find_steps(route: Route, rank: int, device: torch.device) -> Steps:
    held, wanted = route.held, route.wanted
    ranks = range(len(held))
    to = [intersect(held[rank], wanted[peer]) for peer in ranks]
    of = [intersect(held[peer], wanted[rank]) for peer in ranks]
    send = make_positions([x for mine in to for x in find_places(held[rank], mine)])
    # Positions as they come, rank after rank; sorted, they are in the order of the whole.
    come = make_positions([x for mine in of for x in mine])
    place = torch.argsort(come, stable=True)
    back = torch.empty_like(place)
    back[place] = torch.arange(len(back))
    indices = (x.to(device) for x in (send, place, back))
    return Steps(list(map(count, to)), list(map(count, of)), *indices)


# index_select takes one element after another, so that wide ones move at the rate of memory.
WIDE = torch.complex128


def is_wide(x: torch.Tensor) -> bool:
    """Whether rows of the last dimension are made of whole wide elements."""
    size, per = x.element_size(), WIDE.itemsize
    steps = (x.shape[-1], x.storage_offset(), *x.stride()[:-1])
    return x.dim() > 1 and x.stride(-1) == 1 and all(step * size % per == 0 for step in steps)


def select(x: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
    """x.index_select(dim, index), where `dim` is not the last one of several."""
    if not is_wide(x):
        return x.index_select(dim, index)
    return x.view(WIDE).index_select(dim, index).view(x.dtype)


def _add_parts(parts: torch.Tensor, steps: Steps, length: int) -> torch.Tensor:
    total = parts.new_zeros((length, *parts.shape[1:]), dtype=torch.float32)
    for index, part in zip(steps.send.split(steps.sent), parts.split(steps.sent)):
        # No position comes twice from one rank.
        total[index] += part.float()
    return total


@waits_for_ranks
def move(rows: torch.Tensor, received: List[int], sent: List[int], group: Any) -> torch.Tensor:
    """(positions, ...), contiguous, in the order of receivers: those that come, in the order of senders."""
    found = rows.new_empty((sum(received), *rows.shape[1:]))
    dist.all_to_all_single(found, rows, received, sent, group=group)
    return found


def fetch(x: Any, dim: int, steps: Steps, group: Any) -> Any:
    """The wanted positions of this rank along `dim`, in ascending order."""
    rows = select(x.movedim(dim, 0), 0, steps.send)
    found = move(rows.contiguous(), steps.received, steps.sent, group)
    return select(found, 0, steps.place).movedim(0, dim).contiguous()


def give_back(gradient: Any, dim: int, extent: int, steps: Steps, group: Any) -> Any:
    """That of what was fetched, to who holds it: f32, with so many positions along `dim`."""
    rows = select(gradient.movedim(dim, 0), 0, steps.back).contiguous()
    parts = move(rows, steps.sent, steps.received, group)
    return _add_parts(parts, steps, extent).movedim(0, dim)


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, dim: int, route: Route, group: Any) -> Any:  # type: ignore[override]
        steps = find_steps(route, dist.get_rank(group), x.device)
        ctx.dim, ctx.steps, ctx.group, ctx.extent = dim, steps, group, x.shape[dim]
        return fetch(x, dim, steps, group)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Tuple:  # type: ignore[override]
        total = give_back(gradient, ctx.dim, ctx.extent, ctx.steps, ctx.group)
        return total.to(gradient.dtype), None, None, None


def exchange(x: Any, dim: int, route: Route, group: Any) -> Any:
    """The wanted positions of this rank along `dim`, in ascending order."""
    return _Exchange.apply(x, dim, route, group)
