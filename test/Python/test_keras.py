"""attn as the attention of Keras, with each of its backends that is installed."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import attn

if importlib.util.find_spec("keras") is None:
    pytest.skip("keras is not installed", allow_module_level=True)


@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow"])
def test_calls_and_a_model(backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "PYTHONPATH": os.path.dirname(os.path.dirname(attn.__file__)),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    program = Path(__file__).with_name("keras_program.py")
    command = [sys.executable, "-B", "-W", "ignore", str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith(f"agreed {backend}\n"), done.stderr[-3000:]
