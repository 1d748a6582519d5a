"""The arguments of attn::attend_rows and of its gradient, each list written once, and how a call of sequences
becomes them."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from torch import Tensor

from ._arguments import Window
from ._bounds import Sequences, make_bounds


# Keys of a part where callers ask for the same bits in every batch, and say no number: at most 5 % slower than
# parts that fill a GPU.
SAME_BITS_SPLIT = 4096


class Forward(NamedTuple):
    """Of attn::attend_rows."""

    q: Tensor
    k: Tensor
    v: Tensor
    first: Tensor
    last: Optional[Tensor]
    position: Optional[Tensor]
    # Of heads, or of rows and heads.
    slopes: Optional[Tensor]
    sink: Optional[Tensor]
    seed: Optional[Tensor]
    scale: Optional[float]
    softcap: float
    dropout_p: float
    deterministic: bool


class Backward(NamedTuple):
    """Of attn::attend_rows_backward."""

    d_output: Tensor
    d_lse: Optional[Tensor]
    q: Tensor
    k: Tensor
    v: Tensor
    first: Tensor
    last: Optional[Tensor]
    position: Optional[Tensor]
    slopes: Optional[Tensor]
    sink: Optional[Tensor]
    seed: Optional[Tensor]
    output: Tensor
    lse: Tensor
    scale: Optional[float]
    softcap: float
    dropout_p: float
    deterministic: bool


# Tensors in front of the options of each.
NUM_TENSORS = Forward._fields.index("scale")
NUM_TENSORS_BACKWARD = Backward._fields.index("scale")


def make_backward(
    call: Forward, output: Any, lse: Any, d_output: Any, d_lse: Any = None
) -> Backward:
    tensors, options = call[:NUM_TENSORS], call[NUM_TENSORS:]
    return Backward(d_output, d_lse, *tensors, output, lse, *options)


class How(NamedTuple):
    """How rows attend to the keys that they keep."""

    scale: Optional[float] = None
    softcap: float = 0.0
    # Of heads, or of sequences and heads.
    slopes: Any = None
    sink: Any = None
    dropout_p: float = 0.0
    seed: Any = None
    deterministic: bool = False
    # Of keys in pages: those of a part (attn.serving.paged_attention), or None.
    fixed_split: Optional[int] = None


def make_forward(q: Any, k: Any, v: Any, sequences: Sequences, window: Window, how: How) -> Forward:
    """q (T, H, D), k (N, Hkv, D), v (N, Hkv, Dv)."""
    slopes = how.slopes
    bounds = make_bounds(q.shape[0], k.shape[0], sequences, window, slopes is not None)
    if slopes is not None and slopes.dim() == 2:
        # Rows in no sequence have any.
        places = (bounds.sequence - 1).clamp(0, slopes.shape[0] - 1)
        slopes = slopes.index_select(0, places)
    return Forward(
        q,
        k,
        v,
        bounds.first,
        bounds.last,
        bounds.position,
        slopes,
        how.sink,
        how.seed,
        how.scale,
        how.softcap,
        how.dropout_p,
        how.deterministic,
    )
