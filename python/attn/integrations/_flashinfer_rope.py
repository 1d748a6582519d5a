"""Keys that a cache holds without rotation, rotated in each call, as pos_encoding_mode="ROPE_LLAMA" asks for. Keys and
values are copied: whoever can, rotates keys before they are written (attn.serving.append)."""

from __future__ import annotations

from typing import Any, NamedTuple, Tuple

import torch

from .._cache import Rotary, find_positions, rotate_rows
from ._pages import Pages


class Rope(NamedTuple):
    scale: float
    theta: float


def make_rotary(rope: Rope, positions: int, columns: int, device: Any) -> Rotary:
    """Tables of the positions from 0 on."""
    powers = torch.arange(0, columns, 2, dtype=torch.float32, device=device) / columns
    steps = torch.arange(max(positions, 1), dtype=torch.float32, device=device) / rope.scale
    angles = steps[:, None] * rope.theta**-powers
    return Rotary(angles.cos(), angles.sin())


def rotate_query(q: Any, offsets: Any, lengths: Any, rotary: Rotary) -> Any:
    """q (T, H, D), the last rows of sequences of so many keys."""
    if not q.numel() or not lengths.shape[0]:
        return q
    begin = lengths - (offsets[1:] - offsets[:-1])
    position = find_positions(begin, offsets, q.shape[0])[1]
    return rotate_rows(q, position, rotary)


def rotate_keys(k: Any, offsets: Any, rotary: Rotary) -> Any:
    """k (N, Hkv, D), sequences one after the other."""
    if not k.numel() or offsets.shape[0] < 2:
        return k
    position = find_positions(torch.zeros_like(offsets[1:]), offsets, k.shape[0])[1]
    return rotate_rows(k, position, rotary)


def rotate_pages(pages: Pages, rotary: Rotary) -> Pages:
    """Pages of their own for each sequence, whose keys are rotated."""
    batch, columns = pages.table.shape
    if not pages.table.numel() or not pages.k.shape[0]:
        return pages
    index = pages.table.long().clamp(0, pages.k.shape[0] - 1).flatten()
    k, v = pages.k[index], pages.v[index]
    page = k.shape[1]
    position = torch.arange(columns * page, device=k.device).repeat(batch)
    k = rotate_rows(k.flatten(0, 1), position, rotary).view(k.shape)
    table = torch.arange(batch * columns, dtype=torch.int32, device=k.device)
    return pages._replace(k=k, v=v, table=table.view(batch, columns))


def rotate_single(q: Any, k: Any, rope: Rope) -> Tuple[Any, Any]:
    """q (M, H, D), the last rows of keys k (N, Hkv, D)."""
    ends = [torch.tensor([0, x.shape[0]], device=q.device) for x in (q, k)]
    rotary = make_rotary(rope, k.shape[0], k.shape[-1], k.device)
    return rotate_query(q, ends[0], ends[1][1:], rotary), rotate_keys(k, ends[1], rotary)
