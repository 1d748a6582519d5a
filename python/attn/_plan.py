"""A compiled attention, and how its calls are laid out."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _arrays, _direct, _log, _observe
from ._given import Given
from ._gradient import GradientPlan
from ._library import Error, Kernel, OptionTexts, refuse
from ._positions import count_elements
from ._source import Gradients, Source, Text, Wanted
from ._tensors import Tensors, swap

_LIMIT = 512

# Of q, k and v, in the layout of calls.
Shapes = Tuple[Tuple[int, ...], Tuple[int, ...], Tuple[int, ...]]


def remember(cache: Dict, key: Any, value: Any) -> None:
    """Drops what came first when there is too much: a mask per call must not fill the memory."""
    if len(cache) >= _LIMIT:
        try:
            cache.pop(next(iter(cache)), None)
        except (StopIteration, RuntimeError):
            pass
    cache[key] = value


def _compile(text: str, options: OptionTexts) -> Kernel:
    """The library remembers what it compiled. On a GPU calls compile the kernels that they take."""
    said = [x for x in options if x[0] == "lazy"] or [("lazy", "on")]
    options = tuple([x for x in options if x[0] != "lazy"])
    try:
        kernel = Kernel(text, (*options, *said))
    except Error as error:
        _observe.tell_refused(text, options, error)
        raise
    _log.note(text, options, kernel)
    return kernel


def check_eager() -> None:
    if _arrays.is_tracing():
        raise Error(
            "invalid argument",
            "attention: expected an eager call, got one inside torch.jit.trace",
            "use torch.export, or trace what is around it",
        )


class Plan:
    """A kernel and how its calls are laid out. Copies share it."""

    def __init__(self, text: Text, captures: List[Tuple], options: OptionTexts) -> None:
        """Captures are (name, type, type of the elements, rank, position in what a call gives, least
        extents)."""
        problem = text.problem
        self.problem, self.text, self.options = problem, text, options
        self.given = captures
        self.gradients: Dict[Tuple[Gradients, bool], GradientPlan] = {}
        self._recorded: Optional[Plan] = None
        self._wide: Optional[Plan] = None
        # As the operator takes it; written when it is first called.
        self.source: Optional[str] = None
        # What the operator makes of that.
        self.behind_operator: Optional[Plan] = None
        # `direct`, while PyTorch may be imported yet.
        self.numpy_direct: Optional[Callable[..., Any]] = None
        self._kernel: Optional[Kernel] = None

    @property
    def kernel(self) -> Kernel:
        """Compiled when first wanted: calls that autograd records run the one with lse."""
        if self._kernel is None:
            self._kernel = _compile(self.text.forward, self.options)
        return self._kernel

    @property
    def device(self) -> int:
        """As torch.Tensor.get_device() says it: -1 is the CPU."""
        return self.kernel.device

    def __copy__(self) -> "Plan":
        return self

    def __deepcopy__(self, memo: Any) -> "Plan":
        return self

    def __reduce__(self) -> Tuple:
        return type(self), (self.text, self.given, self.options)

    def recorded(self) -> "Plan":
        """The plan of the same attention whose calls return what gradients read too."""
        if self._recorded is None:
            has_low = self.text.reads_low(("device", "cpu") in self.options)
            problem = dataclasses.replace(self.problem, return_lse=True, return_low=has_low)
            text = dataclasses.replace(self.text, problem=problem)
            is_same = problem == self.problem
            self._recorded = self if is_same else type(self)(text, self.given, self.options)
        return self._recorded

    def wide(self) -> "Plan":
        """The plan of the same attention whose output is float32."""
        if self._wide is None:
            output = "" if self.problem.type == "f32" else "f32"
            problem = dataclasses.replace(self.problem, output=output)
            text = dataclasses.replace(self.text, problem=problem)
            is_same = problem == self.problem
            self._wide = self if is_same else type(self)(text, self.given, self.options)
        return self._wide

    def gradient(
        self, wanted: Wanted, has_lse_gradient: bool, has_low: bool, is_wide: bool = False
    ) -> GradientPlan:
        """Compiled when first wanted. In two passes where PyTorch wants the same bits each time.
        `is_wide` where gradients of q, k and v are to be float32."""
        in_order = ("device", "cpu") not in self.options and _arrays.wants_same_bits()
        is_wide = is_wide and self.problem.type != "f32"
        gradients = Gradients(wanted, has_lse_gradient, has_low, is_wide)
        key = gradients, in_order
        plan = self.gradients.get(key)
        if plan is None:
            options = (*self.options, ("fused", "off")) if in_order else self.options
            kernel = _compile(self.text.gradient(gradients), options)
            plan = GradientPlan(self.problem, self.given, kernel, gradients)
            self.gradients[key] = plan
        return plan

    def check_given(self, scale: Any, sink: Any, captured: List[Any]) -> None:
        """Of the operators, whose source and other arguments come each by itself."""
        has = ("scale", scale, self.problem.has_scale), ("sink", sink, self.problem.has_sink)
        for name, x, is_wanted in has:
            if (x is not None) != is_wanted:
                expected, got = ("one", "none") if is_wanted else ("none", "one")
                raise Error(
                    "invalid argument",
                    f"{name}: expected {expected}, as the source says, got {got}",
                )
        if len(captured) != len(self.given):
            raise Error(
                "invalid argument",
                f"captures: expected {len(self.given)}, as the source says, got {len(captured)}",
            )

    def find_given(self, captured: List[Any]) -> List[Any]:
        """Of what a call gives, the arrays that the kernel reads."""
        return [captured[capture[4]] for capture in self.given]

    def direct(self, *call: Any) -> Any:
        """Of (q, k, v, scale, sink, captured, rows_first, is_operator, out): what `run` returns, for
        most calls that nobody watches; None for others. `is_operator` for a call behind PyTorch's
        dispatcher, which everybody who looks has seen."""
        if _arrays.find_torch() is not None or "numpy" not in sys.modules:
            return None
        direct = self.numpy_direct
        if direct is None:
            direct = self.numpy_direct = self._make_direct()
        return direct(*call)

    def _make_direct(self) -> Callable[..., Any]:
        _direct.users.add(self)
        return _direct.make(self.kernel, self.problem, self.given)

    def forget_direct(self) -> None:
        self.numpy_direct = None
        vars(self).pop("direct", None)

    def run(self, given: Given, is_operator: bool = False) -> Any:
        """A call that `direct` did not take, and that nobody watches: the output, or it and lse, or
        these and lse_low."""
        check_eager()
        q, k, v, scale, sink, rows_first, captured = given
        # NumPy is imported with it, or never: there is nothing to wait for.
        if "direct" not in vars(self) and _arrays.find_torch() is not None:
            self.direct = self._make_direct()  # type: ignore[method-assign]
            output = self.direct(q, k, v, scale, sink, captured, rows_first, is_operator, None)
            if output is not None:
                return output
        tensors = Tensors(self.kernel)
        b, h, m, _ = self._add_arguments(tensors, given)
        dv = self.problem.value_dim
        shape = (b, m, h, dv) if rows_first else (b, h, m, dv)
        output = _arrays.empty_like(q, self.problem.output or None, shape)
        count = self.problem.return_lse + self.problem.return_low
        rows = [_arrays.empty_like(q, "f32", (b, h, m)) for _ in range(count)]
        self._add_results(tensors, given, output, *rows)
        # On a GPU the call is only queued: memory that goes back to PyTorch's allocator is given
        # out in the order of the stream.
        tensors.run()
        return (output, *rows) if rows else output

    def run_into(
        self, given: Given, output: Any, lse: Any, workspace: Any = None, low: Any = None
    ) -> None:
        """The call behind everybody who looks, with the memory of its results: lse and low are None where
        the problem has none. `workspace` is an array for what kernels leave for each other."""
        tensors = Tensors(self.kernel)
        b, h, m, _ = self._add_arguments(tensors, given)
        dv, type_ = self.problem.value_dim, self.problem.output_type
        shape = (b, m, h, dv) if given.rows_first else (b, h, m, dv)
        results = [("output", output, shape, type_)]
        if self.problem.return_lse:
            results.append(("lse", lse, (b, h, m), "f32"))
        if self.problem.return_low:
            results.append(("lse_low", low, (b, h, m), "f32"))
        for name, x, wanted, element in results:
            extents = tuple(_arrays.view(x, name, self.device)[1])
            if extents != wanted or _arrays.type_name(x.dtype) != element:
                raise Error(
                    "invalid argument",
                    f"{name}: expected {element} of shape {wanted}, got {x.dtype} of shape {extents}",
                )
            if _arrays.is_numpy(x) and not x.flags.writeable:
                raise Error(
                    "invalid argument",
                    f"{name}: expected an array that can be written, got a read-only one",
                    "give a copy",
                )
        rows = [*[lse] * self.problem.return_lse, *[low] * self.problem.return_low]
        self._add_results(tensors, given, output, *rows)
        tensors.run(workspace)

    def prepare(self, shapes: Optional[Shapes], rows_first: bool, captured: List[Any]) -> None:
        """Compiles what calls of such shapes of q, k and v take, or what any call may take."""
        if self.device < 0:
            _ = self.kernel
        elif shapes is None:
            self.kernel.prepare()
        else:
            self._add_shapes(shapes, rows_first, captured).prepare()

    def choose_way(self, shapes: Shapes, rows_first: bool, captured: List[Any]) -> str:
        """The name of the kernel that calls of such shapes take, out of those of a GPU; empty for the
        one of most calls."""
        return self._add_shapes(shapes, rows_first, captured).choose_way()

    def count_workspace(self, shapes: Shapes, rows_first: bool, captured: List[Any]) -> int:
        """Bytes."""
        return self._add_shapes(shapes, rows_first, captured).count_workspace()

    def _add_shapes(self, shapes: Shapes, rows_first: bool, captured: List[Any]) -> Tensors:
        """The tensors of a call that is not made: none has memory."""
        tensors, type_ = Tensors(self.kernel), self.problem.type
        for name, shape in zip("qkv", shapes):
            if len(shape) != 4:
                refuse(name, "a shape of 4 dimensions", tuple(shape))
        q, k, v = (swap(shape) if rows_first else tuple(shape) for shape in shapes)
        b, h, m, _ = q
        for shape in (q, k, v):
            tensors.add_shape(shape, type_)
        if self.problem.has_scale:
            tensors.add_scale(1.0)
        if self.problem.has_sink:
            tensors.add_shape((h,), "f32")
        # What variants capture comes with calls alone.
        later = {"dropout_seed": 1, **count_elements(self.problem.positions, (m, k[2]))}
        for name, captured_type, _, _, position, _ in self.given:
            is_there = position < len(captured)
            shape = tuple(captured[position].shape) if is_there else (later[name],)
            tensors.add_shape(shape, captured_type)
        tensors.add_shape((b, h, m, self.problem.value_dim), self.problem.output_type)
        for _ in range(self.problem.return_lse + self.problem.return_low):
            tensors.add_shape((b, h, m), "f32")
        return tensors

    def _add_results(self, tensors: Tensors, given: Given, output: Any, *rows: Any) -> None:
        tensors.add_array(output, "output", 4, self.problem.output_type, given.rows_first)
        for name, x in zip(("lse", "lse_low"), rows):
            tensors.add_array(x, name, 3, "f32")

    def _add_arguments(self, tensors: Tensors, given: Given) -> Tuple[int, ...]:
        """Whatever they are, or an Error that says what they should be. Returns (B, H, M, D)."""
        shape = self._add_matrices(tensors, given)
        if self.problem.has_scale:
            tensors.add_scale(given.scale)
        if self.problem.has_sink:
            tensors.add_sink(given.sink)
        tensors.add_captures(self.given, given.captured)
        return shape

    def _add_matrices(self, tensors: Tensors, given: Given) -> Tuple[int, ...]:
        query_shape: Tuple[int, ...] = ()
        for name, x in (("q", given.q), ("k", given.k), ("v", given.v)):
            address, shape, strides = _arrays.view(x, name, self.device)
            if len(shape) != 4:
                raise Error(
                    "invalid argument",
                    f"{name}: expected 4 dimensions, "
                    f"{'(B, S, H, D)' if given.rows_first else '(B, H, S, D)'}, got shape "
                    f"{tuple(shape)}",
                )
            if x.dtype != given.q.dtype:
                raise Error(
                    "invalid argument",
                    f"{name}: expected the type of q, {given.q.dtype}, got {x.dtype}",
                )
            if given.rows_first:
                shape, strides = swap(shape), swap(strides)
            tensors.add(address, shape, strides, self.problem.type, self.device)
            query_shape = query_shape or shape
        return query_shape


def list_captures(source: Source, by_slot: bool) -> List[Tuple]:
    """The captures as a plan takes them: by place in the source's arrays, or by slot."""
    return [
        (c.name, c.type, c.element, c.rank, c.slot if by_slot else i, c.least)
        for i, c in enumerate(source.captures)
    ]


def make_plan(source: Source, options: OptionTexts, by_slot: bool = False) -> Plan:
    """Its calls give the arrays of the source, or, by slot, those of their own Scan."""
    return Plan(source.text, list_captures(source, by_slot), options)
