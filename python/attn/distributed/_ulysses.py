"""Ranks exchange heads for positions: each has some heads of the whole sequence, and makes one call of them."""

from __future__ import annotations

import functools
from typing import Any, List, Tuple

import torch
import torch.distributed as dist

from .._given import Given
from ._call import Call, Rows, Sums, attend, make_output
from ._shardings import Intervals, count, make_positions
from ._shared import bring_home, gather_shared


@functools.lru_cache(maxsize=256)
def _find_order(held: Tuple[Intervals, ...], device: torch.device) -> Tuple[torch.Tensor, torch.Tensor]:
    """Of positions that lie rank after rank: their places in the order of the whole, and back."""
    order = torch.argsort(torch.cat([make_positions(mine) for mine in held]))
    return order.to(device), torch.argsort(order).to(device)


def _to_positions(x: Any, held: Tuple[Intervals, ...], group: Any) -> Any:
    ranks, mine = len(held), x.shape[0]
    # Heads of each receiver lie together.
    rows = x.unflatten(1, (ranks, -1)).movedim(1, 0).flatten(0, 1).contiguous()
    counts = list(map(count, held))
    found = rows.new_empty((sum(counts), *rows.shape[1:]))
    dist.all_to_all_single(found, rows, counts, [mine] * ranks, group=group)
    return found.index_select(0, _find_order(held, x.device)[0])


def _to_heads(x: Any, held: Tuple[Intervals, ...], group: Any) -> Any:
    ranks, counts = len(held), list(map(count, held))
    mine = counts[dist.get_rank(group)]
    rows = x.index_select(0, _find_order(held, x.device)[1]).contiguous()
    found = rows.new_empty((ranks * mine, *rows.shape[1:]))
    dist.all_to_all_single(found, rows, [mine] * ranks, counts, group=group)
    return found.unflatten(0, (ranks, mine)).movedim(0, 1).flatten(1, 2)


def turn(x: Any, held: Tuple[Intervals, ...], group: Any, is_back: bool) -> Any:
    """(positions of this rank, heads, ...) -> (positions of the whole, heads of this rank, ...), or back."""
    return (_to_heads if is_back else _to_positions)(x, held, group)


def forward(call: Call, q: Any, k: Any, v: Any, sink: Any, is_recorded: bool) -> Tuple[Any, Any, Any]:
    """(output, lse, lse_low) of this rank's heads, which have been turned; all of them heads first."""
    output = make_output(call, q, v.shape[3])
    captured = gather_shared(call).bind(q, (), ())
    return tuple(attend(call, Given(q, k, v, call.scale, sink, False, captured), output, is_recorded))


def backward(
    call: Call, q: Any, k: Any, v: Any, sink: Any, rows: Rows, gradients: Tuple[Any, Any], wanted: List[bool]
) -> List[Any]:
    """Gradients of q, k, v, the sink and captured arrays, those that are wanted."""
    whole = gather_shared(call)
    sums, captured = Sums(whole, wanted, sink), whole.bind(q, (), ())
    given = Given(q, k, v, call.scale, sink, False, captured)
    found = sums.differentiate(given, rows, *gradients)
    bring_home(call, sums)
    return [x for x, is_wanted in zip(found, wanted) if is_wanted] + sums.list()
