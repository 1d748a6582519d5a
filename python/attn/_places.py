"""Where arrays are: the host, or a GPU by its ordinal."""

from __future__ import annotations

from typing import Any

# Blocks of a GPU's grid in its second and third dimension, which count heads and batches.
MOST_BLOCKS = 65535


def get_ordinal(x: Any) -> int:
    """The number of its GPU; -1 on the host, where NumPy's arrays are, too."""
    get_device = getattr(x, "get_device", None)
    return -1 if get_device is None else int(get_device())


def name_device(ordinal: int) -> str:
    """As kernels and PyTorch name it."""
    return "cpu" if ordinal < 0 else f"cuda:{ordinal}"
