"""Attention for engines that serve: keys and values in pages, and sequences of any lengths.

    output = attn.serving.paged_attention(
        q, k_cache, v_cache, page_table=page_table, seqused_k=seqused_k
    )
    output = attn.serving.varlen_attention(
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q=512, max_seqlen_k=512
    )

Nothing is gathered: the kernel follows tables and offsets. No call looks at what tensors of a device
hold, so a CUDA graph replays it for other lengths and other tables.
"""

from __future__ import annotations

from typing import Any, Dict, Literal, Optional, Tuple, Union, overload

from . import _arrays, _cascade, _dynamo
from ._cache import Rotary, append, find_slots, rotate
from ._given import Given
from ._library import refuse
from ._merge import merge
from ._paged import check_shapes, find_paged_plan, make_mask, make_shift
from ._places import get_ordinal, name_device
from ._problem import Spec, check_window
from ._serving_how import (
    add_fixed_split,
    check_how,
    check_layout,
    check_library,
    check_out,
    make_score,
)
from ._serving_plan import Plan
from ._varlen import Asked, Varlen, check_call, prepare, run_ragged
from ._virtual_cache import CacheArray, VirtualCache
from .typing import Array, ArrayT, Mask, OptionsLike, Score, Window

__all__ = [
    "CacheArray",
    "Plan",
    "Rotary",
    "VirtualCache",
    "append",
    "cascade_attention",
    "find_slots",
    "paged_attention",
    "rotate",
    "varlen_attention",
]


@overload
def paged_attention(
    q: ArrayT,
    k_cache: ArrayT,
    v_cache: ArrayT,
    *,
    page_table: Array,
    seqused_k: Array,
    kv_layout: Literal["NHD", "HND"] = "NHD",
    scale: Optional[float] = None,
    causal: bool = True,
    window: Optional[Window] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Optional[Array] = None,
    sink: Optional[Array] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    plan: Optional[Plan] = None,
    out: Optional[ArrayT] = None,
    return_lse: Literal[False] = False,
    options: OptionsLike = None,
    fixed_split: Optional[int] = None,
) -> ArrayT: ...


@overload
def paged_attention(
    q: ArrayT,
    k_cache: ArrayT,
    v_cache: ArrayT,
    *,
    page_table: Array,
    seqused_k: Array,
    kv_layout: Literal["NHD", "HND"] = "NHD",
    scale: Optional[float] = None,
    causal: bool = True,
    window: Optional[Window] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Optional[Array] = None,
    sink: Optional[Array] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    plan: Optional[Plan] = None,
    out: Optional[ArrayT] = None,
    return_lse: Literal[True],
    options: OptionsLike = None,
    fixed_split: Optional[int] = None,
) -> Tuple[ArrayT, ArrayT]: ...


@overload
def paged_attention(
    q: ArrayT,
    k_cache: ArrayT,
    v_cache: ArrayT,
    *,
    page_table: Array,
    seqused_k: Array,
    kv_layout: Literal["NHD", "HND"] = "NHD",
    scale: Optional[float] = None,
    causal: bool = True,
    window: Optional[Window] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Optional[Array] = None,
    sink: Optional[Array] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    plan: Optional[Plan] = None,
    out: Optional[ArrayT] = None,
    return_lse: bool,
    options: OptionsLike = None,
    fixed_split: Optional[int] = None,
) -> Union[ArrayT, Tuple[ArrayT, ArrayT]]: ...


@_dynamo.disable
def paged_attention(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    *,
    page_table: Array,
    seqused_k: Array,
    kv_layout: Literal["NHD", "HND"] = "NHD",
    scale: Optional[float] = None,
    causal: bool = True,
    window: Optional[Window] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Optional[Array] = None,
    sink: Optional[Array] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    plan: Optional[Plan] = None,
    out: Any = None,
    return_lse: bool = False,
    options: OptionsLike = None,
    fixed_split: Optional[int] = None,
) -> Any:
    """Attention of the last rows of sequences to their keys, which lie in pages.

    Key n of sequence b is row n % P of page page_table[b, n // P].

    Args:
        q: queries, (B, Sq, H, D), or (B, H, D) of one row each. They are the last Sq positions of
            their sequences. float32, float16 or bfloat16 on the CPU, float16 or bfloat16 on a GPU.
        k_cache: pages of keys, (Np, P, Hkv, D). H is a multiple of Hkv. Strides are free, except
            that the last dimension is contiguous: a layer of a larger cache, or one half of a tensor of
            keys and values, is taken as a view. Nothing is copied. P is any number; on a GPU strides
            are multiples of 16 bytes, and multiples of 16 keys are read by fewer instructions.
        v_cache: pages of values, (Np, P, Hkv, Dv).
        page_table: (B, C), int32 or int64. Sequences may share pages. Entries that no kept key needs
            may hold anything, -1 and garbage too.
        seqused_k: (B,), int32 or int64: the keys of each sequence, those of its own rows included.
            Keys past C * P do not exist.
        kv_layout: "NHD" as above, or "HND": pages are (Np, Hkv, P, D).
        scale: factor of the products; 1 / sqrt(D) if None.
        causal: whether a row keeps the keys up to its own position only. The last row is at key
            seqused_k[b] - 1.
        window: (left, right), the numbers of keys kept before and after a row's position. None or -1
            is no bound.
        softcap: scores become softcap * tanh(score / softcap).
        alibi_slopes: (H,) or (B, H): scores lose the slope times the distance of key and row.
        sink: (H,), one more logit for each head. The logit has no value.
        score: score(s, b, h, q, kv), after softcap and slopes; as for `attn.attention`. Rows count
            from 0.
        mask: mask(b, h, q, kv), besides lengths, causal and window.
        plan: an `attn.serving.Plan`, for what the layers of a model compute alike.
        out: where the output goes, of the shape of q with Dv columns.
        return_lse: also return the logsumexp, (B, H, Sq) float32, or (B, H) where q has no rows.
        options: as for `attn.attention`.
        fixed_split: F keys of a part. The keys of a sequence are summed in parts of F from its first key
            on. The bits of a row then do not depend on the batch, on other sequences, on the pages or
            on C. F is a multiple of 16, and of block_n if options have it. There are C * P / F parts,
            which take memory and blocks whether a sequence has so many or not.

    Returns:
        The output, in the type, library and device of q; or (output, lse). A row that keeps no key
        gives 0 and -inf.

    Raises:
        Error: an argument that does not fit, by its name. Nobody looks at what tables and lengths
            hold: wrong ones give wrong results, and never an access outside of the caches.
    """
    is_rows_first = check_layout(kv_layout)
    check_library(q=q, k_cache=k_cache, v_cache=v_cache)
    check_library(page_table=page_table, seqused_k=seqused_k)
    page = check_shapes(q, k_cache, v_cache, page_table, seqused_k, is_rows_first)
    if alibi_slopes is not None:
        check_library(alibi_slopes=alibi_slopes)
    check_how(causal, softcap, alibi_slopes)
    if out is not None:
        check_out(out, q, v_cache)
    capped = float(softcap) if softcap else None
    device = get_ordinal(q)
    spec = Spec(
        q.dtype,
        int(q.shape[-1]),
        int(v_cache.shape[-1]),
        name_device(device),
        score=make_score(make_shift(seqused_k), capped, alibi_slopes, score),
        mask=make_mask(seqused_k, causal, check_window(window), mask),
        has_scale=scale is not None,
        has_sink=sink is not None,
        return_lse=return_lse,
    )
    table = _arrays.type_name(page_table.dtype) or ""
    options = add_fixed_split(options, fixed_split)
    kernel, captured = find_paged_plan(spec, page, table, options)
    is_one_row = len(q.shape) == 3
    rows = q[:, None] if is_one_row else q
    place = out[:, None] if out is not None and is_one_row else out
    given = Given(rows, k_cache, v_cache, scale, sink, is_rows_first, captured)
    results = kernel.run_paged(given, page_table, place, plan)
    output, lse = results if return_lse else (results, None)
    if is_one_row:
        output = output[:, 0]
        lse = lse if lse is None else lse[..., 0]
    output = output if out is None else out
    return (output, lse) if return_lse else output


@overload
def cascade_attention(
    q: ArrayT,
    k_cache: ArrayT,
    v_cache: ArrayT,
    *,
    page_table: Array,
    seqused_k: Array,
    shared_pages: int,
    kv_layout: Literal["NHD", "HND"] = "NHD",
    scale: Optional[float] = None,
    causal: bool = True,
    window: Optional[Window] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Optional[Array] = None,
    sink: Optional[Array] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    return_lse: Literal[False] = False,
    options: OptionsLike = None,
) -> ArrayT: ...


@overload
def cascade_attention(
    q: ArrayT,
    k_cache: ArrayT,
    v_cache: ArrayT,
    *,
    page_table: Array,
    seqused_k: Array,
    shared_pages: int,
    kv_layout: Literal["NHD", "HND"] = "NHD",
    scale: Optional[float] = None,
    causal: bool = True,
    window: Optional[Window] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Optional[Array] = None,
    sink: Optional[Array] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    return_lse: Literal[True],
    options: OptionsLike = None,
) -> Tuple[ArrayT, ArrayT]: ...


@overload
def cascade_attention(
    q: ArrayT,
    k_cache: ArrayT,
    v_cache: ArrayT,
    *,
    page_table: Array,
    seqused_k: Array,
    shared_pages: int,
    kv_layout: Literal["NHD", "HND"] = "NHD",
    scale: Optional[float] = None,
    causal: bool = True,
    window: Optional[Window] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Optional[Array] = None,
    sink: Optional[Array] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    return_lse: bool,
    options: OptionsLike = None,
) -> Union[ArrayT, Tuple[ArrayT, ArrayT]]: ...


@_dynamo.disable
def cascade_attention(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    *,
    page_table: Any,
    seqused_k: Any,
    shared_pages: int,
    kv_layout: Literal["NHD", "HND"] = "NHD",
    scale: Optional[float] = None,
    causal: bool = True,
    window: Optional[Window] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Optional[Array] = None,
    sink: Optional[Array] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    return_lse: bool = False,
    options: OptionsLike = None,
) -> Any:
    """`paged_attention` of sequences that begin with the same pages, which are read once for all of them.

    The rows of all sequences attend to the shared keys as rows of one sequence. Each sequence then attends
    to its own keys, and `attn.merge` joins both. Results are those of `paged_attention`, up to rounding.

    Args:
        shared_pages: how many first columns of page_table are the same in all rows, 0 to C - 1. Those of
            the first row are read. Every sequence has shared_pages * P + Sq keys or more: a row of a
            shorter one keeps all shared keys.
        q, k_cache, v_cache, page_table, seqused_k, kv_layout, scale, causal, window, softcap,
            alibi_slopes, sink, score, mask, return_lse, options: as for `paged_attention`. Functions
            see the same positions as there.

    Returns:
        As `paged_attention`.

    Raises:
        Error: an argument that does not fit, by its name.
    """
    how: Dict[str, Any] = dict(kv_layout=kv_layout, scale=scale, softcap=softcap, options=options)
    own: Dict[str, Any] = dict(causal=causal, window=window, alibi_slopes=alibi_slopes, sink=sink)
    is_rows_first = check_layout(kv_layout)
    check_library(q=q, k_cache=k_cache, v_cache=v_cache)
    check_library(page_table=page_table, seqused_k=seqused_k)
    page = check_shapes(q, k_cache, v_cache, page_table, seqused_k, is_rows_first)
    if alibi_slopes is not None:
        check_library(alibi_slopes=alibi_slopes)
    check_how(causal, softcap, alibi_slopes)
    columns = int(page_table.shape[1])
    is_count = isinstance(shared_pages, int) and not isinstance(shared_pages, bool)
    if not is_count or not 0 <= shared_pages < max(columns, 1):
        refuse("shared_pages", f"0 to {max(columns, 1) - 1}, columns before the last", shared_pages)
    pools: Dict[str, Any] = dict(k_cache=k_cache, v_cache=v_cache)
    if not shared_pages or not int(q.shape[0]):
        whole: Dict[str, Any] = dict(page_table=page_table, seqused_k=seqused_k, score=score, mask=mask)
        return paged_attention(q, **pools, **whole, **own, **how, return_lse=return_lse)
    rows = q[:, None] if len(q.shape) == 3 else q
    batch, count, heads, d = (int(x) for x in rows.shape)
    shared_score, shared_mask = _cascade.make_shared_functions(
        seqused_k, count, check_window(window), alibi_slopes, score, mask
    )
    begin = _cascade.fill(seqused_k, shared_pages * page)
    shared, shared_lse = paged_attention(
        rows.reshape(1, batch * count, heads, d),
        **pools,
        page_table=page_table[:1, :shared_pages],
        seqused_k=begin,
        causal=False,
        score=shared_score,
        mask=shared_mask,
        **how,
        return_lse=True,
    )
    found, lse = paged_attention(
        rows,
        **pools,
        page_table=page_table[:, shared_pages:],
        seqused_k=seqused_k - begin,
        score=_cascade.make_own_score(begin, score),
        mask=_cascade.make_own_mask(begin, mask),
        **own,
        **how,
        return_lse=True,
    )
    parts = [shared.reshape(found.shape), found], [_cascade.split_lse(shared_lse, batch), lse]
    output, lse = merge(*parts, layout="bshd")
    if rows is not q:
        output, lse = output[:, 0], lse[..., 0]
    return (output, lse) if return_lse else output


@overload
def varlen_attention(
    q: ArrayT,
    k: ArrayT,
    v: ArrayT,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    *,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: Optional[float] = None,
    causal: bool = False,
    window: Optional[Window] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Optional[Array] = None,
    sink: Optional[Array] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    out: Optional[ArrayT] = None,
    return_lse: Literal[False] = False,
    options: OptionsLike = None,
    fixed_split: Optional[int] = None,
) -> ArrayT: ...


@overload
def varlen_attention(
    q: ArrayT,
    k: ArrayT,
    v: ArrayT,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    *,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: Optional[float] = None,
    causal: bool = False,
    window: Optional[Window] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Optional[Array] = None,
    sink: Optional[Array] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    out: Optional[ArrayT] = None,
    return_lse: Literal[True],
    options: OptionsLike = None,
    fixed_split: Optional[int] = None,
) -> Tuple[ArrayT, ArrayT]: ...


@overload
def varlen_attention(
    q: ArrayT,
    k: ArrayT,
    v: ArrayT,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    *,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: Optional[float] = None,
    causal: bool = False,
    window: Optional[Window] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Optional[Array] = None,
    sink: Optional[Array] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    out: Optional[ArrayT] = None,
    return_lse: bool,
    options: OptionsLike = None,
    fixed_split: Optional[int] = None,
) -> Union[ArrayT, Tuple[ArrayT, ArrayT]]: ...


def varlen_attention(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    *,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: Optional[float] = None,
    causal: bool = False,
    window: Optional[Window] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Optional[Array] = None,
    sink: Optional[Array] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    out: Any = None,
    return_lse: bool = False,
    options: OptionsLike = None,
    fixed_split: Optional[int] = None,
) -> Any:
    """Attention of sequences of any lengths, which lie one after the other.

    PyTorch's autograd records calls: q, k and v have gradients, with zeros in rows of no sequence.
    torch.compile sees an operator, attn::varlen, of calls without score, mask, out, options and fixed_split, and
    ends a graph at others.

    Args:
        q: rows of all queries, (T, H, D). float32, float16 or bfloat16 on the CPU, float16 or bfloat16
            on a GPU. Strides are free, except that the last dimension is contiguous.
        k: rows of all keys, (Tk, Hkv, D). H is a multiple of Hkv.
        v: rows of all values, (Tk, Hkv, Dv).
        cu_seqlens_q: (B + 1,), int32 or int64: sequence b has rows cu_seqlens_q[b] to
            cu_seqlens_q[b + 1] - 1. On a GPU there are at most 65535 sequences.
        cu_seqlens_k: the same of keys and values.
        max_seqlen_q: the most rows of a sequence. A longer one is cut, and its other rows have no
            result.
        max_seqlen_k: the most keys of a sequence. Further keys of a longer one are dropped.
        scale: factor of the products; 1 / sqrt(D) if None.
        causal: whether a row keeps the keys up to its own position only. The last row of a sequence
            is at its last key.
        window: (left, right), the numbers of keys kept before and after a row's position. None or -1
            is no bound.
        softcap: scores become softcap * tanh(score / softcap).
        alibi_slopes: (H,) or (B, H): scores lose the slope times the distance of key and row.
        sink: (H,), one more logit for each head. The logit has no value.
        score: score(s, b, h, q, kv), after softcap and slopes; as for `attn.attention`. Rows and keys
            count from 0 in each sequence.
        mask: mask(b, h, q, kv), besides causal and window.
        out: where the output goes, (T, H, Dv). Rows of no sequence keep what they hold.
        return_lse: also return the logsumexp, (T, H) float32.
        options: as for `attn.attention`.
        fixed_split: as for `paged_attention`, of max_seqlen_k keys. Gradients do not know it.

    Returns:
        The output, in the type, library and device of q; or (output, lse). A row that keeps no key
        gives 0 and -inf. Rows of no sequence may hold anything, but for those of `out`.

    Raises:
        Error: an argument that does not fit, by its name, or one that requires a gradient and is not
            q, k or v. Nobody looks at what offsets hold: wrong ones mean other rows, and never an
            access outside of the tensors.
    """
    options = add_fixed_split(options, fixed_split)
    if alibi_slopes is not None:
        check_library(alibi_slopes=alibi_slopes)
    check_how(causal, softcap, alibi_slopes)
    sides = check_window(window) or (-1, -1)
    most = max_seqlen_q, max_seqlen_k
    tensors = q, k, v, cu_seqlens_q, cu_seqlens_k, alibi_slopes, sink
    call = Varlen(*tensors, *most, scale, causal, *sides, float(softcap or 0.0))
    is_plain = score is None and mask is None and out is None and not options
    if _dynamo.is_compiling() and is_plain:
        # It imports PyTorch, which is there.
        from . import _varlen_operator

        return _varlen_operator.attend(call, return_lse)
    return _attend_varlen(call, Asked(score, mask, return_lse, options), out)


@_dynamo.disable
def _attend_varlen(call: Varlen, asked: Asked, out: Any) -> Any:
    check_call(call)
    if out is not None:
        check_out(out, call.q, call.v)
    output, lse = run_ragged(*prepare(call, asked), out)
    return (output, lse) if asked.return_lse else output
