"""Keys and values go round: each rank has those of one other at a time, and joins what it makes of them. In
the backward pass their gradients go round with them, and are home after the last step."""

from __future__ import annotations

from typing import Any, Iterator, List, Tuple

import torch
import torch.distributed as dist

from .._given import Given
from ._call import Call, Rows, Sums, attend, make_output
from ._shardings import count


def _rotate(call: Call, tensors: List[Any], holder: int) -> Tuple[List[Any], List[Any]]:
    """To the next rank, and from the previous one, whose tensors are those of `holder`."""
    length = count(call.plan.keys[holder])
    found = [x.new_empty((*x.shape[:2], length, x.shape[3])) for x in tensors]
    if call.plan.ranks == 1:
        return tensors, []
    ranks = dist.get_process_group_ranks(call.group or dist.group.WORLD)
    following, previous = (ranks[(call.rank + x) % len(ranks)] for x in (1, -1))
    operations = [
        dist.P2POp(what, x, peer, call.group)
        for what, peer, of in ((dist.isend, following, tensors), (dist.irecv, previous, found))
        for x in of
        if x.numel()
    ]
    return found, dist.batch_isend_irecv(operations) if operations else []


class _Sums:
    """(output, lse) of the steps so far, in f32."""

    def __init__(self, q: torch.Tensor, columns: int) -> None:
        self.output = q.new_zeros((*q.shape[:3], columns), dtype=torch.float32)
        self.lse = q.new_full(q.shape[:3], -torch.inf, dtype=torch.float32)

    def add(self, output: torch.Tensor, lse: torch.Tensor) -> None:
        total = torch.logaddexp(self.lse, lse)
        # Rows that kept nothing yet stay zeros.
        base = torch.where(total == -torch.inf, 0.0, total)
        old, new = (torch.exp(x - base)[..., None] for x in (self.lse, lse))
        self.output, self.lse = old * self.output + new * output, total


class _Step:
    """What a rank does with the keys of one rank: `source`."""

    def __init__(self, call: Call, number: int) -> None:
        plan, rank = call.plan, call.rank
        self.source, self.following = ((rank - x) % plan.ranks for x in (number, number + 1))
        self.is_last = number + 1 == plan.ranks
        self.rows, self.keys = plan.rows[rank], plan.keys[self.source]
        self.has_work = bool(self.rows and self.keys)
        # A sink is in the first step with work.
        before = [plan.keys[(rank - x) % plan.ranks] for x in range(number)]
        self.has_sink = self.has_work and not any(before)

    def give(self, call: Call, q: Any, held: List[Any], sink: Any) -> Given:
        captured = call.bind(q, self.rows, self.keys)
        if sink is not None and not self.has_sink:
            # Far below all scores. -inf would make rows that keep nothing NaN.
            sink = torch.full_like(sink, -1e30)
        return Given(q, held[0], held[1], call.scale, sink, False, captured)


def _list_steps(call: Call) -> Iterator[_Step]:
    return (_Step(call, number) for number in range(call.plan.ranks))


def forward(call: Call, q: Any, k: Any, v: Any, sink: Any, _: bool) -> Tuple[Any, Any, Any]:
    """(output, lse, None); all of them heads first."""
    sums, held = _Sums(q, v.shape[3]), [x.contiguous() for x in (k, v)]
    for step in _list_steps(call):
        following, works = ([], []) if step.is_last else _rotate(call, held, step.following)
        if step.has_work:
            part = torch.empty_like(sums.output)
            found = attend(call, step.give(call, q, held, sink), part, False)
            sums.add(found.output, found.lse)
        for work in works:
            work.wait()
        held = following
    if sink is not None:
        # Rows that kept nothing, not even a sink.
        sums.lse = torch.where(sums.lse <= -1e29, -torch.inf, sums.lse)
    output = make_output(call, q, v.shape[3])
    output.copy_(sums.output)
    return output, sums.lse, None


def backward(
    call: Call, q: Any, k: Any, v: Any, sink: Any, rows: Rows, gradients: Tuple[Any, Any], wanted: List[bool]
) -> List[Any]:
    """Gradients of q, k, v, the sink and captured arrays, those that are wanted."""
    d_q, sums = torch.zeros_like(q, dtype=torch.float32), Sums(call, wanted, sink, is_wide=True)
    held = [k.contiguous(), v.contiguous()]
    held += [torch.zeros_like(x, dtype=torch.float32) for x in held]
    # Of the whole's output and lse: gradients of parts add up.
    of = Rows(rows.output, rows.lse, None)
    for step in _list_steps(call):
        if step.has_work:
            found = sums.differentiate(step.give(call, q, held, sink), of, *gradients)
            d_q += found[0]
            held[2] += found[1]
            held[3] += found[2]
        held, works = _rotate(call, held, step.following)
        for work in works:
            work.wait()
    results = [d_q.to(q.dtype), held[2].to(k.dtype), held[3].to(v.dtype)]
    return [x for x, is_wanted in zip(results, wanted) if is_wanted] + sums.list()
