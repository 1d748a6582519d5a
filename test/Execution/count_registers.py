#!/usr/bin/env python3
"""Compares the count of registers (lib/Analysis/Registers) with ptxas, on gradients of Hopper with more and more rows.

    count_registers.py build/dev/bin --ptxas ptxas [--verbose]

A program whose tiles leave a thread its machine's `otherRegisters` does not spill; one whose tiles alone take more than the budget
does. Between the two lies what ptxas finds by itself. The rule chooses by this margin (decision 0085).
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Tuple

OTHERS = 16
VARIANTS = {"full": "", "causal": "#attn.causal<bottom_right>", "softcap": "#attn.softcap<30.0 : f32>",
            "window": "#attn.causal<bottom_right>, #attn.window<1024, -1, bottom_right>"}
ROWS = {64: (32, 64, 80, 112, 128), 128: (16, 32, 48, 64)}
ROOM_1 = ["--attn-generalize-extents", "--attn-expand-variants", "--attn-widen-indices", "--attn-derive-score", "--attn-split-grad",
          "--attn-set-schedule=target=cuda"]
Problem = Tuple[str, int, int]


def make_source(name: str, d: int) -> str:
    t, row = f"tensor<?x?x?x{d}xbf16>", "tensor<?x?x?xf32>"
    variants = f" variants [{VARIANTS[name]}]" if VARIANTS[name] else ""
    return (f"func.func @gradient(%q: {t}, %k: {t}, %v: {t}, %o: {t}, %lse: {row}, %do: {t}) -> ({t}, {t}, {t}) {{\n"
            f"  %dq, %dk, %dv = attn.attention_grad %q, %k, %v, %o, %lse, %do{variants} : {t}, {t}, {t}, {t}, {row}, {t}\n"
            f"    -> d_query({t}) d_key({t}) d_value({t})\n  return %dq, %dk, %dv : {t}, {t}, {t}\n}}\n")


def run(command: List[object], text: str = "") -> str:
    done = subprocess.run([str(part) for part in command], input=text, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command}\n{done.stderr}")
    return done.stdout + done.stderr


def measure(options: argparse.Namespace, folder: Path, problem: Problem) -> Tuple[int, int]:
    """What tiles leave of the budget in the pass over keys, and the bytes that ptxas spills there."""
    name, d, rows = problem
    path = folder / f"{name}-{d}-{rows}"
    chosen = run([options.bin / "attn-opt", "-", *ROOM_1], make_source(name, d))
    given = re.sub(r"(attention_grad_key_value.*block_m = )\d+(, block_n = )\d+", rf"\g<1>{rows}\g<2>128", chosen)
    said = run([options.bin / "attn-opt", "-", "--attn-to-online=target=cuda", "--online-to-tile", "--tile-to-async", "--tile-count-registers",
                "--async-to-thread", f"--emit-ptx=ptx={path}.ptx plan={path}.json", "--remarks-filter=attn",
                "--remark-format=emitRemark", "-o", os.devnull], given)
    counts = re.findall(r"role consumer of gradient_key_value takes (\d+) of (\d+)", said)
    log = run([options.ptxas, "-arch=sm_90a", "-v", f"{path}.ptx", "-o", os.devnull])
    spills: Dict[str, str] = dict(re.findall(r"Function properties for (\w+)\n.*?(\d+) bytes spill stores", log))
    return int(counts[0][1]) - int(counts[0][0]), int(spills["gradient_key_value"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, help="the folder of attn-opt")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--verbose", action="store_true", help="print every program")
    options = parser.parse_args()
    problems: List[Problem] = [(name, d, rows) for name in VARIANTS for d, sizes in ROWS.items() for rows in sizes]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda problem: measure(options, Path(folder), problem), problems))
    wrong = [(problem, spare, spilled) for problem, (spare, spilled) in zip(problems, found)
             if (spare >= OTHERS and spilled) or (spare < 0 and not spilled)]
    for problem, (spare, spilled) in zip(problems, found) if options.verbose else []:
        print(*problem, f"leaves {spare} registers, spills {spilled} bytes")
    for problem, spare, spilled in wrong:
        print("wrong:", *problem, f"leaves {spare} registers, spills {spilled} bytes")
    over = sum(spare < 0 for spare, _ in found)
    print(f"{len(found)} programs, {sum(spare >= OTHERS for spare, _ in found)} with room, {over} beyond their budget, {len(wrong)} wrong")
    return int(bool(wrong) or over == 0)


sys.exit(main())
