"""Hugging Face's models on attn:

    from attn.integrations import transformers
    model.set_attn_implementation(transformers.register())

Masks are the functions that Transformers makes, traced: no (B, 1, M, N) tensor exists. Gradients
are computed for queries, keys, values and sinks. Dropout of models in training draws its seeds from
PyTorch's generator: torch.manual_seed replays it, and checkpointing computes the same again.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple, Union

import torch
from torch.utils._pytree import tree_map_only
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import prepare_padding_mask, sdpa_mask
from transformers.utils import logging

import attn

from .. import _flex_node
from .._library import refuse
from . import _continuous
from ._tables import add_table, read_table

_logger = logging.get_logger(__name__)

# What models pass that changes no number here.
_HARMLESS = frozenset(
    "position_ids position_embeddings use_cache cache_position output_attentions output_hidden_states "
    "deterministic cu_seq_lens_q cu_seq_lens_k max_length_q max_length_k num_items_in_batch "
    "attention_type layer_idx".split()
)


class Mask:
    """A mask on its way from Transformers to `attention`: its function, with the present offsets.
    A model that asks it for anything else gets the tensor of the mask."""

    ndim = 4

    def __init__(self, function: Callable, make_tensor: Callable) -> None:
        self.function = function
        self._make_tensor, self._tensor = make_tensor, None

    def to_tensor(self) -> Any:
        if self._tensor is None:
            self._tensor = self._make_tensor()
        return self._tensor

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.to_tensor(), name)

    def __getitem__(self, index: Any) -> Any:
        return self.to_tensor()[index]

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, inputs: Any = (), options: Any = None
    ) -> Any:
        inputs, options = tree_map_only(Mask, Mask.to_tensor, (inputs, options or {}))
        return function(*inputs, **options)


def _to_offset(offset: Any, device: Any) -> Any:
    """0 is a constant of the kernel; any other offset is a number of each call. A static cache counts
    its own up before attention runs."""
    if isinstance(offset, torch.Tensor):
        return offset.reshape(()).clone()
    return torch.tensor(offset, device=device) if offset else 0


def make_mask(
    *,
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: Any = 0,
    mask_function: Callable,
    attention_mask: Union[torch.Tensor, Mask, None] = None,
    allow_is_bidirectional_skip: bool = False,
    local_size: Optional[int] = None,
    device: Any = "cpu",
    **options: Any,
) -> Optional[Mask]:
    """The mask of a kind of layers, as AttentionMaskInterface asks for it. attention_mask is (B,
    keys seen), False for padding."""
    if isinstance(attention_mask, Mask):
        # `generate` makes the mask of a static cache, and the model asks again.
        return attention_mask
    if attention_mask is None and allow_is_bidirectional_skip and local_size is None:
        return None
    q0, kv0 = _to_offset(q_offset, device), _to_offset(kv_offset, device)
    padding = prepare_padding_mask(attention_mask, kv_length, kv_offset)

    def keep(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return mask_function(b, h, q + q0, kv + kv0)

    def keep_unpadded(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return mask_function(b, h, q + q0, kv + kv0) & padding[b, kv + kv0]

    def make_tensor() -> torch.Tensor:
        return sdpa_mask(
            batch_size=batch_size,
            q_length=q_length,
            kv_length=kv_length,
            q_offset=q0,
            kv_offset=kv0,
            mask_function=mask_function,
            attention_mask=attention_mask,
            allow_is_causal_skip=False,
            allow_is_bidirectional_skip=False,
            use_vmap=options.get("use_vmap", False),
            device=device,
        )

    return Mask(keep if padding is None else keep_unpadded, make_tensor)


def _check(module: Any, options: dict) -> None:
    for name, value in options.items():
        if name not in _HARMLESS and isinstance(value, (torch.Tensor, list, tuple)):
            refuse(
                name,
                "an attention that attn knows",
                f"an argument of another, of {type(module).__name__}",
                'use attn_implementation="eager" for this model',
            )
    if options.get("output_attentions"):
        _logger.warning_once(
            "attn stores no weights, so that output_attentions=True gives none: "
            'use attn_implementation="eager" for them'
        )
    if options.get("cache") is not None:
        hint = "use the name of register_continuous() with continuous batching"
        refuse("cache", "none", "a paged one", hint)


def _make_softcap(softcap: float) -> Callable:
    # Symbols answer to functions of PyTorch, and Dynamo knows them.
    return lambda s, b, h, q, kv: softcap * torch.tanh(s / softcap)


def attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    dropout: float = 0.0,
    scaling: Optional[float] = None,
    is_causal: Optional[bool] = None,
    sliding_window: Optional[int] = None,
    softcap: Optional[float] = None,
    s_aux: Optional[torch.Tensor] = None,
    position_bias: Optional[torch.Tensor] = None,
    **options: Any,
) -> Tuple[torch.Tensor, None]:
    """The function that AttentionInterface calls for each layer. query is (B, H, M, D), key (B,
    Hkv, N, D) and value (B, Hkv, N, Dv). Returns (B, M, H, Dv), and no weights."""
    _check(module, options)
    # Some models give what their configuration says.
    dropout = dropout if module.training else 0.0
    score = None if softcap is None else _make_softcap(softcap)
    causal: Any = False
    mask = None
    if isinstance(attention_mask, Mask):
        mask = attention_mask.function
    elif attention_mask is not None:
        if attention_mask.dtype == torch.bool:
            mask = read_table(attention_mask)
        else:
            score = add_table(attention_mask, score)
    elif query.shape[2] > 1:
        # Where keys outnumber queries, a static cache is being filled.
        is_causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        causal = "top_left" if is_causal else False
        if sliding_window is not None:
            if not causal:
                refuse("sliding_window", "a mask beside it", "none")
            mask = _make_window(sliding_window)
    if position_bias is not None:
        score = add_table(position_bias, score)
    if torch.compiler.is_dynamo_compiling() and not (score is None and mask is None):
        matrices = [x.transpose(1, 2) for x in (query, key, value)]
        how = dict(scale=scaling, causal=causal, sink=s_aux, rows_first=True, dropout_p=dropout)
        return _flex_node.attend(*matrices, score, mask, **how)[0], None
    output = attn.attention(
        query.transpose(1, 2),
        key.transpose(1, 2),
        value.transpose(1, 2),
        scale=scaling,
        causal=causal,
        score=score,
        mask=mask,
        sink=s_aux,
        layout="bshd",
        dropout_p=dropout,
    )
    return output, None


def _make_window(size: int) -> Callable:
    return lambda b, h, q, kv: kv > q - size


def register(name: str = "attn") -> str:
    """Makes `name` an attention implementation of Transformers, with its masks, and returns it.

    Raises:
        Error: a name that Transformers reads a meaning into.
    """
    for part in ("flash", "sdpa", "flex_attention", "eager", "paged", "/", "|"):
        if part in name:
            refuse(
                "name", f"one without '{part}', which Transformers takes for another", repr(name)
            )
    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, make_mask)
    return name


def register_continuous(name: str = "attn_flash_3") -> str:
    """Makes `name` a flash attention of Transformers, and returns it: for generate_batch and the server of
    continuous batching, whose keys lie in pages.

        model.set_attn_implementation(transformers.register_continuous())
        model.generate_batch(prompts, generation_config=...)

    Masks of models are those that flash attention has: causal, windows, softcap and sinks. Models that need
    other ones take `register`. By the number in the name, Transformers knows that pages are read in place
    while decoding on a GPU.

    Raises:
        Error: a name without "flash", which Transformers asks for, or one with a meaning of its own.
    """
    return _continuous.register(name)


def unregister_continuous(name: str = "attn_flash_3") -> None:
    """Undoes `register_continuous`; without effect where nothing is registered."""
    _continuous.unregister(name)


def unregister(name: str = "attn") -> None:
    """Undoes `register`; without effect where nothing is registered."""
    if AttentionInterface._global_mapping.get(name) is attention:
        del AttentionInterface._global_mapping[name]
        del AttentionMaskInterface._global_mapping[name]
