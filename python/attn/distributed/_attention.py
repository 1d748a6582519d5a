"""Attention of the rows that this rank holds to the keys of all ranks."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Tuple, Union

import torch
import torch.distributed as dist

import attn

from .. import _dynamo
from .._functions_of_parts import Functions, make_mask, place
from .._library import refuse
from .._problem import check_causal, check_window, is_rows_first
from ._agree import agree
from ._call import Call, make_table, make_total
from ._exchange import Route, exchange
from ._group import find_group
from ._plan import Plan
from ._ring import attend_ring
from ._shardings import count
from ._ulysses import attend_heads


def _check(q: Any, k: Any, v: Any, plan: Plan, dim: int, group: Any) -> int:
    """Raises Error for tensors that are not the parts that the plan says. Returns the rank."""
    if plan.ranks != dist.get_world_size(group):
        refuse("plan", f"one of {dist.get_world_size(group)} ranks", f"one of {plan.ranks}")
    rank = dist.get_rank(group)
    held = (("q", q, plan.rows), ("k", k, plan.keys), ("v", v, plan.keys))
    for name, x, of in held:
        if not isinstance(x, torch.Tensor) or x.dim() != 4:
            got = f"shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else type(x).__name__
            refuse(name, "a tensor of 4 dimensions", got)
        if x.shape[dim] != count(of[rank]):
            refuse(name, f"{count(of[rank])} positions, as the plan says", x.shape[dim])
    return rank


@_dynamo.disable
def context_parallel_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    plan: Plan,
    group: Any = None,
    scale: Optional[float] = None,
    causal: Union[bool, str] = False,
    window: Optional[Tuple[Optional[int], Optional[int]]] = None,
    score: Optional[Callable] = None,
    mask: Optional[Callable] = None,
    sink: Optional[torch.Tensor] = None,
    layout: str = "bhsd",
    return_lse: bool = False,
    options: Optional[Mapping[str, object]] = None,
) -> Any:
    """attn.attention of a sequence that the ranks of a group hold. All of them call it, with the same
    arguments but for their parts of q, k and v.

    Args:
        q, k, v: this rank's rows and keys, as `plan` deals them, (B, H, M, D), (B, Hkv, N, D) and
            (B, Hkv, N, Dv), or as `layout` says.
        plan: of `attn.distributed.plan`. A mask that keeps more keys than the plan was made for loses
            those that were not fetched: give both the same mask.
        group: a process group, or a DeviceMesh of one dimension; None is the default group.
        scale, score, mask, sink, layout, options: as for `attn.attention`. Functions see positions in the
            whole, and so do `causal`, `window`, `attn.query_length` and `attn.key_length`. Arrays that
            they read are whole on every rank.
        return_lse: also return the logsumexp of this rank's rows.

    Returns:
        The output of this rank's rows, or (output, lse).

        Methods "gather" and "ulysses" make each row in one call, in the order of keys of the whole.
        Gradients follow for q, k and v. Those of sinks and of arrays that functions read are this rank's
        share, as those of other parameters are: their sum over ranks is the whole. A call ends a graph
        of torch.compile.

    Raises:
        Error: an argument that does not fit, by its name; arguments that differ between ranks, on all of
            them.
    """
    group = find_group(group)
    dim = 1 if is_rows_first(layout) else 2
    rank = _check(q, k, v, plan, dim, group)
    how = dict(scale=scale, layout=layout, options=options)
    agree(group, q, plan, causal, window, sink, return_lse, **how)
    total = make_total(plan.total, q.device)
    shift = plan.total[1] - plan.total[0]
    whole = Functions(score, make_mask(mask, check_causal(causal), check_window(window), shift))
    call = Call(plan, group, whole, total, how)
    attend = {"gather": attend_rows, "ring": attend_ring, "ulysses": attend_heads}[plan.method]
    found = attend(q, k, v, sink, call)
    return found if return_lse else found[0]


def attend_rows(q: Any, k: Any, v: Any, sink: Any, call: Call) -> Any:
    """(output, lse): one call of the keys that this rank's rows keep."""
    plan, rank, how = call.plan, call.rank, call.how
    rows, heads = (1, 2) if call.is_rows_first else (2, 1)
    route = Route(plan.keys, plan.fetched)
    k, v = (exchange(x, rows, route, call.group) for x in (k, v))
    if q.shape[rows]:
        tables = [make_table(x[rank], q.device) for x in (plan.rows, plan.fetched)]
        score, mask = place(call.functions, *tables, call.total)
        return attn.attention(q, k, v, score=score, mask=mask, sink=sink, return_lse=True, **how)
    # A rank without rows takes part in what its keys are sent for: no element, and a place in the graph of
    # each input.
    inputs = [x.sum() * 0 for x in (q, k, v, sink) if x is not None]
    output = q.new_zeros((*q.shape[:3], v.shape[3])) + sum(inputs).to(q.dtype)
    return output, q.new_zeros((q.shape[0], q.shape[heads], 0), dtype=torch.float32)
