#!/usr/bin/env python3
"""Gradients of attention on the CPU: attn's and PyTorch's backward pass, alternating in one process on the same tensors.

Both read the same output and log-sum-exp, those of PyTorch's forward pass. Writes a JSON file with every round and the load of
the machine, and prints a table of each side's best round: on a machine that is shared, medians compare what others did. FLOPs
are 10 B H M N D, what five products take, half of that for causal; attn computes seven products.
"""

import json
import math
import os

import torch

from sdpa import TYPES, Kernel, describe_run, load, parse_arguments, relative_error, sustained


def source(kind, d, causal):
    """The gradients as a user writes them: every length is dynamic."""
    t, row = f"tensor<?x?x?x{d}x{kind}>", "tensor<?x?x?xf32>"
    variants = "variants [#attn.causal<top_left>] " if causal else ""
    return (
        f"func.func @gradients(%q: {t}, %k: {t}, %v: {t}, %o: {t}, %lse: {row}, %do: {t}) -> ({t}, {t}, {t}) {{\n"
        f"  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do {variants}\n"
        f"    : {t}, {t}, {t}, {t}, {row}, {t} -> d_query({t}) d_key({t}) d_value({t})\n"
        f"  return %g#0, %g#1, %g#2 : {t}, {t}, {t}\n}}\n"
    )


def measure(library, kind, d, causal, shape, arguments):
    b, h, s = shape
    torch.manual_seed(d + causal)
    q, k, v, do = (torch.randn(b, h, s, d).to(TYPES[kind]) for _ in range(4))
    aten = torch.ops.aten
    o, lse = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal)
    outs = [torch.full_like(q, math.nan) for _ in range(3)]
    kernel = Kernel(library, source(kind, d, causal), arguments.threads)
    ours = kernel.bind(q, k, v, o, lse.contiguous(), do, *outs)

    def theirs():
        return aten._scaled_dot_product_flash_attention_for_cpu_backward(do, q, k, v, o, lse, 0.0, causal)

    ours()
    difference = max(relative_error(x, y.double()) for x, y in zip(outs, theirs()))
    flops = 10 * b * h * s * s * d * (0.5 if causal else 1)
    rounds = [(sustained(ours, arguments.seconds), sustained(theirs, arguments.seconds)) for _ in range(arguments.rounds)]
    mine, other = (flops / min(r[i] for r in rounds) / 1e9 for i in (0, 1))
    print(
        f"{kind:5} {d:4} {'causal' if causal else 'full':6} {mine:8.1f} {other:8.1f} {mine / other:6.2f} "
        f"{kernel.compile_ms:8.0f} {difference:11.1e}",
        flush=True,
    )
    return {
        "type": kind,
        "D": d,
        "causal": causal,
        "attn_gflops": mine,
        "torch_gflops": other,
        "ratio": mine / other,
        "compile_ms": kernel.compile_ms,
        "difference": difference,
        "seconds": rounds,
    }


def main():
    arguments = parse_arguments(__doc__, rounds=4, seconds=0.1, shape="1,2,4096")
    torch.set_num_threads(arguments.threads)
    library = load(arguments.native)
    shape = tuple(map(int, arguments.shape.split(",")))
    result = describe_run(arguments.threads) | {"load_before": os.getloadavg()[0], "shape": shape}
    print(f"{result['cpu']}, {arguments.threads} threads, B, H, S = {shape}; GFLOP/s, best of {arguments.rounds} rounds; load {result['load_before']:.1f}")
    print(f"{'type':5} {'D':>4} {'mask':6} {'attn':>8} {'torch':>8} {'ratio':>6} {'compile':>8} {'difference':>11}")
    for kind in arguments.types.split(","):
        for d in map(int, arguments.dims.split(",")):
            for causal in (False, True):
                result["rows"].append(measure(library, kind, d, causal, shape, arguments))
    result["load_after"] = os.getloadavg()[0]
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(result, file, indent=0)
            file.write("\n")


if __name__ == "__main__":
    main()
