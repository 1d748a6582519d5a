"""Keys and values go round: each rank has those of one other at a time, and joins what it makes of them. In
the backward pass their gradients go round with them, and are home after the last step."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import torch
import torch.distributed as dist

import attn

from .._functions_of_parts import Functions, place
from .._library import refuse
from .._scan import Scan
from ._call import Call, make_table
from ._shardings import count


def _find_source(call: Call, step: int) -> int:
    """Whose keys this rank has in a step."""
    return (call.rank - step) % call.plan.ranks


def _has_work(call: Call, source: int) -> bool:
    return bool(call.plan.rows[call.rank] and call.plan.keys[source])


def _place(call: Call, source: int, device: Any) -> Dict[str, Any]:
    tables = [make_table(x, device) for x in (call.plan.rows[call.rank], call.plan.keys[source])]
    score, mask = place(call.functions, *tables, call.total)
    return {"score": score, "mask": mask, **call.how, "layout": "bhsd"}


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
        self.output, self.lse = old * self.output + new * output.float(), total


def _find_sink_step(call: Call) -> int:
    """The first step with work: a sink is in one of them."""
    steps = [s for s in range(call.plan.ranks) if _has_work(call, _find_source(call, s))]
    return steps[0] if steps else -1


def _forward(call: Call, q: Any, k: Any, v: Any, sink: Any) -> Tuple[Any, Any]:
    sums, held = _Sums(q, v.shape[3]), [k, v]
    sink_step = _find_sink_step(call)
    for step in range(call.plan.ranks):
        source, is_last = _find_source(call, step), step + 1 == call.plan.ranks
        next_ = _find_source(call, step + 1)
        following, works = ([], []) if is_last else _rotate(call, held, next_)
        if _has_work(call, source):
            there = _place(call, source, q.device)
            mine = sink if step == sink_step else None
            sums.add(*attn.attention(q, *held, sink=mine, return_lse=True, **there))
        for work in works:
            work.wait()
        held = following
    return sums.output.to(q.dtype), sums.lse


def _backward(call: Call, saved: Tuple, d_output: Any, d_lse: Any) -> Tuple:
    q, k, v, sink, output, lse = saved
    d_q, d_sink = torch.zeros_like(q, dtype=torch.float32), None
    held = [k, v, *(torch.zeros_like(x, dtype=torch.float32) for x in (k, v))]
    sink_step = _find_sink_step(call)
    for step in range(call.plan.ranks):
        source = _find_source(call, step)
        if _has_work(call, source):
            mine = sink if step == sink_step else None
            # Of the whole's output and lse: gradients of parts add up.
            of = dict(output=output, lse=lse, d_lse=d_lse, sink=mine)
            found = attn.gradient(q, *held[:2], d_output, **of, **_place(call, source, q.device))
            d_q += found[0]
            held[2] += found[1]
            held[3] += found[2]
            d_sink = d_sink if mine is None else found[3]
        held, works = _rotate(call, held, _find_source(call, step + 1))
        for work in works:
            work.wait()
    if sink is not None and d_sink is None:
        d_sink = torch.zeros_like(sink)
    return d_q.to(q.dtype), held[2].to(k.dtype), held[3].to(v.dtype), d_sink


class _Ring(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, sink: Any, call: Call) -> Any:  # type: ignore[override]
        output, lse = _forward(call, q, k, v, sink)
        ctx.save_for_backward(q, k, v, sink, output, lse)
        ctx.call = call
        ctx.set_materialize_grads(False)
        return output, lse

    @staticmethod
    def backward(ctx: Any, d_output: Any, d_lse: Any) -> Tuple:  # type: ignore[override]
        output = ctx.saved_tensors[4]
        d_output = torch.zeros_like(output) if d_output is None else d_output.contiguous()
        d_lse = None if d_lse is None else d_lse.contiguous()
        return (*_backward(ctx.call, ctx.saved_tensors, d_output, d_lse), None)


def _check_captures(functions: Functions) -> None:
    arrays = Scan.of(*functions).arrays
    if torch.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in arrays):
        refuse(
            "score",
            "arrays without gradients where keys go round",
            "one that requires a gradient",
            'method="gather" has gradients of what functions read',
        )


def attend_ring(q: Any, k: Any, v: Any, sink: Any, call: Call) -> Tuple[Any, Any]:
    """(output, lse), in the layout of q."""
    _check_captures(call.functions)
    q, k, v = (x.transpose(1, 2) if call.is_rows_first else x for x in (q, k, v))
    output, lse = _Ring.apply(*(x.contiguous() for x in (q, k, v)), sink, call)
    return output.transpose(1, 2) if call.is_rows_first else output, lse
