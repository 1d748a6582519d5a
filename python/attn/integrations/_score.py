"""What sequences and caches add to scores: a softcap, and after it a bias for distances."""

from __future__ import annotations

from typing import Any, Callable, Optional

import torch


def make_score(
    softcap: float, slopes: Any, position: Any = None, shift: Any = None
) -> Optional[Callable]:
    """A row stands at position[q], or at q if that is None, and shift[b] further on. Slopes are (H,), or
    (B, H) if there are shifts, or (T, H) if there are none."""
    if slopes is None:
        # A closure of few cells, which are looked at in each call.
        return _make_softcap(softcap) if softcap else None
    is_of_heads = slopes.dim() == 1

    def score(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        if softcap:
            s = softcap * torch.tanh(s / softcap)
        slope = slopes[h] if is_of_heads else slopes[q if shift is None else b, h]
        place = q if position is None else position[q]
        return s - slope * abs((place if shift is None else place + shift[b]) - kv)

    return score


def _make_softcap(softcap: float) -> Callable:
    # Symbols answer to functions of PyTorch, and Dynamo knows them.
    return lambda s, b, h, q, kv: softcap * torch.tanh(s / softcap)
