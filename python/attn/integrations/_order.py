"""Results that lie in memory as PyTorch's do, whose dimensions have the order of those of q."""

from __future__ import annotations

from typing import Any, Tuple

import torch

_INVERSE = {(1, 2, 0): (2, 0, 1), (2, 0, 1): (1, 2, 0)}


def find_order(q: Any) -> Tuple[int, int, int]:
    """(B, H, M) of q by their strides, the outermost first."""
    b, h, m, _ = q.stride()
    # Without sorted: torch.compile traces it.
    if b >= h:
        return (0, 1, 2) if h >= m else (0, 2, 1) if b >= m else (2, 0, 1)
    return (1, 0, 2) if b >= m else (1, 2, 0) if h >= m else (2, 1, 0)


def is_rows_first(order: Tuple[int, int, int]) -> bool:
    """Whether attention writes this order itself if it is given (B, M, H, D)."""
    return order == (0, 2, 1)


def lay(output: Any, order: Tuple[int, int, int]) -> Any:
    """The dense (B, H, M, Dv) in that order; a copy of another one."""
    if order == (0, 1, 2) or is_rows_first(order):
        return output
    inverse = _INVERSE.get(order, order)
    return output.permute(*order, 3).contiguous().permute(*inverse, 3)


def to_dense(x: Any) -> Any:
    """Whose columns lie one after the other, and which is no view of fewer elements."""
    strides = x.stride()
    if strides[-1] == 1 and 0 not in strides:
        return x
    is_expanded = any(s == 0 and n > 1 for s, n in zip(strides, x.shape))
    return x.contiguous() if strides[-1] != 1 or is_expanded else x


def lay_out(x: Any, like: Any) -> Any:
    """With the strides that torch.compile was promised, those of torch.empty_like."""
    given = torch.empty_like(like)
    return x if x.stride() == given.stride() else given.copy_(x)
