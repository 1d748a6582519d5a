"""Has ptxas judge every kernel that ExecutionTest --emit wrote.

    assemble_emitted.py FOLDER [--ptxas ptxas]

Fails on a C75xx line (products that ptxas serialises), and on a spill, but for the few bytes that f32 may hold. Where minutes count, two kinds are left out: kernels of the
list that $ATTN_ASSEMBLED names, written by kernel_hashes.py, as they were judged when they came into it; and, where $CI is set, f16
beside its twin of bf16, which differs in the type of products alone.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
from typing import List

import kernel_hashes


# Descriptors of six products for one fill the uniform registers, so that ptxas keeps an address or two in memory over a loop.
MOST_OF_F32 = 16


def assemble(ptxas: str, path: pathlib.Path) -> str:
    """What is wrong with a kernel; empty if nothing is."""
    done = subprocess.run([ptxas, "-arch=sm_90a", "-v", str(path), "-o", os.devnull], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode or re.search(r"C75\d\d", done.stdout):
        return done.stdout
    stores = [int(bytes_) for bytes_ in re.findall(r"(\d+) bytes spill stores", done.stdout)]
    most = MOST_OF_F32 if "Wide" in path.name else 0
    return "no kernel: " + done.stdout if not stores else f"spills {max(stores)} bytes" if max(stores) > most else ""


def find_kind(path: pathlib.Path) -> str:
    """What a program is of, without the number that it was written under."""
    return path.stem.rsplit(".", 1)[0]


def drop_twins(paths: List[pathlib.Path]) -> List[pathlib.Path]:
    if not os.environ.get("CI"):
        return paths
    twins = {find_kind(path).replace("_bf16", "_f16") for path in paths if "_bf16" in path.name}
    return [path for path in paths if find_kind(path) not in twins]


def drop_assembled(paths: List[pathlib.Path]) -> List[pathlib.Path]:
    """What $ATTN_ASSEMBLED does not hold."""
    name = os.environ.get("ATTN_ASSEMBLED")
    if not name:
        return paths
    known = set(kernel_hashes.read(pathlib.Path(name)).values())
    return [path for path in paths if kernel_hashes.hash_file(path) not in known]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ptxas", default="ptxas")
    arguments = parser.parse_args()
    emitted = sorted(arguments.folder.glob("*.ptx"))
    paths = drop_assembled(drop_twins(emitted))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(lambda path: assemble(arguments.ptxas, path), paths))
    for path, complaint in zip(paths, complaints):
        if complaint:
            print(f"{path.name}: {complaint}")
    print(f"{len(emitted)} programs, {len(emitted) - len(paths)} left out, {sum(map(bool, complaints))} with complaints")
    return int(not emitted or any(complaints))


sys.exit(main())
