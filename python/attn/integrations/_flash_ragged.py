"""PyTorch's kernels of flash attention for sequences of any lengths, which varlen_attn and nested tensors call,
on attn: _flash_attention_forward, the one that fills an output, and their gradient."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Tuple

import torch

from .._library import refuse
from ._arguments import Window, read_window
from ._bounds import Sequences
from ._flash_reasons import find_reason
from ._order import lay_out
from ._pages import attend_table, find_pages_reason
from ._reasons import NO_SEQUENCE, SAME_BITS
from ._rows import backward_rows
from ._rows_schema import Forward, How, make_backward, make_forward
from ._sequences import attend_sequences

_FORWARD = "_flash_attention_forward"
_INPLACE = "_flash_attention_forward_no_dropout_inplace"
_BACKWARD = "_flash_attention_backward"
# Of these kernels; older versions lack the second.
NAMES = (_FORWARD, _INPLACE, _BACKWARD)

DENSE = "a dense call of a ragged kernel"


class _Call(NamedTuple):
    """The first arguments of the forward kernels, in their order."""

    q: Any
    k: Any
    v: Any
    cu_q: Any
    cu_k: Any
    max_q: Any
    max_k: Any
    dropout_p: float
    is_causal: bool
    return_debug_mask: bool = False


def _find_reason(call: _Call) -> str:
    """What forward and backward know."""
    q, k, v, cu_q, cu_k = call[:5]
    if cu_q is None and cu_k is None:
        return DENSE
    if cu_q is None or cu_k is None or not q.dim() == k.dim() == v.dim() == 3:
        return NO_SEQUENCE
    if q.shape[-1] != v.shape[-1]:
        return "values of other columns"
    return find_reason(q, k, v, call.dropout_p)


def _find_table_reason(call: _Call, table: Any, how: Dict[str, Any]) -> str:
    used = how.get("seqused_k")
    reason = find_pages_reason(call.q, call.k, call.v, call.cu_q, used, table)
    return reason or find_reason(call.q, call.k, call.v, call.dropout_p)


def _find_forward_reason(call: _Call, how: Dict[str, Any]) -> str:
    table = how.get("block_table")
    reason = _find_reason(call) if table is None else _find_table_reason(call, table, how)
    if reason:
        return reason
    if how.get("alibi_slopes") is not None:
        return "alibi_slopes, of which the gradient does not know"
    if how.get("num_splits") == 1:
        return SAME_BITS
    return ""


def _read(call: _Call, how: Dict[str, Any]) -> Tuple[Sequences, Window, How]:
    """`how` has the arguments that PyTorch gives by name."""
    sides = how.get("window_size_left"), how.get("window_size_right")
    window = read_window(sides, call.is_causal)
    sequences = Sequences(call.cu_q, call.cu_k, used_k=how.get("seqused_k"))
    return sequences, window, How(how.get("scale"))


def _make_rows(call: _Call, how: Dict[str, Any]) -> Forward:
    return make_forward(call.q, call.k, call.v, *_read(call, how))


def _run(call: _Call, how: Dict[str, Any]) -> Tuple[Any, Any]:
    if call.return_debug_mask:
        refuse("return_debug_mask", "False", True, "the weights are never stored")
    table = how.get("block_table")
    sequences, window, options = _read(call, how)
    tensors = call.q, call.k, call.v
    if table is None:
        # Autograd, which stands above, records what is needed.
        with torch.no_grad():
            most = call.max_q, call.max_k
            return attend_sequences(*tensors, sequences, window, options, most)
    return attend_table(*tensors, sequences, table, call.max_q, window, options)


class Ragged:
    """The kernels; `call_before(name, reason, keys, ...)` calls the one that stood there."""

    def __init__(self, call_before: Callable) -> None:
        self._call_before = call_before

    def _flash_attention_forward(self, keys: Any, *given: Any, **how: Any) -> Any:
        call = _Call(*given)
        reason = _find_forward_reason(call, how)
        if reason:
            return self._call_before(_FORWARD, reason, keys, *given, **how)
        output, lse = _run(call, how)
        query = call.q
        state = torch.zeros(2, dtype=torch.uint64, device=query.device)
        offset = torch.zeros((), dtype=torch.uint64, device=query.device)
        return lay_out(output, query), lse, state, offset, query.new_empty(0)

    def _flash_attention_forward_no_dropout_inplace(
        self, keys: Any, out: Any, *given: Any, **how: Any
    ) -> Any:
        call = _Call(*given)
        reason = _find_forward_reason(call, how)
        if reason:
            return self._call_before(_INPLACE, reason, keys, out, *given, **how)
        output, lse = _run(call, how)
        out.copy_(output)
        return lse

    def _flash_attention_backward(self, keys: Any, *given: Any, **how: Any) -> Any:
        d_output, q, k, v, output, lse, *others = given
        # The seed and an argument without use come after is_causal.
        call = _Call(q, k, v, *others[:6])
        reason = _find_reason(call)
        if reason:
            return self._call_before(_BACKWARD, reason, keys, *given, **how)
        found = backward_rows(make_backward(_make_rows(call, how), output, lse, d_output))
        return tuple(lay_out(x, like) for x, like in zip(found, (q, k, v)))
