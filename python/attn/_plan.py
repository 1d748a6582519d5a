"""A compiled attention, and how its calls are laid out."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any, Dict, List, Optional, Tuple

from . import _arrays, _log
from ._frame import Frame, address_of, pack_matrices, threads_in_use, use_threads
from ._gradient import Given, GradientPlan
from ._library import Error, Kernel, OptionTexts, check, library
from ._source import Text, Wanted

_LIMIT = 512
_run = library.attn_run
_kernels: Dict[Any, Kernel] = {}
_compiled = [0]


def remember(cache: Dict, key: Any, value: Any) -> None:
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
        known = tuple(_kernels)
        kernel = Kernel(text, options)
        remember(_kernels, key, kernel)
        _compiled[0] += 1
        _log.note(text, options, kernel, known)
    return kernel


def count_compiled() -> int:
    return _compiled[0]


def find_reason(text: str, options: OptionTexts) -> str:
    """Why a kernel would be compiled; empty if it was."""
    key = (text, options)
    return "" if key in _kernels else _log.find_reason(text, options, tuple(_kernels))


def _swap(extents: Any) -> Tuple[int, ...]:
    """(B, S, H, D) as (B, H, S, D), or back."""
    return extents[0], extents[2], extents[1], extents[3]


class Plan:
    """A kernel and how its calls are laid out. Copies share it."""

    def __init__(self, text: Text, captures: List[Tuple], options: OptionTexts) -> None:
        """Captures are (name, type, type of the elements, rank, position in what a call gives, least
        extents)."""
        problem = text.problem
        self.problem, self.text, self.options = problem, text, options
        self.given = captures
        self.kernel = _compile(text.forward, options)
        self.gradients: Dict[Tuple[Wanted, bool], GradientPlan] = {}
        self.plan_with_lse: Optional[Plan] = self if problem.return_lse else None
        # As the operator takes it; written when it is first called.
        self.source: Optional[str] = None
        # As torch.Tensor.get_device() says it: -1 is the CPU.
        self.device = self.kernel.device
        self.stream = _arrays.find_current_stream() if self.device >= 0 else None
        self.tensor_type, self.dtype = _arrays.find_tensor_type(problem.type)
        self.forward_ad = _arrays.find_forward_ad()
        self.empty_strided = _arrays.find_empty_strided(self.device)
        self.is_tracing = _arrays.find_is_tracing()
        self.count_modes, self.find_transform, self.is_profiled = _arrays.find_watchers()
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

    def __copy__(self) -> "Plan":
        return self

    def __deepcopy__(self, memo: Any) -> "Plan":
        return self

    def __reduce__(self) -> Tuple:
        return Plan, (self.text, self.given, self.options)

    def with_lse(self) -> "Plan":
        """The plan of the same attention whose calls return lse too, as gradients need it."""
        if self.plan_with_lse is None:
            problem = dataclasses.replace(self.problem, return_lse=True)
            text = dataclasses.replace(self.text, problem=problem)
            self.plan_with_lse = Plan(text, self.given, self.options)
        return self.plan_with_lse

    def gradient(self, wanted: Wanted, has_lse_gradient: bool) -> GradientPlan:
        """Compiled when first wanted."""
        key = wanted, has_lse_gradient
        plan = self.gradients.get(key)
        if plan is None:
            kernel = _compile(self.text.gradient(wanted, has_lse_gradient), self.options)
            plan = GradientPlan(self.text, self.given, kernel, wanted, has_lse_gradient)
            self.gradients[key] = plan
        return plan

    def _find_given(self, captured: List[Any]) -> List[Any]:
        """Of what a call gives, the arrays that the kernel reads."""
        return [captured[capture[4]] for capture in self.captures]

    def call_operator(self, given: Given) -> Any:
        # It imports PyTorch, which is there when somebody watches.
        from . import _operator

        return _operator.call(self, given)

    def run_into(self, given: Given, output: Any, lse: Any) -> None:
        """The call behind everybody who looks, with the memory of its results: lse is None where the
        problem has none."""
        q, rows_first = given.q, given.rows_first
        try:
            frame = self.frames.pop()
        except IndexError:
            frame = self.make_frame()
        b, h, m, _ = self._put_matrices(frame, q, given.k, given.v, rows_first)
        dv, type_ = self.problem.value_dim, self.problem.type
        shape = (b, m, h, dv) if rows_first else (b, h, m, dv)
        results = [("output", output, shape, type_)]
        if self.problem.return_lse:
            results.append(("lse", lse, (b, h, m), "f32"))
        for i, (name, x, wanted, element) in enumerate(results):
            address, extents, strides = _arrays.view(x, name, self.device)
            if tuple(extents) != wanted or _arrays.type_name(x.dtype) != element:
                raise Error(
                    "invalid argument",
                    f"{name}: expected {element} of shape {wanted}, got {x.dtype} of shape "
                    f"{tuple(extents)}",
                )
            if i == 0 and rows_first:
                extents, strides = _swap(extents), _swap(strides)
            frame.put(self.output + i, address, extents, strides)
        keep = self._put_others(frame, given.scale, given.sink, given.captured)
        self._launch(frame, q, given.k, given.v)
        del keep

    def _put_others(self, frame: Frame, scale: Any, sink: Any, captured: List[Any]) -> Any:
        """Returns what must outlive the call."""
        keep = None
        if self.problem.has_scale:
            frame.put_scale(scale)
        if self.problem.has_sink:
            keep = self._put_sink(frame, 3 + self.problem.has_scale, sink)
        if self.captures:
            self._put_captures(frame, captured)
        return keep

    def _launch(self, frame: Frame, q: Any, k: Any, v: Any) -> None:
        count_threads, device = self.count_threads, self.device
        if count_threads is not None and count_threads() != threads_in_use[0]:
            use_threads(count_threads())
        stream = self.stream
        handle, count = self.native
        code = _run(handle, frame.tensors, count, None if stream is None else stream(device))
        if code:
            # A tensor that has no memory gives its address as 0.
            for name, x in (("q", q), ("k", k), ("v", v)):
                _arrays.view(x, name, device)
            check(code)
        self.frames.append(frame)

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
        is_operator: bool = False,
    ) -> Any:
        """The output, or it and lse. `is_operator` for a call behind PyTorch's dispatcher, which
        everybody who looks has seen."""
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
                # No tangents: those of functorch are in tensors without memory.
                and self.forward_ad._current_level < 0
                and (
                    is_operator
                    or not (q.requires_grad or k.requires_grad or v.requires_grad)
                    and not self.count_modes()
                    and self.find_transform() is None
                    and not self.is_profiled()
                    and not (problem.has_sink and _arrays.is_recorded(sink))
                    and not any(map(_arrays.is_recorded, self._find_given(captured)))
                )
                and not (self.can_be_negated and (q.is_neg() or k.is_neg() or v.is_neg()))
            ):
                output = self._put_tensors(frame, q, k, v, rows_first)
        except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
            # Not tensors of PyTorch, or not such as have memory.
            output = None
        if output is None:
            if not is_operator and _arrays.is_watched(q, k, v, sink, *self._find_given(captured)):
                self.frames.append(frame)
                return self.call_operator(Given(q, k, v, scale, sink, rows_first, captured))
            output = self._put_arrays(frame, q, k, v, rows_first)
        keep = self._put_others(frame, scale, sink, captured) if self.count > 4 else None
        lse = None
        if problem.return_lse:
            shape = output.shape
            b, h, m = (shape[0], shape[2], shape[1]) if rows_first else shape[:3]
            index = self.output + 1
            lse = _arrays.empty_like(q, "f32", (b, h, m))
            frame.put(index, address_of(lse), (b, h, m), (h * m, m, 1))
        self._launch(frame, q, k, v)
        # On a GPU the call is only queued: memory that goes back to PyTorch's allocator is given
        # out in the order of the stream.
        del keep
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

    def _put_matrices(
        self, frame: Frame, q: Any, k: Any, v: Any, rows_first: bool
    ) -> Tuple[int, ...]:
        """Whatever they are, or an Error that says what they should be. Returns (B, H, M, D)."""
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
                shape, strides = _swap(shape), _swap(strides)
            frame.put(i, address, shape, strides)
            if i == 0:
                query_shape = shape
        return query_shape

    def _put_arrays(self, frame: Frame, q: Any, k: Any, v: Any, rows_first: bool) -> Any:
        """The same. Returns the output."""
        b, h, m, _ = self._put_matrices(frame, q, k, v, rows_first)
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
