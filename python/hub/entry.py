"""attn for the `kernels` library of Hugging Face: what it imports from a repository of the hub.

The package lies beside this file, once for each processor, and is imported as `attn`: its modules know each other by that name, and
PyTorch knows its operators by it. So a process has one attn. Where it has one of the same version already, that one serves.
"""

import importlib
import importlib.util
import os
import platform
import sys
from pathlib import Path

# docs/pack-hub writes both.
VERSION = "@VERSION@"
MACHINES = "@MACHINES@".split(",")
GLIBC = (2, 34)
# Beside all of attn: functions of flash-attn, by which Transformers knows an attention of the hub, and those of PyTorch.
TORCH = ("scaled_dot_product_attention", "flex_attention", "varlen_attn")


def _check_machine():
    machine = platform.machine()
    if not sys.platform.startswith("linux") or machine not in MACHINES:
        raise ImportError(f"attn: expected Linux on {' or '.join(MACHINES)}, got {sys.platform} on {machine}")
    name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else "").partition(" ")
    if name != "glibc" or tuple(map(int, version.split(".")[:2])) < GLIBC:
        raise ImportError(f"attn: expected glibc {GLIBC[0]}.{GLIBC[1]} or later, got {version or 'another C library'}")
    return machine


def _check_torch():
    torch = sys.modules.get("torch") or importlib.import_module("torch")
    version = tuple(int(x) for x in torch.__version__.split("+")[0].split(".")[:2])
    if version < (2, 9):
        raise ImportError(f"attn: expected PyTorch 2.9 or later, got {torch.__version__}")


def _load():
    _check_torch()
    if (there := sys.modules.get("attn")) is not None:
        if there.__version__ != VERSION:
            where = os.path.dirname(there.__file__)
            raise ImportError(f"attn: expected no attn but {VERSION} in the process, got {there.__version__} of {where}")
        return there
    # As it is named: in a cache of the hub each file is a link to another place.
    folder = Path(os.path.abspath(__file__)).parent / _check_machine() / "attn"
    spec = importlib.util.spec_from_file_location("attn", folder / "__init__.py", submodule_search_locations=[str(folder)])
    module = sys.modules["attn"] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules["attn"]
        raise
    return module


attn = _load()
__version__ = attn.__version__
_flash_attn = importlib.import_module("attn.integrations.flash_attn")
_torch = importlib.import_module("attn.integrations.torch")
__all__ = ["attn"]
for _module, _names in ((attn, attn.__all__), (_flash_attn, _flash_attn.__all__), (_torch, TORCH)):
    globals().update({name: getattr(_module, name) for name in _names})
    __all__ += _names
