"""Gradients of attention: the function that computes them, and how PyTorch records a call."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, List, NamedTuple, Optional, Tuple

from . import _arrays
from ._frame import Frame, address_of, use_threads
from ._library import Error, Kernel, OptionTexts, check, library
from ._source import Text


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
        options: OptionTexts,
        wanted: Tuple[str, ...],
        has_lse_gradient: bool,
    ) -> None:
        """Captures are (name, type, type of the elements, rank, position in what a call gives, least
        extents); `wanted` as Text.gradient takes them."""
        self.problem, self.captures, self.wanted = text.problem, captures, wanted
        self.kernel = Kernel(text.gradient(wanted, has_lse_gradient), options)
        self.device = self.kernel.device
        self.stream = _arrays.find_current_stream() if self.device >= 0 else None
        self.count_threads = _arrays.find_thread_count(self.device)
        type_ = self.problem.type
        self.types: List[Tuple[str, int]] = [(type_, 4)] * 3
        self.types += [("f32", 0)] * self.problem.has_scale + [("f32", 1)] * self.problem.has_sink
        self.types += [(capture[1], capture[3]) for capture in captures]
        self.types += [(type_, 4), ("f32", 3), (type_, 4)] + [("f32", 3)] * has_lse_gradient
        self.types += [("f32", 1) if name == "sink" else (type_, 4) for name in wanted]

    def run(
        self, given: Given, output: Any, lse: Any, d_output: Any, d_lse: Any = None
    ) -> List[Any]:
        """Those that are wanted, in the layout of what they are of."""
        frame = Frame(self.types, [], self.device)
        index = 0

        def put(name: str, x: Any, is_matrix: bool = False) -> None:
            nonlocal index
            address, shape, strides = _arrays.view(x, name, self.device)
            if is_matrix and given.rows_first and len(shape) == 4:
                shape = (shape[0], shape[2], shape[1], shape[3])
                strides = (strides[0], strides[2], strides[1], strides[3])
            type_, rank = self.types[index]
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
            put(capture[0], given.captured[capture[4]])
        put("output", output, is_matrix=True)
        put("lse", lse)
        put("d_output", d_output, is_matrix=True)
        if d_lse is not None:
            put("d_lse", d_lse)
        gradients = self._make_gradients(given)
        for name, gradient in zip(self.wanted, gradients):
            put(f"d_{name}", gradient, is_matrix=name != "sink")
        if self.count_threads is not None:
            use_threads(self.count_threads())
        stream = None if self.stream is None else self.stream(self.device)
        check(library.attn_run(self.kernel.handle, frame.tensors, ctypes.c_size_t(index), stream))
        return gradients

    def _make_gradients(self, given: Given) -> List[Any]:
        of = {"query": given.q, "key": given.k, "value": given.v}
        heads = given.q.shape[2 if given.rows_first else 1]
        return [
            _arrays.empty_like(given.q, "f32", (heads,))
            if name == "sink"
            else _arrays.empty_like(of[name], None, tuple(of[name].shape))
            for name in self.wanted
        ]


def is_recorded(q: Any, k: Any, v: Any, sink: Any) -> bool:
    """Whether PyTorch records what becomes of these tensors."""
    if not (q.requires_grad or k.requires_grad or v.requires_grad):
        if sink is None or not getattr(sink, "requires_grad", False):
            return False
    return sys.modules["torch"].is_grad_enabled()


def record(plan: Any, given: Given, return_lse: bool) -> Any:
    """Calls `plan`, whose kernel gives an lse, so that gradients follow."""
    torch = sys.modules["torch"]
    # Tensors that stand for others are refused by name before PyTorch sees them.
    for name, x in (("q", given.q), ("k", given.k), ("v", given.v)):
        _arrays.view(x, name, plan.device, is_recorded=True)
    for capture in plan.given:
        x = given.captured[capture[4]]
        if _arrays.is_torch(x) and x.requires_grad:
            raise Error(
                "invalid argument",
                f"{capture[0]}: expected a captured tensor without gradient, got requires_grad=True: "
                "kernels give gradients of q, k, v and sink",
                "detach() it, or add it to q k^T outside of attn",
            )
    if given.scale is not None:
        given = given._replace(scale=_arrays.to_number(given.scale, "scale"))
    sink = given.sink
    if _arrays.is_torch(sink) and sink.dtype != torch.float32:
        sink = sink.float()
    output, lse = _function().apply(
        plan, given._replace(q=None, k=None, v=None, sink=None), given.q, given.k, given.v, sink
    )
    return (output, lse) if return_lse else output


def _to_dense(x: Any) -> Any:
    """The tensor, or a copy where it is expanded, or has a gap or an address that a kernel may not
    read: gradients come as PyTorch makes them."""
    is_dense = x.is_contiguous() or (x.dim() == 4 and x.transpose(1, 2).is_contiguous())
    return x if is_dense and x.data_ptr() % 16 == 0 else x.clone(memory_format=_contiguous())


def _contiguous() -> Any:
    return sys.modules["torch"].contiguous_format


_function_class: Any = None


def _function() -> Any:
    """The class is made when the first call is recorded: PyTorch need not be there before."""
    global _function_class
    if _function_class is not None:
        return _function_class
    import torch

    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, plan: Any, rest: Given, q: Any, k: Any, v: Any, sink: Any) -> Any:
            given = rest._replace(q=q, k=k, v=v, sink=sink)
            output, lse = plan.run(*given)
            arrays = rest.captured
            ctx.plan, ctx.rest = plan, rest
            # PyTorch notices when one of these is written to in between.
            ctx.positions = [i for i, x in enumerate(arrays) if _arrays.is_torch(x)]
            ctx.save_for_backward(q, k, v, sink, output, lse, *[arrays[i] for i in ctx.positions])
            ctx.set_materialize_grads(False)
            return output, lse

        @staticmethod
        def backward(ctx: Any, d_output: Optional[Any], d_lse: Optional[Any]) -> Tuple:
            q, k, v, sink, output, lse, *captured = ctx.saved_tensors
            names = ("query", "key", "value", "sink")
            needed = ctx.needs_input_grad[2:]
            wanted = tuple([name for name, is_needed in zip(names, needed) if is_needed])
            if not wanted or (d_output is None and d_lse is None):
                return (None,) * 6
            arrays = list(ctx.rest.captured)
            for i, x in zip(ctx.positions, captured):
                arrays[i] = x
            with torch.no_grad():
                d_output = torch.zeros_like(output) if d_output is None else _to_dense(d_output)
                d_lse = None if d_lse is None else _to_dense(d_lse)
                plan = ctx.plan.gradient(wanted, d_lse is not None)
                given = ctx.rest._replace(q=q, k=k, v=v, sink=sink, captured=arrays)
                found = dict(zip(wanted, plan.run(given, output, lse, d_output, d_lse)))
            if torch.is_grad_enabled():
                found = _forbid_second(found)
            return (None, None, *[found.get(name) for name in names])

    _function_class = Attention
    return Attention


def _forbid_second(gradients: dict) -> dict:
    """The same, which raise when they are differentiated."""
    import torch

    message = b"attn.attention: expected first derivatives, got a second one: there is no such kernel"
    refuse = torch._C._functions.DelayedError(message, len(gradients))
    results = refuse(*[x.detach().requires_grad_() for x in gradients.values()])
    results = results if isinstance(results, tuple) else (results,)
    return dict(zip(gradients, results))
