#!/usr/bin/env python3
"""The root mean square of attn's error beside cuDNN's and FlashAttention's on the same tensors, against f64.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/rms_errors.py --also slack=8 --out rms-errors.json

Inputs are normal, or normal with one element in a thousand times 30: then single weights decide. The goal is an error no
larger than cuDNN's. Errors of all seeds are pooled, so that a ratio holds to about one part in a hundred; `goal` is the largest
ratio that is told as one. Without a GPU it compares with PyTorch's attention on the CPU. Exits with 1 where the goal is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any, Dict, List

import torch

import measure
from peers import make_peers
from sdpa import make_others, make_ours
from variants import Tensor, make_variant

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# PyTorch's flash attention is the one that it has for CPUs too.
PEERS = ("cudnn", "fa3", "fa2") if DEVICE == "cuda" else ("fa2",)


def make_inputs(o: argparse.Namespace, kind: str, data: str, d: int, seed: int) -> List[Tensor]:
    generator = torch.Generator(DEVICE).manual_seed(seed)
    shape = (1, o.heads, o.length, d)
    draw = lambda function: function(shape, generator=generator, device=DEVICE)
    tensors = [draw(torch.randn) for _ in range(3)]
    if data == "outliers":
        tensors = [torch.where(draw(torch.rand) < 1e-3, 30 * x, x) for x in tensors]
    return [x.to(TYPES[kind]) for x in tensors]


def compute_exactly(mask: str, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(*(x.double() for x in (q, k, v)), is_causal=mask == "causal")


def measure_problem(o: argparse.Namespace, kind: str, data: str, mask: str, d: int) -> Dict[str, Any]:
    """Errors by name, as parts of the root mean square of what is right."""
    variant = make_variant(mask, 1, o.heads, o.length, DEVICE)
    squares: Dict[str, float] = {}
    total = 0.0
    for seed in range(o.seeds):
        q, k, v = make_inputs(o, kind, data, d, seed)
        exact = compute_exactly(mask, q, k, v)
        calls = {"attn": make_ours(variant, q, k, v), **make_others(o.also, variant, q, k, v)}
        calls.update(make_peers(PEERS, variant, q, k, v))
        total += exact.square().sum().item()
        for name, call in calls.items():
            squares[name] = squares.get(name, 0.0) + (call().double() - exact).square().sum().item()
    errors = {name: math.sqrt(square / total) for name, square in squares.items()}
    peer = errors.get("cudnn", min((e for name, e in errors.items() if not name.startswith("attn")), default=math.nan))
    ratios = {name: error / peer for name, error in errors.items() if name.startswith("attn")}
    print(f"{kind:4} {data:8} {mask:6} D={d:3}  " + "  ".join(f"{name} {error:.3e}" for name, error in errors.items())
          + "  of the peer's: " + ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items()), flush=True)
    return {"type": kind, "data": data, "mask": mask, "D": d, "errors": errors, "ratios": ratios}


def summarize(rows: List[Dict[str, Any]], goal: float) -> bool:
    """Whether attn, as it chooses, meets the goal; NaN does not."""
    for name in rows[0]["ratios"]:
        ratios = [row["ratios"][name] for row in rows]
        print(f"{name}: geometric mean {statistics.geometric_mean(ratios):.3f} of the peer's error, most {max(ratios):.3f}")
    missed = [row for row in rows if not row["ratios"]["attn"] <= goal]
    print(f"{len(missed)} of {len(rows)} beyond {goal}")
    return not missed


def main(arguments: List[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--goal", type=float, default=1.01)
    parser.add_argument("--also", action="append", default=[], metavar="OPTIONS", help="attn with options too, such as slack=8")
    parser.add_argument("--out", help="write the result here")
    o = parser.parse_args(arguments)
    rows = [measure_problem(o, kind, data, mask, d)
            for kind in TYPES for data in ("normal", "outliers") for mask in ("full", "causal") for d in o.dims]
    if o.out:
        result = {**measure.describe_machine(), "length": o.length, "heads": o.heads, "seeds": o.seeds, "rows": rows}
        Path(o.out).write_text(json.dumps(result, indent=1) + "\n")
    return int(not summarize(rows, o.goal))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
