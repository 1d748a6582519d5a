"""attention, compile and explain."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from . import _arrays, _dynamo, _library
from ._frame import Frame, address_of, pack_matrices, use_threads
from ._gradient import Given, GradientPlan, is_recorded, record
from ._library import Error, Kernel, OptionTexts, check, library, option_texts
from ._scan import Scan
from ._source import Source, Text, check_causal, check_window, make_problem

_LIMIT = 512
_NOTHING: List[Any] = []
_run = library.attn_run


class _Plan:
    """A kernel and how its calls are laid out. Copies share it."""

    def __init__(self, text: Text, captures: List[Tuple], options: OptionTexts) -> None:
        """Captures are (name, type, type of the elements, rank, position in what a call gives, least
        extents)."""
        problem = text.problem
        self.problem, self.text, self.options = problem, text, options
        self.given = captures
        self.kernel = _compile(text.forward, options)
        self.gradients: Dict[Tuple[Tuple[str, ...], bool], GradientPlan] = {}
        self.plan_with_lse: Optional[_Plan] = self if problem.return_lse else None
        # As torch.Tensor.get_device() says it: -1 is the CPU.
        self.device = self.kernel.device
        self.stream = _arrays.find_current_stream() if self.device >= 0 else None
        self.tensor_type, self.dtype = _arrays.find_tensor_type(problem.type)
        self.forward_ad = _arrays.find_forward_ad()
        self.empty_strided = _arrays.find_empty_strided(self.device)
        self.is_tracing = _arrays.find_is_tracing()
        self.count_threads = _arrays.find_thread_count(self.device)
        self.can_be_negated = problem.type in _arrays.PARTS_OF_COMPLEX
        types = [(problem.type, 4)] * 3
        if problem.has_scale:
            types.append(("f32", 0))
        if problem.has_sink:
            types.append(("f32", 1))
        types += [(capture[1], capture[3]) for capture in captures]
        self.output = len(types)
        self.output_word = 6 * self.output
        types.append((problem.type, 4))
        if problem.return_lse:
            types.append(("f32", 3))
        self.types, self.count = types, len(types)
        # What every call passes, as ctypes takes it without a conversion.
        self.native = ctypes.c_void_p(self.kernel.handle), ctypes.c_size_t(self.count)
        first = 3 + problem.has_scale + problem.has_sink
        # (index of the tensor, name, type of the elements, rank, position, least extents or None)
        self.captures = [
            (first + i, name, element, rank, position, least if any(least) else None)
            for i, (name, _, element, rank, position, least) in enumerate(captures)
        ]
        self.frames: List[Frame] = []

    def __copy__(self) -> "_Plan":
        return self

    def __deepcopy__(self, memo: Any) -> "_Plan":
        return self

    def __reduce__(self) -> Tuple:
        return _Plan, (self.text, self.given, self.options)

    def with_lse(self) -> "_Plan":
        """The plan of the same attention whose calls return lse too, as gradients need it."""
        if self.plan_with_lse is None:
            problem = dataclasses.replace(self.problem, return_lse=True)
            text = dataclasses.replace(self.text, problem=problem)
            self.plan_with_lse = _Plan(text, self.given, self.options)
        return self.plan_with_lse

    def gradient(self, wanted: Tuple[str, ...], has_lse_gradient: bool) -> GradientPlan:
        """Compiled when first wanted."""
        key = wanted, has_lse_gradient
        plan = self.gradients.get(key)
        if plan is None:
            plan = GradientPlan(self.text, self.given, self.options, wanted, has_lse_gradient)
            self.gradients[key] = plan
        return plan

    def make_frame(self) -> Frame:
        frame = Frame(self.types, [0, 1, 2, self.output], self.device)
        if self.problem.has_scale:
            frame.hold_scale(3)
        return frame

    def run(
        self,
        q: Any,
        k: Any,
        v: Any,
        scale: Any,
        sink: Any,
        rows_first: bool,
        captured: List[Any],
    ) -> Any:
        problem = self.problem
        if self.is_tracing():
            raise Error(
                "invalid argument",
                "attention: expected an eager call, got one inside torch.jit.trace",
                "trace what is around it: attn is no operator of PyTorch yet",
            )
        # Frames are taken and given back by list operations that are atomic.
        try:
            frame = self.frames.pop()
        except IndexError:
            frame = self.make_frame()
        output = None
        device = self.device
        try:
            if (
                type(q) is type(k) is type(v) is self.tensor_type
                and (
                    q.is_cpu and k.is_cpu and v.is_cpu
                    if device < 0
                    else q.get_device() == device == k.get_device() == v.get_device()
                )
                and q.dtype is k.dtype is v.dtype is self.dtype
                and not (q.requires_grad or k.requires_grad or v.requires_grad)
                # No tangents: those of functorch are in tensors without memory.
                and self.forward_ad._current_level < 0
                and not (self.can_be_negated and (q.is_neg() or k.is_neg() or v.is_neg()))
            ):
                output = self._put_tensors(frame, q, k, v, rows_first)
        except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
            # Not tensors of PyTorch, or not such as have memory.
            output = None
        if output is None:
            output = self._put_arrays(frame, q, k, v, rows_first)
        keep = None
        if self.count > 4:
            if problem.has_scale:
                frame.put_scale(scale)
            if problem.has_sink:
                keep = self._put_sink(frame, 3 + problem.has_scale, sink)
            if self.captures:
                self._put_captures(frame, captured)
        lse = None
        if problem.return_lse:
            shape = output.shape
            b, h, m = (shape[0], shape[2], shape[1]) if rows_first else shape[:3]
            index = self.output + 1
            lse = _arrays.empty_like(q, "f32", (b, h, m))
            frame.put(index, address_of(lse), (b, h, m), (h * m, m, 1))
        count_threads = self.count_threads
        if count_threads is not None:
            use_threads(count_threads())
        stream = self.stream
        handle, count = self.native
        code = _run(handle, frame.tensors, count, None if stream is None else stream(device))
        if code:
            # A tensor that has no memory gives its address as 0.
            for name, x in (("q", q), ("k", k), ("v", v)):
                _arrays.view(x, name, device)
            check(code)
        # On a GPU the call is only queued: memory that goes back to PyTorch's allocator is given
        # out in the order of the stream.
        del keep
        self.frames.append(frame)
        return output if lse is None else (output, lse)

    def _put_tensors(self, frame: Frame, q: Any, k: Any, v: Any, rows_first: bool) -> Any:
        """Tensors of PyTorch, which have been looked at. Returns the output."""
        layout = (rows_first, q.shape, q.stride(), k.shape, k.stride(), v.shape, v.stride())
        if layout != frame.layout:
            self._put_layout(frame, layout)
        output = self.empty_strided(*frame.output, self.dtype)
        words = frame.words
        words[0] = q.data_ptr()
        words[6] = k.data_ptr()
        words[12] = v.data_ptr()
        words[self.output_word] = output.data_ptr()
        return output

    def _put_layout(self, frame: Frame, layout: Any) -> None:
        """Raises ValueError when a tensor has not 4 dimensions."""
        rows_first, q_shape, q_strides, k_shape, k_strides, v_shape, v_strides = layout
        dv = self.problem.value_dim
        if rows_first:
            b, m, h, d = q_shape
            kb, n, kh, kd = k_shape
            vb, vn, vh, vd = v_shape
            q0, q1, q2, q3 = q_strides
            k0, k1, k2, k3 = k_strides
            v0, v1, v2, v3 = v_strides
            frame.output = (b, m, h, dv), (m * h * dv, h * dv, dv, 1)
            # fmt: off
            pack_matrices(
                frame.memory, frame.extents[0],
                b, h, m, d, q0, q2, q1, q3, kb, kh, n, kd, k0, k2, k1, k3,
                vb, vh, vn, vd, v0, v2, v1, v3, b, h, m, dv, m * h * dv, dv, h * dv, 1,
            )
            # fmt: on
        else:
            b, h, m, _ = q_shape
            _, _, _, _ = k_shape
            _, _, _, _ = v_shape
            frame.output = (b, h, m, dv), (h * m * dv, m * dv, dv, 1)
            # fmt: off
            pack_matrices(
                frame.memory, frame.extents[0],
                *q_shape, *q_strides, *k_shape, *k_strides, *v_shape, *v_strides,
                b, h, m, dv, h * m * dv, m * dv, dv, 1,
            )
            # fmt: on
        frame.layout = layout

    def _put_arrays(self, frame: Frame, q: Any, k: Any, v: Any, rows_first: bool) -> Any:
        """Whatever they are, or an Error that says what they should be. Returns the output."""
        frame.layout = None
        query_shape: Tuple[int, ...] = ()
        for i, (name, x) in enumerate((("q", q), ("k", k), ("v", v))):
            address, shape, strides = _arrays.view(x, name, self.device)
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
            frame.put(i, address, shape, strides)
            if i == 0:
                query_shape = shape
        b, h, m, _ = query_shape
        dv, index = self.problem.value_dim, self.output
        if rows_first:
            output = _arrays.empty_like(q, None, (b, m, h, dv))
            strides = (m * h * dv, dv, h * dv, 1)
        else:
            output = _arrays.empty_like(q, None, (b, h, m, dv))
            strides = (h * m * dv, m * dv, dv, 1)
        frame.put(index, address_of(output), (b, h, m, dv), strides)
        return output

    def _put_captures(self, frame: Frame, captured: List[Any]) -> None:
        for index, name, type_, rank, position, least in self.captures:
            array = captured[position]
            address, shape, strides = _arrays.view(array, name, self.device)
            if len(shape) != rank or _arrays.type_name(array.dtype) != type_:
                raise Error(
                    "invalid argument",
                    f"{name}: expected {rank} dimensions of {type_}, as when it was compiled, got "
                    f"shape {tuple(shape)} of {array.dtype}",
                    "compile again",
                )
            if least and any(extent < low for extent, low in zip(shape, least)):
                raise Error(
                    "invalid argument",
                    f"{name}: expected a shape of at least {tuple(least)}, "
                    f"which is read, got {tuple(shape)}",
                )
            frame.put(index, address, shape, strides)

    def _put_sink(self, frame: Frame, index: int, sink: Any) -> Any:
        """Returns what must outlive the call."""
        if _arrays.is_array(sink) and _arrays.type_name(sink.dtype) in ("f16", "bf16", "f64"):
            sink = _arrays.to_f32(sink)
        address, shape, strides = _arrays.view(sink, "sink", self.device)
        if len(shape) != 1 or _arrays.type_name(sink.dtype) != "f32":
            raise Error(
                "invalid argument",
                "sink: expected floats of shape (H,), got " f"{sink.dtype} of shape {tuple(shape)}",
            )
        frame.put(index, address, shape, strides)
        return sink


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


def _compile(text: str, options: OptionTexts) -> Kernel:
    key = (text, options)
    kernel = _kernels.get(key)
    if kernel is None:
        kernel = Kernel(text, options)
        _remember(_kernels, key, kernel)
    return kernel


def _make_plan(source: Source, options: OptionTexts, by_slot: bool = False) -> _Plan:
    """Its calls give the arrays of the source, or, by slot, those of their own Scan."""
    captures = [
        (c.name, c.type, c.element, c.rank, c.slot if by_slot else i, c.least)
        for i, c in enumerate(source.captures)
    ]
    return _Plan(source.text, captures, options)


def _is_rows_first(layout: str) -> bool:
    if layout == "bhsd":
        return False
    if layout == "bshd":
        return True
    raise Error("invalid argument", f'layout: expected "bhsd" or "bshd", got {layout!r}')


def _check_options(options: Optional[Mapping[str, object]], device: str) -> OptionTexts:
    """What the compiler is told."""
    texts = option_texts(options)
    for name, text in texts:
        if name == "device":
            raise Error(
                "invalid argument",
                f"options: expected no device, got {text!r}",
                "attention runs where its tensors are; compile and explain take device=",
            )
    return (*texts, ("device", device))


def _scan(score: Any, mask: Any) -> Scan:
    return Scan(*[function for function in (score, mask) if function is not None])


def _check_query(q: Any, k: Any, v: Any, device: int) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        _, shape, _ = _arrays.view(x, name, device, is_recorded=True)
        if len(shape) != 4:
            raise Error(
                "invalid argument", f"{name}: expected 4 dimensions, got shape {tuple(shape)}"
            )


def _find_plan(
    q: Any,
    k: Any,
    v: Any,
    device: int,
    scale: Any,
    causal: Any,
    window: Any,
    score: Optional[Callable],
    mask: Optional[Callable],
    sink: Any,
    return_lse: bool,
    options: Optional[Mapping[str, object]],
) -> Tuple[_Plan, List[Any]]:
    """What a call runs, and the arrays that its functions captured."""
    # True == 1, and only one of them is an alignment.
    if causal is not False and causal is not True:
        causal = check_causal(causal) or False
    if window is not None:
        window = check_window(window)
    try:
        key: Any = (
            q.dtype,
            q.shape[-1],
            v.shape[-1],
            device,
            causal,
            window,
            scale is None,
            sink is None,
            return_lse,
            options and option_texts(options),
        )
        if score is None and mask is None:
            scan, arrays = None, _NOTHING
            found = _plans.get(key)
        else:
            scan = _scan(score, mask)
            arrays = scan.arrays
            key = (*key, score is None, *scan.key)
            if device >= 0:
                # There the text says which arrays have any strides.
                key += tuple([_arrays.is_strided(x) for x in arrays])
            found = None if scan.is_volatile else _plans.get(key)
    except (AttributeError, IndexError, TypeError):
        # An argument of another type. Say which, or go on without the cache.
        _check_query(q, k, v, device)
        scan, key, found = _scan(score, mask), None, None
        arrays = scan.arrays
    if found is not None:
        plan = found[0]
    else:
        _check_query(q, k, v, device)
        scan = scan or _scan(score, mask)
        name = "cpu" if device < 0 else f"cuda:{device}"
        problem = make_problem(
            q.dtype,
            int(q.shape[-1]),
            int(v.shape[-1]),
            causal,
            window,
            scale is not None,
            sink is not None,
            return_lse,
            name,
        )
        source = Source(problem, score, mask, scan, name)
        plan = _make_plan(source, _check_options(options, name), not source.is_volatile)
        if source.is_volatile:
            arrays = source.arrays
        elif key is not None and _scan(score, mask).key == scan.key:
            # Nothing changed while it was traced. `keep` holds what the key names by its address.
            _remember(_plans, key, (plan, scan.keep))
    return plan, arrays


@_dynamo.disable
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
        q: queries, (B, H, M, D); of float32, float16 or bfloat16 in NumPy or in PyTorch on the CPU,
            or of float16 or bfloat16 in PyTorch on a GPU. Everything else is where q is.
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
        options: of the compiler: threads, block_m, block_n, splits, cpu, cache (on or off: whether
            kernels for GPUs are kept on disk), cache_dir.

    Returns:
        The output, in the type, library, device and layout of q, with Dv columns; or (output, lse)
        with lse float32 of shape (B, H, M) in every layout. A row that keeps no key gives 0 and
        -inf.

    PyTorch's autograd records the call: gradients of q, k, v and sink, the first ones, are kernels
    too, the same bits each time; those of captured tensors are refused. Under torch.autocast tensors
    are cast as for PyTorch's own attention. Tangents and transforms of torch.func are refused;
    torch.compile breaks its graph around the call. On the CPU as many threads are used as
    torch.set_num_threads says.

    Values that a function reads of modules, classes and objects are those of the call: of names that
    it spells, config.window, they are compared; whatever else it does with them, a property or
    table["window"], makes it be traced again, some hundred microseconds.

    On a GPU the work is queued on the current stream of q's device, and a CUDA graph can capture
    the call when the same attention was called once before: compiling cannot be captured.

    Captured arrays have any strides. They are read where the function says, also for keys that are
    masked: indices must be inside for every row and key. Arrays read at b, h, q or kv alone are
    checked; for others, an index outside reads memory that is not the array's.

    Raises:
        Error: an argument that does not fit, or a function that cannot be traced.
    """
    get_device = getattr(q, "get_device", None)
    device = -1 if get_device is None else get_device()
    if get_device is not None and _arrays.is_autocast():
        q, k, v = _arrays.cast(q, k, v)
    plan, arrays = _find_plan(
        q, k, v, device, scale, causal, window, score, mask, sink, return_lse, options
    )
    rows_first = layout != "bhsd" and _is_rows_first(layout)
    if get_device is not None and is_recorded(q, k, v, sink):
        given = Given(q, k, v, scale, sink, rows_first, arrays)
        return record(plan.with_lse(), given, return_lse)
    return plan.run(q, k, v, scale, sink, rows_first, arrays)


@_dynamo.disable
def gradient(
    q: Any,
    k: Any,
    v: Any,
    d_output: Any,
    *,
    output: Any = None,
    lse: Any = None,
    d_lse: Any = None,
    scale: Optional[float] = None,
    causal: Union[bool, str] = False,
    window: Optional[Tuple[Optional[int], Optional[int]]] = None,
    score: Optional[Callable] = None,
    mask: Optional[Callable] = None,
    sink: Any = None,
    layout: str = "bhsd",
    options: Optional[Mapping[str, object]] = None,
) -> Tuple[Any, ...]:
    """Gradients of q, k and v, and of the sink if there is one, for who has no autograd: those of
    attention(q, k, v, ...) with the same arguments.

    Args:
        q, k, v, scale, causal, window, score, mask, sink, layout, options: as for `attention`.
        d_output: the gradient of the output, in its shape and type.
        output, lse: what `attention` returned with return_lse; computed again where one is None.
        d_lse: the gradient of lse, float32 of shape (B, H, M); zeros if None.

    Returns:
        (d_q, d_k, d_v) in the types and shapes of q, k and v, and with a sink also d_sink, float32
        of shape (H,). The same bits for the same arguments, whatever else is in the batch.

    Raises:
        Error: an argument that does not fit, a function that cannot be traced, or one that has no
            derivative.
    """
    get_device = getattr(q, "get_device", None)
    device = -1 if get_device is None else get_device()
    plan, arrays = _find_plan(
        q, k, v, device, scale, causal, window, score, mask, sink, True, options
    )
    given = Given(q, k, v, scale, sink, _is_rows_first(layout), arrays)
    if output is None or lse is None:
        output, lse = plan.run(*given)
    wanted = ("query", "key", "value") + (("sink",) if sink is not None else ())
    found = plan.gradient(wanted, d_lse is not None).run(given, output, lse, d_output, d_lse)
    return tuple(found)


class Attention:
    """A compiled attention: call it as `kernel(q, k, v)`, for any lengths, batches and heads.

    Attributes:
        source: its IR, as a user would write it.
        compile_ms: milliseconds that compiling took; 0 when the kernel was on disk.
        load_ms: milliseconds that the driver of a GPU took.
        is_from_disk: whether the kernel was found on disk.
        device: "cpu", or "cuda:0".

    A copy shares the kernel, a deep copy also copies the captured arrays, and what comes out of a
    pickle is compiled where it is loaded.
    """

    def __init__(self, plan: _Plan, layout: str, arrays: List[Any]) -> None:
        self._plan, self._layout, self._arrays = plan, layout, arrays
        self._rows_first = _is_rows_first(layout)
        self.source: str = plan.text.forward
        self.compile_ms: float = plan.kernel.compile_ms
        self.load_ms: float = plan.kernel.load_ms
        self.is_from_disk: bool = plan.kernel.is_from_disk
        self.device = "cpu" if plan.device < 0 else f"cuda:{plan.device}"

    def __reduce__(self) -> Tuple:
        return Attention, (self._plan, self._layout, self._arrays)

    @_dynamo.disable
    def __call__(
        self, q: Any, k: Any, v: Any, *, scale: Optional[float] = None, sink: Any = None
    ) -> Any:
        """As `attention`. `scale` and `sink` are given exactly if the kernel was compiled with them.

        Raises:
            Error: an argument that does not fit.
        """
        problem = self._plan.problem
        if (scale is not None) != problem.has_scale or (sink is not None) != problem.has_sink:
            self._fail_optional("scale", scale, problem.has_scale)
            self._fail_optional("sink", sink, problem.has_sink)
        if hasattr(q, "get_device") and _arrays.is_autocast():
            q, k, v = _arrays.cast(q, k, v, dtype=self._plan.dtype)
        dtype = getattr(q, "dtype", None)
        if dtype is not self._plan.dtype and _arrays.type_name(dtype) != problem.type:
            raise Error(
                "invalid argument",
                f"q: expected elements of {problem.type}, got " + _arrays.describe_type(q),
            )
        plan, arrays = self._plan, self._arrays
        if hasattr(q, "get_device") and is_recorded(q, k, v, sink):
            given = Given(q, k, v, scale, sink, self._rows_first, arrays)
            return record(plan.with_lse(), given, problem.return_lse)
        return plan.run(q, k, v, scale, sink, self._rows_first, arrays)

    @staticmethod
    def _fail_optional(name: str, x: Any, wanted: bool) -> None:
        if (x is not None) != wanted:
            got = "none" if wanted else "one"
            raise Error(
                "invalid argument",
                f"{name}: expected {'one' if wanted else 'none'}, got {got}",
                f"compile with {name}={not wanted}",
            )

    def explain(self, until: str = "online") -> "Explanation":
        """As `attn.explain`."""
        return Explanation(_library.explain(self.source, self._plan.options, until))

    def __repr__(self) -> str:
        p = self._plan.problem
        return (
            f"<attn.Attention {p.type} D={p.head_dim} Dv={p.value_dim} layout={self._layout} "
            f"device={self.device}>"
        )


class Explanation(str):
    """Text that a prompt shows as it is."""

    def __repr__(self) -> str:
        return str(self)


@_dynamo.disable
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
    device: Any = "cpu",
    options: Optional[Mapping[str, object]] = None,
) -> Attention:
    """Compiles an attention for later calls with any lengths, batches and heads.

    Args:
        dtype: of q, k and v: a dtype of NumPy or PyTorch, or its name.
        head_dim: D, columns of q and k.
        value_dim: Dv, columns of v; D if None.
        scale: whether calls give a scale.
        sink: whether calls give a sink.
        device: "cpu", "cuda" (PyTorch's current device), "cuda:1", or a torch.device.
        causal, window, score, mask, layout, return_lse, options: as for `attention`. Captured arrays
            are those of now; a call reads what they then hold.

    Raises:
        Error: an argument that does not fit, or a function that cannot be traced.
    """
    _is_rows_first(layout)
    name = _arrays.device_name(device)
    problem = make_problem(
        dtype, head_dim, value_dim, causal, window, scale, sink, return_lse, name
    )
    source = Source(problem, score, mask, _scan(score, mask), name)
    return Attention(_make_plan(source, _check_options(options, name)), layout, source.arrays)


def explain(
    dtype: Any,
    head_dim: int,
    value_dim: Optional[int] = None,
    *,
    until: str = "online",
    scale: bool = False,
    causal: Union[bool, str] = False,
    window: Optional[Tuple[Optional[int], Optional[int]]] = None,
    score: Optional[Callable] = None,
    mask: Optional[Callable] = None,
    sink: bool = False,
    layout: str = "bhsd",
    return_lse: bool = False,
    device: Any = "cpu",
    options: Optional[Mapping[str, object]] = None,
) -> Explanation:
    """What the compiler makes of an attention: the schedule and the rule that chose it, which key
    tiles each mask visits, compile times, and the IR after a room.

    For a GPU, which need not be there: also instructions of the PTX, floors of the time, and, where
    a driver or ptxas can tell, registers.

    Args:
        until: "problem", "grid" or "online"; for a GPU also "tile", "placed", "async", "thread"
            and "ptx".
        dtype, head_dim, value_dim, and the others: as for `compile`.

    Returns:
        A text that a prompt shows as it is.

    Raises:
        Error: as `compile`.
    """
    _is_rows_first(layout)
    name = _arrays.device_name(device)
    problem = make_problem(
        dtype, head_dim, value_dim, causal, window, scale, sink, return_lse, name
    )
    source = Source(problem, score, mask, _scan(score, mask), name)
    return Explanation(_library.explain(source.text.forward, _check_options(options, name), until))


_dynamo.install()
