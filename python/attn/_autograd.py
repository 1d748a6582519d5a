"""How autograd records attn::forward and attn::record, with attn::backward as their gradient."""

from __future__ import annotations

import functools
from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor

from . import _arrays, _dynamo
from ._library import Error
from ._operator import PLAIN, backward, registry, run, to_dense
from ._plan import Plan
from ._schema import Backward
from ._source import Wanted


def _below_autograd(operator: Any) -> Any:
    """Of these operators autograd records nothing, so that nothing is dropped in silence."""

    def call(*arguments: Any, **results: Any) -> Any:
        if _arrays.is_any_recorded(*arguments, *results.values()):
            raise Error(
                "invalid argument",
                f"{operator}: expected a call by attn.attention where gradients are wanted, got one of "
                "the operator itself",
                "use attn.attention",
            )
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*arguments, **results)

    return call


def _recorded(operator: Any, count: int) -> Any:
    """The operator, of `count` results, as a graph calls it that torch.export wrote, whose parameters
    may learn."""

    def call(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        sink: Optional[Tensor],
        captures: Optional[List[Tensor]],
        source: str,
        scale: Optional[float],
        rows_first: bool,
    ) -> Any:
        last = source, scale, rows_first
        if _arrays.is_any_recorded(q, k, v, sink, *(captures or [])):
            return Attention.apply(q, k, v, sink, *last, *(captures or []))[:count]
        with torch._C._AutoDispatchBelowAutograd():
            return operator(q, k, v, sink, captures, *last)

    return call


registry.impl("forward", _recorded(torch.ops.attn.forward.default, 2), "Autograd")
registry.impl("record", _recorded(torch.ops.attn.record.default, 3), "Autograd")
for _name in ("forward_out", "backward"):
    registry.impl(_name, _below_autograd(getattr(torch.ops.attn, _name).default), "Autograd")


class Gradient(torch.autograd.Function):
    """attn::backward. It has no derivative, and says so."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*arguments: Any) -> Tuple:  # type: ignore[override]
        # torch.compile gives its context too to a function that takes any number.
        return tuple(torch.ops.attn.backward(*arguments[-len(Backward._fields) :]))

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple, output: Tuple) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Tuple:  # type: ignore[override]
        raise Error(
            "invalid argument",
            "attention: expected first derivatives, got a second one: there is no such kernel",
            "use torch.nn.functional.scaled_dot_product_attention",
        )


class Attention(torch.autograd.Function):
    """(output, lse, lse_low) of attn::record, with attn::backward as its gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(  # type: ignore[override]
        q: Any, k: Any, v: Any, sink: Any, source: str, scale: Any, rows_first: bool, *captures: Any
    ) -> Any:
        return torch.ops.attn.record(q, k, v, sink, captures or None, source, scale, rows_first)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple, output: Tuple) -> None:
        q, k, v, sink, source, scale, rows_first, *captures = inputs
        ctx.mark_non_differentiable(output[2])
        ctx.options = source, scale, rows_first
        # PyTorch notices when one of these is written to in between.
        ctx.save_for_backward(q, k, v, sink, *output, *captures)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, d_output: Any, d_lse: Any, _: Any) -> Tuple:  # type: ignore[override]
        return _differentiate(ctx, ctx.saved_tensors, d_output, d_lse, ctx.options)


# (plan, scale, whether rows come before heads, whether lse is a result too)
How = Tuple[Plan, Any, bool, bool]


class Recorded(torch.autograd.Function):
    """The same where autograd alone watches, past the dispatcher: two dispatches, and the signature
    that PyTorch binds in each call where there is a `setup_context`, take longer than all else."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, q: Any, k: Any, v: Any, sink: Any, how: How, *captures: Any
    ) -> Any:
        plan, scale, rows_first, return_lse = how
        found = run(plan.recorded(), q, k, v, scale, sink, rows_first, [*captures])
        # Without lse_low where gradients do without it.
        output, lse, lse_low = found if len(found) == 3 else (*found, None)
        ctx.how = how
        ctx.save_for_backward(q, k, v, sink, output, lse, lse_low, *captures)
        ctx.set_materialize_grads(False)
        # Each result takes autograd a microsecond.
        return (output, lse) if return_lse else output

    @staticmethod
    def backward(ctx: Any, d_output: Any, d_lse: Any = None) -> Tuple:  # type: ignore[override]
        saved = ctx.saved_tensors
        whole, scale, rows_first, _ = ctx.how
        if type(d_output) is torch.Tensor and not _dynamo.is_compiling():
            q, k, v, sink, output, lse, lse_low, *captures = saved
            names, places = _find_wanted(ctx.needs_input_grad)
            plan = whole.gradient(names, d_lse is not None, lse_low is not None)
            of = output, lse, lse_low, to_dense(d_output), None if d_lse is None else to_dense(d_lse)
            # None too where somebody watches.
            found = plan.direct(q, k, v, scale, sink, captures, rows_first, *of)
            if found is not None:
                return _place(found, places, captures)
        return _differentiate(ctx, saved, d_output, d_lse, (whole.source, scale, rows_first))


# Arguments in front of the captured tensors.
_NUM_FIXED = 5


@functools.lru_cache(maxsize=None)
def _find_wanted(needed: Tuple[bool, ...]) -> Tuple[Wanted, Tuple[int, ...]]:
    """The names of the gradients that are wanted, and where they stand among the arguments."""
    places = [i for i, is_needed in enumerate(needed) if is_needed]
    known = "query", "key", "value", "sink"
    return tuple([known[i] if i < 4 else i - _NUM_FIXED for i in places]), tuple(places)


def _place(found: Any, places: Tuple[int, ...], captures: List[Any]) -> Tuple:
    """Gradients, where autograd looks for them."""
    if not captures and places == (0, 1, 2):
        return (*found, None, None)
    gradients: List[Any] = [None] * (_NUM_FIXED + len(captures))
    for place, x in zip(places, found):
        # Kernels sum in f32.
        is_sum = place >= _NUM_FIXED
        gradients[place] = x.to(captures[place - _NUM_FIXED].dtype) if is_sum else x
    return tuple(gradients)


# Of Function.apply, what remains outside of transforms.
apply_recorded = super(torch.autograd.Function, Recorded).apply


def _differentiate(
    ctx: Any, saved: Tuple, d_output: Any, d_lse: Any, options: Tuple[Any, Any, bool]
) -> Tuple:
    """What both Functions give autograd, whose arguments are in the same order."""
    q, k, v, sink, output, lse, lse_low, *captures = saved
    needed = ctx.needs_input_grad
    # Of what stands between the sink and the captured tensors there is no gradient.
    num_fixed = len(needed) - len(captures)
    wanted = [*needed[:4], *needed[num_fixed:]]
    if not any(wanted) or (d_output is None and d_lse is None):
        return (None,) * len(needed)
    if d_output is None:
        d_output = torch.zeros_like(output)
    source, scale, rows_first = options
    first = d_output, d_lse, q, k, v, sink, captures or None, output, lse
    call = Backward(*first, source, scale, rows_first, wanted, lse_low)
    # Classes of tensors, such as DTensor, are the operator's business.
    given = (q, k, v, output, lse, d_output, d_lse, sink, *captures)
    is_watched = (
        _dynamo.is_compiling()
        or not all(x is None or type(x) in PLAIN for x in given)
        or _arrays.is_watched(q, k, v, d_output, d_lse, sink, *captures)
    )
    gradients = iter(Gradient.apply(*call) if is_watched else backward(*call))
    each = [next(gradients) if is_wanted else None for is_wanted in wanted]
    # Kernels sum in f32.
    sums = [x if x is None else x.to(of.dtype) for x, of in zip(each[4:], captures)]
    return (*each[:4], *[None] * (num_fixed - 4), *sums)
