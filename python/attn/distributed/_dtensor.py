"""DTensors whose positions one dimension of their mesh shards: the parts that this rank has, and the plan that
PyTorch's way to cut them is."""

from __future__ import annotations

import functools
from typing import Any, List, NamedTuple, Optional, Tuple

import torch

from .._library import refuse
from .._problem import check_causal, check_window, is_rows_first
from ._group import find_group, name_group
from ._plan import Plan
from ._plan import plan as deal
from ._shardings import Intervals, join


class _Dims(NamedTuple):
    """Of q, k and v."""

    heads: int
    rows: int


class Sharded(NamedTuple):
    """What `context_parallel_attention` has of DTensors."""

    tensors: Tuple[torch.Tensor, torch.Tensor, torch.Tensor]
    plan: Plan
    group: Any
    # The first batch and head of this rank.
    first: Tuple[int, int]
    like: Any
    dims: _Dims

    def get_sink(self, sink: Any) -> Any:
        """For the heads of this rank; its gradient is this rank's share."""
        if sink is None:
            return None
        is_split = [_shards(x, self.dims.heads) for x in self.like.placements]
        if is_dtensor(sink):
            if sink.device_mesh != self.like.device_mesh:
                refuse("sink", "the mesh of q", sink.device_mesh)
            is_mine = [_shards(x, 0) for x in sink.placements]
            if any(mine and not heads for mine, heads in zip(is_mine, is_split)) or any(is_mine) != all(
                mine for mine, heads in zip(is_mine, is_split) if heads
            ):
                refuse("sink", "one that is replicated, or sharded as the heads of q are", sink.placements)
            sink = _take_sink(sink, is_mine)
            if any(is_mine):
                return sink
        begin, count = self.first[1], self.tensors[0].shape[self.dims.heads]
        return sink[begin : begin + count]

    def wrap(self, output: torch.Tensor, lse: torch.Tensor) -> Tuple[Any, Any]:
        like = self.like
        shape = [*like.shape[:3], output.shape[3]]
        rows = [like.shape[0], like.shape[self.dims.heads], like.shape[self.dims.rows]]
        dims = {0: 0, self.dims.heads: 1, self.dims.rows: 2}
        return _wrap(output, like, shape, {0: 0, 1: 1, 2: 2}), _wrap(lse, like, rows, dims)


def is_dtensor(x: Any) -> bool:
    """Where nobody imported it, there is none."""
    return type(x).__name__ == "DTensor" and hasattr(x, "device_mesh")


def _shards(placement: Any, dim: int) -> bool:
    return placement.is_shard() and placement.dim == dim


def _take_sink(sink: Any, is_mine: List[bool]) -> torch.Tensor:
    from torch.distributed.tensor import Partial, Shard

    places = [Shard(0) if mine else Partial() for mine in is_mine]
    return sink.to_local(grad_placements=places)


def _wrap(x: torch.Tensor, like: Any, shape: List[int], dims: Any) -> Any:
    from torch.distributed.tensor import DTensor, Shard

    places = [Shard(dims[p.dim]) if p.is_shard() else p for p in like.placements]
    stride = torch.empty(shape, device="meta").stride()
    how = dict(run_check=False, shape=torch.Size(shape), stride=stride)
    return DTensor.from_local(x.contiguous(), like.device_mesh, places, **how)


def cut_as_chunks(length: int, parts: int) -> List[Intervals]:
    """As PyTorch cuts a dimension: chunks of equal size, of which the last may be shorter, or empty."""
    size = -(-length // parts)
    return [join([(min(i * size, length), min((i + 1) * size, length))]) for i in range(parts)]


def _find_offset(like: Any, dim: int) -> int:
    """The first position of this rank along a dimension."""
    coordinate, offset, extent = like.device_mesh.get_coordinate(), 0, like.shape[dim]
    for i, placement in enumerate(like.placements):
        if _shards(placement, dim):
            size = -(-extent // like.device_mesh.size(i))
            begin = min(coordinate[i] * size, extent)
            offset, extent = offset + begin, min(size, extent - begin)
    return offset


@functools.lru_cache(maxsize=64)
def _make_plan(total: Tuple[int, int], ranks: int, causal: Any, window: Any) -> Plan:
    length: Any = total[0] if total[0] == total[1] else total
    intervals = [list(mine) for mine in cut_as_chunks(total[0], ranks)]
    return deal(length, ranks, causal=causal, window=window, sharding=intervals)


def find(tensors: Tuple, plan: Optional[Plan], group: Any, asked: Tuple) -> Optional[Sharded]:
    """None where there is no DTensor."""
    are = [is_dtensor(x) for x in tensors]
    if not any(are):
        return None
    causal, window, layout = asked[0], asked[1], asked[4]
    dims = _Dims(2, 1) if is_rows_first(layout) else _Dims(1, 2)
    for name, x, is_one in zip("qkv", tensors, are):
        if not is_one:
            refuse(name, "a DTensor, as the others are", type(x).__name__)
    q, k, v = tensors
    for name, x in (("k", k), ("v", v)):
        if x.device_mesh != q.device_mesh or x.placements != q.placements:
            refuse(name, f"the mesh and placements of q, {q.placements}", x.placements)
    mesh_dim = _find_mesh_dim(q, k, dims)
    mesh, held = q.device_mesh, q.device_mesh.get_group(mesh_dim)
    if group is not None and name_group(find_group(group)) != name_group(held):
        refuse("group", f"dimension {mesh_dim} of the mesh of q, which shards its positions", "another one")
    if plan is None:
        total, ranks = (q.shape[dims.rows], k.shape[dims.rows]), mesh.size(mesh_dim)
        if total[0] != total[1] and total[1] % ranks:
            refuse("k", f"a number of keys that {ranks} ranks divide, or that of rows", total[1])
        plan = _make_plan(total, ranks, check_causal(causal) or False, check_window(window))
    first = _find_offset(q, 0), _find_offset(q, dims.heads)
    return Sharded(tuple(x.to_local() for x in tensors), plan, held, first, q, dims)


def _find_mesh_dim(q: Any, k: Any, dims: _Dims) -> int:
    """That which shards positions."""
    found = [i for i, x in enumerate(q.placements) if _shards(x, dims.rows)]
    if len(found) != 1:
        refuse(
            "q",
            f"one dimension of the mesh that shards dimension {dims.rows}, positions",
            q.placements,
            "attn.attention serves DTensors whose batches or heads alone are sharded",
        )
    parts = 1
    for i, x in enumerate(q.placements):
        if not (x.is_replicate() or any(_shards(x, dim) for dim in (0, dims.heads, dims.rows))):
            refuse("q", "placements that replicate or shard batches, heads or positions", q.placements)
        parts *= q.device_mesh.size(i) if _shards(x, dims.heads) else 1
    for name, x in (("q", q), ("k", k)):
        if x.shape[dims.heads] % parts:
            refuse(name, f"a number of heads that {parts} ranks divide", x.shape[dims.heads])
    return found[0]
