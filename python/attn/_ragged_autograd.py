"""How autograd records attention of sequences of any lengths."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable

from ._given import Given
from ._library import Error
from ._ragged import RaggedPlan, Rows

_NAMES = ("query", "key", "value")


def is_recorded(*tensors: Any) -> bool:
    return torch.is_grad_enabled() and any(
        isinstance(x, torch.Tensor) and x.requires_grad for x in tensors
    )


def check_others(**tensors: Any) -> None:
    """Raises Error for tensors that want a gradient which no kernel of sequences makes."""
    for name, x in tensors.items():
        if is_recorded(*(x if isinstance(x, list) else [x])):
            raise Error(
                "invalid argument",
                f"{name}: expected no tensor that requires a gradient beside sequences of any lengths",
                "use attn.integrations.flash_attn.flash_attn_varlen_func, whose sequences are documents",
            )


class _Varlen(torch.autograd.Function):
    """(output, lse) of rows of sequences."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, q: Any, k: Any, v: Any, plan: RaggedPlan, given: Given, rows: Rows, out: Any
    ) -> Tuple[Any, Any]:
        recorded = plan.recorded()
        assert isinstance(recorded, RaggedPlan)
        results = recorded.run_ragged(given, rows, out)
        ctx.plan, ctx.rows, ctx.given = plan, rows, given._replace(q=None, k=None, v=None)
        ctx.set_materialize_grads(False)
        if out is not None:
            ctx.mark_dirty(out)
        ctx.save_for_backward(q, k, v, *results)
        return results[0], results[1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: Optional[Any], d_lse: Optional[Any]) -> Tuple:
        q, k, v, *record = ctx.saved_tensors
        if d_output is None and d_lse is None:
            return (None,) * 7
        if d_output is None:
            d_output = torch.zeros_like(record[0])
        given = ctx.given._replace(q=q, k=k, v=v)
        # Rows of no sequence have a gradient of 0.
        results = {
            name: x.new_zeros(x.shape)
            for name, x, wanted in zip(_NAMES, (q, k, v), ctx.needs_input_grad)
            if wanted
        }
        d_output = d_output if d_output.stride(-1) == 1 else d_output.contiguous()
        ctx.plan.run_ragged_gradient(given, ctx.rows, tuple(record), d_output, d_lse, results)
        return (*(results.get(name) for name in _NAMES), None, None, None, None)


def record(plan: RaggedPlan, given: Given, rows: Rows, out: Any) -> Tuple[Any, Any]:
    """(output, lse), with gradients of q, k and v."""
    return _Varlen.apply(given.q, given.k, given.v, plan, given, rows, out)
