#!/usr/bin/env python3
"""Counters of attn and its peers side by side, by Nsight Compute: stalls, conflicts, pipes, clocks, idle multiprocessors.

    counters.py --configs 'd128-causal-s4096' --passes forward backward --out counters.json
    counters.py --configs 'd128-causal-s4096' --passes backward --lines --bin build/dev/bin    # samples of our kernels, by line of PTX

A config is one of bench/gpu/sdpa.py. Each candidate is profiled in a process of its own: one call, after some that were not
profiled, at the clock that the chip takes by itself. The candidates are timed beside each other first (measure.interleave),
for a profiled launch is neither warm nor sustained. `--lines` compiles attn's own text, assembles it by ptxas with line
numbers, which changes no instruction, and needs ptxas and nvdisasm (`make assembler`). What is missing is told and left out;
without ncu the script says so and exits with 1.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import ncu_report

Call = Callable[[], Any]
PASSES = ("forward", "backward")
OURS, OUR_PTX = "attn", "attn-ptx"
# Calls before the one that is profiled: allocations, tuning, first launches.
WARM_UP = 3


class Missing(Exception):
    """A tool that is not there; the message says where it comes from."""


def find_tool(name: str, source: str) -> str:
    found = shutil.which(name)
    if not found:
        raise Missing(f"{name}: expected it in $PATH, got none ({source})")
    return found


def run_tool(command: Sequence[str], environment: Optional[Dict[str, str]] = None) -> str:
    """Everything that it prints; it says there what went wrong, and programs under it fail with other codes."""
    done = subprocess.run(list(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    return done.stdout


def query_metrics(ncu: str) -> Tuple[Dict[str, str], List[str]]:
    text = run_tool([ncu, "--query-metrics"])
    chosen, stalls = ncu_report.choose_metrics(text.splitlines())
    if "time_ns" not in chosen:
        raise ncu_report.ReportError(f"expected ncu to list its counters, got: {text.strip()[-300:] or 'nothing'}")
    return chosen, stalls


def make_command(ncu: str, what: Sequence[str], program: Sequence[str]) -> List[str]:
    """Of one candidate: what it launches between the marks of its own process, at the clock as it is."""
    return [ncu, "--csv", "--print-units", "base", "--clock-control", "none", "--profile-from-start", "off",
            "--target-processes", "application-only", *what, sys.executable, __file__, *program]


# Of the process that is profiled.


def make_calls(config_name: str, pass_: str, names: Sequence[str]) -> Tuple[Dict[str, Call], float]:
    """Those of `names` that are there, on one config, and the operations of a call."""
    import torch
    from peers import make_peers
    from sdpa import list_configs, make_ours, make_problem
    from sdpa_backward import make_backward

    tensors, variant, flops = make_problem(next(c for c in list_configs("*") if c.name == config_name))
    is_backward = pass_ == "backward"
    if is_backward:
        tensors = [x.requires_grad_() for x in tensors]
    calls: Dict[str, Call] = {OURS: make_ours(variant, *tensors)} if OURS in names else {}
    calls.update(make_peers([name for name in names if name != OURS], variant, *tensors))
    if not is_backward:
        return calls, flops
    d_output = torch.randn_like(tensors[0], requires_grad=False)
    return {name: make_backward(call, getattr(call, "tensors", tensors), d_output) for name, call in calls.items()}, 2.5 * flops


def bind_ptx(config_name: str, pass_: str, code: str, plan: str) -> Call:
    """Our kernels from machine code, on tensors of PyTorch: what attn.explain's source takes, in order."""
    import torch
    from ptx_kernel import PtxKernel
    from sdpa import list_configs, make_problem

    (q, k, v), _, _ = make_problem(next(c for c in list_configs("*") if c.name == config_name))
    lse = torch.zeros(q.shape[:3], device="cuda")
    arguments = [q, k, v, torch.empty_like(v)]
    if pass_ == "backward":
        arguments += [lse, torch.randn_like(v), *(torch.empty_like(x) for x in (q, k, v))]
    return PtxKernel(code, plan).bind(arguments)


def run_profiled(call: Call) -> None:
    import torch

    for _ in range(WARM_UP):
        call()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    call()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


# Of the process that asks.


def profile(ncu: str, metrics: Tuple[Dict[str, str], List[str]], config: str, pass_: str, name: str) -> List[ncu_report.Launch]:
    chosen, stalls = metrics
    what = ["--page", "raw", "--metrics", ",".join([*chosen.values(), *stalls])]
    return ncu_report.read_launches(run_tool(make_command(ncu, what, ["--run", name, config, pass_])), chosen)


def time_candidates(config: str, pass_: str, o: argparse.Namespace) -> Dict[str, Any]:
    """Sustained rates of who is there, with every round."""
    import measure

    calls, flops = make_calls(config, pass_, [OURS, *[p for p in o.peers.split(",") if p]])
    times = measure.interleave(calls, o.rounds, o.seconds)
    return {"ms": times, "tflops": {name: measure.tflops(flops, t) for name, t in times.items()}}


def compile_ours(config: str, pass_: str, o: argparse.Namespace, folder: Path) -> Tuple[Path, Path, Path]:
    """PTX, machine code that knows its lines, and plan of what attn runs there: of ways, those for short and other sequences."""
    import attn
    from sdpa import list_configs

    translate = str(Path(o.bin, "attn-translate")) if o.bin else find_tool("attn-translate", "a wheel of attn, or --bin")
    ptxas = find_tool("ptxas", "make assembler")
    problem = next(c for c in list_configs("*") if c.name == config)
    source, ptx, plan, code = (folder / f"attn.{kind}" for kind in ("mlir", "ptx", "json", "cubin"))
    told = attn.explain("bfloat16", problem.d, causal=problem.variant == "causal", device="cuda", until="problem",
                        gradient=pass_ == "backward")
    source.write_text(told.source)
    for command in ([translate, str(source), "--target=sm_90a", "--until=ptx", "-o", str(ptx), f"--plan={plan}"],
                    [ptxas, "-arch=sm_90a", "-lineinfo", str(ptx), "-o", str(code)]):
        words = run_tool(command)
        if not Path(command[command.index("-o") + 1]).exists():
            raise ncu_report.ReportError(f"expected {Path(command[0]).name} to compile, got: {words[-300:]}")
    return ptx, code, plan


def sample_lines(ncu: str, config: str, pass_: str, o: argparse.Namespace) -> Dict[str, Any]:
    """For each of our kernels the lines of PTX with most samples. Prints them."""
    nvdisasm = find_tool("nvdisasm", "make assembler")
    with tempfile.TemporaryDirectory() as folder:
        ptx, code, plan = compile_ours(config, pass_, o, Path(folder))
        what = ["--page", "source", "--print-source", "sass", "--section", "SourceCounters"]
        program = ["--run", OUR_PTX, config, pass_, "--code", str(code), "--plan", str(plan)]
        sampled = ncu_report.read_instructions(run_tool(make_command(ncu, what, program)))
        lines = ncu_report.read_lines(run_tool([nvdisasm, "--print-line-info-ptx", str(code)]))
        text = ptx.read_text().splitlines()
    found: Dict[str, Any] = {}
    for kernel, instructions in sampled.items():
        name = kernel.partition("(")[0].split()[-1]
        rows = ncu_report.add_by_line(instructions, lines[name])
        total = sum(row.samples for _, row in rows) or 1
        found[name] = [
            {"line": line, "ptx": text[line - 1].strip() if line else "", "became": row.text, "samples": row.samples,
             "percent": 100 * row.samples / total, "stalls": dict(sorted(row.stalls.items(), key=lambda x: -x[1])[:4])}
            for line, row in rows[: o.top] if row.samples
        ]
        print(f"{name}: {total} samples")
        for row in found[name]:
            stalls = " ".join(f"{reason} {count}" for reason, count in row["stalls"].items())
            print(f"  {row['percent']:5.1f} %  line {row['line']}  {row['ptx'][:60]:60}  {row['became'][:40]:40}  {stalls}")
    return found


def measure_cell(ncu: str, metrics: Tuple[Dict[str, str], List[str]], config: str, pass_: str, o: argparse.Namespace) -> Dict[str, Any]:
    row: Dict[str, Any] = {"config": config, "pass": pass_, **time_candidates(config, pass_, o)}
    launches: Dict[str, List[ncu_report.Launch]] = {}
    for name in row["ms"]:
        try:
            launches[name] = profile(ncu, metrics, config, pass_, name)
        except ncu_report.ReportError as error:
            print(f"  {name} left out: {error}")
    print(f"\n{config} {pass_}: " + ", ".join(f"{name} {rate:.0f}" for name, rate in row["tflops"].items()) + " TFLOP/s\n")
    if launches:
        print("\n".join(ncu_report.make_table(launches)), flush=True)
    row["launches"] = {name: [{**vars(x), "idle_percent": x.idle_percent} for x in all_] for name, all_ in launches.items()}
    if o.lines:
        try:
            row["lines"] = sample_lines(ncu, config, pass_, o)
        except (Missing, ncu_report.ReportError) as error:
            print(f"  lines left out: {error}")
    return row


def without_nan(value: Any) -> Any:
    """JSON has no number for what was not counted."""
    if isinstance(value, dict):
        return {name: without_nan(x) for name, x in value.items()}
    if isinstance(value, list):
        return [without_nan(x) for x in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def parse_arguments(arguments: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configs", default="d128-causal-s4096", help="patterns of names of sdpa.py, with commas between")
    parser.add_argument("--passes", nargs="+", choices=PASSES, default=list(PASSES))
    parser.add_argument("--peers", default="cudnn,fa3,fa4", help="who stands beside attn (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.15, help="per candidate and round (default: %(default)s)")
    parser.add_argument("--lines", action="store_true", help="samples of attn's kernels by line of PTX, too")
    parser.add_argument("--top", type=int, default=24, help="how many lines of a kernel (default: %(default)s)")
    parser.add_argument("--bin", help="the folder of attn-translate (default: on the path)")
    parser.add_argument("--ncu", default="ncu", help="Nsight Compute (default: %(default)s)")
    parser.add_argument("--out", help="write the result here, as JSON")
    parser.add_argument("--run", nargs=3, metavar=("CANDIDATE", "CONFIG", "PASS"), help="be the process that is profiled")
    parser.add_argument("--code", help="with --run attn-ptx: machine code")
    parser.add_argument("--plan", help="with --run attn-ptx: its plan")
    return parser.parse_args(arguments)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    o = parse_arguments(arguments)
    if o.run:
        name, config, pass_ = o.run
        call = bind_ptx(config, pass_, o.code, o.plan) if name == OUR_PTX else make_calls(config, pass_, [name])[0].get(name)
        if call is None:
            return 1
        run_profiled(call)
        return 0
    try:
        ncu = find_tool(o.ncu, "Nsight Compute, of the CUDA toolkit or the package nsight-compute")
        metrics = query_metrics(ncu)
    except (Missing, ncu_report.ReportError) as error:
        print(f"counters.py: {error}", file=sys.stderr)
        return 1
    import measure
    from sdpa import list_configs

    configs = [c.name for c in list_configs(o.configs) if c.variant in ("full", "causal")]
    if not configs:
        print(f"counters.py: --configs: expected a pattern of some name of sdpa.py, got {o.configs}", file=sys.stderr)
        return 1
    rows = [measure_cell(ncu, metrics, config, pass_, o) for config in configs for pass_ in o.passes]
    if o.out:
        result = {"machine": measure.describe_machine(), "rounds": o.rounds, "seconds": o.seconds,
                  "ncu": run_tool([ncu, "--version"]).strip().splitlines()[-1], "counters": metrics[0], "cells": without_nan(rows)}
        Path(o.out).write_text(json.dumps(result, indent=1) + "\n")
    return int(any(OURS not in row["launches"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
