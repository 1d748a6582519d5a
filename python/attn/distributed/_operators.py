"""attn::context_forward, attn::context_backward and attn::turn: what ranks do together, as operators of
PyTorch. torch.compile sees these; what crosses is tensors, numbers and text, as with attn::forward."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor
from torch.library import register_fake

from .. import _arrays, _dynamo, _operator
from .._library import Error, refuse
from .._operator import registry
from .._schema import Forward, write_schema
from . import _gather, _pass_rows, _ring, _ulysses
from ._agree import agree, describe, is_known, remember
from ._call import Call, Rows, has_low, make_call, read_parts
from ._group import find_by_name, waits_for_ranks
from ._plan import Plan, read_plan
from ._shardings import count
from ._shared import describe_shared

_METHODS: Dict[str, ModuleType] = {
    "gather": _gather,
    "pass rows": _pass_rows,
    "ring": _ring,
    "ulysses": _ulysses,
}


class ContextForward(NamedTuple):
    """Of attn::context_forward: what attn::forward takes, and what ranks have to know."""

    q: Tensor
    k: Tensor
    v: Tensor
    sink: Optional[Tensor]
    captures: Optional[List[Tensor]]
    source: str
    scale: Optional[float]
    rows_first: bool
    parts: str
    is_recorded: bool


class ContextBackward(NamedTuple):
    """Of attn::context_backward."""

    d_output: Tensor
    d_lse: Optional[Tensor]
    q: Tensor
    k: Tensor
    v: Tensor
    sink: Optional[Tensor]
    captures: Optional[List[Tensor]]
    output: Tensor
    lse: Tensor
    source: str
    scale: Optional[float]
    rows_first: bool
    wanted: List[bool]
    lse_low: Optional[Tensor]
    parts: str


_TAGS = (torch.Tag.pt2_compliant_tag,)
_forward_schema, _backward_schema = write_schema(ContextForward), write_schema(ContextBackward)
registry.define(
    f"context_forward({_forward_schema}) -> (Tensor output, Tensor lse, Tensor lse_low)", tags=_TAGS
)
registry.define(f"context_backward({_backward_schema}) -> Tensor[]", tags=_TAGS)
registry.define("turn(Tensor x, int dim, int head_dim, str parts, bool is_key, bool is_back) -> Tensor", tags=_TAGS)


# ===- Implementations ---------------------------------------------------------------------------===#


def check_ranks(plan: Plan, ranks: int) -> None:
    if plan.ranks != ranks:
        refuse("plan", f"one of {ranks} ranks", f"one of {plan.ranks}")


def check_key_heads(plan: Plan, count: int) -> None:
    turned = plan.node or plan.ranks
    if plan.method == "ulysses" and count % turned:
        hint = 'method="gather" serves any number of them, and node= fewer ranks'
        refuse("k", f"key heads that {turned} ranks divide", count, hint)


def check_parts(q: Any, k: Any, v: Any, plan: Plan, dim: int, rank: int) -> None:
    """Raises Error for tensors that are not the parts that the plan says."""
    held = (("q", q, plan.rows), ("k", k, plan.keys), ("v", v, plan.keys))
    for name, x, of in held:
        if not isinstance(x, torch.Tensor) or x.dim() != 4:
            got = f"shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else type(x).__name__
            refuse(name, "a tensor of 4 dimensions", got)
        if x.dtype != q.dtype:
            refuse(name, f"the type of q, {q.dtype}", x.dtype)
        expected = count(of[rank])
        if x.shape[dim] != expected:
            refuse(name, f"{expected} positions, as the plan says", x.shape[dim])
    heads, key_heads = q.shape[3 - dim] * (plan.ranks if plan.deals_heads else 1), k.shape[3 - dim]
    if v.shape[3 - dim] != key_heads or k.shape[0] != q.shape[0] or v.shape[0] != q.shape[0]:
        refuse("v", f"{q.shape[0]} batches and {key_heads} heads, as q and k have", tuple(v.shape))
    if not key_heads or heads % key_heads:
        refuse("k", f"a number of heads that divides {heads}, those of q", key_heads)


def _agree(call: Call, given: Any, gradients: str) -> None:
    """Before anything is sent. `given` has q, k, v, sink and captures."""
    tensors = given.q, given.k, given.v, given.sink, *call.captures
    forms = tuple([None if x is None else (x.dtype, x.shape) for x in tensors])
    # Long texts that repeat are the same objects.
    key = (call.group, given.parts, call.source, call.scale, call.rows_first, gradients, forms)
    if is_known(key):
        return
    _compare(call, given, gradients)
    remember(key)


def _compare(call: Call, given: Any, gradients: str) -> None:
    facts = {
        **dict(call.parts.facts),
        **describe(given.q, given.k, given.v, given.sink, call.scale, call.rows_first),
        "plan": call.parts.plan,
        "score, mask": call.source,
        "captured arrays": describe_shared(call.parts.shared, call.captures),
        "gradients": gradients,
    }
    problem: Optional[Exception] = None
    if call.plan.method != "ulysses":
        # There they are the turned ones.
        try:
            check_parts(given.q, given.k, given.v, call.plan, 1 if call.rows_first else 2, call.rank)
        except Error as error:
            problem = error
    agree(call.group, facts, problem)


@waits_for_ranks
def _run_forward(*arguments: Any) -> Tuple[Tensor, Tensor, Tensor]:
    given = ContextForward(*arguments)
    call = make_call(given.source, given.scale, given.rows_first, given.parts, given.captures)
    _agree(call, given, f"recorded {given.is_recorded}")
    q, k, v = (call.to_heads_first(x) for x in given[:3])
    output, lse, low = _METHODS[call.plan.method].forward(call, q, k, v, given.sink, given.is_recorded)
    low = _operator.make_no_rows(given.q, given.rows_first) if low is None else low
    return call.to_heads_first(output), lse, low


@waits_for_ranks
def _run_backward(*arguments: Any) -> List[Tensor]:
    given = ContextBackward(*arguments)
    call = make_call(given.source, given.scale, given.rows_first, given.parts, given.captures)
    _agree(call, given, f"wanted {given.wanted}, of lse {given.d_lse is not None}")
    q, k, v, output, d_output = (
        call.to_heads_first(x) for x in (given.q, given.k, given.v, given.output, given.d_output)
    )
    # Where gradients do without it, it has no rows.
    low = given.lse_low if given.lse_low is not None and given.lse_low.numel() else None
    rows, gradients = Rows(output, given.lse, low), (d_output, given.d_lse)
    backward = _METHODS[call.plan.method].backward
    found = backward(call, q, k, v, given.sink, rows, gradients, given.wanted)
    turned = sum(given.wanted[:3])
    return [call.to_heads_first(x).contiguous() for x in found[:turned]] + found[turned:]


def _has_low(given: ContextForward) -> bool:
    """Whether the low part of lse is returned."""
    parts = read_parts(given.parts)
    if not given.is_recorded or read_plan(parts.plan).method in ("pass rows", "ring"):
        return False
    return has_low(given.source, given.q, given.scale, given.sink, len(parts.order))


@waits_for_ranks
def _run_turn(x: Tensor, dim: int, head_dim: int, parts: str, is_key: bool, is_back: bool) -> Tensor:
    read = read_parts(parts)
    plan, group = read_plan(read.plan), find_by_name(read.group)
    others = [extent for i, extent in enumerate(x.shape) if i != dim]
    name = "k" if is_key else "q"
    agree(group, {**dict(read.facts), "plan": read.plan, name: f"{x.dtype}, {others}, {is_back}"})
    held = plan.keys if is_key else plan.rows
    found = _ulysses.turn(x.movedim((dim, head_dim), (0, 1)), held, group, is_back)
    return found.movedim((0, 1), (dim, head_dim)).contiguous()


for _name, _implementation in (
    ("context_forward", _run_forward),
    ("context_backward", _run_backward),
    ("turn", _run_turn),
):
    for _device in ("CPU", "CUDA"):
        registry.impl(_name, _implementation, _device)


# ===- Fakes -------------------------------------------------------------------------------------===#


@register_fake("attn::context_forward", lib=registry)
def _(*arguments: Any) -> Tuple[Tensor, Tensor, Tensor]:
    given = ContextForward(*arguments)
    output, lse = _operator.make_results(Forward(*given[:8]))
    low = torch.empty_like(lse) if _has_low(given) else _operator.make_no_rows(given.q, given.rows_first)
    return output, lse, low


@register_fake("attn::context_backward", lib=registry)
def _(*arguments: Any) -> List[Tensor]:
    given = ContextBackward(*arguments)
    of = [x.new_empty(x.shape) for x, is_wanted in zip(given[2:5], given.wanted) if is_wanted]
    sums = given.sink, *(given.captures or [])
    of += [
        x.new_empty(x.shape, dtype=torch.float32)
        for x, is_wanted in zip(sums, given.wanted[3:])
        if is_wanted
    ]
    return of


@register_fake("attn::turn", lib=registry)
def _(x: Tensor, dim: int, head_dim: int, parts: str, is_key: bool, is_back: bool) -> Tensor:
    read = read_parts(parts)
    plan = read_plan(read.plan)
    held, shape = plan.keys if is_key else plan.rows, list(x.shape)
    if is_back:
        rank = torch.distributed.get_rank(find_by_name(read.group))
        shape[dim], shape[head_dim] = count(held[rank]), shape[head_dim] * plan.ranks
    else:
        shape[dim], shape[head_dim] = sum(map(count, held)), shape[head_dim] // plan.ranks
    return x.new_empty(shape)


# ===- Autograd ----------------------------------------------------------------------------------===#


class _Turn(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        x: Any, dim: int, head_dim: int, parts: str, is_key: bool, is_back: bool
    ) -> Any:
        return torch.ops.attn.turn(x, dim, head_dim, parts, is_key, is_back)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple, output: Any) -> None:
        ctx.how = inputs[1:]

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Tuple:  # type: ignore[override]
        dim, head_dim, parts, is_key, is_back = ctx.how
        found = torch.ops.attn.turn(gradient, dim, head_dim, parts, is_key, not is_back)
        return found, None, None, None, None, None


class _Context(torch.autograd.Function):
    """(output, lse, lse_low) of attn::context_forward, with attn::context_backward as its gradient."""

    @staticmethod
    def forward(  # type: ignore[override]
        q: Any, k: Any, v: Any, sink: Any, source: str, scale: Any, how: Tuple[bool, str], *captures: Any
    ) -> Any:
        last = source, scale, *how, True
        return torch.ops.attn.context_forward(q, k, v, sink, list(captures) or None, *last)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple, output: Tuple) -> None:
        q, k, v, sink, source, scale, how, *captures = inputs
        ctx.how = source, scale, *how
        ctx.mark_non_differentiable(output[2])
        ctx.save_for_backward(q, k, v, sink, *output, *captures)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, d_output: Any, d_lse: Any, _: Any) -> Tuple:  # type: ignore[override]
        needed = ctx.needs_input_grad
        wanted = [*needed[:4], *needed[7:]]
        found = _differentiate(ctx, torch.ops.attn.context_backward, d_output, d_lse, wanted)
        return (*found[:4], None, None, None, *found[4:])


def _differentiate(ctx: Any, backward: Any, d_output: Any, d_lse: Any, wanted: List[bool]) -> List[Any]:
    """Gradients of q, k, v, the sink and captured arrays, by the operator or by what it calls."""
    q, k, v, sink, output, lse, lse_low, *captures = ctx.saved_tensors
    if d_output is None and d_lse is None:
        return [None] * len(wanted)
    d_output = torch.zeros_like(output) if d_output is None else d_output.contiguous()
    d_lse = None if d_lse is None else d_lse.contiguous()
    source, scale, rows_first, parts = ctx.how
    first = d_output, d_lse, q, k, v, sink, list(captures) or None, output, lse
    with torch.no_grad():
        gradients = iter(backward(*first, source, scale, rows_first, wanted, lse_low, parts))
    each = [next(gradients) if is_wanted else None for is_wanted in wanted]
    # Kernels sum in f32.
    return [*each[:4], *[x if x is None else x.to(of.dtype) for x, of in zip(each[4:], captures)]]


class _Plain(torch.autograd.Function):
    """The same for tensors that nobody but autograd watches: no dispatch, and no binding of a signature."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, q: Any, k: Any, v: Any, sink: Any, how: Tuple[str, Any, bool], parts: str, *captures: Any
    ) -> Tuple[Any, Any]:
        output, lse, low = _run_forward(q, k, v, sink, list(captures) or None, *how, parts, True)
        ctx.how = (*how, parts)
        ctx.save_for_backward(q, k, v, sink, output, lse, low, *captures)
        ctx.set_materialize_grads(False)
        return output, lse

    @staticmethod
    def backward(ctx: Any, d_output: Any, d_lse: Any) -> Tuple:  # type: ignore[override]
        needed = ctx.needs_input_grad
        found = _differentiate(ctx, _run_backward, d_output, d_lse, [*needed[:4], *needed[6:]])
        return (*found[:4], None, None, *found[4:])


# Of Function.apply, what remains outside of transforms.
_apply_plain = super(torch.autograd.Function, _Plain).apply


def _is_plain(tensors: List[Any]) -> bool:
    """Whether nobody but autograd watches them."""
    return all(type(x) in _operator.PLAIN for x in tensors) and not _arrays.is_watched_by_others(*tensors)


def attend(q: Any, k: Any, v: Any, sink: Any, how: Tuple[str, Any, bool], parts: str, captures: List[Any]) -> Any:
    """(output, lse) of this rank's rows, of tensors as the kernels take them. `how` is the source, the scale and
    whether rows are before heads."""
    tensors = (q, k, v, sink, *captures)
    is_recorded = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)
    if not _dynamo.is_compiling() and _is_plain([x for x in tensors if x is not None]):
        if is_recorded:
            return _apply_plain(q, k, v, sink, how, parts, *captures)
        return _run_forward(q, k, v, sink, captures or None, *how, parts, False)[:2]
    if is_recorded:
        output, lse, _ = _Context.apply(q, k, v, sink, how[0], how[1], (how[2], parts), *captures)
    else:
        output, lse, _ = torch.ops.attn.context_forward(q, k, v, sink, captures or None, *how, parts, False)
    return output, lse


def turn(q: Any, k: Any, v: Any, rows_first: bool, parts: str) -> Tuple[Any, ...]:
    """All positions of some heads, for some positions of all heads."""
    dims = (1, 2) if rows_first else (2, 1)
    tensors = zip((q, k, v), (False, True, True))
    return tuple([_Turn.apply(x, *dims, parts, is_key, False) for x, is_key in tensors])


def turn_back(output: Any, lse: Any, rows_first: bool, parts: str) -> Tuple[Any, Any]:
    dims = (1, 2) if rows_first else (2, 1)
    output = _Turn.apply(output, *dims, parts, False, True)
    return output, _Turn.apply(lse, 2, 1, parts, False, True)
