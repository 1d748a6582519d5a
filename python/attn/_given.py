"""What a call gives."""

from __future__ import annotations

from typing import Any, List, NamedTuple


class Given(NamedTuple):
    """The arrays and numbers of one call of a plan."""

    q: Any
    k: Any
    v: Any
    scale: Any
    sink: Any
    rows_first: bool
    # What the functions captured, in the order of their Scan or of the plan.
    captured: List[Any]
