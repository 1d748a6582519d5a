"""What torch.vmap makes of the operators attn::forward, attn::record and attn::backward, and what PyTorch's counter of operations
counts of them."""

from __future__ import annotations

import functools
from typing import Any, List, Optional

import torch
from torch.library import Library, register_vmap

from . import _imports
from ._library import Error
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


def _map_forward(operator, info, in_dims, q, k, v, sink, captures, *options):  # type: ignore[no-untyped-def]
    """Of attn::forward or attn::record, which is `operator`."""
    _refuse_mapped(in_dims[3], in_dims[4])
    size = info.batch_size
    if size > 0 and _reads_batch(options[0]):
        parts = [[_take(x, dim, i) for x, dim in zip((q, k, v), in_dims)] for i in range(size)]
        each = [operator(*part, sink, captures, *options) for part in parts]
        results = [torch.stack(x) for x in zip(*each)]
    else:
        folded = [_fold(x, dim, size) for x, dim in zip((q, k, v), in_dims)]
        found = operator(*folded, sink, captures, *options)
        results = [_unfold(x, q, in_dims[0], size) for x in found]
    return tuple(results), (0,) * len(results)


def _map_backward(  # type: ignore[no-untyped-def]
    info,
    in_dims,
    d_output,
    d_lse,
    q,
    k,
    v,
    sink,
    captures,
    output,
    lse,
    source,
    scale,
    rows_first,
    wanted,
    lse_low=None,
):
    _refuse_mapped(in_dims[5], in_dims[6])
    size = info.batch_size

    def run(choose: Any, wanted: List[bool]) -> List[Any]:
        x = [
            y if y is None else choose(y, dim)
            for y, dim in zip(matrices, (*in_dims[:5], *in_dims[7:9], low_dim))
        ]
        options = (source, scale, rows_first, wanted)
        return torch.ops.attn.backward(*x[:5], sink, captures, *x[5:7], *options, x[7])

    matrices = (d_output, d_lse, q, k, v, output, lse, lse_low)
    low_dim = in_dims[13] if len(in_dims) > 13 else None
    if size > 0 and _reads_batch(source):
        found = [run(lambda x, dim, i=i: _take(x, dim, i), wanted) for i in range(size)]
        return [torch.stack(x) for x in zip(*found)], [0] * sum(wanted)
    results = []
    if any(wanted[:3]):
        no_sums = [*wanted[:3], *[False] * len(wanted[3:])]
        found = run(lambda x, dim: _fold(x, dim, size), no_sums)
        results += [_unfold(x, q, in_dims[2], size) for x in found]
    if size == 0:
        sums = [x for x, is_wanted in zip((sink, *(captures or ())), wanted[3:]) if is_wanted]
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


def _count_forward(q, k, v, sink, captures, source, scale, rows_first, *, out_shape=None, **_kwargs):  # type: ignore[no-untyped-def]
    """As PyTorch counts its own attention: what a mask drops too."""
    return 2 * _count_pairs(q, k, rows_first) * (q[-1] + v[-1])


def _count_backward(d_output, d_lse, q, k, v, sink, captures, output, lse, source, scale, rows_first, wanted, lse_low=None, *, out_shape=None, **_kwargs):  # type: ignore[no-untyped-def]
    """Five products."""
    return 2 * _count_pairs(q, k, rows_first) * (3 * q[-1] + 2 * v[-1])


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
