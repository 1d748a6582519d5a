"""PyTorch's kernels of flash attention for sequences of any lengths, which varlen_attn and nested tensors call,
on attn: _flash_attention_forward, the one that fills an output, and their gradient."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

import torch

from .._library import refuse
from ._bounds import make_bounds
from ._flash_reasons import find_reason
from ._order import lay_out
from ._rows import backward_rows, forward_rows

_FORWARD = "_flash_attention_forward"
_INPLACE = "_flash_attention_forward_no_dropout_inplace"
_BACKWARD = "_flash_attention_backward"
# Of these kernels; older versions lack the second.
NAMES = (_FORWARD, _INPLACE, _BACKWARD)

DENSE = "a dense call of a ragged kernel"


def _find_reason(q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any, dropout_p: float) -> str:
    """What forward and backward know."""
    if cu_q is None and cu_k is None:
        return DENSE
    if cu_q is None or cu_k is None or not q.dim() == k.dim() == v.dim() == 3:
        return "keys that are no sequence of rows"
    if q.shape[-1] != v.shape[-1]:
        return "values of other columns"
    return find_reason(q, k, v, dropout_p)


def _find_forward_reason(given: Tuple, how: Dict[str, Any]) -> str:
    """Of the arguments of the operator, whose eighth is dropout_p."""
    reason = _find_reason(*given[:5], given[7])
    if reason:
        return reason
    if how.get("block_table") is not None:
        return "a block_table"
    if how.get("alibi_slopes") is not None:
        return "alibi_slopes, of which the gradient does not know"
    if how.get("num_splits") == 1:
        return "num_splits=1, which promises the same bits in every batch"
    return ""


def _make_window(is_causal: bool, left: Optional[int], right: Optional[int]) -> Any:
    left, right = (None if side is None or side < 0 else side for side in (left, right))
    return left, 0 if is_causal else right


class Ragged:
    """The kernels; `call_before(name, reason, keys, ...)` calls the one that stood there."""

    def __init__(self, call_before: Callable) -> None:
        self._call_before = call_before

    def _run(
        self,
        q: Any,
        k: Any,
        v: Any,
        cu_q: Any,
        cu_k: Any,
        max_q: Any,
        max_k: Any,
        dropout_p: float,
        is_causal: bool,
        return_debug_mask: bool,
        *,
        scale: Optional[float] = None,
        window_size_left: Optional[int] = None,
        window_size_right: Optional[int] = None,
        seqused_k: Any = None,
        **others: Any,
    ) -> Tuple[Any, Any]:
        if return_debug_mask:
            refuse("return_debug_mask", "False", True, "the weights are never stored")
        window = _make_window(is_causal, window_size_left, window_size_right)
        bounds = make_bounds(q.shape[0], k.shape[0], cu_q, cu_k, window, used_k=seqused_k)
        plain = bounds.first, bounds.last, None, None, None, None
        return forward_rows(q, k, v, *plain, scale, 0.0, 0.0, False)

    def _flash_attention_forward(self, keys: Any, *given: Any, **how: Any) -> Any:
        reason = _find_forward_reason(given, how)
        if reason:
            return self._call_before(_FORWARD, reason, keys, *given, **how)
        output, lse = self._run(*given, **how)
        query = given[0]
        state = torch.zeros(2, dtype=torch.uint64, device=query.device)
        offset = torch.zeros((), dtype=torch.uint64, device=query.device)
        return lay_out(output, query), lse, state, offset, query.new_empty(0)

    def _flash_attention_forward_no_dropout_inplace(
        self, keys: Any, out: Any, *given: Any, **how: Any
    ) -> Any:
        reason = _find_forward_reason(given, how)
        if reason:
            return self._call_before(_INPLACE, reason, keys, out, *given, **how)
        output, lse = self._run(*given, **how)
        out.copy_(output)
        return lse

    def _flash_attention_backward(
        self,
        keys: Any,
        grad_out: Any,
        query: Any,
        key: Any,
        value: Any,
        out: Any,
        logsumexp: Any,
        cum_seq_q: Any,
        cum_seq_k: Any,
        max_q: Any,
        max_k: Any,
        dropout_p: float,
        is_causal: bool,
        rng_state: Any,
        unused: Any,
        *,
        scale: Optional[float] = None,
        window_size_left: Optional[int] = None,
        window_size_right: Optional[int] = None,
    ) -> Any:
        given = query, key, value
        sides = window_size_left, window_size_right
        reason = _find_reason(*given, cum_seq_q, cum_seq_k, dropout_p)
        if reason:
            how = dict(scale=scale, window_size_left=sides[0], window_size_right=sides[1])
            last = max_q, max_k, dropout_p, is_causal, rng_state, unused
            of = out, logsumexp, cum_seq_q, cum_seq_k
            return self._call_before(_BACKWARD, reason, keys, grad_out, *given, *of, *last, **how)
        window = _make_window(is_causal, *sides)
        bounds = make_bounds(query.shape[0], key.shape[0], cum_seq_q, cum_seq_k, window)
        plain = bounds.first, bounds.last, None, None, None, None
        last = out, logsumexp, scale, 0.0, 0.0, False
        found = backward_rows(grad_out, None, *given, *plain, *last)
        return tuple(lay_out(x, like) for x, like in zip(found, given))
