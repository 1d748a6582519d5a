"""The process group that a caller means: a group, a DeviceMesh of one dimension, or None for the default."""

from __future__ import annotations

import functools
from typing import Any, Callable

import torch
import torch.distributed as dist

from .._library import Error, refuse


def choose_group(group: Any, mesh: Any) -> Any:
    """What a caller gives as `group` or as `mesh`."""
    if mesh is None:
        return group
    if group is not None:
        refuse("mesh", "one of group and mesh", "both")
    if not hasattr(mesh, "get_group"):
        refuse("mesh", "a DeviceMesh of one dimension", type(mesh).__name__)
    return mesh


def find_group(group: Any) -> Any:
    if not hasattr(group, "get_group"):
        return group
    if group.ndim != 1:
        names = group.mesh_dim_names
        hint = f"take one of them, mesh[{names[-1]!r}]" if names else "take one of them"
        refuse("mesh", "a DeviceMesh of one dimension", f"one of {group.ndim}", hint)
    return group.get_group()


def find_rank(group: Any) -> int:
    return dist.get_rank(find_group(group))


def count_ranks(group: Any) -> int:
    """A number of ranks may stand for a group."""
    if isinstance(group, int) and not isinstance(group, bool):
        if group < 1:
            refuse("group", "at least one rank", group)
        return group
    return dist.get_world_size(find_group(group))


def name_group(group: Any) -> str:
    """The name by which all of this process know a group."""
    group = find_group(group)
    return (dist.group.WORLD if group is None else group).group_name


def find_by_name(name: str) -> Any:
    return dist.distributed_c10d._resolve_process_group(name)


def find_device(group: Any) -> torch.device:
    """Where a collective of a few bytes takes the least."""
    config = str(dist.get_backend_config(group))
    if "cpu:" in config or not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", torch.cuda.current_device())


# What ranks of gloo say of each other are errors of no class of their own.
_OF_RANKS = ("gloo", "Connection", "connection", "Timed out", "timed out", "Socket")


def waits_for_ranks(function: Callable) -> Callable:
    """A function that has an Error where another rank has ended or does not answer in the group's time."""

    @functools.wraps(function)
    def run(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except RuntimeError as error:
            text = str(error)
            if not isinstance(error, dist.DistError) and not any(word in text for word in _OF_RANKS):
                raise
            raise Error(
                "driver failure",
                f"group: expected an answer of every rank, got: {text.splitlines()[0] if text else type(error).__name__}",
                "a rank has ended or waits elsewhere: its own error says why; then begin with a new group",
            ) from error

    return run
