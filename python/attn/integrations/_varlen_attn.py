"""torch.nn.attention.varlen.varlen_attn on attn."""

from __future__ import annotations

import importlib
from typing import Any, Optional, Tuple

import torch

from .._library import refuse
from ._arguments import read_window
from ._bounds import Sequences
from ._counts import count, fallbacks, served
from ._pages import attend_table, find_pages_reason
from ._reasons import NO_SEQUENCE, SAME_BITS, find_tensor_reason
from ._rows_schema import SAME_BITS_SPLIT, How
from ._sequences import attend_sequences

try:
    _pytorch: Any = importlib.import_module("torch.nn.attention.varlen").varlen_attn
except ImportError:
    _pytorch = None


def _fits(x: Any, like: Any, size: Optional[int] = None) -> bool:
    """Offsets or lengths that PyTorch takes too."""
    is_integers = isinstance(x, torch.Tensor) and x.dtype == torch.int32 and x.dim() == 1
    if not is_integers or x.device != like.device:
        return False
    return x.shape[0] > 0 if size is None else x.shape[0] == size


def _find_reason(
    q: Any, k: Any, v: Any, sequences: Sequences, table: Any, enable_gqa: bool, splits: Any
) -> str:
    reason = find_tensor_reason(q, k, v)
    if reason:
        return reason
    if splits == 1 and table is None:
        return SAME_BITS
    if table is None:
        return _find_piece_reason(q, k, v, sequences, enable_gqa)
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return "a block_table with gradients"
    reason = find_pages_reason(q, k, v, sequences.cu_q, sequences.used_k, table)
    if not reason and q.shape[1] != k.shape[2] and not enable_gqa:
        reason = "heads that do not fit"
    return reason


def _find_piece_reason(q: Any, k: Any, v: Any, sequences: Sequences, enable_gqa: bool) -> str:
    """Of keys that lie in one piece."""
    cu_q, cu_k, _, used = sequences
    if cu_k is None or not q.dim() == k.dim() == v.dim() == 3:
        return NO_SEQUENCE
    if (
        k.shape[:2] != v.shape[:2]
        or q.shape[2] != k.shape[2]
        or 0 in q.shape[1:]
        or 0 in v.shape[1:]
    ):
        return "shapes that do not fit"
    if k.shape[1] == 0 or q.shape[1] % k.shape[1] or (q.shape[1] != k.shape[1] and not enable_gqa):
        return "heads that do not fit"
    if not _fits(cu_q, q) or not _fits(cu_k, q, cu_q.shape[0]):
        return "offsets that are not int32 of shape (N + 1,)"
    if used is None:
        return ""
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return "seqused_k with gradients"
    return (
        "" if _fits(used, q, cu_q.shape[0] - 1) else "a seqused_k that is not int32 of shape (N,)"
    )


def varlen_attn(
    query: Any,
    key: Any,
    value: Any,
    cu_seq_q: Any,
    cu_seq_k: Any,
    max_q: int,
    max_k: int,
    *,
    return_aux: Any = None,
    scale: Optional[float] = None,
    window_size: Tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Any = None,
    block_table: Any = None,
    num_splits: Optional[int] = None,
) -> Any:
    """torch.nn.attention.varlen.varlen_attn: the same arguments and results, on CPUs too. lse is (H, T),
    as there. Rows after the last sequence give 0 and -inf, and their gradients are 0.

    With block_table, key and value are pools of pages, as there; a graph of torch.compile ends at such a call.

    PyTorch answers the calls that attn does not serve (num_splits=1 without pages), and `fallbacks` says why.
    num_splits=1 with pages gives a row the same bits in every batch, by parts of 4096 keys.
    """
    tensors = query, key, value
    sequences = Sequences(cu_seq_q, cu_seq_k, used_k=seqused_k)
    reason = _find_reason(*tensors, sequences, block_table, enable_gqa, num_splits)
    if reason:
        count(fallbacks, reason)
        if _pytorch is None:
            refuse("varlen_attn", "a call that attn serves, or PyTorch 2.10", reason)
        # Older versions know fewer of them.
        how = dict(return_aux=return_aux, scale=scale, window_size=window_size, seqused_k=seqused_k)
        how.update(enable_gqa=enable_gqa, block_table=block_table, num_splits=num_splits)
        given = {name: x for name, x in how.items() if x is not None and x is not False}
        if tuple(window_size) == (-1, -1):
            del given["window_size"]
        return _pytorch(*tensors, cu_seq_q, cu_seq_k, max_q, max_k, **given)
    window = read_window(window_size, False)
    wants_lse = return_aux is not None and return_aux.lse
    if block_table is None:
        most = max_q, max_k
        output, lse = attend_sequences(*tensors, sequences, window, How(scale), most, wants_lse)
    else:
        how = window, How(scale, fixed_split=SAME_BITS_SPLIT if num_splits == 1 else None)
        output, lse = attend_table(*tensors, sequences, block_table, max_q, *how)
    count(served, "varlen_attn")
    return (output, lse) if wants_lse else output
