"""Queries, keys and values of 8 bits, which stand for numbers by themselves or with scales."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, NoReturn, Tuple

from . import _arrays, _dynamo, _foreign, _plan
from ._given import Given
from ._library import Error, refuse
from ._places import get_ordinal, name_device
from ._problem import Spec, check_causal, check_window, is_rows_first
from ._serving_how import find_plan, read_fields
from ._source import Source, Text
from ._tensors import Tensors

_plans: Dict[Any, Tuple["ScaledPlan", List[Any]]] = {}
_NAMES = "q", "k", "v"


class Scales(NamedTuple):
    """The scales of a call, each an array of f32 or None, and the rows of queries and of keys that share
    one; 0 where all of a head do."""

    q: Any = None
    k: Any = None
    v: Any = None
    block: Any = None


def is_narrow(x: Any) -> bool:
    return _arrays.type_name(getattr(x, "dtype", None)) in ("f8E4M3FN", "f8E5M2")


@dataclass(frozen=True)
class ScaledText(Text):
    """The text of an attention of elements of 8 bits, whose problem has the type of the output."""

    element: str = ""
    # Of q, k and v: the type of the scales, empty for none, and how many rows share one.
    scales: Tuple[str, ...] = ()
    blocks: Tuple[int, ...] = ()

    def _narrow(self, wide: str) -> str:
        return f"{wide.rpartition('x')[0]}x{self.element}>"

    @property
    def forward(self) -> str:
        head, _, body = super().forward.partition("\n")
        views, given = [], []
        wide = self.query, self.query, self.value
        for name, type_, scale, block in zip(_NAMES, wide, self.scales, self.blocks):
            head = head.replace(f"%{name}: {type_}", f"%narrow_{name}: {self._narrow(type_)}", 1)
            if scale:
                # One that is repeated has strides of 0.
                given.append(f"%{name}_descale: {scale} {{attn.strided}}")
            else:
                views.append(f"  %{name}_descale = arith.constant dense<1.0> : tensor<f32>")
            size = f" block {block}" if block else ""
            views.append(
                f"  %{name} = attn.scaled %narrow_{name}, %{name}_descale{size} : "
                f"{self._narrow(type_)}, {scale or 'tensor<f32>'} -> {type_}"
            )
        value = f"%narrow_v: {self._narrow(self.value)}"
        head = head.replace(value, ", ".join([value, *given]), 1)
        return "\n".join([head, *views, body])


class ScaledPlan(_plan.Plan):
    """Its calls give scales after the values."""

    text: ScaledText

    def run_scaled(self, given: Given, scales: Scales) -> Any:
        tensors = Tensors(self.kernel)
        problem, swapped = self.problem, given.rows_first
        b, h, m, _ = tensors.add_array(given.q, "q", 4, self.text.element, is_swapped=swapped)
        for name, x in (("k", given.k), ("v", given.v)):
            tensors.add_array(x, name, 4, self.text.element, is_swapped=swapped)
        for name, scale in zip(_NAMES, scales):
            if scale is not None:
                tensors.add_array(scale, f"{name}_descale", len(scale.shape), "f32")
        if problem.has_scale:
            tensors.add_scale(given.scale)
        if problem.has_sink:
            tensors.add_sink(given.sink)
        tensors.add_captures(self.given, given.captured)
        shape = b, h, m, problem.value_dim
        output = _empty(given.q, problem.type, (b, m, h, shape[3]) if swapped else shape)
        tensors.add_array(output, "output", 4, problem.type, is_swapped=swapped)
        if not problem.return_lse:
            tensors.run()
            return output
        lse = _arrays.empty_like(given.q, "f32", (b, h, m))
        tensors.add_array(lse, "lse", 3, "f32")
        tensors.run()
        return output, lse


def _empty(x: Any, type_: str, shape: Tuple[int, ...]) -> Any:
    """A new array of x's library and device."""
    name = _arrays.NAMES_BY_TYPE[type_]
    if not _arrays.is_numpy(x):
        return x.new_empty(shape, dtype=getattr(sys.modules["torch"], name))
    import numpy

    if type_ != "bf16":
        return numpy.empty(shape, name)
    # Where floats of 8 bits come from too.
    import ml_dtypes

    return numpy.empty(shape, ml_dtypes.bfloat16)


def _refuse_gradient(name: str) -> NoReturn:
    raise Error(
        "invalid argument",
        f"{name}: expected a tensor without gradients, got one that requires them",
        "elements of 8 bits have none: detach it, or train in 16 bits",
    )


def _check_scale(name: str, x: Any, q: Any, is_in_blocks: bool) -> Any:
    """An array of f32 where q is, of rank 0, 2 or 3; None for none."""
    if x is None:
        return None
    if not _arrays.is_array(x):
        number = _arrays.to_number(x, name)
        if _arrays.is_numpy(q):
            import numpy

            return numpy.asarray(number, "float32")
        return q.new_full((), number, dtype=sys.modules["torch"].float32)
    x = _foreign.import_array(x, name)
    if getattr(x, "requires_grad", False):
        _refuse_gradient(name)
    if _arrays.type_name(x.dtype) != "f32":
        refuse(name, "float32", x.dtype)
    if len(x.shape) == 1 and int(x.shape[0]) == 1:
        x = x.reshape(())
    ranks = (0, 2, 3) if is_in_blocks else (0, 2)
    if len(x.shape) not in ranks:
        dims = "one number, (B, S)" + (" or (B, S, C)" if is_in_blocks else "")
        refuse(name, dims, f"shape {tuple(x.shape)}")
    return x


def _check_heads(name: str, scale: Any, x: Any, rows_first: bool) -> None:
    """Of the scales of x."""
    if scale is None or len(scale.shape) == 0:
        return
    batch, heads = int(x.shape[0]), int(x.shape[2 if rows_first else 1])
    batches, count = int(scale.shape[0]), int(scale.shape[1])
    if batches not in (1, batch) or not count or heads % count:
        refuse(name, f"(B, S) of B {batch} and an S that divides {heads}", tuple(scale.shape))


def _find_blocks(block: Any) -> Tuple[int, int]:
    """Of queries, and of keys and values."""
    if block is None:
        return 0, 0
    pair = block if isinstance(block, tuple) else (block, block)
    if len(pair) != 2 or not all(
        isinstance(x, int) and not isinstance(x, bool) and 1 <= x <= 1 << 29 for x in pair
    ):
        refuse("descale_block", "a number of rows, or (rows of q, rows of k and v)", repr(block))
    return pair


def _type_of(scale: Any) -> str:
    if scale is None:
        return ""
    extents = ["1" if int(extent) == 1 and dim < 2 else "?" for dim, extent in enumerate(scale.shape)]
    return f"tensor<{'x'.join([*extents, 'f32'])}>"


def _output_type(dtype: Any) -> str:
    type_ = "bf16" if dtype is None else _arrays.type_name(dtype)
    if type_ not in ("f16", "bf16", "f32"):
        refuse("out_dtype", "float16, bfloat16 or float32", repr(dtype))
    return str(type_)


def _find_plan(q: Any, spec: Spec, scales: Scales, options: Any) -> Tuple[Any, List[Any]]:
    of_q, of_k = _find_blocks(scales.block)
    given = scales.q, scales.k, scales.v
    types = tuple(_type_of(x) for x in given)
    blocks = tuple(
        block if x is not None and len(x.shape) == 3 else 0 for x, block in zip(given, (of_q, of_k, of_k))
    )
    element = str(_arrays.type_name(q.dtype))

    def make(source: Source, captures: Any, texts: Any) -> ScaledPlan:
        text = ScaledText(**read_fields(source.text), element=element, scales=types, blocks=blocks)
        return ScaledPlan(text, captures, texts)

    return find_plan(_plans, spec, (element, types, blocks), options, make)


@_dynamo.disable
def attend(q: Any, k: Any, v: Any, scales: Scales, asked: Tuple, layout: str, how: Tuple) -> Any:
    """`asked` is that of an eager call, `how` the options, dropout_p and dropout_seed."""
    scale, causal, window, score, mask, sink, return_lse, out_dtype, placed = asked
    options, dropout_p, _ = how
    if placed is not None:
        refuse("positions", "None where elements have 8 bits", "positions in a whole")
    if dropout_p:
        refuse("dropout_p", "0 where elements have 8 bits", repr(dropout_p))
    if not is_narrow(q):
        refuse("q", "float8_e4m3fn or float8_e5m2 where there are scales", getattr(q, "dtype", q))
    given = q
    q, k, v, sink = _foreign.import_named(q=q, k=k, v=v, sink=sink)
    for name, x in zip(_NAMES, (q, k, v)):
        if getattr(x, "requires_grad", False):
            _refuse_gradient(name)
        if x.dtype != q.dtype:
            refuse(name, f"the type of q, {q.dtype}", x.dtype)
        if len(x.shape) != 4:
            refuse(name, "4 dimensions", f"shape {tuple(x.shape)}")
    rows_first = is_rows_first(layout)
    is_in_blocks = scales.block is not None
    checked = [
        _check_scale(f"{name}_descale", x, q, is_in_blocks) for name, x in zip(_NAMES, scales)
    ]
    for name, found, x in zip(_NAMES, checked, (q, k, v)):
        _check_heads(f"{name}_descale", found, x, rows_first)
    q_scale, k_scale, v_scale = checked
    scales = Scales(q_scale, k_scale, v_scale, scales.block)
    device = get_ordinal(q)
    spec = Spec(
        _output_type(out_dtype),
        int(q.shape[-1]),
        int(v.shape[-1]),
        name_device(device),
        causal=check_causal(causal) or False,
        window=check_window(window),
        score=score,
        mask=mask,
        has_scale=scale is not None,
        has_sink=sink is not None,
        return_lse=bool(return_lse),
    )
    plan, arrays = _find_plan(q, spec, scales, options)
    found = Given(q, k, v, scale, sink, rows_first, _foreign.import_all(arrays))
    return _foreign.export(plan.run_scaled(found, scales), given)
