"""attn from a shell: `python -m attn env`, and the tools of the package, `python -m attn run ...`."""

from __future__ import annotations

import os
import sys
from typing import List, NoReturn

from . import __version__, collect_env
from ._tools import find_tool

_TOOLS = {
    "run": "compiles, runs and checks",
    "translate": "IR after a room, assembly, PTX",
    "opt": "runs passes",
    "reduce": "makes a program that shows a fault small",
    "lsp-server": "serves editors",
}
_USAGE = "\n".join(
    [
        "usage: python -m attn env                  what a report of a fault should say",
        "       python -m attn --version            which attn this is",
        *(
            f"       python -m attn {f'{name} ARGUMENTS':20} attn-{name}: {does}"
            for name, does in _TOOLS.items()
        ),
    ]
)


def _run(name: str, arguments: List[str]) -> NoReturn:
    path = find_tool(name)
    # A script of this package is found in $PATH too, and would call itself for ever.
    if not path or (os.path.exists(sys.argv[0]) and os.path.samefile(path, sys.argv[0])):
        sys.exit(
            f"attn: expected {name} in the package, beside $ATTN_LIBRARY or in $PATH, got none"
        )
    os.execv(path, [path, *arguments])


def run_tool() -> NoReturn:
    """What an installed `attn-run`, `attn-translate` and so on are: the tool of that name."""
    _run(os.path.basename(sys.argv[0]), sys.argv[1:])


def main() -> None:
    command, arguments = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if command == "env" and not arguments:
        print(collect_env())
    elif command == "--version":
        print(f"attn {__version__}")
    elif command in _TOOLS:
        _run(f"attn-{command}", arguments)
    elif command in ("-h", "--help"):
        print(_USAGE)
    else:
        sys.exit(_USAGE)


if __name__ == "__main__":
    main()
