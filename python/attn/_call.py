"""What `explain` says of one call."""

from __future__ import annotations

import sys
from typing import Any, Dict, List

from . import _arrays
from ._picture import visualize_mask


def describe(arrays: List[Any], rows_first: bool, reason: str, how: Dict[str, Any]) -> str:
    """Lines above those of the compiler. `reason` is why its kernel is not there, or empty."""
    shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in zip("qkv", arrays))
    lines = [
        f"// call        {shapes} of {arrays[0].dtype}",
        f"// path        {_find_path(arrays)}",
        f"// kernel      {'not compiled yet: ' + reason if reason else 'compiled before'}",
    ]
    on_cpu = not (_arrays.is_torch(arrays[0]) and arrays[0].is_cuda)
    if on_cpu and any(x is not None and x is not False for x in how.values()):
        length = 1 if rows_first else 2
        head = visualize_mask(arrays[0].shape[length], arrays[1].shape[length], **how)
        lines.append(f"// tiles       {head.splitlines()[0]}")
    return "\n".join(lines) + "\n"


def _find_path(arrays: List[Any]) -> str:
    if all(_arrays.is_foreign(x) for x in arrays):
        return "through DLPack to the kernel, and back"
    q, k, v = arrays
    if not _arrays.is_watched(q, k, v, None):
        return "straight to the kernel"
    torch = sys.modules["torch"]
    count_modes, find_transform, is_profiled = _arrays.find_watchers()
    if torch.is_grad_enabled() and any(x.requires_grad for x in arrays):
        who = "autograd records it"
    elif find_transform() is not None:
        who = "a transform of torch.func looks"
    elif count_modes():
        who = "a mode of PyTorch looks"
    elif is_profiled():
        who = "the profiler looks"
    else:
        who = f"a {type(q).__name__} stands for others"
    return f"the operator attn::forward of PyTorch, some 25 us more: {who}"
