"""The IR text of one attention."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, replace
from typing import Any, Iterable, List, Optional, Set, Tuple, Union

from . import _arrays, _log
from ._library import Error
from ._scan import Scan
from ._trace import Capture, Slots, Trace


@dataclass(frozen=True)
class Problem:
    """What is compiled for; every length is a value of the call."""

    type: str
    head_dim: int
    value_dim: int
    causal: Optional[str]
    window: Optional[Tuple[int, int]]
    has_scale: bool
    has_sink: bool
    return_lse: bool
    # The probability that a weight is dropped.
    dropout: float = 0.0
    # Whether what f32 has no digits for in lse is returned too, as gradients ask for it.
    return_low: bool = False


def make_problem(
    dtype: Any,
    head_dim: Any,
    value_dim: Any,
    causal: Any,
    window: Any,
    has_scale: Any,
    has_sink: Any,
    return_lse: Any,
    device: str,
    dropout: float = 0.0,
) -> Problem:
    """The problem that a user asks for, checked for the device."""
    if value_dim is None:
        value_dim = head_dim
    type_ = _arrays.type_name(dtype)
    if type_ not in ("f16", "bf16", "f32"):
        raise Error(
            "invalid argument",
            f"q: expected float16, bfloat16 or float32, got {dtype}",
            "convert q, k and v",
        )
    if type_ == "f32" and device != "cpu":
        raise Error(
            "invalid argument",
            f"q: expected float16 or bfloat16 on {device.partition(':')[0]}, got {dtype}",
            "convert q, k and v, or move them to the CPU",
        )
    return Problem(
        type_,
        _check_columns("head_dim", head_dim),
        _check_columns("value_dim", value_dim),
        check_causal(causal),
        check_window(window),
        bool(has_scale),
        bool(has_sink),
        bool(return_lse),
        check_dropout(dropout),
    )


def _to_index(x: Any) -> Optional[int]:
    """An integer of any library, as Python's; a bool is none."""
    if isinstance(x, bool) or not hasattr(x, "__index__"):
        return None
    try:
        return operator.index(x)
    except TypeError:
        return None


def _check_columns(name: str, extent: Any) -> int:
    columns = _to_index(extent)
    if columns is None or not 1 <= columns <= 1 << 20:
        raise Error(
            "invalid argument", f"{name}: expected a number of columns from 1 on, got {extent!r}"
        )
    return columns


_SEED = "dropout_seed"
_LSE, _SINK = "tensor<?x?x?xf32>", "tensor<?xf32>"


# What gradients are wanted of: names of tensors, and numbers of captured ones.
Wanted = Tuple[Union[str, int], ...]


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
    def has_score(self) -> bool:
        return any(line.lstrip().startswith("score(") for line in self.regions)

    def reads_low(self, on_cpu: bool) -> bool:
        """Whether gradients read lse_low. GPUs read it only where there is a score function: for plain
        products of 16 bits, an addition for each weight would cost too much."""
        return on_cpu or self.has_score

    @property
    def forward(self) -> str:
        rows = ["%lse"] * self.problem.return_lse + ["%lse_low"] * self.problem.return_low
        results = ", ".join([self.value, *[_LSE] * len(rows)])
        names = ", ".join(["%o", *rows])
        operation = f"{names} = attn.attention %q, %k, %v{self._variants()}{self._optional()}"
        types = f"{self.query}, {self.query}, {self.value} -> {results}"
        return self._function("attention", [], operation, types, names, results)

    def capture_type(self, index: int) -> str:
        """Of the captured tensor with this number."""
        return self.captures[index].partition(": ")[2].partition(" {")[0]

    def gradient(self, wanted: Wanted, has_lse_gradient: bool, has_low: bool) -> str:
        """Of the function of the arguments, output, lse, lse_low or not, d_output and d_lse or not;
        `wanted` of "query", "key", "value" and "sink", in this order, then numbers of captured
        tensors."""
        last = [f"%output: {self.value}", f"%lse: {_LSE}"]
        operation = "attn.attention_grad %q, %k, %v, %output, %lse, %d_output" + self._variants()
        if has_low:
            last.append(f"%lse_low: {_LSE}")
            operation += f" lse_low(%lse_low : {_LSE})"
        last.append(f"%d_output: {self.value}")
        if has_lse_gradient:
            last.append(f"%d_lse: {_LSE}")
            operation += f" d_lse(%d_lse : {_LSE})"
        of = {"query": self.query, "key": self.query, "value": self.value, "sink": _SINK}
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
        types = ", ".join([self.query, self.query, self.value, self.value, _LSE, self.value])
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
        problem, variants = self.problem, []
        if problem.causal:
            variants.append(f"#attn.causal<{problem.causal}>")
        if problem.window:
            variants.append(f"#attn.window<{problem.window[0]}, {problem.window[1]}, bottom_right>")
        text = ""
        if problem.dropout:
            variants.append(f"#attn.dropout<{problem.dropout:.17e}>")
            # Only dropout has captures among these, and its seed is the last of all.
            text = f" captures(%{_SEED} : {self.capture_type(len(self.captures) - 1)})"
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
        self, problem: Problem, score: Any, mask: Any, scan: Scan, device: str, seed: Any = None
    ) -> None:
        """`seed` of dropout is an array like those that functions capture, behind them."""
        self.problem = problem
        query = f"tensor<?x?x?x{problem.head_dim}x{problem.type}>"
        trace = Trace(query, query)
        slots = Slots.of(scan)
        regions: List[str] = []
        try:
            for what, function, parameters in (
                ("score", score, "%s, %b, %h, %m, %n"),
                ("mask", mask, "%b, %h, %m, %n"),
            ):
                if function is not None:
                    lines = trace.run(function, what, slots)
                    regions.append(f"    {what}({parameters}) {{")
                    regions += [f"      {line}" for line in lines]
                    regions.append("    }")
            self.captures: List[Capture] = trace.captures
            self.arrays: List[Any] = trace.arrays
            if problem.dropout:
                slot = None if scan.is_volatile else len(scan.arrays)
                capture = Capture(_SEED, seed, slot, is_sorted=False)
                capture.least = [1]
                self.captures = [*self.captures, capture]
                self.arrays = [*self.arrays, seed]
        finally:
            trace.close()
        self.is_volatile = (
            scan.is_volatile or trace.is_volatile or any(c.slot is None for c in self.captures)
        )
        arguments = [_argument(capture, device) for capture in self.captures]
        self.text = Text(problem, tuple(arguments), tuple(trace.before), tuple(regions))
        if regions:
            functions = {"score": score, "mask": mask}
            _log.place(regions, {name: x for name, x in functions.items() if x is not None})


def _argument(capture: Capture, device: str) -> str:
    # The CPU's compiler finds by itself that it is read element by element. Elsewhere a stride that
    # is known makes addresses cheaper.
    mark = " {attn.strided}" if capture.is_strided and device != "cpu" else ""
    return f"%{capture.name}: {capture.ir_type}{mark}"


def check_causal(causal: Any) -> Optional[str]:
    """None, "top_left" or "bottom_right"."""
    if causal is False or causal is None:
        return None
    if causal is True:
        return "bottom_right"
    if type(causal).__name__ in ("bool_", "bool") and hasattr(causal, "item"):
        return check_causal(causal.item())
    if isinstance(causal, str) and causal in ("top_left", "bottom_right"):
        return causal
    raise Error(
        "invalid argument",
        'causal: expected False, True, "top_left" or "bottom_right", got ' + repr(causal),
    )


def check_dropout(p: Any) -> float:
    """A probability."""
    try:
        value = -1.0 if isinstance(p, (str, bytes)) else float(p)
    except (TypeError, ValueError):
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise Error("invalid argument", f"dropout_p: expected a probability from 0 to 1, got {p!r}")
    return value


def check_window(window: Any) -> Optional[Tuple[int, int]]:
    """(left, right) with -1 for no bound, or None."""
    if window is None:
        return None
    try:
        left, right = (-1 if side is None else _to_index(side) for side in window)
    except (TypeError, ValueError):
        left = right = None
    for side in (left, right):
        if side is None or not -1 <= side <= 1 << 30:
            raise Error(
                "invalid argument",
                f"window: expected None or (left, right) of distances, got {window!r}",
                "None or -1 is no bound",
            )
    return None if (left, right) == (-1, -1) else (left, right)
