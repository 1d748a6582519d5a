"""Calls that somebody watches: through the operators, or past the dispatcher where autograd alone does."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Iterator, List, Tuple

import torch

from . import _arrays
from ._autograd import Attention, apply_recorded
from ._given import Given
from ._library import Error
from ._operator import PLAIN, find, find_rows, is_warming_up
from ._plan import Plan, check_eager
from ._written import write_source


def call(plan: Plan, given: Given) -> Any:
    """The call through the dispatcher, where somebody looks: autograd, a transform, a mode."""
    check_eager()
    given, captured = _prepare(plan, given)
    if is_warming_up[0]:
        wanted = plan.recorded() if _records(given, captured) else plan
        shapes = given.q.shape, given.k.shape, given.v.shape
        wanted.prepare(shapes, given.rows_first, given.captured)
    with _as_errors():
        return apply(write_source(plan), given, captured, plan.problem.return_lse)


def record(
    plan: Plan, q: Any, k: Any, v: Any, scale: Any, sink: Any, rows_first: bool, arrays: List[Any]
) -> Any:
    """The call of plain tensors that autograd records and nobody else watches; None for others."""
    is_recorded = q.requires_grad or k.requires_grad or v.requires_grad
    if sink is not None:
        if type(sink) not in PLAIN:
            return None
        is_recorded = is_recorded or sink.requires_grad
        sink = sink if sink.dtype is torch.float32 else to_sink(sink).float()
    captured: List[Any] = []
    for capture in plan.given:
        x = arrays[capture[4]]
        if type(x) not in PLAIN:
            return None
        is_recorded = is_recorded or x.requires_grad
        captured.append(x)
    if not is_recorded or _arrays.is_watched_by_others(q, k, v, *captured):
        return None
    for capture, x in zip(plan.given, captured):
        if x.requires_grad:
            check_has_gradient(capture[0], x)
    if scale is not None and type(scale) is not float:
        scale = _arrays.to_number(scale, "scale")
    behind = plan.behind_operator
    if behind is None:
        if q.get_device() != plan.recorded().device:
            return None
        behind = plan.behind_operator = find(write_source(plan), q, scale, sink, captured)
        behind.source = plan.source
    how = behind, scale, rows_first, plan.problem.return_lse
    return apply_recorded(q, k, v, sink, how, *captured)


def call_into(plan: Plan, given: Given, output: Any, lse: Any) -> None:
    """The same, of a call that is given the memory of its results."""
    given, captured = _prepare(plan, given)
    if lse is None:
        b, h, m = find_rows(given.q, given.rows_first)
        lse = given.q.new_empty((b, h, m), dtype=torch.float32)
    sink = None if given.sink is None else given.sink.float()
    options = write_source(plan), given.scale, given.rows_first
    with _as_errors():
        torch.ops.attn.forward_out(
            given.q, given.k, given.v, sink, captured or None, *options, output=output, lse=lse
        )


@contextlib.contextmanager
def _as_errors() -> Iterator[None]:
    """Exceptions of C++, "attn: code: message", as they are everywhere else."""
    try:
        yield
    except RuntimeError as error:
        start, code, message = [*str(error).partition("\n")[0].split(": ", 2), "", ""][:3]
        if start != "attn":
            raise
        raise Error(code, message) from None


def _prepare(plan: Plan, given: Given) -> Tuple[Given, List[Any]]:
    """What the operator takes, and captured tensors in the order of the plan."""
    captured = []
    replicate = _find_sharding(given.q)
    for name, _, _, _, position, _ in plan.given:
        x = given.captured[position]
        if not isinstance(x, torch.Tensor):
            x = _arrays.to_torch(x, name)
        elif x.requires_grad and torch.is_grad_enabled():
            check_has_gradient(name, x)
        captured.append(x if replicate is None else replicate(x, given.q))
    if given.scale is not None:
        given = given._replace(scale=_arrays.to_number(given.scale, "scale"))
    if given.sink is not None:
        sink = to_sink(given.sink)
        given = given._replace(sink=sink if replicate is None else replicate(sink, given.q))
    return given, captured


def _find_sharding(q: Any) -> Any:
    """Of DTensors: their rules are known from here on. Returns what makes one of a tensor."""
    if type(q).__name__ != "DTensor":
        return None
    from . import _sharding

    return _sharding.replicate


def to_sink(x: Any) -> Any:
    if not _arrays.is_array(x) or _arrays.type_name(x.dtype) not in ("f16", "bf16", "f32", "f64"):
        got = _arrays.describe_type(x)
        raise Error("invalid argument", f"sink: expected floats of shape (H,), got {got}")
    return _arrays.to_torch(x, "sink") if _arrays.is_numpy(x) else x


def check_order(name: str) -> None:
    """Kernels for GPUs add to gradients of captured tensors in any order."""
    if not torch.are_deterministic_algorithms_enabled():
        return
    what = (
        f"{name}: expected a captured tensor without gradient under "
        "torch.use_deterministic_algorithms, got one that requires it: kernels for GPUs sum it in "
        "any order"
    )
    hint = "run on a CPU, detach() it, or allow other algorithms"
    if not torch.is_deterministic_algorithms_warn_only_enabled():
        raise Error("invalid argument", what, hint)
    warnings.warn(f"{what}; {hint}", stacklevel=2)


def check_has_gradient(name: str, x: Any) -> None:
    if not x.is_cpu:
        check_order(name)
    if x.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise Error(
            "invalid argument",
            f"{name}: expected a captured tensor of float16, bfloat16 or float32 where a gradient is "
            f"wanted, got one of {x.dtype}",
            "detach() it, or convert it",
        )


def _records(given: Given, captured: List[Any]) -> bool:
    """Whether autograd records the call."""
    return torch.is_grad_enabled() and (
        given.q.requires_grad
        or given.k.requires_grad
        or given.v.requires_grad
        or (given.sink is not None and given.sink.requires_grad)
        or any(x.requires_grad for x in captured)
    )


def apply(source: str, given: Given, captured: List[Any], return_lse: bool) -> Any:
    sink = None if given.sink is None else given.sink.float()
    first, last = (given.q, given.k, given.v, sink), (source, given.scale, given.rows_first)
    if _records(given, captured):
        output, lse, _ = Attention.apply(*first, *last, *captured)
    else:
        output, lse = torch.ops.attn.forward(*first, captured or None, *last)
    return (output, lse) if return_lse else output
