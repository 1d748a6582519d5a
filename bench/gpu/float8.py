#!/usr/bin/env python3
"""Attention to elements of 8 bits: attn's beside its own of bfloat16, PyTorch's, and FlashAttention-3's where it is installed.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/float8.py --out float8.json

Candidates take turns in one process (measure.py). All are given the same numbers of bfloat16, a share of which are outliers;
those of 8 bits are rounded before, and rounding is not timed. `error` is that of one head, compared with f64 of the numbers
before they are rounded, by its norm. `own` is the error that is left when numbers are those that 8 bits stand for. Exits with
1 where attn's own error is more than twice FlashAttention-3's, or, without it, more than what three bits of weights explain.
Without a GPU it measures the CPU's kernels.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
from typing import Any, Callable, Dict, Optional, Sequence

import torch
from torch.nn.attention import SDPBackend

import attn
import measure
from peers import list_sdpa

Call = Callable[[], Any]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
# Tokens of all sequences together.
TOKENS = 16384
# Of weights with three bits of mantissa, by the norm.
OWN_BOUND = 4e-2
PREPARATIONS = {"plain": {}, "smooth": {"smooth": True}, "rotated": {"smooth": True, "rotate": True}}


def make(shape: Sequence[int], outliers: float) -> torch.Tensor:
    """Normal numbers, of which some are 30 times as large."""
    x = torch.randn(shape, device=DEVICE)
    is_outlier = torch.rand(shape, device=DEVICE) < outliers
    return torch.where(is_outlier, 30 * x, x).bfloat16()


def attend_exactly(causal: bool, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Of one head, in f64."""
    q, k, v = (x.double() for x in (q, k, v))
    scores = q @ k.T / math.sqrt(q.shape[1])
    if causal:
        scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), -torch.inf)
    return scores.softmax(1) @ v


def find_error(got: torch.Tensor, exact: torch.Tensor) -> float:
    return ((got[0, 0].double() - exact).norm() / exact.norm()).item()


def widen(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """The numbers of one head."""
    return codes[0, 0].double() * scale.double().flatten()[0]


def list_peer(causal: bool, prepared: attn.Float8) -> Dict[str, Call]:
    """FlashAttention-3, whose tensors are (B, S, H, D) and whose scales are of each batch and key head."""
    if DEVICE == "cpu" or importlib.util.find_spec("flash_attn_interface") is None:
        return {}
    from flash_attn_interface import flash_attn_func

    q, k, v = (x.transpose(1, 2).contiguous() for x in prepared[:3])
    scales = {name: x for name, x in prepared.how.items() if name.endswith("_descale")}

    def call() -> torch.Tensor:
        output = flash_attn_func(q, k, v, causal=causal, **scales)
        return (output[0] if isinstance(output, tuple) else output).transpose(1, 2)

    return {"flash_attn 3, 8 bits": call}


def measure_problem(o: argparse.Namespace, d: int, length: int, causal: bool) -> Dict[str, Any]:
    torch.manual_seed(length + d)
    shape = max(o.tokens // length, 1), max(o.hidden // d, 1), length, d
    tensors = [make(shape, o.outliers) for _ in range(3)]
    prepared = attn.to_float8(*tensors)
    calls: Dict[str, Call] = {"attn": lambda: attn.attention(*prepared[:3], causal=causal, **prepared.how)}
    calls.update(list_peer(causal, prepared))
    calls["attn, 16 bits"] = lambda: attn.attention(*tensors, causal=causal)
    calls.update(list_sdpa(BACKENDS, causal, *tensors) if DEVICE == "cuda" else {})
    exact = attend_exactly(causal, *(x[0, 0] for x in tensors))
    rounded = attend_exactly(causal, *(widen(x, prepared.how[f"{name}_descale"]) for name, x in zip("qkv", prepared)))
    errors = {name: find_error(call(), exact) for name, call in calls.items()}
    own = {name: find_error(call(), rounded) for name, call in calls.items() if not name.endswith("16 bits")}
    by_preparation = {}
    for name, how in PREPARATIONS.items():
        other = attn.to_float8(*tensors, **how)
        by_preparation[name] = find_error(attn.attention(*other[:3], causal=causal, **other.how), exact)
    times = measure.interleave(calls, o.rounds, o.seconds)
    flops = 4 * shape[0] * shape[1] * length * length * d / (2 if causal else 1)
    rates = {name: measure.tflops(flops, times[name]) for name in times}
    peers = [name for name in own if name.startswith("flash_attn")]
    bound = 2 * min(own[name] for name in peers) if peers else OWN_BOUND
    row = {"D": d, "S": length, "B": shape[0], "H": shape[1], "causal": causal, "tflops": rates, "errors": errors,
           "own_errors": own, "errors_by_preparation": by_preparation, "right": own["attn"] <= bound,
           "of": {name: measure.ratio(times["attn"], times[name]) for name in calls if name != "attn"}}
    text = "  ".join(f"{name} {rate:6.1f} ({errors[name]:.1e})" for name, rate in rates.items())
    print(f"D={d:3} S={length:5} {'causal' if causal else 'full':6} {text} TFLOP/s", flush=True)
    return row


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    measure.add_problem_options(parser, [64, 128, 256], TOKENS)
    parser.add_argument("--outliers", type=float, default=0.001, help="share of numbers that are 30 times as large (default: %(default)s)")
    o = parser.parse_args(arguments)
    return measure.measure_problems(o, measure_problem)


if __name__ == "__main__":
    sys.exit(main())
