"""Sequences of any lengths, one after the other, as kernels take them: a batch of views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import _arrays, _plan
from ._given import Given
from ._source import Gradients, Text
from ._tensors import Tensors

_ROW, _ROWS_OF_NUMBERS = "tensor<?x?x?xf32>", "tensor<?x?xf32>"


class _Part(NamedTuple):
    """A tensor of the batch, which is rows of sequences to the caller: "q" or "k" says of which."""

    name: str
    type: str
    rows: str
    of: str


@dataclass(frozen=True)
class RaggedText(Text):
    """The text of an attention whose queries, keys and values are rows of sequences."""

    offsets_q: str = ""
    offsets_k: str = ""
    # Whether the output has zeros in rows of no sequence; gradients always have.
    clears: bool = False

    def _matrix(self, name: str, of: str, is_value: bool) -> _Part:
        columns = self.problem.value_dim if is_value else self.problem.head_dim
        rows = f"tensor<?x?x{columns}x{self.problem.type}>"
        return _Part(name, self.value if is_value else self.query, rows, of)

    @staticmethod
    def _numbers(name: str) -> _Part:
        return _Part(name, _ROW, _ROWS_OF_NUMBERS, "q")

    def _offsets(self, of: str) -> str:
        return f"tensor<?x{self.offsets_q if of == 'q' else self.offsets_k}>"

    @property
    def _operands(self) -> List[_Part]:
        return [
            self._matrix("q", "q", False),
            self._matrix("k", "k", False),
            self._matrix("v", "k", True),
        ]

    @property
    def forward(self) -> str:
        results = [self._matrix("o", "q", True)]
        results += [self._numbers("lse")] * self.problem.return_lse
        results += [self._numbers("lse_low")] * self.problem.return_low
        return self._show(super().forward, self._operands, results, self.clears)

    def gradient(self, gradients: Gradients) -> str:
        """Of sinks and captured tensors there are none."""
        operands = [*self._operands, self._matrix("output", "q", True), self._numbers("lse")]
        if gradients.has_low:
            operands.append(self._numbers("lse_low"))
        operands.append(self._matrix("d_output", "q", True))
        if gradients.has_lse_gradient:
            operands.append(self._numbers("d_lse"))
        of = {
            "query": self._matrix("d_query", "q", False),
            "key": self._matrix("d_key", "k", False),
            "value": self._matrix("d_value", "k", True),
        }
        results = [of[str(name)] for name in gradients.wanted]
        return self._show(super().gradient(gradients), operands, results, clears=True)

    def _place(self, part: _Part, clears: bool) -> List[str]:
        """Where a result goes: rows of sequences, of matrices perhaps with zeros between them."""
        name, of, type_ = part.name, part.of, self.problem.type
        into = f"%empty_{name}"
        lines = [f"  {into} = tensor.empty(%total_{of}, %heads_{of}) : {part.rows}"]
        if clears and part.rows != _ROWS_OF_NUMBERS:
            lines += [
                f"  %none_{name} = arith.constant 0.0 : {type_}",
                f"  %zeros_{name} = linalg.fill ins(%none_{name} : {type_}) outs({into} : {part.rows}) -> {part.rows}",
            ]
            into = f"%zeros_{name}"
        lines.append(
            f"  %placed_{name} = attn.place %{name}[%cu_seqlens_{of}] into {into} : "
            f"{part.type}, {self._offsets(of)} -> {part.rows}"
        )
        return lines

    def _show(
        self, text: str, operands: List[_Part], results: List[_Part], clears: bool
    ) -> str:
        """The same function of rows of sequences: views in front of its body, places after it."""
        lines = text.rstrip("\n").split("\n")
        head, body = lines[0].partition(") -> (")[0], lines[1:-2]
        views = [
            "  %zero_dim = arith.constant 0 : index",
            "  %one_dim = arith.constant 1 : index",
            "  %max_q = tensor.dim %most_q, %zero_dim : tensor<?xi8>",
            "  %max_k = tensor.dim %most_k, %zero_dim : tensor<?xi8>",
        ]
        for part in operands:
            name, offsets = part.name, self._offsets(part.of)
            given = f"%rows_{name}: {part.rows}"
            if name == "v":
                given += f", %cu_seqlens_q: {self._offsets('q')}, %cu_seqlens_k: {self._offsets('k')}"
                given += ", %most_q: tensor<?xi8>, %most_k: tensor<?xi8>"
            head = head.replace(f"%{name}: {part.type}", given, 1)
            views.append(
                f"  %{name} = attn.ragged %rows_{name}[%cu_seqlens_{part.of}] up_to %max_{part.of} : "
                f"{part.rows}, {offsets} -> {part.type}"
            )
        places = []
        matrices = {part.name: part.rows for part in operands}
        for of in ("q", "k"):
            for what, dim in (("total", "zero"), ("heads", "one")):
                places.append(
                    f"  %{what}_{of} = tensor.dim %rows_{of}, %{dim}_dim : {matrices[of]}"
                )
        for part in results:
            places += self._place(part, clears)
        types = ", ".join(part.rows for part in results)
        names = ", ".join(f"%placed_{part.name}" for part in results)
        last = [f"  return {names} : {types}", "}", ""]
        return "\n".join([f"{head}) -> ({types}) {{", *views, *body, *places, *last])


class Rows(NamedTuple):
    """Which rows of a call are those of which sequence."""

    offsets_q: Any
    offsets_k: Any
    # The most rows of a sequence, of queries and of keys.
    most: Tuple[int, int]


class RaggedPlan(_plan.Plan):
    """Its calls give rows (T, H, D), offsets, and the most rows of a sequence."""

    text: RaggedText

    def run_ragged(
        self, given: Given, rows: Rows, out: Any = None, lse: Any = None
    ) -> Tuple[Any, ...]:
        """The output, then lse and lse_low where the problem has them. `out` and `lse` are memory for
        the first two."""
        tensors = Tensors(self.kernel)
        total, heads, _ = self._add_rows(tensors, given, rows)
        shape, type_ = (total, heads, self.problem.value_dim), self.problem.type
        output = _arrays.empty_like(given.q, None, shape) if out is None else out
        tensors.add_array(output, "out", 3, type_)
        results = [output]
        for i in range(self.problem.return_lse + self.problem.return_low):
            is_made = lse is None or i > 0
            results.append(
                _arrays.empty_like(given.q, "f32", (total, heads)) if is_made else lse
            )
            tensors.add_array(results[-1], "lse", 2, "f32")
        tensors.run()
        return tuple(results)

    def run_ragged_gradient(
        self,
        given: Given,
        rows: Rows,
        record: Tuple[Any, ...],
        d_output: Any,
        d_lse: Optional[Any],
        results: Dict[str, Any],
    ) -> None:
        """`record` is what `run_ragged` of the recorded plan returned. Writes the gradients of "query",
        "key" and "value" in `results`, with zeros in rows of no sequence."""
        output, lse, *low = record
        tensors = Tensors(self.gradient(tuple(results), d_lse is not None, bool(low)).kernel)
        self._add_rows(tensors, given, rows)
        type_ = self.problem.type
        tensors.add_array(output, "output", 3, type_)
        for x in (lse, *low):
            tensors.add_array(x, "lse", 2, "f32")
        tensors.add_array(d_output, "d_output", 3, type_)
        if d_lse is not None:
            tensors.add_array(d_lse, "d_lse", 2, "f32")
        for name, x in results.items():
            tensors.add_array(x, f"d_{name}", 3, type_)
        tensors.run()

    def _add_rows(self, tensors: Tensors, given: Given, rows: Rows) -> Sequence[int]:
        """The arguments of both kernels. Returns (T, H, D) of the queries."""
        type_, device = self.problem.type, tensors.kernel.device
        shape = tensors.add_array(given.q, "q", 3, type_)
        for name, x in (("k", given.k), ("v", given.v)):
            tensors.add_array(x, name, 3, type_)
        of_q, of_k = self.text.offsets_q, self.text.offsets_k
        tensors.add_array(rows.offsets_q, "cu_seqlens_q", 1, of_q)
        tensors.add_array(rows.offsets_k, "cu_seqlens_k", 1, of_k)
        # Sizes alone, which nothing reads.
        address = _arrays.view(given.q, "q", device)[0]
        for count in rows.most:
            tensors.add(address, (count,), (0,), "i8", device)
        if self.problem.has_scale:
            tensors.add_scale(given.scale)
        if self.problem.has_sink:
            tensors.add_sink(given.sink)
        tensors.add_captures(self.given, given.captured)
        return shape
