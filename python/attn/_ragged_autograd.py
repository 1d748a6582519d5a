"""How autograd records attention of sequences of any lengths."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple, cast

import torch
from torch.autograd.function import once_differentiable

from . import _arrays
from ._given import Given
from ._library import Error
from ._operator import to_dense
from ._ragged import RaggedPlan, Rows

_NAMES = ("query", "key", "value")


def check_others(**tensors: Any) -> None:
    """Raises Error for tensors that want a gradient which no kernel of sequences makes."""
    for name, x in tensors.items():
        if _arrays.is_any_recorded(*(x if isinstance(x, list) else [x])):
            raise Error(
                "invalid argument",
                f"{name}: expected no tensor that requires a gradient beside sequences of any lengths",
                "use attn.integrations.flash_attn.flash_attn_varlen_func, whose sequences are documents",
            )


def make_gradients(tensors: Sequence[Any], wanted: Sequence[bool]) -> Dict[str, Any]:
    """Memory for those of q, k and v that are wanted, unwritten."""
    named = zip(_NAMES, tensors, wanted)
    return {name: x.new_empty(x.shape) for name, x, is_wanted in named if is_wanted}


class _Varlen(torch.autograd.Function):
    """(output, lse) of rows of sequences."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, q: Any, k: Any, v: Any, plan: RaggedPlan, given: Given, rows: Rows, out: Any
    ) -> Tuple[Any, Any]:
        results = cast(RaggedPlan, plan.recorded()).run_ragged(given, rows, out)
        read = rows.offsets_q, rows.offsets_k, given.sink, *given.captured
        # PyTorch notices when one of these is written to in between.
        tensors = [x if isinstance(x, torch.Tensor) else None for x in read]
        ctx.save_for_backward(q, k, v, *tensors, *results)
        ctx.plan, ctx.most, ctx.scale = plan, rows.most, given.scale
        # Functions may read arrays of NumPy.
        ctx.others = [None if isinstance(x, torch.Tensor) else x for x in read]
        ctx.set_materialize_grads(False)
        if out is not None:
            ctx.mark_dirty(out)
        return results[0], results[1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: Optional[Any], d_lse: Optional[Any]) -> Tuple:
        if d_output is None and d_lse is None:
            return (None,) * 7
        q, k, v, *saved = ctx.saved_tensors
        read = [x if y is None else y for x, y in zip(ctx.others, saved)]
        of_q, of_k, sink, *captured = read
        record = tuple(saved[len(read) :])
        results = make_gradients((q, k, v), ctx.needs_input_grad)
        ctx.plan.run_ragged_gradient(
            Given(q, k, v, ctx.scale, sink, True, captured),
            Rows(of_q, of_k, ctx.most),
            record,
            torch.zeros_like(record[0]) if d_output is None else to_dense(d_output),
            d_lse if d_lse is None else to_dense(d_lse),
            results,
        )
        return (*(results.get(name) for name in _NAMES), None, None, None, None)


def record(plan: RaggedPlan, given: Given, rows: Rows, out: Any) -> Tuple[Any, Any]:
    """(output, lse), with gradients of q, k and v."""
    return _Varlen.apply(given.q, given.k, given.v, plan, given, rows, out)
