"""Attention inside of JAX's programs, on the CPU and on NVIDIA's GPUs:

    output = jax.jit(attn.jax.attention, static_argnames="is_causal")(q, k, v, is_causal=True)

A kernel is a custom call of XLA: jit, grad, vmap and shard_map work. Arrays that are sharded over the
batch or the heads stay where they are. Outside of transforms, attn.attention takes JAX's arrays too.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import (
    Any,
    Callable,
    Dict,
    List,
    Literal,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
    overload,
)

import jax
import jax.export
import jax.numpy as jnp
import numpy
from jax.custom_derivatives import SymbolicZero

from ._indexing import Indexing, index_as
from ._jax_call import (
    BATCH,
    HEAD,
    LSE,
    SINK,
    TARGET,
    Call,
    K,
    O,
    Part,
    Q,
    V,
    bind,
    is_on_gpu,
    name_captured,
    scale_score,
    to_jax,
)
from ._jax_context import gather_whole, make_mask
from ._jax_paged import paged_attention
from ._library import Error, OptionTexts, option_texts, refuse
from ._jax_positions import find_placed
from ._plan import _compile, remember
from ._positions import Placed
from ._problem import Spec, check_causal, check_window
from ._scan import Scan
from ._source import Gradients, Source, Text, Wanted, reads
from .integrations._tables import add_table, fit_table, read_table
from .typing import DType, Mask, OptionsLike, Positions, Score, Window

__all__ = ["attention", "context_attention", "export_checks", "paged_attention"]

# Also where somebody puts the function of this module in its place.
_of_jax = jax.nn.dot_product_attention

# ===- Programs that are kept -------------------------------------------------------------------===#


def export_checks() -> List[jax.export.DisabledSafetyCheck]:
    """Lets `jax.export` serialize programs with attention:

        exported = jax.export.export(jax.jit(f), disabled_checks=attn.jax.export_checks())(q, k, v)
        kept = exported.serialize()

    JAX refuses custom calls of which it does not know that a later version has them. attn's carry
    the attention as a source, which later versions compile with the same meaning, and no machine
    code. A process imports attn.jax before it deserializes them.

    Returns:
        The checks of attn's custom calls.
    """
    return [jax.export.DisabledSafetyCheck.custom_call(TARGET)]


# ===- Gradients --------------------------------------------------------------------------------===#


class _Traced(NamedTuple):
    """What is compiled for."""

    text: Text
    options: OptionTexts
    ranks: Tuple[int, ...]
    # For parts of the batch and the heads: which of its captures is which of these.
    part: Optional[Tuple[Text, Tuple[int, ...]]]

    def given(self) -> Tuple[str, ...]:
        problem = self.text.problem
        numbers = ("",) * problem.has_scale + (SINK,) * problem.has_sink
        return (Q, K, V, *numbers, *name_captured(self.ranks))

    def _call(self, write: Callable, last: Tuple, results: Tuple) -> Callable:
        """`write` is told which number each captured array has in the text that it is given."""
        source = write(self.text, range(len(self.ranks)))
        # Errors are told here, not by XLA; for where arrays are unless somebody says otherwise.
        device = "cuda" if is_on_gpu() and self.text.problem.type != "f32" else "cpu"
        _compile(source, (*self.options, ("device", device)))
        read = [reads(self.text.regions, x) for x in "bh"]
        given, part = self.given(), None
        if self.part is not None and any(read):
            text, captured = self.part
            first, end = len(given) - len(self.ranks), len(given)
            order = [*range(first), *[i if i < 0 else first + i for i in captured]]
            numbers = [captured.index(i) for i in range(len(self.ranks))]
            part = Part(write(text, numbers), (*order, *range(end, end + len(last))))
        return bind(Call(source, self.options, (*given, *last), results, *read, part))

    @property
    def _output(self) -> Tuple[str, Optional[str]]:
        """Its dimensions, and its type unless it is that of q."""
        problem = self.text.problem
        return O, None if problem.output_type == problem.type else "float32"

    def forward(self) -> Callable:
        return self._call(lambda text, _: text.forward, (), (self._output, (LSE, "float32")))

    def record(self) -> Callable:
        """(output, lse, lse_low), of which gradients are made."""

        def write(text: Text, _: Sequence[int]) -> str:
            problem = dataclasses.replace(text.problem, return_low=True)
            return dataclasses.replace(text, problem=problem).forward

        return self._call(write, (), (self._output, (LSE, "float32"), (LSE, "float32")))

    def gradient(self, wanted: Wanted, has_lse_gradient: bool) -> Callable:
        kinds: Dict[Any, Tuple] = {"query": (Q, None), "key": (K, None), "value": (V, None)}
        kinds["sink"] = SINK, "float32"
        kinds.update(enumerate((dims, "float32") for dims in name_captured(self.ranks)))
        last = (O, LSE, LSE, O) + (LSE,) * has_lse_gradient

        def write(text: Text, numbers: Sequence[int]) -> str:
            of = tuple(numbers[x] if isinstance(x, int) else x for x in wanted)
            return text.gradient(Gradients(of, has_lse_gradient, has_low=True))

        return self._call(write, last, tuple(kinds[x] for x in wanted))


_DIFFERENTIATED = ("float16", "bfloat16", "float32")


def _refuse_second(run: Callable) -> Callable:
    @jax.custom_jvp
    def once(*arrays: Any) -> Tuple:
        return run(*arrays)

    @once.defjvp
    def refuse_tangents(primals: Tuple, tangents: Tuple) -> None:
        raise Error(
            "invalid argument",
            "attention: expected first derivatives, got a second one: there is no such kernel",
            "use jax.nn.dot_product_attention",
        )

    return once


@functools.lru_cache(maxsize=512)
def _differentiate(traced: _Traced) -> Callable:
    """(q, k, v, numbers, captures) -> (output, lse): numbers are the scale and the sink that the
    problem has."""
    names = ("query", "key", "value")

    @jax.custom_vjp
    def attend(q: Any, k: Any, v: Any, numbers: List, captures: List) -> Tuple:
        return traced.forward()(q, k, v, *numbers, *captures)

    def forward(*arguments: Any) -> Tuple:
        is_wanted = [x.perturbed for x in arguments[:3]]
        problem = traced.text.problem
        numbers_wanted = [x.perturbed for x in arguments[3]]
        if problem.has_sink:
            is_wanted.append(numbers_wanted.pop())
        if any(numbers_wanted):
            refuse("scale", "a number without gradient", "one that JAX differentiates", "scale q")
        for x in arguments[4]:
            if x.perturbed and x.value.dtype not in _DIFFERENTIATED:
                refuse(
                    "score and mask",
                    "captured arrays of float16, bfloat16 or float32 where JAX differentiates",
                    f"one of {x.value.dtype}",
                    "use jax.lax.stop_gradient, or convert it",
                )
        is_wanted += [x.perturbed for x in arguments[4]]
        given = [[x.value for x in group] for group in (arguments[:3], *arguments[3:])]
        (q, k, v), numbers, captures = given
        found = _refuse_second(traced.record())(q, k, v, *numbers, *captures)
        # JAX keeps arrays: a flag is the place of an empty tuple.
        flags = tuple(() if x else None for x in is_wanted)
        return tuple(found[:2]), (given, found, flags)

    def backward(kept: Any, gradients: Tuple) -> Tuple:
        (given, numbers, captures), (output, lse, lse_low), flags = kept
        of: Wanted = names + (("sink",) if traced.text.problem.has_sink else ())
        of += tuple(range(len(captures)))
        wanted = tuple(name for name, flag in zip(of, flags) if flag is not None)
        d_output, d_lse = gradients
        has_lse = not isinstance(d_lse, SymbolicZero)
        found: Dict[Any, Any] = {}
        if wanted and not (isinstance(d_output, SymbolicZero) and not has_lse):
            if isinstance(d_output, SymbolicZero):
                d_output = jnp.zeros(output.shape, output.dtype)
            # Products multiply elements of the type of q.
            last = (output, lse, lse_low, d_output.astype(given[0].dtype)) + ((d_lse,) if has_lse else ())
            run = _refuse_second(traced.gradient(wanted, has_lse))
            found = dict(zip(wanted, run(*given, *numbers, *captures, *last)))
        of_numbers: List[Any] = [None] * len(numbers)
        if "sink" in of:
            of_numbers[-1] = found.get("sink")
        # Kernels sum in f32.
        of_captures = [
            found[i].astype(x.dtype) if i in found else None for i, x in enumerate(captures)
        ]
        return (*[found.get(x) for x in names], of_numbers, of_captures)

    attend.defvjp(forward, backward, symbolic_zeros=True)
    return jax.jit(attend)


# ===- Calls ------------------------------------------------------------------------------------===#

_traced: Dict[Any, Tuple[_Traced, List[Any], List[int]]] = {}


class Asked(NamedTuple):
    """Of a call, but for its arrays and functions."""

    causal: Any
    has_scale: bool
    has_sink: bool
    out_dtype: Any
    placed: Optional[Placed]


def _trace(
    q: Any, v: Any, asked: Asked, functions: Tuple, options: Any
) -> Tuple[_Traced, List[Any]]:
    """What to compile for a call, and the arrays that its functions captured, with those of positions."""
    score, mask = functions
    texts = option_texts(options)
    scan = Scan.of(score, mask)
    kinds, places = (asked.placed.kinds, asked.placed.arrays) if asked.placed else (None, [])
    output = None if asked.out_dtype is None else numpy.dtype(asked.out_dtype).name
    key = (q.dtype, q.shape[-1], v.shape[-1], *asked[:3], output, kinds, texts, score is None, *scan.key)
    found = None if scan.is_volatile else _traced.get(key)
    if found is None:
        spec = Spec(
            q.dtype,
            q.shape[-1],
            v.shape[-1],
            "cpu",
            causal=asked.causal,
            score=score,
            mask=mask,
            has_scale=asked.has_scale,
            has_sink=asked.has_sink,
            return_lse=True,
            out_dtype=output,
            positions=kinds,
        )
        source = Source(spec, scan, placed=places)
        ranks = tuple(c.rank for c in source.captures)
        if source.is_volatile:
            return _Traced(source.text, texts, ranks, None), source.arrays
        slots = [c.slot for c in source.captures]
        has_places = any(reads(source.text.regions, x) for x in "bh")
        part = _trace_part(spec, slots, places) if has_places else None
        traced = _Traced(source.text, texts, ranks, part)
        found = traced, scan.keep, slots
        remember(_traced, key, found)
    arrays = [*scan.arrays, *places]
    return found[0], [arrays[slot] for slot in found[2]]


def _trace_part(spec: Spec, slots: List, placed: List[Any]) -> Optional[Tuple[Text, Tuple[int, ...]]]:
    """The same on a part of the batch and the heads, and which of `slots` its captures are."""
    batch, head = numpy.zeros((), numpy.int32), numpy.zeros((), numpy.int32)
    score, mask = spec.score, spec.mask
    shifted_score = score and (lambda s, b, h, q, kv: score(s, b + batch, h + head, q, kv))
    shifted_mask = mask and (lambda b, h, q, kv: mask(b + batch, h + head, q, kv))
    shifted = [index_as(x, Indexing.CLAMPED) for x in (shifted_score, shifted_mask)]
    scan = Scan.of(*shifted)
    source = Source(dataclasses.replace(spec, score=shifted[0], mask=shifted[1]), scan, placed=placed)
    if source.is_volatile:
        return None
    # Slots count arrays in the order of the functions, which is the same but for these two.
    known: List[int] = []
    for array in [*scan.arrays, *placed]:
        seen = len([x for x in known if x >= 0])
        known.append(BATCH if array is batch else HEAD if array is head else seen)
    places = [known[c.slot] for c in source.captures]
    return source.text, tuple(x if x < 0 else slots.index(x) for x in places)


def _to_4d(x: Any, name: str) -> Any:
    x = jnp.asarray(x)
    if x.ndim not in (3, 4):
        refuse(name, "(B, S, H, D) or (S, H, D)", f"shape {x.shape}")
    return x if x.ndim == 4 else x[None]


def _to_table(x: Any, name: str, whole: Tuple[int, ...]) -> Any:
    x = jnp.asarray(x)
    return x.reshape(fit_table(name, x.shape, whole))


def _both(first: Optional[Callable], second: Callable) -> Callable:
    if first is None:
        return second
    return lambda b, h, q, kv: first(b, h, q, kv) & second(b, h, q, kv)


def _make_mask(
    mask: Any, whole: Tuple, lengths: Tuple[Any, Any], window: Any
) -> Optional[Callable]:
    """One function of all that drops keys; None if nothing does."""
    keep: Optional[Callable] = None
    if callable(mask):
        keep = mask
    elif mask is not None:
        table = _to_table(mask, "mask", whole)
        if table.dtype != jnp.bool_:
            refuse("mask", "bools", table.dtype, "give what is added as bias=")
        keep = read_table(table)
    queries, keys = (None if x is None else jnp.asarray(x) for x in lengths)
    for name, x in (("query_seq_lengths", queries), ("key_value_seq_lengths", keys)):
        if x is not None and x.shape != whole[:1]:
            refuse(name, f"a shape of {whole[:1]}", x.shape)
    if queries is not None:
        keep = _both(keep, lambda b, h, q, kv: q < queries[b])
    if keys is not None:
        keep = _both(keep, lambda b, h, q, kv: kv < keys[b])
    if window is not None:
        left, right = (window, window) if isinstance(window, int) else window
        keep = _both(keep, lambda b, h, q, kv: (q <= kv + left) & (q >= kv - right))
    return keep


@overload
def attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    bias: Union[jax.Array, Score, None] = None,
    mask: Union[jax.Array, Mask, None] = None,
    *,
    scale: Optional[float] = None,
    is_causal: bool = False,
    query_seq_lengths: Optional[jax.Array] = None,
    key_value_seq_lengths: Optional[jax.Array] = None,
    local_window_size: Union[int, Tuple[int, int], None] = None,
    implementation: Optional[str] = None,
    return_residual: Literal[False] = False,
    score: Optional[Score] = None,
    sink: Optional[jax.Array] = None,
    options: OptionsLike = None,
    positions: Optional[Positions] = None,
    total: Optional[Tuple[int, int]] = None,
    out_dtype: Optional[DType] = None,
) -> jax.Array: ...


@overload
def attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    bias: Union[jax.Array, Score, None] = None,
    mask: Union[jax.Array, Mask, None] = None,
    *,
    scale: Optional[float] = None,
    is_causal: bool = False,
    query_seq_lengths: Optional[jax.Array] = None,
    key_value_seq_lengths: Optional[jax.Array] = None,
    local_window_size: Union[int, Tuple[int, int], None] = None,
    implementation: Optional[str] = None,
    return_residual: Literal[True],
    score: Optional[Score] = None,
    sink: Optional[jax.Array] = None,
    options: OptionsLike = None,
    positions: Optional[Positions] = None,
    total: Optional[Tuple[int, int]] = None,
    out_dtype: Optional[DType] = None,
) -> Tuple[jax.Array, jax.Array]: ...


@overload
def attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    bias: Union[jax.Array, Score, None] = None,
    mask: Union[jax.Array, Mask, None] = None,
    *,
    scale: Optional[float] = None,
    is_causal: bool = False,
    query_seq_lengths: Optional[jax.Array] = None,
    key_value_seq_lengths: Optional[jax.Array] = None,
    local_window_size: Union[int, Tuple[int, int], None] = None,
    implementation: Optional[str] = None,
    return_residual: bool,
    score: Optional[Score] = None,
    sink: Optional[jax.Array] = None,
    options: OptionsLike = None,
    positions: Optional[Positions] = None,
    total: Optional[Tuple[int, int]] = None,
    out_dtype: Optional[DType] = None,
) -> Union[jax.Array, Tuple[jax.Array, jax.Array]]: ...


def attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: Optional[float] = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: Any = None,
    implementation: Optional[str] = None,
    return_residual: bool = False,
    score: Optional[Score] = None,
    sink: Any = None,
    options: OptionsLike = None,
    positions: Optional[Positions] = None,
    total: Optional[Tuple[int, int]] = None,
    out_dtype: Optional[DType] = None,
) -> Any:
    """jax.nn.dot_product_attention: the same arguments, shapes and results, with one exception. Rows
    which keep no key give 0 and a residual of -inf. These arguments go beyond it:

    Args:
        bias: also score(s, b, h, q, kv), as for attn.attention.
        mask: also mask(b, h, q, kv), as for attn.attention.
        score: another name for a bias that is a function.
        sink: (N,), one more logit for each head. The logit has no value.
        value: may have more or fewer columns than key.
        options: options of the compiler, as for attn.attention.
        positions, total: (rows, keys), where they stand in a whole of (M, N): each None, an origin,
            intervals, or a sorted array, which JAX may trace. Causality, windows, lengths,
            functions, and masks and biases given as arrays are then those of the whole.
        out_dtype: float32 where the output is not to be rounded; None is the type of query.

    Functions are traced by attn. Arrays that they capture, also arrays that JAX traces, are indexed
    down to one element. Operators of Python, functions of attn and of jax.numpy work on it. Masks
    and biases given as arrays are read as they are, never broadcast.

    Gradients are computed for query, key, value, sink and bias, and for arrays that the score
    captures: first derivatives only. Under jax.vmap a mapped dimension is a part of the batch. With
    functions that read b, or captured arrays that are mapped, calls follow one another. Arrays
    sharded over the batch or the heads stay so; captured arrays are gathered.

    Runs on the CPU, and on NVIDIA's GPUs in float16 and bfloat16; elsewhere XLA says that the call
    is not implemented. Calls in float64 whose arguments are all JAX's go to
    jax.nn.dot_product_attention.

    Raises:
        Error: an argument that does not fit, or a function that cannot be traced.
    """
    if implementation is not None:
        refuse("implementation", "None", repr(implementation), "use jax.nn.dot_product_attention")
    is_jax = score is sink is options is positions is total is out_dtype is None
    is_jax = is_jax and not (callable(bias) or callable(mask))
    if is_jax and jnp.asarray(query).dtype == jnp.float64:
        how = dict(scale=scale, is_causal=is_causal, local_window_size=local_window_size)
        how.update(query_seq_lengths=query_seq_lengths, return_residual=return_residual)
        how.update(key_value_seq_lengths=key_value_seq_lengths)
        return _of_jax(query, key, value, bias, mask, **how)
    q, k, v = (_to_4d(x, name) for x, name in ((query, "query"), (key, "key"), (value, "value")))
    (b, m, h, _), (_, n, g, _) = q.shape, k.shape
    if k.shape != (b, n, g, q.shape[3]) or v.shape[:3] != (b, n, g) or g == 0 or h % g:
        refuse(
            "query, key and value",
            "(B, T, N, H), (B, S, K, H) and (B, S, K, Hv) with N a multiple of K",
            f"{q.shape}, {k.shape} and {v.shape}",
        )
    for name, x in (("key", k), ("value", v)):
        if x.dtype != q.dtype:
            refuse(name, f"elements of {q.dtype} as in query", x.dtype)
    placed = find_placed(positions, total, (m, n))
    whole = (b, h, m, n) if placed is None else (b, h, *(total or (m, n)))
    if callable(bias):
        score, bias = bias, None
    if bias is not None:
        score = add_table(_to_table(bias, "bias", whole), score)
    if scale is not None and is_on_gpu():
        scale, score = None, scale_score(score, scale, q.shape[3])
    lengths = query_seq_lengths, key_value_seq_lengths
    keep = _make_mask(mask, whole, lengths, local_window_size)
    has = scale is not None, sink is not None
    causal = "top_left" if is_causal else False
    functions = tuple(index_as(x, Indexing.CLAMPED) for x in (score, keep))
    traced, captured = _trace(q, v, Asked(causal, *has, out_dtype, placed), functions, options)
    numbers = [] if scale is None else [jnp.asarray(scale, jnp.float32)]
    if sink is not None:
        numbers.append(jnp.asarray(sink, jnp.float32))
    output, lse = _differentiate(traced)(q, k, v, numbers, [to_jax(x) for x in captured])
    if query.ndim == 3:
        output = output[0]
    if not return_residual:
        return output
    residual = jax.lax.stop_gradient(lse.swapaxes(1, 2).astype(k.dtype))
    return output, residual[0] if query.ndim == 3 else residual


def context_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    *,
    axis_name: str,
    positions: Optional[jax.Array] = None,
    scale: Optional[float] = None,
    causal: bool = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: Optional[jax.Array] = None,
    return_residual: bool = False,
    options: OptionsLike = None,
    out_dtype: Optional[DType] = None,
) -> Union[jax.Array, Tuple[jax.Array, jax.Array]]:
    """attn.jax.attention of the rows of this shard to the keys of all shards, inside of jax.shard_map.

    Args:
        query, key, value: this shard's part of the sequence, (B, T, N, H), (B, T, K, H) and
            (B, T, K, Hv). All shards have as many rows, and rows and keys stand at the same positions.
        axis_name: the axis of the mesh that the sequence is sharded over.
        positions: (T,) integers, where this shard's rows stand in the whole, ascending. All shards
            together have each position once. None where shards follow one another.
        causal, window, score, mask: as for `attn.attention`; functions see positions in the whole.
        scale, sink, return_residual, options, out_dtype: as for `attn.jax.attention`.

    Keys and values are gathered over the axis, into the order of positions, and each shard makes one call.
    Gradients are those of JAX: they go back to the shards, and are summed there.

    Raises:
        Error: an argument that does not fit, or a function that cannot be traced.
    """
    k, v, rows = gather_whole((query, key, value), axis_name, positions)
    keep = make_mask(mask, check_causal(causal), check_window(window))
    total = (k.shape[1], k.shape[1])
    how: Dict[str, Any] = dict(
        scale=scale, sink=sink, return_residual=return_residual, options=options, out_dtype=out_dtype
    )
    return attention(query, k, v, score=score, mask=keep, positions=(rows, None), total=total, **how)
