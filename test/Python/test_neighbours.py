"""docs/Neighbours.md: every block runs as it is, where its library is installed, and every module has a section."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import attn

PAGE = Path(__file__).parents[2] / "docs" / "Neighbours.md"
if not PAGE.exists():
    pytest.skip("no documents beside the tests", allow_module_level=True)
# What a section needs beside its own library.
NEEDED = {"xFormers": ["torch"], "diffusers": ["diffusers"], "Flax": ["flax"], "Keras": ["keras"], "TensorFlow": ["tensorflow"]}
NEEDED["Transformer Engine"] = ["torch"]
NAMES = {title: title.lower().replace(" ", "_") for title in NEEDED}


def list_sections():
    parts = re.split(r"^## (.+)$", PAGE.read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.mark.made_of("docs/Neighbours.md", *[f"python/attn/integrations/{name}.py" for name in NAMES.values()])
@pytest.mark.parametrize("title", NEEDED)
def test_blocks(title):
    (block,) = re.findall(r"```python\n(.*?)```", list_sections()[title], re.S)
    for name in NEEDED[title]:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    backend = next((x for x in ("torch", "jax", "tensorflow") if importlib.util.find_spec(x)), "")
    path = os.path.dirname(os.path.dirname(attn.__file__))
    environment = {**os.environ, "PYTHONPATH": path, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-B", "-W", "ignore", "-c", block]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def test_every_module_has_a_section():
    modules = {path.stem for path in (Path(attn.__file__).parent / "integrations").glob("[a-z]*.py")}
    told = {x.lower().replace(" ", "_") for x in list_sections()}
    # Of the README's table.
    assert modules - {"torch", "transformers", "flash_attn", "flashinfer", "vllm", "sglang"} <= told
    assert told - {"hugging_face_kernels"} <= modules


def test_every_section_has_a_test():
    for title in NEEDED:
        assert (Path(__file__).parent / f"test_{NAMES[title]}.py").exists()
