"""Rows of all ranks, and the parts that ranks make of them, for whoever calls attention of a rank's own keys by himself."""

from __future__ import annotations

from typing import Any, Tuple

import torch
import torch.distributed as dist

from .._library import refuse
from .._merge import merge as merge_parts
from ._agree import agree
from ._exchange import fetch, find_steps, move
from ._group import choose_group, find_group
from ._plan import find_head_route


def gather(x: torch.Tensor, dim: int = 1, *, group: Any = None, mesh: Any = None) -> torch.Tensor:
    """The tensors of all ranks, one after the other along `dim`: queries of all heads, where each rank has some.

    Args:
        x: of the same shape on all ranks.
        group, mesh: a process group, or a DeviceMesh of one dimension, by either name.

    Raises:
        Error: an argument that does not fit; tensors that differ between ranks, on all ranks.
    """
    group = find_group(choose_group(group, mesh))
    _check("x", x, dim, x.dim() if isinstance(x, torch.Tensor) else 0)
    agree(group, {"x": f"{x.dtype}, {tuple(x.shape)}, {dim}"})
    steps = find_steps(find_head_route(dist.get_world_size(group), x.shape[dim]), dist.get_rank(group), x.device)
    return fetch(x, dim % x.dim(), steps, group)


def merge(
    output: torch.Tensor, lse: torch.Tensor, dim: int = 1, *, group: Any = None, mesh: Any = None
) -> Tuple[torch.Tensor, torch.Tensor]:
    """Attention to the keys of all ranks, from attention of the same queries to those of each rank. A rank
    has of the result its share along `dim`: the first rank the first heads.

        q = attn.distributed.gather(q)
        output, lse = attn.serving.paged_attention(q, k_cache, v_cache, page_table, lengths, return_lse=True)
        output, lse = attn.distributed.merge(output, lse)

    Args:
        output: (B, H, M, Dv) or (B, H, Dv), of float16, bfloat16 or float32, which is not rounded before
            parts add up.
        lse: natural logarithms of the sums, float32, without the last dimension; -inf where a rank kept no key.
        group, mesh: a process group, or a DeviceMesh of one dimension, by either name.

    Returns:
        (output, lse), in the type of `output`.

    Raises:
        Error: an argument that does not fit; tensors that differ between ranks, on all ranks.
    """
    group = find_group(choose_group(group, mesh))
    ranks = dist.get_world_size(group)
    _check("output", output, dim, output.dim() - 1 if isinstance(output, torch.Tensor) else 0)
    if not isinstance(lse, torch.Tensor) or lse.dtype != torch.float32 or lse.shape != output.shape[:-1]:
        got = f"{lse.dtype} of shape {tuple(lse.shape)}" if isinstance(lse, torch.Tensor) else type(lse).__name__
        refuse("lse", f"float32 of shape {tuple(output.shape[:-1])}", got)
    dim %= lse.dim()
    if output.shape[dim] % ranks:
        refuse("output", f"a number along dimension {dim} that {ranks} ranks divide", output.shape[dim])
    if torch.is_grad_enabled() and (output.requires_grad or lse.requires_grad):
        hint = 'method="pass rows" of attn.distributed.plan has gradients'
        refuse("output", "one that needs no gradient", "one that does", hint)
    agree(group, {"output": f"{output.dtype}, {tuple(output.shape)}, {dim}"})
    packed = torch.cat([output.float(), lse[..., None]], -1).movedim(dim, 0).contiguous()
    counts = [len(packed) // ranks] * ranks
    parts = move(packed, counts, counts, group).unflatten(0, (ranks, -1)).movedim(1, dim + 1)
    merged, total = merge_parts(parts[..., :-1], parts[..., -1])
    return merged.to(output.dtype), total


def _check(name: str, x: Any, dim: Any, rank: int) -> None:
    if not isinstance(x, torch.Tensor):
        refuse(name, "a tensor", type(x).__name__)
    if isinstance(dim, bool) or not isinstance(dim, int) or not -rank <= dim < rank:
        refuse("dim", f"a dimension of {rank}", repr(dim))
