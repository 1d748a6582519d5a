"""attention."""

from __future__ import annotations

from typing import Any, Dict, Literal, Optional, Tuple, Union, overload

from . import _dynamo
from ._arrays import type_name
from ._eager import call
from ._library import refuse
from ._positions import find_placed
from ._problem import is_rows_first
from ._scaled import Scales, attend, is_narrow
from ._state import attend_from
from ._words import fail_unexpected
from .typing import (
    Array,
    ArrayT,
    Causal,
    DropoutSeed,
    DType,
    Layout,
    Mask,
    OptionsLike,
    Positions,
    Scale,
    Score,
    Window,
)


@overload
def attention(
    q: ArrayT,
    k: ArrayT,
    v: ArrayT,
    *,
    scale: Optional[float] = None,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: Optional[Array] = None,
    layout: Layout = "bhsd",
    return_lse: Literal[False] = False,
    options: OptionsLike = None,
    dropout_p: float = 0.0,
    dropout_seed: DropoutSeed = None,
    positions: Optional[Positions] = None,
    total: Optional[Tuple[int, int]] = None,
    q_descale: Scale = None,
    k_descale: Scale = None,
    v_descale: Scale = None,
    descale_block: Optional[Union[int, Tuple[int, int]]] = None,
    out_dtype: Optional[DType] = None,
    state: Optional[Tuple[ArrayT, ArrayT]] = None,
) -> ArrayT: ...


@overload
def attention(
    q: ArrayT,
    k: ArrayT,
    v: ArrayT,
    *,
    scale: Optional[float] = None,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: Optional[Array] = None,
    layout: Layout = "bhsd",
    return_lse: Literal[True],
    options: OptionsLike = None,
    dropout_p: float = 0.0,
    dropout_seed: DropoutSeed = None,
    positions: Optional[Positions] = None,
    total: Optional[Tuple[int, int]] = None,
    q_descale: Scale = None,
    k_descale: Scale = None,
    v_descale: Scale = None,
    descale_block: Optional[Union[int, Tuple[int, int]]] = None,
    out_dtype: Optional[DType] = None,
    state: Optional[Tuple[ArrayT, ArrayT]] = None,
) -> Tuple[ArrayT, ArrayT]: ...


@overload
def attention(
    q: ArrayT,
    k: ArrayT,
    v: ArrayT,
    *,
    scale: Optional[float] = None,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: Optional[Array] = None,
    layout: Layout = "bhsd",
    return_lse: bool,
    options: OptionsLike = None,
    dropout_p: float = 0.0,
    dropout_seed: DropoutSeed = None,
    positions: Optional[Positions] = None,
    total: Optional[Tuple[int, int]] = None,
    q_descale: Scale = None,
    k_descale: Scale = None,
    v_descale: Scale = None,
    descale_block: Optional[Union[int, Tuple[int, int]]] = None,
    out_dtype: Optional[DType] = None,
    state: Optional[Tuple[ArrayT, ArrayT]] = None,
) -> Union[ArrayT, Tuple[ArrayT, ArrayT]]: ...


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    scale: Optional[float] = None,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: Optional[Array] = None,
    layout: Layout = "bhsd",
    return_lse: bool = False,
    options: OptionsLike = None,
    dropout_p: float = 0.0,
    dropout_seed: DropoutSeed = None,
    positions: Optional[Positions] = None,
    total: Optional[Tuple[int, int]] = None,
    q_descale: Scale = None,
    k_descale: Scale = None,
    v_descale: Scale = None,
    descale_block: Optional[Union[int, Tuple[int, int]]] = None,
    out_dtype: Optional[DType] = None,
    state: Optional[Tuple[Any, Any]] = None,
    **others: Any,
) -> Any:
    """softmax(score(scale * q k^T)) v over the keys that the mask keeps.

    Args:
        q: queries, (B, H, M, D), of NumPy or PyTorch: float32, float16 or bfloat16. All other
            arrays are where q is. Arrays of other libraries (JAX, CuPy...) are taken by DLPack,
            and results are arrays of q's library. A GPU computes float32 by six products of
            bfloat16, as exactly as by its own: about a sixth of the speed of bfloat16.
        k: keys, (B, Hkv, N, D). H is a multiple of Hkv; head h reads h // (H // Hkv).
        v: values, (B, Hkv, N, Dv).
        scale: factor of the products; 1 / sqrt(D) if None.
        causal: True or "bottom_right" keeps the keys up to the row's own position, counted from the
            last row and the last key. "top_left" counts from the first row and the first key. The
            two agree when M == N.
        window: (left, right), the numbers of keys that are kept before and after the row's
            position, which is counted from the bottom-right. None or -1 is no bound.
        score: score(s, b, h, q, kv), traced once; s is a float, the others are integers.
        mask: mask(b, h, q, kv), traced once: whether to keep the key.
        sink: (H,), one more logit for each head. The logit has no value.
        layout: "bhsd" as above, or "bshd": q, k, v and the result are (B, S, H, D). Strides are
            free, except that the last dimension is contiguous. Nothing is copied.
        return_lse: also return the logsumexp, the natural logarithm of the sum of exponentials.
        options: options of the compiler, an `attn.Options` or a mapping of the names of its fields.
        dropout_p: the probability that a weight is dropped after it is normalized, met to 2^-17.
            The other weights are divided by 1 minus that probability. The logsumexp does not know
            it. The dropped weights are a function of the seed and of (b, h, q, kv) alone (s16 of
            dialects/Attn/README.md).
        dropout_seed: an integer, or an array of one integer where q is. It may change between calls
            and between replays of a CUDA graph. If None, it is drawn from PyTorch's generator of
            the device, or from NumPy's numpy.random. Gradients use the seed of their call.
        positions: (rows, keys), where the rows and keys of this call stand in a whole that it is a part
            of. Each is None (from 0 on), an origin, intervals [(begin, end), ...] in ascending order, or a
            table: an array of as many integers as there are rows or keys, which do not decrease, where
            q is. Causal, windows, functions, attn.query_length and attn.key_length, and dropout then mean
            positions in the whole, and functions read arrays there, at the nearest element. Kernels do
            not depend on the numbers: they are compiled for origins (one interval is one too) or for
            tables. A GPU's table is not looked at: if it decreases, it is unspecified which keys are kept.
        total: (M, N), the rows and keys of the whole. It is given with positions.
        q_descale, k_descale, v_descale: what elements of 8 bits are multiplied by: a number, or
            float32 of shape (B, S), S being any divisor of the heads of q, or of k and v. None is 1.
            q, k and v are float8_e4m3fn or float8_e5m2 then, all three alike, and have no gradients.
        descale_block: how many rows share a scale, or such numbers for q and for k and v. Scales
            may be (B, S, C) then, with one for each block of rows.
        out_dtype: of the output: that of q, or float32, in which no sum is rounded before others are
            added to it (`merge`). That of q if None. Where q has 8 bits: float16, bfloat16 or float32;
            bfloat16 if None.

        state: (output, lse), float32 of the shapes that a call with return_lse gives: attention of
            the same queries to other keys. The softmax goes on from there, so that the result is
            attention to the keys of both. A sink is given to one of the calls. With
            out_dtype="float32" nothing is rounded between calls. Elements of 8 bits have none.

    Returns:
        The output, in the library, device and layout of q, with Dv columns; or (output, lse)
        with lse float32 of shape (B, H, M) in every layout. A row that keeps no key gives 0 and
        -inf.

    Raises:
        Error: an argument that does not fit, or a function that cannot be traced.

    A GPU has several kernels for one attention, and each call takes one by its shapes. Without
    block sizes, these are:
        packed2 to packed64: all rows of a group of heads fit a tile of 64. Dropout rules them out.
            Where each query head has keys of its own, they also need 1024 keys.
        few: at most 128 rows, more than 2048 keys, no mask or score, and D and Dv at most 128.
        narrow: more than 256 rows, at most 80 keys or 129 to 160, no mask or score, on a GPU whose
            memory moves at least 4 TB/s, as an H200's does.
        short: short sequences, where another kernel than that of long ones is faster.
    A kernel is compiled when a call first takes it (`Attention.prepare`, `warm_up`). Graphs of
    torch.compile choose in the same way, as do JAX, C and C++.

    PyTorch's autograd records the call. Kernels compute the gradients of q, k, v, the sink, and the
    captured tensors that the score reads. First derivatives are supported; tangents are refused. A
    GPU sums two kinds of gradients in any order, so that their last bits differ from run to run.
    Gradients of queries are one kind, except under torch.use_deterministic_algorithms. Gradients of
    captured tensors are the other kind, and are refused under torch.use_deterministic_algorithms.
    All other gradients are the same bits each time.

    PyTorch's transforms: torch.func.grad and torch.vmap work. Under torch.autocast tensors are cast
    as for PyTorch's own attention. torch.compile sees an operator, attn::forward. Dynamo traces
    score and mask like the functions of PyTorch's flex_attention. It breaks its graph around a
    call whose functions it does not know, such as functions of attn itself. On the CPU,
    torch.set_num_threads sets the number of threads.

    A function may read values of modules, classes and objects; it reads them at each call. Values
    that it spells by name, such as config.window, are compared with those of the last call.
    Anything else, such as a property or table["window"], makes attn trace the function again,
    which takes some hundred microseconds.

    On a GPU the work is queued on the current stream of q's device. A CUDA graph can capture the
    call if its kernel is there: a captured call compiles nothing, and raises an Error that names
    `prepare` where it would have to.

    Captured arrays have any strides. A kernel reads them also for keys that are masked, so indices
    must be inside for every row and key. Arrays that are read at b, h, q or kv, or at a constant
    distance from one of these, are checked. At the distance q - kv, or that plus a constant, a
    kernel reads the nearest element if the index is outside. Other indices below 0 count from the
    end, as in Python. Integers are 64 bits wide, on GPUs too.
    """
    if others:
        fail_unexpected("attention", others)
    how: Dict[str, Any]
    scales_given = q_descale is not None or k_descale is not None or v_descale is not None
    has_scales = scales_given or is_narrow(q)
    if state is not None:
        if has_scales:
            refuse("state", "None where elements have 8 bits", "one")
        how = dict(scale=scale, causal=causal, window=window, score=score, mask=mask, sink=sink)
        how.update(layout=layout, options=options, dropout_p=dropout_p, dropout_seed=dropout_seed)
        how.update(positions=positions, total=total)
        return attend_from(state, attention, q, k, v, return_lse, {**how, "out_dtype": out_dtype})
    if _dynamo.is_compiling() and not has_scales:
        how = dict(
            scale=scale, causal=causal, window=window, sink=sink, options=options
        )
        how.update(dropout_p=dropout_p, dropout_seed=dropout_seed, rows_first=is_rows_first(layout))
        how.update(out_dtype=None if out_dtype is None else type_name(out_dtype) or str(out_dtype))
        if positions is not None or total is not None:
            how["placed"] = find_placed((positions, total), q, k, how["rows_first"])
        # These import PyTorch, which is there.
        if score is None and mask is None:
            from . import _traced

            return _traced.attend(q, k, v, return_lse, how)
        from . import _flex_node

        found = _flex_node.attend(q, k, v, score, mask, **how)
        return found if return_lse else found[0]
    placed = None if positions is None and total is None else (positions, total)
    asked = scale, causal, window, score, mask, sink, return_lse, out_dtype, placed
    if has_scales:
        scales = Scales(q_descale, k_descale, v_descale, descale_block)
        return attend(q, k, v, scales, asked, layout, (options, dropout_p, dropout_seed))
    return call(q, k, v, asked, layout, options, dropout_p, dropout_seed)
