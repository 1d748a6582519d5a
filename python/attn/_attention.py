"""attention, compile and explain."""

from __future__ import annotations

import ctypes
import struct
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from . import _arrays, _library
from ._library import Error, Kernel, check, library
from ._source import Problem, Source, check_causal, check_window
from ._trace import Scan

_LIMIT = 512
_DTYPE_WORD = struct.Struct("<iBBH")


class _Frame:
    """The DLPack tensors of one call, in memory that calls share one after the other.

    Six words each: data, device, ndim and dtype, shape, strides, offset; then their addresses; then
    shapes and strides, and one word for the factor of the products.
    """

    def __init__(self, types: List[Tuple[str, int]]) -> None:
        count = len(types)
        words = 7 * count + 2 * sum(rank for _, rank in types) + 1
        self.memory = bytearray(8 * words)
        self.words = memoryview(self.memory).cast("q")
        self.buffer = (ctypes.c_char * len(self.memory)).from_buffer(self.memory)
        base = ctypes.addressof(self.buffer)
        self.scale = len(self.memory) - 8
        self.extents: List[int] = []
        offset = 7 * count
        for i, (type_, rank) in enumerate(types):
            code, bits, _ = _arrays.TYPES[type_]
            _DTYPE_WORD.pack_into(self.memory, 48 * i + 8, 1, 0, 0, 0)
            self.words[6 * i + 2] = struct.unpack("<q", _DTYPE_WORD.pack(rank, code, bits, 1))[0]
            self.words[6 * i + 3] = base + 8 * offset
            self.words[6 * i + 4] = base + 8 * (offset + rank)
            self.words[6 * count + i] = base + 48 * i
            self.extents.append(8 * offset)
            offset += 2 * rank
        self.tensors = base + 48 * count
        self.scale_address = base + self.scale


_pack = {rank: struct.Struct(f"<{2 * rank}q").pack_into for rank in range(0, 65)}
_pack_float = struct.Struct("<f").pack_into


class _Plan:
    """A kernel and how its calls are laid out."""

    def __init__(self, problem: Problem, source: Source, options: Mapping[str, object]) -> None:
        self.problem, self.source, self.options = problem, source, dict(options)
        self.kernel = _compile(source.text, options)
        types = [(problem.type, 4)] * 3
        if problem.has_scale:
            types.append(("f32", 0))
        if problem.has_sink:
            types.append(("f32", 1))
        types += [(capture.type or "", capture.rank) for capture in source.captures]
        types.append((problem.type, 4))
        if problem.return_lse:
            types.append(("f32", 3))
        self.types, self.count = types, len(types)
        self.first_capture = 3 + problem.has_scale + problem.has_sink
        # (name, slot, index of the tensor, rank, least extents or None)
        self.captures = [
            (c.name, c.slot, self.first_capture + i, c.rank, c.least if any(c.least) else None)
            for i, c in enumerate(source.captures)
        ]
        self.frames: List[_Frame] = []

    def run(
        self,
        q: Any,
        k: Any,
        v: Any,
        scale: Any,
        sink: Any,
        rows_first: bool,
        captured: Optional[List[Any]],
    ) -> Any:
        problem = self.problem
        # Frames are taken and given back by list operations that are atomic.
        try:
            frame = self.frames.pop()
        except IndexError:
            frame = _Frame(self.types)
        words, memory, extents = frame.words, frame.memory, frame.extents
        pack4 = _pack[4]
        query_shape: Tuple[int, ...] = ()
        for i, (name, x) in enumerate((("q", q), ("k", k), ("v", v))):
            address, shape, strides = _arrays.view(x, name)
            if len(shape) != 4:
                raise Error(
                    "invalid argument",
                    f"{name}: expected 4 dimensions, "
                    f"{'(B, S, H, D)' if rows_first else '(B, H, S, D)'}, got shape {tuple(shape)}",
                )
            if i and x.dtype != q.dtype:
                raise Error(
                    "invalid argument", f"{name}: expected the type of q, {q.dtype}, got {x.dtype}"
                )
            if rows_first:
                shape = (shape[0], shape[2], shape[1], shape[3])
                strides = (strides[0], strides[2], strides[1], strides[3])
            words[6 * i] = address
            pack4(memory, extents[i], *shape, *strides)
            if i == 0:
                query_shape = shape
        position = 3
        if problem.has_scale:
            words[6 * 3] = frame.scale_address
            try:
                _pack_float(memory, frame.scale, scale)
            except (struct.error, OverflowError, TypeError):
                raise Error(
                    "invalid argument", f"scale: expected a number, got {scale!r}"
                ) from None
            position = 4
        keep = None
        if problem.has_sink:
            keep = self._put_sink(frame, position, sink)
        for name, slot, index, rank, least in self.captures:
            if captured is None or slot is None:
                array = self.source.captures[index - self.first_capture].array
            else:
                array = captured[slot]
            address, shape, strides = _arrays.view(array, name)
            if least and any(extent < low for extent, low in zip(shape, least)):
                raise Error(
                    "invalid argument",
                    f"{name}: expected a shape of at least {tuple(least)}, "
                    f"which is read, got {tuple(shape)}",
                )
            words[6 * index] = address
            _pack[rank](memory, extents[index], *shape, *strides)

        b, h, m, _ = query_shape
        dv = problem.value_dim
        index = self.count - 1 - problem.return_lse
        if rows_first:
            output = _arrays.empty_like(q, None, (b, m, h, dv))
            strides = (m * h * dv, dv, h * dv, 1)
        else:
            output = _arrays.empty_like(q, None, (b, h, m, dv))
            strides = (h * m * dv, m * dv, dv, 1)
        words[6 * index] = _address(output)
        pack4(memory, extents[index], b, h, m, dv, *strides)
        lse = None
        if problem.return_lse:
            lse = _arrays.empty_like(q, "f32", (b, h, m))
            words[6 * index + 6] = _address(lse)
            _pack[3](memory, extents[index + 1], b, h, m, h * m, m, 1)
        code = library.attn_run(self.kernel.handle, frame.tensors, self.count, None)
        if code:
            check(code)
        del keep
        self.frames.append(frame)
        return (output, lse) if problem.return_lse else output

    @staticmethod
    def _put_sink(frame: _Frame, index: int, sink: Any) -> Any:
        """Returns what must outlive the call."""
        if _arrays.is_array(sink) and _arrays.type_name(sink.dtype) in ("f16", "bf16", "f64"):
            sink = _arrays.to_f32(sink)
        address, shape, strides = _arrays.view(sink, "sink")
        if len(shape) != 1 or _arrays.type_name(sink.dtype) != "f32":
            raise Error(
                "invalid argument",
                "sink: expected floats of shape (H,), got " f"{sink.dtype} of shape {tuple(shape)}",
            )
        frame.words[6 * index] = address
        _pack[1](frame.memory, frame.extents[index], *shape, *strides)
        return sink


def _address(x: Any) -> int:
    return x.data_ptr() if hasattr(x, "data_ptr") else x.__array_interface__["data"][0]


_kernels: Dict[Any, Kernel] = {}
_plans: Dict[Any, Tuple[_Plan, List[Any]]] = {}


def _remember(cache: Dict, key: Any, value: Any) -> None:
    """Drops what came first when there is too much: a mask per call must not fill the memory."""
    if len(cache) >= _LIMIT:
        try:
            cache.pop(next(iter(cache)), None)
        except (StopIteration, RuntimeError):
            pass
    cache[key] = value


def _option_key(options: Optional[Mapping[str, object]]) -> Tuple:
    return tuple(sorted(options.items())) if options else ()


def _compile(text: str, options: Mapping[str, object]) -> Kernel:
    key = (text, _option_key(options))
    kernel = _kernels.get(key)
    if kernel is None:
        kernel = Kernel(text, options)
        _remember(_kernels, key, kernel)
    return kernel


def _is_rows_first(layout: str) -> bool:
    if layout == "bhsd":
        return False
    if layout == "bshd":
        return True
    raise Error("invalid argument", f'layout: expected "bhsd" or "bshd", got {layout!r}')


def _make_plan(
    dtype: Any,
    head_dim: int,
    value_dim: int,
    causal: Any,
    window: Any,
    score: Any,
    mask: Any,
    has_scale: bool,
    has_sink: bool,
    return_lse: bool,
    options: Optional[Mapping[str, object]],
    scan: Scan,
) -> _Plan:
    type_ = _arrays.type_name(dtype)
    if type_ not in ("f16", "bf16", "f32"):
        raise Error(
            "invalid argument",
            f"q: expected float16, bfloat16 or float32, got {dtype}",
            "convert q, k and v",
        )
    for name, extent in (("head_dim", head_dim), ("value_dim", value_dim)):
        if not isinstance(extent, int) or not 1 <= extent <= 1 << 20:
            raise Error(
                "invalid argument",
                f"{name}: expected a number of columns from 1 on, got {extent!r}",
            )
    problem = Problem(
        type_,
        head_dim,
        value_dim,
        check_causal(causal),
        check_window(window),
        has_scale,
        has_sink,
        bool(return_lse),
    )
    return _Plan(problem, Source(problem, score, mask, scan), options or {})


def _functions(score: Any, mask: Any) -> List[Any]:
    return [function for function in (score, mask) if function is not None]


def _check_query(q: Any, k: Any, v: Any) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        _, shape, _ = _arrays.view(x, name)
        if len(shape) != 4:
            raise Error(
                "invalid argument", f"{name}: expected 4 dimensions, got shape {tuple(shape)}"
            )


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    scale: Optional[float] = None,
    causal: Union[bool, str] = False,
    window: Optional[Tuple[Optional[int], Optional[int]]] = None,
    score: Optional[Callable] = None,
    mask: Optional[Callable] = None,
    sink: Any = None,
    layout: str = "bhsd",
    return_lse: bool = False,
    options: Optional[Mapping[str, object]] = None,
) -> Any:
    """softmax(score(scale * q k^T)) v over the keys that the mask keeps.

    Args:
        q: queries, (B, H, M, D); NumPy or PyTorch on the CPU, of float32, float16 or bfloat16.
        k: keys, (B, Hkv, N, D). H is a multiple of Hkv; head h reads h // (H // Hkv).
        v: values, (B, Hkv, N, Dv).
        scale: factor of the products; 1 / sqrt(D) if None.
        causal: True or "bottom_right" keeps keys up to the row's position counted from the last row
            and last key, "top_left" from the first ones. The two agree when M == N.
        window: (left, right), keys kept before and after the row's position counted from the
            bottom-right; None or -1 is no bound.
        score: score(s, b, h, q, kv), traced once; s is a float, the rest are integers.
        mask: mask(b, h, q, kv), traced once: whether to keep the key.
        sink: (H,), one more logit for each head that has no value.
        layout: "bhsd" as above, or "bshd": q, k, v and the result are (B, S, H, D). Strides are
            free, except that the last dimension is contiguous; nothing is copied.
        return_lse: also return the natural logarithm of the sum of exponentials.
        options: of the compiler: threads, block_m, block_n, splits, cpu.

    Returns:
        The output, in the type, library and layout of q, with Dv columns; or (output, lse) with lse
        float32 of shape (B, H, M) in every layout. A row that keeps no key gives 0 and -inf.

    Captured arrays are read where the function says, also for keys that are masked: indices must be
    inside for every row and key. Arrays read at b, h, q or kv alone are checked; for others, an
    index outside reads memory that is not the array's.

    Raises:
        Error: an argument that does not fit, or a function that cannot be traced.
    """
    try:
        functions = _functions(score, mask)
        if functions:
            scan = Scan(*functions)
            arrays: Optional[List[Any]] = scan.arrays
            key: Any = (
                q.dtype,
                q.shape[-1],
                v.shape[-1],
                causal,
                window,
                scale is None,
                sink is None,
                return_lse,
                options and _option_key(options),
                score is None,
                *scan.key,
            )
            found = None if scan.is_volatile else _plans.get(key)
        else:
            scan, arrays = None, None
            key = (
                q.dtype,
                q.shape[-1],
                v.shape[-1],
                causal,
                window,
                scale is None,
                sink is None,
                return_lse,
                options and _option_key(options),
            )
            found = _plans.get(key)
    except (AttributeError, IndexError, TypeError):
        # An argument of another type. Say which, or go on without the cache.
        _check_query(q, k, v)
        scan, arrays, key, found = Scan(*_functions(score, mask)), None, None, None
    if found is not None:
        plan = found[0]
    else:
        _check_query(q, k, v)
        scan = scan or Scan(*_functions(score, mask))
        plan = _make_plan(
            q.dtype,
            int(q.shape[-1]),
            int(v.shape[-1]),
            causal,
            window,
            score,
            mask,
            scale is not None,
            sink is not None,
            return_lse,
            options,
            scan,
        )
        arrays = None
        if key is not None and not scan.is_volatile:
            # `keep` holds what the key names by its address.
            _remember(_plans, key, (plan, scan.keep))
    return plan.run(q, k, v, scale, sink, layout != "bhsd" and _is_rows_first(layout), arrays)


class Attention:
    """A compiled attention: call it as `kernel(q, k, v)`, for any lengths, batches and heads.

    Attributes:
        source: its IR, as a user would write it.
        compile_ms: milliseconds that compiling took.
    """

    def __init__(self, plan: _Plan, layout: str) -> None:
        self._plan, self._layout = plan, layout
        self._rows_first = _is_rows_first(layout)
        self.source: str = plan.source.text
        self.compile_ms: float = plan.kernel.compile_ms

    def __call__(
        self, q: Any, k: Any, v: Any, *, scale: Optional[float] = None, sink: Any = None
    ) -> Any:
        """As `attention`. `scale` and `sink` are given exactly if the kernel was compiled with them.

        Raises:
            Error: an argument that does not fit.
        """
        problem = self._plan.problem
        for name, x, wanted in (
            ("scale", scale, problem.has_scale),
            ("sink", sink, problem.has_sink),
        ):
            if (x is not None) != wanted:
                got = "none" if wanted else "one"
                raise Error(
                    "invalid argument",
                    f"{name}: expected {'one' if wanted else 'none'}, got {got}",
                    f"compile with {name}={not wanted}",
                )
        type_ = _arrays.type_name(getattr(q, "dtype", None))
        if type_ != problem.type:
            raise Error(
                "invalid argument",
                f"q: expected elements of {problem.type}, got " + _arrays.describe_type(q),
            )
        return self._plan.run(q, k, v, scale, sink, self._rows_first, None)

    def explain(self, until: str = "online") -> "Explanation":
        """As `attn.explain`."""
        return Explanation(_library.explain(self.source, self._plan.options, until))

    def __repr__(self) -> str:
        p = self._plan.problem
        return f"<attn.Attention {p.type} D={p.head_dim} Dv={p.value_dim} layout={self._layout}>"


class Explanation(str):
    """Text that a prompt shows as it is."""

    def __repr__(self) -> str:
        return str(self)


def compile(
    dtype: Any,
    head_dim: int,
    value_dim: Optional[int] = None,
    *,
    scale: bool = False,
    causal: Union[bool, str] = False,
    window: Optional[Tuple[Optional[int], Optional[int]]] = None,
    score: Optional[Callable] = None,
    mask: Optional[Callable] = None,
    sink: bool = False,
    layout: str = "bhsd",
    return_lse: bool = False,
    options: Optional[Mapping[str, object]] = None,
) -> Attention:
    """Compiles an attention for later calls with any lengths, batches and heads.

    Args:
        dtype: of q, k and v: a dtype of NumPy or PyTorch, or its name.
        head_dim: D, columns of q and k.
        value_dim: Dv, columns of v; D if None.
        scale: whether calls give a scale.
        sink: whether calls give a sink.
        causal, window, score, mask, layout, return_lse, options: as for `attention`. Captured arrays
            are those of now; a call reads what they then hold.

    Raises:
        Error: an argument that does not fit, or a function that cannot be traced.
    """
    _is_rows_first(layout)
    plan = _make_plan(
        dtype,
        head_dim,
        head_dim if value_dim is None else value_dim,
        causal,
        window,
        score,
        mask,
        bool(scale),
        bool(sink),
        return_lse,
        options,
        Scan(*_functions(score, mask)),
    )
    return Attention(plan, layout)


def explain(
    dtype: Any,
    head_dim: int,
    value_dim: Optional[int] = None,
    *,
    until: str = "online",
    **arguments: Any,
) -> Explanation:
    """What the compiler makes of an attention: the schedule and the rule that chose it, which key
    tiles each mask visits, compile times, and the IR after a room.

    Args:
        until: "problem", "grid" or "online".
        dtype, head_dim, value_dim, and the others: as for `compile`.

    Returns:
        A text that a prompt shows as it is.

    Raises:
        Error: as `compile`.
    """
    return compile(dtype, head_dim, value_dim, **arguments).explain(until)
