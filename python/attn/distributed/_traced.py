"""The call of `context_parallel_attention` as torch.compile traces it: operators of the graph."""

from __future__ import annotations

import functools
from typing import Any, Dict, List, NamedTuple, Tuple

from torch.fx.experimental.symbolic_shapes import guard_scalar

from .. import _dynamo, _flex_node
from .._functions_of_parts import Functions, make_mask
from .._library import option_texts, refuse
from .._problem import Spec, check_causal, check_window, is_rows_first
from .._seed import make_traced_seed
from .._source import Source, reads
from .._written import list_given
from . import _operators
from ._agree import make_facts
from ._call import Parts, find_order, place_parts
from ._group import count_ranks, find_rank, name_group
from ._plan import Plan, read_plan
from ._sources import Dropout, PartSource, find_source, list_tables, write_parts

_NAME = "attn_context_attention"


def _trace(plan: Plan, functions: Functions, is_part: bool, fields: Any) -> Source:
    """Of functions of the whole, as a kernel of parts sees them."""

    def make(is_part: bool) -> Source:
        placed = place_parts(functions, plan.method, is_part)
        return Source(Spec(score=placed.score, mask=placed.mask, return_lse=True, **fields))

    source = make(False)
    is_read = is_part and any(reads(source.text.regions, x) for x in "bh")
    return make(True) if is_read else source


@functools.lru_cache(maxsize=256)
def _write(
    text: str, causal: Any, window: Any, fields: Tuple, texts: Tuple, dropout: float
) -> Tuple[str, Tuple]:
    plan = read_plan(text)
    whole = make_mask(None, check_causal(causal), check_window(window), plan.total[1] - plan.total[0])
    source = _trace(plan, Functions(None, whole), False, dict(fields))
    order, _ = find_order(source.arrays)
    tables = list_tables(plan.method, plan.method == "ulysses" or plan.steps != 1)
    return write_parts(source.text, list_given(source.captures), order, dropout, tables, texts)


@_dynamo.assume_constant
def _write_source(text: str, causal: Any, window: Any, options: Any, dropout: float, **fields: Any) -> str:
    return _write(text, causal, window, tuple(sorted(fields.items())), option_texts(options), dropout)[0]


@_dynamo.assume_constant
def _write_parts(where: Tuple[str, str, int], facts: Tuple, how: Tuple, **fields: Any) -> str:
    """`where` is the plan, the group, and the first head of this rank; `how` as for `_write_source`."""
    (text, group, first), (causal, window, options, dropout) = where, how
    order = _write(text, causal, window, tuple(sorted(fields.items())), option_texts(options), dropout)[1]
    return Parts(group, text, order, (0, first), facts, bool(causal) and window is None and not dropout).write()


def _find_facts(asked: Tuple, dropout: float) -> Tuple:
    causal, window, _, _, layout, return_lse, options = asked[:7]
    return tuple(make_facts(causal, window, layout, return_lse, options, dropout).items())


@_dynamo.assume_constant
def _name(group: Any) -> str:
    return name_group(group)


@_dynamo.assume_constant
def _find_rank(group: Any) -> int:
    return find_rank(group)


@_dynamo.assume_constant
def _check_plan(text: str, group: Any, key_heads: int) -> bool:
    """Of these heads and this group."""
    plan = read_plan(text)
    _operators.check_ranks(plan, count_ranks(group))
    _operators.check_key_heads(plan, key_heads)
    return True


@_dynamo.assume_constant
def _refuse(name: str, expected: str, got: str, hint: str) -> bool:
    refuse(name, expected, got, hint)


class _Node(_flex_node.Node):
    """As attention with functions, of positions in the whole. `options` also has the plan, the group and facts
    as text, and the first head of this rank."""

    def run_eagerly(self, tensors: Tuple, functions: List[Any], scale: Any, options: Any) -> Any:
        call, whole, is_part = _read(tensors, functions, options)
        how = scale, options["sink"], dict(options["texts"])
        dropout = Dropout(options["dropout"], options["seed"])
        return call.attend(find_source(tensors, whole, call.plan.method, is_part, how, dropout), scale)

    def run_traced(self, tensors: Tuple, functions: List[Any], scale: Any, options: Any) -> Any:
        call, whole, is_part = _read(tensors, functions, options)
        fields = _find_fields(*tensors, scale, options["sink"])
        source = _trace(call.plan, whole, is_part, fields)
        _flex_node.check_gradients(source)
        order, captures = find_order(source.arrays)
        tables, p = list_tables(call.plan.method, is_part), options["dropout"]
        found = write_parts(source.text, list_given(source.captures), order, p, tables, options["texts"])
        return call.attend(PartSource(*found, [*captures, *[options["seed"]] * bool(p)]), scale)


class _Call(NamedTuple):
    """Of a node."""

    plan: Plan
    tensors: Tuple
    options: Any

    def attend(self, source: PartSource, scale: Any) -> Any:
        plan, group, facts, first = self.options["parts"]
        parts = Parts(group, plan, source.order, (0, first), facts).write()
        how = source.text, scale, self.options["rows_first"]
        return _operators.attend(*self.tensors, self.options["sink"], how, parts, source.captures)


def _read(tensors: Tuple, functions: List[Any], options: Any) -> Tuple[_Call, Functions, bool]:
    """The call, functions of the whole, and whether kernels may have some of the heads only."""
    plan, (q, k, _) = read_plan(options["parts"][0]), tensors
    head_dim = 2 if options["rows_first"] else 1
    shape = int(q.shape[0]), int(q.shape[head_dim]), int(k.shape[head_dim])
    causal, window = check_causal(options["causal"]), check_window(options["window"])
    score, mask = functions
    whole = Functions(score, make_mask(mask, causal, window, plan.total[1] - plan.total[0]))
    return _Call(plan, tensors, options), whole, plan.is_split(*shape)


def _find_fields(q: Any, k: Any, v: Any, scale: Any, sink: Any) -> Dict[str, Any]:
    """Of a Spec."""
    return dict(
        dtype=q.dtype,
        head_dim=guard_scalar(q.shape[-1]),
        value_dim=guard_scalar(v.shape[-1]),
        device=str(q.device),
        has_scale=scale is not None,
        has_sink=sink is not None,
    )


_node = _Node(_NAME)


def attend(tensors: Tuple, sink: Any, plan: Any, group: Any, scale: Any, asked: Tuple) -> Any:
    """(output, lse) while Dynamo traces."""
    causal, window, score, mask, layout, _, options, dropout_p, dropout_seed = asked
    q, k, v = tensors
    if type(q).__name__ == "DTensor":
        hint = "give to_local() of each, and the plan"
        _refuse("q", "a tensor of this rank under torch.compile", "a DTensor", hint)
    if plan is None:
        _refuse("plan", "one of attn.distributed.plan", "None", "make it outside of what is compiled")
    rows_first = is_rows_first(layout)
    head_dim = 2 if rows_first else 1
    text, name = plan.text, _name(group)
    heads = guard_scalar(q.shape[head_dim])
    _check_plan(text, group, guard_scalar(k.shape[head_dim]))
    is_turned = plan.method == "ulysses"
    fields = _find_fields(q, k, v, scale, sink)
    dropout, seed, first = 0.0, None, 0
    if dropout_p:
        if dropout_seed is None:
            _refuse("dropout_seed", "one that all ranks share", "None", "")
        dropout, seed = make_traced_seed(dropout_p, dropout_seed, q)
    if is_turned:
        heads //= plan.ranks
        first = _find_rank(group) * heads
    how, facts = (causal, window, options, dropout), _find_facts(asked, dropout)
    parts = _write_parts((text, name, first), facts, how, **fields)
    if is_turned:
        q, k, v = _operators.turn(q, k, v, rows_first, parts)
    if sink is not None:
        sink = sink[first : first + heads].float()
    if score is None and mask is None:
        source = _write_source(text, *how, **fields)
        captures = [] if seed is None else [seed]
        found = _operators.attend(q, k, v, sink, (source, scale, rows_first), parts, captures)
    else:
        _flex_node.make_known(_NAME)
        given = dict(causal=causal, window=window, sink=sink, rows_first=rows_first, options=options)
        told = _flex_node.make_options(q, False, given)
        told.update(dropout=dropout, seed=seed, parts=(text, name, facts, first))
        found = _flex_node.call(_node, (q, k, v), score, mask, scale, told)
    return _operators.turn_back(*found, rows_first, parts) if is_turned else found
