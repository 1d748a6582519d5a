"""attn as an attention backend of diffusers:

    from attn.integrations import diffusers
    model.set_attention_backend(diffusers.register())

Models then call attn for every attention that they dispatch: image and video transformers, forward
and in training.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch
from diffusers.models.attention_dispatch import AttentionBackendName, _AttentionBackendRegistry

from .._library import refuse
from .torch import scaled_dot_product_attention

__all__ = ["attention", "register", "unregister"]


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: Optional[torch.Tensor] = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    _parallel_config: Any = None,
) -> torch.Tensor:
    """An attention as diffusers dispatches it.

    Args:
        query, key, value: (B, S, H, D), which are read as they are.
        attn_mask: (B, N), which keys count, or what broadcasts to (B, H, M, N): bools, or floats that
            are added.
        dropout_p, is_causal, scale, enable_gqa: as for PyTorch's scaled_dot_product_attention.

    Returns:
        (B, S, H, Dv).

    Raises:
        Error: return_lse, and context parallelism of diffusers.
    """
    if return_lse:
        refuse("return_lse", "False", "True", "use attn.attention(..., return_lse=True)")
    if _parallel_config is not None:
        hint = "use the backend native, or attn.distributed.context_parallel_attention"
        refuse("_parallel_config", "None", "context parallelism of diffusers", hint)
    if attn_mask is not None and attn_mask.dim() == 2:
        if attn_mask.shape == (query.shape[0], key.shape[1]):
            attn_mask = attn_mask[:, None, None]
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    how: Dict[str, Any] = dict(
        dropout_p=dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
    )
    return scaled_dot_product_attention(q, k, v, attn_mask, **how).transpose(1, 2)


def register(name: str = "attn") -> str:
    """Makes `name` a backend of diffusers, for `set_attention_backend` and `attention_backend`, and
    returns it. Without effect where it is one already.

    diffusers has no public way to add a backend: its names are an Enum, which gets one more member.

    Raises:
        Error: a name that is another backend's, or has other letters than small ones.
    """
    if not name.isidentifier() or name != name.lower():
        refuse("name", "a word of small letters", repr(name))
    known = AttentionBackendName._value2member_map_.get(name)
    if known is not None:
        if _AttentionBackendRegistry._backends.get(known) is not attention:
            refuse("name", "one that is no backend of diffusers", repr(name))
        return name
    member = str.__new__(AttentionBackendName, name)
    member._name_, member._value_ = name.upper(), name
    AttentionBackendName._member_map_[name.upper()] = member
    AttentionBackendName._member_names_.append(name.upper())
    AttentionBackendName._value2member_map_[name] = member
    _AttentionBackendRegistry.register(member)(attention)
    return name


def unregister(name: str = "attn") -> None:
    """Undoes `register`; without effect where nothing is registered. Models that have the backend set
    keep it until they are given another one."""
    member = AttentionBackendName._value2member_map_.get(name)
    if member is None or _AttentionBackendRegistry._backends.get(member) is not attention:
        return
    if _AttentionBackendRegistry._active_backend is member:
        _AttentionBackendRegistry.set_active_backend(AttentionBackendName.NATIVE)
    for table in (
        _AttentionBackendRegistry._backends,
        _AttentionBackendRegistry._constraints,
        _AttentionBackendRegistry._supported_arg_names,
    ):
        table.pop(member, None)
    del AttentionBackendName._member_map_[member._name_]
    AttentionBackendName._member_names_.remove(member._name_)
    del AttentionBackendName._value2member_map_[name]
