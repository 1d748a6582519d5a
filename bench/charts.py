"""What the scripts that draw results share: the command line, the look of the charts, the bars.

Tables need Python alone, so that documents can be checked anywhere; charts need matplotlib (bench/requirements.txt).
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

Result = Dict[str, Any]

OURS, PEER, MARK = "#1f6feb", "#c9c9c9", "#d1242f"
"""The colors of attn, of what it is compared with, and of a line to reach."""

STYLE = {
    "font.family": "sans-serif",
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "grid.color": "#eeeeee",
    "xtick.bottom": False,
    "ytick.left": False,
    # Text stays text, and the same result gives the same file.
    "svg.fonttype": "none",
    "svg.hashsalt": "attn",
}


def run(description: str, plot: Callable[[Result], Any], tables: Dict[str, Tuple[Callable[[Result], str], str]]) -> None:
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
        draw(lambda: plot(result), arguments["svg"])


def draw(plot: Callable[[], Any], path: str) -> None:
    """Writes the figure that `plot` returns."""
    try:
        import matplotlib
    except ImportError:
        sys.exit("bench: expected matplotlib for charts, got none: pip install -r bench/requirements.txt")
    matplotlib.use("svg")
    with matplotlib.rc_context(STYLE):
        plot().savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    # matplotlib leaves blanks at the ends of lines.
    with open(path) as file:
        lines = [line.rstrip() for line in file]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


def bars(
    axes: Any,
    labels: Sequence[str],
    ours: Sequence[float],
    peers: Sequence[Optional[float]],
    marks: Sequence[Optional[float]],
    narrow: bool = False,
) -> None:
    """A pair of bars for each label, with their values inside, and a line across the pair where there is something to reach.
    Narrow bars carry our values alone, upright."""
    for values, color, text, shift in ((ours, OURS, "white", -0.2), (peers, PEER, "black", 0.2)):
        drawn = axes.bar([i + shift for i in range(len(labels))], [v or 0 for v in values], 0.38, color=color)
        if color == OURS or not narrow:
            numbers = [f"{v:.0f}" if v else "" for v in values]
            axes.bar_label(drawn, numbers, label_type="center", color=text, rotation=90 if narrow else 0)
    for i, mark in enumerate(marks):
        if mark:
            axes.hlines(mark, i - 0.44, i + 0.44, colors=MARK, linewidth=1.3)
    axes.set_xticks(range(len(labels)), labels)


def legend(figure: Any, ours: str, peer: str, mark: str, y: float) -> None:
    """One row above all panels, from `y` down, in parts of the figure's height."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [Patch(color=OURS, label=ours), Patch(color=PEER, label=peer), Line2D([], [], color=MARK, label=mark)]
    figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.01, y), ncols=3, frameon=False)
