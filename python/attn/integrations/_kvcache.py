"""flash_attn_with_kvcache: rows of each batch against a cache that is filled up to a length of its own. The
lengths stay on the device; nothing waits for them."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple, Union

import torch

import attn

from .. import _flex_node
from .._cache import Rotary
from .._library import refuse
from .._serving_how import add_fixed_split
from ._append import New, Turn, append, read_new, turn_rows
from ._arguments import (
    Window,
    check_floats,
    check_integers,
    check_matrices,
    check_softcap,
    check_tensor,
    read_margin,
    read_window,
    refuse_others,
)
from ._bounds import Sequences
from ._order import to_dense
from ._pages import (
    Pages,
    attend_pages,
    attend_pages_ragged,
    check_most,
    check_table,
    make_padding,
)
from ._record_rows import attend_rows
from ._rows import make_results
from ._rows_schema import SAME_BITS_SPLIT, How, make_forward
from ._score import make_score
from ._varlen import check_slopes


def _make_mask(length: Any, shift: Any, begin: Any, window: Window) -> Callable:
    """Keys below the length, in the window around row + shift, from `begin` on; tensors of a number for
    each batch."""
    left, right = window

    def keep(b: Any, h: Any, q: Any, kv: Any) -> Any:
        kept = kv < length[b]
        if right is not None:
            kept = kept & (kv <= q + shift[b] + right)
        if left is not None:
            kept = kept & (kv >= q + shift[b] - left)
        if begin is not None:
            kept = kept & (kv >= begin[b])
        return kept

    return keep


def _make_causal(shift: Any, begin: Any) -> Callable:
    """The same without a left side and with 0 on the right: no row stands beyond the length."""

    def keep(b: Any, h: Any, q: Any, kv: Any) -> Any:
        kept = kv <= q + shift[b]
        return kept if begin is None else kept & (kv >= begin[b])

    return keep


class _Cache(NamedTuple):
    k: Any
    v: Any
    # How many keys are filled: a number that all batches share, or a tensor of a number for each.
    length: Any
    # The first key of each batch that counts; None: all do.
    begin: Any


def _fill(length: Any, count: int, like: Any) -> Any:
    """The length, or the number that all batches share, as a tensor of a number for each batch."""
    if not isinstance(length, int):
        return length
    return torch.full((count,), length, dtype=torch.int32, device=like.device)


def _attend(
    q: Any, cache: _Cache, window: Window, how: How, texts: Optional[Dict[str, int]]
) -> Tuple[Any, Any]:
    """`texts` are options of the compiler."""
    k, v, length, begin = cache
    if 0 in q.shape[:2]:
        # Captured tensors have an element at least.
        return make_results(q, v)
    shift = mask = None
    causal: Any = False
    if isinstance(length, int):
        # No kernel need know it.
        k, v = k[:, :length], v[:, :length]
        if begin is not None:
            mask = lambda b, h, q, kv: kv >= begin[b]  # noqa: E731
        if how.slopes is not None:
            shift = _fill(length - q.shape[1], q.shape[0], q)
        causal = window == (None, 0)
        sides = None if causal or window == (None, None) else window
    else:
        sides = None
        shift = length - q.shape[1]
        is_causal = window == (None, 0)
        mask = _make_causal(shift, begin) if is_causal else _make_mask(length, shift, begin, window)
    score = make_score(how.softcap, how.slopes, shift=shift)
    q, k, v = (to_dense(x) for x in (q, k, v))
    texts = add_fixed_split(texts, how.fixed_split)
    options = dict(scale=how.scale, causal=causal, window=sides, sink=how.sink, options=texts)
    if torch.compiler.is_dynamo_compiling() and not (score is None and mask is None):
        return _flex_node.attend(q, k, v, score, mask, rows_first=True, **options)
    return attn.attention(
        q, k, v, score=score, mask=mask, layout="bshd", return_lse=True, **options
    )


def _read_lengths(cache_seqlens: Any, q: Any, capacity: int, num_batches: int) -> Any:
    """A number, or a tensor of int32."""
    if cache_seqlens is None:
        return capacity
    if isinstance(cache_seqlens, int):
        if not 0 <= cache_seqlens <= capacity:
            refuse("cache_seqlens", f"0 to {capacity}, keys of a batch", cache_seqlens)
        return cache_seqlens
    check_integers("cache_seqlens", cache_seqlens, q, num_batches)
    return cache_seqlens


def flash_attn_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k: Optional[torch.Tensor] = None,
    v: Optional[torch.Tensor] = None,
    rotary_cos: Optional[torch.Tensor] = None,
    rotary_sin: Optional[torch.Tensor] = None,
    cache_seqlens: Optional[Union[int, torch.Tensor]] = None,
    cache_batch_idx: Optional[torch.Tensor] = None,
    cache_leftpad: Optional[torch.Tensor] = None,
    block_table: Optional[torch.Tensor] = None,
    softmax_scale: Optional[float] = None,
    causal: bool = False,
    window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: Optional[torch.Tensor] = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
    *,
    learnable_sink: Optional[torch.Tensor] = None,
    page_table: Optional[torch.Tensor] = None,
    cu_seqlens_q: Optional[torch.Tensor] = None,
    max_seqlen_q: Optional[int] = None,
    cu_seqlens_k_new: Optional[torch.Tensor] = None,
    rotary_seqlens: Optional[torch.Tensor] = None,
    qv: Optional[torch.Tensor] = None,
    q_descale: Optional[torch.Tensor] = None,
    k_descale: Optional[torch.Tensor] = None,
    v_descale: Optional[torch.Tensor] = None,
    attention_chunk: int = 0,
    scheduler_metadata: Optional[torch.Tensor] = None,
    pack_gqa: Optional[bool] = None,
    sm_margin: int = 0,
) -> Any:
    """q (B, M, H, D), k_cache (B, S, Hkv, D), v_cache (B, S, Hkv, Dv); returns (B, M, H, Dv), and with
    return_softmax_lse also (B, H, M), natural logarithms. There are no gradients, as there.

    cache_seqlens says how many keys of each batch are filled: an integer, or int32 (B,) on the device of
    q, which is never read on the host; all if None. Rows of the cache beyond may hold anything. k and v
    (B, S', Hkv, D) are written into the cache after these first, and count. With cu_seqlens_k_new, int32
    (B + 1,), they are (T', Hkv, D), the new keys of sequence b from cu_seqlens_k_new[b] on. `causal` and
    `window_size` count from the last row and the last key of each batch. cache_leftpad, int32 (B,), is the
    first key that counts. cache_batch_idx, int32 (B,), says which batches of the cache are meant, and copies
    them: caches in the order of the batch are faster. With cu_seqlens_q, q is (T, H, D), the rows of
    sequence b from cu_seqlens_q[b] on, and lse is (H, T).

    rotary_cos and rotary_sin, (positions, R / 2), rotate the first R columns of q and of the new k, whose first
    rows are at position cache_seqlens, or at rotary_seqlens, int32 (B,). Without causal and window, all rows
    of q are at the first one's position. rotary_interleaved says that columns 2 i and 2 i + 1 are a pair.

    With block_table (here) or page_table (FlashAttention-3), int32 (B, C), the caches are pools of
    pages, (Np, P, Hkv, D) and (Np, P, Hkv, Dv): key n of batch b is row n % P of page
    block_table[b, n // P]. Entries that no key needs may hold anything.
    With cu_seqlens_q too, max_seqlen_q says how many rows a sequence has at most, and q is copied.
    A call with pages ends a graph of torch.compile.

    num_splits=1 gives a row the same bits in every batch, as there, by parts of 4096 keys
    (attn.serving.paged_attention has fixed_split); rows of sequences, with cu_seqlens_q, need pages for that.
    Other num_splits, pack_gqa and scheduler_metadata choose kernels there, and nothing here; so does max_seqlen_q
    without pages. sm_margin is the option `reserve`; kernels of pages and of rows of sequences leave their
    multiprocessors by themselves.

    Raises:
        Error: an argument that does not fit, or one that attn does not serve: qv, the descales,
            attention_chunk, and cache_batch_idx with pages.
    """
    refuse_others(
        dict(
            qv=qv,
            q_descale=q_descale,
            k_descale=k_descale,
            v_descale=v_descale,
            attention_chunk=attention_chunk,
        )
    )
    is_ragged = cu_seqlens_q is not None
    is_paged = block_table is not None or page_table is not None
    cache_dims = "Np, P, Hkv, D" if is_paged else "B, S, H, D"
    check_tensor("q", q, "T, H, D" if is_ragged else "B, S, H, D")
    for name, x in (("k_cache", k_cache), ("v_cache", v_cache)):
        check_tensor(name, x, cache_dims)
    check_matrices(("q", "k_cache", "v_cache"), q, k_cache, v_cache)
    if is_ragged:
        check_integers("cu_seqlens_q", cu_seqlens_q, q)
        num_batches = cu_seqlens_q.shape[0] - 1
    else:
        num_batches = q.shape[0]
    table, capacity = None, k_cache.shape[1]
    if is_paged:
        table = _read_table(block_table, page_table, cache_batch_idx, q, num_batches)
        capacity *= table.shape[1]
        if is_ragged:
            check_most(max_seqlen_q)
    elif cache_batch_idx is not None:
        check_integers("cache_batch_idx", cache_batch_idx, q, num_batches, is_wide=True)
    elif k_cache.shape[0] != num_batches:
        refuse("k_cache", f"{num_batches} batches, as q has", k_cache.shape[0])
    if cache_leftpad is not None:
        check_integers("cache_leftpad", cache_leftpad, q, num_batches)
    check_slopes(alibi_slopes, q, num_batches)
    check_floats("learnable_sink", learnable_sink, q, (q.shape[-2],))
    window, softcap = read_window(window_size, causal), check_softcap(softcap)
    texts = read_margin(sm_margin)
    lengths = _read_lengths(cache_seqlens, q, capacity, num_batches)
    new = None
    if k is not None or v is not None:
        free = capacity - (lengths if isinstance(lengths, int) else 0)
        new = read_new(k, v, (k_cache, v_cache), num_batches, cu_seqlens_k_new, free)
    elif cu_seqlens_k_new is not None:
        refuse("cu_seqlens_k_new", "None without new keys", "a tensor")
    tables = rotary_cos, rotary_sin, rotary_seqlens, rotary_interleaved
    turn = _read_turn(tables, q, new, lengths, window)
    fixed = SAME_BITS_SPLIT if num_splits == 1 else None
    how = How(softmax_scale, softcap, alibi_slopes, learnable_sink, fixed_split=fixed)
    with torch.no_grad():
        if turn is not None:
            turn = turn._replace(begin=_fill(turn.begin, num_batches, q))
            q = turn_rows(q, cu_seqlens_q, turn)
        if is_paged:
            pages = Pages(k_cache, v_cache, table, _fill(lengths, num_batches, q), cache_leftpad)
            if new is not None:
                append((k_cache, v_cache), new, pages.length, table, turn)
                pages = pages._replace(length=pages.length + new.count)
            if is_ragged:
                padding = make_padding(q.shape[0], cu_seqlens_q, None, max_seqlen_q)
                found = attend_pages_ragged(q, padding, pages, window, how)
            else:
                found = attend_pages(q, pages, window, how)
        else:
            cache = _Cache(k_cache, v_cache, lengths, cache_leftpad)
            cache = _fill_and_choose(cache, new, cache_batch_idx, num_batches, turn)
            if is_ragged:
                found = _attend_ragged(q, cu_seqlens_q, cache, window, how)
            else:
                found = _attend(q, cache, window, how, texts)
    return found if return_softmax_lse else found[0]


def _read_turn(tables: Tuple, q: Any, new: Any, lengths: Any, window: Window) -> Optional[Turn]:
    """How q and new keys are rotated, if they are."""
    cos, sin, begin, interleaved = tables
    if cos is None and sin is None:
        if begin is not None:
            refuse("rotary_seqlens", "None without rotary_cos", "a tensor")
        return None
    if new is None:
        refuse("rotary_cos", "None without new keys", "a tensor", "attn.serving.rotate rotates q")
    for name, x in (("rotary_cos", cos), ("rotary_sin", sin)):
        check_tensor(name, x, "positions, R / 2")
        check_floats(name, x, q, tuple(cos.shape))
    if not cos.shape[0] or 2 * cos.shape[1] > q.shape[-1]:
        most = q.shape[-1] // 2
        refuse("rotary_cos", f"a position or more, of {most} columns at most", tuple(cos.shape))
    if begin is not None:
        check_integers("rotary_seqlens", begin, q, new.offsets.shape[0] - 1)
    rotary = Rotary(cos, sin, bool(interleaved))
    return Turn(rotary, lengths if begin is None else begin, window == (None, None))


def _read_table(block_table: Any, page_table: Any, batches: Any, q: Any, num_batches: int) -> Any:
    if block_table is not None and page_table is not None:
        refuse("page_table", "one of block_table and page_table", "both")
    name = "page_table" if block_table is None else "block_table"
    table = page_table if block_table is None else block_table
    check_table(name, table, q, num_batches)
    if batches is not None:
        refuse("cache_batch_idx", "None with pages", "a tensor", f"choose the rows of {name}")
    return table


def _fill_and_choose(
    cache: _Cache, new: Optional[New], batches: Any, num_batches: int, turn: Optional[Turn]
) -> _Cache:
    """The cache with new keys, and of it the batches that are meant."""
    k_cache, v_cache, lengths, begin = cache
    if batches is not None:
        # Kernels read inside of tensors whatever an index is.
        batches = batches.clamp(0, k_cache.shape[0] - 1)
    if new is not None:
        begins = _fill(lengths, num_batches, new.k)
        # A batch is a page, of which each sequence has one.
        table = None if batches is None else batches[:, None]
        append((k_cache, v_cache), new, begins, table, turn)
        lengths = (lengths if isinstance(new.count, int) else begins) + new.count
    if batches is not None:
        k_cache, v_cache = (x.index_select(0, batches) for x in (k_cache, v_cache))
    return _Cache(k_cache, v_cache, lengths, begin)


def _attend_ragged(q: Any, cu_q: Any, cache: _Cache, window: Window, how: How) -> Tuple[Any, Any]:
    """Rows of sequence b are against batch b of the cache, which is one sequence of all batches."""
    k, v, length, begin = cache
    batch, capacity = k.shape[:2]
    length = _fill(length, batch, q).clamp(0, capacity)
    # As large as positions are, with one more for the end.
    starts = torch.arange(batch + 1, dtype=torch.int32, device=q.device) * capacity
    if begin is not None:
        begin = torch.minimum(begin.clamp(min=0), length)
        length = length - begin
        starts = torch.cat([starts[:-1] + begin, starts[-1:]])
    k, v = (x.flatten(0, 1) for x in (k, v))
    sequences = Sequences(cu_q, starts, used_k=length)
    return attend_rows(make_forward(q, k, v, sequences, window, how))
