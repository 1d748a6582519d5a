"""The process group that a caller means: a group, a DeviceMesh of one dimension, or None for the default."""

from __future__ import annotations

from typing import Any

import torch

from .._library import refuse


def find_group(group: Any) -> Any:
    return group.get_group() if hasattr(group, "get_group") else group


def find_rank(group: Any) -> int:
    return torch.distributed.get_rank(find_group(group))


def count_ranks(group: Any) -> int:
    """A number of ranks may stand for a group."""
    if isinstance(group, int) and not isinstance(group, bool):
        if group < 1:
            refuse("group", "at least one rank", group)
        return group
    return torch.distributed.get_world_size(find_group(group))
