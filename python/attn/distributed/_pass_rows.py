"""Keys stay where they are, and few rows go to them: each rank attends from all rows that keep some of its keys, and who
holds a row merges the parts that ranks make of it. In the backward pass rows go again, with what they became, and the
gradients of queries come home; those of keys are there already."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch

from .._given import Given
from .._merge import merge
from ._call import Call, Rows, Sums, attend, make_output
from ._exchange import Steps, fetch, find_steps, give_back, move, select
from ._shared import bring_home, gather_shared

# Columns behind those of an output in a message: its lse, and what keeps rows at multiples of 16 bytes.
_PADDING = 4


class _Passing:
    """How rows, or the heads of all rows, go to the ranks and come home."""

    def __init__(self, call: Call, q: torch.Tensor) -> None:
        route, self.dim = call.plan.find_passing(q.shape[1])
        self.group, self.extent = call.group, q.shape[self.dim]
        self.steps: Steps = find_steps(route, call.rank, q.device)

    def fetch(self, tensors: List[torch.Tensor]) -> List[torch.Tensor]:
        """Of (B, H, M, ..), in one message."""
        whole = fetch(torch.cat(tensors, 3) if len(tensors) > 1 else tensors[0], self.dim, self.steps, self.group)
        return list(whole.split([x.shape[3] for x in tensors], 3))

    def pack(self, q: torch.Tensor, columns: int) -> torch.Tensor:
        """Memory of a part that goes home in one message, what is sent of a row together: (rows, B, H, ..)."""
        first, *others = q.movedim(self.dim, 0).shape[:3]
        return q.new_empty((first, *others, columns + _PADDING), dtype=torch.float32)

    def bring_home(self, packed: torch.Tensor) -> Tuple[List[torch.Tensor], List[torch.Tensor]]:
        """Outputs and lses of the parts that ranks made of this rank's rows: (B, H, M, Dv) and (B, H, M)."""
        steps, columns = self.steps, packed.shape[3] - _PADDING
        parts = move(select(packed, 0, steps.back), steps.sent, steps.received, self.group)
        outputs, lses = [], []
        for index, part in zip(steps.send.split(steps.sent), parts.split(steps.sent)):
            if not len(index):
                continue
            if len(index) < self.extent:
                # Of the others it kept nothing.
                whole = part.new_full((self.extent, *part.shape[1:]), -torch.inf)
                whole[index] = part
                part = whole
            part = part.movedim(0, self.dim)
            outputs.append(part[..., :columns])
            lses.append(part[..., columns])
        if not outputs:
            whole = packed.new_zeros((self.extent, *packed.shape[1:3], columns)).movedim(0, self.dim)
            outputs, lses = [whole], [whole.new_full(whole.shape[:3], -torch.inf)]
        return outputs, lses


def _hide(sink: Any, heads: int) -> Any:
    """What kernels have of a sink, which joins where parts are merged. -inf would make rows that keep nothing NaN."""
    return None if sink is None else sink.new_full((heads,), -1e30)


def _has_work(call: Call, q: torch.Tensor) -> bool:
    return bool(q.shape[2] and call.plan.keys[call.rank])


def forward(call: Call, q: Any, k: Any, v: Any, sink: Any, _: bool) -> Tuple[Any, Any, Any]:
    """(output, lse, None); all of them heads first."""
    passing, columns = _Passing(call, q), v.shape[3]
    (there,) = passing.fetch([q])
    held = call.plan.passed[call.rank], call.plan.keys[call.rank]
    captured = gather_shared(call).bind(q, *held)
    packed = passing.pack(there, columns)
    part = packed.movedim(0, passing.dim)
    if _has_work(call, there):
        given = Given(there, k, v, call.scale, _hide(sink, there.shape[1]), False, captured)
        part[..., columns] = attend(call, given, part[..., :columns], False).lse
    else:
        part[..., columns] = -torch.inf
    outputs, lses = passing.bring_home(packed)
    if sink is not None:
        outputs.append(torch.zeros_like(outputs[0]))
        lses.append(sink.float()[None, :, None].expand_as(lses[0]))
    merged, lse = merge(outputs, lses)
    output = make_output(call, q, columns)
    output.copy_(merged)
    return output, lse, None


def backward(
    call: Call, q: Any, k: Any, v: Any, sink: Any, rows: Rows, gradients: Tuple[Any, Any], wanted: List[bool]
) -> List[Any]:
    """Gradients of q, k, v, the sink and captured arrays, those that are wanted."""
    d_output, d_lse = gradients
    passing = _Passing(call, q)
    there, output, d_output_there = passing.fetch([q, rows.output, d_output])
    sums_of_rows = [x[..., None] for x in (rows.lse, d_lse) if x is not None]
    lse, *of_lse = [x[..., 0].contiguous() for x in passing.fetch(sums_of_rows)]
    whole = gather_shared(call)
    sums = Sums(whole, wanted, _hide(sink, there.shape[1]), is_wide=True)
    d_q: Optional[torch.Tensor] = None
    results: List[Any] = [None, torch.zeros_like(k), torch.zeros_like(v)]
    if _has_work(call, there):
        captured = whole.bind(q, call.plan.passed[call.rank], call.plan.keys[call.rank])
        given = Given(there, k, v, call.scale, _hide(sink, there.shape[1]), False, captured)
        of = Rows(output, lse, None)
        d_q, d_k, d_v = sums.differentiate(given, of, d_output_there, of_lse[0] if of_lse else None)
        results[1:] = d_k.to(k.dtype), d_v.to(v.dtype)
    if wanted[0]:
        d_q = torch.zeros_like(there, dtype=torch.float32) if d_q is None else d_q
        results[0] = give_back(d_q, passing.dim, passing.extent, passing.steps, call.group).to(q.dtype)
    if wanted[3]:
        sums.take({3: _differentiate_sink(sink, rows, d_output, d_lse)})
    bring_home(call, sums)
    return [x for x, is_wanted in zip(results, wanted) if is_wanted] + sums.list()


def _differentiate_sink(sink: torch.Tensor, rows: Rows, d_output: Any, d_lse: Any) -> torch.Tensor:
    """Of this rank's rows: a sink is a key without a value."""
    delta = (d_output.float() * rows.output.float()).sum(3)
    delta = delta if d_lse is None else delta - d_lse
    weights = torch.exp(sink.float()[None, :, None] - rows.lse)
    return -(weights * delta).sum((0, 2))
