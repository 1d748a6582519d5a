"""Calls of plain tensors and arrays that nobody watches, by the extension of python/direct."""

from __future__ import annotations

import functools
import importlib.util
import sys
import weakref
from typing import Any, Callable, List, Optional, Protocol, Tuple

from . import _arrays
from ._library import Kernel, library_path
from ._places import name_device
from ._problem import Problem
from ._source import Gradients


def _load() -> Any:
    """The extension; None where it was not built, or this Python has not CPython's stable ABI, as
    builds without a global lock."""
    path = library_path.parent / "_direct.abi3.so"
    has_abi = sys.implementation.name == "cpython" and sys.version_info >= (3, 10)
    if not has_abi or "t" in sys.abiflags or not path.exists():
        return None
    spec = importlib.util.spec_from_file_location("_direct", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def take_nothing(*call: Any) -> None:
    """What takes calls where nothing better does."""


extension = _load()
# (kernel, tensors, stream) -> code of attn_run, or None where the caller has to run it.
launch: Callable[..., Optional[int]] = extension.launch if extension else take_nothing


class User(Protocol):
    """Who keeps what `make` makes."""

    def forget_direct(self) -> None: ...


# Who made calls, and whether the way is closed (_observe).
users: "weakref.WeakSet[User]" = weakref.WeakSet()
_closed = [False]
# Puts ranges of a profiler around calls (_nvtx).
around: Optional[Callable[[Kernel, Callable[..., Any]], Callable[..., Any]]] = None


def close() -> None:
    """Sends all calls the longer way, where they are watched."""
    _closed[0] = True
    _forget()


def is_closed() -> bool:
    return _closed[0]


def open_again() -> None:
    _closed[0] = False
    _forget()


def _forget() -> None:
    for user in [*users]:
        user.forget_direct()


def _find_empty_strided(torch: Any, device: int) -> Any:
    """(shape, strides, dtype) -> new tensor on a device."""
    place = name_device(device)

    def public(shape: Any, strides: Any, dtype: Any) -> Any:
        return torch.empty_strided(shape, strides, dtype=dtype, device=place)

    # What Inductor's code calls: past the dispatcher, in half the time of torch.empty_like.
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    fast = getattr(guards, "_empty_strided_cpu" if device < 0 else "_empty_strided_cuda", None)
    if fast is None or device < 0 or torch.cuda.device_count() == 1:
        return fast or public
    # It allocates on the current device.
    current = torch.cuda.current_device

    def on_device(shape: Any, strides: Any, dtype: Any) -> Any:
        return (fast if current() == device else public)(shape, strides, dtype)

    return on_device


_NUMBERS = {"query": 0, "key": 1, "value": 2, "sink": 3}


def make(
    kernel: Kernel, problem: Problem, captures: List[Tuple], of: Optional[Gradients] = None
) -> Callable[..., Any]:
    """(q, k, v, scale, sink, captured, rows_first, is_operator, out) -> what `Plan.run` returns, or
    None where Plan has to take the call itself. Of gradients (q, k, v, scale, sink, captured,
    rows_first, output, lse, lse_low, d_output, d_lse) -> what `GradientPlan.run` returns. Serves the
    libraries that have been imported; `captures` as Plan has them."""
    # It knows one type for matrices.
    wanted, has_lse_gradient, has_low, is_wide = of or Gradients((), False, False)
    if extension is None or _closed[0] or problem.output or is_wide:
        return take_nothing
    torch, on_cpu = _arrays.find_torch(), kernel.device < 0
    code, bits, _ = _arrays.TYPES[problem.type]
    given = [
        (*_arrays.TYPES[element][:2], rank, position, tuple(least))
        for _, _, element, rank, position, least in captures
    ]
    try:
        call = extension.Call(
            owner=kernel,
            kernel=kernel.handle,
            count_threads=torch.get_num_threads if torch is not None and on_cpu else None,
            on_cpu=on_cpu,
            code=code,
            bits=bits,
            value_dim=problem.value_dim,
            has_scale=problem.has_scale,
            has_sink=problem.has_sink,
            count_rows=problem.return_lse + problem.return_low,
            captures=tuple(given),
            torch=_describe_torch(torch, kernel.device, problem.type, of is not None),
            numpy=_describe_numpy(torch, problem.type) if on_cpu else None,
            wanted=tuple([_NUMBERS[x] if isinstance(x, str) else 4 + x for x in wanted]),
            lse_gradient=has_lse_gradient,
            lse_low=has_low,
        )
    except ValueError:
        # More captured tensors or dimensions than it has room for.
        return take_nothing
    run = call.run if of is None else call.run_gradient
    return run if around is None else around(kernel, run)


def _describe_torch(torch: Any, device: int, type_: str, is_gradient: bool) -> Optional[Tuple]:
    """What the extension asks of PyTorch; None where it cannot."""
    api = torch and getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if api is None:
        return None
    return (
        api,
        torch.Tensor,
        torch.nn.Parameter,
        getattr(torch, _arrays.NAMES_BY_TYPE[type_]),
        torch.float32,
        _find_empty_strided(torch, device),
        (*_arrays.find_watchers(), *_find_modes(torch, is_gradient)),
        torch.is_grad_enabled,
        torch.autograd.forward_ad,
        _has_complex_bf16(torch),
        _arrays.CPU if device < 0 else _arrays.CUDA,
        max(device, 0),
    )


def _describe_numpy(torch: Any, type_: str) -> Optional[Tuple]:
    """What the extension asks of NumPy; None where it cannot."""
    numpy, ml_dtypes = map(sys.modules.get, ("numpy", "ml_dtypes"))
    bf16 = None if numpy is None or ml_dtypes is None else numpy.dtype(ml_dtypes.bfloat16)
    if numpy is None or (type_ == "bf16" and bf16 is None):
        return None
    return (
        numpy.ndarray,
        bf16 if type_ == "bf16" else numpy.dtype(_arrays.NAMES_BY_TYPE[type_]),
        numpy.dtype("float32"),
        bf16,
        numpy.empty,
        () if torch is None else (torch._C._is_tracing,),
    )


@functools.lru_cache(maxsize=None)
def _has_complex_bf16(torch: Any) -> bool:
    """Since PyTorch 2.15."""
    types = [x for x in vars(torch).values() if isinstance(x, torch.dtype) and x.is_complex]
    return torch.bfloat16 in [x.to_real() for x in types]


def _find_modes(torch: Any, is_gradient: bool) -> Tuple[Callable, ...]:
    """What tells whether torch.jit.trace records, and whether torch.autocast casts: gradients are
    of what it has cast."""
    c = torch._C
    return (c._is_tracing,) if is_gradient else (c._is_tracing, c._is_any_autocast_enabled)
