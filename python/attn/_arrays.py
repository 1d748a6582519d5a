"""NumPy arrays and PyTorch tensors, seen through one pair of eyes.

Neither library is imported here: an array of a library that nobody imported cannot arrive.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any, Callable, Optional, Tuple

from ._library import Error

# Name in the IR -> (DLPack code, bits, bytes).
TYPES = {
    "f16": (2, 16, 2),
    "bf16": (4, 16, 2),
    "f32": (2, 32, 4),
    "f64": (2, 64, 8),
    "f8E4M3FN": (10, 8, 1),
    "f8E5M2": (12, 8, 1),
    "i1": (6, 8, 1),
    "i8": (0, 8, 1),
    "i32": (0, 32, 4),
    "i64": (0, 64, 8),
}

# DLPack's numbers of devices.
CPU, CUDA = 1, 2

# Names of dtypes in NumPy, ml_dtypes and PyTorch.
_NAMES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
    "bool": "i1",
    "int8": "i8",
    "int32": "i32",
    "int64": "i64",
}

# As NumPy and PyTorch say them.
NAMES_BY_TYPE = {type_: name for name, type_ in _NAMES.items()}

# Of PyTorch's types, and of names. Graphs of torch.compile read this table, so that NumPy's types have one of
# their own: PyTorch 2.11 traces no table that has a key of NumPy's.
_names_by_dtype: dict = {}
_names_by_numpy: dict = {}


def type_name(dtype: Any) -> Optional[str]:
    """ "f32" for float32 of any library, or for its name; None for a type that attn has not."""
    try:
        return _names_by_dtype[dtype]
    except KeyError:
        pass
    except TypeError:
        return None
    # A dtype of NumPy, or a class such as numpy.float32.
    if hasattr(dtype, "byteorder") or isinstance(dtype, type):
        if dtype not in _names_by_numpy:
            _names_by_numpy[dtype] = _find_name(dtype)
        return _names_by_numpy[dtype]
    name = _names_by_dtype[dtype] = _find_name(dtype)
    return name


def _find_name(dtype: Any) -> Optional[str]:
    text = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or str(dtype)
    text = text.rpartition(".")[2]
    name = text if text in TYPES else _NAMES.get(text)
    if getattr(dtype, "byteorder", "=") not in "=|":
        name = None
    # A class such as numpy.float32 names itself by its repr.
    if name is None and isinstance(dtype, type):
        name = _NAMES.get(dtype.__name__.rstrip("_"))
    return name


def is_numpy(x: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(x, numpy.ndarray)


def find_torch() -> Any:
    """PyTorch; None before it is imported whole, which another thread may be doing."""
    torch = sys.modules.get("torch")
    spec = getattr(torch, "__spec__", None)
    return None if getattr(spec, "_initializing", False) else torch


def wants_same_bits() -> bool:
    """Whether PyTorch's programs ask for the same bits each time."""
    torch = find_torch()
    return torch is not None and torch.are_deterministic_algorithms_enabled()


def is_torch(x: Any) -> bool:
    torch = find_torch()
    return torch is not None and isinstance(x, torch.Tensor)


def is_jax(x: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.Array)


def is_traced_by_jax(x: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.core.Tracer)


def is_foreign(x: Any) -> bool:
    """An array of another library, which DLPack hands over."""
    return hasattr(type(x), "__dlpack__") and not is_numpy(x) and not is_torch(x)


def is_array(x: Any) -> bool:
    return is_numpy(x) or is_torch(x) or is_foreign(x)


def describe_type(x: Any) -> str:
    dtype = getattr(x, "dtype", None)
    return f"{type(x).__name__} of {dtype}" if dtype is not None else type(x).__name__


def _place(x: Any) -> str:
    return "a NumPy array" if is_numpy(x) else f"one on {x.device}"


def view(x: Any, name: str, device: int = -1) -> Tuple[int, Tuple[int, ...], Tuple[int, ...]]:
    """(address, shape, strides in elements) of an array in host memory (-1), or on a GPU by number.

    Raises Error when it is not one: another device, a gradient to be recorded, sparse or lazy.
    """
    torch = sys.modules.get("torch")
    # Most arrays: asked first, since each call does for all of its tensors.
    if torch is not None and type(x) is getattr(torch, "Tensor", None):
        return _view_tensor(torch, x, name, device)
    if is_numpy(x):
        if hasattr(x, "mask") and isinstance(x, sys.modules["numpy"].ma.MaskedArray):
            raise Error(
                "invalid argument",
                f"{name}: expected an array without a mask, got a masked array",
                f"give what the mask means by mask=, and {name}.data",
            )
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
    return _view_tensor(torch, x, name, device)


def _view_tensor(
    torch: Any, x: Any, name: str, device: int
) -> Tuple[int, Tuple[int, ...], Tuple[int, ...]]:
    if type(x) is not torch.Tensor or torch._C._functorch.is_functorch_wrapped_tensor(x):
        _check_class(x, name)
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
    if x.requires_grad or torch.autograd.forward_ad._current_level >= 0:
        _check_derivatives(x, name)
    if x.layout is not torch.strided or x.is_neg() or x.is_conj():
        got = "a negated view" if x.is_neg() else "a conjugate" if x.is_conj() else x.layout
        raise Error("invalid argument", f"{name}: expected a strided tensor, got {got}", "copy it")
    address = x.data_ptr()
    if not address and x.numel():
        raise Error(
            "invalid argument",
            f"{name}: expected a tensor with memory, got a {type(x).__name__} without",
            "call attn on tensors that hold values",
        )
    return address, tuple(x.shape), x.stride()


def _check_class(x: Any, name: str) -> None:
    """Refuses tensors that stand for others: their memory is not what they mean, if they have any."""
    torch = sys.modules["torch"]
    kind = type(x)
    if kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        hints = {
            "FakeTensor": "call attn outside of FakeTensorMode: it needs values",
            "FunctionalTensor": "call attn outside of the trace: wrap it by torch.compiler.disable",
            "DTensor": f"give the part of this process, {name}.to_local()",
            "NestedTensor": "give the padded tensor and a mask of lengths",
        }
        raise Error(
            "invalid argument",
            f"{name}: expected a tensor with memory of its own, got a {kind.__name__}",
            hints.get(kind.__name__, "give the plain tensor that it stands for"),
        )
    functorch = torch._C._functorch
    if functorch.is_functorch_wrapped_tensor(x):
        transform, hint = "torch.func", "call attn outside of the transform"
        if functorch.is_batchedtensor(x):
            transform, hint = "torch.vmap", "fold the mapped dimension into the batch or the heads"
        elif functorch.is_gradtrackingtensor(x):
            transform = "torch.func.grad, vjp or jvp"
            hint = "use backward() or torch.autograd.grad"
        raise Error(
            "invalid argument",
            f"{name}: expected a tensor with memory of its own, got one of {transform}",
            hint,
        )


def _check_derivatives(x: Any, name: str) -> None:
    torch = sys.modules["torch"]
    if x.requires_grad and torch.is_grad_enabled():
        raise Error(
            "invalid argument",
            f"{name}: expected a tensor without gradient, got requires_grad=True: there is no gradient "
            f"of {name}",
            "call under torch.no_grad(), or detach()",
        )
    forward_ad = torch.autograd.forward_ad
    if forward_ad._current_level >= 0 and forward_ad.unpack_dual(x).tangent is not None:
        raise Error(
            "invalid argument",
            f"{name}: expected a tensor without tangent, got a dual tensor: there is no forward-mode "
            "derivative",
            "give torch.autograd.forward_ad.unpack_dual(x).primal",
        )


def is_watched(q: Any, k: Any, v: Any, *others: Any) -> bool:
    """Whether somebody looks at what becomes of PyTorch's tensors: autograd, a transform of
    torch.func, a mode, the profiler, or a class that stands for tensors. `others` may have
    gradients."""
    torch = find_torch()
    if torch is None or not all(isinstance(x, torch.Tensor) for x in (q, k, v)):
        return False
    if torch.autograd.forward_ad._current_level >= 0:
        return False
    if any(map(is_recorded, (q, k, v, *others))):
        return torch.is_grad_enabled() or _is_transformed(torch, q, k, v)
    return _is_transformed(torch, q, k, v)


def may_be_recorded(q: Any, k: Any, v: Any) -> bool:
    """Whether they are plain tensors while autograd records."""
    torch = find_torch()
    if torch is None or not torch.is_grad_enabled():
        return False
    plain = torch.Tensor, torch.nn.Parameter
    return type(q) in plain and type(k) in plain and type(v) in plain


def is_watched_by_others(*tensors: Any) -> bool:
    """Whether somebody but autograd looks at what becomes of PyTorch's plain tensors, or one of them
    is left of a transform that has ended."""
    torch = sys.modules["torch"]
    if torch.autograd.forward_ad._current_level >= 0 or torch._C._is_tracing():
        return True
    count_modes, find_transform, is_profiled = find_watchers()
    if count_modes() > 0 or find_transform() is not None or is_profiled():
        return True
    return any(map(torch._C._functorch.is_functorch_wrapped_tensor, tensors))


def is_recorded(x: Any) -> bool:
    return x is not None and getattr(x, "requires_grad", False)


def is_any_recorded(*tensors: Any) -> bool:
    """Whether autograd records what becomes of one of them; PyTorch is there."""
    return sys.modules["torch"].is_grad_enabled() and any(map(is_recorded, tensors))


@functools.lru_cache(maxsize=None)
def find_watchers() -> Tuple[Callable, Callable, Callable]:
    """What tells the number of PyTorch's modes, the level of a transform or None, and whether the
    profiler is on."""
    c = sys.modules["torch"]._C
    return (
        c._len_torch_dispatch_stack,
        c._functorch.maybe_current_level,
        c._autograd._profiler_enabled,
    )


def _is_transformed(torch: Any, q: Any, k: Any, v: Any) -> bool:
    count_modes, find_transform, is_profiled = find_watchers()
    return (
        count_modes() > 0
        or find_transform() is not None
        or is_profiled()
        or any(_stands_for_others(torch, x) for x in (q, k, v))
    )


# Classes that attn refuses by name.
_REFUSED = ("DTensor", "NestedTensor")


def _stands_for_others(torch: Any, x: Any) -> bool:
    kind = type(x)
    if kind is torch.Tensor:
        return False
    dispatch = getattr(kind, "__torch_dispatch__", None)
    plain = torch.Tensor.__torch_dispatch__
    return dispatch is not None and dispatch is not plain and kind.__name__ not in _REFUSED


def to_number(x: Any, name: str) -> float:
    """A Python float of a number, or of an array or tensor of one element."""
    if is_torch(x):
        _check_class(x, name)
        _check_derivatives(x, name)
    if not isinstance(x, (str, bytes, bool)) and getattr(x, "size", 1) != 0:
        try:
            if math.prod(getattr(x, "shape", ())) == 1:
                return float(x.item() if hasattr(x, "item") else x)
        except (TypeError, ValueError):
            pass
    got = repr(x) if isinstance(x, (str, bool)) else describe_type(x)
    raise Error("invalid argument", f"{name}: expected a number, got {got}")


def is_autocast() -> bool:
    """Whether torch.autocast is on for some device."""
    global is_autocast
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    is_autocast = torch._C._is_any_autocast_enabled
    return is_autocast()


def cast(*tensors: Any, type_: Optional[str] = None) -> Tuple[Any, ...]:
    """Tensors as torch.autocast gives them to attention: in its type, unless they are float64. With
    a name of the IR, only where that is its type."""
    torch = sys.modules["torch"]
    casted = []
    for x in tensors:
        if is_torch(x) and torch.is_autocast_enabled(x.device.type):
            wanted = torch.get_autocast_dtype(x.device.type)
            named = type_ in (None, type_name(wanted))
            if x.is_floating_point() and x.dtype != torch.float64 and named:
                x = x.to(wanted)
        casted.append(x)
    return tuple(casted)


def device_name(device: Any) -> str:
    """ "cpu", "cuda" or "cuda:1" for a torch.device or its name."""
    text = str(device)
    torch = sys.modules.get("torch")
    if text == "cuda" and torch is not None and torch.cuda.is_available():
        return f"cuda:{torch.cuda.current_device()}"
    if text in ("cpu", "cuda") or (text.startswith("cuda:") and text[5:].isdecimal()):
        return text
    raise Error("invalid argument", f"device: expected cpu, cuda or cuda:NUMBER, got {text!r}")


def find_current_stream(device: int) -> int:
    """The address of PyTorch's current stream on a GPU; the default one where nobody imported it."""
    torch = sys.modules.get("torch")
    return 0 if torch is None else torch.cuda.current_stream(device).cuda_stream


def is_tracing() -> bool:
    """Whether torch.jit.trace records, which sees nothing of a call."""
    torch = find_torch()
    return torch is not None and torch._C._is_tracing()


def empty_like(x: Any, type_: Optional[str], shape: Tuple[int, ...]) -> Any:
    """A new array of x's library; type "f32" or None for that of x."""
    if is_numpy(x):
        numpy = sys.modules["numpy"]
        return numpy.empty(shape, x.dtype if type_ is None else "float32")
    if type_ is None:
        return x.new_empty(shape)
    return x.new_empty(shape, dtype=sys.modules["torch"].float32)


def to_torch(x: Any, name: str) -> Any:
    """A tensor of what a NumPy array holds now: PyTorch notices who writes to its own tensors between
    forward and backward, but not who writes to an array. Raises Error for what `view` refuses; the
    type is one that attn has."""
    torch, numpy = sys.modules["torch"], sys.modules["numpy"]
    address, shape, strides = view(x, name)
    if address % x.itemsize and x.size:
        # The copy would not show what calls that nobody records refuse.
        raise Error(
            "invalid argument",
            f"{name}: expected data aligned to its elements of {x.itemsize} bytes, got an address "
            "that is not",
            "copy the tensor",
        )
    # What is repeated is copied once.
    x = x[tuple([slice(0, 1) if stride == 0 else slice(None) for stride in strides])]
    copy = numpy.array(x, order="C")
    if type_name(copy.dtype) != "bf16":
        return torch.from_numpy(copy).expand(shape)
    # NumPy has it from elsewhere, and PyTorch does not know it there.
    return torch.from_numpy(copy.view("int16")).view(torch.bfloat16).expand(shape)


def swap(x: Any) -> Any:
    """The view with dimensions 1 and 2 exchanged."""
    return x.swapaxes(1, 2)


def to_f32(x: Any) -> Any:
    """A copy in f32, of the same library."""
    return x.astype("float32") if is_numpy(x) else x.float()
