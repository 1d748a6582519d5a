"""The gradients of one attention."""

from __future__ import annotations

import ctypes
from typing import Any, List, NamedTuple, Tuple

from . import _arrays
from ._frame import Frame, use_threads
from ._library import Error, Kernel, check, library
from ._source import Text, Wanted


class Given(NamedTuple):
    """What a call is given."""

    q: Any
    k: Any
    v: Any
    scale: Any
    sink: Any
    rows_first: bool
    captured: List[Any]


class GradientPlan:
    """A kernel of the gradients that are wanted, and how its calls are laid out."""

    def __init__(
        self,
        text: Text,
        captures: List[Tuple],
        kernel: Kernel,
        wanted: Wanted,
        has_lse_gradient: bool,
    ) -> None:
        """Captures are (name, type, type of the elements, rank, position in what a call gives, least
        extents); `wanted` as Text.gradient takes them."""
        self.problem, self.captures, self.wanted = text.problem, captures, wanted
        self.kernel = kernel
        self.device = self.kernel.device
        self.stream = _arrays.find_current_stream() if self.device >= 0 else None
        self.count_threads = _arrays.find_thread_count(self.device)
        type_ = self.problem.type
        self.types: List[Tuple[str, int]] = [(type_, 4)] * 3
        self.types += [("f32", 0)] * self.problem.has_scale + [("f32", 1)] * self.problem.has_sink
        self.types += [(capture[1], capture[3]) for capture in captures]
        self.types += [(type_, 4), ("f32", 3), (type_, 4)] + [("f32", 3)] * has_lse_gradient
        for name in wanted:
            if isinstance(name, int):
                self.types.append(("f32", captures[name][3]))
            else:
                self.types.append(("f32", 1) if name == "sink" else (type_, 4))

    def run(
        self, given: Given, output: Any, lse: Any, d_output: Any, d_lse: Any = None
    ) -> List[Any]:
        """Those that are wanted, in the layout of what they are of."""
        frame = Frame(self.types, [], self.device)
        index = 0

        def put(name: str, x: Any, is_matrix: bool = False, element: str = "") -> None:
            nonlocal index
            address, shape, strides = _arrays.view(x, name, self.device)
            if is_matrix and given.rows_first and len(shape) == 4:
                shape = (shape[0], shape[2], shape[1], shape[3])
                strides = (strides[0], strides[2], strides[1], strides[3])
            type_, rank = self.types[index]
            type_ = element or type_
            if len(shape) != rank or _arrays.type_name(x.dtype) != type_:
                raise Error(
                    "invalid argument",
                    f"{name}: expected {rank} dimensions of {type_}, got shape {tuple(shape)} of "
                    f"{x.dtype}",
                )
            frame.put(index, address, shape, strides)
            index += 1

        for name, x in (("q", given.q), ("k", given.k), ("v", given.v)):
            put(name, x, is_matrix=True)
        if self.problem.has_scale:
            frame.hold_scale(index)
            frame.put_scale(given.scale)
            index += 1
        if self.problem.has_sink:
            put("sink", given.sink)
        for capture in self.captures:
            put(capture[0], given.captured[capture[4]], element=capture[2])
        put("output", output, is_matrix=True)
        put("lse", lse)
        put("d_output", d_output, is_matrix=True)
        if d_lse is not None:
            put("d_lse", d_lse)
        gradients = self._make_gradients(given)
        for name, gradient in zip(self.wanted, gradients):
            text = self.captures[name][0] if isinstance(name, int) else name
            put(f"d_{text}", gradient, is_matrix=name in ("query", "key", "value"))
        if self.count_threads is not None:
            use_threads(self.count_threads())
        stream = None if self.stream is None else self.stream(self.device)
        check(library.attn_run(self.kernel.handle, frame.tensors, ctypes.c_size_t(index), stream))
        return gradients

    def _make_gradients(self, given: Given) -> List[Any]:
        of = {"query": given.q, "key": given.k, "value": given.v}
        heads = given.q.shape[2 if given.rows_first else 1]

        def make(name: Any) -> Any:
            if name in of:
                return _arrays.empty_like(of[name], None, tuple(of[name].shape))
            shape = (heads,)
            if name != "sink":
                shape = tuple(given.captured[self.captures[name][4]].shape)
            return _arrays.empty_like(given.q, "f32", shape)

        return [make(name) for name in self.wanted]
