"""How DTensors of attn::forward and attn::backward may be sharded: by batch, heads or rows, each part
without the others. Keys are never split: a part of them is another softmax.

Imported once torch.distributed.tensor is, and somebody calls attn.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, List, NamedTuple, Optional, Union

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._op_schema import OpStrategy, RuntimeSchemaInfo
from torch.distributed.tensor._ops.utils import expand_to_full_mesh_op_strategy

from ._schema import Backward, Forward
from ._source import reads
from ._written import read_pieces

# What drops options of a whole mesh; PyTorch 2.15 has it by another name than 2.13.
_FILTER = "is_valid_strategy_cb"
if _FILTER not in inspect.signature(expand_to_full_mesh_op_strategy).parameters:
    _FILTER = "full_mesh_strategy_filter"


class _Allowed(NamedTuple):
    """Dimensions that the functions of one attention let be split: what they read of b, h, q and M is
    the position in the whole."""

    batch: bool
    heads: bool
    rows: bool


@functools.lru_cache(maxsize=512)
def _find_allowed(source: str) -> _Allowed:
    pieces = read_pieces(source)
    problem, regions = pieces["problem"], pieces["regions"]
    # Dropout draws at every position.
    batch, heads, rows = (not (problem["dropout"] or reads(regions, x)) for x in "bhm")
    has_place = problem["causal"] or problem["window"]
    has_length = any("%q" in line for line in pieces["before"])
    # Tables are of all rows.
    is_placed = problem.get("positions") is not None
    return _Allowed(batch, heads, rows and not (has_place or has_length or is_placed))


class _Part(NamedTuple):
    """How one dimension of a mesh splits each tensor."""

    q: Any
    k: Any
    lse: Any
    sink: Any
    captured: Any
    # Gradients that are sums over what is split.
    d_k: Any
    d_sink: Any
    d_captured: Any


def _list_parts(call: Union[Forward, Backward]) -> List[_Part]:
    heads, rows = (2, 1) if call.rows_first else (1, 2)
    whole, total, allowed = Replicate(), Partial(), _find_allowed(call.source)
    parts = [_Part(*[whole] * 8)]
    if allowed.batch:
        split = Shard(0)
        parts.append(_Part(split, split, split, whole, whole, split, total, total))
    if allowed.heads:
        # One head of k and v serves all.
        q, k, d_k = Shard(heads), Shard(heads), Shard(heads)
        if call.k.shape[heads] == 1:
            k, d_k = whole, total
        parts.append(_Part(q, k, Shard(1), Shard(0), whole, d_k, Shard(0), total))
    if allowed.rows:
        parts.append(_Part(Shard(rows), whole, Shard(2), whole, whole, total, total, total))
    return parts


def _count(captures: Any) -> int:
    return 0 if captures is None else len(getattr(captures, "children", captures))


def _expand(
    schema: Any, options: List[List[Any]], count: int, call: Union[Forward, Backward]
) -> Any:
    """Over all dimensions of the mesh; each option is of `count` results and then of the tensors."""
    mesh, k, heads = schema.get_mesh_from_args(), call.k, 2 if call.rows_first else 1
    position = [x for x in schema.args_strategy].index(k)

    def is_whole_groups(inputs: List[Any], _: Any) -> bool:
        """Heads of q stay with theirs of k."""
        parts = 1
        for i, placement in enumerate(inputs[position].placements):
            if placement == Shard(heads):
                parts *= mesh.size(i)
        return k.shape[heads] % parts == 0

    how = {"input_index": count, _FILTER: is_whole_groups}
    return expand_to_full_mesh_op_strategy(mesh, schema, options, **how)


def _shard_forward(count_results: int, schema: Any) -> OpStrategy:
    """Of attn::forward or attn::record: the output, and numbers of its rows."""
    call = Forward(*schema.args_schema)
    options = []
    for part in _list_parts(call):
        given = [part.q, part.k, part.k, *[part.sink] * (call.sink is not None)]
        results = [part.q, *[part.lse] * (count_results - 1)]
        options.append([*results, *given, *[part.captured] * _count(call.captures)])
    return _expand(schema, options, count_results, call)


def _shard_backward(schema: Any) -> OpStrategy:
    call = Backward(*schema.args_schema)
    wanted, count, options = call.wanted, _count(call.captures), []
    for part in _list_parts(call):
        of = [part.q, part.d_k, part.d_k, part.d_sink, *[part.d_captured] * count]
        results: List[Optional[Any]] = [x for x, is_wanted in zip(of, wanted) if is_wanted]
        given = [part.q, *[part.lse] * (call.d_lse is not None), part.q, part.k, part.k]
        given += [*[part.sink] * (call.sink is not None), *[part.captured] * count]
        given += [part.q, part.lse, *[part.lse] * (call.lse_low is not None)]
        options.append([*results, *given])
    strategy = _expand(schema, options, sum(wanted), call)
    if sum(wanted) == 1:
        # A list of one.
        for each in strategy.strategies:
            each.output_specs = (each.output_specs,)
    return strategy


def replicate(x: Any, q: Any) -> Any:
    """A captured tensor that every process has, beside a q that is a DTensor."""
    if not isinstance(q, DTensor) or isinstance(x, DTensor):
        return x
    mesh = q.device_mesh
    return DTensor.from_local(x, mesh, [Replicate()] * mesh.ndim, run_check=False)


def _register(operator: Any, strategy: Any, first_static: int) -> None:
    # The text decides too what may be split.
    info = RuntimeSchemaInfo(first_static, needs_pytree=True)
    propagator = DTensor._op_dispatcher.sharding_propagator
    propagator.register_op_strategy(operator, strategy, info)


_register(torch.ops.attn.forward.default, functools.partial(_shard_forward, 2), 5)
_register(torch.ops.attn.record.default, functools.partial(_shard_forward, 3), 5)
_register(torch.ops.attn.backward.default, _shard_backward, 9)
