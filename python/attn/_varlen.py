"""Sequences of any lengths, one after the other: checks, and plans of calls."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from . import _arrays
from ._given import Given
from ._library import refuse
from ._problem import Spec
from ._ragged import RaggedPlan, RaggedText, Rows
from ._serving_how import check_array, check_integers, find_plan, read_fields
from ._source import Source

_plans: Dict[Any, Tuple[RaggedPlan, List[Any]]] = {}


def make_shift_of_offsets(cu_q: Any, cu_k: Any) -> Callable:
    return lambda b: cu_k[b + 1] - cu_k[b] - (cu_q[b + 1] - cu_q[b])


def find_ragged_plan(
    spec: Spec, of_q: str, of_k: str, options: Any
) -> Tuple[RaggedPlan, List[Any]]:
    def make(source: Source, captures: Any, texts: Any) -> RaggedPlan:
        text = RaggedText(**read_fields(source.text), offsets_q=of_q, offsets_k=of_k)
        return RaggedPlan(text, captures, texts)

    return find_plan(_plans, spec, (of_q, of_k), options, make)


def check_sequences(q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any, most: Dict[str, Any]) -> None:
    """Raises Error for what cannot be one call."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        check_array(name, x, (3,), "(T, H, D)")
        if x.dtype != q.dtype:
            refuse(name, f"the type of q, {q.dtype}", x.dtype)
    for name, x in (("cu_seqlens_q", cu_q), ("cu_seqlens_k", cu_k)):
        check_integers(name, x, 1, "(B + 1,)")
        if not int(x.shape[0]):
            refuse(name, "an offset or more", "none")
    if int(cu_k.shape[0]) != int(cu_q.shape[0]):
        count = int(cu_q.shape[0])
        refuse("cu_seqlens_k", f"as many offsets as cu_seqlens_q has, {count}", int(cu_k.shape[0]))
    for what, dim in (("rows", 0), ("heads", 1)):
        if int(v.shape[dim]) != int(k.shape[dim]):
            refuse("v", f"as many {what} as k, {int(k.shape[dim])}", int(v.shape[dim]))
    if int(k.shape[2]) != int(q.shape[2]):
        refuse("k", f"the columns of q, {int(q.shape[2])}", int(k.shape[2]))
    if not int(k.shape[1]) or int(q.shape[1]) % int(k.shape[1]):
        refuse("k", f"heads that divide those of q, {int(q.shape[1])}", int(k.shape[1]))
    for name, count in most.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            refuse(name, "a number of rows", repr(count))
    for name, x, x_name in (("max_seqlen_q", q, "q"), ("max_seqlen_k", k, "k")):
        if most[name] and not int(x.shape[0]):
            refuse(x_name, f"a row or more, as {name} is {most[name]}", "none")


def run_ragged(plan: RaggedPlan, given: Given, rows: Rows, out: Any) -> Tuple[Any, Any]:
    """(output, lse), the latter None where nobody wants it."""
    if _arrays.find_torch() is not None and not _arrays.is_numpy(given.q):
        from . import _ragged_autograd

        _ragged_autograd.check_others(
            sink=given.sink, scale=given.scale, captures=given.captured, out=out
        )
        if _arrays.is_any_recorded(given.q, given.k, given.v):
            return _ragged_autograd.record(plan, given, rows, out)
    output, *lse = plan.run_ragged(given, rows, out)
    return output, lse[0] if lse else None
