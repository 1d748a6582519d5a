"""docs/pack-hub: a repository of Hugging Face's kernel hub, and what is imported from it (python/hub/entry.py)."""

import importlib.util
import json
import os
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import attn
from attn._library import library_path

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "docs" / "pack-hub"
if not PATH.exists():
    pytest.skip("no checkout beside the tests", allow_module_level=True)
pytest.importorskip("torch")
pytestmark = pytest.mark.made_of("docs/pack-hub", "python/hub/entry.py", "python/attn/__init__.py", "python/attn/integrations/flash_attn.py")

# As `kernels` 0.17 does it (importer.py): a module of its own name, from the file.
LOAD = """
import importlib.util, json, pathlib, sys
def load(variant, name=""):
    variant = pathlib.Path(variant)
    name = name or json.loads((variant / "metadata.json").read_text())["id"]
    spec = importlib.util.spec_from_file_location(name, variant / "__init__.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
"""
CALL = """
import torch
q, k, v = torch.randn(3, 2, 19, 4, 32, generator=torch.Generator().manual_seed(3))
got = kernel.flash_attn_func(q, k, v, causal=True)
wanted = torch.nn.functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), is_causal=True)
assert (got - wanted.transpose(1, 2)).abs().max() < 1e-5
print(kernel.__version__, kernel.attn.__file__, all(hasattr(kernel, x) for x in kernel.__all__))
"""


@pytest.fixture(scope="module")
def variant(tmp_path_factory):
    """Of the library that is tested, as a cache of the hub holds it: each file is a link."""
    folder = tmp_path_factory.mktemp("hub")
    done = subprocess.run([sys.executable, "-B", PATH, "--folder", library_path.parent, "-o", folder / "made"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"attn {attn.__version__} for " in done.stdout and "hf upload OWNER/attn" in done.stdout
    (folder / "blobs").mkdir()
    for at, path in enumerate(sorted(x for x in (folder / "made").rglob("*") if x.is_file())):
        path.rename(folder / "blobs" / str(at))
        path.symlink_to(folder / "blobs" / str(at))
    return folder / "made" / "build" / "torch-universal"


def run(program, **environment):
    """In a process that knows of no attn."""
    without = {x: y for x, y in os.environ.items() if x not in ("PYTHONPATH", "ATTN_LIBRARY")}
    command = [sys.executable, "-B", "-W", "ignore", "-c", LOAD + program]
    return subprocess.run(command, env={**without, **environment}, capture_output=True, text=True)


@pytest.mark.parametrize("name", ["", "attn"])
def test_a_call(variant, name):
    """From its folder, and from that which the oldest versions look for."""
    done = run(f"kernel = load({str(variant / name)!r}, {name and 'attn_of_the_hub'!r})\n{CALL}")
    assert done.returncode == 0, done.stderr
    version, file, has_all = done.stdout.split()
    assert version == attn.__version__ and has_all == "True"
    assert Path(file).parents[2] == variant


def test_the_library_that_loads_it(variant):
    if importlib.util.find_spec("kernels") is None:
        pytest.skip("kernels is not installed")
    begin = "import pathlib, kernels\nkernel = kernels.get_local_kernel(pathlib.Path(PATH))\n"
    done = run(begin.replace("PATH", repr(str(variant.parents[1]))) + CALL, HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stderr
    assert str(variant) in done.stdout


MODEL = """
import torch, transformers
how = dict(vocab_size=50, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**how)).eval()
ids, mask = torch.randint(0, 50, (2, 17)), torch.ones(2, 17, dtype=int)
mask[0, :5] = 0
wanted = model(ids, attention_mask=mask).logits
model.set_attn_implementation("owner/attn@v1", allow_all_kernels=True)
got = model(ids, attention_mask=mask).logits
assert ((got - wanted) * mask[..., None]).abs().max() < 1e-5
"""


def test_a_model_of_transformers(variant):
    """Which asks the hub, and takes what is said to be there."""
    utils = pytest.importorskip("transformers.utils")
    if not utils.is_kernels_available():
        pytest.skip("kernels is not installed, or of a version that this Transformers does not take")
    done = run(MODEL, HF_HUB_OFFLINE="1", LOCAL_KERNELS=f"owner/attn={variant.parents[1]}")
    assert done.returncode == 0, done.stderr


def test_the_same_attn_serves(variant):
    program = f"import attn\nkernel = load({str(variant)!r})\nassert kernel.attn is attn\n{CALL}"
    done = run(program, PYTHONPATH=str(ROOT / "python"), ATTN_LIBRARY=str(library_path))
    assert done.returncode == 0, done.stderr
    assert str(ROOT / "python" / "attn") in done.stdout


@pytest.mark.parametrize(
    "begin, message",
    [
        ("other = sys.modules['attn'] = types.ModuleType('attn'); other.__version__, other.__file__ = '0.0.9', '/x/attn.py'",
         f"attn: expected no attn but {attn.__version__} in the process, got 0.0.9 of /x"),
        ("import platform; platform.machine = lambda: 'riscv64'", "attn: expected Linux on x86_64"),
        ("sys.platform = 'win32'", "got win32 on"),
        ("import os; os.confstr = lambda name: 'glibc 2.31'", "attn: expected glibc 2.34 or later, got 2.31"),
        ("import os; os.confstr_names = {}", "attn: expected glibc 2.34 or later, got another C library"),
        ("torch.__version__ = '2.8.1+cpu'", "attn: expected PyTorch 2.9 or later, got 2.8.1+cpu"),
    ],
)  # fmt: skip
def test_refusals(variant, begin, message):
    # Before anything of PyTorch is called.
    torch = "import types; torch = sys.modules['torch'] = types.ModuleType('torch'); torch.__version__ = '2.9.0'"
    done = run(f"{torch}\n{begin}\nload({str(variant)!r})")
    assert done.returncode == 1 and message in done.stderr.splitlines()[-1], done.stderr
    assert done.stderr.splitlines()[-1].startswith("ImportError: ")


def test_wheels(tmp_path):
    """Of each the package without tools, under its processor."""
    wheels = []
    for machine in ("x86_64", "aarch64"):
        wheels.append(tmp_path / f"attn-{attn.__version__}-py3-none-manylinux_2_34_{machine}.whl")
        with zipfile.ZipFile(wheels[-1], "w") as archive:
            for name in ("attn/__init__.py", "attn/lib/libattn.so", "attn/bin/attn-run", "attn-0.1.0.dist-info/METADATA"):
                archive.writestr(name, machine)
    pack = lambda *x: subprocess.run([sys.executable, "-B", PATH, *x, "-o", tmp_path / "hub"], capture_output=True, text=True)  # noqa: E731
    assert pack(*wheels).returncode == 0
    variant = tmp_path / "hub" / "build" / "torch-universal"
    files = {str(x.relative_to(variant)) for x in variant.rglob("*") if x.is_file()}
    packages = {f"{machine}/attn/{name}" for machine in ("x86_64", "aarch64") for name in ("__init__.py", "lib/libattn.so")}
    assert files == packages | {"__init__.py", "attn/__init__.py", "LICENSE", "metadata.json"}
    first = json.loads((variant / "metadata.json").read_text())["id"]
    assert "x86_64,aarch64" in (variant / "__init__.py").read_text()
    pack(wheels[0])
    assert json.loads((variant / "metadata.json").read_text())["id"] != first

    assert "pack-hub: expected wheels or --folder, got none" in pack().stderr
    assert "expected attn-X.Y.Z-py3-none-manylinux_2_34_MACHINE.whl, got x.whl" in pack("x.whl").stderr
    assert "expected libattn.so in" in pack("--folder", tmp_path).stderr
    older = shutil.copy(wheels[0], tmp_path / wheels[0].name.replace(attn.__version__, "0.0.9"))
    assert f"expected version {attn.__version__}, got 0.0.9" in pack(older).stderr
    again = tmp_path / "again" / wheels[0].name
    again.parent.mkdir()
    shutil.copy(wheels[0], again)
    assert "expected one wheel for each processor, got two for x86_64" in pack(wheels[0], again).stderr


def test_the_version_of_the_checkout():
    assert runpy.run_path(str(PATH), run_name="pack")["read_version"]() == attn.__version__
