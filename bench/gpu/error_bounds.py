#!/usr/bin/env python3
"""The error of PyTorch's attention on the GPU in each type, beside attn's on the same inputs, against f64.

The measure is that of the tests: max |x - r| / max(|r|, rms(r)). Tests freeze twice PyTorch's error as their bound, so that
they need no PyTorch (test/Execution/Execution.cpp). Writes a JSON file and prints, for each type and mask, the least error
over D of PyTorch's default and the worst ratio of attn's to it. --no-attn measures PyTorch alone.
"""

from __future__ import annotations

import argparse
import json
import math
from typing import Any, Dict, List

import torch

import measure

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
DIMS = (16, 40, 64, 72, 80, 96, 112, 128, 192, 256)
LENGTHS = ((1, 1), (7, 127), (127, 7), (129, 129), (128, 1000), (1000, 1000), (1, 4096), (2048, 2048), (4096, 4096))
SDPA = torch.nn.functional.scaled_dot_product_attention


def measure_problem(kind: str, d: int, m: int, n: int, causal: bool, attention: Any) -> Dict[str, Any]:
    torch.manual_seed(m * 7919 + n + d)
    q = torch.randn(1, 2, m, d, device="cuda").to(TYPES[kind])
    k, v = (torch.randn(1, 2, n, d, device="cuda").to(TYPES[kind]) for _ in range(2))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        reference = SDPA(q.double(), k.double(), v.double(), is_causal=causal)
    row = {"type": kind, "D": d, "M": m, "N": n, "causal": causal}
    row["torch"] = measure.max_relative(SDPA(q, k, v, is_causal=causal), reference)
    if attention:
        row["attn"] = measure.max_relative(attention(q, k, v, causal=causal), reference)
    return row


def summarize(rows: List[Dict[str, Any]]) -> None:
    print(f"{'type':5} {'mask':7} {'lengths':>9} {'torch, least over D':>20} {'most':>9} {'attn, most':>11} {'worst ratio':>12}")
    for kind in TYPES:
        for causal in (False, True):
            for is_long in (False, True):
                # A single key is copied: no error, and no bound for others.
                mine = [r for r in rows if r["type"] == kind and r["causal"] == causal and (max(r["M"], r["N"]) > 2048) == is_long
                        and r["N"] > 1]
                if not mine:
                    continue
                largest = [max(r["torch"] for r in mine if r["D"] == d) for d in DIMS]
                ours = max((r.get("attn", math.nan) for r in mine), default=math.nan)
                ratio = max((r["attn"] / max(r["torch"], 1e-30) for r in mine if "attn" in r), default=math.nan)
                print(f"{kind:5} {'causal' if causal else 'full':7} {'> 2048' if is_long else '<= 2048':>9} {min(largest):20.2e} "
                      f"{max(largest):9.2e} {ours:11.2e} {ratio:12.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="write the result here")
    parser.add_argument("--no-attn", action="store_true", help="PyTorch alone")
    arguments = parser.parse_args()
    attention = None
    if not arguments.no_attn:
        import attn

        attention = attn.attention
    rows = [
        measure_problem(kind, d, m, n, causal, attention)
        for kind in TYPES
        for d in DIMS
        for m, n in LENGTHS
        for causal in ((False, True) if m == n else (False,))
    ]
    summarize(rows)
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump({**measure.describe_machine(), "rows": rows}, file, indent=0)
            file.write("\n")


if __name__ == "__main__":
    main()
