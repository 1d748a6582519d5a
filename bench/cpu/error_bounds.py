#!/usr/bin/env python3
"""The error of PyTorch's CPU attention in each type, beside attn's on the same inputs, against f64.

The measure is that of the tests: max |x - r| / max(|r|, rms(r)). Tests freeze twice PyTorch's error as their bound, so that
they need no PyTorch. Writes a JSON file and prints a table.
"""

import argparse
import json
import math

import torch

from sdpa import TYPES, Kernel, load, source


def max_relative(x, reference):
    if reference.numel() == 0:
        return 0.0
    rms = reference.square().mean().sqrt()
    return ((x.double() - reference).abs() / torch.maximum(reference.abs(), rms)).max().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", dest="native", required=True, help="libattn_bench.so")
    parser.add_argument("--out", help="write the result here")
    arguments = parser.parse_args()
    library = load(arguments.native)
    rows = []
    print(f"{'type':5} {'D':>4} {'M':>5} {'N':>5} {'mask':6} {'attn':>9} {'torch':>9} {'ratio':>6}")
    for kind in ("f32", "f16", "bf16"):
        for d in (16, 40, 64, 80, 96, 128, 192, 256):
            for causal in (False, True):
                kernel = Kernel(library, source(kind, d, causal), 2)
                for m, n in ((1, 1), (7, 127), (127, 7), (129, 129), (128, 1000), (1000, 1000), (1, 4096), (2048, 2048), (4096, 4096)):
                    if causal and m != n:
                        continue
                    torch.manual_seed(m * 7919 + n + d)
                    q = torch.randn(1, 2, m, d).to(TYPES[kind])
                    k, v = (torch.randn(1, 2, n, d).to(TYPES[kind]) for _ in range(2))
                    out = torch.full_like(q, math.nan)
                    kernel.bind(q, k, v, out)()
                    sdpa = torch.nn.functional.scaled_dot_product_attention
                    reference = sdpa(q.double(), k.double(), v.double(), is_causal=causal)
                    ours = max_relative(out, reference)
                    theirs = max_relative(sdpa(q, k, v, is_causal=causal), reference)
                    rows.append({"type": kind, "D": d, "M": m, "N": n, "causal": causal, "attn": ours, "torch": theirs})
    for kind in ("f32", "f16", "bf16"):
        mine = [r for r in rows if r["type"] == kind]
        worst = max(mine, key=lambda r: r["attn"] / max(r["torch"], 1e-30))
        for r in (worst, max(mine, key=lambda r: r["attn"]), max(mine, key=lambda r: r["torch"]), min(mine, key=lambda r: r["torch"])):
            print(
                f"{r['type']:5} {r['D']:4} {r['M']:5} {r['N']:5} {'causal' if r['causal'] else 'full':6} "
                f"{r['attn']:9.2e} {r['torch']:9.2e} {r['attn'] / max(r['torch'], 1e-30):6.2f}"
            )
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump({"torch": torch.__version__, "rows": rows}, file, indent=0)
            file.write("\n")


if __name__ == "__main__":
    main()
