"""attn::varlen and attn::varlen_backward, operators of PyTorch: attn.serving.varlen_attention in graphs of
torch.compile, without functions of the caller. Lengths stay on the device there too. Rows of no sequence give 0 and
-inf: results of an operator are always the same."""

from __future__ import annotations

from typing import Any, List, NoReturn, Optional, Tuple, cast

import torch
from torch.library import Library, register_fake

from . import _arrays, _dynamo
from ._library import Error
from ._operator import PLAIN, to_dense
from ._ragged import RaggedPlan
from ._ragged_autograd import check_others, make_gradients
from ._varlen import Asked, Varlen, check_call, prepare

_SEQUENCES = (
    "Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor cu_seqlens_k, Tensor? alibi_slopes, Tensor? sink"
)
_HOW = (
    "SymInt max_seqlen_q, SymInt max_seqlen_k, float? scale, bool causal, SymInt left, SymInt right, float softcap"
)
_NUM_TENSORS = Varlen._fields.index("most_q")
_CLEARED = Asked(clears=True)
registry = Library("attn", "FRAGMENT")
_TAGS = (torch.Tag.pt2_compliant_tag,)
# lse_low is what f32 has no digits for in lse, or zeros where gradients do without it.
registry.define(
    f"varlen({_SEQUENCES}, {_HOW}, bool is_recorded) -> (Tensor output, Tensor lse, Tensor lse_low)",
    tags=_TAGS,
)
registry.define(
    f"varlen_backward(Tensor d_output, Tensor? d_lse, {_SEQUENCES}, {_HOW}, Tensor output, Tensor lse, "
    "Tensor lse_low, bool[] wanted) -> Tensor[]",
    tags=_TAGS,
)


def _make_results(call: Varlen, is_recorded: bool) -> Tuple[Any, Any, Any]:
    """Unwritten."""
    total, heads, _ = call.q.shape
    output = call.q.new_empty((total, heads, call.v.shape[2]))
    lse = call.q.new_empty((total, heads), dtype=torch.float32)
    return output, lse, lse.new_empty((total if is_recorded else 0, heads))


def _shrink(call: Varlen) -> Varlen:
    """On a CPU, with as many rows as there are: nobody waits for the offsets there."""
    if not call.q.is_cpu or call.cu_q.shape[0] < 2:
        return call
    most = [int((x[1:].long() - x[:-1]).max()) for x in (call.cu_q, call.cu_k)]
    most_q, most_k = (max(min(x, y), 0) for x, y in zip(most, (call.most_q, call.most_k)))
    return call._replace(most_q=most_q, most_k=most_k)


def _forward(*given: Any) -> Tuple[Any, Any, Any]:
    return _run(Varlen(*given[:-1]), given[-1])


def _find_output(call: Varlen) -> Any:
    """Where nobody wants lse."""
    check_call(call)
    plan, arguments, rows = prepare(_shrink(call), _CLEARED._replace(return_lse=False))
    total, heads, _ = call.q.shape
    output = call.q.new_empty((total, heads, call.v.shape[2]))
    if total:
        with torch.no_grad():
            plan.run_ragged(arguments, rows, output)
    return output


def _run(call: Varlen, is_recorded: bool) -> Tuple[Any, Any, Any]:
    check_call(call)
    plan, arguments, rows = prepare(_shrink(call), _CLEARED)
    total, heads, _ = call.q.shape
    output = call.q.new_empty((total, heads, call.v.shape[2]))
    lse = call.q.new_full((total, heads), -torch.inf, dtype=torch.float32)
    run = cast(RaggedPlan, plan.recorded() if is_recorded else plan)
    if not total:
        return output, lse, lse.clone()
    with torch.no_grad():
        _, _, *low = run.run_ragged(arguments, rows, output, lse)
    if not is_recorded:
        return output, lse, lse.new_empty((0, heads))
    return output, lse, low[0] if low else torch.zeros_like(lse)


def _backward(d_output: Any, d_lse: Any, *given: Any) -> List[Any]:
    call, (output, lse, low, wanted) = Varlen(*given[:-4]), given[-4:]
    plan, arguments, rows = prepare(_shrink(call), _CLEARED)
    results = make_gradients(call[:3], wanted)
    record = (output, lse, low) if plan.recorded().problem.return_low else (output, lse)
    d_lse = None if d_lse is None else to_dense(d_lse)
    with torch.no_grad():
        plan.run_ragged_gradient(arguments, rows, record, to_dense(d_output), d_lse, results)
    return list(results.values())


for _device in ("CPU", "CUDA"):
    registry.impl("varlen", _forward, _device)
    registry.impl("varlen_backward", _backward, _device)


@register_fake("attn::varlen", lib=registry)
def _(*given: Any) -> Tuple[Any, Any, Any]:
    return _make_results(Varlen(*given[:-1]), given[-1])


@register_fake("attn::varlen_backward", lib=registry)
def _(d_output: Any, d_lse: Any, *given: Any) -> List[Any]:
    call, wanted = Varlen(*given[:-4]), given[-1]
    return [x.new_empty(x.shape) for x, is_wanted in zip(call[:3], wanted) if is_wanted]


# ===- Autograd ---------------------------------------------------------------------------------===#


def _refuse_second() -> NoReturn:
    expected = "first derivatives of sequences, got a second one: there is no such kernel"
    raise Error("invalid argument", f"attn::varlen: expected {expected}")


class _Gradient(torch.autograd.Function):
    """attn::varlen_backward. It has no derivative, and says so."""

    @staticmethod
    def forward(*given: Any) -> Any:  # type: ignore[override]
        return tuple(torch.ops.attn.varlen_backward(*given))

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple, output: Tuple) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Tuple:  # type: ignore[override]
        _refuse_second()


class _Recorded(torch.autograd.Function):
    """attn::varlen as autograd records it."""

    @staticmethod
    def forward(*given: Any) -> Any:  # type: ignore[override]
        return torch.ops.attn.varlen(*given, True)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple, output: Tuple) -> None:
        ctx.save_for_backward(*inputs[:_NUM_TENSORS], *output)
        ctx.mark_non_differentiable(output[2])
        ctx.how = inputs[_NUM_TENSORS:]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, d_output: Any, d_lse: Any, _: Any) -> Tuple:  # type: ignore[override]
        others = (None,) * (_NUM_TENSORS - 3 + len(ctx.how))
        return (*_differentiate(ctx, torch.ops.attn.varlen_backward, d_output, d_lse), *others)


def _differentiate(ctx: Any, backward: Any, d_output: Any, d_lse: Any) -> List[Optional[Any]]:
    """The gradients of q, k and v, by the operator or by its kernel."""
    *tensors, output, lse, low = ctx.saved_tensors
    wanted = list(ctx.needs_input_grad[:3])
    if d_output is None and d_lse is None:
        return [None] * 3
    d_output = torch.zeros_like(output) if d_output is None else d_output
    run = _Gradient.apply if torch.is_grad_enabled() else backward
    found = iter(run(d_output, d_lse, *tensors, *ctx.how, output, lse, low, wanted))
    return [next(found) if is_wanted else None for is_wanted in wanted]


class _Plain(torch.autograd.Function):
    """The same for tensors that nobody but autograd watches: no dispatch, and no binding of a signature."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, call: Varlen) -> Tuple[Any, Any]:  # type: ignore[override]
        output, lse, low = _run(call, True)
        ctx.save_for_backward(*call[:_NUM_TENSORS], output, lse, low)
        ctx.how = call[_NUM_TENSORS:]
        ctx.set_materialize_grads(False)
        return output, lse

    @staticmethod
    def backward(ctx: Any, d_output: Any, d_lse: Any) -> Tuple:  # type: ignore[override]
        return (*_differentiate(ctx, _backward, d_output, d_lse), None)


# Of Function.apply, what remains outside of transforms.
_apply_plain = super(torch.autograd.Function, _Plain).apply


def _record(*given: Any) -> Any:
    """Where a graph calls the operator by itself."""
    if _arrays.is_any_recorded(*given[:3]):
        return _Recorded.apply(*given[:-1])
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.attn.varlen(*given)


registry.impl("varlen", _record, "Autograd")


def _is_plain(call: Varlen) -> bool:
    """Whether nobody but autograd watches the tensors."""
    tensors = [x for x in call[:_NUM_TENSORS] if x is not None]
    return all(type(x) in PLAIN for x in tensors) and not _arrays.is_watched_by_others(*tensors)


def attend(call: Varlen, return_lse: bool) -> Any:
    """(output, lse) of (T, H, Dv) and (T, H), or the output."""
    check_others(alibi_slopes=call.slopes, sink=call.sink)
    is_recorded = torch.is_grad_enabled() and any(x.requires_grad for x in call[:3])
    if not _dynamo.is_compiling() and _is_plain(call):
        if not is_recorded and not return_lse:
            return _find_output(call)
        plain = _apply_plain(*call[:3], call) if is_recorded else _run(call, False)[:2]
        return plain if return_lse else plain[0]
    # Dynamo traces no function of autograd that has a tensor twice, as offsets often are.
    output, lse, _ = torch.ops.attn.varlen(*call, is_recorded)
    return (output, lse) if return_lse else output
