"""attn.gradient, for who has no autograd."""

from __future__ import annotations

import functools
import operator
from typing import Any, List, Optional, Sequence, Tuple

from . import _arrays, _dynamo, _foreign, _library
from ._eager import find_plan
from ._given import Given
from ._library import Error
from ._places import get_ordinal
from ._plan import Plan
from ._positions import find_placed
from ._problem import check_dropout, is_rows_first
from ._run import run
from ._seed import make_seed
from .typing import (
    Array,
    ArrayT,
    Causal,
    DropoutSeed,
    DType,
    Layout,
    Mask,
    OptionsLike,
    Positions,
    Score,
    Window,
)


def _find_captures(plan: Plan, arrays: List[Any], wanted: Any) -> List[int]:
    """The numbers of the captured arrays of floats that are this one: functions may read one array
    by several names, and arrays of other libraries are seen through views."""

    def describe(x: Any) -> Tuple:
        return (_arrays.type_name(x.dtype), *_arrays.view(x, "wrt", plan.device))

    if _arrays.is_array(wanted):
        mine = describe(_foreign.import_array(wanted, "wrt"))
        found = [i for i, capture in enumerate(plan.given) if describe(arrays[capture[4]]) == mine]
        if found and mine[0] in ("f16", "bf16", "f32"):
            return found
    raise Error(
        "invalid argument",
        "wrt: expected arrays of float16, bfloat16 or float32 that the functions read, got "
        + _arrays.describe_type(wanted),
    )


def _read_out(out: Any, q: Any, count: int) -> Tuple:
    """The arrays for results, of the library of q."""
    arrays = tuple(out)
    if len(arrays) != count:
        _library.refuse("out", f"{count} arrays", len(arrays))
    for i, x in enumerate(arrays):
        if not _arrays.is_array(x) or _arrays.is_numpy(x) != _arrays.is_numpy(q) or _arrays.is_foreign(x):
            _library.refuse(f"out[{i}]", "an array of NumPy or PyTorch, as q is", _arrays.describe_type(x))
        if getattr(x, "requires_grad", False):
            _library.refuse(f"out[{i}]", "an array without gradient", "one that requires it", "detach() it")
        if _arrays.is_numpy(x) and not x.flags.writeable:
            _library.refuse(f"out[{i}]", "an array that can be written", "a read-only one")
    return arrays


def _is_wide(q: Any, out_dtype: Any, out: Optional[Tuple]) -> bool:
    """Whether gradients of q, k and v are to be of float32 where q is not."""
    if out_dtype is None:
        out_dtype = q.dtype if out is None else out[0].dtype
    type_, wanted = _arrays.type_name(q.dtype), _arrays.type_name(out_dtype)
    if wanted not in (type_, "f32"):
        _library.refuse("out_dtype" if out is None else "out", f"{q.dtype} or float32", repr(out_dtype))
    return wanted == "f32"


def _round(d_output: Any, q: Any) -> Any:
    """The gradient in the type of q, of which products are."""
    if d_output.dtype == q.dtype or _arrays.type_name(d_output.dtype) != "f32":
        return d_output
    return d_output.astype(q.dtype) if _arrays.is_numpy(q) else d_output.to(q.dtype)


def _check_out(out: Tuple, results: Sequence[Any]) -> None:
    for i, (x, of) in enumerate(zip(out, results)):
        wanted, shape = _arrays.type_name(of.dtype), tuple(of.shape)
        if tuple(x.shape) != shape or _arrays.type_name(x.dtype) != wanted:
            got = f"{x.dtype} of shape {tuple(x.shape)}"
            _library.refuse(f"out[{i}]", f"{of.dtype} of shape {shape}", got)


def _fill(out: Tuple, results: Sequence[Any], accumulate: bool) -> Tuple:
    for x, y in zip(out, results):
        if accumulate:
            x += y
        elif x is not y:
            x[...] = y
    return out


@_dynamo.disable
def gradient(
    q: ArrayT,
    k: ArrayT,
    v: ArrayT,
    d_output: ArrayT,
    *,
    output: Optional[ArrayT] = None,
    lse: Optional[ArrayT] = None,
    d_lse: Optional[ArrayT] = None,
    scale: Optional[float] = None,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: Optional[Array] = None,
    layout: Layout = "bhsd",
    wrt: Sequence[Array] = (),
    options: OptionsLike = None,
    dropout_p: float = 0.0,
    dropout_seed: DropoutSeed = None,
    out_dtype: Optional[DType] = None,
    out: Optional[Sequence[ArrayT]] = None,
    accumulate: bool = False,
    positions: Optional[Positions] = None,
    total: Optional[Tuple[int, int]] = None,
) -> Tuple[ArrayT, ...]:
    """Gradients of attention(q, k, v, ...) with the same arguments, for programs without autograd.

    Args:
        q, k, v, scale, causal, window, score, mask, sink, layout, options: as for `attention`.
        d_output: the gradient of the output, in its shape, and of the type of q or float32, which is
            rounded to the type of q.
        output, lse: the results of `attention` with return_lse, the output of the type of q or
            float32; computed again if one is None. If all
            scores of a row are beyond 30,000, an lse in float32 gives weights whose sum is not 1. Results
            that are computed again have no such bound.
        d_lse: the gradient of lse, float32 of shape (B, H, M); zeros if None.
        wrt: arrays of floats that the score captures, whose gradients are returned too. The
            gradient of an array that the score reads by several names is the sum over its names.
        positions, total: as for `attention`. Gradients of keys and values are those that these rows give:
            over rows that make up a whole, they add up to its gradients.
        dropout_p, dropout_seed: as for `attention`; with dropout the seed has to be given.
        out_dtype: of d_q, d_k and d_v: that of q, or float32, in which they are summed before they
            are rounded. That of `out`, or else that of q, if None.
        out: arrays for all results, which are filled and returned. Their last dimensions are
            contiguous.
        accumulate: add the results to what is in `out`, which is of float32 then: parts of gradients
            are added up without rounding to 16 bits.

    Returns:
        (d_q, d_k, d_v) in the shapes of q, k and v. With a sink also d_sink, float32 of
        shape (H,). Then the gradients of wrt, float32 of their shapes.

        The same arguments give the same bits, whatever else is in the batch. On a GPU, sums of two
        results are in any order: the gradients of wrt, and d_q unless options say fused="off".

    Raises:
        Error: an argument that does not fit, a function that cannot be traced, or a function that
            has no derivative.
    """
    like = q
    q, k, v, d_output, output, lse, d_lse, sink, dropout_seed = _foreign.import_named(
        q=q,
        k=k,
        v=v,
        d_output=d_output,
        output=output,
        lse=lse,
        d_lse=d_lse,
        sink=sink,
        dropout_seed=dropout_seed,
    )
    device = get_ordinal(q)
    dropout = check_dropout(dropout_p)
    if dropout and dropout_seed is None:
        _library.refuse("dropout_seed", "that of the call", None)
    seed = make_seed(dropout_seed, q, device) if dropout else None
    rows_first, placed = is_rows_first(layout), None
    if positions is not None or total is not None:
        placed = find_placed((positions, total), q, k, rows_first)
    out = None if out is None else _read_out(out, q, 3 + (sink is not None) + len(wrt))
    is_wide = _is_wide(q, out_dtype, out)
    if accumulate and (out is None or not is_wide):
        got = "none" if out is None else f"arrays of {out[0].dtype}"
        _library.refuse("out", "arrays of float32 with accumulate", got)
    is_output_wide = is_wide if output is None else _arrays.type_name(output.dtype) == "f32"
    output_type = "f32" if is_output_wide and _arrays.type_name(q.dtype) != "f32" else None
    asked = scale, causal, window, score, mask, sink, True, output_type, placed
    plan, arrays = find_plan(q, k, v, device, asked, options, dropout, seed)
    given = Given(q, k, v, scale, sink, rows_first, arrays)
    lse_low = None
    if output is None or lse is None:
        output, lse, *rest = run(plan.recorded(), *given)
        lse_low = rest[0] if rest else None
    names = ("query", "key", "value") + (("sink",) if sink is not None else ())
    captures = [_find_captures(plan, arrays, x) for x in wrt]
    numbers = sorted({number for each in captures for number in each})
    if wrt and device >= 0:
        from ._watched import check_order

        check_order("wrt")
    of = plan.gradient((*names, *numbers), d_lse is not None, lse_low is not None, is_wide)
    record = output, lse, lse_low, _round(d_output, q), d_lse
    if out is None or accumulate:
        found = of.run(given, *record)
    else:
        _check_out(out, of.make_results(given)[: len(names)])
        found = of.run_into(given, record, [*out[: len(names)], *of.make_results(given)[len(names) :]])
    parts = dict(zip(numbers, found[len(names) :]))
    sums = [functools.reduce(operator.add, [parts[i] for i in each]) for each in captures]
    found = (*found[: len(names)], *sums)
    if out is None:
        return _foreign.export(found, like)
    _check_out(out, found)
    return _fill(out, found, accumulate)
