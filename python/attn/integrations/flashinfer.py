"""The functions and wrappers of the package flashinfer, by their names and parameters:

    from attn.integrations import flashinfer
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD")
    wrapper.plan(indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size)
    output = wrapper.run(q, (k_cache, v_cache))

As there, plan() reads offsets on the host and run() reads nothing; logarithms are to base 2; there are no
gradients. A row that keeps no key gives 0 and -inf. Tensors may be on the CPU. Workspaces, backends and
enable_pdl choose kernels there, and nothing here. Parameters that attn does not serve are refused by name.
"""

from __future__ import annotations

from typing import Any, Optional

import torch

import attn

from .._library import refuse
from .._serving_how import check_layout
from ._flashinfer_cascade import (
    MultiLevelCascadeAttentionWrapper,
    merge_state,
    merge_state_in_place,
    merge_states,
)
from ._flashinfer_decode import BatchDecodeWithPagedKVCacheWrapper
from ._flashinfer_how import (
    give,
    make_functions,
    read_bits,
    read_how,
    read_scales,
    refuse_given,
)
from ._flashinfer_pages import append_paged_kv_cache, get_batch_indices_positions, get_seq_lens
from ._flashinfer_prefill import (
    BatchPrefillWithPagedKVCacheWrapper,
    BatchPrefillWithRaggedKVCacheWrapper,
)
from ._flashinfer_rope import rotate_single

__all__ = [
    "BatchDecodeWithPagedKVCacheWrapper",
    "BatchPrefillWithPagedKVCacheWrapper",
    "BatchPrefillWithRaggedKVCacheWrapper",
    "MultiLevelCascadeAttentionWrapper",
    "append_paged_kv_cache",
    "get_batch_indices_positions",
    "get_seq_lens",
    "merge_state",
    "merge_state_in_place",
    "merge_states",
    "single_decode_with_kv_cache",
    "single_prefill_with_kv_cache",
]


def single_decode_with_kv_cache(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    kv_layout: str = "NHD",
    pos_encoding_mode: str = "NONE",
    use_tensor_cores: bool = False,
    q_scale: Optional[float] = None,
    k_scale: Optional[float] = None,
    v_scale: Optional[float] = None,
    window_left: int = -1,
    logits_soft_cap: Optional[float] = None,
    sm_scale: Optional[float] = None,
    rope_scale: Optional[float] = None,
    rope_theta: Optional[float] = None,
    return_lse: bool = False,
) -> Any:
    """One row q (H, D) against keys (N, Hkv, D): the output (H, Dv), and lse (H,)."""
    if not isinstance(q, torch.Tensor) or q.dim() != 2:
        refuse("q", "a tensor (H, D)", getattr(q, "shape", type(q).__name__))
    found = single_prefill_with_kv_cache(
        q[None],
        k,
        v,
        kv_layout=kv_layout,
        pos_encoding_mode=pos_encoding_mode,
        sm_scale=sm_scale,
        window_left=window_left,
        logits_soft_cap=logits_soft_cap,
        rope_scale=rope_scale,
        rope_theta=rope_theta,
        return_lse=True,
        q_scale=q_scale,
        k_scale=k_scale,
        v_scale=v_scale,
    )
    output, lse = (x[0] for x in found)
    return (output, lse) if return_lse else output


def single_prefill_with_kv_cache(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scale_q: Optional[torch.Tensor] = None,
    scale_k: Optional[torch.Tensor] = None,
    scale_v: Optional[torch.Tensor] = None,
    o_dtype: Optional[torch.dtype] = None,
    custom_mask: Optional[torch.Tensor] = None,
    packed_custom_mask: Optional[torch.Tensor] = None,
    causal: bool = False,
    kv_layout: str = "NHD",
    pos_encoding_mode: str = "NONE",
    use_fp16_qk_reduction: bool = False,
    sm_scale: Optional[float] = None,
    window_left: int = -1,
    logits_soft_cap: Optional[float] = None,
    rope_scale: Optional[float] = None,
    rope_theta: Optional[float] = None,
    backend: str = "auto",
    return_lse: bool = False,
    kv_cache_sf: Any = None,
    k_scale: Optional[float] = None,
    v_scale: Optional[float] = None,
    *,
    q_scale: Optional[float] = None,
) -> Any:
    """Rows q (M, H, D) against keys (N, Hkv, D), or heads first with "HND": the output (M, H, Dv), and lse
    (M, H). custom_mask is (M, N)."""
    refuse_given(scale_q=scale_q, scale_k=scale_k, scale_v=scale_v, kv_cache_sf=kv_cache_sf)
    if not check_layout(kv_layout):
        k, v = k.transpose(0, 1), v.transpose(0, 1)
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, torch.Tensor) or x.dim() != 3:
            refuse(name, "a tensor of 3 dimensions", getattr(x, "shape", type(x).__name__))
    if o_dtype not in (None, q.dtype):
        refuse("o_dtype", f"that of q, {q.dtype}", o_dtype)
    is_masked = custom_mask is not None or packed_custom_mask is not None
    position = pos_encoding_mode, rope_scale, rope_theta
    how = position, sm_scale, window_left, logits_soft_cap
    shape = q.shape[1], q.shape[2], q.device
    asked = read_how(shape, bool(causal) and not is_masked, *how)
    asked, factor = read_scales(asked, q_scale, k_scale, v_scale)
    rows, keys = (torch.tensor([x.shape[0]], device=q.device) for x in (q, k))
    bits = read_bits(custom_mask, packed_custom_mask, (rows, keys), q.device)
    if asked.rope is not None:
        q, k = rotate_single(q, k, asked.rope)
    functions = make_functions(asked.slopes, bits, keys)
    score, cap = functions.score, asked.softcap
    if cap:
        score = lambda s, b, h, q, kv: cap * attn.tanh(s / cap)  # noqa: E731
    with torch.no_grad():
        output, lse = attn.attention(
            q[None],
            k[None],
            v[None],
            scale=asked.scale,
            causal=asked.causal,
            window=None if asked.left is None else asked.window,
            score=score,
            mask=functions.mask,
            layout="bshd",
            return_lse=True,
        )
        return give(output[0], lse[0].T, factor, (None, None), return_lse)
