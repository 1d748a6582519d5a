"""What the wrappers of FlashInfer share."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch

from .._cache import Rotary
from .._library import refuse
from .._serving_how import check_layout
from ._flashinfer_how import Asked, refuse_given
from ._flashinfer_rope import Rope, make_rotary


def check_workspace(buffer: Any) -> Any:
    if not isinstance(buffer, torch.Tensor):
        refuse("float_workspace_buffer", "a tensor", type(buffer).__name__)
    return buffer.device


class Wrapper:
    """What wrappers share: the device, the layout, and that plan() comes first."""

    _asked: Optional[Asked] = None

    def __init__(self, workspace: Any, kv_layout: str, use_cuda_graph: bool, jit_args: Any) -> None:
        refuse_given(jit_args=jit_args)
        self.device = check_workspace(workspace)
        self._is_rows_first = check_layout(kv_layout)
        self._kv_layout, self._is_fixed = kv_layout, bool(use_cuda_graph)
        # Of queries and keys, if they are rotated, and all that plans made: graphs of earlier ones read theirs.
        self._rotary: Optional[Rotary] = None
        self._rotaries: Dict[Tuple[Rope, int], Rotary] = {}

    @property
    def is_cuda_graph_enabled(self) -> bool:
        return self._is_fixed

    def reset_workspace_buffer(self, float_workspace_buffer: Any, int_workspace_buffer: Any) -> None:
        """Without effect: no workspace is used."""
        check_workspace(float_workspace_buffer)

    def end_forward(self) -> None:
        """Without effect, as there."""

    def get_asked(self, window_left: Any = None) -> Asked:
        if self._asked is None:
            refuse("run", "a call after plan()", "none")
        if window_left is None:
            return self._asked
        if isinstance(window_left, bool) or not isinstance(window_left, int):
            refuse("window_left", "a number of keys, or -1", repr(window_left))
        return self._asked._replace(left=None if window_left < 0 else window_left)

    def plan_rotary(self, rope: Optional[Rope], positions: int, columns: int) -> None:
        """Tables of so many positions at least, which the runs of all layers share."""
        self._rotary = None
        if rope is None:
            return
        self._rotary = self._rotaries.get((rope, columns))
        if self._rotary is None or self._rotary.cos.shape[0] < positions:
            self._rotary = make_rotary(rope, positions, columns, self.device)
            self._rotaries[rope, columns] = self._rotary

    def check_cache(self, pools: Tuple[Any, Any], heads: int, columns: int, page: int) -> None:
        expected = page, heads, columns
        if tuple(pools[0].shape[1:]) != expected:
            got = tuple(pools[0].shape[1:])
            refuse("paged_kv_cache", f"pages of {expected}, as plan() said", got)


def check_buffers(**buffers: Any) -> None:
    for name, x in buffers.items():
        if not isinstance(x, torch.Tensor):
            refuse(name, "a tensor with use_cuda_graph", type(x).__name__)


def fill_buffers(*pairs: Tuple[str, Any, Any]) -> None:
    """What plan() was given, in buffers that the caller has for it."""
    for name, buffer, x in pairs:
        if buffer is None:
            continue
        if buffer.shape[0] < x.shape[0]:
            refuse(name, f"{buffer.shape[0]} numbers at most, as its buffer has", x.shape[0])
        buffer[: x.shape[0]].copy_(x)
