"""Compares the constraints in the code, in the dialect's README and in the tests: same numbers, same sentences."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
folder = root / "dialects/Attn"
tests = root / "test/Dialect/Attn"

code = {}
for source in sorted(folder.glob("IR/*.cpp")):
    for number, sentence in re.findall(r"// (\w+_c\d+): (.*)", source.read_text()):
        if number in code:
            print(f"{number} is in the code twice")
        code[number] = sentence

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
    file = (folder / links[proofs[number]]) if number in proofs else tests
    if not file.is_file() or not re.search(rf"@{number}\b", file.read_text()):
        print(f"{number} has no test @{number} in {file.name}")
print(f"{len(code)} constraints compared")
