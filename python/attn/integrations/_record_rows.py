"""How autograd records attn::attend_rows."""

from __future__ import annotations

from typing import Any, List, NoReturn, Tuple

import torch

from .. import _arrays
from .._library import Error
from ._rows import registry
from ._rows_schema import NUM_TENSORS, NUM_TENSORS_BACKWARD, Forward, make_backward


class Gradient(torch.autograd.Function):
    """attn::attend_rows_backward. It has no derivative, and says so."""

    @staticmethod
    def forward(*given: Any) -> Any:  # type: ignore[override]
        return torch.ops.attn.attend_rows_backward(*given)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple, output: Tuple) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Tuple:  # type: ignore[override]
        _refuse_second()


def _refuse_second() -> NoReturn:
    expected = "first derivatives of sequences, got a second one: there is no such kernel"
    raise Error("invalid argument", f"attn::attend_rows: expected {expected}")


class Rows(torch.autograd.Function):
    """attn::attend_rows as autograd records it."""

    @staticmethod
    def forward(*given: Any) -> Any:  # type: ignore[override]
        return torch.ops.attn.attend_rows(*given)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple, output: Tuple) -> None:
        ctx.save_for_backward(*inputs[:NUM_TENSORS], *output)
        ctx.options = inputs[NUM_TENSORS:]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, d_output: Any, d_lse: Any) -> Tuple:  # type: ignore[override]
        *tensors, output, lse = ctx.saved_tensors
        call = Forward(*tensors, *ctx.options)
        gradients: List[Any] = [None] * len(call)
        if d_output is None and d_lse is None:
            return tuple(gradients)
        d_output = torch.zeros_like(output) if d_output is None else d_output
        # torch.func.grad asks for derivatives of derivatives, and may not want them.
        is_recorded = torch.is_grad_enabled()
        run = Gradient.apply if is_recorded else torch.ops.attn.attend_rows_backward
        *found, d_sink = run(*make_backward(call, output, lse, d_output, d_lse))
        gradients[:3] = found
        if call.sink is not None:
            gradients[_SINK] = d_sink.to(call.sink.dtype)
        return tuple(gradients)


_SINK = Forward._fields.index("sink")


def _is_recorded(given: Tuple) -> bool:
    return _arrays.is_any_recorded(*given[:3], given[_SINK])


def _record(*given: Any) -> Any:
    """Where a graph calls the operator by itself. torch.library.register_autograd takes 130 us a call."""
    if _is_recorded(given):
        return Rows.apply(*given)
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.attn.attend_rows(*given)


def _differentiate_once(*given: Any) -> Any:
    if _arrays.is_any_recorded(*given[:NUM_TENSORS_BACKWARD]):
        _refuse_second()
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.attn.attend_rows_backward(*given)


registry.impl("attend_rows", _record, "Autograd")
registry.impl("attend_rows_backward", _differentiate_once, "Autograd")


def attend_rows(call: Forward) -> Tuple[Any, Any]:
    """(output, lse) of (T, H, Dv) and (H, T); gradients of q, k, v, sink."""
    run = Rows.apply if _is_recorded(call) else torch.ops.attn.attend_rows
    return run(*call)
