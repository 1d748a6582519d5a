"""paged_attention of attn.jax."""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

import jax
import jax.numpy as jnp

from . import _arrays, _paged
from ._indexing import Indexing, index_as
from ._jax_call import (
    LSE,
    POOL_K,
    POOL_K_HEADS_FIRST,
    POOL_V,
    POOL_V_HEADS_FIRST,
    SINK,
    Call,
    O,
    Q,
    bind,
    is_on_gpu,
    name_captured,
    scale_score,
    to_jax,
)
from ._library import Error, OptionTexts, option_texts
from ._plan import _compile, remember
from ._problem import Spec, check_window
from ._scan import Scan
from ._serving_how import check_how, check_layout, make_score
from ._source import Source, Text, reads

_TABLE, _LENGTHS = "bc", "b"


class _Traced(NamedTuple):
    """What is compiled for, and the dimensions of what it takes after the pages."""

    source: str
    last: Tuple[str, ...]
    reads_batch: bool
    reads_head: bool


# With what its key names by address, and the slots of its captures.
_traced: Dict[Any, Tuple[_Traced, List[Any], List[int]]] = {}


def _trace(
    spec: Spec, page: int, table: str, lengths: Any, options: OptionTexts
) -> Tuple[_Traced, List[Any]]:
    """What to compile for a call, and the arrays that its functions captured: `lengths` are among
    them, and parts of the batch have parts of them."""
    scan = Scan.of(spec.score, spec.mask)
    columns = spec.dtype, spec.head_dim, spec.value_dim
    numbers = spec.has_scale, spec.has_sink, spec.score is None
    key = (*columns, page, table, *numbers, options, *scan.key)
    found = None if scan.is_volatile else _traced.get(key)
    if found is not None:
        return found[0], [scan.arrays[slot] for slot in found[2]]
    source = Source(spec, scan)
    text = _paged.PagedText(
        **{x.name: getattr(source.text, x.name) for x in fields(Text)}, page=page, table=table
    )
    names = name_captured(c.rank for c in source.captures)
    captured = [_LENGTHS if x is lengths else dims for x, dims in zip(source.arrays, names)]
    last = ("",) * spec.has_scale + (SINK,) * spec.has_sink + tuple(captured)
    others = _hide(text.regions, source, lengths)
    traced = _Traced(text.forward, last, reads(others, "b"), reads(others, "h"))
    if not source.is_volatile:
        slots = [c.slot for c in source.captures]
        remember(_traced, key, (traced, scan.keep, slots))
    return traced, source.arrays


def _hide(regions: Tuple[str, ...], source: Source, lengths: Any) -> List[str]:
    """The regions without where they read the length of their own sequence."""
    own = [c.name for c, x in zip(source.captures, source.arrays) if x is lengths]
    return [x for x in regions if not any(f"tensor.extract %{name}[%b]" in x for name in own)]


@functools.lru_cache(maxsize=512)
def _bind(call: Call) -> Callable:
    run = bind(call)

    @jax.custom_jvp
    def attend(*arrays: Any) -> Tuple:
        return run(*arrays)

    @attend.defjvp
    def refuse_tangents(primals: Tuple, tangents: Tuple) -> None:
        raise Error(
            "invalid argument",
            "paged_attention: expected no derivatives, got one: there is no such kernel",
            "use attn.jax.attention, or jax.lax.stop_gradient",
        )

    return jax.jit(attend)


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
    return_lse: bool = False,
    options: Optional[Mapping[str, object]] = None,
) -> Any:
    """`attn.serving.paged_attention` inside of JAX's programs: the same arguments, shapes and results,
    without `out`.

    Key n of sequence b is row n % P of page page_table[b, n // P].

    Args:
        q: (B, Sq, H, D), or (B, H, D) of one row each: the last Sq positions of their sequences.
        k_cache: (Np, P, Hkv, D), or (Np, Hkv, P, D) with kv_layout="HND". On a GPU P is a multiple of
            16.
        v_cache: pages of values, with Dv columns.
        page_table: (B, C) integers. Entries that no kept key needs may hold anything.
        seqused_k: (B,) integers: the keys of each sequence, those of its own rows included.
        score, mask: functions as for `attn.jax.attention`.
        kv_layout, scale, causal, window, softcap, alibi_slopes, sink, return_lse, options: as for
            `attn.serving.paged_attention`.

    Under jax.vmap a mapped dimension of q, page_table and seqused_k is a part of the batch, and the
    caches are shared. With caches that are mapped, or functions that read b, calls follow one another.
    Arrays sharded over the batch stay so. Those sharded over the heads do where no function reads h,
    and then the caches have their heads there. There are no derivatives.

    Returns:
        The output, in the shape of q with Dv columns; or (output, lse), lse being (B, H, Sq) float32,
        or (B, H) where q has no rows. A row that keeps no key gives 0 and -inf.

    Raises:
        Error: an argument that does not fit, by its name. Nobody looks at what tables and lengths
            hold: wrong ones give wrong results, and never an access outside of the caches.
    """
    is_rows_first = check_layout(kv_layout)
    q, k, v, table, lengths = (jnp.asarray(x) for x in (q, k_cache, v_cache, page_table, seqused_k))
    page = _paged.check_shapes(q, k, v, table, lengths, is_rows_first)
    slopes = None if alibi_slopes is None else jnp.asarray(alibi_slopes)
    check_how(causal, softcap, slopes)
    capped = float(softcap) if softcap else None
    score = make_score(_paged.make_shift(lengths), capped, slopes, score)
    mask = _paged.make_mask(lengths, causal, check_window(window), mask)
    if scale is not None and is_on_gpu():
        scale, score = None, scale_score(score, scale, q.shape[-1])
    score, mask = (index_as(x, Indexing.CLAMPED) for x in (score, mask))
    spec = Spec(
        q.dtype,
        q.shape[-1],
        v.shape[-1],
        "cpu",
        score=score,
        mask=mask,
        has_scale=scale is not None,
        has_sink=sink is not None,
        return_lse=True,
    )
    texts = option_texts(options)
    traced, captured = _trace(spec, page, _arrays.type_name(table.dtype) or "", lengths, texts)
    # Errors are told here, not by XLA; for where arrays are unless somebody says otherwise.
    device = "cuda" if is_on_gpu() and q.dtype != jnp.float32 else "cpu"
    _compile(traced.source, (*texts, ("device", device)))
    pools = (POOL_K, POOL_V) if is_rows_first else (POOL_K_HEADS_FIRST, POOL_V_HEADS_FIRST)
    dims = (Q, *pools, _TABLE, *traced.last)
    results = (O, None), (LSE, "float32")
    call = Call(traced.source, texts, dims, results, traced.reads_batch, traced.reads_head, None)
    numbers = [jnp.asarray(x, jnp.float32) for x in (scale, sink) if x is not None]
    is_one_row = q.ndim == 3
    rows = q[:, None] if is_one_row else q
    output, lse = _bind(call)(rows, k, v, table, *numbers, *[to_jax(x) for x in captured])
    if is_one_row:
        output, lse = output[:, 0], lse[..., 0]
    return (output, lse) if return_lse else output
