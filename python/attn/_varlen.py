"""Sequences of any lengths, one after the other: checks, and plans of calls."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import _arrays
from ._given import Given
from ._library import refuse
from ._places import get_ordinal, name_device
from ._plan import remember
from ._problem import Spec
from ._ragged import RaggedPlan, RaggedText, Rows
from ._serving_how import (
    check_array,
    check_integers,
    check_library,
    find_plan,
    make_score,
    read_fields,
)
from ._source import Source

_plans: Dict[Any, Tuple[RaggedPlan, List[Any]]] = {}
# Of calls that no function changes: found without asking what functions read.
_plain_plans: Dict[Any, RaggedPlan] = {}


class Varlen(NamedTuple):
    """A call without functions of the caller."""

    q: Any
    k: Any
    v: Any
    cu_q: Any
    cu_k: Any
    # Of heads, or of sequences and heads; or None.
    slopes: Any
    sink: Any
    most_q: int
    most_k: int
    scale: Optional[float]
    causal: bool
    # -1 is no bound.
    left: int
    right: int
    softcap: float


class Asked(NamedTuple):
    """The rest of a call."""

    score: Optional[Callable] = None
    mask: Optional[Callable] = None
    return_lse: bool = True
    options: Any = None
    # Whether the output has zeros in rows of no sequence.
    clears: bool = False


def prepare(call: Varlen, asked: Asked = Asked()) -> Tuple[RaggedPlan, Given, Rows]:
    """The kernel of a call, and its arguments."""
    device = get_ordinal(call.q)
    names = [_arrays.type_name(x.dtype) or "" for x in (call.cu_q, call.cu_k)]
    captured: List[Any] = []
    if _has_functions(call, asked):
        spec = _make_spec(call, asked, device)
        plan, captured = _find_ragged_plan(spec, names[0], names[1], asked)
    else:
        how = call.causal, call.left, call.right, call.scale is None, call.sink is None
        said = asked.return_lse, asked.clears
        key = (call.q.dtype, call.q.shape[2], call.v.shape[2], device, *names, *how, *said)
        found = _plain_plans.get(key)
        if found is None:
            spec = _make_spec(call, asked, device)
            found, _ = _find_ragged_plan(spec, names[0], names[1], asked)
            remember(_plain_plans, key, found)
        plan = found
    given = Given(call.q, call.k, call.v, call.scale, call.sink, True, captured)
    return plan, given, Rows(call.cu_q, call.cu_k, (call.most_q, call.most_k))


def _has_functions(call: Varlen, asked: Asked) -> bool:
    """Whether anything but the fields of a call decides about its kernel."""
    if call.softcap or call.slopes is not None or asked.options is not None:
        return True
    return asked.score is not None or asked.mask is not None


def _make_spec(call: Varlen, asked: Asked, device: int) -> Spec:
    shift = _make_shift(call.cu_q, call.cu_k)
    window = call.left, call.right
    return Spec(
        call.q.dtype,
        int(call.q.shape[2]),
        int(call.v.shape[2]),
        name_device(device),
        causal=call.causal,
        window=None if window == (-1, -1) else window,
        score=make_score(shift, call.softcap or None, call.slopes, asked.score),
        mask=asked.mask,
        has_scale=call.scale is not None,
        has_sink=call.sink is not None,
        return_lse=asked.return_lse,
    )


def _make_shift(cu_q: Any, cu_k: Any) -> Callable:
    return lambda b: cu_k[b + 1] - cu_k[b] - (cu_q[b + 1] - cu_q[b])


def _find_ragged_plan(
    spec: Spec, of_q: str, of_k: str, asked: Asked
) -> Tuple[RaggedPlan, List[Any]]:
    def make(source: Source, captures: Any, texts: Any) -> RaggedPlan:
        fields = read_fields(source.text)
        text = RaggedText(**fields, offsets_q=of_q, offsets_k=of_k, clears=asked.clears)
        return RaggedPlan(text, captures, texts)

    return find_plan(_plans, spec, (of_q, of_k, asked.clears), asked.options, make)


# Shapes and types of calls that were right.
_right: Dict[Any, None] = {}


def check_call(call: Varlen) -> None:
    """Raises Error for what cannot be one call."""
    try:
        counts = call.most_q, type(call.most_q), call.most_k, type(call.most_k)
        key = (*[(type(x), x.shape, x.dtype) for x in call[:5]], *counts)
        if key in _right:
            return
    except (AttributeError, TypeError):
        # No arrays, or symbols of a trace.
        key = None
    _check_call(call)
    if key is not None:
        remember(_right, key, None)


def _check_call(call: Varlen) -> None:
    q, k, v, cu_q, cu_k = call[:5]
    check_library(q=q, k=k, v=v, cu_seqlens_q=cu_q, cu_seqlens_k=cu_k)
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
    most = {"max_seqlen_q": call.most_q, "max_seqlen_k": call.most_k}
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
