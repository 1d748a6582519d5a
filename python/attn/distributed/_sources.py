"""The text of what one rank computes, from functions of the whole."""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Tuple

import torch

from .. import _arrays, _watched
from .._eager import find_plan
from .._library import refuse
from .._positions import Kinds, Placed, make_shapes
from .._problem import check_dropout
from .._seed import make_seed
from .._source import reads
from .._written import write_source
from ._call import Order, find_kinds, find_order
from ._plan import Plan
from ._shared import Shared, find_shared


class PartSource(NamedTuple):
    text: str
    # What it captures, and the caller's arrays among that.
    order: Order
    captures: List[torch.Tensor]
    # Those of which ranks have parts.
    shared: Tuple[Shared, ...] = ()
    # Of the caller's arrays.
    names: Tuple[str, ...] = ()


class Dropout(NamedTuple):
    p: float
    # An array of one integer, on the device of q.
    seed: Any


class Asked(NamedTuple):
    """An attention of the whole."""

    causal: Any
    window: Any
    score: Optional[Callable]
    mask: Optional[Callable]


def find_source(
    tensors: Tuple, whole: Asked, plan: Plan, is_part: bool, how: Tuple[Any, Any, Any], dropout: Dropout
) -> PartSource:
    """Of an eager call. `how` is the scale, the sink and the options; `is_part` where a kernel may have some
    of the heads or batches only."""
    scale, sink, options = how
    q, k, v = tensors

    def find(is_part: bool) -> Tuple[Any, List[Any], Optional[Kinds]]:
        kinds = find_kinds(plan, is_part)
        placed = kinds and Placed(kinds, make_shapes(kinds))
        asked = scale, *whole, sink, True, None, placed
        return (*find_plan(q, k, v, q.get_device(), asked, options, *dropout), kinds)

    kernels, arrays, kinds = find(is_part and bool(dropout.p))
    if is_part and not dropout.p and any(reads(kernels.text.regions, x) for x in "bh"):
        kernels, arrays, kinds = find(True)
    order, captures = find_order([arrays[capture[4]] for capture in kernels.given], kinds)
    names = [capture[0] for capture, x in zip(kernels.given, order) if not isinstance(x, str)]
    captures = [_take(x, name) for x, name in zip(captures, names)]
    return PartSource(write_source(kernels), order, captures, find_shared(kernels.text, names), tuple(names))


def make_dropout(p: Any, seed: Any, q: torch.Tensor) -> Dropout:
    p = check_dropout(p) if p != 0 else 0.0
    if p and seed is None:
        refuse("dropout_seed", "one that all ranks share", "None")
    return Dropout(p, make_seed(seed, q, q.get_device()) if p else None)


def _take(x: Any, name: str) -> torch.Tensor:
    if not isinstance(x, torch.Tensor):
        return _arrays.to_torch(x, name)
    if x.requires_grad and torch.is_grad_enabled():
        _watched.check_has_gradient(name, x)
    return x
