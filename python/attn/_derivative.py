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
from ._problem import check_dropout, is_rows_first
from ._run import run
from ._seed import make_seed
from .typing import (
    Array,
    ArrayT,
    Causal,
    DropoutSeed,
    Layout,
    Mask,
    OptionsLike,
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
) -> Tuple[ArrayT, ...]:
    """Gradients of attention(q, k, v, ...) with the same arguments, for programs without autograd.

    Args:
        q, k, v, scale, causal, window, score, mask, sink, layout, options: as for `attention`.
        d_output: the gradient of the output, in its shape and type.
        output, lse: the results of `attention` with return_lse; computed again if one is None. If all
            scores of a row are beyond 30,000, an lse in float32 gives weights whose sum is not 1. Results
            that are computed again have no such bound.
        d_lse: the gradient of lse, float32 of shape (B, H, M); zeros if None.
        wrt: arrays of floats that the score captures, whose gradients are returned too. The
            gradient of an array that the score reads by several names is the sum over its names.
        dropout_p, dropout_seed: as for `attention`; with dropout the seed has to be given.

    Returns:
        (d_q, d_k, d_v) in the types and shapes of q, k and v. With a sink also d_sink, float32 of
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
    asked = scale, causal, window, score, mask, sink, True
    plan, arrays = find_plan(q, k, v, device, asked, options, dropout, seed)
    given = Given(q, k, v, scale, sink, is_rows_first(layout), arrays)
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
    of = plan.gradient((*names, *numbers), d_lse is not None, lse_low is not None)
    found = of.run(given, output, lse, lse_low, d_output, d_lse)
    parts = dict(zip(numbers, found[len(names) :]))
    sums = [functools.reduce(operator.add, [parts[i] for i in each]) for each in captures]
    return _foreign.export((*found[: len(names)], *sums), like)
