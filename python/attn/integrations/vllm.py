"""attn as an attention backend of vLLM:

    from attn.integrations import vllm
    vllm.register()                                  # in each process, before the engine starts

and `--attention-backend CUSTOM`. Where attn is installed as a package, vLLM's plugin "attn" registers it. Written
for the interfaces of vLLM 0.33 (vllm.v1.attention.backend); other versions may want other methods.

Keys and values stay in vLLM's cache, in any of its layouts. Batches whose sequences have as many rows each are
captured in CUDA graphs (UNIFORM_BATCH). In mixed batches the rows of q are copied, as many for each sequence as
the longest has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, List, Optional, Tuple

import torch
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadata,
    AttentionMetadataBuilder,
    AttentionType,
    MultipleOf,
)

from .._cache import write_rows
from .._library import refuse
from ._pages import (
    Functions,
    Padding,
    Pages,
    attend_pages,
    attend_pages_ragged,
    make_padding,
)
from ._rows_schema import SAME_BITS_SPLIT, How

__all__ = ["AttnBackend", "AttnImpl", "AttnMetadata", "AttnMetadataBuilder", "register"]

_CACHE_TYPES = ["auto", "float16", "bfloat16"]


class AttnBackend(AttentionBackend):
    """The attention backend, and which attentions it serves."""

    # Keys are written apart from attention, so that vLLM can fuse or leave out the writing.
    forward_includes_kv_cache_update: bool = False
    supports_kv_cache_update_bypass: bool = True
    supported_dtypes: ClassVar[List[torch.dtype]] = [torch.float16, torch.bfloat16, torch.float32]
    supported_kv_cache_dtypes: ClassVar[List[str]] = list(_CACHE_TYPES)

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec: Any = None) -> List[Any]:
        """Pages that boxes of a tensor map read. Others are served too, by threads."""
        return [MultipleOf(16)]

    @staticmethod
    def get_name() -> str:
        """The name in vLLM's list of backends; a third party has this one."""
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type:
        return AttnImpl

    @staticmethod
    def get_builder_cls() -> type:
        return AttnMetadataBuilder

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        return head_size % 8 == 0 and 8 <= head_size <= 256

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @classmethod
    def supports_sliding_window(cls) -> bool:
        return True

    @classmethod
    def supports_non_causal(cls) -> bool:
        return True

    @classmethod
    def supports_batch_invariance(cls) -> bool:
        """Keys are summed in fixed parts where vLLM asks for it."""
        return True

    @classmethod
    def supports_compute_capability(cls, capability: Any) -> bool:
        """Hopper; none on a CPU."""
        return capability is None or getattr(capability, "major", capability[0]) == 9


@dataclass
class AttnMetadata(AttentionMetadata):
    """A step, which layers share. Tensors are vLLM's own, which graphs replay in place."""

    num_actual_tokens: int
    num_reqs: int
    max_query_len: int
    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor
    block_table: torch.Tensor
    slot_mapping: torch.Tensor
    # One answer, or one for each request.
    causal: Any
    # Of mixed batches.
    padding: Optional[Padding] = None


class AttnMetadataBuilder(AttentionMetadataBuilder):
    """Tables, lengths and offsets are read by kernels. Of mixed batches, the places of rows are found here, once
    for all layers."""

    _cudagraph_support = AttentionCGSupport.UNIFORM_BATCH
    supports_update_block_table: bool = True

    def __init__(self, kv_cache_spec: Any, layer_names: Any, vllm_config: Any, device: Any) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def build(
        self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False
    ) -> AttnMetadata:
        """common_prefix_len is always 0 in this version; fast_build changes nothing."""
        common = common_attn_metadata
        total, requests, most = common.num_actual_tokens, common.num_reqs, common.max_query_len
        offsets, padding = common.query_start_loc, None
        if total != requests * most:
            padding = make_padding(total, offsets[: requests + 1], None, most)
        return AttnMetadata(
            num_actual_tokens=total,
            num_reqs=requests,
            max_query_len=most,
            query_start_loc=offsets,
            seq_lens=common.seq_lens,
            block_table=common.block_table_tensor,
            slot_mapping=common.slot_mapping,
            causal=common.causal,
            padding=padding,
        )

    def update_block_table(
        self, metadata: AttnMetadata, blk_table: torch.Tensor, slot_mapping: torch.Tensor
    ) -> AttnMetadata:
        """The same step of another group of layers."""
        fields = dict(vars(metadata), block_table=blk_table, slot_mapping=slot_mapping)
        return AttnMetadata(**fields)


def _is_batch_invariant() -> bool:
    """Whether $VLLM_BATCH_INVARIANT asks for the same bits of a request in every batch."""
    try:
        from vllm import envs
    except ImportError:
        return False
    return bool(getattr(envs, "VLLM_BATCH_INVARIANT", False))


def _make_causal_by_request(causal: Any, lengths: Any, most: int) -> Functions:
    """Row most - 1 is the last one of a sequence, at its last key."""

    def keep(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return (kv <= q + lengths[b] - most) | ~causal[b]

    return Functions(mask=keep)


class AttnImpl(AttentionImpl):
    """The attention of a layer."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: Optional[int] = None,
        alibi_slopes: Optional[List[float]] = None,
        sliding_window: Optional[int] = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: Optional[float] = None,
        attn_type: str = AttentionType.DECODER,
        kv_sharing_target_layer_name: Optional[str] = None,
        sinks: Optional[torch.Tensor] = None,
    ) -> None:
        """As vLLM asks for a layer. sliding_window counts a row's own key.

        Raises:
            Error: an attention that attn does not serve.
        """
        if attn_type != AttentionType.DECODER:
            refuse("attn_type", "that of a decoder", attn_type)
        if kv_cache_dtype not in _CACHE_TYPES:
            hint = "8-bit keys and values are not served"
            refuse("kv_cache_dtype", " or ".join(_CACHE_TYPES), kv_cache_dtype, hint)
        self.num_heads, self.head_size, self.scale = num_heads, head_size, float(scale)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.kv_cache_dtype, self.attn_type = kv_cache_dtype, attn_type
        self.sliding_window = sliding_window
        self.logits_soft_cap = float(logits_soft_cap or 0.0)
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self.sinks = sinks
        if sinks is not None and tuple(sinks.shape) != (num_heads,):
            refuse("sinks", f"shape ({num_heads},)", tuple(sinks.shape))
        self._slopes = None if alibi_slopes is None else torch.tensor(alibi_slopes).float()
        self._fixed_split = SAME_BITS_SPLIT if _is_batch_invariant() else None

    def _get_slopes(self, device: Any) -> Any:
        if self._slopes is not None and self._slopes.device != device:
            self._slopes = self._slopes.to(device)
        return self._slopes

    def _split(self, kv_cache: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """(blocks, Hkv, P, 2 D) of any strides, as pools (blocks, P, Hkv, D)."""
        content = kv_cache.transpose(1, 2)
        return content[..., : self.head_size], content[..., self.head_size :]

    def do_kv_cache_update(
        self,
        layer: Any,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> None:
        """Writes key and value (T, Hkv, D) where slots say; rows after the last slot are padding."""
        count = slot_mapping.shape[0]
        with torch.no_grad():
            write_rows(self._split(kv_cache), (key[:count], value[:count]), slot_mapping)

    def forward(
        self,
        layer: Any,
        query: torch.Tensor,
        key: Optional[torch.Tensor],
        value: Optional[torch.Tensor],
        kv_cache: torch.Tensor,
        attn_metadata: Optional[AttnMetadata],
        output: torch.Tensor,
        output_scale: Optional[torch.Tensor] = None,
        output_block_scale: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """query (T, H, D) against the cache, in which `do_kv_cache_update` has written the new keys. Fills the
        first num_actual_tokens rows of output."""
        for name, x in (("output_scale", output_scale), ("output_block_scale", output_block_scale)):
            if x is not None:
                refuse(name, "None", "a tensor", "quantized outputs are not served")
        if attn_metadata is None:
            # vLLM measures memory.
            return output.fill_(0)
        count = attn_metadata.num_actual_tokens
        rows = query[:count].view(count, self.num_heads, self.head_size)
        with torch.no_grad():
            self._attend(rows, kv_cache, attn_metadata, output[:count].view(count, self.num_heads, -1))
        return output

    def _attend(self, rows: Any, kv_cache: Any, step: AttnMetadata, output: Any) -> None:
        requests, most = step.num_reqs, step.max_query_len
        lengths = step.seq_lens[:requests]
        pages = Pages(*self._split(kv_cache), step.block_table[:requests], lengths)
        slopes = self._get_slopes(rows.device)
        how = How(self.scale, self.logits_soft_cap, slopes, self.sinks, fixed_split=self._fixed_split)
        left = None if self.sliding_window is None else self.sliding_window - 1
        functions, is_causal = Functions(), step.causal
        if isinstance(is_causal, torch.Tensor):
            functions = _make_causal_by_request(is_causal[:requests], lengths, most)
            is_causal = False
        # Without a causal mask a window has as many keys after a row.
        window = left, 0 if is_causal else left
        if step.padding is None:
            # As many rows of each: they lie as kernels want them.
            rows, out = (x.view(requests, most, *x.shape[1:]) for x in (rows, output))
            attend_pages(rows, pages, window, how, functions, out)
            return
        output.copy_(attend_pages_ragged(rows, step.padding, pages, window, how, functions)[0])


def register() -> None:
    """Makes attn vLLM's backend CUSTOM, unless somebody else is. vLLM calls this in each of its processes
    where attn is installed."""
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    if not AttentionBackendEnum.CUSTOM.is_overridden():
        path = f"{AttnBackend.__module__}.{AttnBackend.__qualname__}"
        register_backend(AttentionBackendEnum.CUSTOM, path)
