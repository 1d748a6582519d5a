"""The values of tensors that a kernel takes, copied to NumPy."""

from __future__ import annotations

import importlib
import math
from typing import Any, Dict, Tuple

from . import _arrays

# NumPy has no bfloat16: its bits are an integer's. PyTorch reads no unsigned ones by address.
_TYPES = {
    "f16": "<f2",
    "bf16": "<u2",
    "f32": "<f4",
    "f64": "<f8",
    "f8E4M3FN": "|u1",
    "f8E5M2": "|u1",
    "i1": "|b1",
    "i8": "|i1",
    "i32": "<i4",
    "i64": "<i8",
}
_TYPE_BY_CODE = {(code, bits): name for name, (code, bits, _) in _arrays.TYPES.items()}


class _Memory:
    """Somebody's memory, as both of NumPy's protocols describe it."""

    def __init__(self, described: Dict[str, Any], is_cuda: bool) -> None:
        name = "__cuda_array_interface__" if is_cuda else "__array_interface__"
        setattr(self, name, described)


def get_type(tensor: Tuple) -> str:
    """Of a tensor of `Tensors`, as the IR names it."""
    return _TYPE_BY_CODE[tensor[3], tensor[4]]


def copy(tensor: Tuple) -> Any:
    """The values of a tensor of `Tensors`: (address, device type, device, code, bits, shape, strides).
    Those of bfloat16 are uint16, those of 8 bits uint8. On a GPU this waits for the current stream."""
    address, device_type, device, _, _, shape, strides = tensor
    numpy = importlib.import_module("numpy")
    type_ = get_type(tensor)
    if not address or not math.prod(shape):
        return numpy.zeros(shape, _TYPES[type_])
    size = _arrays.TYPES[type_][2]
    is_cuda = device_type != _arrays.CPU
    described = {
        "data": (address, False),
        "shape": tuple(shape),
        "strides": tuple([size * stride for stride in strides]),
        "typestr": "<i2" if is_cuda and type_ == "bf16" else _TYPES[type_],
        "version": 3 if not is_cuda else 2,
    }
    memory = _Memory(described, is_cuda)
    if not is_cuda:
        return numpy.array(memory)
    torch = _arrays.find_torch()
    values = torch.as_tensor(memory, device=f"cuda:{device}").cpu().numpy()
    return values.view(_TYPES[type_])


def to_f64(values: Any, type_: str) -> Any:
    """The numbers that such a copy holds."""
    numpy = importlib.import_module("numpy")
    if type_ == "bf16":
        values = (values.astype(numpy.uint32) << 16).view(numpy.float32)
    if type_ in ("f8E4M3FN", "f8E5M2"):
        return _widen(values, type_)
    return values.astype(numpy.float64)


def _widen(values: Any, type_: str) -> Any:
    """Of bytes: both formats are float16 with fewer bits of mantissa, and e4m3 with a bit less of exponent."""
    numpy = importlib.import_module("numpy")
    words = values.astype(numpy.uint16)
    if type_ == "f8E5M2":
        return (words << 8).view(numpy.float16).astype(numpy.float64)
    bits = (words & 0x80) << 8 | (words & 0x7F) << 7
    numbers = bits.view(numpy.float16).astype(numpy.float64) * 256
    return numpy.where((words & 0x7F) == 0x7F, numpy.nan, numbers)


def is_captured() -> bool:
    """Whether a CUDA graph records the current stream: there are no values yet."""
    torch = _arrays.find_torch()
    return bool(torch and torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())
