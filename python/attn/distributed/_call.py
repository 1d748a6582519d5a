"""What is the same for all steps of one call."""

from __future__ import annotations

import functools
from typing import Any, Dict, NamedTuple, Tuple

import torch
import torch.distributed as dist

from .._functions_of_parts import Functions
from .._problem import is_rows_first
from ._plan import Plan
from ._shardings import Intervals, make_positions


class Call(NamedTuple):
    plan: Plan
    group: Any
    # Of positions in the whole, `causal` and `window` among them.
    functions: Functions
    # An array of M and N of the whole.
    total: torch.Tensor
    # Other arguments of attn.attention.
    how: Dict[str, Any]

    @property
    def rank(self) -> int:
        return dist.get_rank(self.group)

    @property
    def is_rows_first(self) -> bool:
        return is_rows_first(self.how["layout"])


@functools.lru_cache(maxsize=256)
def make_table(intervals: Intervals, device: torch.device) -> torch.Tensor:
    return make_positions(intervals).to(device, torch.int32)


@functools.lru_cache(maxsize=256)
def make_total(total: Tuple[int, int], device: torch.device) -> torch.Tensor:
    return torch.tensor(total, dtype=torch.int32, device=device)
