"""FlashInfer's merges of parts of the keys, and its cascade of several levels."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple, Union

import torch

import attn

from .._library import refuse
from ._flashinfer_how import LN2, LOG2E
from ._flashinfer_prefill import BatchPrefillWithPagedKVCacheWrapper
from ._flashinfer_wrapper import check_workspace


def merge_state(
    v_a: torch.Tensor, s_a: torch.Tensor, v_b: torch.Tensor, s_b: torch.Tensor
) -> Tuple[torch.Tensor, torch.Tensor]:
    """Attention to the keys of both parts. v (T, H, D); s (T, H) float32, to base 2."""
    output, lse = attn.merge([v_a, v_b], [s_a * LN2, s_b * LN2])
    return output, lse * LOG2E


def merge_state_in_place(
    v: torch.Tensor,
    s: torch.Tensor,
    v_other: torch.Tensor,
    s_other: torch.Tensor,
    mask: Optional[torch.Tensor] = None,
) -> None:
    """Writes `merge_state` of both into v and s; where mask (T,) is false, they stay."""
    output, lse = merge_state(v, s, v_other, s_other)
    if mask is not None:
        kept = mask.bool()
        output = torch.where(kept[:, None, None], output, v)
        lse = torch.where(kept[:, None], lse, s)
    v.copy_(output)
    s.copy_(lse)


def merge_states(v: torch.Tensor, s: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """Of parts that are a dimension: v (T, S, H, D) and s (T, S, H)."""
    output, lse = attn.merge(list(v.unbind(1)), list((s * LN2).unbind(1)))
    return output, lse * LOG2E


class MultiLevelCascadeAttentionWrapper:
    """Keys of several levels, each shared by more rows than those of the next: a prefix of all, then of some,
    then of each. Every level is a `BatchPrefillWithPagedKVCacheWrapper`, and `merge_states` joins them."""

    def __init__(
        self,
        num_levels: int,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        qo_indptr_buf_arr: Optional[List[torch.Tensor]] = None,
        paged_kv_indptr_buf_arr: Optional[List[torch.Tensor]] = None,
        paged_kv_indices_buf_arr: Optional[List[torch.Tensor]] = None,
        paged_kv_last_page_len_buf_arr: Optional[List[torch.Tensor]] = None,
        backend: str = "auto",
    ) -> None:
        buffers = qo_indptr_buf_arr, paged_kv_indptr_buf_arr
        buffers = *buffers, paged_kv_indices_buf_arr, paged_kv_last_page_len_buf_arr
        if isinstance(num_levels, bool) or not isinstance(num_levels, int) or num_levels < 1:
            refuse("num_levels", "a level or more", repr(num_levels))
        each = [[None] * num_levels if x is None else x for x in buffers]
        self._levels = [
            BatchPrefillWithPagedKVCacheWrapper(
                float_workspace_buffer, kv_layout, use_cuda_graph, *(x[i] for x in each)
            )
            for i in range(num_levels)
        ]

    @property
    def is_cuda_graph_enabled(self) -> bool:
        return self._levels[0].is_cuda_graph_enabled

    def reset_workspace_buffer(
        self, float_workspace_buffer: Any, int_workspace_buffers: Any
    ) -> None:
        """Without effect: no workspace is used."""
        check_workspace(float_workspace_buffer)

    def plan(
        self,
        qo_indptr_arr: List[torch.Tensor],
        paged_kv_indptr_arr: List[torch.Tensor],
        paged_kv_indices_arr: List[torch.Tensor],
        paged_kv_last_page_len: List[torch.Tensor],
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        sm_scale: Optional[float] = None,
        window_left: int = -1,
        logits_soft_cap: Optional[float] = None,
        rope_scale: Optional[float] = None,
        rope_theta: Optional[float] = None,
        q_data_type: Union[str, torch.dtype] = "float16",
        kv_data_type: Union[str, torch.dtype, None] = None,
    ) -> None:
        """As there: an array of each level. `causal` is of the last level alone. A window would count from the
        last key of each level there, and is refused."""
        if window_left != -1:
            hint = "attn.serving.cascade_attention counts windows from the last key of all"
            refuse("window_left", "-1", window_left, hint)
        arrays = dict(
            qo_indptr_arr=qo_indptr_arr,
            paged_kv_indptr_arr=paged_kv_indptr_arr,
            paged_kv_indices_arr=paged_kv_indices_arr,
            paged_kv_last_page_len=paged_kv_last_page_len,
        )
        for name, x in arrays.items():
            if len(x) != len(self._levels):
                refuse(name, f"{len(self._levels)} levels", len(x))
        for i, (level, *given) in enumerate(zip(self._levels, *arrays.values())):
            level.plan(
                *given,
                num_qo_heads,
                num_kv_heads,
                head_dim,
                page_size,
                causal=causal and i == len(self._levels) - 1,
                pos_encoding_mode=pos_encoding_mode,
                sm_scale=sm_scale,
                logits_soft_cap=logits_soft_cap,
                rope_scale=rope_scale,
                rope_theta=rope_theta,
                q_data_type=q_data_type,
                kv_data_type=kv_data_type,
            )

    begin_forward = plan

    def run(self, q: torch.Tensor, paged_kv_cache: Any) -> torch.Tensor:
        """q (T, H, D): the output (T, H, Dv)."""
        parts = [level.run(q, paged_kv_cache, return_lse=True) for level in self._levels]
        outputs, lses = zip(*parts)
        with torch.no_grad():
            return attn.merge(list(outputs), [x * LN2 for x in lses])[0]

    forward = run

    def end_forward(self) -> None:
        """Without effect, as there."""
