"""PyTorch's own attention functions on attn:

    from attn.integrations.torch import scaled_dot_product_attention, flex_attention, varlen_attn
    with attn.integrations.torch.patch():  # or .undo()
        ...  # every call of torch.nn.functional.scaled_dot_product_attention
    attn.integrations.torch.register_flash_attention()  # for activate_flash_attention_impl("attn")

Calls that attn does not serve go to PyTorch, and `fallbacks` counts why.
"""

from __future__ import annotations

import math
from typing import Any, Callable, ContextManager, List, NamedTuple, Optional, Set, Tuple

import torch
from torch.nn.attention import flex_attention as _pytorch
from torch.nn.attention.bias import CausalBias, CausalVariant
from torch.overrides import handle_torch_function, has_torch_function

import attn

from .. import _flex_node
from .._indexing import Indexing, index_as
from .._library import refuse
from . import _context, _flash, _patch
from ._blocks import BlockMask, find_mask, is_for_any_length
from ._counts import count as _count
from ._counts import fallbacks, served
from ._order import find_order, is_rows_first, lay
from ._patch import Patch, pytorch_sdpa
from ._reasons import are_plain, find_sdpa_reason, find_tensor_reason
from ._tables import add_table, read_table
from ._varlen_attn import varlen_attn

__all__ = [
    "BlockMask",
    "Patch",
    "context_parallel",
    "context_parallel_unshard",
    "create_block_mask",
    "fallbacks",
    "flex_attention",
    "patch",
    "register_flash_attention",
    "scaled_dot_product_attention",
    "served",
    "varlen_attn",
]

# Also where somebody puts the function of this module in its place.
_pytorch_flex = _pytorch.flex_attention


# ===- scaled_dot_product_attention --------------------------------------------------------------===#


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
    if mask.dtype == torch.bool:
        return {"mask": read_table(table)}
    return {"score": add_table(table)}


def _fits(mask: Any, shapes: _Shapes, m: int, n: int) -> bool:
    if mask is None or isinstance(mask, CausalBias):
        return True
    whole = (*shapes.batch, shapes.q_heads, m, n)
    try:
        return torch.broadcast_shapes(mask.shape, whole) == torch.Size(whole)
    except RuntimeError:
        return False


def _call_pytorch(*arguments: Any, attn_mask: Any, is_causal: bool, **how: Any) -> Any:
    """PyTorch's answer, also while patch() is on."""
    if isinstance(attn_mask, CausalBias):
        # Its elements are never written: it is a name for one of these.
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        is_causal = attn_mask.variant == CausalVariant.UPPER_LEFT
        attn_mask = None if is_causal else attn_mask._materialize(arguments[0].device)
    how.update(attn_mask=attn_mask, is_causal=is_causal)
    tensors = [*arguments, *([] if attn_mask is None else [attn_mask])]
    if are_plain(*tensors) or torch.compiler.is_dynamo_compiling():
        return pytorch_sdpa(*arguments, **how)
    with _patch.hide():
        return pytorch_sdpa(*arguments, **how)


def _attend(
    q: Any, k: Any, v: Any, order: Any, functions: Any, wants_lse: bool = False, **how: Any
) -> Tuple[Any, Any]:
    """(output, lse or None), the output in that order of memory. `how` has scale, and may have causal
    and dropout_p."""
    rows_first = is_rows_first(order)
    if rows_first:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    score, mask = functions
    if torch.compiler.is_dynamo_compiling() and not (score is None and mask is None):
        how.update(rows_first=rows_first, from_end=True)
        output, lse = _flex_node.attend(q, k, v, score, mask, **how)
    else:
        found = attn.attention(
            q,
            k,
            v,
            score=index_as(score, Indexing.FROM_END),
            mask=index_as(mask, Indexing.FROM_END),
            layout="bshd" if rows_first else "bhsd",
            return_lse=wants_lse,
            dropout_p=how.pop("dropout_p", None) or 0.0,
            **how,
        )
        output, lse = found if wants_lse else (found, None)
    return lay(output.transpose(1, 2) if rows_first else output, order), lse


def _is_watched(tensors: Tuple) -> bool:
    """By a TorchFunctionMode, which has not seen this call of the function in PyTorch's place."""
    is_public = _patch.find_public() is scaled_dot_product_attention
    return is_public and has_torch_function(tensors) and are_plain(*tensors)


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

    Masks are read as they are given, never expanded. Every legal call is answered. PyTorch answers
    the calls that attn does not serve (f64 among them), and `fallbacks` says why.
    """
    how: dict = dict(attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal)
    how.update(scale=scale, enable_gqa=enable_gqa)
    tensors = query, key, value
    context = _context.find()
    if context is not None:
        return context.attend_sdpa(*tensors, **how)
    if not torch.compiler.is_dynamo_compiling() and _is_watched(tensors):
        return handle_torch_function(scaled_dot_product_attention, tensors, *tensors, **how)
    reason = find_sdpa_reason(*tensors, attn_mask, dropout_p, is_causal)
    shapes = None if reason else _find_shapes(query, key, value, enable_gqa)
    if not reason and shapes is None:
        reason = "shapes that do not fit"
    m, n = query.shape[-2] if not reason else 0, key.shape[-2] if not reason else 0
    if not reason and shapes and not _fits(attn_mask, shapes, m, n):
        reason = "a mask that does not fit"
    if reason or shapes is None:
        _count(fallbacks, reason)
        return _call_pytorch(*tensors, **how)
    batch, q_heads, k_heads, v_heads = shapes
    q = _to_4d(query, batch, q_heads)
    k, v = _to_4d(key, batch, k_heads), _to_4d(value, batch, v_heads)
    # One number of heads for keys and values.
    if k_heads != v_heads:
        both = math.lcm(k_heads, v_heads)
        both = both if q_heads % both == 0 else q_heads
        k, v = (x.repeat_interleave(both // x.shape[1], 1) for x in (k, v))
    made: dict = {"causal": "top_left"} if is_causal else {}
    if attn_mask is not None:
        made = _make_mask(attn_mask, shapes, m, n)
    # Of other calls PyTorch makes products of matrices, whose results lie as they come.
    is_kernel = query.dim() == 4 and q.shape == query.shape and q.shape[-1] == v.shape[-1]
    order = find_order(q) if is_kernel else (0, 1, 2)
    functions = made.get("score"), made.get("mask")
    how = dict(scale=scale, causal=made.get("causal", False), dropout_p=dropout_p)
    output, _ = _attend(q, k, v, order, functions, **how)
    _count(served, "scaled_dot_product_attention")
    rank = max(query.dim(), key.dim(), value.dim())
    lead = (*batch, q_heads)[-(rank - 2) :] if rank > 2 else ()
    return output if rank == 4 else output.reshape(*lead, m, value.shape[-1])


_patch.register_for_scripts(scaled_dot_product_attention)


def patch() -> Patch:
    """Makes attn serve every call of torch.nn.functional.scaled_dot_product_attention."""
    return Patch(scaled_dot_product_attention)


def register_flash_attention(name: str = "attn") -> _flash.Provider:
    """Makes attn one of the flash attentions that torch.nn.attention knows, such as "FA3" and
    "FA4":

        register_flash_attention()
        torch.nn.attention.activate_flash_attention_impl("attn")
        ...  # F.scaled_dot_product_attention, varlen_attn: where PyTorch takes flash attention
        torch.nn.attention.restore_flash_attention_impl()

    Only for tensors on GPUs. Calls that attn does not serve (dropout, GPUs other than Hopper) go to
    PyTorch's kernel, and `fallbacks` says why.

    Returns:
        An object whose `undo()` takes it back; so does the end of a with statement.

    Raises:
        Error: a PyTorch without such a registry, or a name that is taken.
    """
    return _flash.register(name, fallbacks)


# ===- flex_attention ----------------------------------------------------------------------------===#


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
    return BlockMask(mask_mod, (Q_LEN, KV_LEN), B, H)


def _check_flex(query: Any, key: Any, block_mask: Any, enable_gqa: bool) -> None:
    if query.dim() != 4:
        raise ValueError(f"query: expected 4 dimensions, (B, H, M, D), got {tuple(query.shape)}")
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise ValueError(
            f"key: expected {query.shape[1]} heads, as the query has, got {key.shape[1]} "
            "(enable_gqa=True allows fewer)"
        )
    if query.shape[0] != key.shape[0] and (key.shape[0] != 1 or block_mask is None):
        raise ValueError(
            f"key: expected {query.shape[0]} batches, as the query has, or one beside a block_mask, "
            f"got {key.shape[0]}"
        )
    if block_mask is not None:
        lengths = (query.shape[2], key.shape[2])
        if tuple(block_mask.seq_lengths) != lengths and not is_for_any_length(block_mask):
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
    """torch.nn.attention.flex_attention.flex_attention: the same arguments and results. PyTorch
    answers the calls that attn does not serve (f64, row maxima), and `fallbacks`
    says why.

    `block_mask` is PyTorch's, or that of create_block_mask of this module. Its function is traced.
    The lists of blocks of a mask of PyTorch's are honoured too: where they keep less than the
    function, a kernel reads them as one more mask. That is looked up once for each block mask, and
    assumed under torch.compile. A mask of this module has no lists.

    Nothing need be compiled by torch.compile. Under it, fullgraph=True too, the call is the
    operator attn::forward. Gradients are computed for query, key and value, and on the CPU for the
    tensors that functions capture.
    """
    reason = find_tensor_reason(query, key, value)
    if return_aux is not None and getattr(return_aux, "max_scores", False):
        reason = reason or "maxima of rows"
    context = _context.find()
    if context is not None:
        if reason == "maxima of rows":
            refuse("return_aux", "no max_scores under context_parallel", "max_scores")
        found = context.attend_flex(query, key, value, score_mod, block_mask, scale, enable_gqa)
        return _return(*found, return_lse, return_aux)
    if reason:
        _count(fallbacks, reason)
        if isinstance(block_mask, BlockMask):
            block_mask = block_mask.to_pytorch(query.device)
        how = score_mod, block_mask, scale, enable_gqa, return_lse, kernel_options
        more = {} if return_aux is None else {"return_aux": return_aux}
        return _pytorch_flex(query, key, value, *how, **more)
    _check_flex(query, key, block_mask, enable_gqa)
    mask = find_mask(block_mask, (query.shape[2], key.shape[2]))
    wants_lse = return_lse or bool(return_aux is not None and return_aux.lse)
    batch = query.shape[:1]
    q, k, v = (_to_4d(x, batch, x.shape[1]) for x in (query, key, value))
    functions = score_mod, mask
    output, lse = _attend(q, k, v, find_order(query), functions, wants_lse, scale=scale)
    _count(served, "flex_attention")
    return _return(output, lse, return_lse, return_aux)


def _return(output: Any, lse: Any, return_lse: bool, return_aux: Any) -> Any:
    """What a caller asked for."""
    if return_aux is not None:
        return output, _pytorch.AuxOutput(lse=lse if return_lse or return_aux.lse else None, max_scores=None)
    return (output, lse) if return_lse else output


# ===- context_parallel --------------------------------------------------------------------------===#


def context_parallel(
    mesh: Any,
    *,
    buffers: Optional[List[Any]] = None,
    buffer_seq_dims: Optional[List[int]] = None,
    no_restore_buffers: Optional[Set[Any]] = None,
    method: str = "gather",
) -> ContextManager[None]:
    """torch.distributed.tensor.experimental.context_parallel: the same arguments, the same order of positions.

        with attn.integrations.torch.context_parallel(mesh, buffers=[x, y], buffer_seq_dims=[1, 1]):
            loss = model(x, y)
            loss.backward()

    Inside, `buffers` hold this rank's part of the sequence, and calls of scaled_dot_product_attention and
    flex_attention, of torch.nn and of this module, are about the whole of it. Compared with PyTorch's, the
    length need not be a multiple of anything, heads of keys may be fewer (enable_gqa), flex_attention is
    served with the score_mod and block_mask of the whole sequence, and nothing is materialized.

    Args:
        mesh: a DeviceMesh of one dimension.
        buffers: tensors with the sequence along `buffer_seq_dims`, all of one length, which are sharded in
            place and restored at the end. The first tells the length.
        no_restore_buffers: those that stay as they are.
        method: how keys move, as for `attn.distributed.plan`.

    A function that a program imported from PyTorch by name before, such as `from
    torch.nn.attention.flex_attention import flex_attention`, is PyTorch's, and knows nothing of this.

    Raises:
        Error: buffers that do not fit; a call inside with a mask, dropout or lengths that are not served.
    """
    functions = scaled_dot_product_attention, flex_attention
    return _context.enter(mesh, buffers, buffer_seq_dims, no_restore_buffers, functions, method)


def context_parallel_unshard(
    mesh: Any, buffers: List[Any], seq_dims: List[int], load_balancer: Any = None
) -> List[Any]:
    """torch.distributed.tensor.experimental's: the whole of tensors that `context_parallel` shards, on every rank,
    without gradients. `load_balancer` has to be None."""
    if load_balancer is not None:
        refuse("load_balancer", "None: context_parallel has the order of PyTorch's default", "one")
    return _context.unshard(mesh, buffers, seq_dims)
