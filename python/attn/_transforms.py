"""What torch.vmap makes of the operators attn::forward, attn::record and attn::backward, and what
PyTorch's counter of operations counts of them."""

from __future__ import annotations

import functools
from typing import Any, List, Optional, Tuple

import torch
from torch.library import Library, register_vmap

from . import _imports
from ._library import Error
from ._schema import Backward, Forward
from ._source import reads
from ._written import read_pieces


def _fold(x: Any, dim: Optional[int], size: int) -> Any:
    """The mapped dimension as a part of the batch."""
    whole = x.unsqueeze(0).expand(size, *x.shape) if dim is None else x.movedim(dim, 0)
    return whole.flatten(0, 1)


def _unfold(x: Any, q: Any, dim: Optional[int], size: int) -> Any:
    """The batch in parts of that of `q`, which -1 would not tell where there are none."""
    batch = next(extent for i, extent in enumerate(q.shape) if i != dim)
    return x.unflatten(0, (size, batch))


def _refuse_mapped(sink_dim: Any, captures_dims: Any) -> None:
    if sink_dim is not None or any(dim is not None for dim in captures_dims or []):
        raise Error(
            "invalid argument",
            "torch.vmap: expected the same sink and captured tensors for all, got one that is mapped",
            "call attn in a loop over them",
        )


@functools.lru_cache(maxsize=512)
def _reads_batch(source: str) -> bool:
    """Whether functions, or dropout, read b: then what is mapped cannot be a part of the batch."""
    pieces = read_pieces(source)
    return bool(pieces["problem"]["dropout"]) or reads(pieces["regions"], "b")


def _map_forward(operator: Any, info: Any, in_dims: Tuple, *arguments: Any) -> Tuple[Tuple, Tuple]:
    """Of attn::forward or attn::record, which is `operator`."""
    call = Forward(*arguments)
    dims: Any = Forward(*in_dims)
    _refuse_mapped(dims.sink, dims.captures)
    size = info.batch_size
    if size > 0 and _reads_batch(call.source):
        parts = [[_take(x, dim, i) for x, dim in zip(call[:3], dims)] for i in range(size)]
        each = [operator(*part, *call[3:]) for part in parts]
        results = [torch.stack(x) for x in zip(*each)]
    else:
        folded = [_fold(x, dim, size) for x, dim in zip(call[:3], dims)]
        found = operator(*folded, *call[3:])
        results = [_unfold(x, call.q, dims.q, size) for x in found]
    return tuple(results), (0,) * len(results)


# What the operator of the gradients may be given mapped.
_MAPPED = ("d_output", "d_lse", "q", "k", "v", "output", "lse", "lse_low")


def _map_backward(info: Any, in_dims: Tuple, *arguments: Any) -> Tuple[List, List]:
    call = Backward(*arguments)
    dims: Any = Backward(*in_dims)
    _refuse_mapped(dims.sink, dims.captures)
    size, wanted = info.batch_size, call.wanted
    mapped = [name for name in _MAPPED if getattr(call, name) is not None]

    def run(choose: Any, wanted: List[bool]) -> List[Any]:
        chosen = {name: choose(getattr(call, name), getattr(dims, name)) for name in mapped}
        return torch.ops.attn.backward(*call._replace(wanted=wanted, **chosen))

    if size > 0 and _reads_batch(call.source):
        found = [run(lambda x, dim, i=i: _take(x, dim, i), wanted) for i in range(size)]
        return [torch.stack(x) for x in zip(*found)], [0] * sum(wanted)
    results = []
    if any(wanted[:3]):
        no_sums = [*wanted[:3], *[False] * len(wanted[3:])]
        found = run(lambda x, dim: _fold(x, dim, size), no_sums)
        results += [_unfold(x, call.q, dims.q, size) for x in found]
    if size == 0:
        of = call.sink, *(call.captures or ())
        sums = [x for x, is_wanted in zip(of, wanted[3:]) if is_wanted]
        results += [x.new_empty((0, *x.shape), dtype=torch.float32) for x in sums]
    elif any(wanted[3:]):
        # Those of sinks and captured tensors are sums over the batch, each one's own.
        only_sums = [False, False, False, *wanted[3:]]
        each = [run(lambda x, dim, i=i: _take(x, dim, i), only_sums) for i in range(size)]
        results += [torch.stack(x) for x in zip(*each)]
    return results, [0] * len(results)


def _take(x: Any, dim: Optional[int], index: int) -> Any:
    return x if dim is None else x.select(dim, index)


def _count_pairs(q: Any, k: Any, rows_first: bool) -> int:
    b, h, m = (q[0], q[2], q[1]) if rows_first else q[:3]
    return b * h * m * (k[1] if rows_first else k[2])


def _count_forward(*shapes: Any, **_results: Any) -> int:
    """As PyTorch counts its own attention: what a mask drops too."""
    of: Any = Forward(*shapes)
    return 2 * _count_pairs(of.q, of.k, of.rows_first) * (of.q[-1] + of.v[-1])


def _count_backward(*shapes: Any, **_results: Any) -> int:
    """Five products."""
    of: Any = Backward(*shapes)
    return 2 * _count_pairs(of.q, of.k, of.rows_first) * (3 * of.q[-1] + 2 * of.v[-1])


def _register_flops() -> None:
    from torch.utils.flop_counter import register_flop_formula

    for operator in (torch.ops.attn.forward, torch.ops.attn.record):
        register_flop_formula(operator)(_count_forward)
    register_flop_formula(torch.ops.attn.backward)(_count_backward)


def register(registry: Library) -> None:
    """Of all operators."""
    for name in ("forward", "record"):
        rule = functools.partial(_map_forward, getattr(torch.ops.attn, name))
        register_vmap(f"attn::{name}", rule, lib=registry)
    register_vmap("attn::backward", _map_backward, lib=registry)
    # It imports Triton where that is, which takes longer than all of attn.
    _imports.after("torch.utils.flop_counter", _register_flops)
