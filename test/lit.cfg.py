"""The lit suite: one folder per thing tested, one file per pass or tool behaviour."""

import glob
import os
import platform
import shutil
import subprocess
import sys

import lit.formats

config.name = "attn"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Unit", "Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.attn_obj_root

# `make assembler` installs the pinned ptxas.
assembler = glob.glob(os.path.join(config.test_source_root, "../.venv/lib/python3*/site-packages/nvidia/cu13/bin"))
config.environment["PATH"] = os.pathsep.join(
    [config.attn_tools_dir, config.llvm_tools_dir, *assembler, config.environment.get("PATH", "")]
)
for variable in ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "HOME"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]

config.substitutions.append(("%python", sys.executable))

# Asks the driver, in a process of its own: a driver that is initialised does not survive a fork.
FIND_GPU = """
import ctypes
cuda, major, minor = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_int()
assert cuda.cuInit(0) == 0
assert cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, 0) == 0
assert cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, 0) == 0
print(f"sm_{major.value}{minor.value}")
"""

# What some tests need and some machines lack.
answer = subprocess.run([sys.executable, "-c", FIND_GPU], capture_output=True, text=True)
if answer.returncode == 0:
    config.available_features.update(["cuda", answer.stdout.strip()])
if shutil.which("ptxas", path=config.environment["PATH"]):
    config.available_features.add("ptxas")
# Bundles for machines with a GPU are without the two tools.
for program in ("chromedriver", "fish", "zsh", "attn-lsp-server", "attn-reduce"):
    if shutil.which(program, path=config.environment["PATH"]):
        config.available_features.add(program)
if os.path.exists("/proc/cpuinfo"):
    with open("/proc/cpuinfo") as cpuinfo:
        flags = set(next((line for line in cpuinfo if line.startswith("flags")), "").split())
    for flag in ("avx2", "avx512f", "avx512_bf16"):
        if flag in flags:
            config.available_features.add(flag)
config.available_features.add(platform.machine())
