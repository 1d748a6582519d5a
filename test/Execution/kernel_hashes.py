#!/usr/bin/env python3
"""The PTX of every kernel of the acceptance list and of bench/gpu/revisions.py, and of some kernels for other machines, by its
SHA-256, compared with a list.

    kernel_hashes.py build/dev/bin             # says which kernels changed; exits with 1 if any did
    kernel_hashes.py build/dev/bin --update    # writes the list anew
    kernel_hashes.py build/dev/bin --emitted FOLDER    # takes what ExecutionTest --emit=FOLDER wrote, which saves minutes
    ATTN_SHARE=1/3 kernel_hashes.py build/dev/bin --emitted FOLDER    # of a share of the tests (test/share)

A change that should leave kernels alone leaves this list alone. One that should not updates it in the same commit, so
that the commit says which kernels it touched. `bench/gpu/revisions.py` measures what the change is worth, and
assemble_emitted.py assembles the kernels that the list did not hold before.
"""

import argparse
import collections
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict

HERE = Path(__file__).resolve().parent
LIST = HERE / "kernels.sha256"
REVISIONS = HERE.parent.parent / "bench" / "gpu" / "revisions.py"


# Beside the default one, and what of the acceptance list they have hashes of.
MACHINES = ["sm_80", "sm_86", "sm_89", "sm_100a", "sm_103a", "sm_120a"]
SAMPLE = "*VariantTest*/Full_bf16:*VariantTest*/CausalBottomRight_bf16:*VariantTest*/Dropout_bf16:*GradTest.*/CausalBottomRight_bf16:*HeadDimTest*D256*_bf16"
# Whose gradients have no block of so many columns yet.
NARROW_GRADIENTS = ["sm_100a", "sm_103a"]


def run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def emit_acceptance(binaries: Path, folder: Path) -> Path:
    """The acceptance list, and beside it, as CMakeLists.txt does, what of it has fused gradients."""
    test = [binaries / "ExecutionTest", "--device=cuda", "--random=0", "--gtest_brief=1"]
    fused = find_fused(folder)
    folder.mkdir()
    fused.mkdir()
    run(*test, f"--emit={folder}", "--gtest_filter=-*Random*")
    run(*test, f"--emit={fused}", "--fused", "--gtest_filter=*GradWideTest*:*GradTest*_bf16")
    return folder


def find_fused(folder: Path) -> Path:
    return folder.with_name(folder.name + "-fused")


def emit_machines(binaries: Path, folder: Path) -> Dict[str, Path]:
    """The sample, in a folder for each machine."""
    for machine in MACHINES:
        (folder / machine).mkdir(parents=True)
        run(binaries / "ExecutionTest", "--device=cuda", f"--target={machine}", "--random=0", "--gtest_brief=1",
            f"--emit={folder / machine}", f"--gtest_filter={SAMPLE}{':-*GradHeadDimTest*' if machine in NARROW_GRADIENTS else ''}")
    return {machine: folder / machine for machine in MACHINES}


def emit_revisions(binaries: Path, folder: Path) -> Path:
    run(sys.executable, REVISIONS, "emit", folder, "--bin", binaries)
    return folder


def hash_acceptance(name: str, folder: Path) -> Dict[str, str]:
    """Files are numbered through all tests; here each test counts its own, so that a new test renames no others.

    Random configurations are left out: their generator changes more often than kernels do.
    """
    hashes: Dict[str, str] = {}
    counts: Dict[str, int] = collections.Counter()
    numbered = [(path.stem.rpartition("."), path) for path in folder.glob("*.ptx") if "Random" not in path.stem]
    for (test, _, _), path in sorted(numbered, key=lambda entry: int(entry[0][2])):
        counts[test] += 1
        hashes[f"{name}/{test}/{counts[test]}"] = hash_file(path)
    return hashes


def hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read(path: Path) -> Dict[str, str]:
    if not path.exists():
        return {}
    rows = (line.split("  ", 1) for line in path.read_text().splitlines())
    return {name: digest for digest, name in rows}


def compare(old: Dict[str, str], new: Dict[str, str]) -> int:
    """The number of differences, after a line for each."""
    rows = [("gone", name) for name in old.keys() - new.keys()]
    rows += [("new", name) for name in new.keys() - old.keys()]
    rows += [("changed", name) for name in old.keys() & new.keys() if old[name] != new[name]]
    for what, name in sorted(rows):
        print(f"{what:8} {name}")
    return len(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, help="the folder of attn-opt and ExecutionTest")
    parser.add_argument("--update", action="store_true", help="write the list anew")
    parser.add_argument("--emitted", type=Path, help="where the acceptance list is emitted already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        emitted = options.emitted or emit_acceptance(options.bin, Path(one) / "emitted")
        new = hash_acceptance("acceptance", emitted) | hash_acceptance("fused", find_fused(emitted))
        for machine, folder in emit_machines(options.bin, Path(one) / "machines").items():
            new.update(hash_acceptance(machine, folder))
        revisions = emit_revisions(options.bin, Path(other)).glob("*.ptx")
        new.update({f"revisions/{path.stem}": hash_file(path) for path in revisions})
    old = read(LIST)
    if options.emitted and not os.environ.get("ATTN_SHARE", "0/1").endswith("/1"):
        old = {name: digest for name, digest in old.items() if name in new}
    differences = compare(old, new)
    if options.update:
        LIST.write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(new.items())))
    elif differences:
        print(f"expected the PTX of {LIST.name}, got {differences} differences; if they are meant, run\n"
              f"  {Path(__file__).name} {options.bin} --update")
        return 1
    print(f"{len(new)} kernels, {differences} differences")
    return 0


if __name__ == "__main__":
    sys.exit(main())
