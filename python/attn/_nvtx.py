"""Ranges of NVTX, which Nsight Systems and other profilers show, by the name of the kernel: $ATTN_NVTX=1.

Where nobody asks, no call knows of them.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import warnings
from typing import Any, Callable, List, Optional, Tuple

from . import _arrays, _direct
from ._kernel_name import name_kernel
from ._library import Kernel
from ._tensors import Tensors

# What opens a range, and what closes it.
Ranges = Tuple[Callable[[str], Any], Callable[[], Any]]

_LIBRARIES = ("libnvToolsExt.so.1", "libnvToolsExt.so")
# The ranges of this process, once they were looked for; none where no library has them.
_found: List[Optional[Ranges]] = []


def start() -> None:
    """As $ATTN_NVTX says."""
    wanted = os.environ.get("ATTN_NVTX", "")
    if wanted not in ("", "0", "1"):
        warnings.warn(f"ATTN_NVTX: expected 0 or 1, got {wanted!r}", RuntimeWarning, stacklevel=3)
    if wanted == "1":
        install()


def install() -> None:
    """Puts a range around the calls of kernels that are compiled from now on."""
    run = Tensors.run

    def run_in_range(tensors: Tensors, workspace: Any = None, is_planned: bool = False) -> None:
        around(tensors.kernel, run)(tensors, workspace, is_planned)

    _direct.around = around
    Tensors.run = run_in_range  # type: ignore[method-assign,assignment]


def around(kernel: Kernel, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in a range of the kernel's name."""
    name = f"attn {name_kernel(kernel.source)}"

    def call(*arguments: Any) -> Any:
        ranges = _get()
        if ranges is None:
            return function(*arguments)
        push, pop = ranges
        push(name)
        try:
            return function(*arguments)
        finally:
            pop()

    return call


def _get() -> Optional[Ranges]:
    if not _found:
        _found.append(_find())
        if _found[0] is None:
            warnings.warn(
                "ATTN_NVTX: expected PyTorch for CUDA, the package nvtx or libnvToolsExt.so.1, got none "
                "of them",
                RuntimeWarning,
                stacklevel=2,
            )
    return _found[0]


def _find() -> Optional[Ranges]:
    torch = _arrays.find_torch()
    if torch is not None:
        nvtx = torch.cuda.nvtx
        try:
            nvtx.mark("attn")
            return nvtx.range_push, nvtx.range_pop
        except RuntimeError:
            # PyTorch for the CPU.
            pass
    try:
        package = importlib.import_module("nvtx")
        return package.push_range, package.pop_range
    except ImportError:
        pass
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        push, pop = library.nvtxRangePushA, library.nvtxRangePop
        push.argtypes = [ctypes.c_char_p]
        return lambda text: push(text.encode()), pop
    return None
