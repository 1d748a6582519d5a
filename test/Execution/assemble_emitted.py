"""Has ptxas judge every kernel that ExecutionTest --emit wrote.

    assemble_emitted.py FOLDER [--ptxas ptxas]
    assemble_emitted.py FOLDER --target sm_89 --most 64    # of another machine, with spills up to so many bytes
    assemble_emitted.py --emit build/dev/bin --most 64     # of a sample for each machine that kernel_hashes.py names

Fails on a C75xx line (products that ptxas serialises), and on a spill, but for the few bytes that f32 may hold. Where minutes count,
two kinds are left out: kernels of the
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
import tempfile
from typing import List

import kernel_hashes


# Descriptors of six products for one fill the uniform registers, and stores of f32 lie where a mask asks for scores: ptxas keeps an
# address or two in memory over a loop.
MOST_OF_F32 = 16


def assemble(ptxas: str, path: pathlib.Path, target: str, most: int) -> str:
    """What is wrong with a kernel; empty if nothing is."""
    done = subprocess.run([ptxas, f"-arch={target}", "-v", str(path), "-o", os.devnull], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode or re.search(r"C75\d\d", done.stdout):
        return done.stdout
    stores = [int(bytes_) for bytes_ in re.findall(r"(\d+) bytes spill stores", done.stdout)]
    if not stores:
        return "no kernel: " + done.stdout
    most = max(most, MOST_OF_F32) if "Wide" in path.name else most
    return f"spills {max(stores)} bytes" if max(stores) > most else ""


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


def judge(folder: pathlib.Path, target: str, options: argparse.Namespace) -> bool:
    """Whether all programs of a folder are as they should be."""
    emitted = sorted(folder.glob("*.ptx"))
    paths = drop_assembled(drop_twins(emitted))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(lambda path: assemble(options.ptxas, path, target, options.most), paths))
    for path, complaint in zip(paths, complaints):
        if complaint:
            print(f"{path.name}: {complaint}")
    print(f"{target}: {len(emitted)} programs, {len(emitted) - len(paths)} left out, {sum(map(bool, complaints))} with complaints")
    return bool(emitted) and not any(complaints)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--target", default="sm_90a", help="the machine (default: %(default)s)")
    parser.add_argument("--most", type=int, default=0, help="bytes of spills that are no complaint (default: %(default)s)")
    parser.add_argument("--emit", type=pathlib.Path, help="the folder of ExecutionTest, in place of FOLDER")
    options = parser.parse_args()
    if bool(options.folder) == bool(options.emit):
        parser.error("expected a folder or --emit")
    if options.folder:
        return int(not judge(options.folder, options.target, options))
    with tempfile.TemporaryDirectory() as folder:
        folders = kernel_hashes.emit_machines(options.emit, pathlib.Path(folder))
        return int(not all([judge(path, machine, options) for machine, path in folders.items()]))


sys.exit(main())
