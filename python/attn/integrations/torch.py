"""PyTorch's own attention functions on attn:

    from attn.integrations.torch import scaled_dot_product_attention, flex_attention
    with attn.integrations.torch.patch():  # or .undo()
        ...  # every call of torch.nn.functional.scaled_dot_product_attention
    attn.integrations.torch.register_flash_attention()  # for activate_flash_attention_impl("attn")

What attn does not serve goes to PyTorch, and `fallbacks` counts why.
"""

from __future__ import annotations

import collections
import math
from typing import Any, Callable, Counter, NamedTuple, Optional, Tuple

import torch
from torch.nn.attention.bias import CausalBias, CausalVariant
from torch.nn.attention.flex_attention import AuxOutput

import attn

from .. import _flex_node
from .._library import refuse
from . import _flash
from ._tables import read_table

_sdpa = torch.nn.functional.scaled_dot_product_attention

served: Counter[str] = collections.Counter()
"""How often each function was served by attn."""
fallbacks: Counter[str] = collections.Counter()
"""How often PyTorch was called instead, by reason."""

# ===- scaled_dot_product_attention --------------------------------------------------------------===#

_TYPES = (torch.float16, torch.bfloat16, torch.float32)


def _find_reason(q: Any, k: Any, v: Any, mask: Any, dropout: float, is_causal: bool) -> str:
    """Why a call is PyTorch's; empty for one that attn serves. Calls that are wrong are PyTorch's
    too: its errors are the ones that callers know."""
    tensors = [x for x in (q, k, v) if isinstance(x, torch.Tensor)]
    if len(tensors) < 3 or any(type(x) not in (torch.Tensor, torch.nn.Parameter) for x in tensors):
        return "tensors of another class"
    if dropout and not 0 < dropout <= 1:
        return "a dropout_p that is no probability"
    if q.dtype not in _TYPES or not q.dtype == k.dtype == v.dtype:
        return f"elements of {q.dtype}"
    if len({x.device for x in tensors}) > 1 or q.device.type not in ("cpu", "cuda"):
        return f"tensors on {q.device.type}"
    if q.is_cuda and q.dtype == torch.float32:
        return "elements of torch.float32 on a GPU"
    if min(x.dim() for x in tensors) < 2 or 0 in (q.shape[-1], v.shape[-1]):
        return "no columns"
    if 0 in (*q.shape[:-2], *k.shape[:-2]):
        return "an empty batch"
    return _find_mask_reason(mask, is_causal)


def _find_mask_reason(mask: Any, is_causal: bool) -> str:
    if mask is None:
        return ""
    if is_causal:
        return "a mask beside is_causal"
    if isinstance(mask, CausalBias):
        return ""
    is_summed = mask.requires_grad and torch.is_grad_enabled() and not mask.is_cpu
    if is_summed and torch.are_deterministic_algorithms_enabled():
        return "a mask with a gradient on a GPU, by deterministic algorithms"
    return "" if mask.dtype in (torch.bool, *_TYPES) else f"a mask of {mask.dtype}"


class _Shapes(NamedTuple):
    """(B, H, ...) of a call, and the batch dimensions that B folds."""

    batch: Tuple[int, ...]
    q_heads: int
    k_heads: int
    v_heads: int


def _find_shapes(q: Any, k: Any, v: Any, enable_gqa: bool) -> Optional[_Shapes]:
    """None for shapes that do not fit, which are PyTorch's to refuse."""
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        return None
    try:
        batch = torch.broadcast_shapes(*[x.shape[:-3] for x in (q, k, v)])
    except RuntimeError:
        return None
    heads = [x.shape[-3] if x.dim() > 2 else 1 for x in (q, k, v)]
    if enable_gqa:
        if min(x.dim() for x in (q, k, v)) < 3 or heads[0] % heads[1] or heads[0] % heads[2]:
            return None
    else:
        most = max(heads)
        if any(count not in (1, most) for count in heads):
            return None
        heads[0] = most
    return _Shapes(batch, *heads)


def _to_4d(x: Any, batch: Tuple[int, ...], heads: int) -> Any:
    x = x.reshape((1,) * max(0, 3 - x.dim()) + tuple(x.shape))
    x = x.expand(*batch, heads, *x.shape[-2:])
    x = x.reshape(math.prod(batch), *x.shape[-3:])
    # A kernel reads columns one after the other; on a GPU, of rows that are there.
    is_expanded = any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape))
    return x.contiguous() if x.stride(-1) != 1 or (is_expanded and x.is_cuda) else x


def _make_mask(mask: Any, shapes: _Shapes, m: int, n: int) -> dict:
    """score or mask of attn.attention, which read the tensor as it is."""
    if isinstance(mask, CausalBias):
        is_upper = mask.variant == CausalVariant.UPPER_LEFT
        return {"causal": "top_left" if is_upper else "bottom_right"}
    whole = (*shapes.batch, shapes.q_heads, m, n)
    mask = mask.reshape((1,) * (len(whole) - mask.dim()) + tuple(mask.shape))
    lead = mask.shape[:-3]
    if all(extent == 1 for extent in lead):
        table = mask.reshape(1, *mask.shape[-3:])
    else:
        table = mask.expand(*shapes.batch, *mask.shape[-3:])
        table = table.reshape(math.prod(shapes.batch), *mask.shape[-3:])
    read = read_table(table)
    if mask.dtype == torch.bool:
        return {"mask": read}
    return {"score": lambda s, b, h, i, j: s + read(b, h, i, j)}


def _fits(mask: Any, shapes: _Shapes, m: int, n: int) -> bool:
    if mask is None or isinstance(mask, CausalBias):
        return True
    whole = (*shapes.batch, shapes.q_heads, m, n)
    try:
        return torch.broadcast_shapes(mask.shape, whole) == torch.Size(whole)
    except RuntimeError:
        return False


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
) -> Any:
    """torch.nn.functional.scaled_dot_product_attention: the same arguments, shapes and results.

    Masks are read as they are given, never expanded. Every legal call is answered: where attn serves
    it not (f64, on a GPU f32...) by PyTorch, and `fallbacks` says why.
    """
    reason = _find_reason(query, key, value, attn_mask, dropout_p, is_causal)
    shapes = None if reason else _find_shapes(query, key, value, enable_gqa)
    if not reason and shapes is None:
        reason = "shapes that do not fit"
    m, n = query.shape[-2] if not reason else 0, key.shape[-2] if not reason else 0
    if not reason and shapes and not _fits(attn_mask, shapes, m, n):
        reason = "a mask that does not fit"
    if reason or shapes is None:
        fallbacks[reason] += 1
        return _sdpa(
            query,
            key,
            value,
            attn_mask=attn_mask,
            dropout_p=dropout_p,
            is_causal=is_causal,
            scale=scale,
            enable_gqa=enable_gqa,
        )
    batch, q_heads, k_heads, v_heads = shapes
    q = _to_4d(query, batch, q_heads)
    k, v = _to_4d(key, batch, k_heads), _to_4d(value, batch, v_heads)
    # One number of heads for keys and values.
    if k_heads != v_heads:
        both = math.lcm(k_heads, v_heads)
        both = both if q_heads % both == 0 else q_heads
        k, v = (x.repeat_interleave(both // x.shape[1], 1) for x in (k, v))
    how: dict = {"causal": "top_left"} if is_causal else {}
    if attn_mask is not None:
        how = _make_mask(attn_mask, shapes, m, n)
    if torch.compiler.is_dynamo_compiling() and ("score" in how or "mask" in how):
        functions = how.get("score"), how.get("mask")
        output, _ = _flex_node.attend(q, k, v, *functions, scale, dropout_p=dropout_p)
    else:
        output = attn.attention(q, k, v, scale=scale, dropout_p=dropout_p, **how)
    served["scaled_dot_product_attention"] += 1
    rank = max(query.dim(), key.dim(), value.dim())
    lead = (*batch, q_heads)[-(rank - 2) :] if rank > 2 else ()
    return output.reshape(*lead, m, value.shape[-1])


class Patch:
    """What `patch` did: undone by `undo`, or at the end of a with statement."""

    def __init__(self) -> None:
        self.before = torch.nn.functional.scaled_dot_product_attention
        torch.nn.functional.scaled_dot_product_attention = scaled_dot_product_attention

    def undo(self) -> None:
        torch.nn.functional.scaled_dot_product_attention = self.before

    def __enter__(self) -> "Patch":
        return self

    def __exit__(self, *exception: object) -> None:
        self.undo()


def patch() -> Patch:
    """Makes attn serve every call of torch.nn.functional.scaled_dot_product_attention."""
    return Patch()


def register_flash_attention(name: str = "attn") -> _flash.Provider:
    """Makes attn one of the flash attentions that torch.nn.attention knows, beside "FA3" and "FA4":

        register_flash_attention()
        torch.nn.attention.activate_flash_attention_impl("attn")
        ...  # F.scaled_dot_product_attention, nn.MultiheadAttention: where PyTorch takes flash attention
        torch.nn.attention.restore_flash_attention_impl()

    Of tensors on GPUs alone. Calls that attn does not serve (dropout, GPUs that are no Hopper) go to
    PyTorch's kernel, and `fallbacks` says why.

    Returns:
        What forgets it again: `undo()`, or the end of a with statement.

    Raises:
        Error: a PyTorch without such a registry, or a name that is taken.
    """
    return _flash.register(name, fallbacks)


# ===- flex_attention ----------------------------------------------------------------------------===#


class BlockMask:
    """The function of a mask and the lengths that it is for: attn derives the tiles by itself."""

    def __init__(self, mask_mod: Callable, seq_lengths: Tuple[int, int]) -> None:
        self.mask_mod, self.seq_lengths = mask_mod, seq_lengths

    def __repr__(self) -> str:
        return (
            f"BlockMask({getattr(self.mask_mod, '__name__', '?')}, seq_lengths={self.seq_lengths})"
        )


def create_block_mask(
    mask_mod: Callable,
    B: Optional[int],
    H: Optional[int],
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    **options: Any,
) -> BlockMask:
    """In place of torch.nn.attention.flex_attention.create_block_mask: nothing is computed."""
    return BlockMask(mask_mod, (Q_LEN, KV_LEN))


def _check_flex(query: Any, key: Any, block_mask: Any, enable_gqa: bool) -> None:
    if query.dim() != 4:
        raise ValueError(f"query: expected 4 dimensions, (B, H, M, D), got {tuple(query.shape)}")
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise ValueError(
            f"key: expected {query.shape[1]} heads, as the query has, got {key.shape[1]} "
            "(enable_gqa=True allows fewer)"
        )
    if block_mask is not None:
        lengths = (query.shape[2], key.shape[2])
        if tuple(block_mask.seq_lengths) != lengths:
            raise ValueError(
                f"block_mask: expected one of (M, N) = {lengths}, got one of "
                f"{tuple(block_mask.seq_lengths)}"
            )
        if getattr(block_mask.mask_mod, "__name__", "") == "_sliced_mask_mod_error":
            raise ValueError("block_mask: expected one with a function, got a slice of one")


def flex_attention(
    query: Any,
    key: Any,
    value: Any,
    score_mod: Optional[Callable] = None,
    block_mask: Any = None,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: Any = None,
) -> Any:
    """torch.nn.attention.flex_attention.flex_attention: the same arguments and results.

    `block_mask` is PyTorch's or create_block_mask's of this module; its function is traced, its lists
    of blocks are not read. Nothing need be compiled by torch.compile; under it, fullgraph=True too, the
    call is the operator attn::forward. Gradients follow for query, key and value, and on the CPU for
    the tensors that functions capture.
    """
    _check_flex(query, key, block_mask, enable_gqa)
    mask = None if block_mask is None else block_mask.mask_mod
    if getattr(mask, "__name__", "") == "noop_mask":
        mask = None
    wants_lse = return_lse or bool(return_aux is not None and return_aux.lse)
    if return_aux is not None and getattr(return_aux, "max_scores", False):
        refuse("return_aux", "lse", "max_scores", "attn keeps no row maxima")
    lse = None
    if torch.compiler.is_dynamo_compiling() and not (score_mod is None and mask is None):
        output, lse = _flex_node.attend(query, key, value, score_mod, mask, scale)
    else:
        output = attn.attention(
            query, key, value, scale=scale, score=score_mod, mask=mask, return_lse=wants_lse
        )
        served["flex_attention"] += 1
        if wants_lse:
            output, lse = output
    if return_aux is not None:
        return output, AuxOutput(lse=lse if wants_lse else None, max_scores=None)
    return (output, lse) if wants_lse else output
