#!/usr/bin/env python3
"""Where the time of the forward pass goes: how far each unit of the chip is in use by the model, beside what was measured.

    breakdown.py bench/results/gpu-sdpa.json [--bin build/release/bin]     # no GPU: the model is the simulator's

A unit's share is the time that it works of the time that the model predicts for the whole grid, with the tiles, the order of
blocks and the way that a call takes there.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict

import revisions

UNITS = ("tensor", "exp", "issue", "shared", "memory")
PEAK = 989.0
LENGTHS = (512, 2048, 8192)


def predict(tool: str, name: str, row: Dict) -> Dict:
    """TFLOP/s, and each unit's share in percent."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as source:
        source.write(revisions.make_source(name, row["D"]))
        source.flush()
        shape = f"B={row['B']},H={row['H']},M={row['S']},N={row['S']}"
        flops = ["--flops=causal"] if name == "causal" else ["--flops=full"]
        command = [tool, source.name, "--device=sim", "--predict", "--json", "--shape", shape, *flops]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    report = json.loads(done.stdout)
    shares = dict(re.findall(r"(\w+) (\d+)%", report["simulator"]["in use"]))
    return {"tflops": report["gflops"] / 1000, **{unit: int(shares[unit]) for unit in UNITS}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="of bench/gpu/sdpa.py")
    parser.add_argument("--bin", help="where the tools are (default: on the path)")
    o = parser.parse_args()
    tool = f"{o.bin}/attn-run" if o.bin else shutil.which("attn-run")
    if not tool:
        sys.exit("breakdown.py: expected attn-run on the path, or --bin")
    print("| D | mask | S | TFLOP/s | of 989 | model | " + " | ".join(UNITS) + " |")
    print("|---" * (6 + len(UNITS)) + "|")
    for row in json.loads(o.results.read_text())["rows"]:
        if row["S"] not in LENGTHS or row["variant"] not in ("full", "causal"):
            continue
        model, measured = predict(tool, row["variant"], row), row["tflops"]["attn"]
        shares = " | ".join(f"{model[unit]} %" for unit in UNITS)
        print(
            f"| {row['D']} | {row['variant']} | {row['S']} | {measured:.0f} | {100 * measured / PEAK:.0f} % | {model['tflops']:.0f} | {shares} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
