"""memory_efficient_attention of xFormers, with its classes of biases:

    from attn.integrations.xformers import memory_efficient_attention

Tensors are (B, S, H, D), or (B, S, D). They may be on the CPU. Biases are the objects of
`xformers.ops.fmha.attn_bias`, or of the package mslk, where newer versions of xFormers have them;
neither need be installed. Biases and parameters that attn does not serve are refused by name.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import torch

import attn

from .._library import refuse
from ._tables import add_table

__all__ = ["memory_efficient_attention"]

Bias = Any
# What `attn.attention` is given for a bias: causal, window, score and mask.
How = Dict[str, Any]


class _Blocks(NamedTuple):
    """Rows and keys of blocks, which are documents: in which one each stands, and where in it."""

    document_q: torch.Tensor
    document_k: torch.Tensor
    place_q: torch.Tensor
    place_k: torch.Tensor
    # Rows minus keys of the block of a row, for who counts from its end.
    ahead: torch.Tensor
    # Which keys hold something; None where all do.
    is_used: Optional[torch.Tensor]


def _find_blocks(bias: Bias, device: torch.device) -> _Blocks:
    """Of starts that are on any device. Nothing waits for what they hold."""
    q, k = bias.q_seqinfo, bias.k_seqinfo
    starts_q, starts_k = (x.seqstart.to(device).long() for x in (q, k))
    rows, keys = (torch.arange(x.seqstart_py[-1], device=device) for x in (q, k))
    of_q, of_k = (
        torch.bucketize(x, starts[1:], right=True)
        for x, starts in ((rows, starts_q), (keys, starts_k))
    )
    lengths_q, lengths_k = starts_q.diff(), starts_k.diff()
    is_used = None
    if hasattr(k, "seqlen"):
        lengths_k = k.seqlen.to(device).long()
        is_used = keys - starts_k[of_k] < lengths_k[of_k]
    place_q, place_k = rows - starts_q[of_q], keys - starts_k[of_k]
    ahead = (lengths_k - lengths_q)[of_q]
    return _Blocks(of_q.int(), of_k.int(), place_q.int(), place_k.int(), ahead.int(), is_used)


def _keep_blocks(
    bias: Bias, device: torch.device, from_end: bool, left: Optional[int], right: Optional[int]
) -> How:
    """Keys of the row's own block, from `left` before it to `right` after it; None is no bound."""
    blocks = _find_blocks(bias, device)
    document_q, document_k = (attn.assume_sorted(x) for x in blocks[:2])
    place_q = blocks.place_q + blocks.ahead if from_end else blocks.place_q
    place_k, is_used = blocks.place_k, blocks.is_used

    def mask(b: Any, h: Any, i: Any, j: Any) -> Any:
        keep = document_q[i] == document_k[j]
        if left is not None:
            keep = keep & (place_k[j] >= place_q[i] - left)
        if right is not None:
            keep = keep & (place_k[j] <= place_q[i] + right)
        return keep if is_used is None else keep & is_used[j]

    return {"mask": mask}


def _add_bias(bias: torch.Tensor) -> How:
    return {"score": add_table(bias[(None,) * (4 - bias.dim())])}


def _keep_window(bias: Bias) -> How:
    return {"window": (bias.window_left, bias.window_right)}


# By class: what `attn.attention` is given. Subclasses are classes of their own: what they change is unknown.
_BIASES: Dict[str, Callable[[Bias, torch.device], How]] = {
    "LowerTriangularMask": lambda x, at: {"causal": "top_left"},
    "LowerTriangularFromBottomRightMask": lambda x, at: {"causal": True},
    "LowerTriangularFromBottomRightLocalAttentionMask": lambda x, at: {
        "causal": True,
        "window": (x._window_size - 1, 0),
    },
    "LowerTriangularMaskWithTensorBias": lambda x, at: {"causal": "top_left", **_add_bias(x._bias)},
    "LocalAttentionFromBottomRightMask": lambda x, at: _keep_window(x),
    "BlockDiagonalMask": lambda x, at: _keep_blocks(x, at, False, None, None),
    "BlockDiagonalCausalMask": lambda x, at: _keep_blocks(x, at, False, None, 0),
    "BlockDiagonalCausalFromBottomRightMask": lambda x, at: _keep_blocks(x, at, True, None, 0),
    "BlockDiagonalCausalLocalAttentionMask": lambda x, at: _keep_blocks(
        x, at, False, x._window_size - 1, 0
    ),
    "BlockDiagonalCausalLocalAttentionFromBottomRightMask": lambda x, at: _keep_blocks(
        x, at, True, x._window_size - 1, 0
    ),
    "BlockDiagonalPaddedKeysMask": lambda x, at: _keep_blocks(x, at, False, None, None),
    "BlockDiagonalCausalWithOffsetPaddedKeysMask": lambda x, at: _keep_blocks(x, at, True, None, 0),
    "BlockDiagonalLocalAttentionPaddedKeysMask": lambda x, at: _keep_blocks(
        x, at, True, x.window_left, x.window_right
    ),
    "BlockDiagonalCausalLocalAttentionPaddedKeysMask": lambda x, at: _keep_blocks(
        x, at, True, x._window_size - 1, 0
    ),
}
_HINTS = {
    "Paged": "use attn.serving.paged_attention, whose page_table is block_tables",
    "Gappy": "use flash_attn_varlen_func with seqused_k",
}


def _find_how(bias: Bias, q: torch.Tensor, whole: Tuple[int, ...]) -> How:
    if bias is None:
        return {}
    name = type(bias).__name__
    if isinstance(bias, torch.Tensor):
        try:
            fits = torch.broadcast_shapes(bias.shape, whole) == torch.Size(whole)
        except RuntimeError:
            fits = False
        if not fits or bias.dim() > 4:
            refuse("attn_bias", f"a shape that broadcasts to {whole}", tuple(bias.shape))
        return _add_bias(bias)
    if name not in _BIASES:
        hint = next(
            (text for part, text in _HINTS.items() if part in name), "give what it keeps by mask="
        )
        refuse("attn_bias", f"a tensor, or one of {', '.join(_BIASES)}", f"a {name}", hint)
    if hasattr(bias, "q_seqinfo"):
        lengths = bias.q_seqinfo.seqstart_py[-1], bias.k_seqinfo.seqstart_py[-1]
        if (whole[0], *whole[2:]) != (1, *lengths):
            expected = f"one batch of {lengths[0]} rows and {lengths[1]} keys, as the bias says"
            refuse("query and key", expected, f"{whole[0]} of {whole[2]} and {whole[3]}")
    return _BIASES[name](bias, q.device)


def memory_efficient_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_bias: Bias = None,
    p: float = 0.0,
    scale: Optional[float] = None,
    *,
    op: Any = None,
    output_dtype: Optional[torch.dtype] = None,
) -> torch.Tensor:
    """xformers.ops.memory_efficient_attention: the same arguments, shapes and results.

    Args:
        query: (B, M, H, D), or (B, M, D) of one head.
        key, value: (B, N, Hkv, D) and (B, N, Hkv, Dv), or (B, N, D). Hkv divides H; xFormers wants as
            many heads.
        attn_bias: None, a tensor that broadcasts to (B, H, M, N), which is read as it is, or a bias of
            xFormers: triangular, local, block-diagonal, and block-diagonal with padded keys.
        p: the probability of dropout.
        scale: 1 / sqrt(D) if None.

    Returns:
        (B, M, H, Dv), or (B, M, Dv). A row that keeps no key gives 0; xFormers leaves it open.

    Raises:
        Error: a bias in pages or with gaps, `op`, and `output_dtype` other than that of the query;
            grouped tensors of 5 dimensions; shapes that do not fit.
    """
    if op is not None:
        refuse("op", "None", repr(op), "kernels are attn's own")
    if output_dtype not in (None, query.dtype):
        refuse("output_dtype", str(query.dtype), output_dtype, "convert the output")
    is_flat = query.dim() == 3
    if query.dim() not in (3, 4):
        hint = "give heads of key and value once: (B, N, Hkv, D)"
        refuse("query", "3 or 4 dimensions", f"shape {tuple(query.shape)}", hint)
    q, k, v = (x[:, :, None] if is_flat else x for x in (query, key, value))
    how = _find_how(attn_bias, q, (q.shape[0], q.shape[2], q.shape[1], k.shape[1]))
    output = attn.attention(q, k, v, scale=scale, dropout_p=p, layout="bshd", **how)
    return output[:, :, 0] if is_flat else output
