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

from typing import Any, Callable, Dict, Optional, Tuple

import torch
from torch.library import Library, register_fake

import attn

from ._bounds import find_rows
from ._order import to_dense

_INPUTS = "Tensor q, Tensor k, Tensor v, Tensor first, Tensor? last, Tensor? position, Tensor? slopes, Tensor? sink, Tensor? seed"
_OPTIONS = "float? scale, float softcap, float dropout_p, bool deterministic"

registry = Library("attn", "FRAGMENT")
registry.define(
    f"attend_rows({_INPUTS}, {_OPTIONS}) -> (Tensor output, Tensor lse)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
registry.define(
    f"attend_rows_backward(Tensor d_output, Tensor? d_lse, {_INPUTS}, Tensor output, Tensor lse, {_OPTIONS}) "
    "-> (Tensor d_q, Tensor d_k, Tensor d_v, Tensor d_sink)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def _make_score(softcap: float, slopes: Any, position: Any) -> Optional[Callable]:
    """What comes to a product, softcap before the bias. Slopes are of heads, or of rows and heads."""
    if not softcap and slopes is None:
        return None
    is_of_rows = slopes is not None and slopes.dim() == 2

    def score(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        if softcap:
            s = softcap * attn.tanh(s / softcap)
        if slopes is not None:
            slope = slopes[q, h] if is_of_rows else slopes[h]
            s = s - slope * abs((q if position is None else position[q]) - kv)
        return s

    return score


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


def _make_options(
    mask: Callable,
    position: Any,
    slopes: Any,
    sink: Any,
    seed: Any,
    scale: Optional[float],
    softcap: float,
    dropout_p: float,
    deterministic: bool,
) -> Dict[str, Any]:
    """For attn.attention and attn.gradient."""
    return dict(
        scale=scale,
        mask=mask,
        score=_make_score(softcap, slopes, position),
        sink=sink,
        layout="bshd",
        dropout_p=dropout_p,
        dropout_seed=seed if dropout_p else None,
        options={"fused": "off"} if deterministic else None,
    )


def forward_rows(q: Any, k: Any, v: Any, first: Any, last: Any, *others: Any) -> Tuple[Any, Any]:
    if q.shape[0] == 0:
        # Captured tensors have an element at least.
        return _make_results(q, v)
    how = _make_options(_make_mask(first, last), *others)
    matrices = [to_dense(x)[None] for x in (q, k, v)]
    with torch.no_grad():
        output, lse = attn.attention(*matrices, return_lse=True, **how)
    return output[0], lse[0]


def _make_results(q: Any, v: Any) -> Tuple[Any, Any]:
    rows, heads, _ = q.shape
    shape = rows, heads, v.shape[-1]
    return q.new_empty(shape), q.new_empty((heads, rows), dtype=torch.float32)


def _clear_others(x: Any, is_used: Any) -> Any:
    return to_dense(torch.where(is_used[:, None, None], x, 0))


def backward_rows(
    d_output: Any,
    d_lse: Any,
    q: Any,
    k: Any,
    v: Any,
    first: Any,
    last: Any,
    position: Any,
    slopes: Any,
    sink: Any,
    seed: Any,
    output: Any,
    lse: Any,
    *others: Any,
) -> Tuple[Any, Any, Any, Any]:
    if q.shape[0] == 0:
        d_sink = q.new_zeros(_count_sinks(sink), dtype=torch.float32)
        return q.new_zeros(q.shape), k.new_zeros(k.shape), v.new_zeros(v.shape), d_sink
    first_row, last_row = find_rows(first, last, k.shape[0])
    is_by_keys = max(q.shape[2], v.shape[2]) <= _MOST_COLUMNS
    mask = _make_mask(first, last)
    if is_by_keys and k.shape[0]:
        mask = _make_mask_by_keys(None if last is None else first_row, last_row)
    how = _make_options(mask, position, slopes, sink, seed, *others)
    places = torch.arange(q.shape[0], dtype=torch.int32, device=q.device) if last is None else last
    rows, keys = first <= places, first_row <= last_row
    q, d_output = _clear_others(q, rows), _clear_others(d_output, rows)
    k, v = _clear_others(k, keys), to_dense(v)
    matrices = [x[None] for x in (q, k, v, d_output)]
    if d_lse is not None:
        d_lse = torch.where(rows, d_lse, 0)[None]
    of = dict(output=to_dense(output)[None], lse=lse[None].contiguous(), d_lse=d_lse)
    with torch.no_grad():
        d_q, d_k, d_v, *d_sink = attn.gradient(*matrices, **of, **how)
    d_sink = d_sink[0] if d_sink else q.new_empty(0, dtype=torch.float32)
    return d_q[0].contiguous(), d_k[0].contiguous(), d_v[0].contiguous(), d_sink


def _count_sinks(sink: Any) -> int:
    return 0 if sink is None else sink.shape[0]


for _name, _implementation in (
    ("attend_rows", forward_rows),
    ("attend_rows_backward", backward_rows),
):
    for _device in ("CPU", "CUDA"):
        registry.impl(_name, _implementation, _device)


@register_fake("attn::attend_rows", lib=registry)
def _(q, k, v, *others):  # type: ignore[no-untyped-def]
    return _make_results(q, v)


@register_fake("attn::attend_rows_backward", lib=registry)
def _(d_output, d_lse, q, k, v, first, last, position, slopes, sink, *others):  # type: ignore[no-untyped-def]
    d_sink = q.new_empty(_count_sinks(sink), dtype=torch.float32)
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), d_sink
