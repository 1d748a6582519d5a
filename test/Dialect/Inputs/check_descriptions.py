"""Names the ops of a dialect that have no description or no example, or no place in its README's table of ops.

Usage: check_descriptions.py ROOT DEFINITIONS (a .td file with the ops, from ROOT)
"""

import pathlib
import re
import shutil
import subprocess
import sys

root, definitions = sys.argv[1:]
tblgen = shutil.which("mlir-tblgen")
include = pathlib.Path(tblgen).resolve().parent.parent / "include"
document = subprocess.run(
    [tblgen, "-gen-op-doc", "-I", root, "-I", include, pathlib.Path(root) / definitions], capture_output=True, text=True, check=True
).stdout
ops = re.split(r"^### ", document, flags=re.M)[1:]
# A README that has a table of ops has all of them in it.
readme = (pathlib.Path(root) / definitions).parent.parent / "README.md"
cells = re.findall(r"^\| (`\w+\.\w+`[^|]*) \|", readme.read_text(), re.M)
table = set(re.findall(r"`(\w+\.\w+)`", " ".join(cells)))
for op in ops:
    name = op.split()[0].strip("`")
    if "```mlir" not in op:
        print(f"{name} has no example")
    if table and name not in table:
        print(f"{name} is not in README.md")
print(f"{len(ops)} ops described")
