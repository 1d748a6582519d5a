"""The command line of the scripts that draw results."""

from __future__ import annotations

import argparse
import json
from typing import Any, Callable, Dict, Tuple

Result = Dict[str, Any]


def run(description: str, plot: Callable[[Result], str], tables: Dict[str, Tuple[Callable[[Result], str], str]]) -> None:
    """Reads a result; draws it if a file for the SVG is named, and prints the tables asked for, each an option by its name with
    a function and a help text."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("result")
    parser.add_argument("svg", nargs="?")
    for name, (_, text) in tables.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    arguments = vars(parser.parse_args())
    with open(arguments["result"]) as file:
        result = json.load(file)
    for name, (table, _) in tables.items():
        if arguments[name]:
            print(table(result))
    if arguments["svg"]:
        with open(arguments["svg"], "w") as file:
            file.write(plot(result))
