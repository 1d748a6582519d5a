#!/usr/bin/env python3
"""What the inner loops of scheduled kernels cost in machine code, compared with pinned files: a slow-down shows as a diff.

    kernel_costs.py build/dev/bin             # says what differs from costs/*.txt; exits with 1 if anything does
    kernel_costs.py build/dev/bin --update    # writes costs/*.txt anew

A file holds, for each kernel of one program, its registers, its spills, and how often each machine instruction stands in
each innermost loop that multiplies tiles, and how many of its exponentials (MUFU) stand before its last wait for products,
which is how much of them is beside a product (decision 0045). The numbers hold for one version of the assembler, ptxas and nvdisasm as
`make assembler` installs them; with another one the test is skipped (exit code 77). A commit that changes a pin says why.
"""

import argparse
import collections
import concurrent.futures
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

HERE = Path(__file__).resolve().parent
PINS = HERE / "costs"
VERSION = "V13.0.88"
SKIPPED = 77
sys.path.insert(0, str(HERE.parent.parent / "bench" / "gpu"))

import revisions  # noqa: E402  (its folder is not a package)

FORWARD = revisions.KERNELS + [(name, d) for d in (80, 96, 192) for name in ("full", "causal")]
GRADIENT = [(name, d) for d in (64, 128, 256) for name in ("full", "causal")]
# Full attention in ways that calls ask for: few rows, few keys, heads as rows.
WAYS = [("few", "way=few", (64, 128)), ("narrow", "way=narrow", (64, 128, 256)), ("packed", "pack=8 way=long", (64, 128))]
# An instruction of nvdisasm: its address, a predicate, its name.
INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+ )?\s*([A-Z][\w.]*)(.*);")


def make_gradient(name: str, d: int) -> str:
    """The gradients of q, k and v."""
    t, row = f"tensor<?x?x?x{d}xbf16>", "tensor<?x?x?xf32>"
    variants = f" variants [{revisions.CAUSAL}]" if name == "causal" else ""
    return (
        f"func.func @gradient(%q: {t}, %k: {t}, %v: {t}, %o: {t}, %lse: {row}, %do: {t}) -> ({t}, {t}, {t}) {{\n"
        f"  %dq, %dk, %dv = attn.attention_grad %q, %k, %v, %o, %lse, %do{variants} : {t}, {t}, {t}, {t}, {row}, {t}\n"
        f"    -> d_query({t}) d_key({t}) d_value({t})\n"
        f"  return %dq, %dk, %dv : {t}, {t}, {t}\n"
        "}\n"
    )


def list_programs() -> Dict[str, Tuple[str, str]]:
    """Sources and options of the compiler, by name."""
    programs = {f"{name}-{d}": (revisions.make_source(name, d), "") for name, d in FORWARD}
    programs.update({f"full-{way}-{d}": (revisions.make_source("full", d), options) for way, options, ds in WAYS for d in ds})
    programs.update({f"gradient-{name}-{d}": (make_gradient(name, d), "") for name, d in GRADIENT})
    programs.update({f"gradient-fused-{name}-{d}": (make_gradient(name, d), "fused=true") for name, d in GRADIENT if d != 256})
    return programs


def run(command: List[str], text: str = "") -> str:
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


def read_instructions(text: str) -> Iterator[Tuple[str, str, str]]:
    """(function, name, operands) in order; a label is an instruction without a name."""
    function = ""
    for line in text.splitlines():
        section = re.match(r"\.text\.(\w+):", line)
        label = re.match(r"(\.L_x_\d+):", line)
        instruction = INSTRUCTION.match(line)
        if section:
            function = section.group(1)
        elif function and label:
            yield function, "", label.group(1)
        elif function and instruction:
            yield function, instruction.group(2), instruction.group(3)


def find_loops(code: List[Tuple[str, str]]) -> List[List[Tuple[str, str]]]:
    """The innermost loops that multiply tiles: from a label to the last branch back to it.

    Waits that fail stand behind the kernel's end and branch back from there: what an EXIT lies within is no loop.
    """
    labels = {operands: at for at, (name, operands) in enumerate(code) if not name}
    ends: Dict[int, int] = {}
    for at, (name, operands) in enumerate(code):
        target = re.search(r"\.L_x_\d+", operands) if name.startswith("BRA") else None
        start = labels.get(target.group(0), at) if target else at
        if start < at and not any(inside == "EXIT" for inside, _ in code[start:at]):
            ends[start] = at
    multiplies = {span for span in ends.items() if any(code[at][0].startswith("HGMMA") for at in range(*span))}
    inner = [a for a in multiplies if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in multiplies)]
    return [[i for i in code[start : end + 1] if i[0]] for start, end in sorted(inner)]


def describe_loop(number: int, loop: List[Tuple[str, str]]) -> List[str]:
    counts = collections.Counter(name.split(".")[0] for name, _ in loop)
    waits = [at for at, (name, _) in enumerate(loop) if name.startswith("WARPGROUP.DEPBAR")]
    beside = sum(name.startswith("MUFU") for name, _ in loop[: waits[-1]]) if waits else 0
    told = f", {beside} MUFU before the last wait" if counts["MUFU"] else ""
    return [f"  loop {number}: {len(loop)} instructions{told}",
            *(f"    {count:5} {name}" for name, count in sorted(counts.items(), key=lambda row: (-row[1], row[0])))]


def describe(log: str, machine_code: str) -> str:
    functions: Dict[str, List[Tuple[str, str]]] = collections.defaultdict(list)
    for function, name, operands in read_instructions(machine_code):
        functions[function].append((name, operands))
    facts = re.findall(r"Function properties for (\w+)\n.*?(\d+) bytes spill stores.*\n.*?Used (\d+) registers", log)
    lines = []
    for function, spilled, registers in sorted(facts):
        code = functions[function]
        total = sum(1 for name, _ in code if name)
        lines.append(f"{function}: {registers} registers, {spilled} bytes spilled, {total} instructions")
        for number, loop in enumerate(find_loops(code), 1):
            lines += describe_loop(number, loop)
    return "\n".join(lines) + "\n"


def measure(o: argparse.Namespace, name: str, source: str, options: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        run([str(o.bin / "attn-opt"), "-", *revisions.list_passes(path, options)], source)
        # Kernels beside each other, as the runtime has the driver do it.
        log = run([o.ptxas, "-arch=sm_90a", "-v", "-split-compile=0", f"{path}.ptx", "-o", f"{path}.cubin"])
        return describe(log, run([o.nvdisasm, f"{path}.cubin"]))


def compare(name: str, got: str) -> bool:
    """Whether a pin holds; prints the difference."""
    path = PINS / f"{name}.txt"
    expected = path.read_text() if path.exists() else ""
    sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), got.splitlines(True), f"costs/{name}.txt", "now"))
    return expected == got


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, help="the folder of attn-opt")
    parser.add_argument("--ptxas", default="ptxas", help="the assembler (default: %(default)s)")
    parser.add_argument("--nvdisasm", default="nvdisasm", help="the disassembler (default: %(default)s)")
    parser.add_argument("--update", action="store_true", help="write the pins anew")
    return parser.parse_args()


def main() -> int:
    o = parse_arguments()
    version = re.search(r"V[\d.]+", run([o.ptxas, "--version"]))
    if not version or version.group(0) != VERSION:
        print(f"expected ptxas {VERSION}, got {version and version.group(0)}: `make assembler` installs it")
        return SKIPPED
    programs = list_programs()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        costs = dict(zip(programs, pool.map(lambda entry: measure(o, entry[0], *entry[1]), programs.items())))
    if o.update:
        for path in PINS.glob("*.txt"):
            path.unlink()
        PINS.mkdir(exist_ok=True)
        for name, text in costs.items():
            (PINS / f"{name}.txt").write_text(text)
    elif PINS.exists() and {path.stem for path in PINS.glob("*.txt")} - costs.keys():
        print("expected a program for each pin; remove those that have none")
        return 1
    wrong = [name for name, text in costs.items() if not compare(name, text)]
    print(f"{len(costs)} programs, {len(wrong)} differ" + (f"; if that is meant: {Path(__file__).name} {o.bin} --update" if wrong else ""))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
