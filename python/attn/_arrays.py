"""NumPy arrays and PyTorch tensors, seen through one pair of eyes.

Neither library is imported here: an array of a library that nobody imported cannot arrive.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional, Tuple

from ._library import Error

# Name in the IR -> (DLPack code, bits, bytes).
TYPES = {
    "f16": (2, 16, 2),
    "bf16": (4, 16, 2),
    "f32": (2, 32, 4),
    "f64": (2, 64, 8),
    "i1": (6, 8, 1),
    "i8": (0, 8, 1),
    "i32": (0, 32, 4),
    "i64": (0, 64, 8),
}

# Names of dtypes in NumPy, ml_dtypes and PyTorch.
_NAMES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "bool": "i1",
    "int8": "i8",
    "int32": "i32",
    "int64": "i64",
}

# Types of the parts of PyTorch's complex tensors: a conjugate's imaginary part is a view that says
# to negate what it reads.
PARTS_OF_COMPLEX = ("f16", "f32", "f64")

_names_by_dtype: dict = {}


def type_name(dtype: Any) -> Optional[str]:
    """ "f32" for float32 of any library, or for its name; None for a type that attn has not."""
    try:
        return _names_by_dtype[dtype]
    except KeyError:
        pass
    except TypeError:
        return None
    text = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or str(dtype)
    text = text.rpartition(".")[2]
    name = text if text in TYPES else _NAMES.get(text)
    if getattr(dtype, "byteorder", "=") not in "=|":
        name = None
    # A class such as numpy.float32 names itself by its repr.
    if name is None and isinstance(dtype, type):
        name = _NAMES.get(dtype.__name__.rstrip("_"))
    _names_by_dtype[dtype] = name
    return name


def is_numpy(x: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(x, numpy.ndarray)


def is_torch(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_array(x: Any) -> bool:
    return is_numpy(x) or is_torch(x)


def describe_type(x: Any) -> str:
    dtype = getattr(x, "dtype", None)
    return f"{type(x).__name__} of {dtype}" if dtype is not None else type(x).__name__


def _place(x: Any) -> str:
    return "a NumPy array" if is_numpy(x) else f"one on {x.device}"


def view(x: Any, name: str, device: int = -1) -> Tuple[int, Tuple[int, ...], Tuple[int, ...]]:
    """(address, shape, strides in elements) of an array in host memory (-1), or on a GPU by number.

    Raises Error when it is not one: another device, a gradient to be recorded, sparse or lazy.
    """
    if is_numpy(x):
        if device >= 0:
            raise Error(
                "invalid argument",
                f"{name}: expected a tensor on cuda:{device}, got {_place(x)}",
                f'use torch.from_numpy({name}).to("cuda:{device}")',
            )
        size = x.itemsize
        strides = x.strides
        if size > 1:
            for stride in strides:
                if stride % size:
                    raise Error(
                        "invalid argument",
                        f"{name}: expected strides of whole elements, got {strides} bytes",
                        "copy the array",
                    )
            strides = tuple([stride // size for stride in strides])
        return x.__array_interface__["data"][0], x.shape, strides
    if not is_torch(x):
        raise Error(
            "invalid argument",
            f"{name}: expected a NumPy array or PyTorch tensor, got {describe_type(x)}",
        )
    if device < 0 and not x.is_cpu:
        if x.is_cuda:
            raise Error(
                "invalid argument",
                f"{name}: expected a tensor on the CPU, as the others are, got {_place(x)}",
                "move all of them to one device",
            )
        raise Error(
            "no device", f"{name}: expected a tensor on the CPU or a CUDA device, got {_place(x)}"
        )
    if device >= 0 and not (x.is_cuda and x.get_device() == device):
        raise Error(
            "invalid argument",
            f"{name}: expected a tensor on cuda:{device}, got {_place(x)}",
            "move all of them to one device",
        )
    if x.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise Error(
            "invalid argument",
            f"{name}: expected a tensor without gradient, got requires_grad=True: there is no backward",
            "call under torch.no_grad(), or detach()",
        )
    if x.layout is not sys.modules["torch"].strided or x.is_neg() or x.is_conj():
        raise Error(
            "invalid argument", f"{name}: expected a strided tensor, got {x.layout}", "copy it"
        )
    return x.data_ptr(), tuple(x.shape), x.stride()


def device_name(device: Any) -> str:
    """ "cpu", "cuda" or "cuda:1" for a torch.device or its name."""
    text = str(device)
    torch = sys.modules.get("torch")
    if text == "cuda" and torch is not None and torch.cuda.is_available():
        return f"cuda:{torch.cuda.current_device()}"
    if text in ("cpu", "cuda") or (text.startswith("cuda:") and text[5:].isdecimal()):
        return text
    raise Error("invalid argument", f"device: expected cpu, cuda or cuda:NUMBER, got {text!r}")


def find_current_stream() -> Callable[[int], int]:
    """What tells the address of PyTorch's current stream on a device."""
    torch = sys.modules.get("torch")
    raw = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
    if raw is not None:
        # A tenth of the time of the public function.
        return raw
    return lambda device: torch.cuda.current_stream(device).cuda_stream if torch else 0


def find_tensor_type(type_: str) -> Tuple[Any, Any]:
    """PyTorch's class of tensors and its dtype of a name; where nobody imported it, what nothing is."""
    torch = sys.modules.get("torch")
    if torch is None:
        return object(), object()
    name = next(name for name, known in _NAMES.items() if known == type_)
    return torch.Tensor, getattr(torch, name)


def find_empty_strided(device: int) -> Any:
    """PyTorch's (shape, strides, dtype) -> new tensor on a device; None where nobody imported it."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    place = "cpu" if device < 0 else f"cuda:{device}"

    def public(shape: Any, strides: Any, dtype: Any) -> Any:
        return torch.empty_strided(shape, strides, dtype=dtype, device=place)

    # What Inductor's code calls: past the dispatcher, in half the time of torch.empty_like.
    guards = getattr(getattr(getattr(torch, "_C", None), "_dynamo", None), "guards", None)
    fast = getattr(guards, "_empty_strided_cpu" if device < 0 else "_empty_strided_cuda", None)
    if fast is None or device < 0 or torch.cuda.device_count() == 1:
        return fast or public
    # It allocates on the current device.
    current = torch.cuda.current_device

    def on_device(shape: Any, strides: Any, dtype: Any) -> Any:
        return (fast if current() == device else public)(shape, strides, dtype)

    return on_device


def empty_like(x: Any, type_: Optional[str], shape: Tuple[int, ...]) -> Any:
    """A new array of x's library; type "f32" or None for that of x."""
    if is_numpy(x):
        numpy = sys.modules["numpy"]
        return numpy.empty(shape, x.dtype if type_ is None else "float32")
    if type_ is None:
        return x.new_empty(shape)
    return x.new_empty(shape, dtype=sys.modules["torch"].float32)


def swap(x: Any) -> Any:
    """The view with dimensions 1 and 2 exchanged."""
    return x.swapaxes(1, 2)


def to_f32(x: Any) -> Any:
    """A copy in f32, of the same library."""
    return x.astype("float32") if is_numpy(x) else x.float()
