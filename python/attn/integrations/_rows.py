"""attn::attend_rows and its gradient, operators of PyTorch: each row of one long sequence keeps the keys from
a first one to a last one, two tensors that do not decrease. Sequences of any lengths, one after the
other, are such a call (_bounds.py).

They are operators of their own, since a graph of torch.compile has to say that the tensors are sorted, and
since a gradient reads no row and no key that nobody keeps: what a matrix product would make of NaN there
is written over before. The forward pass need not, whose kernels keep what no row reads out of sums.
_record_rows.py has their autograd.

Gradients may say the same mask by keys: each key is kept by the rows from a first one to a last one. Their
kernels own keys, for which they hold these numbers in registers, and run over rows, whose numbers they
would load. Wide heads have no registers for it.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple, Union

import torch
from torch.library import Library, register_fake

import attn

from .._schema import write_schema
from ._bounds import find_rows
from ._order import to_dense
from ._rows_schema import Backward, Forward
from ._score import make_score

registry = Library("attn", "FRAGMENT")
registry.define(
    f"attend_rows({write_schema(Forward)}) -> (Tensor output, Tensor lse)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
registry.define(
    f"attend_rows_backward({write_schema(Backward)}) "
    "-> (Tensor d_q, Tensor d_k, Tensor d_v, Tensor d_sink)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def _make_mask(first: Any, last: Any) -> Callable:
    begin = attn.assume_sorted(first)
    if last is None:
        return lambda b, h, q, kv: (kv <= q) & (kv >= begin[q])
    end = attn.assume_sorted(last)
    return lambda b, h, q, kv: (kv >= begin[q]) & (kv <= end[q])


def _make_mask_by_keys(first_row: Any, last_row: Any) -> Callable:
    end = attn.assume_sorted(last_row)
    if first_row is None:
        return lambda b, h, q, kv: (kv <= q) & (q <= end[kv])
    begin = attn.assume_sorted(first_row)
    return lambda b, h, q, kv: (q >= begin[kv]) & (q <= end[kv])


# Columns up to which gradients say the mask by keys.
_MOST_COLUMNS = 128


def _make_options(mask: Callable, call: Union[Forward, Backward]) -> Dict[str, Any]:
    """For attn.attention and attn.gradient."""
    return dict(
        scale=call.scale,
        mask=mask,
        score=make_score(call.softcap, call.slopes, position=call.position),
        sink=call.sink,
        layout="bshd",
        dropout_p=call.dropout_p,
        dropout_seed=call.seed if call.dropout_p else None,
        options={"fused": "off"} if call.deterministic else None,
    )


def forward_rows(call: Forward) -> Tuple[Any, Any]:
    if call.q.shape[0] == 0:
        # Captured tensors have an element at least.
        return make_results(call.q, call.v)
    how = _make_options(_make_mask(call.first, call.last), call)
    matrices = [to_dense(x)[None] for x in (call.q, call.k, call.v)]
    with torch.no_grad():
        output, lse = attn.attention(*matrices, return_lse=True, **how)
    return output[0], lse[0]


def make_results(q: Any, v: Any) -> Tuple[Any, Any]:
    """Unwritten: (T, H, Dv) and (H, T), or with batches before them."""
    *batch, rows, heads, _ = q.shape
    shape = *batch, rows, heads, v.shape[-1]
    return q.new_empty(shape), q.new_empty((*batch, heads, rows), dtype=torch.float32)


def _clear_others(x: Any, is_used: Any) -> Any:
    return to_dense(torch.where(is_used[:, None, None], x, 0))


def backward_rows(call: Backward) -> Tuple[Any, Any, Any, Any]:
    q, k, v, first, last, d_lse = call.q, call.k, call.v, call.first, call.last, call.d_lse
    if q.shape[0] == 0:
        d_q, d_k, d_v, d_sink = (x.zero_() for x in _make_gradients(call))
        return d_q, d_k, d_v, d_sink
    first_row, last_row = find_rows(first, last, k.shape[0])
    is_by_keys = max(q.shape[2], v.shape[2]) <= _MOST_COLUMNS
    mask = _make_mask(first, last)
    if is_by_keys and k.shape[0]:
        mask = _make_mask_by_keys(None if last is None else first_row, last_row)
    how = _make_options(mask, call)
    places = torch.arange(q.shape[0], dtype=torch.int32, device=q.device) if last is None else last
    rows, keys = first <= places, first_row <= last_row
    q, d_output = _clear_others(q, rows), _clear_others(call.d_output, rows)
    k, v = _clear_others(k, keys), to_dense(v)
    matrices = [x[None] for x in (q, k, v, d_output)]
    if d_lse is not None:
        d_lse = torch.where(rows, d_lse, 0)[None]
    of = dict(output=to_dense(call.output)[None], lse=call.lse[None].contiguous(), d_lse=d_lse)
    with torch.no_grad():
        d_q, d_k, d_v, *d_sink = attn.gradient(*matrices, **of, **how)
    d_sink = d_sink[0] if d_sink else q.new_empty(0, dtype=torch.float32)
    return d_q[0].contiguous(), d_k[0].contiguous(), d_v[0].contiguous(), d_sink


def _make_gradients(call: Backward) -> Tuple[Any, Any, Any, Any]:
    """Unwritten."""
    count = 0 if call.sink is None else call.sink.shape[0]
    d_q, d_k, d_v = (x.new_empty(x.shape) for x in (call.q, call.k, call.v))
    return d_q, d_k, d_v, call.q.new_empty(count, dtype=torch.float32)


for _device in ("CPU", "CUDA"):
    registry.impl("attend_rows", lambda *given: forward_rows(Forward(*given)), _device)
    registry.impl("attend_rows_backward", lambda *given: backward_rows(Backward(*given)), _device)


@register_fake("attn::attend_rows", lib=registry)
def _(*given: Any) -> Tuple[Any, Any]:
    call = Forward(*given)
    return make_results(call.q, call.v)


@register_fake("attn::attend_rows_backward", lib=registry)
def _(*given: Any) -> Tuple[Any, Any, Any, Any]:
    return _make_gradients(Backward(*given))
