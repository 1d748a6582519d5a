"""flash_attn_varlen_func: sequences of any lengths that lie one after the other, without padding between
them. The lengths stay on the device; nothing waits for them."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch

from .._library import refuse
from .._problem import check_dropout
from .._seed import make_seed, make_traced_seed
from ._arguments import (
    TYPES,
    check_floats,
    check_integers,
    check_matrices,
    check_softcap,
    check_tensor,
    read_window,
    refuse_others,
)
from ._bounds import Sequences
from ._pages import attend_table, check_most, check_table
from ._rows_schema import How
from ._sequences import attend_sequences


def _make_seed(dropout_p: Any, q: Any) -> Tuple[float, Any]:
    if torch.compiler.is_dynamo_compiling():
        return make_traced_seed(dropout_p, None, q) if dropout_p else (0.0, None)
    dropout = check_dropout(dropout_p) if dropout_p != 0 else 0.0
    return dropout, make_seed(None, q, q.get_device()) if dropout else None


def _cast(x: torch.Tensor) -> torch.Tensor:
    """As attn.attention does under torch.autocast."""
    device = x.device.type
    is_known = device in ("cpu", "cuda") and x.dtype in TYPES
    if not is_known or not torch.is_autocast_enabled(device):
        return x
    return x.to(torch.get_autocast_dtype(device))


def _check_sequences(sequences: Sequences, q: Any, is_paged: bool) -> None:
    cu_q, cu_k, used_q, used_k = sequences
    check_integers("cu_seqlens_q", cu_q, q)
    if cu_k is not None or used_k is None or not is_paged:
        check_integers("cu_seqlens_k", cu_k, q, cu_q.shape[0])
    for name, x in (("seqused_q", used_q), ("seqused_k", used_k)):
        if x is not None:
            check_integers(name, x, q, cu_q.shape[0] - 1)


def check_slopes(slopes: Any, q: Any, num_sequences: int) -> None:
    heads = q.shape[-2]
    check_floats("alibi_slopes", slopes, q, (heads,), (num_sequences, heads))
    if slopes is not None and slopes.requires_grad and torch.is_grad_enabled():
        hint = "detach() it; attn.attention(..., score=) has gradients of what it captures"
        refuse("alibi_slopes", "a tensor without gradient", "one that requires it", hint)


def give(output: Any, lse: Any, return_lse: bool, return_attn_probs: bool) -> Any:
    """As there: with return_attn_probs also lse and the weights that dropout kept, of which there are none
    without dropout."""
    if return_attn_probs:
        return output, lse, None
    return (output, lse) if return_lse else output


def refuse_weights(return_attn_probs: bool, dropout_p: Any) -> None:
    if return_attn_probs and dropout_p:
        refuse("return_attn_probs", "False with dropout", True, "the weights are never stored")


def _refuse_training(tensors: Tuple, dropout_p: float) -> None:
    if dropout_p:
        refuse("dropout_p", "0 with pages", dropout_p)
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors):
        got = "tensors that require gradients"
        refuse("block_table", "None in training", got, "call it under torch.no_grad()")


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: Optional[torch.Tensor],
    max_seqlen_q: Optional[int] = None,
    max_seqlen_k: Optional[int] = None,
    dropout_p: float = 0.0,
    softmax_scale: Optional[float] = None,
    causal: bool = False,
    window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Optional[torch.Tensor] = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: Optional[torch.Tensor] = None,
    *,
    seqused_q: Optional[torch.Tensor] = None,
    seqused_k: Optional[torch.Tensor] = None,
    learnable_sink: Optional[torch.Tensor] = None,
    return_lse: bool = False,
    qv: Optional[torch.Tensor] = None,
    q_descale: Optional[torch.Tensor] = None,
    k_descale: Optional[torch.Tensor] = None,
    v_descale: Optional[torch.Tensor] = None,
    attention_chunk: int = 0,
    num_splits: int = 1,
    pack_gqa: Optional[bool] = None,
    sm_margin: int = 0,
) -> Any:
    """q (T, H, D), k (N, Hkv, D), v (N, Hkv, Dv); returns (T, H, Dv), and with return_lse also (H, T),
    natural logarithms. With return_attn_probs it returns (output, lse, None).

    Sequence s has the rows from cu_seqlens_q[s] to cu_seqlens_q[s + 1], and keys likewise; both are int32
    on the device of q, and are never read on the host. seqused_q and seqused_k say how many of
    them count, from the first one on. `causal` and `window_size` count from the last row and the last
    key of each sequence. Rows in no sequence give 0 and -inf. They and their keys may hold anything,
    and their gradients are 0.

    Gradients follow for q, k, v and learnable_sink. max_seqlen_q, max_seqlen_k, num_splits, pack_gqa and
    sm_margin choose kernels there and nothing here.

    With block_table, int32 (B, C), k and v are pools of pages, (Np, P, Hkv, D) and (Np, P, Hkv, Dv): key n
    of sequence s is row n % P of page block_table[s, n // P]. There are seqused_k of them; without
    it, as many as cu_seqlens_k says. With it, cu_seqlens_k may be None. Such calls have no gradients and no dropout,
    max_seqlen_q says how many rows a sequence has at most, and a graph of torch.compile ends at them.

    Raises:
        Error: an argument that does not fit, or one that attn does not serve: qv, the descales,
            attention_chunk, return_attn_probs with dropout, and gradients or dropout with pages.
    """
    refuse_others(
        dict(
            qv=qv,
            q_descale=q_descale,
            k_descale=k_descale,
            v_descale=v_descale,
            attention_chunk=attention_chunk,
        )
    )
    refuse_weights(return_attn_probs, dropout_p)
    check_tensor("q", q, "T, H, D")
    for name, x in (("k", k), ("v", v)):
        check_tensor(name, x, "T, H, D" if block_table is None else "Np, P, Hkv, D")
    q, k, v = (_cast(x) for x in (q, k, v))
    check_matrices(("q", "k", "v"), q, k, v)
    sequences = Sequences(cu_seqlens_q, cu_seqlens_k, seqused_q, seqused_k)
    _check_sequences(sequences, q, is_paged=block_table is not None)
    check_slopes(alibi_slopes, q, cu_seqlens_q.shape[0] - 1)
    check_floats("learnable_sink", learnable_sink, q, (q.shape[1],))
    softcap = check_softcap(softcap)
    window = read_window(window_size, causal)
    if block_table is not None:
        check_most(max_seqlen_q)
        check_table("block_table", block_table, q, cu_seqlens_q.shape[0] - 1)
        _refuse_training((q, k, v, learnable_sink), dropout_p)
        how = How(softmax_scale, softcap, alibi_slopes, learnable_sink)
        found = attend_table(q, k, v, sequences, block_table, max_seqlen_q, window, how)
        return give(*found, return_lse, return_attn_probs)
    dropout, seed = _make_seed(dropout_p, q)
    how = How(softmax_scale, softcap, alibi_slopes, learnable_sink, dropout, seed, deterministic)
    most = max_seqlen_q, max_seqlen_k
    wants_lse = return_lse or return_attn_probs
    output, lse = attend_sequences(q, k, v, sequences, window, how, most, wants_lse)
    return give(output, lse, return_lse, return_attn_probs)


def flash_attn_varlen_kvpacked_func(
    q: torch.Tensor, kv: torch.Tensor, *arguments: Any, **options: Any
) -> Any:
    """As flash_attn_varlen_func; kv is (N, 2, Hkv, D)."""
    check_packed("kv", kv, 2)
    return flash_attn_varlen_func(q, *kv.unbind(1), *arguments, **options)


def flash_attn_varlen_qkvpacked_func(
    qkv: torch.Tensor,
    cu_seqlens: torch.Tensor,
    max_seqlen: Optional[int] = None,
    *arguments: Any,
    **options: Any,
) -> Any:
    """As flash_attn_varlen_func; qkv is (T, 3, H, D), and rows and keys have the same offsets."""
    check_packed("qkv", qkv, 3)
    check_integers("cu_seqlens", cu_seqlens, qkv)
    lengths = cu_seqlens, cu_seqlens, max_seqlen, max_seqlen
    return flash_attn_varlen_func(*qkv.unbind(1), *lengths, *arguments, **options)


def check_packed(name: str, x: torch.Tensor, count: int) -> None:
    if not isinstance(x, torch.Tensor) or x.dim() != 4 or x.shape[1] != count:
        got = f"shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else type(x).__name__
        refuse(name, f"(T, {count}, H, D)", got)
