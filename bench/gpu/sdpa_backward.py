#!/usr/bin/env python3
"""Gradients by kernels of attn-opt beside PyTorch's (cuDNN, FlashAttention-2), alternating in one process.

    sdpa_backward.py emit DIR --bin build/dev/bin          # no GPU: PTX and plans
    sdpa_backward.py measure DIR [--configs 'd128-*'] [--out sdpa-backward.json]

TFLOP/s count five products, whatever a kernel computes. PyTorch's times are those of torch.autograd.grad on a graph
that is kept; with its launches, which short problems feel.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

DIMS, MASKS, LENGTHS = (64, 128, 256), ("full", "causal"), (512, 2048, 8192, 16384)
TOKENS, HIDDEN = 16384, 2048


def make_source(mask: str, d: int) -> str:
    t, row = f"tensor<?x?x?x{d}xbf16>", "tensor<?x?x?xf32>"
    variants = " variants [#attn.causal<top_left>]" if mask == "causal" else ""
    return (
        f"func.func @gradient(%q: {t}, %k: {t}, %v: {t}, %o: {t}, %lse: {row}, %do: {t}) -> ({t}, {t}, {t}) {{\n"
        f"  %g:3 = attn.attention_grad %q, %k, %v, %o, %lse, %do{variants}\n"
        f"    : {t}, {t}, {t}, {t}, {row}, {t} -> d_query({t}) d_key({t}) d_value({t})\n"
        f"  return %g#0, %g#1, %g#2 : {t}, {t}, {t}\n"
        "}\n"
    )


def emit(o: argparse.Namespace) -> int:
    o.directory.mkdir(parents=True, exist_ok=True)
    for d in DIMS:
        for mask in MASKS:
            path = o.directory / f"{mask}-{d}"
            command = [str(Path(o.bin, "attn-opt")), "-", "--attn-to-online=target=cuda", "--online-to-tile",
                       "--tile-to-async", "--lower-affine", "--canonicalize", "--cse", "--convert-tile-to-nvvm",
                       f"--emit-ptx=ptx={path}.ptx plan={path}.json", "-o", "/dev/null"]
            done = subprocess.run(command, input=make_source(mask, d), text=True)
            if done.returncode:
                return done.returncode
    return 0


def attend(q: Any, k: Any, v: Any, causal: bool) -> Tuple[Any, Any]:
    """Output and lse of each head in f32, a block of rows at a time."""
    import torch

    scale, length = 1 / math.sqrt(q.shape[-1]), q.shape[2]
    out, lse = torch.empty_like(q), torch.empty(q.shape[:3], device=q.device, dtype=torch.float32)
    for m in range(0, length, 1024):
        s = (q[:, :, m:m + 1024].float() @ k.float().transpose(2, 3)) * scale
        if causal:
            rows = torch.arange(m, m + s.shape[2], device=q.device)[:, None]
            s.masked_fill_(torch.arange(length, device=q.device)[None] > rows, -math.inf)
        lse[:, :, m:m + 1024] = torch.logsumexp(s, 3)
        out[:, :, m:m + 1024] = (torch.softmax(s, 3) @ v.float()).to(q.dtype)
    return out, lse


def make_peers(q: Any, k: Any, v: Any, gradient: Any, causal: bool) -> Dict[str, Callable[[], Any]]:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    calls: Dict[str, Callable[[], Any]] = {}
    for name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash2", SDPBackend.FLASH_ATTENTION)):
        inputs = [x.detach().requires_grad_() for x in (q, k, v)]
        try:
            with sdpa_kernel(backend):
                out = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=causal)
            call = lambda out=out, inputs=inputs: torch.autograd.grad(out, inputs, gradient, retain_graph=True)
            call()
            calls[name] = call
        except RuntimeError as error:
            print(f"{name}: {str(error).splitlines()[0]}")
    return calls


def measure_problem(o: argparse.Namespace, mask: str, d: int, length: int) -> Dict[str, Any]:
    import torch

    import measure
    from ptx_kernel import PtxKernel

    torch.manual_seed(length + d)
    batch, heads, causal = max(1, TOKENS // length), HIDDEN // d, mask == "causal"
    q, k, v, gradient = (torch.randn(batch, heads, length, d, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    out, lse = attend(q, k, v, causal)
    kernel = PtxKernel(o.directory / f"{mask}-{d}.ptx", o.directory / f"{mask}-{d}.json")
    results = [torch.full_like(q, math.nan) for _ in range(3)]
    calls = {"attn": kernel.bind([q, k, v, out, lse, gradient, *results])}
    calls.update(make_peers(q, k, v, gradient, causal))
    calls["attn"]()
    torch.cuda.synchronize()
    errors = {name: [measure.max_relative(x, theirs) for x, theirs in zip(results, calls[name]())]
              for name in calls if name != "attn"}
    times = measure.interleave(calls, o.rounds, o.seconds)
    flops = 5 * 2 * batch * heads * length * length * d * (0.5 if causal else 1)
    row = {"mask": mask, "D": d, "S": length, "B": batch, "H": heads, "errors": errors,
           "warnings": kernel.warnings, "kernels": [vars(facts) for facts in kernel.facts],
           "tflops": {name: measure.tflops(flops, times[name]) for name in times}}
    print(f"{mask:7} D={d:3} S={length:5} " + "  ".join(f"{n} {x:6.1f}" for n, x in row["tflops"].items()),
          {n: f"{max(e):.1e}" for n, e in errors.items()}, *kernel.warnings, flush=True)
    return row


def measure_all(o: argparse.Namespace) -> int:
    import measure

    configs = [(mask, d, s) for d in DIMS for mask in MASKS for s in LENGTHS]
    chosen = [c for c in configs if any(fnmatch.fnmatch(f"d{c[1]}-{c[0]}-s{c[2]}", p) for p in o.configs.split(","))]
    rows = [measure_problem(o, *config) for config in chosen]
    if o.out:
        result = {"machine": measure.describe_machine(), "rounds": o.rounds, "seconds": o.seconds, "problems": rows}
        Path(o.out).write_text(json.dumps(result, indent=1) + "\n")
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    emitting = commands.add_parser("emit", help="write PTX and plans")
    emitting.add_argument("directory", type=Path)
    emitting.add_argument("--bin", default="build/dev/bin", help="the folder of attn-opt (default: %(default)s)")
    emitting.set_defaults(run=emit)
    measuring = commands.add_parser("measure", help="time the kernels beside PyTorch's")
    measuring.add_argument("directory", type=Path)
    measuring.add_argument("--configs", default="*", help="patterns of names like d128-causal-s8192, with commas")
    measuring.add_argument("--rounds", type=int, default=5)
    measuring.add_argument("--seconds", type=float, default=0.3, help="per kernel and round (default: %(default)s)")
    measuring.add_argument("--out", help="write the result here, as JSON")
    measuring.set_defaults(run=measure_all)
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parse_arguments()
    raise SystemExit(arguments.run(arguments))
