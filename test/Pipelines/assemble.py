"""Compiles a template for each head dimension and has ptxas judge the machine code.

    assemble.py TEMPLATE D[:DV]... [--type bf16] [--splits 1] [--schedule "stay=true block-n=64"]

Prints a line for each: the schedule is the compiler's own choice, so that what a user gets is what is judged. Fails on a
spill, on local memory, and on a C75xx line (products that ptxas serialises).
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "gpu"))

import revisions  # noqa: E402  (its folder is not a package)


def assemble(source: str, schedule: str, folder: pathlib.Path) -> str:
    """What ptxas says about the kernels of `source`."""
    passes = revisions.list_passes(folder / "a", schedule)
    subprocess.run(["attn-opt", "-", *passes], input=source, text=True, check=True)
    done = subprocess.run(["ptxas", "-arch=sm_90a", "-v", f"{folder}/a.ptx", "-o", f"{folder}/a.cubin"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode == 0 else "error: " + done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("template", type=pathlib.Path)
    parser.add_argument("dims", nargs="+", metavar="D[:DV]")
    parser.add_argument("--type", default="bf16")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--schedule", default="", help="what attn-to-online takes besides, e.g. stay=true")
    arguments = parser.parse_args()
    template = arguments.template.read_text()
    failed = False
    for dims in arguments.dims:
        d, _, dv = dims.partition(":")
        source = template.replace("@DV@", dv or d).replace("@D@", d).replace("@T@", arguments.type)
        with tempfile.TemporaryDirectory() as folder:
            log = assemble(source, f"splits={arguments.splits} {arguments.schedule}", pathlib.Path(folder))
        frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
        # One for each kernel: those that join split keys and that list tiles too.
        clean = frames == [("0", "0", "0")] * max(1, log.count("Compiling entry function"))
        clean = clean and not re.search(r"C75\d\d|error", log)
        print(f"{arguments.template.name} D={dims} {arguments.type}: {'clean' if clean else log}")
        failed |= not clean
    return failed


sys.exit(main())
