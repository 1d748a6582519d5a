"""The call of `context_parallel_attention` as torch.compile traces it: operators of the graph."""

from __future__ import annotations

import functools
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from torch.fx.experimental.symbolic_shapes import guard_scalar

from .. import _dynamo, _flex_node
from .._library import option_texts, refuse
from .._positions import Kinds
from .._problem import Spec, check_causal, check_window, is_rows_first
from .._seed import Seed, make_traced_seed
from .._source import Source, reads
from .._written import write_text
from . import _operators
from ._agree import make_facts
from ._call import Parts, find_kinds, find_order
from ._group import count_ranks, find_rank, name_group
from ._plan import Plan, read_plan
from ._sources import Asked, Dropout, PartSource, find_source

_NAME = "attn_context_attention"


def _trace(plan: Plan, is_part: bool, fields: Any, seed: Any = None) -> Tuple[Source, Optional[Kinds]]:
    """Of functions of the whole, as a kernel of parts sees them."""

    def make(is_part: bool) -> Tuple[Source, Optional[Kinds]]:
        kinds = find_kinds(plan, is_part)
        return Source(Spec(return_lse=True, positions=kinds, **fields), seed=seed), kinds

    has_dropout = bool(fields["dropout"])
    source, kinds = make(is_part and has_dropout)
    is_read = is_part and not has_dropout and any(reads(source.text.regions, x) for x in "bh")
    return make(True) if is_read else (source, kinds)


@functools.lru_cache(maxsize=256)
def _write(text: str, fields: Tuple, texts: Tuple) -> Tuple[str, Tuple]:
    plan = read_plan(text)
    is_part = plan.method == "ulysses" or plan.steps != 1
    source, kinds = _trace(plan, is_part, dict(fields), Seed())
    order, _ = find_order(source.arrays, kinds)
    return write_text(source.text, source.captures, texts), order


@_dynamo.assume_constant
def _write_source(text: str, options: Any, **fields: Any) -> str:
    return _write(text, tuple(sorted(fields.items())), option_texts(options))[0]


@_dynamo.assume_constant
def _write_parts(where: Tuple[str, str, int], facts: Tuple, options: Any, **fields: Any) -> str:
    """`where` is the plan, the group, and the first head of this rank."""
    text, group, first = where
    order = _write(text, tuple(sorted(fields.items())), option_texts(options))[1]
    is_causal = bool(fields["causal"]) and fields["window"] is None and not fields["dropout"]
    return Parts(group, text, order, (0, first), facts, is_causal).write()


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
        return call.attend(find_source(tensors, whole, call.plan, is_part, how, dropout), scale)

    def run_traced(self, tensors: Tuple, functions: List[Any], scale: Any, options: Any) -> Any:
        call, whole, is_part = _read(tensors, functions, options)
        fields = _find_fields(*tensors, scale, options["sink"])
        fields.update(whole._asdict(), dropout=options["dropout"])
        source, kinds = _trace(call.plan, is_part, fields, options["seed"])
        _flex_node.check_gradients(source)
        order, captures = find_order(source.arrays, kinds)
        text = write_text(source.text, source.captures, options["texts"])
        return call.attend(PartSource(text, order, captures), scale)


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


def _read(tensors: Tuple, functions: List[Any], options: Any) -> Tuple[_Call, Asked, bool]:
    """The call, the attention of the whole, and whether kernels may have some of the heads only."""
    plan, (q, k, _) = read_plan(options["parts"][0]), tensors
    head_dim = 2 if options["rows_first"] else 1
    shape = int(q.shape[0]), int(q.shape[head_dim]), int(k.shape[head_dim])
    causal, window = check_causal(options["causal"]), check_window(options["window"])
    whole = Asked(causal or False, window, *functions)
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
    if plan.node:
        _refuse("plan", "one node under torch.compile", f"nodes of {plan.node} ranks", 'method="gather" is compiled')
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
    facts = _find_facts(asked, dropout)
    whole = dict(causal=check_causal(causal) or False, window=check_window(window), dropout=dropout)
    parts = _write_parts((text, name, first), facts, options, **fields, **whole)
    if is_turned:
        q, k, v = _operators.turn(q, k, v, rows_first, parts)
    if sink is not None:
        sink = sink[first : first + heads].float()
    if score is None and mask is None:
        source = _write_source(text, options, **fields, **whole)
        captures = [] if seed is None else [seed]
        found = _operators.attend(q, k, v, sink, (source, scale, rows_first), parts, captures)
    else:
        _flex_node.make_known(_NAME)
        given = dict(causal=causal, window=window, sink=sink, rows_first=rows_first, options=options)
        told = _flex_node.make_options(q, False, given)
        told.update(dropout=dropout, seed=seed, parts=(text, name, facts, first))
        found = _flex_node.call(_node, (q, k, v), score, mask, scale, told)
    return _operators.turn_back(*found, rows_first, parts) if is_turned else found
