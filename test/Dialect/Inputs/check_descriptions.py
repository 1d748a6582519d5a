"""Names the ops of a dialect that have no description or no example.

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
for op in ops:
    if "```mlir" not in op:
        print(f"{op.split()[0]} has no example")
print(f"{len(ops)} ops described")
