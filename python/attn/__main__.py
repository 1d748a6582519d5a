"""attn from a shell: `python -m attn env`, and the tools of the package, `python -m attn run ...`."""

from __future__ import annotations

import os
import sys
from typing import List, NoReturn

from . import collect_env
from ._environment import find_tool

_USAGE = """usage: python -m attn env               what a report of a fault should say
       python -m attn run ARGUMENTS       attn-run: compiles, runs and checks
       python -m attn translate ARGUMENTS attn-translate: IR after a room, assembly, PTX
       python -m attn opt ARGUMENTS       attn-opt: runs passes"""


def _run_tool(name: str, arguments: List[str]) -> NoReturn:
    path = find_tool(name)
    if not path:
        sys.exit(
            f"attn: expected {name} in the package, beside $ATTN_LIBRARY or in $PATH, got none"
        )
    os.execv(path, [path, *arguments])


def main() -> None:
    command, arguments = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if command == "env" and not arguments:
        print(collect_env())
    elif command in ("run", "translate", "opt"):
        _run_tool(f"attn-{command}", arguments)
    elif command in ("-h", "--help"):
        print(_USAGE)
    else:
        sys.exit(_USAGE)


if __name__ == "__main__":
    main()
