"""The text of what one rank computes, from functions of the whole."""

from __future__ import annotations

import weakref
from typing import Any, List, NamedTuple, Tuple

import torch

from .. import _arrays, _watched
from .._eager import find_plan
from .._functions_of_parts import Functions
from .._library import refuse
from .._plan import Plan, remember
from .._problem import check_dropout
from .._seed import make_seed
from .._source import Text, reads
from .._written import write_given, write_source
from ._call import Order, find_order, place_parts
from ._dropout import add_dropout


# What was written with dropout, by the plan of the same attention without it: hundreds of lines take longer to write
# than a small call takes.
_dropped: Any = weakref.WeakKeyDictionary()


class PartSource(NamedTuple):
    text: str
    # What it captures, and the caller's arrays among that.
    order: Order
    captures: List[torch.Tensor]


class Dropout(NamedTuple):
    p: float
    # An array of one integer, on the device of q.
    seed: Any


def find_source(
    tensors: Tuple, whole: Functions, method: str, is_part: bool, how: Tuple[Any, Any, Any], dropout: Dropout
) -> PartSource:
    """Of an eager call. `how` is the scale, the sink and the options; `is_part` where a kernel may have some
    of the heads or batches only."""
    scale, sink, options = how
    q, k, v = tensors

    def find(is_part: bool) -> Tuple[Any, List[Any]]:
        placed = place_parts(whole, method, is_part)
        asked = scale, False, None, placed.score, placed.mask, sink, True, None
        return find_plan(q, k, v, q.get_device(), asked, options)

    kernels, arrays = find(False)
    if is_part and any(reads(kernels.text.regions, x) for x in "bh"):
        kernels, arrays = find(True)
    order, captures = find_order([arrays[capture[4]] for capture in kernels.given])
    names = [capture[0] for capture, x in zip(kernels.given, order) if not isinstance(x, str)]
    captures = [_take(x, name) for x, name in zip(captures, names)]
    if not dropout.p:
        return PartSource(write_source(kernels), order, captures)
    found = _find_dropped(kernels, order, dropout.p, list_tables(method, is_part))
    return PartSource(*found, [*captures, dropout.seed])


def _find_dropped(kernels: Plan, order: Order, p: float, tables: Tuple[str, ...]) -> Tuple[str, Order]:
    """The text and the order of this attention with dropout, written once."""
    known, key = _dropped.setdefault(kernels, {}), (order, p, tables)
    found = known.get(key)
    if found is None:
        found = write_parts(kernels.text, kernels.given, order, p, tables, kernels.options)
        remember(known, key, found)
    return found


def make_dropout(p: Any, seed: Any, q: torch.Tensor) -> Dropout:
    p = check_dropout(p) if p != 0 else 0.0
    if p and seed is None:
        refuse("dropout_seed", "one that all ranks share", "None")
    return Dropout(p, make_seed(seed, q, q.get_device()) if p else None)


def list_tables(method: str, is_part: bool) -> Tuple[str, ...]:
    """What positions of a call are found by."""
    return (() if method == "ulysses" else ("rows", "keys")) + (("head", "batch") if is_part else ())


def write_parts(
    text: Text, given: List[Tuple], order: Any, p: float, tables: Tuple, options: Any
) -> Tuple[str, Order]:
    """The text of kernels, with dropout where p is not 0, and the order of what it captures."""
    if p:
        text, given, order = add_dropout(text, given, order, p, tables)
    return write_given(text, given, options), order


def _take(x: Any, name: str) -> torch.Tensor:
    if not isinstance(x, torch.Tensor):
        return _arrays.to_torch(x, name)
    if x.requires_grad and torch.is_grad_enabled():
        _watched.check_has_gradient(name, x)
    return x
