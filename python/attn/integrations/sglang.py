"""attn as an attention backend of SGLang:

    from attn.integrations import sglang
    sglang.register()                                # in each process, before the server starts

and `--attention-backend attn`. Where attn is installed as a package, SGLang's plugin "attn" registers it. Written for
the interfaces of SGLang 0.5.23 (sglang.srt.layers.attention.base_attn_backend); other versions may want other methods.

Keys and values stay in SGLang's pool of tokens, which are pages of one key: no page size is asked for. Lengths are
read by kernels alone. Decoding is captured in CUDA graphs; prompts run outside of them, and the rows of q are
copied, as many for each sequence as the longest has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

import torch
from sglang.srt.layers.attention.base_attn_backend import AttentionBackend

from .._library import refuse
from ._pages import Padding, Pages, attend_pages, attend_pages_ragged, make_padding
from ._rows_schema import How

__all__ = ["AttnBackend", "Metadata", "register"]


@dataclass
class Metadata:
    """A step, which layers share."""

    # (B, C) int32: the place of each key in the pool.
    table: torch.Tensor
    # (B,) int32.
    lengths: torch.Tensor
    # (B + 1,) int32 and the most rows of a sequence; None while decoding.
    offsets: Optional[torch.Tensor] = None
    most: int = 1
    # Made by the first layer.
    padding: Optional[Padding] = None


class AttnBackend(AttentionBackend):
    """The attention of all layers of a model."""

    # Nothing reads lengths on the host while decoding.
    needs_cpu_seq_lens: bool = False

    def __init__(self, model_runner: Any) -> None:
        super().__init__()
        self.device = model_runner.device
        self._tokens = model_runner.req_to_token_pool
        self._pool = model_runner.token_to_kv_pool
        if hasattr(self._pool, "translate_loc_from_full_to_swa"):
            hint = "start SGLang with one pool: --disable-hybrid-swa-memory"
            refuse("token_to_kv_pool", "one pool of all layers", "another one for windows", hint)
        self.forward_metadata: Optional[Metadata] = None
        self._graph_table: Any = None
        self._graph_lengths: Any = None

    def support_triton(self) -> bool:
        return True

    # ===- Metadata -----------------------------------------------------------------------------===#

    def init_forward_metadata(self, forward_batch: Any) -> None:
        """Of a step outside of graphs. The most rows of a sequence are known to the host."""
        _check_batch(forward_batch)
        lengths = forward_batch.seq_lens.to(torch.int32)
        table = self._tokens.req_to_token[forward_batch.req_pool_indices].to(torch.int32)
        metadata = Metadata(table, lengths)
        if not forward_batch.forward_mode.is_decode_or_idle():
            counts = forward_batch.extend_seq_lens.to(torch.int32)
            ends = torch.cumsum(counts, 0, dtype=torch.int32)
            metadata.offsets = torch.nn.functional.pad(ends, (1, 0))
            known = forward_batch.extend_seq_lens_cpu
            metadata.most = int(max(known)) if known is not None else int(counts.max())
        self.forward_metadata = metadata

    def init_forward_metadata_out_graph(self, forward_batch: Any, in_capture: bool = False) -> None:
        """Of a step that is captured or replayed: tables and lengths go where the graph reads them."""
        _check_batch(forward_batch)
        if not forward_batch.forward_mode.is_decode_or_idle():
            refuse("forward_mode", "decoding in a CUDA graph", forward_batch.forward_mode)
        count = forward_batch.req_pool_indices.shape[0]
        table, lengths = self._graph_table[:count], self._graph_lengths[:count]
        table.copy_(self._tokens.req_to_token[forward_batch.req_pool_indices])
        lengths.copy_(forward_batch.seq_lens)
        self.forward_metadata = Metadata(table, lengths)

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int) -> None:
        columns = self._tokens.req_to_token.shape[1]
        place = dict(dtype=torch.int32, device=self.device)
        self._graph_table = torch.zeros((max_bs, columns), **place)
        self._graph_lengths = torch.zeros(max_bs, **place)

    def get_cuda_graph_seq_len_fill_value(self) -> int:
        """Sequences that pad a batch keep no key."""
        return 0

    # ===- Attention ----------------------------------------------------------------------------===#

    def _write(self, layer: Any, forward_batch: Any, k: Any, v: Any) -> None:
        from sglang.srt.mem_cache.memory_pool import KVWriteLoc

        self._pool.set_kv_buffer(layer, KVWriteLoc(forward_batch.out_cache_loc, None), k, v)

    def _attend(self, q: Any, layer: Any, sinks: Any) -> Any:
        step = self.forward_metadata
        assert step is not None
        rows = q.reshape(-1, layer.tp_q_head_num, layer.qk_head_dim)
        # A token is a page of one key.
        pools = self._pool.get_key_buffer(layer.layer_id), self._pool.get_value_buffer(layer.layer_id)
        pages = Pages(*(x[:, None] for x in pools), step.table, step.lengths)
        how = How(layer.scaling, float(layer.logit_cap or 0.0), None, sinks)
        size = layer.sliding_window_size
        left = None if size is None or size < 0 else int(size)
        window = left, 0
        with torch.no_grad():
            if step.offsets is None:
                output = attend_pages(rows[:, None], pages, window, how)[0].flatten(0, 1)
            else:
                if step.padding is None:
                    step.padding = make_padding(rows.shape[0], step.offsets, None, step.most)
                output = attend_pages_ragged(rows, step.padding, pages, window, how)[0]
        return output.flatten(1)

    def forward_decode(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        layer: Any,
        forward_batch: Any,
        save_kv_cache: bool = True,
        **kwargs: Any,
    ) -> torch.Tensor:
        """q (B, H * D), a row of each sequence: (B, H * Dv)."""
        return self.forward_extend(q, k, v, layer, forward_batch, save_kv_cache, **kwargs)

    def forward_extend(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        layer: Any,
        forward_batch: Any,
        save_kv_cache: bool = True,
        **kwargs: Any,
    ) -> torch.Tensor:
        """q (T, H * D), the last rows of each sequence: (T, H * Dv). Keys are written first."""
        _check_layer(layer, kwargs)
        if save_kv_cache and k is not None:
            self._write(layer, forward_batch, k, v)
        return self._attend(q, layer, kwargs.get("sinks"))


def _check_batch(forward_batch: Any) -> None:
    for name in ("spec_info", "encoder_lens"):
        x = getattr(forward_batch, name, None)
        if x is not None:
            refuse(name, "None", type(x).__name__, "choose another backend for this model")


def _check_layer(layer: Any, options: Any) -> None:
    """Raises Error for an attention that attn does not serve."""
    if layer.is_cross_attention:
        refuse("layer.is_cross_attention", "False", True)
    attn_type = getattr(layer.attn_type, "value", layer.attn_type)
    if attn_type != "decoder":
        refuse("layer.attn_type", "that of a decoder", attn_type)
    if layer.logit_cap and getattr(layer, "logit_capping_method", "tanh") != "tanh":
        refuse("layer.logit_capping_method", '"tanh"', repr(layer.logit_capping_method))
    if getattr(layer, "xai_temperature_len", -1) > 0:
        refuse("layer.xai_temperature_len", "none", layer.xai_temperature_len)
    for name, x in options.items():
        if x is not None and name != "sinks":
            refuse(name, "None", type(x).__name__, "choose another backend for this model")


def register(name: str = "attn") -> str:
    """Makes `name` an attention backend of SGLang and of its command line, and returns it. SGLang calls this in
    each of its processes where attn is installed as a package."""
    from sglang.srt.arg_groups.choices import (
        ATTENTION_BACKEND_CHOICES,
        add_attention_backend_choices,
    )
    from sglang.srt.layers.attention.attention_registry import register_attention_backend

    register_attention_backend(name)(AttnBackend)
    if name not in ATTENTION_BACKEND_CHOICES:
        add_attention_backend_choices([name])
    return name
