"""Arrays of libraries that attn does not know, by DLPack: seen as NumPy's on the CPU, as PyTorch's on a
GPU, and results given back as arrays of theirs."""

from __future__ import annotations

import sys
from typing import Any, List

from . import _arrays
from ._library import Error

_GPU = 2  # kDLCUDA


def import_array(x: Any, name: str) -> Any:
    """The array, or for one of another library a view of it."""
    if not _arrays.is_foreign(x):
        return x
    if _arrays.is_traced_by_jax(x):
        raise Error(
            "invalid argument",
            f"{name}: expected an array that holds values, got one that JAX traces",
            "use attn.jax.attention inside of jax.jit, jax.grad and jax.vmap",
        )
    try:
        # Of an array in several places, NumPy alone gathers the parts.
        device = 1 if _is_sharded(x) else int(x.__dlpack_device__()[0])
        if device == _GPU:
            return _import_from_gpu(x, name)
        return _import_from_host(x)
    except Error:
        raise
    except Exception as error:
        raise Error(
            "invalid argument",
            f"{name}: expected an array that DLPack hands over, got {_arrays.describe_type(x)}: "
            + str(error).partition("\n")[0],
        ) from error


def _is_sharded(x: Any) -> bool:
    return len(getattr(getattr(x, "sharding", None), "device_set", ())) > 1


def _import_from_host(x: Any) -> Any:
    import numpy

    if not _is_sharded(x):
        try:
            return numpy.from_dlpack(x)
        except (AttributeError, BufferError, RuntimeError, TypeError):
            # bfloat16, which DLPack has and NumPy itself has not.
            pass
    array = numpy.asarray(x)
    if array.dtype == object:
        raise TypeError("no NumPy array can be made of it")
    return array


def _import_from_gpu(x: Any, name: str) -> Any:
    torch = sys.modules.get("torch")
    if torch is None:
        raise Error(
            "invalid argument",
            f"{name}: expected PyTorch to be imported for arrays on a GPU, got {_arrays.describe_type(x)} "
            "without it",
            "import torch: its allocator holds the results",
        )
    return torch.from_dlpack(x)


def is_strided(x: Any) -> bool:
    """Whether the last of several dimensions is not contiguous."""
    shape = x.shape
    if len(shape) < 2 or shape[-1] < 2:
        return False
    if _arrays.is_foreign(x):
        return not _arrays.is_jax(x) and is_strided(import_array(x, "captured array"))
    if _arrays.is_numpy(x):
        return x.strides[-1] != x.itemsize
    try:
        return x.stride(-1) != 1
    except (NotImplementedError, RuntimeError):
        # A tensor without strides, which `view` refuses by name.
        return False


def import_all(arrays: List[Any]) -> List[Any]:
    """Of captured arrays."""
    return [import_array(x, "captured array") for x in arrays]


def import_named(**arrays: Any) -> List[Any]:
    return [import_array(x, name) for name, x in arrays.items()]


def export(result: Any, like: Any) -> Any:
    """A result as an array of the library of q; as it is where that library does not say how."""
    if isinstance(result, tuple):
        return tuple(export(x, like) for x in result)
    if not _arrays.is_foreign(like):
        return result
    find = getattr(like, "__array_namespace__", None)
    if find is None:
        return result
    namespace = find()
    try:
        return namespace.from_dlpack(result)
    except (AttributeError, BufferError, RuntimeError, TypeError):
        return namespace.asarray(result)
