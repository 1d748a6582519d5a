"""docs/Examples.md: every block runs as it is, and every public function has one that calls it."""

import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import attn

PAGE = Path(__file__).parents[2] / "docs" / "Examples.md"
if not PAGE.exists():
    pytest.skip("no documents beside the tests", allow_module_level=True)
MODULES = ["attn", "attn.serving", "attn.distributed", "attn.jax"]
MODULES += [f"attn.integrations.{name}" for name in ("torch", "flash_attn", "flashinfer")]
# Named by documents of others; docs/Neighbours.md has the modules of the other libraries.
MORE = {"attn.integrations.transformers": ["register", "unregister", "register_continuous", "unregister_continuous"]}


def read_page():
    """The lines before all blocks, and (names, block) of each."""
    text = PAGE.read_text()
    (first,) = re.findall(r"```python\n(.*?)```", text.partition("\n## ")[0], re.S)
    return first, re.findall(r"^### ([^\n]+)\n\n```python\n(.*?)```", text, re.M | re.S)


def list_names(title):
    """Of "attn.exp, attn.log", or "attn.serving: paged_attention, varlen_attention"."""
    module, mark, names = title.partition(": ")
    return [f"{module}.{name}" for name in names.split(", ")] if mark else title.split(", ")


FIRST, BLOCKS = read_page()
# JAX's and PyTorch's, whose imports take seconds, run together.
GROUPS = {
    "numpy": [x for x in BLOCKS if "import torch" not in x[1] and "jax" not in x[1] and "integrations" not in x[1]],
    "torch": [x for x in BLOCKS if "import torch" in x[1] or "integrations" in x[1]],
    "jax": [x for x in BLOCKS if "jax" in x[1] and "import torch" not in x[1]],
}


# Tests of the frameworks meet the rest.
MADE_OF = {
    "numpy": ["docs/Examples.md", ":(glob)python/attn/*.py"],
    "torch": ["docs/Examples.md", "python/attn/distributed", "python/attn/integrations"],
    "jax": ["docs/Examples.md", ":(glob)python/attn/*jax*.py"],
}


@pytest.mark.parametrize("name", [pytest.param(x, marks=pytest.mark.made_of(*MADE_OF[x])) for x in GROUPS])
def test_blocks(name):
    """Each block in names of its own, all of a library in one process."""
    pytest.importorskip(name)
    if name == "torch":
        pytest.importorskip("transformers")
    program = (
        "import sys\n"
        f"blocks = {[(names, FIRST + block) for names, block in GROUPS[name]]!r}\n"
        "for names, block in blocks:\n"
        "    try:\n"
        "        exec(compile(block, names, 'exec'), {'__name__': 'example'})\n"
        "    except BaseException as error:\n"
        "        sys.exit(f'{names}: {type(error).__name__}: {error}')\n"
        "print(len(blocks), 'ran')\n"
    )
    path = os.path.dirname(os.path.dirname(attn.__file__))
    command = [sys.executable, "-B", "-W", "ignore", "-c", program]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith(f"{len(GROUPS[name])} ran\n")


def test_all_blocks_run():
    assert sorted(x[0] for group in GROUPS.values() for x in group) == sorted(x[0] for x in BLOCKS)


@pytest.mark.parametrize("module", [*MODULES, *MORE])
def test_every_function_has_an_example(module):
    if "jax" in module:
        pytest.importorskip("jax")
    elif module not in ("attn", "attn.serving"):
        pytest.importorskip("torch")
        if "transformers" in module:
            pytest.importorskip("transformers")
    found = importlib.import_module(module)
    told = {name: block for title, block in BLOCKS for name in list_names(title)}
    for name in MORE.get(module) or found.__all__:
        # FlashInfer's classes are functions in two steps.
        if inspect.isfunction(getattr(found, name)) or hasattr(getattr(found, name), "plan"):
            whole = f"{module}.{name}"
            assert whole in told, f"expected an example of {whole}"
            assert re.search(rf"\b{name}\(", told[whole]), f"expected a call of {name} in its example"
