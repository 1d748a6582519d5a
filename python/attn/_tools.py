"""The tools of the package, as programs of their own."""

from __future__ import annotations

import html
import os
import shutil
import subprocess
from pathlib import Path
from typing import Tuple

from ._library import library_path

# Options that attn-translate has too.
_WORDS = {"block_m", "block_n", "splits", "stay", "slack", "way", "fused", "cpu"}
_SWITCHES = {"on": "true", "off": "false"}


def find_tool(name: str) -> str:
    """The path of a tool: of the package, of the build folder that $ATTN_LIBRARY is of, or of $PATH;
    empty where there is none."""
    near = [library_path.parent.parent / "bin" / name, Path(__file__).parent / "bin" / name]
    for path in near:
        if os.access(path, os.X_OK):
            return str(path)
    return shutil.which(name) or ""


def make_page(source: str, given: Tuple[Tuple[str, str], ...]) -> str:
    """The rooms of a source as a page of HTML, or an empty text where no tool can make it."""
    tool = find_tool("attn-translate")
    if not tool:
        return ""
    options = dict(given)
    is_gpu = options.get("device", "cpu").startswith("cuda")
    target = options.get("target") or ("cuda" if is_gpu else "cpu")
    said = {x.replace("_", "-"): _SWITCHES.get(y, y) for x, y in given if x in _WORDS and y}
    words = [f"--{name}={text}" for name, text in said.items()]
    command = [tool, "-", "--html", f"--target={target}", *words]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    return done.stdout


def frame(page: str) -> str:
    """A page inside of that of a notebook, with an address, keys and a style of its own."""
    style = "width: 100%; height: 680px; border: 1px solid #8884; border-radius: 6px"
    return f'<iframe title="attn" style="{style}" srcdoc="{html.escape(page)}"></iframe>'
