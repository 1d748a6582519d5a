#!/usr/bin/env python3
"""Packed documents: lists of tiles where nobody says that they are sorted, ranges where somebody does, and plain causal attention.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/documents.py --out documents.json
    bench/gpu/documents.py --every OLD     # beside document-128 of `revisions.py emit OLD` by a compiler without lists

TFLOP/s of what each mask keeps, alternating in one process; D = 128, H = 16, B * S = 16384, bf16.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any, Callable, Dict

import torch

import attn
import measure
from peers import Checker
from ptx_kernel import PtxKernel
from variants import count_flops, make_variant

HEADS, D, TOKENS = 16, 128, 16384


def measure_length(o: argparse.Namespace, length: int) -> Dict[str, Any]:
    batch = TOKENS // length
    torch.manual_seed(length)
    q, k, v = (torch.randn(batch, HEADS, length, D, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    variant = make_variant("document", batch, HEADS, length)
    ids = variant.captures["ids_q"]
    marked = attn.assume_sorted(ids)
    calls: Dict[str, Callable[[], Any]] = {
        "lists": lambda: attn.attention(q, k, v, causal=True, mask=lambda b, h, i, j: ids[b, i] == ids[b, j]),
        "sorted": lambda: attn.attention(q, k, v, causal=True, mask=lambda b, h, i, j: marked[b, i] == marked[b, j]),
        "causal": lambda: attn.attention(q, k, v, causal=True),
    }
    check = Checker(variant, q, k, v)
    errors = {name: check(calls[name]()) for name in ("lists", "sorted")}
    if o.every:
        out = torch.full_like(q, math.nan)
        kernel = PtxKernel(o.every / "document-128.ptx", o.every / "document-128.json")
        calls["every"] = kernel.bind([q, k, v, *variant.captures.values(), out])
        calls["every"]()
        errors["every"] = check(out)
    times = measure.interleave(calls, o.rounds, o.seconds)
    kept = count_flops(variant, batch, HEADS, length, D, D)
    causal = count_flops(make_variant("causal", batch, HEADS, length), batch, HEADS, length, D, D)
    rates = {name: measure.tflops(causal if name == "causal" else kept, times[name]) for name in calls}
    print(f"S={length:5} " + " ".join(f"{name} {rate:.1f}" for name, rate in rates.items()) + f" errors {errors}", flush=True)
    return {"S": length, "B": batch, "H": HEADS, "D": D, "ms": times, "tflops": rates, "errors": errors,
            "kept_of_causal": kept / causal}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=Path, metavar="OLD", help="the folder of kernels that visit every tile")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.25, help="per candidate and round (default: %(default)s)")
    parser.add_argument("--out", help="write the result here, as JSON")
    o = parser.parse_args()
    rows = [measure_length(o, length) for length in (512, 2048, 8192)]
    if o.out:
        Path(o.out).write_text(json.dumps({**measure.describe_machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
