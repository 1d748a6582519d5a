"""The eager call: the plan of what is asked for, found again by a key, and one call of it."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import _arrays, _dynamo, _foreign
from ._library import Error, option_texts
from ._places import name_device
from ._plan import Plan, make_plan, remember
from ._positions import Placed, find_placed
from ._problem import Spec, check_causal, check_dropout, check_options, check_window, is_rows_first
from ._run import run
from ._scan import Scan
from ._seed import make_seed
from ._source import Source

# The attention of one call, as the caller asks for it: (scale, causal, window, score, mask, sink,
# return_lse, out_dtype, placed). `placed` says positions, and is None for most; `call` takes (positions,
# total) too. A plain tuple: where the plan is known, an object with names would take a tenth of a small call.
Asked = Tuple[Any, ...]

_NOTHING: List[Any] = []
_plans: Dict[Any, Tuple[Plan, List[Any]]] = {}


@_dynamo.disable
def call(
    q: Any,
    k: Any,
    v: Any,
    asked: Asked,
    layout: str,
    options: Optional[Mapping[str, object]],
    dropout_p: Any,
    dropout_seed: Any,
) -> Any:
    scale, causal, window, score, mask, sink, return_lse, out_dtype, placed = asked
    dropout = check_dropout(dropout_p) if dropout_p != 0 else 0.0
    get_device = getattr(q, "get_device", None)
    if get_device is None and _arrays.is_foreign(q):
        mine = _foreign.import_named(q=q, k=k, v=v, sink=sink, dropout_seed=dropout_seed)
        *mine, sink, seed = mine
        asked = scale, causal, window, score, mask, sink, return_lse, out_dtype, placed
        return _foreign.export(call(*mine, asked, layout, options, dropout, seed), q)
    device = -1 if get_device is None else get_device()
    if get_device is not None and _arrays.is_autocast():
        q, k, v = _arrays.cast(q, k, v)
    rows_first = layout != "bhsd" and is_rows_first(layout)
    seed = make_seed(dropout_seed, q, device) if dropout else None
    if placed is not None and type(placed) is not Placed:
        asked = (*asked[:8], find_placed(placed, q, k, rows_first))
    # What `attn.tune` finds where nothing is faster than the rule's sizes.
    if options is not None and options == {}:
        options = None
    plan, arrays = find_plan(q, k, v, device, asked, options, dropout, seed)
    output = plan.direct(q, k, v, scale, sink, arrays, rows_first, False, None)
    if output is not None:
        return output
    return run(plan, q, k, v, scale, sink, rows_first, arrays)


def find_plan(
    q: Any,
    k: Any,
    v: Any,
    device: int,
    asked: Asked,
    options: Optional[Mapping[str, object]],
    dropout: float = 0.0,
    seed: Any = None,
) -> Tuple[Plan, List[Any]]:
    """The plan that a call runs, and the arrays that its functions captured, with those of positions
    and the seed of dropout after them."""
    scale, causal, window, score, mask, sink, return_lse, out_dtype, placed = asked
    # True == 1, and only one of them is an alignment.
    if causal is not False and causal is not True:
        causal = check_causal(causal) or False
    if window is not None:
        window = check_window(window)
    try:
        key: Any = (
            q.dtype,
            q.shape[-1],
            v.shape[-1],
            device,
            causal,
            window,
            scale is None,
            sink is None,
            return_lse,
            options and option_texts(options),
            dropout,
            out_dtype,
            placed and placed.kinds,
        )
        if score is None and mask is None:
            scan, arrays = None, _NOTHING
            found = _plans.get(key)
            if found is not None and not dropout and placed is None:
                # Most calls end here.
                return found[0], arrays
        else:
            scan = Scan.of(score, mask)
            arrays = scan.arrays
            key = (*key, score is None, *scan.key)
            if device >= 0:
                # There the text says which arrays have any strides.
                key += tuple([_foreign.is_strided(x) for x in arrays])
            found = None if scan.is_volatile else _plans.get(key)
    except (AttributeError, IndexError, TypeError):
        # An argument of another type. Say which, or go on without the cache.
        _check_matrices(q, k, v, device, sink)
        scan, key, found = Scan.of(score, mask), None, None
        arrays = scan.arrays
    if scan is not None and scan.is_foreign:
        arrays = _foreign.import_all(arrays)
    if placed is not None:
        arrays = [*arrays, *placed.arrays]
    if dropout:
        arrays = [*arrays, seed]
    if found is not None:
        return found[0], arrays
    _check_matrices(q, k, v, device, sink)
    spec = Spec(
        q.dtype,
        int(q.shape[-1]),
        int(v.shape[-1]),
        name_device(device),
        causal=causal,
        window=window,
        score=score,
        mask=mask,
        has_scale=scale is not None,
        has_sink=sink is not None,
        return_lse=return_lse,
        dropout=dropout,
        out_dtype=out_dtype,
        positions=placed and placed.kinds,
    )
    source = Source(spec, scan, seed, placed and placed.arrays)
    plan = make_plan(source, check_options(options, spec.device), not source.is_volatile)
    if source.is_volatile:
        return plan, _foreign.import_all(source.arrays)
    if key is not None:
        _keep(key, plan, spec, scan)
    return plan, arrays


def _keep(key: Any, plan: Plan, spec: Spec, scan: Optional[Scan]) -> None:
    """Finds the plan again by this key, if nothing changed while its functions were traced."""
    if scan is None:
        remember(_plans, key, (plan, _NOTHING))
    elif Scan.of(spec.score, spec.mask).key == scan.key:
        # `keep` holds what the key names by its address.
        remember(_plans, key, (plan, scan.keep))


def replace(of: Plan, by: Plan) -> bool:
    """Calls that took one plan take another of the same attention from now on. False where no call would
    find the first one again."""
    keys = [key for key, (plan, _) in list(_plans.items()) if plan is of]
    for key in keys:
        _plans[key] = by, _plans[key][1]
    return bool(keys)


def _check_matrices(q: Any, k: Any, v: Any, device: int, sink: Any) -> None:
    is_watched = _arrays.is_watched(q, k, v, sink)
    for name, x in (("q", q), ("k", k), ("v", v)):
        # Who watches may give tensors that stand for others: the operator knows them.
        shape = x.shape if is_watched else _arrays.view(x, name, device)[1]
        if len(shape) != 4:
            raise Error(
                "invalid argument", f"{name}: expected 4 dimensions, got shape {tuple(shape)}"
            )
