"""A line for each call, and one for each of its tensors: ATTN_LOG=calls and ATTN_LOG=values."""

from __future__ import annotations

import importlib
import logging
import math
from typing import Any, Optional

from . import _memory
from ._library import Error
from ._observe import Call, Named, Watcher

logger = logging.getLogger("attn.calls")


class CallLog(Watcher):
    """Writes to the logger "attn.calls"."""

    def __init__(self, has_values: bool) -> None:
        self._has_values = has_values

    def before(self, call: Call) -> None:
        shapes = " ".join(f"{x.name} {list(x.shape)}" for x in call.arguments if x.shape)
        way = f" way {call.way}" if call.way else ""
        logger.info("call %d: %s on %s%s: %s", call.number, call.name, call.device, way, shapes)

    def after(self, call: Call, error: Optional[Error]) -> None:
        if error is not None:
            logger.info("call %d: failed: %s", call.number, error)
        elif self._has_values:
            for x in (*call.arguments, *call.results):
                logger.info("call %d:   %s", call.number, describe_values(x))


def describe_values(x: Named) -> str:
    """Such as "q bf16 [2, 8, 512, 64]: -4.1 to 4.3, mean 0.001, 0 NaN, 0 infinite"."""
    head = f"{x.name} {x.type} {list(x.shape)}"
    if _memory.is_captured():
        return f"{head}: recorded by a CUDA graph, which computes nothing yet"
    if not math.prod(x.shape):
        return f"{head}: empty"
    values = _memory.to_f64(_memory.copy(x.tensor), x.type)
    numpy: Any = importlib.import_module("numpy")
    finite = values[numpy.isfinite(values)]
    counts = f"{numpy.isnan(values).sum()} NaN, {numpy.isinf(values).sum()} infinite"
    if not finite.size:
        return f"{head}: nothing finite, {counts}"
    return f"{head}: {finite.min():.6g} to {finite.max():.6g}, mean {finite.mean():.6g}, {counts}"
