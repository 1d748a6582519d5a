"""The tools of the package, as programs of their own."""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from ._library import library_path

# Options that attn-translate has too.
_WORDS = set(
    "block_m block_n splits fixed_split stay reserve balance slack way fused cpu".split()
)
_SWITCHES = {"on": "true", "off": "false"}


def find_tool(name: str) -> str:
    """The path of a tool: of the package, of the build folder that $ATTN_LIBRARY is of, or of $PATH;
    empty where there is none."""
    near = [library_path.parent.parent / "bin" / name, Path(__file__).parent / "bin" / name]
    for path in near:
        if os.access(path, os.X_OK):
            return str(path)
    return shutil.which(name) or ""


def _write_words(given: Tuple[Tuple[str, str], ...]) -> List[str]:
    """The options of a call as those of a tool."""
    options = dict(given)
    is_gpu = options.get("device", "cpu").startswith("cuda")
    target = options.get("target") or ("cuda" if is_gpu else "cpu")
    said = {x.replace("_", "-"): _SWITCHES.get(y, y) for x, y in given if x in _WORDS and y}
    return [f"--target={target}", *(f"--{name}={text}" for name, text in said.items())]


def make_page(
    source: str, given: Tuple[Tuple[str, str], ...], shape: str, mask: Optional[Dict[str, Any]]
) -> str:
    """The rooms of a source as a page of HTML, above them the mask and the timeline of a call, or an
    empty text where no tool can make it.

    Args:
        shape: extents of the call, "B=1,H=8,.."; of an empty text those that the tool takes.
        mask: tiles of its mask, as `--mask-tiles` takes them; of None those that the tool counts.
    """
    tool = find_tool("attn-translate")
    if not tool:
        return ""
    command = [tool, "-", "--html", *_write_words(given), *([f"--shape={shape}"] if shape else [])]
    with tempfile.TemporaryDirectory() as folder:
        if mask:
            path = Path(folder, "mask.json")
            path.write_text(json.dumps(mask))
            command.append(f"--mask-tiles={path}")
        return subprocess.run(command, input=source, capture_output=True, text=True).stdout


def frame(page: str) -> str:
    """A page inside of that of a notebook, with an address, keys and a style of its own."""
    style = "width: 100%; height: 860px; border: 1px solid #8884; border-radius: 6px"
    return f'<iframe title="attn" style="{style}" srcdoc="{html.escape(page)}"></iframe>'
