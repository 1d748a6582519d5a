#!/usr/bin/env python3
"""Schedules of one problem: what the simulator predicts beside what a GPU measures.

    schedules.py emit DIR --bin build/release/bin       # no GPU: PTX, plans and predictions
    schedules.py measure DIR --out schedules.json       # no compiler: PyTorch and the driver

`emit` lowers a problem with every schedule, drops what the assembler spills or serialises, and predicts the
rest. `measure` checks each kernel against f64, times all of a problem in turns, and prints both times and
Spearman's correlation of their ranks: 1 where the cost model orders the schedules as the GPU does.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

VARIANTS = {"full": "", "causal": " variants [#attn.causal<bottom_right>]"}
INDEX = "index.json"
Schedule = Dict[str, Any]


def rank(values: Sequence[float]) -> List[float]:
    """Places from 1 on; equal values share the mean of theirs."""
    return [sum(v < value for v in values) + (sum(v == value for v in values) + 1) / 2 for value in values]


def spearman(x: Sequence[float], y: Sequence[float]) -> float:
    """The correlation of the ranks; 0 where all of one side are equal."""
    a, b = rank(x), rank(y)
    mean = (len(a) + 1) / 2
    products = sum((i - mean) * (j - mean) for i, j in zip(a, b))
    scale = math.sqrt(sum((i - mean) ** 2 for i in a) * sum((j - mean) ** 2 for j in b))
    return products / scale if scale else 0.0


# ------------------------------------------------------------------------------------------------
# Without a GPU
# ------------------------------------------------------------------------------------------------


def make_source(variant: str, d: int) -> str:
    t = f"tensor<?x?x?x{d}xbf16>"
    return (
        f"func.func @attention(%q: {t}, %k: {t}, %v: {t}) -> {t} {{\n"
        f"  %o = attn.attention %q, %k, %v{VARIANTS[variant]} : {t}, {t}, {t} -> {t}\n"
        f"  return %o : {t}\n"
        "}\n"
    )


def get_tool(o: argparse.Namespace, name: str) -> str:
    return str(Path(o.bin, name)) if o.bin else name


def run_tool(*command: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


def emit_schedule(o: argparse.Namespace, source: Path, variant: str, rows: int, keys: int, stages: int) -> Schedule:
    """PTX and plan of one schedule beside `source`. `dropped` says why it is not measured."""
    name = f"{variant}-{rows}x{keys}-{stages}"
    schedule: Schedule = {"name": name, "variant": variant, "block_m": rows, "block_n": keys, "stages": stages}
    ptx, plan, cubin = (source.parent / f"{name}.{ending}" for ending in ("ptx", "json", "cubin"))

    def drop(why: str) -> Schedule:
        for path in (ptx, plan):
            path.unlink(missing_ok=True)
        return {**schedule, "dropped": why}

    lowered = run_tool(
        get_tool(o, "attn-opt"), source, f"--attn-to-thread=block-m={rows} block-n={keys} stages={stages}",
        f"--emit-ptx=ptx={ptx} plan={plan}", "-o", "/dev/null",
    )
    if lowered.returncode:
        return drop(next((line for line in lowered.stderr.splitlines() if "error:" in line), "attn-opt fails"))
    assembled = run_tool(o.ptxas, "-v", "-arch=sm_90a", ptx, "-o", cubin)
    cubin.unlink(missing_ok=True)
    complaints = re.findall(r"C75\d\d|[1-9]\d* bytes spill stores", assembled.stdout + assembled.stderr)
    if assembled.returncode or complaints:
        return drop(", ".join(sorted(set(complaints))) or assembled.stderr.strip())
    shape = f"B={o.batch},H={o.heads},Hkv={o.heads},M={o.length},N={o.length}"
    predicted = run_tool(
        get_tool(o, "attn-run"), source, "--device=sim", "--predict", "--json", "--shape", shape,
        f"--block-m={rows}", f"--block-n={keys}", f"--stages={stages}",
    )
    if predicted.returncode:
        return drop(predicted.stderr.strip())
    report = json.loads(predicted.stdout)
    return {**schedule, "predicted_ms": report["time_ms"], "in_use": report["simulator"]["in use"]}


def emit(o: argparse.Namespace) -> int:
    o.directory.mkdir(parents=True, exist_ok=True)
    schedules: List[Schedule] = []
    for variant in VARIANTS:
        source = o.directory / f"{variant}.mlir"
        source.write_text(make_source(variant, o.d))
        for rows, keys, stages in itertools.product(o.block_m, o.block_n, o.stages):
            schedule = emit_schedule(o, source, variant, rows, keys, stages)
            schedules.append(schedule)
            print(f"{schedule['name']:20} {schedule.get('dropped') or format(schedule['predicted_ms'], '.3f') + ' ms'}")
    problem = {"B": o.batch, "H": o.heads, "S": o.length, "D": o.d}
    (o.directory / INDEX).write_text(json.dumps({"problem": problem, "schedules": schedules}, indent=1) + "\n")
    return 0


# ------------------------------------------------------------------------------------------------
# On a GPU
# ------------------------------------------------------------------------------------------------


def measure_variant(o: argparse.Namespace, problem: Dict[str, int], variant: str, schedules: List[Schedule]) -> None:
    """Adds what was measured to each of `schedules`, or why it was not."""
    import torch

    import measure
    from peers import Checker
    from ptx_kernel import PtxKernel
    from variants import count_flops, make_variant

    b, h, s, d = (problem[letter] for letter in "BHSD")
    torch.manual_seed(0)
    q, k, v = (torch.randn(b, h, s, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    check = Checker(make_variant(variant, b, h, s), q, k, v)
    calls = {}
    for schedule in schedules:
        path = o.directory / schedule["name"]
        kernel = PtxKernel(path.with_name(path.name + ".ptx"), path.with_name(path.name + ".json"))
        out = torch.full_like(q, math.nan)
        call = kernel.bind([q, k, v, out])
        call()
        torch.cuda.synchronize()
        schedule["error"] = check(out)
        # The limit of compare_ptx.py where there is no peer.
        if not schedule["error"] <= 0.05:
            schedule["dropped"] = f"error {schedule['error']:.1e}"
        elif kernel.warnings:
            schedule["dropped"] = ", ".join(kernel.warnings)
        else:
            calls[schedule["name"]] = call
    flops = count_flops(make_variant(variant, b, h, s), b, h, s, d, d)
    times = measure.interleave(calls, o.rounds, o.seconds)
    for schedule in schedules:
        if rounds := times.get(schedule["name"]):
            schedule.update(measured_ms=statistics.median(rounds), spread=measure.spread(rounds),
                            tflops=measure.tflops(flops, rounds))


def print_table(variant: str, schedules: List[Schedule]) -> Optional[float]:
    """Fastest first. The correlation of the ranks."""
    timed = sorted((s for s in schedules if "measured_ms" in s), key=lambda s: s["measured_ms"])
    if len(timed) < 2:
        return None
    places = rank([s["predicted_ms"] for s in timed])
    correlation = spearman([s["predicted_ms"] for s in timed], [s["measured_ms"] for s in timed])
    print(f"{variant}: Spearman {correlation:.3f} of {len(timed)} schedules")
    for place, (schedule, predicted) in enumerate(zip(timed, places), 1):
        print(f"  {schedule['name']:20} measured {schedule['measured_ms']:.3f} ms ({schedule['tflops']:.0f} TFLOP/s "
              f"+-{schedule['spread'] / 2:.1%}), place {place}; predicted {schedule['predicted_ms']:.3f} ms, "
              f"place {predicted:g}; err {schedule['error']:.1e}")
    return correlation


def measure_all(o: argparse.Namespace) -> int:
    import measure

    index = json.loads((o.directory / INDEX).read_text())
    kept = [schedule for schedule in index["schedules"] if "dropped" not in schedule]
    correlations = {}
    for variant in VARIANTS:
        schedules = [schedule for schedule in kept if schedule["variant"] == variant]
        if not schedules:
            continue
        measure_variant(o, index["problem"], variant, schedules)
        correlations[variant] = print_table(variant, schedules)
        for schedule in schedules:
            if "dropped" in schedule:
                print(f"  {schedule['name']:20} dropped: {schedule['dropped']}")
    result = {"machine": measure.describe_machine(), **index, "spearman": correlations}
    o.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    emitting = commands.add_parser("emit", help="without a GPU: PTX, plans and predictions into DIR")
    emitting.add_argument("directory", type=Path, metavar="DIR")
    emitting.add_argument("--bin", help="where attn-opt and attn-run are; default: on the PATH")
    emitting.add_argument("--ptxas", default="ptxas")
    emitting.add_argument("--batch", type=int, default=2)
    emitting.add_argument("--heads", type=int, default=16)
    emitting.add_argument("--length", type=int, default=8192)
    emitting.add_argument("--d", type=int, default=128)
    numbers = lambda text: [int(number) for number in text.split(",")]
    emitting.add_argument("--block-m", type=numbers, default=[64, 128, 192], metavar="N,...", help="rows of a block")
    emitting.add_argument("--block-n", type=numbers, default=list(range(64, 177, 16)), metavar="N,...", help="keys")
    emitting.add_argument("--stages", type=numbers, default=[2, 3], metavar="N,...", help="tiles in flight")
    emitting.set_defaults(run=emit)
    measuring = commands.add_parser("measure", help="on a GPU: times what DIR holds")
    measuring.add_argument("directory", type=Path, metavar="DIR")
    measuring.add_argument("--out", type=Path, required=True)
    measuring.add_argument("--rounds", type=int, default=3)
    measuring.add_argument("--seconds", type=float, default=0.4, help="per schedule and round")
    measuring.set_defaults(run=measure_all)
    return parser.parse_args()


def main() -> int:
    o = parse_arguments()
    return o.run(o)


if __name__ == "__main__":
    sys.exit(main())
