"""Where the rows and keys of a call stand in a whole, as arrays of JAX."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import jax
import jax.numpy as jnp
import numpy

from ._library import refuse
from ._positions import (
    Part,
    Placed,
    check_intervals,
    check_order,
    check_pair,
    check_total,
    place_parts,
    to_int,
)


def find_placed(positions: Any, total: Any, counts: Tuple[int, int]) -> Optional[Placed]:
    """Of `positions` and `total` of a call with so many rows and keys; None where it is the whole."""
    if positions is None and total is None:
        return None
    pair = (None, None) if positions is None else check_pair(positions)
    whole = check_total(total, pair, counts)
    sizes = zip(("rows", "keys"), counts, whole)
    parts = [Part(name, count, most, None) for name, count, most in sizes]
    kinds, arrays = place_parts(parts, pair, _place)
    return Placed(kinds, [jnp.asarray(array, jnp.int32) for array in (*arrays, whole)])


def _place(part: Part, x: Any) -> Tuple[str, Any]:
    """The kind of positions, and the array that says them; None for the call's own."""
    if x is None:
        return "own", None
    if isinstance(x, (list, tuple)):
        intervals = check_intervals(part, x)
        if len(intervals) > 1:
            return "table", numpy.concatenate([numpy.arange(*pair) for pair in intervals])
        x = intervals[0][0] if intervals else 0
    if isinstance(x, (jax.Array, numpy.ndarray)):
        return _check_array(part, x)
    origin = to_int(x)
    if origin is None or not 0 <= origin <= part.most - part.extent:
        what = f"an origin from 0 to {part.most - part.extent} for {part.extent} of {part.most} {part.name}"
        refuse("positions", f"None, {what}, intervals or an array of integers", repr(x))
    return "origin", (origin,)


def _check_array(part: Part, x: Any) -> Tuple[str, Any]:
    if not jnp.issubdtype(x.dtype, jnp.integer):
        refuse("positions", f"integers for {part.name}", x.dtype)
    if x.ndim == 0:
        return "origin", x.reshape(1)
    if x.shape != (part.extent,):
        refuse("positions", f"a table of {part.extent} {part.name}, as the call has", f"shape {x.shape}")
    if not isinstance(x, jax.core.Tracer):
        check_order(part, numpy.asarray(x))
    return "table", x
