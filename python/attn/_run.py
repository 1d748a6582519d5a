"""One call of a plan, past whoever watches it."""

from __future__ import annotations

import functools
from typing import Any, List

from . import _arrays
from ._given import Given
from ._plan import Plan


@functools.lru_cache(maxsize=None)
def _find_watched() -> Any:
    """The module, which imports PyTorch: it is there. To import it in each call takes a microsecond."""
    from . import _watched

    return _watched


def run(
    plan: Plan, q: Any, k: Any, v: Any, scale: Any, sink: Any, rows_first: bool, captured: List[Any]
) -> Any:
    """The output, or it and lse, or these and lse_low."""
    if _arrays.may_be_recorded(q, k, v):
        record = _find_watched().record
        output = record(plan, q, k, v, scale, sink, rows_first, captured)
        if output is not None:
            return output
    output = plan.direct(q, k, v, scale, sink, captured, rows_first, False, None)
    if output is not None:
        return output
    given = Given(q, k, v, scale, sink, rows_first, captured)
    if _arrays.is_watched(q, k, v, sink, *plan.find_given(captured)):
        return _find_watched().call(plan, given)
    return plan.run(given)


def run_into(plan: Plan, given: Given, output: Any, lse: Any, workspace: Any = None) -> None:
    """The same, with the memory of its results, and of what kernels leave for each other."""
    if _arrays.is_watched(given.q, given.k, given.v, given.sink, *given.captured, output, lse):
        _find_watched().call_into(plan, given, output, lse)
    else:
        plan.run_into(given, output, lse, workspace)
