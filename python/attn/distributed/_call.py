"""What is the same for all steps of one call, and the kernels that steps run."""

from __future__ import annotations

import ast
import functools
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import torch
import torch.distributed as dist

from .. import _operator
from .._given import Given
from .._positions import Kinds, Shape, list_names, make_numbers, make_table
from .._written import add_options, read_pieces
from ._group import find_by_name
from ._plan import Plan, read_plan
from ._shardings import Intervals, find_hull

# Captured arrays of a source, in its order: numbers of the caller's own, and names of those that say
# positions.
Order = Tuple[Union[int, str], ...]


def find_kinds(plan: Plan, is_part: bool) -> Optional[Kinds]:
    """How kernels of a plan are told where their rows and keys stand, on all ranks alike; None where they
    have all of them. `is_part` where a kernel has some of the heads or batches, and asks which."""
    if plan.method == "ulysses" and not is_part:
        return None
    first = "origin" if is_part else "own"
    return first, first, *plan.kinds  # type: ignore[return-value]


def find_order(arrays: List[Any], kinds: Optional[Kinds]) -> Tuple[Order, List[Any]]:
    """Of what a source reads: its order, and the arrays of it that are the caller's."""
    names = iter(list_names(kinds) if kinds else ())
    order: List[Union[int, str]] = []
    given: List[Any] = []
    for x in arrays:
        if isinstance(x, Shape):
            order.append(next(names))
        else:
            order.append(len(given))
            given.append(x)
    return tuple(order), given


class Parts(NamedTuple):
    """What the operators take as text, beside the source of the kernels."""

    group: str
    plan: str
    order: Order
    # The first batch and head of this rank's tensors in the whole.
    first: Tuple[int, int]
    # Of arguments that ranks compare, by name.
    facts: Tuple[Tuple[str, str], ...]
    # Whether all that there is of a mask and a score is `causal`.
    is_causal: bool = False
    # Captured arrays of which ranks have parts: the number among the caller's own, "rows" or "keys", and the dimension.
    shared: Tuple[Tuple[int, str, int], ...] = ()

    def write(self) -> str:
        return _write_parts(self)


@functools.lru_cache(maxsize=256)
def _write_parts(parts: Parts) -> str:
    """Once for calls that repeat: the plan in it is long, and Python hashes one string once."""
    return repr(tuple(parts))


@functools.lru_cache(maxsize=256)
def read_parts(text: str) -> Parts:
    return Parts(*ast.literal_eval(text))


class Call(NamedTuple):
    """One call of an operator."""

    plan: Plan
    group: Any
    parts: Parts
    source: str
    scale: Optional[float]
    rows_first: bool
    # The caller's own captured arrays.
    captures: List[torch.Tensor]

    @property
    def rank(self) -> int:
        return dist.get_rank(self.group)

    def to_heads_first(self, x: Any) -> Any:
        """(B, H, S, D), or back to the layout of the call."""
        return x.transpose(1, 2) if self.rows_first else x

    def bind(self, like: Any, rows: Intervals, keys: Intervals, head: int = 0) -> List[torch.Tensor]:
        """What kernels read whose rows and keys are these intervals, from a head of this rank on, where
        `like` is."""
        batch, first = self.parts.first

        def place(held: Intervals, kind: str) -> torch.Tensor:
            return make_table(held, like) if kind == "table" else make_numbers((find_hull(held)[0],), like)

        of_rows, of_keys = self.plan.kinds
        make = {
            "batch_positions": lambda: make_numbers((batch,), like),
            "head_positions": lambda: make_numbers((first + head,), like),
            "row_positions": lambda: place(rows, of_rows),
            "key_positions": lambda: place(keys, of_keys),
            "total": lambda: make_numbers(self.plan.total, like),
        }
        return [make[x]() if isinstance(x, str) else self.captures[x] for x in self.parts.order]


def make_call(
    source: str, scale: Any, rows_first: bool, parts: str, captures: Optional[List[Any]]
) -> Call:
    read = read_parts(parts)
    group = find_by_name(read.group)
    return Call(read_plan(read.plan), group, read, source, scale, rows_first, captures or [])


# ===- Kernels -----------------------------------------------------------------------------------===#


def make_output(call: Call, q: torch.Tensor, columns: int) -> torch.Tensor:
    """(B, H, M, columns), in memory as the layout of the call has it."""
    b, h, m = q.shape[:3]
    return call.to_heads_first(q.new_empty((b, m, h, columns) if call.rows_first else (b, h, m, columns)))


class Rows(NamedTuple):
    """What the forward pass has of rows: (B, H, M, Dv), and (B, H, M) of f32 for others, which may be None."""

    output: Any
    lse: Any
    low: Any


# The schedule that a GPU has for causal attention of a whole: blocks that stay, and their slack of maxima. Through
# tables of positions the rule takes neither: the output had other bits than one GPU's.
_STAYING = (("stay", "on"), ("slack", "0"))
# Rows of a rank from which it is for the best, and the columns of heads for which it is the whole's.
_MANY_ROWS, _COLUMNS = 1024, range(65, 129)
_CHOICES = {"stay", "slack", "way", "block_m", "block_n", "splits", "fixed_split", "pack"}


@functools.lru_cache(maxsize=256)
def pin_schedule(source: str) -> str:
    """The source of causal attention, with the schedule of the whole, unless options of a caller choose one."""
    given = {name for name, _ in read_pieces(source)["options"]}
    return source if given & _CHOICES else add_options(source, _STAYING)


def _find_forward(call: Call, given: Given) -> str:
    q, columns = given.q, max(given.q.shape[3], given.v.shape[3])
    has_whole = call.parts.is_causal and q.is_cuda and q.shape[2] >= _MANY_ROWS and columns in _COLUMNS
    # Heads of a whole sequence have its kernel.
    return pin_schedule(call.source) if has_whole and call.plan.method != "ulysses" else call.source


def attend(call: Call, given: Given, output: Any, is_recorded: bool) -> Rows:
    """One kernel, into an output of any strides, of the type of q or float32. `given` has what `bind`
    returns."""
    plan = _operator.find(_find_forward(call, given), given.q, given.scale, given.sink, given.captured)
    plan = plan.recorded() if is_recorded else plan
    plan = plan.wide() if output.dtype is torch.float32 else plan
    lse = given.q.new_empty(given.q.shape[:3], dtype=torch.float32)
    low = torch.empty_like(lse) if plan.problem.return_low else None
    plan.run_into(given, output, lse, low=low)
    return Rows(output, lse, low)


def has_low(source: str, q: Any, scale: Any, sink: Any, count: int) -> bool:
    """Whether gradients of this source, which captures so many arrays, read the low part of lse."""
    plan = _operator.find(source, q, scale, sink, [None] * count)
    return plan.recorded().problem.return_low


class Sums:
    """Gradients that kernels of several steps add to, by number: of the sink (3), and of the caller's
    captured arrays (4 and up), in f32."""

    def __init__(self, call: Call, wanted: List[bool], sink: Any, is_wide: bool = False) -> None:
        """`is_wide` where gradients of q, k and v are to be float32."""
        self.call, self.wanted, self.is_wide = call, wanted, is_wide
        of = [sink, *call.captures]
        self.found: Dict[int, torch.Tensor] = {
            3 + i: torch.zeros_like(x, dtype=torch.float32)
            for i, (x, is_wanted) in enumerate(zip(of, wanted[3:]))
            if is_wanted
        }

    def differentiate(
        self, given: Given, rows: Rows, d_output: Any, d_lse: Any, heads: slice = slice(None)
    ) -> Tuple:
        """Gradients of q, k and v of one kernel, of these heads of the call; those that are sums are
        added."""
        call = self.call
        named = {3: "sink"}
        for place_, x in enumerate(call.parts.order):
            if not isinstance(x, str):
                named[4 + x] = place_  # type: ignore[assignment]
        # In the order of a kernel's results: by names, then by places.
        numbers = sorted(self.found, key=lambda i: (i > 3, named[i]))
        names = ("query", "key", "value", *[named[i] for i in numbers])
        whole = _operator.find(call.source, given.q, given.scale, given.sink, given.captured)
        plan = whole.gradient(names, d_lse is not None, rows.low is not None, self.is_wide)
        found = plan.run(given, rows.output, rows.lse, rows.low, _operator.to_dense(d_output), d_lse)
        for i, x in zip(numbers, found[3:]):
            of = self.found[i][heads] if i == 3 else self.found[i]
            of += x
        return tuple(found[:3])

    def take(self, parts: Dict[int, torch.Tensor]) -> None:
        """What is added to from here on for these numbers."""
        self.found.update(parts)

    def list(self) -> List[torch.Tensor]:
        return [self.found[i] for i in sorted(self.found)]
