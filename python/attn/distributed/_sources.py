"""The text of what one rank computes, from functions of the whole."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Tuple

import torch

from .. import _arrays, _watched
from .._eager import find_plan
from .._functions_of_parts import Functions
from .._source import reads
from .._written import write_source
from ._call import Order, find_order, place_parts


class PartSource(NamedTuple):
    text: str
    # What it captures, and the caller's arrays among that.
    order: Order
    captures: List[torch.Tensor]


def find_source(
    tensors: Tuple, whole: Functions, method: str, is_part: bool, how: Tuple[Any, Any, Any]
) -> PartSource:
    """Of an eager call. `how` is the scale, the sink and the options; `is_part` where a kernel may have some
    of the heads or batches only."""
    scale, sink, options = how
    q, k, v = tensors

    def find(is_part: bool) -> Tuple[Any, List[Any]]:
        placed = place_parts(whole, method, is_part)
        asked = scale, False, None, placed.score, placed.mask, sink, True
        return find_plan(q, k, v, q.get_device(), asked, options)

    kernels, arrays = find(False)
    if is_part and any(reads(kernels.text.regions, x) for x in "bh"):
        kernels, arrays = find(True)
    order, captures = find_order([arrays[capture[4]] for capture in kernels.given])
    names = [capture[0] for capture, x in zip(kernels.given, order) if not isinstance(x, str)]
    return PartSource(write_source(kernels), order, [_take(x, name) for x, name in zip(captures, names)])


def _take(x: Any, name: str) -> torch.Tensor:
    if not isinstance(x, torch.Tensor):
        return _arrays.to_torch(x, name)
    if x.requires_grad and torch.is_grad_enabled():
        _watched.check_has_gradient(name, x)
    return x
