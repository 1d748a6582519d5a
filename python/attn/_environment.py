"""What a report of a fault should say about the machine and its programs."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

from . import _direct
from ._cache_folder import find_cache_folder
from ._explain import Explanation
from ._library import ABI_VERSION, library, library_path, version
from ._tools import find_tool

# Distributions whose versions matter, by their names in an index of packages.
_PACKAGES = (
    "numpy ml_dtypes torch triton jax jaxlib transformers diffusers xformers flash-attn tensorflow-cpu "
    "tensorflow keras flax nvidia-cuda-nvcc"
).split()
_TOOLS = "attn-run", "attn-translate", "attn-opt", "attn-reduce", "attn-lsp-server", "ptxas", "nvcc"
# Of a processor, what kernels and their speed depend on.
_FEATURES = "avx2 fma avx512f avx512_bf16 avx512_fp16 amx_bf16 amx_fp16 sve bf16".split()
_VARIABLES = re.compile(r"(?:ATTN|OMP|MKL|CUDA|NVIDIA|TORCH|TORCHINDUCTOR|XLA|JAX)_\w+$")


def collect_env() -> Explanation:
    """Describes attn, the machine and the libraries around it, for a report of a fault.

        print(attn.collect_env())

    `python -m attn env` prints the same. Nothing leaves the machine. No other library is imported,
    and no GPU is touched beyond asking its name.

    Returns:
        A text that a prompt shows as it is, a line for each fact. It holds versions, paths of attn,
        models of processors and GPUs, and environment variables of attn, OpenMP, CUDA, PyTorch and
        XLA.
    """
    parts: List[Tuple[str, Dict[str, str]]] = [
        ("attn", dict(_describe_attn())),
        ("machine", dict(_describe_machine())),
        ("GPUs", dict(_describe_gpus())),
        ("packages", dict(_describe_packages())),
        ("tools", dict(_describe_tools())),
        ("environment", dict(_describe_variables())),
    ]
    lines = []
    for title, facts in parts:
        lines.append(title)
        lines += [f"  {name:17} {text}" for name, text in facts.items()] or ["  none"]
    return Explanation("\n".join(lines))


def _describe_attn() -> Iterator[Tuple[str, str]]:
    yield "version", f"{version}, ABI {ABI_VERSION}"
    yield "library", f"{library_path} ({library_path.stat().st_size / 1e6:.0f} MB)"
    yield "package", str(Path(__file__).parent)
    yield "direct calls", "yes" if _direct.extension else "no: calls go through ctypes"
    native = library_path.parent / "libattn_torch.so"
    yield "operators in C++", "yes" if native.exists() else "no: PyTorch's are in Python"
    yield "threads", str(library.attn_get_num_threads())
    yield "cache", _describe_cache()


def _describe_cache() -> str:
    folder = find_cache_folder()
    if folder is None:
        return "off (ATTN_CACHE=0)"
    try:
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    except OSError as error:
        return f"{folder}: {error.strerror}"
    return f"{folder}: {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB"


# What only a report needs is imported for one, and not with attn.


def _describe_machine() -> Iterator[Tuple[str, str]]:
    import platform

    yield "system", f"{platform.platform()}, {' '.join(platform.libc_ver())}"
    yield (
        "Python",
        f"{platform.python_version()} ({platform.python_implementation()}), {sys.executable}",
    )
    facts = _read_processor()
    model = facts.get("model name") or facts.get("CPU part") or platform.machine()
    yield (
        "processor",
        f"{model}, {os.cpu_count()} threads, {len(os.sched_getaffinity(0))} of them ours",
    )
    flags = (facts.get("flags") or facts.get("Features") or "").split()
    yield (
        "instructions",
        " ".join(x for x in _FEATURES if x in flags) or "none of those attn asks for",
    )
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    yield "memory", f"{pages / 2**30:.0f} GiB"


def _read_processor() -> Dict[str, str]:
    """Of the first one."""
    facts: Dict[str, str] = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, mark, text = line.partition(":")
            if not mark:
                break
            facts[name.strip()] = text.strip()
    except OSError:
        pass
    return facts


def _describe_gpus() -> Iterator[Tuple[str, str]]:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    if driver.cuInit(0):
        yield "driver", "libcuda.so.1 is there and does not start"
        return
    number = ctypes.c_int()
    if not driver.cuDriverGetVersion(ctypes.byref(number)):
        yield "driver", f"CUDA {number.value // 1000}.{number.value % 1000 // 10}"
    driver.cuDeviceGetCount(ctypes.byref(number))
    for index in range(number.value):
        yield f"cuda:{index}", _describe_gpu(driver, index)


def _describe_gpu(driver: ctypes.CDLL, index: int) -> str:
    device, name, bytes_ = ctypes.c_int(), ctypes.create_string_buffer(128), ctypes.c_size_t()
    driver.cuDeviceGet(ctypes.byref(device), index)
    driver.cuDeviceGetName(name, len(name), device)
    driver.cuDeviceTotalMem_v2(ctypes.byref(bytes_), device)
    # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, its MINOR, and the number of multiprocessors.
    found = []
    for attribute in (75, 76, 16):
        number = ctypes.c_int()
        driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
        found.append(number.value)
    major, minor, count = found
    model = name.value.decode(errors="replace")
    return f"{model}, sm_{major}{minor}, {count} multiprocessors, {bytes_.value / 2**30:.0f} GiB"


def _describe_packages() -> Iterator[Tuple[str, str]]:
    import importlib.metadata

    for name in _PACKAGES:
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        yield name, f"{found}{', imported' if name.replace('-', '_') in sys.modules else ''}"


def _describe_tools() -> Iterator[Tuple[str, str]]:
    import subprocess

    for name in _TOOLS:
        path = find_tool(name)
        if not path:
            yield name, "none"
            continue
        try:
            done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
            lines = [
                line.strip()
                for line in done.stdout.splitlines()
                if line.startswith(f"{name} ") or re.search(r"ersion|release", line)
            ]
        except (OSError, subprocess.SubprocessError):
            lines = []
        yield name, f"{path} ({lines[-1] if lines else 'tells no version'})"


def _describe_variables() -> Iterator[Tuple[str, str]]:
    for name, text in sorted(os.environ.items()):
        if _VARIABLES.match(name):
            yield name, text
