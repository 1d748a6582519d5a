"""The tensors of a call, as the library takes them."""

from __future__ import annotations

import ctypes
import math
import sys
from typing import Any, List, Optional, Tuple

from . import _arrays, _direct
from ._library import Error, Kernel, check, library, refuse


class Tensor(ctypes.Structure):
    """attn_tensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def make_arguments(kernel: Any, tensors: List[Tuple], stream: Optional[int]) -> Tuple:
    """Of attn_run. They hold the memory that they point to."""
    structures = []
    for *what, code, bits, shape, strides in tensors:
        extents = ctypes.c_int64 * len(shape)
        type_ = len(shape), code, bits, 1
        structures.append(Tensor(*what, *type_, extents(*shape), extents(*strides)))
    pointers = ctypes.POINTER(Tensor) * len(tensors)
    return kernel, pointers(*map(ctypes.pointer, structures)), len(tensors), stream


class Tensors:
    """Of one call of a kernel: its arguments, then its results."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        # (address, device type, device, code, bits, shape, strides) of each.
        self.tensors: List[Tuple] = []
        # What must outlive the call.
        self.keep: List[Any] = []

    def add(self, address: int, shape: Any, strides: Any, type_: str, device: int) -> None:
        place = (_arrays.CPU, 0) if device < 0 else (_arrays.CUDA, device)
        self.tensors.append((address, *place, *_arrays.TYPES[type_][:2], shape, strides))

    def add_shape(self, shape: Tuple[int, ...], type_: str) -> None:
        """Of a call that is not made: no memory."""
        strides = [1] * len(shape)
        for i in range(len(shape) - 1, 0, -1):
            strides[i - 1] = strides[i] * max(shape[i], 1)
        self.add(0, tuple(shape), tuple(strides), type_, self.kernel.device)

    def add_array(
        self, x: Any, name: str, rank: int, type_: str, is_swapped: bool = False, element: str = ""
    ) -> Tuple[int, ...]:
        """Where the kernel's own arrays are. Returns the shape: of (B, S, H, D), where that is swapped,
        as (B, H, S, D). `element` is the array's type where the kernel reads it as another."""
        device = self.kernel.device
        address, shape, strides = _arrays.view(x, name, device)
        if len(shape) != rank or _arrays.type_name(x.dtype) != (element or type_):
            raise Error(
                "invalid argument",
                f"{name}: expected {rank} dimensions of {element or type_}, got shape {tuple(shape)} "
                f"of {x.dtype}",
            )
        if is_swapped:
            shape, strides = swap(shape), swap(strides)
        self.add(address, shape, strides, type_, device)
        return shape

    def add_scale(self, scale: Any) -> None:
        """Of the products: a number in host memory on every device."""
        if type(scale) is not float:
            scale = _arrays.to_number(scale, "scale")
        number = ctypes.c_float(scale)
        if math.isinf(number.value) and not math.isinf(scale):
            raise Error(
                "invalid argument", f"scale: expected a number that f32 holds, got {scale!r}"
            )
        self.keep.append(number)
        self.add(ctypes.addressof(number), (), (), "f32", -1)

    def add_sink(self, sink: Any) -> None:
        """Floats of any size."""
        if _arrays.is_array(sink) and _arrays.type_name(sink.dtype) in ("f16", "bf16", "f64"):
            sink = _arrays.to_f32(sink)
            self.keep.append(sink)
        device = self.kernel.device
        address, shape, strides = _arrays.view(sink, "sink", device)
        if len(shape) != 1 or _arrays.type_name(sink.dtype) != "f32":
            raise Error(
                "invalid argument",
                f"sink: expected floats of shape (H,), got {sink.dtype} of shape {tuple(shape)}",
            )
        self.add(address, shape, strides, "f32", device)

    def add_captures(self, captures: List[Tuple], captured: List[Any]) -> None:
        """Those that a plan says, out of what a call gives."""
        for name, type_, element, rank, position, least in captures:
            array = captured[position]
            extents = _arrays.view(array, name, self.kernel.device)[1]
            if len(extents) != rank or _arrays.type_name(array.dtype) != element:
                raise Error(
                    "invalid argument",
                    f"{name}: expected {rank} dimensions of {element}, as when it was compiled, got "
                    f"shape {tuple(extents)} of {array.dtype}",
                    "compile again",
                )
            if any(extent < low for extent, low in zip(extents, least)):
                raise Error(
                    "invalid argument",
                    f"{name}: expected a shape of at least {tuple(least)}, "
                    f"which is read, got {tuple(extents)}",
                )
            self.add_array(array, name, rank, type_, element=element)

    def list_shapes(self) -> Tuple[Tuple[int, ...], ...]:
        return tuple(tuple(shape) for *_, shape, _ in self.tensors)

    def prepare(self) -> None:
        self.kernel.prepare(make_arguments(None, self.tensors, None)[1:3])

    def choose_way(self) -> str:
        return self.kernel.choose_way(make_arguments(None, self.tensors, None)[1:3])

    def count_workspace(self) -> int:
        return self.kernel.count_workspace(make_arguments(None, self.tensors, None)[1:3])

    def run(self, workspace: Any = None, is_planned: bool = False) -> None:
        """On PyTorch's current stream of a GPU, or by as many threads as it uses on the CPU."""
        torch, device, stream = _arrays.find_torch(), self.kernel.device, None
        if device >= 0:
            stream = _arrays.find_current_stream(device)
        elif torch is not None and torch.get_num_threads() != library.attn_get_num_threads():
            check(library.attn_set_num_threads(torch.get_num_threads()))
        call = self.kernel.handle, self.tensors, stream
        if workspace is not None:
            address, count = _find_bytes(workspace, device)
            run = library.attn_run_planned if is_planned else library.attn_run_in
            check(run(*make_arguments(*call), address, count))
            return
        code = _direct.launch(*call)
        check(library.attn_run(*make_arguments(*call)) if code is None else code)


def _find_bytes(workspace: Any, device: int) -> Tuple[int, int]:
    """Where an array's memory is, and how much."""
    address, shape, strides = _arrays.view(workspace, "workspace", device)
    if len(shape) != 1 or (shape[0] > 1 and strides[0] != 1):
        refuse("workspace", "one dimension without gaps", f"shape {tuple(shape)}")
    return address, shape[0] * int(workspace.dtype.itemsize)


def swap(extents: Any) -> Tuple[int, ...]:
    """(B, S, H, D) as (B, H, S, D), or back."""
    return extents[0], extents[2], extents[1], extents[3]
