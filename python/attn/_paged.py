"""Keys and values in pages, as kernels take them: pools and a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _arrays, _plan
from ._given import Given
from ._library import refuse
from ._problem import Spec
from ._serving_how import check_array, check_integers, find_plan, read_fields
from ._serving_plan import Plan as CallsPlan
from ._source import Source, Text
from ._tensors import Tensors, swap
from ._trace import Length

_query_length = Length("query_length", "q")
plans: Dict[Any, Tuple["PagedPlan", List[Any]]] = {}


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


class PagedPlan(_plan.Plan):
    """Its calls give pools (Np, P, Hkv, D) and a table."""

    text: PagedText

    def run_paged(
        self, given: Given, page_table: Any, out: Any, shared: Optional[CallsPlan] = None
    ) -> Any:
        """The q of what is given is (B, M, H, D); its keys and values are pools, whose rows come before
        heads or after them. `shared` is what calls of other layers compute alike."""
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
        if shared is None:
            tensors.run()
        else:
            shared.run(tensors, q)
        return output if lse is None else (output, lse)


def check_shapes(
    q: Any, k: Any, v: Any, page_table: Any, seqused_k: Any, is_rows_first: bool
) -> int:
    """Raises Error for arrays, of any library, that cannot be one call. Returns P."""
    check_array("q", q, (3, 4), "(B, Sq, H, D) or (B, H, D)")
    rows, heads = (1, 2) if is_rows_first else (2, 1)
    for name, x in (("k_cache", k), ("v_cache", v)):
        dims = "(Np, P, Hkv, D)" if is_rows_first else "(Np, Hkv, P, D)"
        check_array(name, x, (4,), dims)
        if x.dtype != q.dtype:
            refuse(name, f"the type of q, {q.dtype}", x.dtype)
    check_integers("page_table", page_table, 2, "(B, C)")
    check_integers("seqused_k", seqused_k, 1, "(B,)")
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


def make_shift(seqused_k: Any) -> Callable:
    """Rows are the last ones of a sequence, and all sequences have as many."""
    return lambda b: seqused_k[b] - _query_length


def find_paged_plan(spec: Spec, page: int, table: str, options: Any) -> Tuple[PagedPlan, List[Any]]:
    def make(source: Source, captures: Any, texts: Any) -> PagedPlan:
        text = PagedText(**read_fields(source.text), page=page, table=table)
        return PagedPlan(text, captures, texts)

    return find_plan(plans, spec, (page, table), options, make)
