"""FlashInfer's wrappers for rows of any number, against keys in pages and in one piece."""

from __future__ import annotations

import functools
from typing import Any, List, Optional, Tuple, Union

import torch

from .. import serving
from .._library import refuse
from ._flashinfer_how import (
    Bits,
    check_query,
    give,
    make_functions,
    read_bits,
    read_fixed_split,
    read_how,
    read_scales,
    read_types,
    refuse_given,
)
from ._flashinfer_pages import Table, check_indices, split_cache
from ._flashinfer_rope import rotate_keys, rotate_pages, rotate_query
from ._flashinfer_wrapper import Wrapper, check_buffers, fill_buffers
from ._pages import Padding, Pages, attend_pages_ragged, make_padding
from ._rows_schema import How


class BatchPrefillWithPagedKVCacheWrapper(Wrapper):
    """Rows of sequences, of any number, against keys in pages."""

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        qo_indptr_buf: Optional[torch.Tensor] = None,
        paged_kv_indptr_buf: Optional[torch.Tensor] = None,
        paged_kv_indices_buf: Optional[torch.Tensor] = None,
        paged_kv_last_page_len_buf: Optional[torch.Tensor] = None,
        custom_mask_buf: Optional[torch.Tensor] = None,
        mask_indptr_buf: Optional[torch.Tensor] = None,
        backend: str = "auto",
        jit_args: Optional[List[Any]] = None,
        jit_kwargs: Any = None,
    ) -> None:
        super().__init__(float_workspace_buffer, kv_layout, use_cuda_graph, jit_args)
        refuse_given(jit_kwargs=jit_kwargs)
        buffers = paged_kv_indptr_buf, paged_kv_indices_buf, paged_kv_last_page_len_buf
        if use_cuda_graph:
            check_buffers(
                qo_indptr_buf=qo_indptr_buf,
                paged_kv_indptr_buf=buffers[0],
                paged_kv_indices_buf=buffers[1],
                paged_kv_last_page_len_buf=buffers[2],
            )
        self._buffers, self._table = (qo_indptr_buf, *buffers), Table(self._is_fixed)
        self._offsets: Any = None
        # Of a plan outside of graphs, and how many rows its offsets have.
        self._padding: Optional[Padding] = None
        self._total = 0

    def plan(
        self,
        qo_indptr: torch.Tensor,
        paged_kv_indptr: torch.Tensor,
        paged_kv_indices: torch.Tensor,
        paged_kv_last_page_len: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        page_size: int,
        head_dim_vo: Optional[int] = None,
        custom_mask: Optional[torch.Tensor] = None,
        packed_custom_mask: Optional[torch.Tensor] = None,
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
        o_data_type: Union[str, torch.dtype, None] = None,
        non_blocking: bool = True,
        prefix_len_ptr: Optional[torch.Tensor] = None,
        token_pos_in_items_ptr: Optional[torch.Tensor] = None,
        token_pos_in_items_len: int = 0,
        max_item_len_ptr: Optional[torch.Tensor] = None,
        seq_lens: Optional[torch.Tensor] = None,
        seq_lens_q: Optional[torch.Tensor] = None,
        block_tables: Optional[torch.Tensor] = None,
        max_token_per_sequence: Optional[int] = None,
        max_sequence_kv: Optional[int] = None,
        fixed_split_size: Optional[int] = None,
        disable_split_kv: bool = False,
    ) -> None:
        """As there. "ROPE_LLAMA" copies keys and values in each call. Products are summed in float32,
        use_fp16_qk_reduction or not. seq_lens, seq_lens_q, block_tables and max_sequence_kv repeat what the
        offsets say. In a graph, max_token_per_sequence is the most rows of a sequence in later plans; without
        it, that is the number of the first plan."""
        refuse_given(
            prefix_len_ptr=prefix_len_ptr,
            token_pos_in_items_ptr=token_pos_in_items_ptr,
            max_item_len_ptr=max_item_len_ptr,
        )
        self._fixed_split = read_fixed_split(fixed_split_size, page_size)
        self._dtype = read_types(q_data_type, kv_data_type, o_data_type)
        is_masked = custom_mask is not None or packed_custom_mask is not None
        shape = num_qo_heads, head_dim_qk, self.device
        position = pos_encoding_mode, rope_scale, rope_theta
        how = position, sm_scale, window_left, logits_soft_cap
        self._asked = read_how(shape, bool(causal) and not is_masked, *how)
        self._shape = num_qo_heads, num_kv_heads, head_dim_qk, page_size
        given = qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len
        names = "qo_indptr", "paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len"
        for name, x, buffer in zip(names, given, self._buffers):
            check_indices(name, x)
            fill_buffers((name, buffer, x))
        check_indices("paged_kv_indptr", paged_kv_indptr, qo_indptr.shape[0])
        most = self._buffers[2].shape[0] if self._is_fixed else 0
        self._table.update(*given[1:], page_size, most, self.device)
        self._plan_rows(qo_indptr, max_token_per_sequence)
        self.plan_rotary(self._asked.rope, self._table.pages.shape[1] * page_size, head_dim_qk)
        counts = (self._offsets[1:] - self._offsets[:-1]).long(), self._table.lengths.long()
        self._bits = read_bits(custom_mask, packed_custom_mask, counts, self.device)
        if self._bits is not None and self._is_fixed:
            refuse("custom_mask", "None with use_cuda_graph", "a mask")

    def _plan_rows(self, qo_indptr: Any, most: Optional[int]) -> None:
        # Before they are on a GPU, which would have to be waited for.
        rows = int((qo_indptr[1:] - qo_indptr[:-1]).max()) if qo_indptr.shape[0] > 1 else 0
        self._total = max(int(qo_indptr[-1]), 0) if qo_indptr.shape[0] else 0
        offsets = qo_indptr.to(self.device, torch.int32)
        if self._offsets is None or not self._is_fixed:
            self._offsets, self._most = offsets.clone(), max(rows, most or 0)
            if not self._is_fixed:
                self._padding = make_padding(self._total, self._offsets, None, self._most)
            return
        if rows > self._most:
            refuse("qo_indptr", f"{self._most} rows of a sequence at most, as the graph has", rows)
        self._offsets.copy_(offsets)

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
        kv_cache_sf: Any = None,
        skip_softmax_threshold_scale_factor: Optional[float] = None,
        use_fp16_softmax: Optional[bool] = None,
        uses_spcompress: Optional[bool] = None,
    ) -> Any:
        """q (T, H, D): the output (T, H, Dv), and lse (T, H). q is copied, a row for each that a sequence may
        have. use_fp16_softmax chooses kernels there, and nothing here."""
        refuse_given(kv_cache_sf=kv_cache_sf, args=args or None, uses_spcompress=uses_spcompress)
        refuse_given(skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor)
        asked = self.get_asked(window_left)
        heads, kv_heads, columns, page = self._shape
        check_query(q, (None, heads, columns), self._dtype)
        pools = split_cache(paged_kv_cache, self._kv_layout)
        self.check_cache(pools, kv_heads, columns, page)
        asked, factor = read_scales(asked, q_scale, k_scale, v_scale)
        with torch.no_grad():
            # The rows of a sequence come last among the rows that it might have.
            shift = self._most - (self._offsets[1:] - self._offsets[:-1])
            lengths = self._table.lengths
            functions = make_functions(asked.slopes, self._bits, lengths, shift)
            pages = Pages(*pools, self._table.pages, lengths)
            if self._rotary is not None:
                q = rotate_query(q, self._offsets, lengths, self._rotary)
                pages = rotate_pages(pages, self._rotary)
            how = How(asked.scale, asked.softcap, None, sinks, fixed_split=self._fixed_split)
            padding = self._padding
            if padding is None or q.shape[0] != self._total:
                # Graphs find rows again, by the offsets of later plans.
                padding = make_padding(q.shape[0], self._offsets, None, self._most)
            output, found = attend_pages_ragged(q, padding, pages, asked.window, how, functions)
            return give(output, found.T, factor, (out, lse), return_lse)

    run_return_lse = functools.partialmethod(run, return_lse=True)


class BatchPrefillWithRaggedKVCacheWrapper(Wrapper):
    """Rows and keys of sequences of any lengths, each one after the other."""

    def __init__(
        self,
        float_workspace_buffer: torch.Tensor,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        qo_indptr_buf: Optional[torch.Tensor] = None,
        kv_indptr_buf: Optional[torch.Tensor] = None,
        custom_mask_buf: Optional[torch.Tensor] = None,
        mask_indptr_buf: Optional[torch.Tensor] = None,
        backend: str = "auto",
        jit_args: Optional[List[Any]] = None,
        jit_kwargs: Any = None,
    ) -> None:
        super().__init__(float_workspace_buffer, kv_layout, use_cuda_graph, jit_args)
        refuse_given(jit_kwargs=jit_kwargs)
        if use_cuda_graph:
            check_buffers(qo_indptr_buf=qo_indptr_buf, kv_indptr_buf=kv_indptr_buf)
        self._buffers = qo_indptr_buf, kv_indptr_buf
        self._offsets: Tuple[Any, Any] = None, None
        self._most = 0, 0

    def plan(
        self,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        head_dim_vo: Optional[int] = None,
        custom_mask: Optional[torch.Tensor] = None,
        packed_custom_mask: Optional[torch.Tensor] = None,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        window_left: int = -1,
        logits_soft_cap: Optional[float] = None,
        sm_scale: Optional[float] = None,
        rope_scale: Optional[float] = None,
        rope_theta: Optional[float] = None,
        q_data_type: Union[str, torch.dtype] = "float16",
        kv_data_type: Union[str, torch.dtype, None] = None,
        o_data_type: Union[str, torch.dtype, None] = None,
        non_blocking: bool = True,
        prefix_len_ptr: Optional[torch.Tensor] = None,
        token_pos_in_items_ptr: Optional[torch.Tensor] = None,
        token_pos_in_items_len: int = 0,
        max_item_len_ptr: Optional[torch.Tensor] = None,
        fixed_split_size: Optional[int] = None,
        disable_split_kv: bool = False,
        seq_lens: Optional[torch.Tensor] = None,
        seq_lens_q: Optional[torch.Tensor] = None,
        max_token_per_sequence: Optional[int] = None,
        max_sequence_kv: Optional[int] = None,
        v_indptr: Optional[torch.Tensor] = None,
        o_indptr: Optional[torch.Tensor] = None,
    ) -> None:
        """As that of `BatchPrefillWithPagedKVCacheWrapper`; max_sequence_kv is the most keys of a sequence in
        later plans of a graph."""
        refuse_given(
            prefix_len_ptr=prefix_len_ptr,
            token_pos_in_items_ptr=token_pos_in_items_ptr,
            max_item_len_ptr=max_item_len_ptr,
            v_indptr=v_indptr,
            o_indptr=o_indptr,
        )
        self._fixed_split = read_fixed_split(fixed_split_size, 1)
        self._dtype = read_types(q_data_type, kv_data_type, o_data_type)
        is_masked = custom_mask is not None or packed_custom_mask is not None
        shape = num_qo_heads, head_dim_qk, self.device
        position = pos_encoding_mode, rope_scale, rope_theta
        how = position, sm_scale, window_left, logits_soft_cap
        self._asked = read_how(shape, bool(causal) and not is_masked, *how)
        value_dim = head_dim_qk if head_dim_vo is None else head_dim_vo
        self._shape = num_qo_heads, num_kv_heads, head_dim_qk, value_dim
        check_indices("qo_indptr", qo_indptr)
        check_indices("kv_indptr", kv_indptr, qo_indptr.shape[0])
        fill_buffers(("qo_indptr", self._buffers[0], qo_indptr))
        fill_buffers(("kv_indptr", self._buffers[1], kv_indptr))
        more = max_token_per_sequence or 0, max_sequence_kv or 0
        self._plan_offsets((qo_indptr, kv_indptr), more)
        self.plan_rotary(self._asked.rope, self._most[1], head_dim_qk)
        rows, keys = ((x[1:] - x[:-1]).long() for x in self._offsets)
        self._keys = keys
        self._bits: Optional[Bits] = read_bits(
            custom_mask, packed_custom_mask, (rows, keys), self.device
        )
        if self._bits is not None and self._is_fixed:
            refuse("custom_mask", "None with use_cuda_graph", "a mask")

    def _plan_offsets(self, given: Tuple[Any, Any], more: Tuple[int, int]) -> None:
        # Before they are on a GPU, which would have to be waited for.
        most = [int((x[1:] - x[:-1]).max()) if x.shape[0] > 1 else 0 for x in given]
        offsets = [x.to(self.device, torch.int32) for x in given]
        if self._offsets[0] is None or not self._is_fixed:
            self._offsets = offsets[0].clone(), offsets[1].clone()
            self._most = max(most[0], more[0]), max(most[1], more[1])
            return
        for name, count, place, new, bound in zip(
            ("qo_indptr", "kv_indptr"), most, self._offsets, offsets, self._most
        ):
            if count > bound:
                refuse(name, f"{bound} rows of a sequence at most, as the graph has", count)
            place.copy_(new)

    begin_forward = plan

    def run(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        *args: Any,
        q_scale: Optional[float] = None,
        k_scale: Optional[float] = None,
        v_scale: Optional[float] = None,
        o_scale: Optional[float] = None,
        out: Optional[torch.Tensor] = None,
        lse: Optional[torch.Tensor] = None,
        return_lse: bool = False,
        enable_pdl: Optional[bool] = None,
        kv_cache_sf: Any = None,
    ) -> Any:
        """q (T, H, D), k (N, Hkv, D) and v (N, Hkv, Dv), or heads first with "HND": the output (T, H, Dv), and
        lse (T, H)."""
        refuse_given(kv_cache_sf=kv_cache_sf, o_scale=o_scale, args=args or None)
        asked, factor = read_scales(self.get_asked(), q_scale, k_scale, v_scale)
        heads, kv_heads, columns, value_dim = self._shape
        check_query(q, (None, heads, columns), self._dtype)
        if not self._is_rows_first:
            k, v = k.transpose(0, 1), v.transpose(0, 1)
        for name, x, last in (("k", k, columns), ("v", v, value_dim)):
            if x.dim() != 3 or tuple(x.shape[1:]) != (kv_heads, last):
                refuse(name, f"rows of ({kv_heads}, {last}), as plan() said", tuple(x.shape))
        with torch.no_grad():
            if not q.shape[0] or not k.shape[0]:
                output = q.new_zeros((*q.shape[:2], value_dim))
                found = q.new_full(q.shape[:2], -torch.inf, dtype=torch.float32)
                return give(output, found, factor, (out, lse), return_lse)
            if self._rotary is not None:
                q = rotate_query(q, self._offsets[0], self._keys, self._rotary)
                k = rotate_keys(k, self._offsets[1], self._rotary)
            functions = make_functions(asked.slopes, self._bits, self._keys)
            output, found = serving.varlen_attention(
                q,
                k,
                v,
                *self._offsets,
                max_seqlen_q=self._most[0],
                max_seqlen_k=self._most[1],
                scale=asked.scale,
                causal=asked.causal,
                window=None if asked.left is None else asked.window,
                softcap=asked.softcap or None,
                score=functions.score,
                mask=functions.mask,
                return_lse=True,
                fixed_split=self._fixed_split,
            )
            return give(output, found, factor, (out, lse), return_lse)

    run_return_lse = functools.partialmethod(run, return_lse=True)
