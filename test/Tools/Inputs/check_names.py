"""Prints the names in the documents that are not there: passes, ops and attributes, files, make targets, decisions.

Usage: check_names.py ROOT
"""

import pathlib
import re
import sys
from typing import Iterator, List, Set, Tuple

root = pathlib.Path(sys.argv[1])
TOPS = ["lib", "dialects", "tools", "include", "python", "test", "docs", "bench", "cmake", ".ci"]
DOCUMENTS = [*(root / name for name in ("README.md", "CONTRIBUTING.md")), *root.glob("docs/*.md"), *root.glob("docs/decisions/*.md")]
DOCUMENTS += root.glob("dialects/*/README.md")

files = {str(path.relative_to(root)) for top in TOPS for path in (root / top).rglob("*")} | set(TOPS)
code = [root / name for name in files if name.startswith(("lib/", "dialects/", "python/attn/"))]
code = [path for path in code if path.suffix in (".td", ".h", ".cpp", ".py")]
text = "\n".join(path.read_text() for path in code)
# A flag, an op or an attribute is a string somewhere, a Python name is defined, and a Python module is a file.
strings = set(re.findall(r'"([\w.-]+)"', text)) | {string.rpartition(".")[2] for string in re.findall(r'"(\w+\.\w+)"', text)}
strings |= set(re.findall(r"(?:def|class) (\w+)", text)) | {pathlib.PurePath(name).stem for name in files if name.startswith("python/attn/")}
strings |= {path.name for path in (root / "tools").iterdir()}
targets = set(re.findall(r"^([\w-]+):", (root / "Makefile").read_text(), re.M))
decisions = {path.name[:4] for path in (root / "docs" / "decisions").glob("0*.md")}


def is_file(name: str) -> bool:
    """Whether it is a file, a folder, or the beginning of some, as in `test/Dialect/Attn/ops-*.mlir`."""
    name = name.rstrip("/.")
    return name in files or any(file.startswith(name) for file in files if not name[-1].isalnum() or file[len(name) : len(name) + 1] == ".")


def find(line: str) -> Iterator[Tuple[str, bool]]:
    """The names in a line, each with whether it is there."""
    for number in re.findall(r"\b[Dd]ecisions? (\d{1,4})\b", line):
        yield f"decision {number}", number.zfill(4) in decisions
    for span in re.findall(r"`([^`]+)`", line):
        for name in re.findall(r"(?<![\w./-])(?:tile|attn|convert)-[a-z][a-z0-9-]+(?![\w.])", span):
            yield name, name in strings
        for name in re.findall(r"(?<![\w/-])((?:tile|attn|plan)\.[a-z_0-9]+)(?![\w/])", span):
            yield name, name.partition(".")[2] in strings
        for name in re.findall(rf"(?<![\w./~$-])((?:{'|'.join(map(re.escape, TOPS))})/[\w./-]+)", span):
            yield name, is_file(name)
        for name in re.findall(r"^make ([\w-]+)", span):
            yield f"make {name}", name in targets


def read_table(document: str, heading: str) -> List[str]:
    """The names in the first column of the table that follows some words."""
    table = (root / document).read_text().partition(heading)[2].partition("\n\n|")[2].partition("\n\n")[0]
    return [name for row in table.split("\n") for name in re.findall(r"`([^`]+)`", row.strip("|").split("|")[0])]


checked: Set[str] = set()
for document in DOCUMENTS:
    for number, line in enumerate(document.read_text().split("\n"), 1):
        for name, is_there in find(line):
            checked.add(name)
            if not is_there:
                print(f"{document.relative_to(root)}:{number}: {name} is not there")

# The walkthrough has the passes of room 6, in their order.
room = re.search(r"case Room::Async:(.*?)case ", (root / "lib" / "Pipelines" / "Pipelines.cpp").read_text(), re.S)[1]
passes = ["tile" + re.sub(r"([A-Z])", r"-\1", name).lower() for name in re.findall(r"tile::create(\w+)Pass\(", room)]
told = read_table("docs/Walkthrough.md", "## Room 6")
if told != passes:
    print(f"docs/Walkthrough.md: expected the passes {', '.join(passes)}, got {', '.join(told)}")

# The table of folders has every folder of the compiler.
told = read_table("CONTRIBUTING.md", "## Where things live")
for path in sorted(path for top in ("lib", "dialects") for path in (root / top).iterdir() if path.is_dir()):
    if str(path.relative_to(root)) not in told:
        print(f"CONTRIBUTING.md: {path.relative_to(root)} is missing")
print(f"{len(checked)} names checked")
