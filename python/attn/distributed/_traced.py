"""The call of `context_parallel_attention` as torch.compile traces it: operators of the graph."""

from __future__ import annotations

import functools
from typing import Any, Dict, List, NamedTuple, Tuple

from torch.fx.experimental.symbolic_shapes import guard_scalar

from .. import _dynamo, _flex_node
from .._functions_of_parts import Functions, make_mask
from .._library import option_texts, refuse
from .._problem import Spec, check_causal, check_window, is_rows_first
from .._source import Source, reads
from .._written import write_text
from . import _operators
from ._agree import make_facts
from ._call import Parts, find_order, place_parts
from ._group import count_ranks, find_rank, name_group
from ._plan import Plan, read_plan
from ._sources import PartSource, find_source

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
def _write(text: str, causal: Any, window: Any, fields: Tuple, texts: Tuple) -> Tuple[str, Tuple]:
    plan = read_plan(text)
    whole = make_mask(None, check_causal(causal), check_window(window), plan.total[1] - plan.total[0])
    source = _trace(plan, Functions(None, whole), False, dict(fields))
    order, _ = find_order(source.arrays)
    return write_text(source.text, source.captures, texts), order


@_dynamo.assume_constant
def _write_source(text: str, causal: Any, window: Any, options: Any, **fields: Any) -> str:
    return _write(text, causal, window, tuple(sorted(fields.items())), option_texts(options))[0]


@_dynamo.assume_constant
def _write_parts(text: str, group: str, facts: Any, causal: Any, window: Any, options: Any, **fields: Any) -> str:
    """`facts` of what is no tensor: layout and return_lse."""
    order = _write(text, causal, window, tuple(sorted(fields.items())), option_texts(options))[1]
    return Parts(group, text, order, (0, 0), _find_facts(causal, window, *facts, options)).write()


def _find_facts(causal: Any, window: Any, layout: Any, return_lse: Any, options: Any) -> Tuple:
    return tuple(make_facts(causal, window, layout, return_lse, options).items())


@_dynamo.assume_constant
def _name(group: Any) -> str:
    return name_group(group)


@_dynamo.assume_constant
def _find_rank(group: Any) -> int:
    return find_rank(group)


@_dynamo.assume_constant
def _check_plan(text: str, group: Any, heads: int, key_heads: int) -> bool:
    """Raises Error for a plan that is not of this group."""
    plan, ranks = read_plan(text), count_ranks(group)
    if plan.ranks != ranks:
        refuse("plan", f"one of {ranks} ranks", f"one of {plan.ranks}")
    if plan.method == "ulysses" and key_heads % ranks:
        refuse("k", f"key heads that {ranks} ranks divide", key_heads, 'method="gather" serves any number of them')
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
        source = find_source(tensors, whole, call.plan.method, is_part, how)
        return call.attend(source, scale)

    def run_traced(self, tensors: Tuple, functions: List[Any], scale: Any, options: Any) -> Any:
        call, whole, is_part = _read(tensors, functions, options)
        fields = _find_fields(*tensors, scale, options["sink"])
        source = _trace(call.plan, whole, is_part, fields)
        _flex_node.check_gradients(source)
        text = write_text(source.text, source.captures, options["texts"])
        return call.attend(PartSource(text, *find_order(source.arrays)), scale)


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
    causal, window, score, mask, layout, return_lse, options = asked
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
    _check_plan(text, group, heads, guard_scalar(k.shape[head_dim]))
    is_turned = plan.method == "ulysses"
    fields = _find_fields(q, k, v, scale, sink)
    how = causal, window, options
    parts = _write_parts(text, name, (layout, return_lse), *how, **fields)
    first = 0
    if is_turned:
        heads //= plan.ranks
        first = _find_rank(group) * heads
        q, k, v = _operators.turn(q, k, v, rows_first, parts)
    if sink is not None:
        sink = sink[first : first + heads].float()
    if score is None and mask is None:
        source = _write_source(text, *how, **fields)
        found = _operators.attend(q, k, v, sink, (source, scale, rows_first), parts, [])
    else:
        _flex_node.make_known(_NAME)
        asked_options = dict(causal=causal, window=window, sink=sink, rows_first=rows_first, options=options)
        told = _flex_node.make_options(q, False, asked_options)
        told["parts"] = (text, name, _find_facts(causal, window, layout, return_lse, options), first)
        found = _flex_node.call(_node, (q, k, v), score, mask, scale, told)
    return _operators.turn_back(*found, rows_first, parts) if is_turned else found
