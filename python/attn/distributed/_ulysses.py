"""Ranks exchange heads for positions: each has some heads of the whole sequence, and makes one call of them."""

from __future__ import annotations

import functools
from typing import Any, Tuple

import torch
import torch.distributed as dist

import attn

from .._functions_of_parts import place
from .._library import refuse
from ._call import Call
from ._shardings import Intervals, count, make_positions


@functools.lru_cache(maxsize=256)
def _find_order(held: Tuple[Intervals, ...], device: torch.device) -> Tuple[torch.Tensor, torch.Tensor]:
    """Of positions that lie rank after rank: their places in the order of the whole, and back."""
    order = torch.argsort(torch.cat([make_positions(mine) for mine in held]))
    return order.to(device), torch.argsort(order).to(device)


class _Turn(torch.autograd.Function):
    """(positions of this rank, heads, ...) -> (positions of the whole, heads of this rank, ...), or back."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, x: Any, held: Tuple[Intervals, ...], group: Any, is_back: bool
    ) -> Any:
        ctx.how = held, group, is_back
        return (_to_heads if is_back else _to_positions)(x, held, group)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Tuple:  # type: ignore[override]
        held, group, is_back = ctx.how
        found = (_to_positions if is_back else _to_heads)(gradient, held, group)
        return found, None, None, None


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


def attend_heads(q: Any, k: Any, v: Any, sink: Any, call: Call) -> Tuple[Any, Any]:
    """(output, lse): one call of this rank's heads."""
    plan, group, how = call.plan, call.group, call.how
    ranks, rank = plan.ranks, call.rank
    head_dim, dim = (2, 1) if call.is_rows_first else (1, 2)
    if k.shape[head_dim] % ranks:
        hint = 'method="gather" serves any number of them'
        refuse("k", f"key heads that {ranks} ranks divide", k.shape[head_dim], hint)

    def turn(x: Any) -> Any:
        """(positions, heads, B, columns)."""
        return x.movedim((dim, head_dim), (0, 1))

    def turn_back(x: Any) -> Any:
        return x.movedim((0, 1), (dim, head_dim)).contiguous()

    held = plan.rows, plan.keys, plan.keys
    q, k, v = (
        turn_back(_Turn.apply(turn(x), of, group, False)) for x, of in zip((q, k, v), held)
    )
    heads = q.shape[head_dim]
    first = torch.tensor([rank * heads], dtype=torch.int32, device=q.device)
    score, mask = place(call.functions, None, None, call.total, head=first)
    mine = None if sink is None else sink[rank * heads : (rank + 1) * heads]
    output, lse = attn.attention(
        q, k, v, score=score, mask=mask, sink=mine, return_lse=True, **how
    )
    output = turn_back(_Turn.apply(turn(output), plan.rows, group, True))
    # (B, H, M), of which positions come first.
    lse = _Turn.apply(lse.movedim((2, 1), (0, 1)), plan.rows, group, True)
    return output, lse.movedim((0, 1), (2, 1)).contiguous()
