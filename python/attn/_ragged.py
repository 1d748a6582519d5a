"""Sequences of any lengths, one after the other, as kernels take them: a batch of views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Tuple

from . import _arrays, _plan
from ._given import Given
from ._source import Text
from ._tensors import Tensors


@dataclass(frozen=True)
class RaggedText(Text):
    """The text of an attention whose queries, keys and values are rows of sequences."""

    offsets_q: str = ""
    offsets_k: str = ""

    def _rows(self, columns: int) -> str:
        return f"tensor<?x?x{columns}x{self.problem.type}>"

    @property
    def forward(self) -> str:
        problem = self.problem
        of_q, of_k = f"tensor<?x{self.offsets_q}>", f"tensor<?x{self.offsets_k}>"
        rows, values = self._rows(problem.head_dim), self._rows(problem.value_dim)
        lines = super().forward.rstrip("\n").split("\n")
        head, body, results = lines[0], lines[1:-2], [values, *["tensor<?x?xf32>"] * problem.return_lse]
        whole = f"%q: {self.query}, %k: {self.query}, %v: {self.value}"
        given = [f"%rows_q: {rows}, %rows_k: {rows}, %rows_v: {values}"]
        given.append(f"%cu_seqlens_q: {of_q}, %cu_seqlens_k: {of_k}")
        given.append("%most_q: tensor<?xi8>, %most_k: tensor<?xi8>")
        arguments = head.partition(") -> (")[0].replace(whole, ", ".join(given), 1)
        views = [
            "  %zero_dim = arith.constant 0 : index",
            "  %one_dim = arith.constant 1 : index",
            "  %max_q = tensor.dim %most_q, %zero_dim : tensor<?xi8>",
            "  %max_k = tensor.dim %most_k, %zero_dim : tensor<?xi8>",
            f"  %q = attn.ragged %rows_q[%cu_seqlens_q] up_to %max_q : {rows}, {of_q} -> {self.query}",
            f"  %k = attn.ragged %rows_k[%cu_seqlens_k] up_to %max_k : {rows}, {of_k} -> {self.query}",
            f"  %v = attn.ragged %rows_v[%cu_seqlens_k] up_to %max_k : {values}, {of_k} -> {self.value}",
        ]
        places = [
            f"  %total = tensor.dim %rows_q, %zero_dim : {rows}",
            f"  %heads = tensor.dim %rows_q, %one_dim : {rows}",
        ]
        batched = [self.value, "tensor<?x?x?xf32>"]
        for i, (name, type_) in enumerate(zip(("%o", "%lse"), results)):
            places.append(f"  %empty_{i} = tensor.empty(%total, %heads) : {type_}")
            places.append(
                f"  %placed_{i} = attn.place {name}[%cu_seqlens_q] into %empty_{i} : {batched[i]}, {of_q} -> {type_}"
            )
        names = ", ".join(f"%placed_{i}" for i in range(len(results)))
        last = [f"  return {names} : {', '.join(results)}", "}", ""]
        return "\n".join([f"{arguments}) -> ({', '.join(results)}) {{", *views, *body, *places, *last])


class RaggedPlan(_plan.Plan):
    """Its calls give rows (T, H, D), offsets, and the most rows of a sequence."""

    text: RaggedText

    def run_ragged(self, given: Given, offsets: Tuple[Any, Any], most: Tuple[int, int], out: Any) -> Any:
        tensors = Tensors(self.kernel)
        type_, dv = self.problem.type, self.problem.value_dim
        q, k, v, scale, sink, _, captured = given
        total, heads, _ = tensors.add_array(q, "q", 3, type_)
        for name, x in (("k", k), ("v", v)):
            tensors.add_array(x, name, 3, type_)
        of_q, of_k = self.text.offsets_q, self.text.offsets_k
        for name, x, element in (("cu_seqlens_q", offsets[0], of_q), ("cu_seqlens_k", offsets[1], of_k)):
            tensors.add_array(x, name, 1, element)
        # Sizes alone, which nothing reads.
        address = _arrays.view(q, "q", self.device)[0]
        for count in most:
            tensors.add(address, (count,), (0,), "i8", self.device)
        if self.problem.has_scale:
            tensors.add_scale(scale)
        if self.problem.has_sink:
            tensors.add_sink(sink)
        tensors.add_captures(self.given, captured)
        output = _arrays.empty_like(q, None, (total, heads, dv)) if out is None else out
        tensors.add_array(output, "out", 3, type_)
        lse = _arrays.empty_like(q, "f32", (total, heads)) if self.problem.return_lse else None
        if lse is not None:
            tensors.add_array(lse, "lse", 2, "f32")
        tensors.run()
        return output if lse is None else (output, lse)
