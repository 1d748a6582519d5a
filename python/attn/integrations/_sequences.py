"""Sequences of any lengths, one after the other, on one of two ways: as views of them (attn::varlen), or as documents of
one long sequence (attn::attend_rows). Both have gradients, and both leave lengths on the device."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch

from .. import _varlen_operator
from .._varlen import Varlen
from ._arguments import Window
from ._bounds import Sequences
from ._record_rows import attend_rows
from ._rows_schema import How, make_forward

# Whether calls take views where these serve them, by the device and by whether autograd records them: on a CPU
# gradients of documents are faster more often (bench/NOTES.md).
TAKES_VIEWS = {
    ("cpu", False): True,
    ("cpu", True): False,
    ("cuda", False): True,
    ("cuda", True): True,
}
# On a GPU a view has blocks for the longest sequence in each of them. Views are 0.97 to 1.5 times as fast as documents
# where that is up to two rows for each that is there, and half as fast with 30 (bench/NOTES.md).
MOST_ROWS_FOR_ONE = 4


def _are_alike(q: Any, sequences: Sequences, most: Tuple[Any, Any]) -> bool:
    """Whether the longest sequence is known to be not much longer than others."""
    if not all(isinstance(x, int) for x in most):
        return False
    return (sequences.cu_q.shape[0] - 1) * most[0] <= MOST_ROWS_FOR_ONE * q.shape[0]


def _are_served(
    tensors: Tuple[Any, Any, Any], sequences: Sequences, how: How, most: Tuple[Any, Any]
) -> bool:
    """Views have neither gradients of sinks nor dropout, and sequences end where the next one begins."""
    is_recorded = torch.is_grad_enabled() and any(
        x is not None and x.requires_grad for x in (*tensors, how.sink)
    )
    q, k, _ = tensors
    if not TAKES_VIEWS.get((q.device.type, is_recorded), False):
        return False
    if sequences.used_q is not None or sequences.used_k is not None or how.dropout_p:
        return False
    if not q.shape[0] or not k.shape[0]:
        return False
    if q.device.type != "cpu" and not _are_alike(q, sequences, most):
        return False
    return how.sink is None or not (torch.is_grad_enabled() and how.sink.requires_grad)


def attend_sequences(
    q: Any,
    k: Any,
    v: Any,
    sequences: Sequences,
    window: Window,
    how: How,
    most: Tuple[Optional[int], Optional[int]],
    return_lse: bool = True,
) -> Tuple[Any, Any]:
    """(output, lse) of (T, H, Dv) and (H, T), the latter None if nobody wants it; gradients of q, k and v, and of the sink. Rows in no sequence give 0
    and -inf, or the sink. `most` is how many rows and keys a sequence has at most, as far as the caller says."""
    if not _are_served((q, k, v), sequences, how, most):
        return attend_rows(make_forward(q, k, v, sequences, window, how))
    # On a CPU nothing depends on them, so that wrong ones do no harm.
    most = (q.shape[0], k.shape[0]) if q.device.type == "cpu" else most
    left, right = window
    sink = None if how.sink is None else how.sink.float()
    call = Varlen(
        *(x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v)),
        sequences.cu_q,
        sequences.cu_k,
        how.slopes,
        sink,
        *most,  # type: ignore[arg-type]
        how.scale,
        right == 0,
        -1 if left is None else left,
        -1 if right is None or right == 0 else right,
        how.softcap,
    )
    if not return_lse:
        return _varlen_operator.attend(call, False), None
    output, lse = _varlen_operator.attend(call, True)
    if sink is not None:
        lse = torch.where(lse == -torch.inf, sink, lse)
    return output, lse.T.contiguous()
