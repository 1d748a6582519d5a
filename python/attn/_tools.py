"""The tools of the package, as programs of their own."""

from __future__ import annotations

import base64
import html
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import List, NamedTuple, Tuple

from ._library import library_path

# Options that attn-translate has too.
_WORDS = {"block_m", "block_n", "splits", "stay", "slack", "way", "fused", "cpu"}
# Of the timeline: with fewer rows the kernel would be another one than that of most calls.
SHAPE = "B=4,H=16,M=2048"
_SWITCHES = {"on": "true", "off": "false"}


def find_tool(name: str) -> str:
    """The path of a tool: of the package, of the build folder that $ATTN_LIBRARY is of, or of $PATH;
    empty where there is none."""
    near = [library_path.parent.parent / "bin" / name, Path(__file__).parent / "bin" / name]
    for path in near:
        if os.access(path, os.X_OK):
            return str(path)
    return shutil.which(name) or ""


class Picture(NamedTuple):
    """For a notebook: a text of SVG, and what it shows in words."""

    svg: str
    caption: str


def _write_words(given: Tuple[Tuple[str, str], ...]) -> List[str]:
    """The options of a call as those of a tool."""
    options = dict(given)
    is_gpu = options.get("device", "cpu").startswith("cuda")
    target = options.get("target") or ("cuda" if is_gpu else "cpu")
    said = {x.replace("_", "-"): _SWITCHES.get(y, y) for x, y in given if x in _WORDS and y}
    return [f"--target={target}", *(f"--{name}={text}" for name, text in said.items())]


def make_page(source: str, given: Tuple[Tuple[str, str], ...]) -> str:
    """The rooms of a source as a page of HTML, or an empty text where no tool can make it."""
    tool = find_tool("attn-translate")
    if not tool:
        return ""
    command = [tool, "-", "--html", *_write_words(given)]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    return done.stdout


def simulate(source: str, given: Tuple[Tuple[str, str], ...]) -> List[Picture]:
    """The timeline of a block on a GPU, and what the model predicts; nothing on a CPU, where no tool is, and where
    other extents than those of `SHAPE` are asked for."""
    tool = find_tool("attn-run")
    if not tool or not dict(given).get("device", "cpu").startswith("cuda"):
        return []
    with tempfile.TemporaryDirectory() as folder:
        # Its errors name the program.
        program, timeline = Path(folder, "program.mlir"), Path(folder, "timeline.svg")
        program.write_text(source)
        command = [tool, str(program), "--device=sim", "--predict", f"--shape={SHAPE}", f"--timeline={timeline}"]
        words = [x for x in _write_words(given) if x != "--target=cuda"]
        done = subprocess.run([*command, *words], capture_output=True, text=True)
        if done.returncode or not timeline.exists():
            return []
        told = [line for line in done.stdout.splitlines() if line.startswith("predicted ")]
        predicted = f"; {told[0]}" if told else ""
        return [Picture(timeline.read_text(), f"a block, simulated for {SHAPE}{predicted}")]


def show(pictures: List[Picture]) -> str:
    """Next to each other, as far as the notebook is wide."""
    if not pictures:
        return ""
    figures = []
    for svg, caption in pictures:
        data, text = base64.b64encode(svg.encode()).decode(), html.escape(caption)
        figures.append(
            f'<figure style="margin: 0; max-width: 100%"><img alt="{text}" style="max-width: 100%; background: #fff" '
            f'src="data:image/svg+xml;base64,{data}"><figcaption>{text}</figcaption></figure>'
        )
    return f'<div style="display: flex; flex-wrap: wrap; gap: 16px">{"".join(figures)}</div>'


def frame(page: str) -> str:
    """A page inside of that of a notebook, with an address, keys and a style of its own."""
    style = "width: 100%; height: 680px; border: 1px solid #8884; border-radius: 6px"
    return f'<iframe title="attn" style="{style}" srcdoc="{html.escape(page)}"></iframe>'
