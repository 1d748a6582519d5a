"""attn::forward, attn::record and attn::backward, operators of PyTorch, and how autograd records them:
attn::record is the forward operator that returns all that attn::backward reads.

What crosses the dispatcher is tensors, numbers and text: `source` (_written.py) is the IR of one
attention and what its gradients are written from, so that a graph can be compiled, exported, and
run by a process that never saw the Python functions. PyTorch is imported here, so attn imports this
module only where PyTorch is.
"""

from __future__ import annotations

import contextlib
import functools
import os
import warnings
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch
from torch.library import Library, register_fake

from . import _arrays, _dynamo, _transforms
from ._given import Given
from ._library import Error, library_path
from ._plan import Plan, check_eager, remember
from ._source import Wanted
from ._written import read_source, write_source

_plans: Dict[Tuple[str, str], Plan] = {}


def _find(source: str, q: Any, scale: Any, sink: Any, captures: Optional[List[Any]]) -> Plan:
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


# ===- The operators ----------------------------------------------------------------------------===#

_INPUTS = "Tensor q, Tensor k, Tensor v, Tensor? sink, Tensor[]? captures"
_OPTIONS = "str source, float? scale, bool rows_first"


def _load_native() -> bool:
    """Whether libattn_torch.so (lib/Torch) is there, and of a PyTorch that this one can stand for: it
    defines forward and forward_out, and runs them on CPUs."""
    path = library_path.parent / "libattn_torch.so"
    if os.environ.get("ATTN_NATIVE_OPERATORS") == "0" or not path.exists():
        return False
    try:
        torch.ops.load_library(str(path))
    except OSError:
        return False
    return True


is_native = _load_native()
_registry = Library("attn", "FRAGMENT" if is_native else "DEF")
if not is_native:
    _registry.define(
        f"forward({_INPUTS}, {_OPTIONS}) -> (Tensor output, Tensor lse)",
        tags=(torch.Tag.pt2_compliant_tag,),
    )
    # Nothing of it is recorded; for who owns the memory of results.
    _registry.define(
        f"forward_out({_INPUTS}, {_OPTIONS}, *, Tensor(a!) output, Tensor(b!) lse) -> ()",
        tags=(torch.Tag.pt2_compliant_tag,),
    )
# lse_low has no rows where gradients of the source do without it.
_registry.define(
    f"record({_INPUTS}, {_OPTIONS}) -> (Tensor output, Tensor lse, Tensor lse_low)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
# The last argument is younger than programs that were exported.
_registry.define(
    f"backward(Tensor d_output, Tensor? d_lse, {_INPUTS}, Tensor output, Tensor lse, {_OPTIONS}, "
    "bool[] wanted, Tensor? lse_low=None) -> Tensor[]",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def _forward(
    q: Any,
    k: Any,
    v: Any,
    sink: Any,
    captures: Optional[List[Any]],
    source: str,
    scale: Any,
    rows_first: bool,
) -> Any:
    plan = _find(source, q, scale, sink, captures).choose(q, k, v, rows_first)
    return _run(plan, q, k, v, scale, sink, rows_first, captures or [])


def _record_results(
    q: Any,
    k: Any,
    v: Any,
    sink: Any,
    captures: Optional[List[Any]],
    source: str,
    scale: Any,
    rows_first: bool,
) -> Any:
    plan = _find(source, q, scale, sink, captures).choose(q, k, v, rows_first).recorded()
    found = _run(plan, q, k, v, scale, sink, rows_first, captures or [])
    return found if plan.problem.return_low else (*found, _make_no_rows(q, rows_first))


def _run(
    plan: Plan, q: Any, k: Any, v: Any, scale: Any, sink: Any, rows_first: bool, captured: List[Any]
) -> Any:
    """The call of a plan behind the dispatcher."""
    output = plan.direct(q, k, v, scale, sink, captured, rows_first, True, None)
    if output is not None:
        return output
    return plan.run(Given(q, k, v, scale, sink, rows_first, captured), is_operator=True)


def _make_no_rows(q: Any, rows_first: bool) -> Any:
    b, h, _ = _find_rows(q, rows_first)
    return q.new_empty((b, h, 0), dtype=torch.float32)


def _forward_out(
    q: Any,
    k: Any,
    v: Any,
    sink: Any,
    captures: Optional[List[Any]],
    source: str,
    scale: Any,
    rows_first: bool,
    *,
    output: Any,
    lse: Any,
) -> None:
    given = Given(q, k, v, scale, sink, rows_first, captures or [])
    plan = _find(source, q, scale, sink, captures).choose(q, k, v, rows_first)
    plan.run_into(given, output, lse)


def _to_dense(x: Any) -> Any:
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


def _backward(
    d_output: Any,
    d_lse: Any,
    q: Any,
    k: Any,
    v: Any,
    sink: Any,
    captures: Optional[List[Any]],
    output: Any,
    lse: Any,
    source: str,
    scale: Any,
    rows_first: bool,
    wanted: List[bool],
    lse_low: Any = None,
) -> List[Any]:
    names = _get_names(captures, wanted)
    whole = _find(source, q, scale, sink, captures)
    if not names:
        return []
    lse_low = _get_read_low(whole, lse_low)
    plan = whole.gradient(names, d_lse is not None, lse_low is not None)
    given = Given(q, k, v, scale, sink, rows_first, captures or [])
    d_lse = None if d_lse is None else _to_dense(d_lse)
    return list(plan.run(given, output, lse, lse_low, _to_dense(d_output), d_lse))


for _name, _implementation in (
    ("forward", _forward),
    ("forward_out", _forward_out),
    ("record", _record_results),
    ("backward", _backward),
):
    if _name in ("record", "backward") or not is_native:
        _registry.impl(_name, _implementation, "CPU")
    _registry.impl(_name, _implementation, "CUDA")


@register_fake("attn::forward", lib=_registry)
def _(q, k, v, sink, captures, source, scale, rows_first):  # type: ignore[no-untyped-def]
    return _make_results(q, v, rows_first)


def _make_results(q: Any, v: Any, rows_first: bool) -> Tuple[Any, Any]:
    b, h, m = _find_rows(q, rows_first)
    dv = v.shape[-1]
    shape = (b, m, h, dv) if rows_first else (b, h, m, dv)
    return q.new_empty(shape), q.new_empty((b, h, m), dtype=torch.float32)


@register_fake("attn::record", lib=_registry)
def _(q, k, v, sink, captures, source, scale, rows_first):  # type: ignore[no-untyped-def]
    output, lse = _make_results(q, v, rows_first)
    has_low = _find(source, q, scale, sink, captures).recorded().problem.return_low
    return output, lse, torch.empty_like(lse) if has_low else _make_no_rows(q, rows_first)


@register_fake("attn::forward_out", lib=_registry)
def _(q, k, v, sink, captures, source, scale, rows_first, *, output, lse):  # type: ignore[no-untyped-def]
    pass


@register_fake("attn::backward", lib=_registry)
def _(  # type: ignore[no-untyped-def]
    d_output, d_lse, q, k, v, sink, captures, output, lse, source, scale, rows_first, wanted, lse_low=None
):
    if _is_warming_up[0]:
        whole = _find(source, q, scale, sink, captures)
        has_low = _get_read_low(whole, lse_low) is not None
        whole.gradient(_get_names(captures, wanted), d_lse is not None, has_low)
    of = [x.new_empty(x.shape) for x, is_wanted in zip((q, k, v, sink), wanted) if is_wanted]
    of += [
        x.new_empty(x.shape, dtype=torch.float32)
        for x, is_wanted in zip(captures or [], wanted[4:])
        if is_wanted
    ]
    return of


# Whether a function is run for nothing but its kernels.
_is_warming_up = [False]


def warm_up(function: Any, inputs: Tuple, options: Dict[str, Any]) -> None:
    """Runs a function and its gradients on tensors without values: plans are made all the same."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._pytree import tree_leaves, tree_map_only

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    inputs, options = tree_map_only(torch.Tensor, mode.from_tensor, (inputs, options))
    _is_warming_up[0] = True
    try:
        with mode:
            outputs = [x for x in tree_leaves(function(*inputs, **options)) if _is_recorded(x)]
            if outputs:
                leaves = [x for x in tree_leaves((inputs, options)) if _is_recorded(x)]
                leaves += [x for x in getattr(function, "parameters", list)() if x.requires_grad]
                total = sum(x.float().sum() for x in outputs)
                torch.autograd.grad(total, leaves, allow_unused=True)
    finally:
        _is_warming_up[0] = False


def _is_recorded(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.requires_grad


_transforms.register(_registry)


# ===- Autograd ---------------------------------------------------------------------------------===#


def _is_any_recorded(*given: Any) -> bool:
    tensors = [x for x in given if isinstance(x, torch.Tensor)]
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def _below_autograd(operator: Any) -> Any:
    """Of these operators autograd records nothing, so that nothing is dropped in silence."""

    def run(*arguments: Any, **results: Any) -> Any:
        if _is_any_recorded(*arguments, *results.values()):
            raise Error(
                "invalid argument",
                f"{operator}: expected a call by attn.attention where gradients are wanted, got one of "
                "the operator itself",
                "use attn.attention",
            )
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*arguments, **results)

    return run


def _recorded(operator: Any, count: int) -> Any:
    """The operator, of `count` results, as a graph calls it that torch.export wrote, whose parameters
    may learn."""

    def run(
        q: Any,
        k: Any,
        v: Any,
        sink: Any,
        captures: Optional[List[Any]],
        source: str,
        scale: Any,
        rows_first: bool,
    ) -> Any:
        last = source, scale, rows_first
        if _is_any_recorded(q, k, v, sink, *(captures or [])):
            return Attention.apply(q, k, v, sink, *last, *(captures or []))[:count]
        with torch._C._AutoDispatchBelowAutograd():
            return operator(q, k, v, sink, captures, *last)

    return run


_registry.impl("forward", _recorded(torch.ops.attn.forward.default, 2), "Autograd")
_registry.impl("record", _recorded(torch.ops.attn.record.default, 3), "Autograd")
for _name in ("forward_out", "backward"):
    _registry.impl(_name, _below_autograd(getattr(torch.ops.attn, _name).default), "Autograd")


class Gradient(torch.autograd.Function):
    """attn::backward. It has no derivative, and says so."""

    generate_vmap_rule = True

    # torch.compile counts the parameters.
    @staticmethod
    def forward(  # type: ignore[override]
        d_output: Any,
        d_lse: Any,
        q: Any,
        k: Any,
        v: Any,
        sink: Any,
        output: Any,
        lse: Any,
        lse_low: Any,
        source: str,
        scale: Any,
        rows_first: bool,
        wanted: List,
        captures: Optional[List],
    ) -> Any:
        found = torch.ops.attn.backward(
            d_output,
            d_lse,
            q,
            k,
            v,
            sink,
            captures,
            output,
            lse,
            source,
            scale,
            rows_first,
            wanted,
            lse_low,
        )
        return tuple(found)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple, output: Tuple) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Tuple:  # type: ignore[override]
        raise Error(
            "invalid argument",
            "attention: expected first derivatives, got a second one: there is no such kernel",
            "use torch.nn.functional.scaled_dot_product_attention",
        )


PLAIN = (torch.Tensor, torch.nn.Parameter)


class Attention(torch.autograd.Function):
    """(output, lse, lse_low) of attn::record, with attn::backward as its gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(  # type: ignore[override]
        q: Any, k: Any, v: Any, sink: Any, source: str, scale: Any, rows_first: bool, *captures: Any
    ) -> Any:
        return torch.ops.attn.record(q, k, v, sink, captures or None, source, scale, rows_first)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple, output: Tuple) -> None:
        q, k, v, sink, source, scale, rows_first, *captures = inputs
        ctx.mark_non_differentiable(output[2])
        _save(ctx, q, k, v, sink, source, scale, rows_first, captures, output)

    @staticmethod
    def backward(ctx: Any, d_output: Any, d_lse: Any, _: Any) -> Tuple:  # type: ignore[override]
        return _differentiate(ctx, ctx.saved_tensors, d_output, d_lse)


class Recorded(torch.autograd.Function):
    """The same where autograd alone watches, past the dispatcher: two dispatches, and the signature
    that PyTorch binds in each call where there is a `setup_context`, take longer than all else."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        q: Any,
        k: Any,
        v: Any,
        sink: Any,
        plan: Plan,
        scale: Any,
        rows_first: bool,
        *captures: Any,
    ) -> Any:
        chosen, captured = plan.choose(q, k, v, rows_first).recorded(), [*captures]
        found = _run(chosen, q, k, v, scale, sink, rows_first, captured)
        output, lse, lse_low = found if chosen.problem.return_low else (*found, None)
        results = output, lse, lse_low
        _save(ctx, q, k, v, sink, plan.source, scale, rows_first, captures, results)
        ctx.plan = plan
        return output, lse

    @staticmethod
    def backward(ctx: Any, d_output: Any, d_lse: Any) -> Tuple:  # type: ignore[override]
        saved = ctx.saved_tensors
        if (
            type(d_output) is not torch.Tensor
            or _dynamo.is_compiling()
            or _arrays.is_watched_by_others()
        ):
            return _differentiate(ctx, saved, d_output, d_lse)
        q, k, v, sink, output, lse, lse_low, *captures = saved
        _, scale, rows_first = ctx.options
        names, places = _find_wanted(ctx.needs_input_grad)
        d_lse = None if d_lse is None else _to_dense(d_lse)
        of = output, lse, lse_low, _to_dense(d_output), d_lse
        plan = ctx.plan.gradient(names, d_lse is not None, lse_low is not None)
        found = plan.direct(q, k, v, scale, sink, captures, rows_first, *of)
        if found is None:
            return _differentiate(ctx, saved, d_output, d_lse)
        gradients: List[Any] = [None] * (_NUM_FIXED + len(captures))
        for place, x in zip(places, found):
            # Kernels sum in f32.
            is_sum = place >= _NUM_FIXED
            gradients[place] = x.to(captures[place - _NUM_FIXED].dtype) if is_sum else x
        return tuple(gradients)


# Arguments in front of the captured tensors.
_NUM_FIXED = 7


@functools.lru_cache(maxsize=None)
def _find_wanted(needed: Tuple[bool, ...]) -> Tuple[Wanted, Tuple[int, ...]]:
    """The names of the gradients that are wanted, and where they stand among the arguments."""
    places = [i for i, is_needed in enumerate(needed) if is_needed]
    known = "query", "key", "value", "sink"
    return tuple([known[i] if i < 4 else i - _NUM_FIXED for i in places]), tuple(places)


# Of Function.apply, what remains outside of transforms.
_record = super(torch.autograd.Function, Recorded).apply


def _save(
    ctx: Any,
    q: Any,
    k: Any,
    v: Any,
    sink: Any,
    source: Optional[str],
    scale: Any,
    rows_first: bool,
    captures: Any,
    results: Tuple,
) -> None:
    ctx.options = source, scale, rows_first
    # PyTorch notices when one of these is written to in between.
    ctx.save_for_backward(q, k, v, sink, *results, *captures)
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, saved: Tuple, d_output: Any, d_lse: Any) -> Tuple:
    """What both Functions give autograd, whose arguments are in the same order."""
    q, k, v, sink, output, lse, lse_low, *captures = saved
    needed = ctx.needs_input_grad
    wanted = [*needed[:4], *needed[7:]]
    if not any(wanted) or (d_output is None and d_lse is None):
        return (None,) * len(needed)
    if d_output is None:
        d_output = torch.zeros_like(output)
    # Classes of tensors, such as DTensor, are the operator's business.
    given = (q, k, v, output, lse, d_output, d_lse, sink, *captures)
    if (
        _dynamo.is_compiling()
        or not all(x is None or type(x) in PLAIN for x in given)
        or _arrays.is_watched(q, k, v, d_output, d_lse, sink, *captures)
    ):
        read = captures or None
        found = Gradient.apply(
            d_output, d_lse, q, k, v, sink, output, lse, lse_low, *ctx.options, wanted, read
        )
    else:
        found = _backward(
            d_output, d_lse, q, k, v, sink, captures, output, lse, *ctx.options, wanted, lse_low
        )
    gradients = iter(found)
    each = [next(gradients) if is_wanted else None for is_wanted in wanted]
    # Kernels sum in f32.
    sums = [x if x is None else x.to(of.dtype) for x, of in zip(each[4:], captures)]
    return (*each[:4], None, None, None, *sums)


# ===- Calls ------------------------------------------------------------------------------------===#


def call(plan: Plan, given: Given) -> Any:
    """The call through the dispatcher, where somebody looks: autograd, a transform, a mode."""
    check_eager()
    given, captured = _prepare(plan, given)
    if _is_warming_up[0]:
        _ = (plan.recorded() if _records(given, captured) else plan).kernel
    with _as_errors():
        return apply(write_source(plan), given, captured, plan.problem.return_lse)


def record(
    plan: Plan, q: Any, k: Any, v: Any, scale: Any, sink: Any, rows_first: bool, arrays: List[Any]
) -> Any:
    """The call of plain tensors that autograd records and nobody else watches; None for others."""
    captured = [arrays[capture[4]] for capture in plan.given]
    is_recorded = q.requires_grad or k.requires_grad or v.requires_grad
    if sink is not None:
        if type(sink) not in PLAIN:
            return None
        is_recorded = is_recorded or sink.requires_grad
        sink = sink if sink.dtype is torch.float32 else _to_sink(sink).float()
    for x in captured:
        if type(x) not in PLAIN:
            return None
        is_recorded = is_recorded or x.requires_grad
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
        behind = plan.behind_operator = _find(write_source(plan), q, scale, sink, captured)
        behind.source = plan.source
    output, lse = _record(q, k, v, sink, behind, scale, rows_first, *captured)
    return (output, lse) if plan.problem.return_lse else output


def call_into(plan: Plan, given: Given, output: Any, lse: Any) -> None:
    """The same, of a call that is given the memory of its results."""
    given, captured = _prepare(plan, given)
    if lse is None:
        b, h, m = _find_rows(given.q, given.rows_first)
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


def _find_rows(q: Any, rows_first: bool) -> Tuple[int, int, int]:
    return (q.shape[0], q.shape[2], q.shape[1]) if rows_first else tuple(q.shape[:3])


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
        sink = _to_sink(given.sink)
        given = given._replace(sink=sink if replicate is None else replicate(sink, given.q))
    return given, captured


def _find_sharding(q: Any) -> Any:
    """Of DTensors: their rules are known from here on. Returns what makes one of a tensor."""
    if type(q).__name__ != "DTensor":
        return None
    from . import _sharding

    return _sharding.replicate


def _to_sink(x: Any) -> Any:
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
