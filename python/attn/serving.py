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

from dataclasses import dataclass, fields
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from . import _arrays, _dynamo, _foreign, _operations, _plan
from ._given import Given
from ._library import refuse
from ._problem import Spec, check_options, check_window
from ._ragged import RaggedPlan, RaggedText, Rows
from ._scan import Scan
from ._source import Source, Text
from ._tensors import Tensors, swap
from ._trace import Length

__all__ = ["paged_attention", "varlen_attention"]

_query_length = Length("query_length", "q")
_plans: Dict[Any, Tuple["_PagedPlan", List[Any]]] = {}
_ragged_plans: Dict[Any, Tuple[RaggedPlan, List[Any]]] = {}


@dataclass(frozen=True)
class PagedText(Text):
    """The text of an attention whose keys and values lie in pages of so many keys."""

    page: int = 0
    table: str = ""

    @property
    def pool_k(self) -> str:
        return f"tensor<?x{self.page}x?x{self.problem.head_dim}x{self.problem.type}>"

    @property
    def pool_v(self) -> str:
        return f"tensor<?x{self.page}x?x{self.problem.value_dim}x{self.problem.type}>"

    @property
    def forward(self) -> str:
        table = f"tensor<?x?x{self.table}>"
        head, _, body = super().forward.partition("\n")
        whole = f"%k: {self.query}, %v: {self.value}"
        pages = f"%k_cache: {self.pool_k}, %v_cache: {self.pool_v}, %page_table: {table}"
        views = [
            f"  %k = attn.paged %k_cache[%page_table] : {self.pool_k}, {table} -> {self.query}",
            f"  %v = attn.paged %v_cache[%page_table] : {self.pool_v}, {table} -> {self.value}",
        ]
        return "\n".join([head.replace(whole, pages, 1), *views, body])


class _PagedPlan(_plan.Plan):
    """Its calls give pools (Np, P, Hkv, D) and a table."""

    text: PagedText

    def run_paged(self, given: Given, page_table: Any, out: Any) -> Any:
        """The q of what is given is (B, M, H, D); its keys and values are pools, whose rows come before
        heads or after them."""
        tensors = Tensors(self.kernel)
        type_, dv = self.problem.type, self.problem.value_dim
        q, k_cache, v_cache, scale, sink, rows_first, captured = given
        b, h, m, _ = tensors.add_array(q, "q", 4, type_, is_swapped=True)
        for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
            address, shape, strides = _arrays.view(cache, name, self.device)
            if not rows_first:
                shape, strides = swap(shape), swap(strides)
            tensors.add(address, shape, strides, type_, self.device)
        tensors.add_array(page_table, "page_table", 2, self.text.table)
        if self.problem.has_scale:
            tensors.add_scale(scale)
        if self.problem.has_sink:
            tensors.add_sink(sink)
        tensors.add_captures(self.given, captured)
        output = _arrays.empty_like(q, None, (b, m, h, dv)) if out is None else out
        tensors.add_array(output, "out", 4, type_, is_swapped=True)
        lse = _arrays.empty_like(q, "f32", (b, h, m)) if self.problem.return_lse else None
        if lse is not None:
            tensors.add_array(lse, "lse", 3, "f32")
        tensors.run()
        return output if lse is None else (output, lse)


def _check_library(**arrays: Any) -> None:
    for name, x in arrays.items():
        if not _arrays.is_numpy(x) and not _arrays.is_torch(x):
            refuse(name, "a NumPy array or PyTorch tensor", _arrays.describe_type(x))


def _check_array(name: str, x: Any, ranks: Tuple[int, ...], dims: str) -> None:
    if len(x.shape) not in ranks:
        refuse(name, dims, f"shape {tuple(x.shape)}")


def _check_integers(name: str, x: Any, rank: int, dims: str) -> None:
    _check_array(name, x, (rank,), dims)
    if _arrays.type_name(x.dtype) not in ("i32", "i64"):
        refuse(name, "int32 or int64", x.dtype)


def check_layout(kv_layout: str) -> bool:
    """Whether the rows of a page come before its heads."""
    if kv_layout not in ("NHD", "HND"):
        refuse("kv_layout", '"NHD" or "HND"', repr(kv_layout))
    return kv_layout == "NHD"


def check_how(causal: bool, softcap: Optional[float], alibi_slopes: Any) -> None:
    if not isinstance(causal, bool):
        refuse("causal", "a bool", repr(causal))
    if softcap is not None and not float(softcap) >= 0:
        refuse("softcap", "a number above 0, or None", repr(softcap))
    if alibi_slopes is not None:
        _check_array("alibi_slopes", alibi_slopes, (1, 2), "(H,) or (B, H)")


def _check_out(out: Any, q: Any, v: Any) -> None:
    """It has the type and dimensions of q, and the columns of v."""
    _check_library(out=out)
    wanted = (*q.shape[:-1], v.shape[-1])
    if tuple(out.shape) != wanted or out.dtype != q.dtype:
        refuse("out", f"{q.dtype} of shape {wanted}", f"{out.dtype} of shape {tuple(out.shape)}")


def check_shapes(
    q: Any, k: Any, v: Any, page_table: Any, seqused_k: Any, is_rows_first: bool
) -> int:
    """Raises Error for arrays, of any library, that cannot be one call. Returns P."""
    _check_array("q", q, (3, 4), "(B, Sq, H, D) or (B, H, D)")
    rows, heads = (1, 2) if is_rows_first else (2, 1)
    for name, x in (("k_cache", k), ("v_cache", v)):
        dims = "(Np, P, Hkv, D)" if is_rows_first else "(Np, Hkv, P, D)"
        _check_array(name, x, (4,), dims)
        if x.dtype != q.dtype:
            refuse(name, f"the type of q, {q.dtype}", x.dtype)
    _check_integers("page_table", page_table, 2, "(B, C)")
    _check_integers("seqused_k", seqused_k, 1, "(B,)")
    batch = int(q.shape[0])
    for name, x in (("page_table", page_table), ("seqused_k", seqused_k)):
        if int(x.shape[0]) != batch:
            refuse(name, f"as many sequences as q has, {batch}", int(x.shape[0]))
    page = int(k.shape[rows])
    for what, dim in (("pages", 0), ("keys in a page", rows), ("heads", heads)):
        if int(v.shape[dim]) != int(k.shape[dim]):
            refuse("v_cache", f"as many {what} as k_cache, {int(k.shape[dim])}", int(v.shape[dim]))
    if int(k.shape[3]) != int(q.shape[-1]):
        refuse("k_cache", f"the columns of q, {int(q.shape[-1])}", int(k.shape[3]))
    if page < 1:
        refuse("k_cache", "pages of at least 1 key", page)
    if not int(k.shape[heads]) or int(q.shape[-2]) % int(k.shape[heads]):
        count = int(q.shape[-2])
        refuse("k_cache", f"heads that divide those of q, {count}", int(k.shape[heads]))
    return page


def make_mask(
    seqused_k: Any, causal: bool, window: Optional[Tuple[int, int]], mask: Optional[Callable]
) -> Callable:
    """Whether a key is kept. Rows count from the last one and the last key of a sequence."""
    left, right = window or (-1, -1)

    def keep(b: Any, h: Any, q: Any, kv: Any) -> Any:
        length = seqused_k[b]
        kept = kv < length
        if causal or left >= 0 or right >= 0:
            position = q + length - _query_length
            if causal:
                kept = kept & (kv <= position)
            if left >= 0:
                kept = kept & (kv >= position - left)
            if right >= 0 and not causal:
                kept = kept & (kv <= position + right)
        if mask is not None:
            kept = kept & mask(b, h, q, kv)
        return kept

    return keep


def make_score(
    shift: Callable, softcap: Optional[float], alibi_slopes: Any, score: Optional[Callable]
) -> Optional[Callable]:
    """The score that softcap, then the bias, and then the caller make of a product. Row q of sequence b is
    at key q + shift(b)."""
    if not softcap and alibi_slopes is None:
        return score
    is_of_batches = alibi_slopes is not None and len(alibi_slopes.shape) == 2

    def change(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        if softcap:
            s = softcap * _operations.tanh(s / softcap, False)
        if alibi_slopes is not None:
            slope = alibi_slopes[b, h] if is_of_batches else alibi_slopes[h]
            s = s - slope * abs(q + shift(b) - kv)
        return s if score is None else score(s, b, h, q, kv)

    return change


def make_shift(seqused_k: Any) -> Callable:
    """Rows are the last ones of a sequence, and all sequences have as many."""
    return lambda b: seqused_k[b] - _query_length


def _make_shift_of_offsets(cu_q: Any, cu_k: Any) -> Callable:
    return lambda b: cu_k[b + 1] - cu_k[b] - (cu_q[b + 1] - cu_q[b])


def _find(
    plans: Dict, spec: Spec, said: Tuple, options: Any, make: Callable[[Source, Any, Any], Any]
) -> Tuple[Any, List[Any]]:
    """The plan of a call, and the arrays that its functions captured. `said` is what else decides."""
    scan = Scan.of(spec.score, spec.mask)
    texts = check_options(options, spec.device)
    is_on_gpu = spec.device != "cpu"
    strided = tuple([_foreign.is_strided(x) for x in scan.arrays]) if is_on_gpu else ()
    has = spec.score is None, spec.has_scale, spec.has_sink, spec.return_lse
    columns = spec.head_dim, spec.value_dim, spec.causal, spec.window
    key = (spec.dtype, spec.device, *columns, *said, *has, texts, strided, *scan.key)
    found = None if scan.is_volatile else plans.get(key)
    if found is not None:
        return found[0], scan.arrays
    source = Source(spec, scan)
    captures = _plan.list_captures(source, by_slot=not source.is_volatile)
    plan = make(source, captures, texts)
    if source.is_volatile:
        return plan, source.arrays
    if Scan.of(spec.score, spec.mask).key == scan.key:
        # Nothing changed while it was traced. `keep` holds what the key names by its address.
        _plan.remember(plans, key, (plan, scan.keep))
    return plan, scan.arrays


def _read(text: Text) -> Dict[str, Any]:
    return {x.name: getattr(text, x.name) for x in fields(Text)}


def _find_plan(spec: Spec, page: int, table: str, options: Any) -> Tuple[_PagedPlan, List[Any]]:
    def make(source: Source, captures: Any, texts: Any) -> _PagedPlan:
        text = PagedText(**_read(source.text), page=page, table=table)
        return _PagedPlan(text, captures, texts)

    return _find(_plans, spec, (page, table), options, make)


def _find_ragged_plan(
    spec: Spec, of_q: str, of_k: str, options: Any
) -> Tuple[RaggedPlan, List[Any]]:
    def make(source: Source, captures: Any, texts: Any) -> RaggedPlan:
        text = RaggedText(**_read(source.text), offsets_q=of_q, offsets_k=of_k)
        return RaggedPlan(text, captures, texts)

    return _find(_ragged_plans, spec, (of_q, of_k), options, make)


@_dynamo.disable
def paged_attention(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    *,
    page_table: Any,
    seqused_k: Any,
    kv_layout: str = "NHD",
    scale: Optional[float] = None,
    causal: bool = True,
    window: Optional[Tuple[Optional[int], Optional[int]]] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Any = None,
    sink: Any = None,
    score: Optional[Callable] = None,
    mask: Optional[Callable] = None,
    out: Any = None,
    return_lse: bool = False,
    options: Optional[Mapping[str, object]] = None,
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
        out: where the output goes, of the shape of q with Dv columns.
        return_lse: also return the logsumexp, (B, H, Sq) float32, or (B, H) where q has no rows.
        options: as for `attn.attention`.

    Returns:
        The output, in the type, library and device of q; or (output, lse). A row that keeps no key
        gives 0 and -inf.

    Raises:
        Error: an argument that does not fit, by its name. Nobody looks at what tables and lengths
            hold: wrong ones give wrong results, and never an access outside of the caches.
    """
    is_rows_first = check_layout(kv_layout)
    _check_library(q=q, k_cache=k_cache, v_cache=v_cache)
    _check_library(page_table=page_table, seqused_k=seqused_k)
    page = check_shapes(q, k_cache, v_cache, page_table, seqused_k, is_rows_first)
    if alibi_slopes is not None:
        _check_library(alibi_slopes=alibi_slopes)
    check_how(causal, softcap, alibi_slopes)
    if out is not None:
        _check_out(out, q, v_cache)
    capped = float(softcap) if softcap else None
    device = -1 if _arrays.is_numpy(q) else int(q.get_device())
    spec = Spec(
        q.dtype,
        int(q.shape[-1]),
        int(v_cache.shape[-1]),
        "cpu" if device < 0 else f"cuda:{device}",
        score=make_score(make_shift(seqused_k), capped, alibi_slopes, score),
        mask=make_mask(seqused_k, causal, check_window(window), mask),
        has_scale=scale is not None,
        has_sink=sink is not None,
        return_lse=return_lse,
    )
    table = _arrays.type_name(page_table.dtype) or ""
    plan, captured = _find_plan(spec, page, table, options)
    is_one_row = len(q.shape) == 3
    rows = q[:, None] if is_one_row else q
    place = out[:, None] if out is not None and is_one_row else out
    given = Given(rows, k_cache, v_cache, scale, sink, is_rows_first, captured)
    results = plan.run_paged(given, page_table, place)
    output, lse = results if return_lse else (results, None)
    if is_one_row:
        output = output[:, 0]
        lse = lse if lse is None else lse[..., 0]
    output = output if out is None else out
    return (output, lse) if return_lse else output


def _check_sequences(q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any, most: Dict[str, Any]) -> None:
    """Raises Error for what cannot be one call."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        _check_array(name, x, (3,), "(T, H, D)")
        if x.dtype != q.dtype:
            refuse(name, f"the type of q, {q.dtype}", x.dtype)
    for name, x in (("cu_seqlens_q", cu_q), ("cu_seqlens_k", cu_k)):
        _check_integers(name, x, 1, "(B + 1,)")
        if not int(x.shape[0]):
            refuse(name, "an offset or more", "none")
    if int(cu_k.shape[0]) != int(cu_q.shape[0]):
        count = int(cu_q.shape[0])
        refuse("cu_seqlens_k", f"as many offsets as cu_seqlens_q has, {count}", int(cu_k.shape[0]))
    for what, dim in (("rows", 0), ("heads", 1)):
        if int(v.shape[dim]) != int(k.shape[dim]):
            refuse("v", f"as many {what} as k, {int(k.shape[dim])}", int(v.shape[dim]))
    if int(k.shape[2]) != int(q.shape[2]):
        refuse("k", f"the columns of q, {int(q.shape[2])}", int(k.shape[2]))
    if not int(k.shape[1]) or int(q.shape[1]) % int(k.shape[1]):
        refuse("k", f"heads that divide those of q, {int(q.shape[1])}", int(k.shape[1]))
    for name, count in most.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            refuse(name, "a number of rows", repr(count))
    for name, x, x_name in (("max_seqlen_q", q, "q"), ("max_seqlen_k", k, "k")):
        if most[name] and not int(x.shape[0]):
            refuse(x_name, f"a row or more, as {name} is {most[name]}", "none")


@_dynamo.disable
def varlen_attention(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    *,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: Optional[float] = None,
    causal: bool = False,
    window: Optional[Tuple[Optional[int], Optional[int]]] = None,
    softcap: Optional[float] = None,
    alibi_slopes: Any = None,
    sink: Any = None,
    score: Optional[Callable] = None,
    mask: Optional[Callable] = None,
    out: Any = None,
    return_lse: bool = False,
    options: Optional[Mapping[str, object]] = None,
) -> Any:
    """Attention of sequences of any lengths, which lie one after the other.

    PyTorch's autograd records calls: q, k and v have gradients, with zeros in rows of no sequence.

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

    Returns:
        The output, in the type, library and device of q; or (output, lse). A row that keeps no key
        gives 0 and -inf. Rows of no sequence may hold anything, but for those of `out`.

    Raises:
        Error: an argument that does not fit, by its name, or one that requires a gradient and is not
            q, k or v. Nobody looks at what offsets hold: wrong ones mean other rows, and never an
            access outside of the tensors.
    """
    _check_library(q=q, k=k, v=v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k)
    if alibi_slopes is not None:
        _check_library(alibi_slopes=alibi_slopes)
    most = {"max_seqlen_q": max_seqlen_q, "max_seqlen_k": max_seqlen_k}
    _check_sequences(q, k, v, cu_seqlens_q, cu_seqlens_k, most)
    check_how(causal, softcap, alibi_slopes)
    if out is not None:
        _check_out(out, q, v)
    shift = _make_shift_of_offsets(cu_seqlens_q, cu_seqlens_k)
    capped = float(softcap) if softcap else None
    device = -1 if _arrays.is_numpy(q) else int(q.get_device())
    spec = Spec(
        q.dtype,
        int(q.shape[2]),
        int(v.shape[2]),
        "cpu" if device < 0 else f"cuda:{device}",
        causal=causal,
        window=check_window(window),
        score=make_score(shift, capped, alibi_slopes, score),
        mask=mask,
        has_scale=scale is not None,
        has_sink=sink is not None,
        return_lse=return_lse,
    )
    names = [_arrays.type_name(x.dtype) or "" for x in (cu_seqlens_q, cu_seqlens_k)]
    plan, captured = _find_ragged_plan(spec, names[0], names[1], options)
    given = Given(q, k, v, scale, sink, True, captured)
    rows = Rows(cu_seqlens_q, cu_seqlens_k, (max_seqlen_q, max_seqlen_k))
    output, lse = _run_ragged(plan, given, rows, out)
    return (output, lse) if return_lse else output


def _run_ragged(plan: RaggedPlan, given: Given, rows: Rows, out: Any) -> Tuple[Any, Any]:
    """(output, lse), the latter None where nobody wants it."""
    if _arrays.find_torch() is not None and not _arrays.is_numpy(given.q):
        from . import _ragged_autograd

        _ragged_autograd.check_others(
            sink=given.sink, scale=given.scale, captures=given.captured, out=out
        )
        if _arrays.is_any_recorded(given.q, given.k, given.v):
            return _ragged_autograd.record(plan, given, rows, out)
    output, *lse = plan.run_ragged(given, rows, out)
    return output, lse[0] if lse else None
