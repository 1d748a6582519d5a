#!/usr/bin/env python3
"""Sequences of any lengths, one after the other: attn's flash_attn_varlen_func compared with FlashAttention-3's (where
flash_attn_interface is installed) and PyTorch's varlen_attn, forward and backward, alternating in one process.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/varlen.py --out varlen.json
    bench/gpu/varlen.py --check --tokens 300            # errors alone, on a CPU too

A row is one distribution of lengths. `attn sequences` is attn.serving.varlen_attention, whose sequences are views.
`attn documents` is attn.attention with sorted ids of documents in place of lengths, and `attn dense` the same work in a
batch, where all lengths are equal. TFLOP/s of the pairs that are kept: the backward
pass counts 2.5 times the forward's. Errors are those of some sequences against f64.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

import attn
import measure
from attn import serving
from attn.integrations.flash_attn import flash_attn_varlen_func

Call = Callable[[], Any]
Tensor = torch.Tensor
TOKENS = 16384
# Heads, key heads and columns of each.
HEADS = {"d64": (32, 32, 64), "d128": (16, 16, 128), "gqa128": (32, 8, 128), "d256": (8, 8, 256)}
LENGTHS = ("uniform512", "uniform4096", "documents", "skewed", "short")


def make_lengths(name: str, tokens: int) -> List[int]:
    """Lengths whose sum is `tokens`."""
    if name.startswith("uniform"):
        length = min(int(name.removeprefix("uniform")), tokens)
        return [length] * (tokens // length) + ([tokens % length] if tokens % length else [])
    generator = torch.Generator().manual_seed(0)
    # One long sequence and many short ones, or lengths from a range.
    lengths = [tokens // 2] if name == "skewed" else []
    low, high = {"documents": (256, 2048), "skewed": (16, 256), "short": (1, 128)}[name]
    while sum(lengths) < tokens:
        length = int(torch.randint(low, high + 1, (1,), generator=generator))
        lengths.append(min(length, tokens - sum(lengths)))
    return lengths


def count_flops(lengths: List[int], heads: int, d: int, causal: bool) -> float:
    """Of the forward pass; half of the pairs where they are causal, as the papers count."""
    pairs = sum(float(x) * x for x in lengths)
    return 4.0 * d * heads * pairs / (2 if causal else 1)


class Problem:
    """The tensors of one row, and who computes it."""

    def __init__(self, heads: str, lengths: str, causal: bool, tail: int, o: argparse.Namespace) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.h, self.hkv, self.d = HEADS[heads]
        self.lengths, self.causal, self.tail = make_lengths(lengths, o.tokens - tail), causal, tail
        self.name = f"{heads}-{lengths}-{'causal' if causal else 'full'}" + (f"-tail{tail}" if tail else "")
        torch.manual_seed(0)
        shapes = [(o.tokens, h, self.d) for h in (self.h, self.hkv, self.hkv)]
        self.tensors = [torch.randn(x, device=self.device, dtype=torch.bfloat16).requires_grad_() for x in shapes]
        self.d_output = torch.randn(shapes[0], device=self.device, dtype=torch.bfloat16)
        offsets = [0, *torch.tensor(self.lengths).cumsum(0).tolist()]
        self.offsets = offsets
        self.cu = torch.tensor(offsets, dtype=torch.int32, device=self.device)
        self.most = max(self.lengths)
        self.flops = count_flops(self.lengths, self.h, self.d, causal)

    def attn(self) -> Any:
        return flash_attn_varlen_func(*self.tensors, self.cu, self.cu, self.most, self.most, causal=self.causal)

    def make_sequences(self) -> Call:
        how: Dict[str, Any] = {"max_seqlen_q": self.most, "max_seqlen_k": self.most, "causal": self.causal}
        return lambda: serving.varlen_attention(*self.tensors, self.cu, self.cu, **how)

    def make_documents(self) -> Call:
        counts = [*self.lengths, self.tail] if self.tail else self.lengths
        numbers = torch.arange(len(counts), dtype=torch.int32, device=self.device)
        ids = attn.assume_sorted(numbers.repeat_interleave(torch.tensor(counts, device=self.device)))
        mask = lambda b, h, q, kv: ids[q] == ids[kv]
        return lambda: attn.attention(*[x[None] for x in self.tensors], causal=self.causal, mask=mask, layout="bshd")[0]

    def make_dense(self) -> Call:
        batch = len(self.lengths)
        return lambda: attn.attention(
            *[x.unflatten(0, (batch, -1)) for x in self.tensors], causal=self.causal, layout="bshd"
        ).flatten(0, 1)

    def make_fa3(self) -> Call:
        from flash_attn_interface import flash_attn_varlen_func as varlen

        def call() -> Any:
            output = varlen(*self.tensors, self.cu, self.cu, self.most, self.most, causal=self.causal)
            return output[0] if isinstance(output, tuple) else output

        return call

    def make_pytorch(self) -> Call:
        from torch.nn.attention.varlen import varlen_attn

        how: Dict[str, Any] = {"enable_gqa": True} if self.h != self.hkv else {}
        window = (-1, 0) if self.causal else (-1, -1)
        return lambda: varlen_attn(
            *self.tensors, self.cu, self.cu, self.most, self.most, window_size=window, **how
        )

    def make_calls(self, names: List[str]) -> Dict[str, Call]:
        """Those of `names` that can do this. What fails at its first call is told and left out."""
        makers = {
            "fa3": self.make_fa3,
            "pytorch": self.make_pytorch,
            "attn sequences": self.make_sequences,
            "attn documents": self.make_documents,
        }
        if len(set(self.lengths)) == 1 and not self.tail:
            makers["attn dense"] = self.make_dense
        calls: Dict[str, Call] = {"attn": self.attn}
        for name in names:
            if name not in makers:
                continue
            try:
                call = makers[name]()
                call()
                calls[name] = call
            except Exception as error:  # Peers raise what they raise.
                print(f"  {name} left out: {str(error).splitlines()[0][:100]}")
        return calls

    def find_reference(self, s: int) -> Tuple[Tensor, List[Tensor]]:
        """Output and gradients of one sequence, in f64."""
        rows = slice(self.offsets[s], self.offsets[s + 1])
        leaves = [x[rows].detach().double().transpose(0, 1).requires_grad_() for x in self.tensors]
        q, k, v = leaves[0], *(x.repeat_interleave(self.h // self.hkv, 0) for x in leaves[1:])
        score = q @ k.mT / math.sqrt(self.d)
        if self.causal:
            drop = torch.ones(score.shape[1:], dtype=torch.bool, device=self.device).triu(1)
            score = score.masked_fill(drop, -math.inf)
        output = (torch.softmax(score, -1) @ v).transpose(0, 1)
        gradients = torch.autograd.grad(output, leaves, self.d_output[rows].double())
        return output.detach(), [x.transpose(0, 1) for x in gradients]

    def measure_errors(self, calls: Dict[str, Call]) -> Dict[str, List[float]]:
        """Of the output and the gradients: the largest of a few sequences that are not too long for f64."""
        fitting = [s for s, length in enumerate(self.lengths) if length <= 4096]
        chosen = sorted({fitting[0], fitting[len(fitting) // 2], fitting[-1]})
        references = [self.find_reference(s) for s in chosen]
        errors = {}
        for name, call in calls.items():
            output = call()
            found = [output.detach(), *torch.autograd.grad(output, self.tensors, self.d_output)]
            worst = [0.0] * 4
            for s, (wanted, gradients) in zip(chosen, references):
                rows = slice(self.offsets[s], self.offsets[s + 1])
                for i, (x, r) in enumerate(zip(found, [wanted, *gradients])):
                    worst[i] = max(worst[i], ((x[rows].double() - r).norm() / r.norm()).item())
            if name == "attn" and self.tail:
                worst = [math.inf] * 4 if any((x[self.offsets[-1] :] != 0).any() for x in found) else worst
            errors[name] = worst
        return errors


def make_backward(call: Call, problem: Problem) -> Call:
    """The gradients of what `call` gives, recorded once."""
    output = call()
    return lambda: torch.autograd.grad(output, problem.tensors, problem.d_output, retain_graph=True)


def time_calls(calls: Dict[str, Call], flops: float, o: argparse.Namespace, is_graph: bool = False) -> Dict[str, Any]:
    if is_graph:
        # A capture compiles nothing.
        for call in calls.values():
            call()
        graphs = {name: measure.capture(call) for name, call in calls.items()}
        times = measure.interleave(graphs, o.rounds, o.seconds)
        times = {name: [t / measure.GRAPH_CALLS for t in rounds] for name, rounds in times.items()}
    else:
        times = measure.interleave(calls, o.rounds, o.seconds)
    return {
        "ms": times,
        "tflops": {name: measure.tflops(flops, t) for name, t in times.items()},
        "spread": {name: measure.spread(t) for name, t in times.items()},
        "ratio": {name: measure.ratio(times["attn"], t) for name, t in times.items() if name != "attn"},
    }


def measure_problem(problem: Problem, o: argparse.Namespace) -> Dict[str, Any]:
    calls = problem.make_calls([name for name in o.peers.split(",") if name])
    row: Dict[str, Any] = {
        "config": problem.name, "H": problem.h, "Hkv": problem.hkv, "D": problem.d, "causal": problem.causal,
        "tokens": o.tokens, "sequences": len(problem.lengths), "longest": problem.most, "tail": problem.tail,
        "errors": problem.measure_errors(calls),
    }
    if not o.check:
        with torch.no_grad():
            row["forward"] = time_calls(calls, problem.flops, o, o.graphs)
        backward = {name: make_backward(call, problem) for name, call in calls.items()}
        row["backward"] = time_calls(backward, 2.5 * problem.flops, o)
    return row


def describe(row: Dict[str, Any]) -> str:
    columns = [f"{row['config']:32}"]
    for part in ("forward", "backward"):
        if part in row:
            columns += [part, *[f"{name} {rate:.1f}" for name, rate in row[part]["tflops"].items()]]
            columns += [f"/{name} {ratio:.3f}" for name, ratio in row[part]["ratio"].items()]
    return " ".join([*columns, "errors", *[f"{x:.1e}" for x in row["errors"]["attn"]]])


def list_problems(o: argparse.Namespace) -> List[Tuple[str, str, bool, int]]:
    tails = (0, o.tokens // 16)
    found = [(h, x, c, tail) for h in HEADS for x in LENGTHS for c in (True, False) for tail in tails]
    # A tail is measured in one place.
    found = [x for x in found if not x[3] or (x[0], x[1], x[2]) == ("d128", "documents", True)]
    name = lambda x: f"{x[0]}-{x[1]}-{'causal' if x[2] else 'full'}"
    return [x for x in found if any(fnmatch.fnmatch(name(x), p) for p in o.configs.split(","))]


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configs", default="*", help="patterns such as d128-documents-causal, with commas between")
    parser.add_argument("--peers", default="fa3,pytorch,attn sequences,attn documents,attn dense", help="(default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--check", action="store_true", help="errors alone")
    parser.add_argument("--graphs", action="store_true", help="replay everybody's forward calls as CUDA graphs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.4, help="per candidate and round (default: %(default)s)")
    parser.add_argument("--out", help="write the result here, as JSON")
    o = parser.parse_args(arguments)
    result: Dict[str, Any] = {**measure.describe_machine(), "rounds": o.rounds, "seconds": o.seconds, "rows": []}
    wrong = []
    for chosen in list_problems(o):
        row = measure_problem(Problem(*chosen, o), o)
        result["rows"].append(row)
        print(describe(row), flush=True)
        if not max(row["errors"]["attn"]) < 1e-2:
            wrong.append(row["config"])
        if o.out:
            Path(o.out).write_text(json.dumps(result, indent=1) + "\n")
    if wrong:
        print("wrong: " + ", ".join(wrong))
    return int(bool(wrong) or not result["rows"])


if __name__ == "__main__":
    sys.exit(main())
