#!/usr/bin/env python3
"""Dropout of weights, forward and backward: attn with and without it, and PyTorch's FlashAttention-2 and cuDNN with it.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/dropout.py --out dropout.json

Milliseconds of a call, alternating in one process: bf16, B * S = 16384, H * D = 2048, S = 4096, p = 0.1. What each drops differs,
so that results are not compared here: the tests compare ours with NumPy's Philox.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any, Callable, Dict

import torch
from torch.nn.attention import SDPBackend

import attn
import measure
from peers import list_sdpa

Call = Callable[[], Any]
TOKENS, HIDDEN, LENGTH, P = 16384, 2048, 4096, 0.1
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "fa2": SDPBackend.FLASH_ATTENTION}


def list_forwards(causal: bool, *tensors: torch.Tensor) -> Dict[str, Call]:
    return {
        "attn": lambda: attn.attention(*tensors, causal=causal, dropout_p=P, dropout_seed=7),
        "without": lambda: attn.attention(*tensors, causal=causal),
        **list_sdpa(BACKENDS, causal, *tensors, dropout=P),
    }


def list_backwards(forwards: Dict[str, Call], *tensors: torch.Tensor) -> Dict[str, Call]:
    d_output = torch.randn_like(tensors[0])
    outputs = {name: call() for name, call in forwards.items()}
    return {
        name: lambda o=o: torch.autograd.grad(o, tensors, d_output, retain_graph=True) for name, o in outputs.items()
    }


def measure_cell(o: argparse.Namespace, d: int, causal: bool) -> Dict[str, Any]:
    torch.manual_seed(d)
    shape = (TOKENS // LENGTH, HIDDEN // d, LENGTH, d)
    tensors = [torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    forwards = list_forwards(causal, *tensors)
    row: Dict[str, Any] = {"D": d, "causal": causal, "S": LENGTH, "p": P}
    for name, calls in (("forward", forwards), ("backward", list_backwards(forwards, *tensors))):
        times = measure.interleave(calls, o.rounds, o.seconds)
        row[name] = {"ms": times, "ratio": {peer: measure.ratio(times["attn"], times[peer]) for peer in times}}
        medians = " ".join(f"{who} {statistics.median(t):.3f}" for who, t in times.items())
        print(f"D={d} {'causal' if causal else 'full':6} {name:8} {medians}", flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.25, help="per candidate and round (default: %(default)s)")
    parser.add_argument("--out", help="write the result here, as JSON")
    o = parser.parse_args()
    result: Dict[str, Any] = {**measure.describe_machine(), "rows": []}
    for d, causal in ((64, False), (64, True), (128, False), (128, True)):
        result["rows"].append(measure_cell(o, d, causal))
        if o.out:
            Path(o.out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
