"""Keys and values go round: each rank has those of one other at a time, and joins what it makes of them. In
the backward pass their gradients go round with them, and are home after the last step."""

from __future__ import annotations

from typing import Any, Iterator, List, NamedTuple, Tuple

import torch
import torch.distributed as dist

from .._given import Given
from ._call import Call, Rows, Sums, attend, make_output
from ._shardings import count


class _Held(NamedTuple):
    """What goes round: tensors of one rank's keys, and the dimension of keys of each."""

    tensors: List[Any]
    dims: List[int]


def _list_shared(call: Call) -> List[Tuple[int, str, int]]:
    """Captured arrays whose parts go round with the keys that they belong to."""
    return [x for x in call.parts.shared if x[1] == "keys"]


def _hold(call: Call, k: Any, v: Any) -> _Held:
    shared = _list_shared(call)
    arrays = [call.captures[number].detach().contiguous() for number, _, _ in shared]
    return _Held([k.contiguous(), v.contiguous(), *arrays], [2, 2, *[dim for _, _, dim in shared]])


def _rotate(call: Call, held: _Held, holder: int) -> Tuple[List[Any], List[Any]]:
    """To the next rank, and from the previous one, whose tensors are those of `holder`."""
    length, tensors = count(call.plan.keys[holder]), held.tensors
    shapes = [(*x.shape[:dim], length, *x.shape[dim + 1 :]) for x, dim in zip(tensors, held.dims)]
    found = [x.new_empty(shape) for x, shape in zip(tensors, shapes)]
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
        arrays = list(call.captures)
        for (number, _, _), x in zip(_list_shared(call), held[2:]):
            arrays[number] = x
        captured = call._replace(captures=arrays).bind(q, self.rows, self.keys)
        if sink is not None and not self.has_sink:
            # Far below all scores. -inf would make rows that keep nothing NaN.
            sink = torch.full_like(sink, -1e30)
        return Given(q, held[0], held[1], call.scale, sink, False, captured)


def _list_steps(call: Call) -> Iterator[_Step]:
    return (_Step(call, number) for number in range(call.plan.ranks))


def forward(call: Call, q: Any, k: Any, v: Any, sink: Any, _: bool) -> Tuple[Any, Any, Any]:
    """(output, lse, None); all of them heads first."""
    sums, held = _Sums(q, v.shape[3]), _hold(call, k, v)
    for step in _list_steps(call):
        following, works = ([], []) if step.is_last else _rotate(call, held, step.following)
        if step.has_work:
            part = torch.empty_like(sums.output)
            found = attend(call, step.give(call, q, held.tensors, sink), part, False)
            sums.add(found.output, found.lse)
        for work in works:
            work.wait()
        held = held._replace(tensors=following)
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
    held = _hold(call, k, v)
    count_held, learning = len(held.tensors), [0, 1]
    numbers = [4 + number for number, _, _ in _list_shared(call)]
    learning += [i for i, number in enumerate(numbers, 2) if wanted[number]]
    numbers = [number for number in numbers if wanted[number]]
    home = [torch.zeros_like(held.tensors[i], dtype=torch.float32) for i in learning]
    held = _Held(held.tensors + home, held.dims + [held.dims[i] for i in learning])
    # Of the whole's output and lse: gradients of parts add up.
    of = Rows(rows.output, rows.lse, None)
    for step in _list_steps(call):
        tensors, home = held.tensors[:count_held], held.tensors[count_held:]
        sums.take(dict(zip(numbers, home[2:])))
        if step.has_work:
            found = sums.differentiate(step.give(call, q, tensors, sink), of, *gradients)
            d_q += found[0]
            home[0] += found[1]
            home[1] += found[2]
        following, works = _rotate(call, held, step.following)
        for work in works:
            work.wait()
        held = held._replace(tensors=following)
    home = held.tensors[count_held:]
    sums.take(dict(zip(numbers, home[2:])))
    results = [d_q.to(q.dtype), home[0].to(k.dtype), home[1].to(v.dtype)]
    return [x for x, is_wanted in zip(results, wanted) if is_wanted] + sums.list()
