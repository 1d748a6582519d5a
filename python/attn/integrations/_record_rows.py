"""How autograd records attn::attend_rows."""

from __future__ import annotations

from typing import Any, List, NoReturn, Optional, Tuple

import torch

from .._library import Error
from ._rows import registry


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
        ctx.save_for_backward(*inputs[:_NUM_TENSORS], *output)
        ctx.options = inputs[_NUM_TENSORS:]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, d_output: Any, d_lse: Any) -> Tuple:  # type: ignore[override]
        *tensors, output, lse = ctx.saved_tensors
        gradients: List[Any] = [None] * (_NUM_TENSORS + len(ctx.options))
        if d_output is None and d_lse is None:
            return tuple(gradients)
        d_output = torch.zeros_like(output) if d_output is None else d_output
        given = d_output, d_lse, *tensors, output, lse, *ctx.options
        # torch.func.grad asks for derivatives of derivatives, and may not want them.
        is_recorded = torch.is_grad_enabled()
        run = Gradient.apply if is_recorded else torch.ops.attn.attend_rows_backward
        *found, d_sink = run(*given)
        gradients[:3] = found
        sink = tensors[_SINK]
        if sink is not None:
            gradients[_SINK] = d_sink.to(sink.dtype)
        return tuple(gradients)


# Tensors in front of the options, and where the sink is among them.
_NUM_TENSORS, _SINK = 9, 7


def _is_recorded(*tensors: Any) -> bool:
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


def _record(*given: Any) -> Any:
    """Where a graph calls the operator by itself. torch.library.register_autograd takes 130 us a call."""
    if _is_recorded(*given[:3], given[_SINK]):
        return Rows.apply(*given)
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.attn.attend_rows(*given)


def _differentiate_once(*given: Any) -> Any:
    if _is_recorded(*given[:13]):
        _refuse_second()
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.attn.attend_rows_backward(*given)


registry.impl("attend_rows", _record, "Autograd")
registry.impl("attend_rows_backward", _differentiate_once, "Autograd")


def attend_rows(
    q: Any,
    k: Any,
    v: Any,
    bounds: Any,
    slopes: Any = None,
    sink: Any = None,
    seed: Any = None,
    scale: Optional[float] = None,
    softcap: float = 0.0,
    dropout_p: float = 0.0,
    deterministic: bool = False,
) -> Tuple[Any, Any]:
    """(output, lse) of (T, H, D) and (H, T), of `Bounds`; gradients of q, k, v, sink."""
    tensors = q, k, v, bounds.first, bounds.last, bounds.position, slopes, sink, seed
    options = scale, softcap, dropout_p, deterministic
    if _is_recorded(q, k, v, sink):
        return Rows.apply(*tensors, *options)
    return torch.ops.attn.attend_rows(*tensors, *options)
