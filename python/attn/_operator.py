"""attn::forward, attn::record and attn::backward, operators of PyTorch: attn::record is the forward
operator that returns all that attn::backward reads.

What crosses the dispatcher is tensors, numbers and text, so that a graph can be compiled, exported, and
run by a process that never saw the Python functions. PyTorch is imported here, so attn imports this
module only where PyTorch is.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch import Tensor
from torch.library import Library, register_fake

from . import _arrays, _direct, _imports, _inductor, _transforms
from ._given import Given
from ._library import Error, library_path
from ._plan import Plan, remember
from ._schema import Backward, Forward, find_given, write_schema
from ._source import Wanted
from ._written import has_wide_output, read_source

# Classes of tensors that stand for nothing but themselves.
PLAIN = (torch.Tensor, torch.nn.Parameter)

_plans: Dict[Tuple[str, str], Plan] = {}


def find(source: str, q: Any, scale: Any, sink: Any, captures: Optional[List[Any]]) -> Plan:
    device = "cpu" if q.is_cpu else f"cuda:{q.get_device()}"
    plan = _plans.get((source, device))
    if plan is None:
        plan = read_source(source, device)
        remember(_plans, (source, device), plan)
    wanted = plan.problem.type
    if _arrays.type_name(q.dtype) != wanted:
        raise Error(
            "invalid argument",
            f"q: expected elements of {wanted}, as the source says, got {q.dtype}",
        )
    plan.check_given(scale, sink, captures or [])
    return plan


# ===- Schemas ----------------------------------------------------------------------------------===#


def _load_native() -> bool:
    """Whether libattn_torch.so (python/torch_operators) is there, and of a PyTorch that this one can stand
    for: it defines the operators, and runs them."""
    path = library_path.parent / "libattn_torch.so"
    if os.environ.get("ATTN_NATIVE_OPERATORS") == "0" or not path.exists():
        return False
    # Who watches calls sees those of Python.
    if _direct.is_closed():
        return False
    try:
        torch.ops.load_library(str(path))
    except OSError:
        return False
    return True


is_native = _load_native()
registry = Library("attn", "FRAGMENT" if is_native else "DEF")
_TAGS = (torch.Tag.pt2_compliant_tag,)
_forward_schema, _backward_schema = write_schema(Forward), write_schema(Backward)
# forward_plain and so on are the operators of tensors that autograd has seen (_inductor.py).
NAMES = ("forward", "record", "backward")
if not is_native:
    for _end in ("", "_plain"):
        registry.define(
            f"forward{_end}({_forward_schema}) -> (Tensor output, Tensor lse)", tags=_TAGS
        )
        # lse_low has no rows where gradients of the source do without it.
        registry.define(
            f"record{_end}({_forward_schema}) -> (Tensor output, Tensor lse, Tensor lse_low)",
            tags=_TAGS,
        )
        registry.define(f"backward{_end}({_backward_schema}) -> Tensor[]", tags=_TAGS)
    # Nothing of it is recorded; for who owns the memory of results.
    registry.define(
        f"forward_out({_forward_schema}, *, Tensor(a!) output, Tensor(b!) lse) -> ()", tags=_TAGS
    )


# ===- Implementations --------------------------------------------------------------------------===#


def _make_forward(is_recorded: bool) -> Callable[..., Any]:
    """attn::forward, or attn::record. Arguments one by one, since calls of small kernels are many."""

    def forward(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        sink: Optional[Tensor],
        captures: Optional[List[Tensor]],
        source: str,
        scale: Optional[float],
        rows_first: bool,
    ) -> Tuple[Tensor, ...]:
        plan = find(source, q, scale, sink, captures)
        if not is_recorded:
            return run(plan, q, k, v, scale, sink, rows_first, captures or [])
        plan = plan.recorded()
        found = run(plan, q, k, v, scale, sink, rows_first, captures or [])
        return found if plan.problem.return_low else (*found, make_no_rows(q, rows_first))

    return forward


_forward, _record = _make_forward(False), _make_forward(True)


def run(
    plan: Plan, q: Any, k: Any, v: Any, scale: Any, sink: Any, rows_first: bool, captured: List[Any]
) -> Any:
    """The call of a plan behind the dispatcher."""
    output = plan.direct(q, k, v, scale, sink, captured, rows_first, True, None)
    if output is not None:
        return output
    return plan.run(Given(q, k, v, scale, sink, rows_first, captured), is_operator=True)


def make_no_rows(q: Any, rows_first: bool) -> Any:
    b, h, _ = find_rows(q, rows_first)
    return q.new_empty((b, h, 0), dtype=torch.float32)


def _forward_out(*arguments: Any, output: Tensor, lse: Tensor) -> None:
    call = Forward(*arguments)
    plan = find(call.source, call.q, call.scale, call.sink, call.captures)
    plan.run_into(find_given(call), output, lse)


def to_dense(x: Any) -> Any:
    """The tensor, or a copy where it is expanded, or has a gap or an address that a kernel may not
    read: gradients come as PyTorch makes them."""
    is_dense = x.is_contiguous() or (x.dim() == 4 and x.transpose(1, 2).is_contiguous())
    if is_dense and x.data_ptr() % 16 == 0:
        return x
    return x.clone(memory_format=torch.contiguous_format)


def _get_names(captures: Optional[List[Any]], wanted: List[bool]) -> Wanted:
    """Of what a call wants gradients of, in the order of `wanted`."""
    names = ("query", "key", "value", "sink", *range(len(captures or [])))
    return tuple([name for name, is_wanted in zip(names, wanted) if is_wanted])


def _get_read_low(whole: Any, lse_low: Any) -> Any:
    """The low part of the log-sum-exp, where the gradient of the plan reads it."""
    return lse_low if whole.recorded().problem.return_low else None


def backward(*arguments: Any) -> List[Tensor]:
    call = Backward(*arguments)
    names = _get_names(call.captures, call.wanted)
    whole = find(call.source, call.q, call.scale, call.sink, call.captures)
    if not names:
        return []
    lse_low = _get_read_low(whole, call.lse_low)
    plan = whole.gradient(names, call.d_lse is not None, lse_low is not None)
    d_lse = None if call.d_lse is None else to_dense(call.d_lse)
    d_output = to_dense(call.d_output.to(call.q.dtype))
    return list(plan.run(find_given(call), call.output, call.lse, lse_low, d_output, d_lse))


if not is_native:
    for _name, _implementation in zip(NAMES, (_forward, _record, backward)):
        for _device in ("CPU", "CUDA"):
            registry.impl(_name, _implementation, _device)
            registry.impl(f"{_name}_plain", _implementation, _device)
    for _device in ("CPU", "CUDA"):
        registry.impl("forward_out", _forward_out, _device)


def find_rows(q: Tensor, rows_first: bool) -> Tuple[int, int, int]:
    """(B, H, M)."""
    b, x, y = q.shape[:3]
    return (b, y, x) if rows_first else (b, x, y)


# ===- Fakes ------------------------------------------------------------------------------------===#


def make_results(call: Forward) -> Tuple[Tensor, Tensor]:
    q, dv = call.q, call.v.shape[-1]
    b, h, m = find_rows(q, call.rows_first)
    shape = (b, m, h, dv) if call.rows_first else (b, h, m, dv)
    dtype = torch.float32 if has_wide_output(call.source) else q.dtype
    return q.new_empty(shape, dtype=dtype), q.new_empty((b, h, m), dtype=torch.float32)


@register_fake("attn::forward_plain", lib=registry)
@register_fake("attn::forward", lib=registry)
def _fake_forward(*arguments: Any) -> Tuple[Tensor, Tensor]:
    return make_results(Forward(*arguments))


@register_fake("attn::record_plain", lib=registry)
@register_fake("attn::record", lib=registry)
def _fake_record(*arguments: Any) -> Tuple[Tensor, Tensor, Tensor]:
    call = Forward(*arguments)
    output, lse = make_results(call)
    plan = find(call.source, call.q, call.scale, call.sink, call.captures).recorded()
    has_low = plan.problem.return_low
    return output, lse, torch.empty_like(lse) if has_low else make_no_rows(call.q, call.rows_first)


@register_fake("attn::forward_out", lib=registry)
def _(*arguments: Any, output: Tensor, lse: Tensor) -> None:
    pass


@register_fake("attn::backward_plain", lib=registry)
@register_fake("attn::backward", lib=registry)
def _fake_backward(*arguments: Any) -> List[Tensor]:
    call = Backward(*arguments)
    captures = call.captures or []
    if is_warming_up[0]:
        whole = find(call.source, call.q, call.scale, call.sink, captures)
        has_low = _get_read_low(whole, call.lse_low) is not None
        whole.gradient(_get_names(captures, call.wanted), call.d_lse is not None, has_low)
    matrices = call.q, call.k, call.v, call.sink
    of = [x.new_empty(x.shape) for x, is_wanted in zip(matrices, call.wanted) if is_wanted]
    of += [
        x.new_empty(x.shape, dtype=torch.float32)
        for x, is_wanted in zip(captures, call.wanted[4:])
        if is_wanted
    ]
    return of


# Whether a function is run for nothing but its kernels.
is_warming_up = [False]


def warm_up(function: Any, inputs: Tuple, options: Dict[str, Any]) -> None:
    """Runs a function and its gradients on tensors without values: plans are made all the same."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._pytree import tree_leaves, tree_map_only

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    inputs, options = tree_map_only(torch.Tensor, mode.from_tensor, (inputs, options))
    is_warming_up[0] = True
    try:
        with mode:
            outputs = [x for x in tree_leaves(function(*inputs, **options)) if _is_recorded(x)]
            if outputs:
                leaves = [x for x in tree_leaves((inputs, options)) if _is_recorded(x)]
                leaves += [x for x in getattr(function, "parameters", list)() if x.requires_grad]
                total = sum(x.float().sum() for x in outputs)
                torch.autograd.grad(total, leaves, allow_unused=True)
    finally:
        is_warming_up[0] = False


def _is_recorded(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.requires_grad


_transforms.register(registry)
_imports.after("torch._inductor.lowering", _inductor.register)
