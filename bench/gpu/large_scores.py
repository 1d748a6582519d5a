#!/usr/bin/env python3
"""What two parts of the log-sum-exp cost gradients, and what they give where scores are large.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/large_scores.py --out large.json

Gradients of q, k and v with score functions, bf16, by kernels that are given lse_low and by kernels that are not,
alternating in one process: `ratio` is how many times as fast the first are. Errors are of both, with -1e9 added to all
scores of every second row, against f64 of the scores that f32 computed: the norm of the difference relative to that of
the gradient of v.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

import torch

import attn
import measure
from attn._given import Given

Tensor = torch.Tensor
HEADS, NAMES = 16, ("query", "key", "value")


def make_score(name: str, length: int) -> Callable[..., Any]:
    if name == "softcap":
        return lambda s, b, h, m, n: 30.0 * attn.tanh(s / 30.0)
    if name == "alibi":
        slopes = torch.linspace(0.01, 0.5, HEADS, device="cuda")
        return lambda s, b, h, m, n: s - slopes[h] * abs(m - n)
    bias = torch.randn(HEADS, 2 * length - 1, device="cuda")
    return lambda s, b, h, m, n: s + bias[h, n - m + length - 1]


def make_inputs(batch: int, length: int, d: int) -> Tuple[Tensor, ...]:
    return tuple(torch.randn(batch, HEADS, length, d, device="cuda", dtype=torch.bfloat16) for _ in range(4))


def make_calls(plan: Any, tensors: Any, d_output: Tensor, arrays: Any) -> Dict[str, Callable[[], Any]]:
    given = Given(*tensors, None, None, False, arrays)
    output, lse, low = plan.recorded().run(given, is_operator=True)
    calls = {}
    for name, rest in (("two", low), ("one", None)):
        kernel = plan.gradient(NAMES, False, rest is not None)
        calls[name] = lambda kernel=kernel, rest=rest: kernel.run(given, output, lse, rest, d_output)
    return calls


def time_score(o: argparse.Namespace, name: str, causal: bool, d: int, length: int) -> Dict[str, Any]:
    torch.manual_seed(7)
    *tensors, d_output = make_inputs(max(1, 16384 // length), length, d)
    score = make_score(name, length)
    kernel = attn.compile("bfloat16", d, causal=causal, score=score, device="cuda")
    calls = make_calls(kernel._plan, tensors, d_output, kernel._arrays)
    times = measure.interleave(calls, o.rounds, o.seconds)
    ratio = measure.ratio(times["two"], times["one"])
    label = f"{name}{'' if causal else ' full'}"
    print(f"{label:22} D {d:3} S {length:5}: {statistics.median(times['two']):.3f} ms, ratio {ratio:.3f}", flush=True)
    return {"score": label, "D": d, "S": length, "ms": times, "ratio": ratio}


def find_errors(length: int = 700, d: int = 64) -> Dict[str, float]:
    torch.manual_seed(9)
    *tensors, d_output = make_inputs(2, length, d)
    bias = torch.zeros(length, length, device="cuda")
    bias[::2] = -1e9
    kernel = attn.compile("bfloat16", d, score=lambda s, b, h, m, n: s + bias[m, n], device="cuda")
    calls = make_calls(kernel._plan, tensors, d_output, kernel._arrays)
    q, k, v = (x.float() for x in tensors)
    scores = (q @ k.transpose(2, 3) / math.sqrt(d) + bias).double()
    expected = torch.softmax(scores, -1).transpose(2, 3) @ d_output.double()
    return {name: ((call()[2].double() - expected).norm() / expected.norm()).item() for name, call in calls.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2, help="per candidate and round (default: %(default)s)")
    parser.add_argument("--out", help="write the result here, as JSON")
    o = parser.parse_args()
    errors = find_errors()
    print("errors", errors, flush=True)
    rows = [
        time_score(o, name, causal, d, length)
        for name in ("softcap", "alibi", "relative_bias")
        for causal in (True, False)
        for d in (64, 128, 256)
        for length in (1024, 8192)
    ]
    mean = math.exp(statistics.fmean(math.log(row["ratio"]) for row in rows))
    print(f"geometric mean {mean:.4f}, least {min(row['ratio'] for row in rows):.4f}")
    if o.out:
        result = {**measure.describe_machine(), "errors": errors, "mean": mean, "rows": rows}
        Path(o.out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
