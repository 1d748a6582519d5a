"""The IR text of one attention."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple, Union

from . import _log
from ._positions import list_least, list_names, make_shapes
from ._problem import Problem, Spec
from ._scan import Scan
from ._trace import Capture, Slots, Trace


_SEED = "dropout_seed"
_LSE, _SINK = "tensor<?x?x?xf32>", "tensor<?xf32>"


# What gradients are wanted of: names of tensors, and numbers of captured ones.
Wanted = Tuple[Union[str, int], ...]


class Gradients(NamedTuple):
    """Which gradients one kernel computes: `wanted` of "query", "key", "value" and "sink", in this
    order, then numbers of captured tensors."""

    wanted: Wanted
    # Whether lse has a gradient too, and whether its low part is read.
    has_lse_gradient: bool
    has_low: bool
    # Whether those of q, k and v are of float32, whatever these are.
    is_wide: bool = False


@dataclass(frozen=True)
class Text:
    """The pieces that the functions of one attention are written from: its own and its gradients'."""

    problem: Problem
    # Captured tensors as arguments, and lines before and inside of the op.
    captures: Tuple[str, ...]
    before: Tuple[str, ...]
    regions: Tuple[str, ...]

    @property
    def query(self) -> str:
        return f"tensor<?x?x?x{self.problem.head_dim}x{self.problem.type}>"

    @property
    def value(self) -> str:
        return f"tensor<?x?x?x{self.problem.value_dim}x{self.problem.type}>"

    @property
    def output(self) -> str:
        return f"tensor<?x?x?x{self.problem.value_dim}x{self.problem.output_type}>"

    @property
    def has_score(self) -> bool:
        return any(line.lstrip().startswith("score(") for line in self.regions)

    def reads_low(self, on_cpu: bool) -> bool:
        """Whether gradients read lse_low. GPUs read it only where there is a score function: for plain
        products of 16 bits, an addition for each weight would cost too much."""
        return on_cpu or self.has_score

    @property
    def forward(self) -> str:
        rows = ["%lse"] * self.problem.return_lse + ["%lse_low"] * self.problem.return_low
        results = ", ".join([self.output, *[_LSE] * len(rows)])
        names = ", ".join(["%o", *rows])
        operation = f"{names} = attn.attention %q, %k, %v{self._variants()}{self._optional()}"
        types = f"{self.query}, {self.query}, {self.value} -> {results}"
        return self._function("attention", [], operation, types, names, results)

    def capture_type(self, index: int) -> str:
        """Of the captured tensor with this number."""
        return self.captures[index].partition(": ")[2].partition(" {")[0]

    def gradient(self, gradients: Gradients) -> str:
        """Of the function of the arguments, output, lse, lse_low or not, d_output and d_lse or not."""
        wanted, has_lse_gradient, has_low, is_wide = gradients
        last = [f"%output: {self.output}", f"%lse: {_LSE}"]
        operation = "attn.attention_grad %q, %k, %v, %output, %lse, %d_output" + self._variants()
        if has_low:
            last.append(f"%lse_low: {_LSE}")
            operation += f" lse_low(%lse_low : {_LSE})"
        last.append(f"%d_output: {self.value}")
        if has_lse_gradient:
            last.append(f"%d_lse: {_LSE}")
            operation += f" d_lse(%d_lse : {_LSE})"
        of = {"query": self.query, "key": self.query, "value": self.value, "sink": _SINK}
        if is_wide:
            of = {name: f"{type_.rpartition('x')[0]}xf32>" for name, type_ in of.items()}
        captured = [
            (f"%{self.captures[i].partition(': ')[0][1:]}", self.capture_type(i))
            for i in wanted
            if isinstance(i, int)
        ]
        wide = [
            f"{type_.rpartition('x')[0]}xf32>" if "x" in type_ else "tensor<f32>"
            for _, type_ in captured
        ]
        names = ", ".join(f"%d_{name}" for name in wanted)
        results = ", ".join([*[of[name] for name in wanted if isinstance(name, str)], *wide])
        types = ", ".join([self.query, self.query, self.value, self.output, _LSE, self.value])
        types += " -> " + " ".join(
            f"d_{name}({of[name]})" for name in wanted if isinstance(name, str)
        )
        operation = f"{names} = {operation}{self._optional()}"
        if captured:
            given = ", ".join(name for name, _ in captured)
            operation += f" wrt({given} : {', '.join(type_ for _, type_ in captured)})"
            types += f" d_wrt({', '.join(wide)})"
        text = self._read_inside([name for name, _ in captured])
        return text._function("gradient", last, operation, types, names, results)

    def _read_inside(self, names: List[str]) -> "Text":
        """The same with functions that read these 0-d tensors themselves: gradients are of what
        functions read, and other texts read numbers in front of the op."""
        before, moved, known = [], [], set()
        for line in self.before:
            result, _, text = line.partition(" = ")
            is_read = any(f"tensor.extract {name}[]" in text for name in names)
            if is_read or known & _words(text):
                known.add(result)
                moved.append(line)
            else:
                before.append(line)
        if not moved:
            return self
        regions: List[str] = []
        for line in self.regions:
            if line.endswith("{"):
                regions += [line, *[f"      {text}" for text in moved]]
            else:
                regions.append(line)
        return replace(self, before=tuple(before), regions=tuple(regions))

    def _function(
        self, name: str, last: List[str], operation: str, types: str, names: str, results: str
    ) -> str:
        arguments = [f"%q: {self.query}", f"%k: {self.query}", f"%v: {self.value}"]
        if self.problem.has_scale:
            arguments.append("%scale: f32")
        if self.problem.has_sink:
            arguments.append(f"%sink: {_SINK}")
        arguments += [*self.captures, *last]
        return "\n".join(
            [
                f"func.func @{name}({', '.join(arguments)}) -> ({results}) {{",
                *[f"  {line}" for line in self.before],
                f"  {operation}",
                *self.regions,
                f"    : {types}",
                f"  return {names} : {results}",
                "}",
                "",
            ]
        )

    def _variants(self) -> str:
        problem, variants, names = self.problem, [], []
        if problem.positions:
            variants.append(f"#attn.positions<{', '.join(problem.positions)}>")
            names += list_names(problem.positions)
        if problem.causal:
            variants.append(f"#attn.causal<{problem.causal}>")
        if problem.window:
            variants.append(f"#attn.window<{problem.window[0]}, {problem.window[1]}, bottom_right>")
        if problem.dropout:
            variants.append(f"#attn.dropout<{problem.dropout:.17e}>")
            names.append(_SEED)
        text = ""
        if names:
            # Those of variants come after all that functions read.
            first = len(self.captures) - len(names)
            types = [self.capture_type(first + i) for i in range(len(names))]
            text = f" captures({', '.join('%' + name for name in names)} : {', '.join(types)})"
        return f" variants [{', '.join(variants)}]{text}" if variants else ""

    def _optional(self) -> str:
        text = " scale(%scale)" if self.problem.has_scale else ""
        return text + (f" sink(%sink : {_SINK})" if self.problem.has_sink else "")


def reads(regions: Iterable[str], letter: str) -> bool:
    """Whether the functions of a Text read b, h, m or n."""
    body = [line for line in regions if not line.endswith("{")]
    return any(f"%{letter}" in _words(line) for line in body)


def _words(line: str) -> Set[str]:
    """The values that a line names."""
    return set(re.findall(r"%\w+", line))


class Source:
    """The text and the arrays that it reads. `is_volatile` when the text tells of this call only."""

    def __init__(
        self,
        spec: Spec,
        scan: Optional[Scan] = None,
        seed: Any = None,
        placed: Optional[List[Any]] = None,
    ) -> None:
        """`scan` is of the functions; `placed`, which says positions, and `seed` of dropout are arrays
        like those that functions capture, after them. Positions may be given later."""
        self.problem = problem = spec.check()
        scan = Scan.of(spec.score, spec.mask) if scan is None else scan
        query = f"tensor<?x?x?x{problem.head_dim}x{problem.type}>"
        names = list_names(problem.positions) if problem.positions else []
        trace = Trace(query, query, names)
        slots = Slots.of(scan)
        regions: List[str] = []
        try:
            for what, function, parameters in (
                ("score", spec.score, "%s, %b, %h, %m, %n"),
                ("mask", spec.mask, "%b, %h, %m, %n"),
            ):
                if function is not None:
                    lines = trace.run(function, what, slots)
                    regions.append(f"    {what}({parameters}) {{")
                    regions += [f"      {line}" for line in lines]
                    regions.append("    }")
            self.captures: List[Capture] = trace.captures
            self.arrays: List[Any] = trace.arrays
            count = len(self.arrays)
            for name, array, least in _list_last(problem, seed, placed):
                slot = None if scan.is_volatile else len(scan.arrays) + len(self.arrays) - count
                capture = Capture(name, array, slot, is_sorted=False)
                capture.least = [least]
                self.captures = [*self.captures, capture]
                self.arrays = [*self.arrays, array]
        finally:
            trace.close()
        self.is_volatile = (
            scan.is_volatile or trace.is_volatile or any(c.slot is None for c in self.captures)
        )
        arguments = [_argument(capture, spec.device) for capture in self.captures]
        self.text = Text(problem, tuple(arguments), tuple(trace.before), tuple(regions))
        if regions:
            functions = {"score": spec.score, "mask": spec.mask}
            _log.place(regions, {name: x for name, x in functions.items() if x is not None})


def _list_last(
    problem: Problem, seed: Any, placed: Optional[List[Any]]
) -> Iterator[Tuple[str, Any, int]]:
    """What variants capture: names, arrays, and how many elements they have at least."""
    kinds = problem.positions
    if kinds:
        yield from zip(list_names(kinds), placed or make_shapes(kinds), list_least(kinds))
    if problem.dropout:
        yield _SEED, seed, 1


def _argument(capture: Capture, device: str) -> str:
    # The CPU's compiler finds by itself that it is read element by element. Elsewhere a stride that
    # is known makes addresses cheaper.
    mark = " {attn.strided}" if capture.is_strided and device != "cpu" else ""
    return f"%{capture.name}: {capture.ir_type}{mark}"
