#!/usr/bin/env python3
"""What a first call costs a processor: seconds of attn's compiler and of ptxas, for causal attention at D = 128 and its gradients.

    bench/assembling.py build/dev/bin                              # of one build
    bench/assembling.py build/dev/bin --beside ../old/build/dev/bin   # of two, in turn, and their ratio
    bench/assembling.py build/dev/bin --count                      # instructions of ptxas besides, by valgrind: the same each time

No GPU: ptxas stands for the driver's assembler. Each tool runs in a process of its own, on one core, and its user and system
time counts, start included. Other programs of the machine make times longer, never shorter, so the least of the runs is
told beside the median. A first call takes the way for all lengths alone, and a call that records its gradients takes the
attention with lse and the gradients. Where a wheel ships these kernels, a first call runs neither tool (decision 0082).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

T, ROWS = "tensor<?x?x?x128xbf16>", "tensor<?x?x?xf32>"
CAUSAL = "variants [#attn.causal<bottom_right>]"
FORWARD = f"""func.func @attention(%q: {T}, %k: {T}, %v: {T}) -> {T} {{
  %o = attn.attention %q, %k, %v {CAUSAL} : {T}, {T}, {T} -> {T}
  return %o : {T}
}}
"""
RECORDED = f"""func.func @attention(%q: {T}, %k: {T}, %v: {T}) -> ({T}, {ROWS}) {{
  %o, %lse = attn.attention %q, %k, %v {CAUSAL} : {T}, {T}, {T} -> {T}, {ROWS}
  return %o, %lse : {T}, {ROWS}
}}
"""
GRADIENT = f"""func.func @gradient(%q: {T}, %k: {T}, %v: {T}, %o: {T}, %lse: {ROWS}, %do: {T}) -> ({T}, {T}, {T}) {{
  %dq, %dk, %dv = attn.attention_grad %q, %k, %v, %o, %lse, %do {CAUSAL}
      : {T}, {T}, {T}, {T}, {ROWS}, {T} -> d_query({T}) d_key({T}) d_value({T})
  return %dq, %dk, %dv : {T}, {T}, {T}
}}
"""
# What a program runs first, and the functions that it compiles for that.
CALLS = {"forward": [FORWARD], "with gradients": [RECORDED, GRADIENT]}


def run(command: Sequence[str], core: int) -> float:
    """Seconds of its processor time."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    assert process.stderr
    error = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        sys.exit(f"assembling.py: {' '.join(command[:2])}: {error.strip()[-500:]}")
    return usage.ru_utime + usage.ru_stime


def count(command: Sequence[str]) -> float:
    """Millions of instructions."""
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run([*tool, *command], capture_output=True, text=True)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"assembling.py: valgrind: {done.stderr.strip()[-500:]}")
    return int(found.group(1).replace(",", "")) / 1e6


def make_commands(binaries: str, ptxas: str, sources: List[str], folder: Path) -> Dict[str, List[List[str]]]:
    """For each tool its commands. The texts are compiled once, so that ptxas has its inputs."""
    folder.mkdir()
    commands: Dict[str, List[List[str]]] = {"attn": [], "ptxas": []}
    for number, source in enumerate(sources):
        path = folder / f"{number}.mlir"
        path.write_text(source)
        compile_ = [str(Path(binaries, "attn-translate")), str(path), "--target=cuda", "--until=ptx", "--way=long", "-o", f"{path}.ptx"]
        run(compile_, min(os.sched_getaffinity(0)))
        commands["attn"].append(compile_)
        commands["ptxas"].append([ptxas, "-arch=sm_90a", f"{path}.ptx", "-o", f"{path}.cubin"])
    return commands


def measure(builds: Dict[str, Dict[str, List[List[str]]]], o: argparse.Namespace) -> Dict[str, Any]:
    """Of each build and tool: seconds of every run, in turns, and instructions where they are wanted."""
    times: Dict[str, Dict[str, List[float]]] = {name: {tool: [] for tool in commands} for name, commands in builds.items()}
    for number in range(o.runs):
        for name in list(builds)[:: 1 if number % 2 else -1]:
            for tool, commands in builds[name].items():
                times[name][tool].append(sum(run(command, o.core) for command in commands))
    row: Dict[str, Any] = {"seconds": times, "total": {}, "least": {}}
    for name, of_tools in times.items():
        totals = [sum(parts) for parts in zip(*of_tools.values())]
        row["total"][name], row["least"][name] = statistics.median(totals), sum(min(t) for t in of_tools.values())
    if o.count:
        row["instructions"] = {name: sum(map(count, of_tools["ptxas"])) for name, of_tools in builds.items()}
    return row


def describe(row: Dict[str, Any]) -> List[str]:
    lines = []
    first = next(iter(row["total"]))
    for name, of_tools in row["seconds"].items():
        parts = ", ".join(f"{tool} {statistics.median(t):.3f}" for tool, t in of_tools.items())
        text = f"  {name:8} {row['total'][name]:.3f} s (least {row['least'][name]:.3f}): {parts}"
        if "instructions" in row:
            text += f"; {row['instructions'][name]:.0f} million instructions of ptxas"
        if name != first:
            text += f"; {row['total'][first] / row['total'][name]:.3f} of it"
        lines.append(text)
    return lines


def parse_arguments(arguments: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", help="the folder of attn-translate")
    parser.add_argument("--beside", metavar="BIN", help="that of another build")
    parser.add_argument("--ptxas", default="ptxas", help="the assembler (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="which core (default: %(default)s)")
    parser.add_argument("--count", action="store_true", help="count the instructions of ptxas too, by valgrind")
    parser.add_argument("--out", help="write the result here, as JSON")
    return parser.parse_args(arguments)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    o = parse_arguments(arguments)
    for tool, source in ((o.ptxas, "make assembler installs it"), *([("valgrind", "a package of its name")] if o.count else [])):
        if not shutil.which(tool):
            print(f"assembling.py: expected {tool}, got none ({source})", file=sys.stderr)
            return 1
    binaries = {"this": o.bin, **({"other": o.beside} if o.beside else {})}
    result: Dict[str, Any] = {"ptxas": subprocess.run([o.ptxas, "--version"], capture_output=True, text=True).stdout.split()[-1], "calls": {}}
    with tempfile.TemporaryDirectory() as folder:
        for call, sources in CALLS.items():
            builds = {name: make_commands(path, o.ptxas, sources, Path(folder, f"{name} {call}")) for name, path in binaries.items()}
            row = result["calls"][call] = measure(builds, o)
            print("\n".join([call, *describe(row)]), flush=True)
    if o.out:
        Path(o.out).write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
