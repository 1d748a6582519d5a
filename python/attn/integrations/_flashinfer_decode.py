"""FlashInfer's wrapper for decoding."""

from __future__ import annotations

import functools
from typing import Any, List, Optional, Union

import torch

from .._library import refuse
from ._flashinfer_how import (
    check_query,
    give,
    make_functions,
    read_fixed_split,
    read_how,
    read_scales,
    read_types,
    refuse_given,
)
from ._flashinfer_pages import Table, check_indices, split_cache
from ._flashinfer_rope import rotate_pages, rotate_query
from ._flashinfer_wrapper import Wrapper, check_buffers, fill_buffers
from ._pages import Pages, attend_pages
from ._rows_schema import How


class BatchDecodeWithPagedKVCacheWrapper(Wrapper):
    """Rows of sequences, as many of each, against keys in pages."""

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        use_tensor_cores: bool = False,
        paged_kv_indptr_buffer: Optional[torch.Tensor] = None,
        paged_kv_indices_buffer: Optional[torch.Tensor] = None,
        paged_kv_last_page_len_buffer: Optional[torch.Tensor] = None,
        backend: str = "auto",
        jit_args: Optional[List[Any]] = None,
    ) -> None:
        super().__init__(float_workspace_buffer, kv_layout, use_cuda_graph, jit_args)
        self.use_tensor_cores = use_tensor_cores
        buffers = paged_kv_indptr_buffer, paged_kv_indices_buffer, paged_kv_last_page_len_buffer
        if use_cuda_graph:
            check_buffers(
                paged_kv_indptr_buffer=buffers[0],
                paged_kv_indices_buffer=buffers[1],
                paged_kv_last_page_len_buffer=buffers[2],
            )
        self._buffers, self._table = buffers, Table(self._is_fixed)

    def plan(
        self,
        indptr: torch.Tensor,
        indices: torch.Tensor,
        last_page_len: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
        pos_encoding_mode: str = "NONE",
        window_left: int = -1,
        logits_soft_cap: Optional[float] = None,
        q_data_type: Union[str, torch.dtype, None] = "float16",
        kv_data_type: Union[str, torch.dtype, None] = None,
        o_data_type: Union[str, torch.dtype, None] = None,
        data_type: Union[str, torch.dtype, None] = None,
        sm_scale: Optional[float] = None,
        rope_scale: Optional[float] = None,
        rope_theta: Optional[float] = None,
        non_blocking: bool = True,
        block_tables: Optional[torch.Tensor] = None,
        seq_lens: Optional[torch.Tensor] = None,
        fixed_split_size: Optional[int] = None,
        disable_split_kv: bool = False,
        q_len_per_req: int = 1,
        *,
        window_right: int = 0,
    ) -> None:
        """As there. "ROPE_LLAMA" copies keys and values in each call. block_tables and seq_lens repeat what
        the offsets say; sums have one order for each shape, with disable_split_kv or without. With
        fixed_split_size, pages of a part, bits do not depend on the batch, in graphs too."""
        self._fixed_split = read_fixed_split(fixed_split_size, page_size)
        if window_right != 0:
            refuse("window_right", "0", window_right)
        if isinstance(q_len_per_req, bool) or not isinstance(q_len_per_req, int) or q_len_per_req < 1:
            refuse("q_len_per_req", "1 or more", repr(q_len_per_req))
        q_type = q_data_type if data_type is None else (q_data_type or data_type)
        self._dtype = read_types(q_type, kv_data_type or data_type, o_data_type)
        shape = num_qo_heads, head_dim, self.device
        position = pos_encoding_mode, rope_scale, rope_theta
        how = position, sm_scale, window_left, logits_soft_cap
        self._asked = read_how(shape, True, *how)
        self._shape = num_qo_heads, num_kv_heads, head_dim, page_size
        self._rows = q_len_per_req
        given = indptr, indices, last_page_len
        for name, buffer, x in zip(("indptr", "indices", "last_page_len"), self._buffers, given):
            check_indices(name, x)
            fill_buffers((name, buffer, x))
        most = self._buffers[1].shape[0] if self._is_fixed else 0
        self._table.update(*given, page_size, most, self.device)
        self.plan_rotary(self._asked.rope, self._table.pages.shape[1] * page_size, head_dim)

    begin_forward = plan

    def run(
        self,
        q: torch.Tensor,
        paged_kv_cache: Any,
        *args: Any,
        q_scale: Optional[float] = None,
        k_scale: Optional[float] = None,
        v_scale: Optional[float] = None,
        out: Optional[torch.Tensor] = None,
        lse: Optional[torch.Tensor] = None,
        return_lse: bool = False,
        enable_pdl: Optional[bool] = None,
        window_left: Optional[int] = None,
        sinks: Optional[torch.Tensor] = None,
        q_len_per_req: Optional[int] = None,
        skip_softmax_threshold_scale_factor: Optional[float] = None,
        kv_cache_sf: Any = None,
    ) -> Any:
        """q (B * q_len_per_req, H, D): the output in its shape with Dv columns, and lse (.., H)."""
        refuse_given(kv_cache_sf=kv_cache_sf, args=args or None)
        refuse_given(skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor)
        asked = self.get_asked(window_left)
        if window_left is not None and asked != self._asked:
            refuse("window_left", "that of plan()", window_left)
        if q_len_per_req not in (None, self._rows):
            refuse("q_len_per_req", f"that of plan(), {self._rows}", q_len_per_req)
        heads, kv_heads, columns, page = self._shape
        check_query(q, (self._table.pages.shape[0] * self._rows, heads, columns), self._dtype)
        pools = split_cache(paged_kv_cache, self._kv_layout)
        self.check_cache(pools, kv_heads, columns, page)
        asked, factor = read_scales(asked, q_scale, k_scale, v_scale)
        with torch.no_grad():
            lengths = self._table.lengths
            pages = Pages(*pools, self._table.pages, lengths)
            if self._rotary is not None:
                count = lengths.shape[0]
                offsets = torch.arange(count + 1, device=q.device) * self._rows
                q = rotate_query(q, offsets, lengths, self._rotary)
                pages = rotate_pages(pages, self._rotary)
            rows = q.view(-1, self._rows, heads, columns)
            shift = None if asked.slopes is None else torch.zeros_like(lengths)
            functions = make_functions(asked.slopes, None, lengths, shift)
            how = How(asked.scale, asked.softcap, None, sinks, fixed_split=self._fixed_split)
            output, found = attend_pages(rows, pages, asked.window, how, functions)
            output, found = output.flatten(0, 1), found.transpose(1, 2).flatten(0, 1)
            return give(output, found, factor, (out, lse), return_lse)

    run_return_lse = functools.partialmethod(run, return_lse=True)
