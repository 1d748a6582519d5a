"""Compares the constraints in a dialect's code, in its README and in its tests: same numbers, same sentences.

Usage: check_constraints.py ROOT DIALECT
"""

import pathlib
import re
import sys

root, dialect = pathlib.Path(sys.argv[1]), sys.argv[2]
folder = root / "dialects" / dialect

# The comment `// mma_c1: SENTENCE` may go on in the lines below it.
COMMENT = re.compile(r"///? (\w+_c\d+): ([^\n]*(?:\n[ \t]*///? (?!\w+_c\d+: )[^\n]+)*)")

code = {}
# A schedule is checked below the dialects, and numbered in Attn's README.
below = ["lib/Schedule/Schedule.cpp"] if dialect == "Attn" else []
for source in [*sorted(folder.glob("IR/*.cpp")), *(root / path for path in below)]:
    for number, sentence in COMMENT.findall(source.read_text()):
        if number in code:
            print(f"{number} is in the code twice")
        code[number] = re.sub(r"\n[ \t]*///? ", " ", sentence)

readme = (folder / "README.md").read_text()
rows = dict(re.findall(r"^\| (\w+_c\d+) \| (.*?) \|", readme, re.M))
links = dict(re.findall(r"^\[(\w+)\]: (\S+)", readme, re.M))
proofs = dict(re.findall(r"^\| (\w+_c\d+) \|.*\]\[(\w+)\] \|$", readme, re.M))

for number in sorted(code.keys() | rows.keys()):
    if number not in rows:
        print(f"{number} is not in README.md")
    elif number not in code:
        print(f"{number} is not in the code")
    elif code[number] != rows[number]:
        print(f"{number}: code says '{code[number]}', README.md says '{rows[number]}'")
    if number not in proofs:
        print(f"{number} has no test in README.md")
        continue
    file = folder / links[proofs[number]]
    if not file.is_file() or not re.search(rf"@{number}\b", file.read_text()):
        print(f"{number} has no test @{number} in {file.name}")
print(f"{len(code)} constraints compared")
