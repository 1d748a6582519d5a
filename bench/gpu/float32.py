#!/usr/bin/env python3
"""Attention to f32, forward and backward: attn's six products of bf16 beside PyTorch's kernels for f32.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/float32.py --out float32.json

Candidates take turns in one process (measure.py). Errors are those of one head, compared with f64: of the output, and the largest
of the three gradients, each by its norm. Exits with 1 where attn's is more than twice the least of PyTorch's. Without a GPU it
measures the CPU's kernels.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch
from torch.nn.attention import SDPBackend

import attn
import measure
from peers import list_sdpa

Call = Callable[[], Any]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BACKENDS = {"efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}
LONGEST_MATH = 4096
# Tokens of all sequences together.
TOKENS = 16384


def list_calls(causal: bool, *tensors: torch.Tensor) -> Dict[str, Call]:
    # All scores of all heads, a few times over, are more than a GPU has.
    backends = {name: backend for name, backend in BACKENDS.items() if name != "math" or tensors[0].shape[2] <= LONGEST_MATH}
    return {"attn": lambda: attn.attention(*tensors, causal=causal), **list_sdpa(backends, causal, *tensors)}


def differentiate(call: Call, tensors: Sequence[torch.Tensor], d_output: torch.Tensor) -> Call:
    output = call()
    return lambda: torch.autograd.grad(output, tensors, d_output, retain_graph=True)


def compute_exactly(causal: bool, tensors: Sequence[torch.Tensor], d_output: torch.Tensor) -> List[torch.Tensor]:
    """The output and the gradients of one head, in f64."""
    q, k, v = wide = [x[0, 0].detach().double().requires_grad_() for x in tensors]
    scores = q @ k.T / math.sqrt(q.shape[1])
    if causal:
        scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), -torch.inf)
    output = scores.softmax(1) @ v
    return [output, *torch.autograd.grad(output, wide, d_output[0, 0].double())]


def find_error(got: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]) -> float:
    return max(((x[0, 0].double() - y).norm() / y.norm()).item() for x, y in zip(got, exact))


def measure_problem(o: argparse.Namespace, d: int, length: int, causal: bool) -> Dict[str, Any]:
    torch.manual_seed(length + d)
    shape = max(o.tokens // length, 1), max(o.hidden // d, 1), length, d
    tensors = [torch.randn(shape, device=DEVICE, requires_grad=True) for _ in range(3)]
    d_output = torch.randn(shape, device=DEVICE)
    forwards = list_calls(causal, *tensors)
    backwards = {name: differentiate(call, tensors, d_output) for name, call in forwards.items()}
    exact = compute_exactly(causal, tensors, d_output)
    flops = 4 * shape[0] * shape[1] * length * length * d / (2 if causal else 1)
    row: Dict[str, Any] = {"D": d, "S": length, "B": shape[0], "H": shape[1], "causal": causal, "right": True}
    for kind, calls, share in (("forward", forwards, 1.0), ("backward", backwards, 2.5)):
        errors = {name: find_error([call()] if kind == "forward" else call(), exact[:1] if kind == "forward" else exact[1:])
                  for name, call in calls.items()}
        times = measure.interleave(calls, o.rounds, o.seconds)
        peers = [name for name in calls if name != "attn"]
        row[kind] = {"errors": errors, "tflops": {name: measure.tflops(share * flops, times[name]) for name in times},
                     "of": {name: measure.ratio(times["attn"], times[name]) for name in peers}}
        row["right"] &= errors["attn"] <= 2 * min(errors[name] for name in peers)
        rates = "  ".join(f"{name} {rate:6.1f} ({errors[name]:.1e})" for name, rate in row[kind]["tflops"].items())
        print(f"D={d:3} S={length:5} {'causal' if causal else 'full':6} {kind:8} {rates} TFLOP/s", flush=True)
    return row


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_problem_options(parser, [64, 128], TOKENS)
    o = parser.parse_args(arguments)
    torch.backends.cuda.matmul.allow_tf32 = False
    return measure.measure_problems(o, measure_problem)


if __name__ == "__main__":
    sys.exit(main())
