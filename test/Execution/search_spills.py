#!/usr/bin/env python3
"""Has ptxas judge every size that a search would time on Hopper: none may spill or have its products serialised.

    search_spills.py build/dev/bin --ptxas ptxas [--dims 64,128,256] [--left-out]

With --left-out those that models leave out are assembled too, and counted: what they were wrong about.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import List, Tuple

ROWS, KEYS = (64, 128, 192), range(16, 177, 16)
MASKS = {"full": "", "causal": "variants [#attn.causal<bottom_right>]"}
Size = Tuple[int, str, int, int]


def make_source(d: int, mask: str) -> str:
    t = f"tensor<?x?x?x{d}xbf16>"
    return (f"func.func @attention(%q: {t}, %k: {t}, %v: {t}) -> {t} {{\n"
            f"  %o = attn.attention %q, %k, %v {MASKS[mask]} : {t}, {t}, {t} -> {t}\n  return %o : {t}\n}}\n")


def judge(options: argparse.Namespace, size: Size, folder: Path, search: int) -> str:
    """'refused', 'left out', 'spills' or 'right'."""
    d, mask, m, n = size
    path = folder / f"{d}-{mask}-{m}x{n}-{search}"
    schedule = f"target=cuda block-m={m} block-n={n} search={search}"
    passes = [f"--attn-to-online={schedule}", "--online-to-tile", "--tile-to-async", "--async-to-thread",
              f"--emit-ptx=ptx={path}.ptx plan={path}.json", "-o", os.devnull]
    made = subprocess.run([str(options.bin / "attn-opt"), "-", *passes], input=make_source(d, mask), capture_output=True, text=True)
    if made.returncode:
        return "left out" if "left out of the search" in made.stderr else "refused"
    done = subprocess.run([options.ptxas, "-arch=sm_90a", "-v", f"{path}.ptx", "-o", os.devnull], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    stores = [int(count) for count in re.findall(r"(\d+) bytes spill stores", done.stdout)]
    fails = done.returncode or not stores or any(stores) or re.search(r"C75\d\d", done.stdout)
    return "spills" if fails else "right"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=Path, help="the folder of attn-opt")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--dims", default="64,128,256")
    parser.add_argument("--left-out", action="store_true")
    options = parser.parse_args()
    sizes: List[Size] = [(int(d), mask, m, n) for d in options.dims.split(",") for mask in MASKS for m in ROWS for n in KEYS]
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(name)
        found = list(pool.map(lambda size: judge(options, size, folder, 8192), sizes))
        left_out = [size for size, verdict in zip(sizes, found) if verdict == "left out"]
        wrong = list(pool.map(lambda size: judge(options, size, folder, 0), left_out)) if options.left_out else []
    for size, verdict in zip(sizes, found):
        if verdict == "spills":
            print("kept, but spills:", *size)
    for size, verdict in zip(left_out, wrong):
        print("left out:", *size, verdict)
    counts = collections.Counter(found)
    print(f"{len(sizes)} sizes: {counts['right']} kept, {counts['left out']} left out, {counts['refused']} refused, "
          f"{counts['spills']} kept though they spill")
    return int(counts["spills"] > 0 or counts["right"] == 0)


sys.exit(main())
