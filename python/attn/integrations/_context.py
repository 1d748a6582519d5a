"""PyTorch's context_parallel on attn: inside of it, calls of scaled_dot_product_attention and flex_attention are
about a sequence that the ranks of a mesh hold."""

from __future__ import annotations

import contextlib
import functools
import weakref
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch
from torch.nn.attention import flex_attention as _flex

from .. import _dynamo
from .._indexing import Indexing, index_as
from .._library import refuse
from .._scan import Scan
from ._blocks import BlockMask, find_mask, is_for_any_length
from ._patch import Patch

# What sequence calls are about, at most one.
_current: List["Context"] = []
# Plans of block masks: what they were made of, and what of that may have changed.
_plans: Any = weakref.WeakKeyDictionary()


class Context(NamedTuple):
    """One sequence, in the order of PyTorch's head-tail balancer."""

    mesh: Any
    length: int
    # Of calls without a block mask.
    full: Any
    causal: Any

    @property
    def rows(self) -> int:
        return sum(end - begin for begin, end in self.full.rows[self.mesh.get_local_rank()])

    def check(self, query: Any, key: Any, value: Any, enable_gqa: bool) -> None:
        """Raises Error for what is no part of the sequence. `enable_gqa` allows fewer heads of keys."""
        for name, x in (("query", query), ("key", key), ("value", value)):
            if x.dim() != 4:
                refuse(name, "4 dimensions under context_parallel, (B, H, S, D)", tuple(x.shape))
            if x.shape[2] != self.rows:
                refuse(
                    name,
                    f"{self.rows} positions, this rank's part of {self.length}",
                    x.shape[2],
                    "shard it by buffers=; other attention belongs outside of context_parallel",
                )
        if not enable_gqa and query.shape[1] != key.shape[1]:
            refuse("key", f"{query.shape[1]} heads, as the query has", key.shape[1], "enable_gqa=True allows fewer")

    def attend_sdpa(self, query: Any, key: Any, value: Any, **how: Any) -> Any:
        """torch.nn.functional.scaled_dot_product_attention of the whole sequence, whose other arguments `how`
        has."""
        self.check(query, key, value, how["enable_gqa"])
        if how["attn_mask"] is not None:
            hint = "flex_attention takes a function of positions in the whole"
            refuse("attn_mask", "none under context_parallel", "one", hint)
        if how["dropout_p"]:
            refuse("dropout_p", "0 under context_parallel", how["dropout_p"])
        is_causal = bool(how["is_causal"])
        plan = self.causal if is_causal else self.full
        return self._attend(query, key, value, plan, how["scale"], causal=is_causal)[0]

    def attend_flex(
        self, query: Any, key: Any, value: Any, score: Any, block_mask: Any, scale: Any, enable_gqa: bool
    ) -> Any:
        """(output, lse) of torch.nn.attention.flex_attention of the whole sequence."""
        self.check(query, key, value, enable_gqa)
        lengths = (self.length, self.length)
        if block_mask is not None and not is_for_any_length(block_mask):
            if tuple(block_mask.seq_lengths) != lengths:
                hint = "give the mask of the whole sequence: attn finds the part of this rank"
                refuse("block_mask", f"one of (M, N) = {lengths}", tuple(block_mask.seq_lengths), hint)
        mask = find_mask(block_mask, lengths)
        functions = [index_as(x, Indexing.FROM_END) for x in (score, mask)]
        plan = self.full
        if mask is not None and not _dynamo.is_compiling():
            plan = self._find_plan(block_mask, mask)
        return self._attend(query, key, value, plan, scale, score=functions[0], mask=functions[1])

    def _attend(self, query: Any, key: Any, value: Any, plan: Any, scale: Any, **how: Any) -> Any:
        from ..distributed import context_parallel_attention

        how.update(plan=plan, mesh=self.mesh, scale=scale, return_lse=True)
        return context_parallel_attention(query, key, value, **how)

    def _find_plan(self, block_mask: Any, mask: Callable) -> Any:
        """What ranks fetch for this mask, found once for as long as it reads the same. Everything, where that
        cannot be told."""
        scan = Scan.of(mask)
        versions = [getattr(x, "_version", None) for x in scan.arrays]
        if scan.is_volatile or None in versions:
            return self.full
        state = self.full, scan.key, list(map(id, scan.arrays)), versions
        known = _plans.get(block_mask)
        if known is None or known[0] != state:
            known = state, self._make_plan(block_mask, mask)
            _plans[block_mask] = known
        return known[1]

    def _make_plan(self, block_mask: Any, mask: Callable) -> Any:
        from ..distributed import plan

        if isinstance(block_mask, BlockMask):
            batches, heads = block_mask.batch or 1, block_mask.heads or 1
        else:
            batches, heads = block_mask.kv_num_blocks.shape[:2]
        how = dict(batches=int(batches), heads=int(heads), sharding=self.full.rows, method=self.full.method)
        return plan(self.length, mesh=self.mesh, mask=mask, **how)


def find() -> Optional[Context]:
    return _current[0] if _current else None


def _check_buffers(
    buffers: Sequence[Any], dims: Sequence[int], no_restore: Set[Any]
) -> Tuple[int, List[Tuple[Any, int]]]:
    if len(buffers) != len(dims):
        refuse("buffer_seq_dims", f"one for each of {len(buffers)} buffers", len(dims))
    if not buffers:
        refuse("buffers", "tensors of the sequence, to know its length", "none")
    for x in no_restore:
        if not any(x is y for y in buffers):
            refuse("no_restore_buffers", "some of buffers", "another tensor")
    length = buffers[0].shape[dims[0]]
    for x, dim in zip(buffers, dims):
        if x.shape[dim] != length:
            refuse("buffers", f"{length} positions, as the first one has, along dimension {dim}", x.shape[dim])
        if x.requires_grad:
            refuse("buffers", "tensors without gradients: they are changed in place", "one with requires_grad")
    return length, list(zip(buffers, dims))


def _put(x: Any, part: Any) -> None:
    x.resize_(part.shape)
    x.copy_(part)


def _find_zigzag(mesh: Any, length: int, method: str, causal: bool) -> Any:
    """In the order of PyTorch's head-tail balancer. Training enters with the same lengths in each step."""
    from ..distributed._group import choose_group, count_ranks

    return _make_zigzag(count_ranks(choose_group(None, mesh)), length, method, causal)


@functools.lru_cache(maxsize=64)
def _make_zigzag(ranks: int, length: int, method: Any, causal: bool) -> Any:
    from ..distributed import plan

    return plan(length, ranks, causal=causal, sharding="zigzag", method=method)


def _make_context(mesh: Any, length: int, method: str) -> Context:
    full, causal = (_find_zigzag(mesh, length, method, x) for x in (False, True))
    return Context(mesh, length, full, causal)


@contextlib.contextmanager
def enter(
    mesh: Any,
    buffers: Optional[List[Any]],
    dims: Optional[List[int]],
    no_restore: Optional[Set[Any]],
    functions: Tuple[Callable, Callable],
    method: str,
) -> Iterator[None]:
    """`functions` are attn's scaled_dot_product_attention and flex_attention, which ask `find`."""
    if _current:
        refuse("context_parallel", "one at a time", "one inside of another")
    length, given = _check_buffers(buffers or [], dims or [], no_restore or set())
    context = _make_context(mesh, length, method)
    with torch.no_grad():
        before = [None if any(x is y for y in no_restore or ()) else x.clone() for x, _ in given]
        for x, dim in given:
            _put(x, context.full.shard(x, dim, mesh=mesh))
    flex, patch = _flex.flex_attention, Patch(functions[0])
    _flex.flex_attention = functions[1]
    _current.append(context)
    try:
        yield
    finally:
        _current.clear()
        _flex.flex_attention = flex
        patch.undo()
        with torch.no_grad():
            for (x, _), whole in zip(given, before):
                if whole is not None:
                    _put(x, whole)


def unshard(mesh: Any, buffers: List[Any], dims: List[int]) -> List[Any]:
    """The whole of each on every rank."""
    found = []
    for x, dim in zip(buffers, dims):
        length = torch.tensor([x.shape[dim]], device=x.device)
        torch.distributed.all_reduce(length, group=mesh.get_group())
        plan = _find_zigzag(mesh, int(length), "gather", False)
        with torch.no_grad():
            found.append(plan.unshard(x, dim, mesh=mesh))
    return found
