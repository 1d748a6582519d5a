#!/usr/bin/env python3
"""Variants of a kernel, as PTX, beside cuDNN: alternating in one process on the same tensors.

    attn-opt causal128.mlir --attn-to-online=target=cuda --online-to-tile --tile-to-async --async-to-thread \\
        --emit-ptx="ptx=a.ptx plan=a.json" -o /dev/null
    compare_ptx.py --kernel a=a.ptx,a.json --kernel b=b.cubin,b.json --d 128 --seq 2048,8192 --variant causal

Each kernel is checked on some rows against f64 first, into an output of NaN, and must give the same bits
after the timing as before it. One line for each: TFLOP/s, the ratio to cuDNN (to FlexAttention where cuDNN
has no such attention), the error, registers, local and shared bytes, the assembler's warnings. `--kernel DIR/a`
is short for a=DIR/a.ptx,DIR/a.json; a code file may also be a cubin. Arguments of a kernel are q, k, v, the
variant's captures, o and, if the plan has one more, lse.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import torch

import measure
from peers import Checker, make_peers
from ptx_kernel import PtxKernel
from variants import NAMES, count_flops, make_variant

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", action="append", default=[], metavar="NAME=CODE,PLAN", help="any number of them")
    parser.add_argument("--d", type=int, default=128)
    parser.add_argument("--dv", type=int, help="default: as D")
    parser.add_argument("--seq", default="8192", help="M and N; several, separated by commas, are measured in turn")
    parser.add_argument("--batch", type=int, help="default: 16384 / seq")
    parser.add_argument("--heads", type=int, help="default: 2048 / D")
    parser.add_argument("--kv-heads", type=int, help="default: as heads")
    parser.add_argument("--type", choices=TYPES, default="bf16")
    parser.add_argument("--variant", choices=NAMES, default="full")
    parser.add_argument("--causal", action="store_const", const="causal", dest="variant", help="--variant causal")
    parser.add_argument("--rounds", type=int, default=3, help="0: only check")
    parser.add_argument("--seconds", type=float, default=0.4, help="per candidate and round")
    parser.add_argument("--peers", help="of cudnn, fa2 and flex; ratios are to the first. Default: cudnn, or else flex")
    parser.add_argument("--out", help="write the result here, as JSON")
    return parser.parse_args()


def load_kernels(texts: List[str]) -> Dict[str, PtxKernel]:
    kernels = {}
    for text in texts:
        name, _, files = text.partition("=")
        code, _, plan = (files or f"{name}.ptx,{name}.json").partition(",")
        kernels[Path(name).name] = PtxKernel(code, plan)
    return kernels


def describe(name: str, row: Dict[str, Any], peer: Optional[str], limit: float) -> str:
    text = f"{name:16}"
    if "tflops" in row:
        text += f" {row['tflops']:7.1f} TFLOP/s +-{row['spread'] / 2:4.1%}"
    if row.get("ratio"):
        text += f"  {row['ratio']:.3f}x {peer}"
    text += f"  err {row['error']:.1e}"
    if "registers" in row:
        text += "  regs {registers} local {local_bytes} shared {shared_bytes} {warnings}".format(**row)
    if row["error"] > limit:
        text += " WRONG"
    return text if row.get("stable", True) else text + " UNSTABLE"


def compare(o: argparse.Namespace, kernels: Dict[str, PtxKernel], length: int) -> Dict[str, Any]:
    """Measures and prints one problem."""
    batch, heads, dv = o.batch or max(1, 16384 // length), o.heads or max(1, 2048 // o.d), o.dv or o.d
    kv_heads = o.kv_heads or heads
    torch.manual_seed(0)
    make = lambda h, d: torch.randn(batch, h, length, d, device="cuda", dtype=TYPES[o.type])
    q, k, v = make(heads, o.d), make(kv_heads, o.d), make(kv_heads, dv)
    variant = make_variant(o.variant, batch, heads, length)
    flops = count_flops(variant, batch, heads, length, o.d, dv)
    check = Checker(variant, q, k, v)

    calls: Dict[str, Callable[[], Any]] = {}
    rows: Dict[str, Dict[str, Any]] = {}
    peers = ("cudnn" if o.variant in ("full", "causal") else "flex") if o.peers is None else o.peers
    for name, call in make_peers([p for p in peers.split(",") if p], variant, q, k, v).items():
        rows[name] = {"error": check(call())}
        calls[name] = call
    peer = next(iter(calls), None)
    outputs: Dict[str, torch.Tensor] = {}
    for name, kernel in kernels.items():
        out = outputs[name] = torch.full((batch, heads, length, dv), math.nan, device="cuda", dtype=TYPES[o.type])
        arguments: List[Any] = [q, k, v, *variant.captures.values(), out]
        if kernel.num_arguments > len(arguments):
            arguments.append(torch.empty(batch, heads, length, device="cuda"))
        calls[name] = kernel.bind(arguments)
        calls[name]()
        torch.cuda.synchronize()
        facts = kernel.facts
        rows[name] = {"error": check(out), "registers": [f.registers for f in facts], "warnings": kernel.warnings,
                      "local_bytes": [f.local_bytes for f in facts], "shared_bytes": [f.shared_bytes for f in facts]}

    first = {name: out.clone() for name, out in outputs.items()}
    times = measure.interleave(calls, o.rounds, o.seconds) if o.rounds else {}
    print(f"{o.variant} {o.type} B={batch} H={heads} Hkv={kv_heads} M=N={length} D={o.d} Dv={dv}")
    limit = 3 * rows[peer]["error"] if peer else 0.05
    for name, row in rows.items():
        if times:
            row.update(tflops=measure.tflops(flops, times[name]), ms=times[name], spread=measure.spread(times[name]),
                       ratio=measure.ratio(times[name], times[peer]) if peer else None)
        if name in first:
            row["stable"] = torch.equal(first[name].view(torch.int16), outputs[name].view(torch.int16))
        row["right"] = row["error"] <= limit and row.get("stable", True)
        print(describe(name, row, peer, limit), flush=True)
    return {"B": batch, "H": heads, "Hkv": kv_heads, "M": length, "N": length, "D": o.d, "Dv": dv, "kernels": rows}


def main() -> int:
    o = parse_arguments()
    kernels = load_kernels(o.kernel)
    print(f"{torch.cuda.get_device_name()}, {o.rounds} rounds of {o.seconds} s")
    problems = [compare(o, kernels, int(length)) for length in o.seq.split(",")]
    if o.out:
        result = {"machine": measure.describe_machine(), "options": vars(o), "problems": problems}
        with open(o.out, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    return int(not all(row["right"] for problem in problems for row in problem["kernels"].values()))


if __name__ == "__main__":
    sys.exit(main())
