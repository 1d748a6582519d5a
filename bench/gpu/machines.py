#!/usr/bin/env python3
"""Kernels of machines whose warps multiply, as text on whatever GPU is there, beside PyTorch's FlashAttention-2.

    machines.py emit DIR --bin build/dev/bin [--target sm_80]    # no GPU: PTX and plans
    machines.py retarget DIR --to sm_90a                          # PTX of sm_120a, as text that a Hopper runs
    machines.py measure DIR --out machines.json                   # no compiler: PyTorch and the driver
    machines.py gradients --out gradients.json                    # backward passes, by the library that ATTN_LIBRARY names

A newer GPU runs what an older one of the same line runs, so that a Hopper stands in for an A100: its instructions are the same,
its clock, caches and shared memory are not. FlashAttention-2 multiplies by the same instructions. Forward passes of full and
causal attention in bf16, D in 64, 128 and 256, and the variants of revisions.py by their rate for each kept pair. Each kernel is
checked against f64 on some rows first. Exits with 1 where one is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import revisions


def make_peer(name: str, q: Any, k: Any, v: Any) -> Callable[[], Any]:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def call() -> Any:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=name == "causal")

    return call


def measure_problem(o: argparse.Namespace, name: str, d: int, length: int, batch: int, heads: int) -> Dict[str, Any]:
    import torch

    import measure
    from peers import Checker
    from ptx_kernel import PtxKernel
    from variants import count_flops, make_variant

    torch.manual_seed(length + d)
    q, k, v = (torch.randn(batch, heads, length, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    variant = make_variant(name, batch, heads, length)
    check = Checker(variant, q, k, v)
    out = torch.full_like(q, math.nan)
    kernel = PtxKernel(o.directory / f"{name}-{d}.ptx", o.directory / f"{name}-{d}.json")
    calls = {"attn": kernel.bind([q, k, v, *variant.captures.values(), out])}
    calls["attn"]()
    torch.cuda.synchronize()
    row: Dict[str, Any] = {"variant": name, "D": d, "S": length, "B": batch, "H": heads, "error": check(out)}
    if name in ("full", "causal"):
        calls["flash"] = make_peer(name, q, k, v)
        row["flash_error"] = check(calls["flash"]())
    times = measure.interleave(calls, o.rounds, o.seconds)
    flops = count_flops(variant, batch, heads, length, d, d)
    row["tflops"] = {side: measure.tflops(flops, times[side]) for side in times}
    if "flash" in times:
        row["of_flash"] = measure.ratio(times["attn"], times["flash"])
    row["right"] = bool(row["error"] <= 1.5 * row.get("flash_error", 2e-2) + 1e-3)
    rates = "  ".join(f"{side} {rate:6.1f}" for side, rate in row["tflops"].items())
    print(f"{name:11} D={d:3} S={length:5} {rates} TFLOP/s  {row.get('of_flash', math.nan):.3f} of flash  err {row['error']:.1e}"
          f"{'' if row['right'] else ' WRONG'}", flush=True)
    return row


def finish(o: argparse.Namespace, rows: List[Dict[str, Any]]) -> int:
    """Prints the mean, writes the result, and returns 1 where a kernel is wrong."""
    import measure

    ratios = [row["of_flash"] for row in rows if "of_flash" in row]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean {mean:.3f} of flash, from {min(ratios):.3f} to {max(ratios):.3f}")
    if o.out:
        result = {"machine": measure.describe_machine(), "rounds": o.rounds, "seconds": o.seconds, "problems": rows}
        Path(o.out).write_text(json.dumps(result, indent=1) + "\n")
    return int(not all(row["right"] for row in rows))


def retarget(o: argparse.Namespace) -> int:
    """sm_120a has no instruction that sm_90a lacks (boxes, budgets, mma.sync), so that its text is a Hopper's too."""
    for path in sorted(o.directory.glob("*.ptx")):
        path.write_text(re.sub(r"(?m)^\.target \w+", f".target {o.to}", path.read_text()))
    return 0


def measure_all(o: argparse.Namespace) -> int:
    problems = [p for p in revisions.PROBLEMS if (o.directory / f"{p[0]}-{p[1]}.ptx").exists() and p[2] in o.lengths]
    rows: List[Dict[str, Any]] = [measure_problem(o, *problem) for problem in problems]
    return finish(o, rows)


def measure_gradient(o: argparse.Namespace, name: str, d: int, length: int, batch: int, heads: int) -> Dict[str, Any]:
    import torch

    import measure
    from sdpa import make_ours
    from sdpa_backward import find_reference, make_backward
    from variants import count_flops, make_variant

    torch.manual_seed(length + d)
    shape = batch, heads, length, d
    tensors = [torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    variant, d_output = make_variant(name, batch, heads, length), torch.randn(shape, device="cuda", dtype=torch.bfloat16)
    calls = {"attn": make_backward(make_ours(variant, *tensors, options={"target": o.target}), tensors, d_output),
             "flash": make_backward(make_peer(name, *tensors), tensors, d_output)}
    reference = find_reference(variant, tensors, d_output, head=1)
    errors = {side: max(((x[0, 1].double() - r).norm() / r.norm()).item() for x, r in zip(call(), reference))
              for side, call in calls.items()}
    times = measure.interleave(calls, o.rounds, o.seconds)
    flops = 2.5 * count_flops(variant, batch, heads, length, d, d)
    row = {"variant": name, "D": d, "S": length, "B": batch, "H": heads, "errors": errors,
           "tflops": {side: measure.tflops(flops, times[side]) for side in times},
           "of_flash": measure.ratio(times["attn"], times["flash"]), "right": errors["attn"] <= 1.5 * errors["flash"] + 1e-3}
    rates = "  ".join(f"{side} {rate:6.1f}" for side, rate in row["tflops"].items())
    print(f"gradients of {name:7} D={d:3} S={length:5} {rates} TFLOP/s  {row['of_flash']:.3f} of flash  err {errors['attn']:.1e}"
          f"{'' if row['right'] else ' WRONG'}", flush=True)
    return row


def measure_gradients(o: argparse.Namespace) -> int:
    problems = [p for p in revisions.PROBLEMS if p[0] in ("full", "causal") and p[1] in o.head_dims and p[2] in o.lengths]
    rows = [measure_gradient(o, *problem) for problem in problems]
    return finish(o, rows)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    revisions.add_emit(commands, target="sm_80")
    retargeting = commands.add_parser("retarget", help="name another architecture in the PTX of a folder")
    retargeting.add_argument("directory", type=Path)
    retargeting.add_argument("--to", default="sm_90a", help="the architecture (default: %(default)s)")
    retargeting.set_defaults(run=retarget)
    measuring = commands.add_parser("measure", help="time the kernels of a folder in turns with PyTorch's")
    measuring.add_argument("directory", type=Path)
    measuring.add_argument("--lengths", type=int, nargs="+", default=[1024, 2048, 4096, 8192, 16384])
    measuring.add_argument("--rounds", type=int, default=5)
    measuring.add_argument("--seconds", type=float, default=0.3, help="per kernel and round (default: %(default)s)")
    measuring.add_argument("--out", help="write the result here, as JSON")
    measuring.set_defaults(run=measure_all)
    gradients = commands.add_parser("gradients", help="time backward passes in turns with PyTorch's")
    gradients.add_argument("--target", default="sm_80", help="the machine (default: %(default)s)")
    gradients.add_argument("--head-dims", type=int, nargs="+", default=[64, 128])
    gradients.add_argument("--lengths", type=int, nargs="+", default=[1024, 4096, 16384])
    gradients.add_argument("--rounds", type=int, default=3)
    gradients.add_argument("--seconds", type=float, default=0.3, help="per kernel and round (default: %(default)s)")
    gradients.add_argument("--out", help="write the result here, as JSON")
    gradients.set_defaults(run=measure_gradients)
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parse_arguments()
    sys.exit(arguments.run(arguments))
