#!/usr/bin/env python3
"""Kernels of two revisions of the compiler, alternating in one process: what a change to the PTX costs.

    revisions.py emit OLD --bin ../old/build/dev/bin     # no GPU: PTX and plans of the grid and the variants
    revisions.py emit NEW --bin build/dev/bin
    revisions.py measure OLD NEW --out revisions.json    # no compiler: PyTorch and the driver

Or of two schedules of some kernels, on other shapes too:

    revisions.py emit OLD --kernels full-128
    revisions.py emit NEW --kernels full-128 --schedule "block-m=192 block-n=80 stay=true slack=8"
    revisions.py measure OLD NEW --shapes 4x64x4096x77

The grid is that of bench/gpu/sdpa.py: bf16, D in 64, 128 and 256, full and causal, S from 512 to 16384, 16384 tokens;
the variants are at S = 8192, D = 128, B = 2, H = 16. Kernels of equal text are listed and not timed. Each kernel is
checked against f64 on some rows first. Exits with 1 where one is wrong.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple

HEAD_DIMS, LENGTHS = (64, 128, 256), (512, 1024, 2048, 4096, 8192, 16384)
CAUSAL = "#attn.causal<bottom_right>"
# The attributes of each variant and the types of what it captures.
VARIANTS: Dict[str, Tuple[List[str], List[str]]] = {
    "full": ([], []),
    "causal": ([CAUSAL], []),
    "softcap": (["#attn.softcap<30.0 : f32>", CAUSAL], []),
    "alibi": (["#attn.alibi<bottom_right>", CAUSAL], ["tensor<?xf32>"]),
    "relbias": (["#attn.relative_bias<0, bottom_right>", CAUSAL], ["tensor<?x?xbf16>"]),
    "window1024": ([CAUSAL, "#attn.window<1024, -1, bottom_right>"], []),
    "document": (["#attn.document", CAUSAL], ["tensor<?x?xi32>", "tensor<?x?xi32>"]),
    "prefix2048": (["#attn.prefix<2048, bottom_right>"], []),
}
KERNELS = [(name, d) for d in HEAD_DIMS for name in ("full", "causal")]
KERNELS += [(name, 128) for name in VARIANTS if (name, 128) not in KERNELS]
# The seventh variant is causal itself, at the variants' own B and H.
PROBLEMS = [(name, d, length, max(1, 16384 // length), 2048 // d)
            for d in HEAD_DIMS for name in ("full", "causal") for length in LENGTHS]
PROBLEMS += [(name, 128, 8192, 2, 16) for name in VARIANTS if name not in ("full", "causal")]


def make_source(name: str, d: int) -> str:
    t = f"tensor<?x?x?x{d}xbf16>"
    attributes, types = VARIANTS[name]
    names = [f"%c{i}" for i in range(len(types))]
    arguments = "".join(f", {x}: {type_}" for x, type_ in zip(names, types))
    text = f" variants [{', '.join(attributes)}]" if attributes else ""
    text += f" captures({', '.join(names)} : {', '.join(types)})" if types else ""
    return (
        f"func.func @attention(%q: {t}, %k: {t}, %v: {t}{arguments}) -> {t} {{\n"
        f"  %o = attn.attention %q, %k, %v{text} : {t}, {t}, {t} -> {t}\n"
        f"  return %o : {t}\n"
        "}\n"
    )


def list_passes(path: Path, schedule: str = "", target: str = "cuda") -> List[str]:
    """What attn-opt takes to write `path`.ptx and `path`.json for a machine: Hopper, unless one is named."""
    return [f"--attn-to-online=target={target} {schedule}", "--online-to-tile", "--tile-to-async", "--async-to-thread",
            f"--emit-ptx=ptx={path}.ptx plan={path}.json", "-o", "/dev/null"]


def emit(o: argparse.Namespace) -> int:
    o.directory.mkdir(parents=True, exist_ok=True)
    chosen = [(name, d) for name, d in KERNELS if any(fnmatch.fnmatch(f"{name}-{d}", p) for p in o.kernels.split(","))]
    if not chosen:
        print(f"--kernels: expected patterns of {', '.join(f'{n}-{d}' for n, d in KERNELS)}, got {o.kernels}")
        return 1
    for name, d in chosen:
        command = [str(Path(o.bin, "attn-opt")), "-", *list_passes(o.directory / f"{name}-{d}", o.schedule, o.target)]
        done = subprocess.run(command, input=make_source(name, d), text=True)
        if done.returncode:
            return done.returncode
    return 0


def measure_problem(o: argparse.Namespace, name: str, d: int, length: int, batch: int, heads: int, keys: int = 0) -> Dict[str, Any]:
    """Of as many keys as rows unless `keys` says how many."""
    import torch

    import measure
    from peers import Checker
    from ptx_kernel import PtxKernel
    from variants import count_flops, make_variant

    torch.manual_seed(length + d)
    q, k, v = (torch.randn(batch, heads, n, d, device="cuda", dtype=torch.bfloat16) for n in (length, keys or length, keys or length))
    variant = make_variant(name, batch, heads, length)
    check = Checker(variant, q, k, v)
    calls, errors = {}, {}
    for side, folder in (("old", o.old), ("new", o.new)):
        out = torch.full_like(q, math.nan)
        kernel = PtxKernel(folder / f"{name}-{d}.ptx", folder / f"{name}-{d}.json")
        calls[side] = kernel.bind([q, k, v, *variant.captures.values(), out])
        calls[side]()
        torch.cuda.synchronize()
        errors[side] = check(out)
    times = measure.interleave(calls, o.rounds, o.seconds)
    flops = 4.0 * batch * heads * length * keys * d if keys else count_flops(variant, batch, heads, length, d, d)
    row = {"variant": name, "D": d, "S": length, "N": keys or length, "B": batch, "H": heads, "errors": errors,
           "tflops": {side: measure.tflops(flops, times[side]) for side in times},
           "new_over_old": measure.ratio(times["new"], times["old"])}
    row["right"] = errors["new"] <= 1.5 * errors["old"] + 1e-3
    print(f"{name:11} D={d:3} S={length:5} {row['tflops']['old']:7.1f} -> {row['tflops']['new']:7.1f} TFLOP/s"
          f"  {row['new_over_old']:.3f}  err {errors['old']:.1e} -> {errors['new']:.1e}"
          f"{'' if row['right'] else ' WRONG'}", flush=True)
    return row


def measure_all(o: argparse.Namespace) -> int:
    import measure

    read = lambda folder, name, d: (folder / f"{name}-{d}.ptx").read_text()
    known = [(name, d) for name, d in KERNELS if all((folder / f"{name}-{d}.ptx").exists() for folder in (o.old, o.new))]
    if not known:
        print(f"expected kernels that both {o.old} and {o.new} hold, got none")
        return 1
    same = {(name, d) for name, d in known if read(o.old, name, d) == read(o.new, name, d)}
    problems = [problem for problem in PROBLEMS if problem[:2] in known]
    if o.shapes:
        if any(m != n for _, _, m, n in o.shapes) and any(name != "full" for name, _ in known):
            print(f"--shapes: expected as many keys as rows for {', '.join(f'{n}-{d}' for n, d in known)}: masks start in one corner")
            return 1
        problems = [(name, d, m, b, h, n) for name, d in known for b, h, m, n in o.shapes]
    print("kernels of the same text:", ", ".join(f"{name}-{d}" for name, d in sorted(same)) or "none")
    rows = [measure_problem(o, *problem) for problem in problems if o.all or problem[:2] not in same]
    ratios = [row["new_over_old"] for row in rows]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if rows else 1.0
    print(f"{len(rows)} of {len(problems)} problems timed, geometric mean {mean:.4f}, "
          f"from {min(ratios, default=1):.3f} to {max(ratios, default=1):.3f}")
    if o.out:
        result = {"machine": measure.describe_machine(), "same": sorted(f"{n}-{d}" for n, d in same),
                  "rounds": o.rounds, "seconds": o.seconds, "geometric_mean": mean, "problems": rows}
        Path(o.out).write_text(json.dumps(result, indent=1) + "\n")
    return int(not all(row["right"] for row in rows))


def read_shape(text: str) -> List[int]:
    sizes = [int(size) for size in text.split("x")]
    if len(sizes) != 4 or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"expected BxHxMxN, got {text}")
    return sizes


def add_emit(commands: Any, target: str) -> None:
    """The command `emit`, for a machine unless another one is named."""
    emitting = commands.add_parser("emit", help="write PTX and plans")
    emitting.add_argument("directory", type=Path)
    emitting.add_argument("--bin", default="build/dev/bin", help="the folder of attn-opt (default: %(default)s)")
    emitting.add_argument("--target", default=target, help="the machine (default: %(default)s)")
    emitting.add_argument("--kernels", default="*", help="patterns of names such as full-128, with commas between")
    emitting.add_argument("--schedule", default="", help="what attn-to-online takes besides, e.g. block-n=32")
    emitting.set_defaults(run=emit)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    add_emit(commands, target="cuda")
    measuring = commands.add_parser("measure", help="time the kernels of two folders in turns")
    measuring.add_argument("old", type=Path)
    measuring.add_argument("new", type=Path)
    measuring.add_argument("--shapes", type=read_shape, nargs="+", metavar="BxHxMxN", help="in place of the grid")
    measuring.add_argument("--rounds", type=int, default=5)
    measuring.add_argument("--seconds", type=float, default=0.3, help="per kernel and round (default: %(default)s)")
    measuring.add_argument("--all", action="store_true", help="time kernels of equal text too: the noise")
    measuring.add_argument("--out", help="write the result here, as JSON")
    measuring.set_defaults(run=measure_all)
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parse_arguments()
    sys.exit(arguments.run(arguments))
