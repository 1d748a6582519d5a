"""The gradients of one attention."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple

from . import _arrays, _direct
from ._given import Given
from ._library import Kernel
from ._problem import Problem
from ._source import Gradients
from ._tensors import Tensors


class GradientPlan:
    """A kernel of the gradients that are wanted, and how its calls are laid out."""

    def __init__(
        self, problem: Problem, captures: List[Tuple], kernel: Kernel, gradients: Gradients
    ) -> None:
        """Captures are (name, type, type of the elements, rank, position in what a call gives, least
        extents)."""
        self.problem, self.captures = problem, captures
        self.kernel, self.gradients = kernel, gradients
        self._direct: Optional[Callable[..., Any]] = None

    def direct(self, *call: Any) -> Any:
        """What `run` returns, for calls of plain tensors that nobody watches; None for others."""
        direct = self._direct
        if direct is None:
            # What is made before PyTorch is there serves none of its tensors.
            if _arrays.find_torch() is None:
                return None
            _direct.users.add(self)
            how = self.kernel, self.problem, self.captures, self.gradients
            direct = self._direct = _direct.make(*how)
        return direct(*call)

    def forget_direct(self) -> None:
        self._direct = None

    def run(
        self, given: Given, output: Any, lse: Any, lse_low: Any, d_output: Any, d_lse: Any = None
    ) -> Sequence[Any]:
        """Those that are wanted, in the layout of what they are of."""
        q, k, v, scale, sink, rows_first, captured = given
        of = output, lse, lse_low, d_output, d_lse
        found = self.direct(q, k, v, scale, sink, captured, rows_first, *of)
        return self.run_into(given, of, self.make_results(given)) if found is None else found

    def run_into(self, given: Given, of: Tuple, results: Sequence[Any]) -> Sequence[Any]:
        """The same with memory for results. `of` is output, lse, lse_low, d_output and d_lse."""
        output, lse, lse_low, d_output, d_lse = of
        problem, tensors = self.problem, Tensors(self.kernel)

        def add_matrix(x: Any, name: str, type_: str = problem.type) -> None:
            tensors.add_array(x, name, 4, type_, given.rows_first)

        for name, x in (("q", given.q), ("k", given.k), ("v", given.v)):
            add_matrix(x, name)
        if problem.has_scale:
            tensors.add_scale(given.scale)
        if problem.has_sink:
            tensors.add_sink(given.sink)
        tensors.add_captures(self.captures, given.captured)
        add_matrix(output, "output", problem.output_type)
        tensors.add_array(lse, "lse", 3, "f32")
        if self.gradients.has_low:
            tensors.add_array(lse_low, "lse_low", 3, "f32")
        add_matrix(d_output, "d_output")
        if self.gradients.has_lse_gradient:
            tensors.add_array(d_lse, "d_lse", 3, "f32")
        for name, x in zip(self.gradients.wanted, results):
            if name in ("query", "key", "value"):
                add_matrix(x, f"d_{name}", "f32" if self.gradients.is_wide else problem.type)
            elif name == "sink":
                tensors.add_array(x, "d_sink", 1, "f32")
            else:
                capture = self.captures[name]
                tensors.add_array(x, f"d_{capture[0]}", capture[3], "f32")
        tensors.run()
        return results

    def make_results(self, given: Given) -> List[Any]:
        of = {"query": given.q, "key": given.k, "value": given.v}
        heads = given.q.shape[2 if given.rows_first else 1]

        def make(name: Any) -> Any:
            if name in of:
                type_ = "f32" if self.gradients.is_wide else None
                return _arrays.empty_like(of[name], type_, tuple(of[name].shape))
            shape = (heads,)
            if name != "sink":
                shape = tuple(given.captured[self.captures[name][4]].shape)
            return _arrays.empty_like(given.q, "f32", shape)

        return [make(name) for name in self.gradients.wanted]
