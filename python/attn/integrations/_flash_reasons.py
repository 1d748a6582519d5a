"""Why a call of PyTorch's flash attention goes to the kernel that stood there before attn."""

from __future__ import annotations

import functools
from typing import Any

import torch


@functools.lru_cache(maxsize=None)
def _is_hopper(device: Any) -> bool:
    return torch.cuda.get_device_capability(device) == (9, 0)


def find_reason(q: Any, k: Any, v: Any, dropout: float) -> str:
    """Why a call goes to the kernel that stood there. Forward and backward answer the same, so that
    one's results are the other's."""
    if dropout:
        return "dropout, whose seed is of the other kernel's kind"
    if q.is_cuda and q.dtype not in (torch.float16, torch.bfloat16):
        return f"elements of {q.dtype} on a GPU"
    if q.is_cuda and not _is_hopper(q.device):
        return "a GPU that is no Hopper"
    sizes = q.shape[-1], v.shape[-1]
    if q.is_cuda and any(size % 8 or size > 256 for size in sizes):
        return f"{' and '.join(map(str, sizes))} columns on a GPU"
    if 0 in (*q.shape, *k.shape):
        return "an empty tensor"
    return ""
