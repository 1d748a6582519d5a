"""Attention of the rows that this rank holds to the keys of all ranks."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, NamedTuple, Optional, Tuple, Union, overload

import torch
import torch.distributed as dist

from .. import _arrays, _dynamo, _watched
from .._library import refuse
from .._operator import PLAIN
from .._plan import remember
from .._problem import check_causal, check_window, is_rows_first
from ..typing import Causal, DropoutSeed, Layout, Mask, OptionsLike, Score, Window
from . import _dtensor, _operators, _traced
from ._agree import agree, describe, make_facts
from ._call import Parts, read_parts
from ._group import choose_group, find_group, name_group
from ._nodes import cut_nodes, find_nodes, join_shared
from ._plan import Plan
from ._shared import Shared, check_shared
from ._sources import Asked, find_source, make_dropout


class _Prepared(NamedTuple):
    """What the operators take."""

    tensors: Tuple[Any, Any, Any, Any]
    # The source, the scale, and whether rows are before heads.
    how: Tuple[str, Any, bool]
    parts: str
    captures: List[torch.Tensor]
    # Of what turns heads, where ranks do; None if they do not.
    turned: Optional[str]


@overload
def context_parallel_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    plan: Optional[Plan] = None,
    group: Any = None,
    mesh: Any = None,
    scale: Optional[float] = None,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: Optional[torch.Tensor] = None,
    layout: Layout = "bhsd",
    return_lse: Literal[False] = False,
    options: OptionsLike = None,
    dropout_p: float = 0.0,
    dropout_seed: DropoutSeed = None,
) -> torch.Tensor: ...


@overload
def context_parallel_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    plan: Optional[Plan] = None,
    group: Any = None,
    mesh: Any = None,
    scale: Optional[float] = None,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: Optional[torch.Tensor] = None,
    layout: Layout = "bhsd",
    return_lse: Literal[True],
    options: OptionsLike = None,
    dropout_p: float = 0.0,
    dropout_seed: DropoutSeed = None,
) -> Tuple[torch.Tensor, torch.Tensor]: ...


@overload
def context_parallel_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    plan: Optional[Plan] = None,
    group: Any = None,
    mesh: Any = None,
    scale: Optional[float] = None,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: Optional[torch.Tensor] = None,
    layout: Layout = "bhsd",
    return_lse: bool,
    options: OptionsLike = None,
    dropout_p: float = 0.0,
    dropout_seed: DropoutSeed = None,
) -> Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]: ...


def context_parallel_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    plan: Optional[Plan] = None,
    group: Any = None,
    mesh: Any = None,
    scale: Optional[float] = None,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: Optional[torch.Tensor] = None,
    layout: Layout = "bhsd",
    return_lse: bool = False,
    options: OptionsLike = None,
    dropout_p: float = 0.0,
    dropout_seed: DropoutSeed = None,
) -> Any:
    """attn.attention of a sequence that the ranks of a group hold. All of them call it, with the same
    arguments but for their parts of q, k and v.

    Args:
        q, k, v: this rank's rows and keys, as `plan` deals them, (B, H, M, D), (B, Hkv, N, D) and
            (B, Hkv, N, Dv), or as `layout` says. Or DTensors whose positions one dimension of their mesh
            shards; other dimensions may shard batches and heads. Results are then DTensors too.
        plan: of `attn.distributed.plan`. A mask that keeps more keys than the plan was made for loses
            those that were not fetched: give both the same mask. May be None for DTensors, whose ranks
            then hold intervals as PyTorch cuts them, and fetch what `causal` and `window` keep.
        group, mesh: a process group, or a DeviceMesh of one dimension, by either name; None is the
            default group, or the mesh of DTensors.
        scale, score, mask, sink, layout, options: as for `attn.attention`. Functions see positions in the
            whole, and so do `causal`, `window`, `attn.query_length` and `attn.key_length`. Arrays that
            they read are whole on every rank, but for those that `rows` and `keys` of this module mark.
        return_lse: also return the logsumexp of this rank's rows.
        dropout_p, dropout_seed: as for `attn.attention`: the weights that are dropped are those of one
            process with this seed. With dropout, all ranks have to give the same seed.

    Returns:
        The output of this rank's rows, or (output, lse).

        Methods "gather" and "ulysses" make each row over the keys in the order of the whole. Gradients
        follow for q, k and v; "gather" fetches keys again for them. Those of sinks and of arrays that
        functions read are this rank's share, as those of other parameters are: their sum over ranks is
        the whole. torch.compile takes the call into its graph, fullgraph=True too.

    Raises:
        Error: an argument that does not fit, by its name; arguments that differ between ranks, or that
            do not fit on one of them, on all ranks.
    """
    group = choose_group(group, mesh)
    asked = (causal, window, score, mask, layout, return_lse, options, dropout_p, dropout_seed)
    if _dynamo.is_compiling():
        found = _traced.attend((q, k, v), sink, plan, group, scale, asked)
    else:
        found = _call((q, k, v), sink, plan, group, scale, asked)
    return found if return_lse else found[0]


# What was prepared for calls that no function and no array but q, k and v decides about.
_known: Dict[Tuple, Tuple] = {}


def _find_key(tensors: Tuple, sink: Any, plan: Any, group: Any, scale: Any, asked: Tuple) -> Optional[Tuple]:
    """Of such a call; None for others."""
    causal, window, score, mask, layout, return_lse, options, dropout_p, _ = asked
    if not (score is mask is sink is options is None) or dropout_p != 0 or type(plan) is not Plan:
        return None
    is_plain = all(type(x) in PLAIN for x in tensors) and type(scale) in (float, type(None))
    if not is_plain or type(causal) not in (bool, str) or _arrays.is_autocast():
        return None
    if window is not None and not (type(window) is tuple and all(type(x) is int for x in window)):
        return None
    forms = [(x.dtype, x.shape, x.get_device(), x.stride(-1) if x.dim() else 1) for x in tensors]
    return (id(plan), group, scale, type(causal), causal, window, layout, return_lse, *forms)


@_dynamo.disable
def _call(tensors: Tuple, sink: Any, plan: Any, group: Any, scale: Any, asked: Tuple) -> Any:
    """(output, lse)."""
    sharded = _dtensor.find(tensors, plan, group, asked)
    if sharded is not None:
        tensors, sink, plan, group = sharded.tensors, sharded.get_sink(sink), sharded.plan, sharded.group
    group = find_group(group)
    key = _find_key(tensors, sink, plan, group, scale, asked) if sharded is None else None
    known = _known.get(key) if key is not None else None
    if known is not None:
        return _attend(_Prepared((*tensors, None), *known[1:]))
    first = (0, 0) if sharded is None else sharded.first
    try:
        prepared = _prepare(tensors, sink, plan, group, scale, asked, first)
    except Exception as error:
        _tell(tensors, sink, plan, group, scale, asked, error)
        raise
    if plan.node:
        prepared = _enter_nodes(prepared, plan, group)
    if key is not None:
        # With the plan, which the key names by its address.
        remember(_known, key, (plan, *prepared[1:]))
    found = _attend(prepared)
    return found if sharded is None else sharded.wrap(*found)


def _attend(prepared: _Prepared) -> Tuple[Any, Any]:
    (*tensors, sink), how, parts, captures, turned = prepared
    if turned is None:
        return _operators.attend(*tensors, sink, how, parts, captures)
    there = _operators.turn(*tensors, how[2], turned)
    return _operators.turn_back(*_operators.attend(*there, sink, how, parts, captures), how[2], turned)


def _make_facts(asked: Tuple) -> Any:
    causal, window, score, mask, layout, return_lse, options, dropout_p, _ = asked
    return make_facts(causal, window, layout, return_lse, options, dropout_p, (score, mask))


def _tell(*given: Any) -> None:
    """The other ranks have an Error too, if they are at the beginning of the same call."""
    tensors, sink, plan, group, scale, asked, error = given
    facts = _make_facts(asked)
    facts.update(describe(*tensors, sink, scale, asked[4] == "bshd"))
    facts["plan"] = plan.text if isinstance(plan, Plan) else repr(plan)
    agree(group, facts, error)


def _check(tensors: Tuple, plan: Any, group: Any, dim: int) -> int:
    """Raises Error for tensors that are not the parts that the plan says. Returns the rank."""
    if not isinstance(plan, Plan):
        refuse("plan", "one of attn.distributed.plan", type(plan).__name__, "DTensors may go without")
    _operators.check_ranks(plan, dist.get_world_size(group))
    rank = dist.get_rank(group)
    _operators.check_parts(*tensors, plan, dim, rank)
    _operators.check_key_heads(plan, tensors[1].shape[3 - dim])
    return rank


def _prepare(
    tensors: Tuple, sink: Any, plan: Any, group: Any, scale: Any, asked: Tuple, first: Tuple[int, int]
) -> _Prepared:
    causal, window, score, mask, layout, _, options, dropout_p, dropout_seed = asked
    rows_first = is_rows_first(layout)
    head_dim, dim = (2, 1) if rows_first else (1, 2)
    rank = _check(tensors, plan, group, dim)
    if _arrays.is_autocast():
        tensors = _arrays.cast(*tensors)
    q, k, _ = tensors
    whole = Asked(check_causal(causal) or False, check_window(window), score, mask)
    batch, heads, key_heads = q.shape[0], q.shape[head_dim], k.shape[head_dim]
    is_turned, place = plan.method == "ulysses", rank % plan.node if plan.node else rank
    if is_turned:
        heads //= plan.node or plan.ranks
        first = (first[0], first[1] + place * heads)
    is_part = any(first) or plan.is_split(batch, heads, key_heads)
    if sink is not None:
        sink = _check_sink(sink, q.shape[head_dim])
        sink = sink[place * heads : (place + 1) * heads] if is_turned else sink
    dropout = make_dropout(dropout_p, dropout_seed, q)
    how = scale, sink, options
    by = cut_nodes(plan) if plan.node else plan
    source, order, captures, shared, names = find_source(tensors, whole, by, is_part, how, dropout)
    check_shared(shared, names, captures, plan, rank)
    scale = None if scale is None else _arrays.to_number(scale, "scale")
    is_causal = bool(causal) and window is None and score is None and mask is None and not dropout.p
    facts = tuple(_make_facts(asked).items())
    parts = Parts(name_group(group), plan.text, order, first, facts, is_causal, tuple(map(tuple, shared)))
    last = parts.write(), captures, parts.write() if is_turned else None
    return _Prepared((*tensors, sink), (source, scale, rows_first), *last)


def _enter_nodes(prepared: _Prepared, plan: Plan, group: Any) -> _Prepared:
    """The same of a rank's node and of its peers in others. All ranks make their groups together, so they have to mean
    the same call before."""
    parts, (source, scale, rows_first) = read_parts(prepared.parts), prepared.how
    facts = {**dict(parts.facts), **describe(*prepared.tensors, scale, rows_first)}
    agree(group, {**facts, "plan": plan.text, "score, mask": source})
    nodes = find_nodes(plan, group)
    captures = join_shared(nodes, tuple(Shared(*x) for x in parts.shared), prepared.captures)
    outer = parts._replace(group=nodes.peers, plan=nodes.outer.text)
    inner = parts._replace(group=nodes.node, plan=nodes.inner.text)
    return prepared._replace(parts=outer.write(), captures=captures, turned=inner.write())


def _check_sink(sink: Any, heads: int) -> torch.Tensor:
    sink = _watched.to_sink(sink)
    if tuple(sink.shape) != (heads,):
        refuse("sink", f"floats of shape ({heads},)", f"shape {tuple(sink.shape)}")
    return sink.float()
