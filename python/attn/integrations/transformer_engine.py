"""DotProductAttention of Transformer Engine for PyTorch, by its names:

    from attn.integrations.transformer_engine import DotProductAttention

Transformer Engine need not be installed. Tensors may be on the CPU, where head sizes are free.
Arguments that attn does not serve are refused by name; those that choose kernels there choose none here.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple, Union

import torch

import attn

from .._library import refuse
from ._arguments import check_tensor
from ._varlen import flash_attn_varlen_func
from .flash_attn import flash_attn_func

__all__ = ["DotProductAttention"]

_FORMATS = ("sbhd", "bshd", "thd")
_DENSE = ("no_mask", "causal", "causal_bottom_right")
_PADDED = ("padding", "padding_causal", "padding_causal_bottom_right")
_SOFTMAX = ("vanilla", "off-by-one", "learnable")
Sides = Optional[Tuple[int, int]]


def _name_mask(name: str) -> str:
    """Of the spellings there, "padding,causal" among them."""
    words = sorted(name.replace(",", "_").split("_"))
    return "padding_causal" if words == ["causal", "padding"] else name


def _check_choice(name: str, x: Any, known: Tuple[str, ...], hint: str = "") -> None:
    if x not in known:
        refuse(name, " or ".join(known), repr(x), hint)


def _refuse_given(**given: Any) -> None:
    """Whatever is neither None nor False."""
    for name, x in given.items():
        if x is not None and x is not False:
            refuse(name, "None", type(x).__name__)


def _find_rows(starts: Any, padded: Any) -> Tuple[Any, Any]:
    """Where sequences begin in memory, and how many rows of each count; None where all do."""
    return (starts, None) if padded is None else (padded, starts.diff())


class DotProductAttention(torch.nn.Module):
    """Attention of a layer, as `transformer_engine.pytorch.DotProductAttention`.

    Args:
        num_attention_heads: heads of queries, in all processes of tensor parallelism together.
        kv_channels: columns of a head, or (of queries and keys, of values).
        num_gqa_groups: heads of keys and values; as many as of queries if None.
        attention_dropout: probability, in training.
        qkv_format: "sbhd", "bshd" or "thd": the last one has sequences of any lengths one after the other.
        attn_mask_type: "no_mask", "causal" or "causal_bottom_right"; of "thd" "padding", "padding_causal" or
            "padding_causal_bottom_right". Without "bottom_right", the first row is at the first key.
        window_size: keys kept before and after a row, counted from the last row and key; -1 is no bound.
        softmax_scale: factor of the products; 1 / sqrt(columns) if None.
        softmax_type: "vanilla", "off-by-one", or "learnable": `softmax_offset` is a parameter then, one more
            logit for each head.
        attention_type: "self" or "cross". Rows of a sequence are as many as its keys in "self".

    Raises:
        Error: an argument that is unknown, or that attn does not serve: cp_group (`attn.distributed`),
            return_max_logit, and get_rng_state_tracker with dropout.
    """

    def __init__(
        self,
        num_attention_heads: int,
        kv_channels: Union[int, Tuple[int, int]],
        num_gqa_groups: Optional[int] = None,
        attention_dropout: float = 0.0,
        qkv_format: str = "sbhd",
        attn_mask_type: str = "causal",
        window_size: Sides = None,
        bottom_right_diagonal: Optional[bool] = None,
        sequence_parallel: bool = False,
        tp_size: int = 1,
        get_rng_state_tracker: Any = None,
        tp_group: Any = None,
        layer_number: Optional[int] = None,
        attention_type: str = "self",
        cp_group: Any = None,
        cp_global_ranks: Any = None,
        cp_stream: Any = None,
        cp_comm_type: str = "p2p",
        softmax_scale: Optional[float] = None,
        softmax_type: str = "vanilla",
        return_max_logit: Optional[bool] = False,
        name: Optional[str] = None,
    ) -> None:
        super().__init__()
        if cp_group is not None:
            refuse("cp_group", "None", type(cp_group).__name__, "attn.distributed.context_parallel_attention")
        _refuse_given(return_max_logit=return_max_logit, bottom_right_diagonal=bottom_right_diagonal)
        if attention_dropout:
            _refuse_given(get_rng_state_tracker=get_rng_state_tracker)
        _check_choice("qkv_format", qkv_format, _FORMATS)
        _check_choice("softmax_type", softmax_type, _SOFTMAX)
        _check_choice("attention_type", attention_type, ("self", "cross"))
        if tp_group is not None:
            tp_size = torch.distributed.get_world_size(tp_group)
        self.heads = num_attention_heads // tp_size
        self.key_heads = (num_gqa_groups or num_attention_heads) // tp_size
        columns = kv_channels if isinstance(kv_channels, int) else kv_channels[0]
        self.softmax_scale = columns**-0.5 if softmax_scale is None else softmax_scale
        self.attention_dropout, self.qkv_format = attention_dropout, qkv_format
        self.attn_mask_type, self.window_size = _name_mask(attn_mask_type), window_size
        self.attention_type, self.softmax_type = attention_type, softmax_type
        self.softmax_offset: Optional[torch.Tensor] = None
        if softmax_type == "learnable":
            self.softmax_offset = torch.nn.Parameter(torch.zeros(self.heads))

    def forward(
        self,
        query_layer: torch.Tensor,
        key_layer: torch.Tensor,
        value_layer: torch.Tensor,
        attention_mask: Any = None,
        qkv_format: Optional[str] = None,
        cu_seqlens_q: Optional[torch.Tensor] = None,
        cu_seqlens_kv: Optional[torch.Tensor] = None,
        cu_seqlens_q_padded: Optional[torch.Tensor] = None,
        cu_seqlens_kv_padded: Optional[torch.Tensor] = None,
        max_seqlen_q: Optional[int] = None,
        max_seqlen_kv: Optional[int] = None,
        attn_mask_type: Optional[str] = None,
        window_size: Sides = None,
        bottom_right_diagonal: Optional[bool] = None,
        checkpoint_core_attention: bool = False,
        core_attention_bias_type: str = "no_bias",
        core_attention_bias: Optional[torch.Tensor] = None,
        alibi_slopes: Optional[torch.Tensor] = None,
        fast_zero_fill: bool = True,
        inference_params: Any = None,
        pad_between_seqs: Optional[bool] = None,
        fp8_output: Optional[bool] = False,
        num_splits: Optional[int] = 1,
    ) -> torch.Tensor:
        """q (S, B, H, D), (B, S, H, D) or (T, H, D), by the format, and k and v likewise. Returns the output in the
        type of q, with heads and columns as one dimension: (S, B, H Dv) and so on.

        Of "thd", sequence s has the rows from cu_seqlens_q[s] to cu_seqlens_q[s + 1], int32 on the device of q. With
        cu_seqlens_q_padded it begins at that one's element s instead, and as many rows count. Other rows give 0.
        With core_attention_bias_type "alibi", scores lose alibi_slopes, (H,) or (B, H), times the distance.

        Raises:
            Error: an argument that does not fit, or that attn does not serve: attention_mask, core_attention_bias,
                checkpoint_core_attention, inference_params, fp8_output, and "causal" of "cross" attention with
                another number of keys where it has a window or slopes.
        """
        if attention_mask is not None:
            refuse("attention_mask", "None", type(attention_mask).__name__, 'qkv_format="thd" with cu_seqlens_q and cu_seqlens_kv')
        if core_attention_bias is not None:
            hint = "attn.attention(..., score=lambda s, b, h, q, kv: s + bias[b, h, q, kv])"
            refuse("core_attention_bias", "None", type(core_attention_bias).__name__, hint)
        _refuse_given(
            checkpoint_core_attention=checkpoint_core_attention,
            inference_params=inference_params,
            fp8_output=fp8_output,
            bottom_right_diagonal=bottom_right_diagonal,
        )
        _check_choice("core_attention_bias_type", core_attention_bias_type, ("no_bias", "alibi"))
        if (core_attention_bias_type == "alibi") != (alibi_slopes is not None):
            refuse("alibi_slopes", 'a tensor with core_attention_bias_type="alibi", and None without', type(alibi_slopes).__name__)
        tensors = query_layer, key_layer, value_layer
        format_, kind = qkv_format or self.qkv_format, _name_mask(attn_mask_type or self.attn_mask_type)
        _check_choice("qkv_format", format_, _FORMATS)
        dims = {"sbhd": "S, B, H, D", "bshd": "B, S, H, D", "thd": "T, H, D"}[format_]
        for name, x, heads in zip(("query_layer", "key_layer", "value_layer"), tensors, (self.heads, self.key_heads, self.key_heads)):
            check_tensor(name, x, dims)
            if x.shape[-2] != heads:
                refuse(name, f"{heads} heads", str(x.shape[-2]))
        sides = window_size or self.window_size or (-1, -1)
        how = {
            "dropout_p": self.attention_dropout if self.training else 0.0,
            "softmax_scale": self.softmax_scale,
            "window_size": sides,
            "alibi_slopes": alibi_slopes,
            "learnable_sink": self._find_sink(query_layer),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
        }
        if format_ != "thd":
            return self._attend_dense(tensors, kind, format_, how)
        _check_choice("attn_mask_type", kind, _PADDED, 'sequences of "thd" end where the next one begins')
        if cu_seqlens_q is None or cu_seqlens_kv is None:
            refuse("cu_seqlens_q", 'starts of rows and of keys, as "thd" has', None)
        if kind == "padding_causal" and self.attention_type == "cross":
            refuse("attn_mask_type", "padding_causal_bottom_right in cross attention", kind)
        (starts_q, used_q), (starts_k, used_k) = (
            _find_rows(*x) for x in ((cu_seqlens_q, cu_seqlens_q_padded), (cu_seqlens_kv, cu_seqlens_kv_padded))
        )
        output = flash_attn_varlen_func(
            *tensors, starts_q, starts_k, max_seqlen_q, max_seqlen_kv, causal=kind != "padding", seqused_q=used_q, seqused_k=used_k, **how
        )  # fmt: skip
        return output.flatten(-2)

    def _find_sink(self, q: torch.Tensor) -> Optional[torch.Tensor]:
        if self.softmax_type == "off-by-one":
            return torch.zeros(self.heads, device=q.device)
        return self.softmax_offset

    def _attend_dense(self, tensors: Any, kind: str, format_: str, how: Any) -> torch.Tensor:
        hint = 'qkv_format="thd", and starts of the sequences' if kind in _PADDED else ""
        _check_choice("attn_mask_type", kind, _DENSE, hint)
        q, k, v = (x.transpose(0, 1) for x in tensors) if format_ == "sbhd" else tensors
        if kind == "causal" and q.shape[1] != k.shape[1]:
            # From the first row and key, where flash-attn counts from the last ones.
            if how["alibi_slopes"] is not None or how["window_size"] not in ((-1, -1), (-1, 0)):
                got = f"{q.shape[1]} rows and {k.shape[1]} keys"
                refuse("attn_mask_type", "causal_bottom_right with a window or slopes", f"causal of {got}")
            output = attn.attention(
                q, k, v, causal="top_left", layout="bshd", scale=how["softmax_scale"], sink=how["learnable_sink"], dropout_p=how["dropout_p"]
            )  # fmt: skip
        else:
            output = flash_attn_func(q, k, v, causal=kind != "no_mask", **how)
        output = output.flatten(-2)
        return output.transpose(0, 1) if format_ == "sbhd" else output
