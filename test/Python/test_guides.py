"""docs/Guides.md: every block runs as it is, in a process of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import attn

PAGE = Path(__file__).parents[2] / "docs" / "Guides.md"
if not PAGE.exists():
    pytest.skip("no documents beside the tests", allow_module_level=True)
pytest.importorskip("torch")
parts = re.split(r"^## (.+)$", PAGE.read_text(), flags=re.M)
BLOCKS = {title: re.findall(r"```python\n(.*?)```", text, re.S) for title, text in zip(parts[1::2], parts[2::2])}


@pytest.mark.made_of("docs/Guides.md", ":(glob)python/attn/*.py")
@pytest.mark.parametrize("title", [title for title, blocks in BLOCKS.items() if blocks])
def test_blocks(title):
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(attn.__file__))}
    for block in BLOCKS[title]:
        command = [sys.executable, "-B", "-W", "ignore", "-c", block]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]


def test_there_is_one_for_each_reader():
    assert list(BLOCKS) == ["Train", "Serve", "Research", "Embed in C++"]
    assert all(BLOCKS[title] for title in ("Train", "Serve", "Research"))
