#!/usr/bin/env python3
"""attn beside cuDNN and FlashAttention-3 on the shapes that the square grid of sdpa.py has not.

Other head dimensions, f16, heads that share keys, (B, S, H, D) in memory, cross attention; forward, and backward with
--backward. Timing and errors are those of sdpa.py and sdpa_backward.py. Tensors lie as (B, H, S, D) unless a name
ends in `-bshd`. FlashAttention-3 pads head dimensions to those that it was built with.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/shapes.py --out shapes.json
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List

import torch

import attn
import measure
from peers import Checker, make_peers
from sdpa import make_parser
from sdpa_backward import make_backward
from variants import Tensor, make_variant

Call = Callable[[], Any]


@dataclass(frozen=True)
class Shape:
    """One problem: `mask` is full or causal; `order` is that of the tensors in memory."""

    name: str
    batch: int
    heads: int
    rows: int
    keys: int
    d: int
    mask: str = "full"
    key_heads: int = 0
    dv: int = 0
    dtype: torch.dtype = torch.bfloat16
    order: str = "bhsd"

    def flops(self) -> float:
        """Of the forward pass."""
        pairs = self.rows * self.keys / (2 if self.mask == "causal" else 1)
        return 2.0 * (self.d + (self.dv or self.d)) * self.batch * self.heads * pairs

    def make(self, heads: int, length: int, d: int, grad: bool) -> Tensor:
        sizes = (self.batch, heads, length, d) if self.order == "bhsd" else (self.batch, length, heads, d)
        x = torch.randn(sizes, device="cuda", dtype=self.dtype)
        return (x if self.order == "bhsd" else x.transpose(1, 2)).detach().requires_grad_(grad)

    def make_all(self, grad: bool) -> List[Tensor]:
        key_heads = self.key_heads or self.heads
        return [
            self.make(self.heads, self.rows, self.d, grad),
            self.make(key_heads, self.keys, self.d, grad),
            self.make(key_heads, self.keys, self.dv or self.d, grad),
        ]


def list_forward() -> List[Shape]:
    shapes = []
    for d, dv in ((40, 0), (72, 0), (80, 0), (96, 0), (192, 0), (192, 128)):
        for mask in ("full", "causal"):
            shapes.append(Shape(f"d{d}{f'x{dv}' if dv else ''}-{mask}", 4, 16, 4096, 4096, d, mask, dv=dv))
    for d in (64, 128, 256):
        for mask in ("full", "causal"):
            shapes.append(Shape(f"f16-d{d}-{mask}", 4, 2048 // d, 4096, 4096, d, mask, dtype=torch.float16))
    for mask in ("full", "causal"):
        for key_heads in (32, 8, 1):
            shapes.append(Shape(f"gqa32:{key_heads}-{mask}", 2, 32, 4096, 4096, 128, mask, key_heads))
        shapes.append(Shape(f"gqa32:8-{mask}-bshd", 2, 32, 4096, 4096, 128, mask, 8, order="bshd"))
    for d in (64, 128):
        shapes.append(Shape(f"cross-d{d}-4096x77", 16, 16, 4096, 77, d))
        shapes.append(Shape(f"cross-d{d}-128x16384", 8, 16, 128, 16384, d))
    return shapes


def list_backward() -> List[Shape]:
    shapes = [Shape(f"f16-d{d}-causal", 4, 2048 // d, 4096, 4096, d, "causal", dtype=torch.float16) for d in (64, 128)]
    shapes += [Shape(f"gqa32:{n}-causal", 2, 32, 4096, 4096, 128, "causal", n) for n in (32, 8)]
    shapes.append(Shape("gqa32:8-causal-bshd", 2, 32, 4096, 4096, 128, "causal", 8, order="bshd"))
    shapes.append(Shape("d192x128-causal", 4, 16, 4096, 4096, 192, "causal", dv=128))
    shapes.append(Shape("cross-d128-4096x512", 8, 16, 4096, 512, 128))
    shapes.append(Shape("cross-d128-128x16384", 8, 16, 128, 16384, 128))
    return shapes


def gradient_errors(calls: Dict[str, Call], tensors: List[Tensor], d_output: Tensor, causal: bool) -> Dict[str, float]:
    """The largest relative error (2-norm) of each one's gradients of the first batch, in f64 by one key head."""
    group = tensors[0].shape[1] // tensors[1].shape[1]
    q, k, v = (x[0, : group if i == 0 else 1].detach().double().requires_grad_() for i, x in enumerate(tensors))
    s = q @ k.transpose(1, 2) / q.shape[2] ** 0.5
    if causal:
        s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1), float("-inf"))
    wanted = torch.autograd.grad(s.softmax(-1) @ v, (q, k, v), d_output[0, :group].double())
    return {
        name: max(((x[0, : r.shape[0]].double() - r).norm() / r.norm()).item() for x, r in zip(call(), wanted))
        for name, call in calls.items()
    }


def measure_shape(shape: Shape, o: argparse.Namespace) -> Dict[str, Any]:
    torch.manual_seed(0)
    tensors = shape.make_all(o.backward)
    causal = shape.mask == "causal"
    variant = make_variant(shape.mask, shape.batch, shape.heads, shape.rows)
    calls: Dict[str, Call] = {"attn": lambda: attn.attention(*tensors, causal=causal)}
    calls.update(make_peers([p for p in o.peers.split(",") if p], variant, *tensors))
    if o.backward:
        d_output = shape.make(shape.heads, shape.rows, shape.dv or shape.d, False)
        calls = {name: make_backward(call, getattr(call, "tensors", tensors), d_output) for name, call in calls.items()}
        errors = gradient_errors(calls, tensors, d_output, causal)
    else:
        check = Checker(variant, *tensors)
        errors = {name: check(call()) for name, call in calls.items()}
    times = measure.interleave(calls, o.rounds, o.seconds)
    flops = shape.flops() * (2.5 if o.backward else 1)
    ratios = {name: measure.ratio(times["attn"], times[name]) for name in calls if name != "attn"}
    if ratios:
        ratios["best"] = min(ratios.values())
    return {
        "config": shape.name,
        "pass": "backward" if o.backward else "forward",
        "B": shape.batch,
        "H": shape.heads,
        "Hkv": shape.key_heads or shape.heads,
        "M": shape.rows,
        "N": shape.keys,
        "D": shape.d,
        "Dv": shape.dv or shape.d,
        "ms": times,
        "tflops": {name: measure.tflops(flops, t) for name, t in times.items()},
        "ratio": ratios,
        "errors": errors,
    }


def describe(row: Dict[str, Any]) -> str:
    rates = " ".join(f"{name} {rate:6.1f}" for name, rate in row["tflops"].items())
    ratios = " ".join(f"/{name} {ratio:5.3f}" for name, ratio in row["ratio"].items())
    return f"{row['pass']:8} {row['config']:24} {rates}  {ratios}  " + " ".join(
        f"{e:.1e}" for e in row["errors"].values()
    )


def write(path: str, result: Dict[str, Any]) -> None:
    """Keeps rows of an earlier run on the same device that this one has not measured."""
    merged = measure.merge_rows(path, result, lambda row: (row["pass"], row["config"]))
    Path(path).write_text(json.dumps(merged, indent=1) + "\n")


def main() -> int:
    parser = make_parser(__doc__, seconds=0.1)
    parser.set_defaults(peers="cudnn,fa3")
    parser.add_argument("--backward", action="store_true", help="time gradients")
    parser.add_argument("--out", help="write the result here; rows of other configs that it holds stay")
    o = parser.parse_args()
    shapes = list_backward() if o.backward else list_forward()
    shapes = [s for s in shapes if any(fnmatch.fnmatch(s.name, p) for p in o.configs.split(","))]
    result: Dict[str, Any] = {**measure.describe_machine(), "rounds": o.rounds, "seconds": o.seconds, "rows": []}
    failed = []
    for shape in shapes:
        try:
            row = measure_shape(shape, o)
        except Exception as error:  # pylint: disable=broad-except  # One that fails leaves the others.
            print(f"{shape.name} failed: {str(error).splitlines()[0]}", flush=True)
            failed.append(shape.name)
            continue
        result["rows"].append(row)
        print(describe(row), flush=True)
        theirs = [e for name, e in row["errors"].items() if name != "attn"]
        if row["errors"]["attn"] > 3 * min(theirs, default=1e-2):
            failed.append(shape.name)
        if o.out:
            write(o.out, result)
    best = [row["ratio"]["best"] for row in result["rows"] if "best" in row["ratio"]]
    if best:
        print(f"to the best peer: geometric mean {statistics.geometric_mean(best):.3f}, least {min(best):.3f}")
    if failed:
        print("wrong or not run: " + ", ".join(failed))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
