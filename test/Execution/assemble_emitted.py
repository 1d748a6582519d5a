"""Has ptxas judge every kernel that ExecutionTest --emit wrote.

    assemble_emitted.py FOLDER [--ptxas ptxas]

Fails on a C75xx line (products that ptxas serialises), and on a spill in any kernel of the acceptance list. Random
configurations pile up variants that nobody asked for together: theirs may spill a few bytes, which the last line counts.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

RANDOM_SPILL_BYTES = 64


def assemble(ptxas: str, path: pathlib.Path) -> str:
    """What is wrong with a kernel; empty if nothing is, "spills N bytes" if that is all."""
    done = subprocess.run([ptxas, "-arch=sm_90a", "-v", str(path), "-o", os.devnull], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode or re.search(r"C75\d\d", done.stdout):
        return done.stdout
    stores = [int(bytes_) for bytes_ in re.findall(r"(\d+) bytes spill stores", done.stdout)]
    return f"spills {max(stores)} bytes" if any(stores) else "" if stores else "no kernel: " + done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ptxas", default="ptxas")
    arguments = parser.parse_args()
    paths = sorted(arguments.folder.glob("*.ptx"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(lambda path: assemble(arguments.ptxas, path), paths))
    failed, spilled = not paths, 0
    for path, complaint in zip(paths, complaints):
        spill = re.fullmatch(r"spills (\d+) bytes", complaint)
        if "Random" in path.name and spill and int(spill[1]) <= RANDOM_SPILL_BYTES:
            spilled += 1
        elif complaint:
            failed = True
            print(f"{path.name}: {complaint}")
    print(f"{len(paths)} programs; {spilled} random ones spill at most {RANDOM_SPILL_BYTES} bytes")
    return int(failed)


sys.exit(main())
