"""Launches PTX of `attn-opt --emit-ptx="ptx=F plan=F"` on PyTorch's tensors, through the CUDA driver.

For tuning: a variant of a kernel needs no build of the runtime to stand beside its peers in one process.
The plan says what the kernel is given (lib/Plan/KernelPlan.h); this evaluates it once for given
tensors and returns a call that only launches.
"""

from __future__ import annotations

import ctypes
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import torch

Argument = Union[torch.Tensor, int, float]

# CUfunction_attribute, CUjit_option, CUtensorMapDataType and friends: the driver's ABI.
_SHARED, _LOCAL, _REGISTERS, _MAX_DYNAMIC_SHARED = 1, 3, 4, 8
_INFO_LOG, _INFO_LOG_BYTES, _ERROR_LOG, _ERROR_LOG_BYTES, _LOG_VERBOSE = 3, 4, 5, 6, 12
_MAP_TYPES = {"f16": 6, "f32": 7, "bf16": 9, "f8E4M3FN": 0, "f8E5M2": 0}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_PROMOTION_128, _CLUSTER_DIMENSION, _PROGRAMMATIC = 2, 4, 6


class _LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("padding", ctypes.c_uint), ("value", ctypes.c_uint * 16)]


class _LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_LaunchAttribute)),
        ("num_attributes", ctypes.c_uint),
    ]


_driver: Optional[ctypes.CDLL] = None


def driver() -> ctypes.CDLL:
    """libcuda, with PyTorch's context current."""
    global _driver
    if _driver is None:
        torch.zeros(1, device="cuda")
        _driver = ctypes.CDLL("libcuda.so.1")
    return _driver


def check(code: int, what: str) -> None:
    if code:
        text = ctypes.c_char_p()
        driver().cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"cannot {what}: {(text.value or b'').decode()} ({code})")


def _encode_map(parameter: Dict[str, Any], tensor: torch.Tensor) -> Tuple[Any, int]:
    """A tensor map and its address, which is a multiple of 64."""
    dims, rank = parameter["dims"], len(parameter["dims"])
    sizes = (ctypes.c_uint64 * rank)(*(tensor.shape[d] for d in dims))
    strides = (ctypes.c_uint64 * rank)(
        *(tensor.stride(d) * tensor.element_size() if tensor.shape[d] > 1 else 16 for d in dims[1:])
    )
    box = (ctypes.c_uint32 * rank)(*parameter["box"])
    ones = (ctypes.c_uint32 * rank)(*[1] * rank)
    memory = ctypes.create_string_buffer(192)
    address = (ctypes.addressof(memory) + 63) // 64 * 64
    code = driver().cuTensorMapEncodeTiled(
        ctypes.c_void_p(address), _MAP_TYPES[parameter["element_type"]], rank, ctypes.c_void_p(tensor.data_ptr()),
        sizes, strides, box, ones, 0, _SWIZZLES[parameter["swizzle"]], _PROMOTION_128, 0,
    )
    check(code, f"encode the tensor map of argument {parameter['argument']}, shape {tuple(tensor.shape)}")
    return memory, address


def _make_parameter(parameter: Dict[str, Any], arguments: Sequence[Argument]) -> Tuple[Any, int]:
    """The memory of one kernel parameter, and its address."""
    kind, value = parameter["kind"], arguments[parameter["argument"]]
    if kind == "tensor_map":
        return _encode_map(parameter, value)
    if kind == "pointer":
        cell: Any = ctypes.c_uint64(value.data_ptr())
    else:
        type_ = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "f32": ctypes.c_float}[parameter["type"]]
        if kind == "size":
            value = value.shape[parameter["dim"]]
        elif kind == "stride":
            value = value.stride(parameter["dim"])
        cell = type_(value)
    return cell, ctypes.addressof(cell)


def _count_parts(blocks: int, places: int, most: int) -> int:
    """countParts of lib/Plan."""
    best, best_idle = 1, math.inf
    for parts in range(1, most + 1):
        rounds = -(-blocks * parts // places)
        idle = (rounds * places - blocks * parts) * 4096 // (rounds * places) if rounds else 0
        if idle < best_idle:
            best, best_idle = parts, idle
        if idle <= 256:
            break
    return best


def _evaluate(factor: Dict[str, Any], arguments: Sequence[Argument]) -> int:
    places = torch.cuda.get_device_properties(0).multi_processor_count
    if "constant" in factor:
        return factor["constant"]
    if "multiprocessors" in factor:
        return factor["multiprocessors"] * places
    if "parts" in factor:
        keys, *blocks = factor["of"]
        most = min(factor["parts"], _evaluate(keys, arguments))
        return _count_parts(_count_blocks(blocks, arguments), places, most)
    size = (arguments[factor["argument"]].shape[factor["dim"]] - factor.get("less", 0)) * factor.get("multiplier", 1)
    return -(-size // factor["divisor"]) * factor.get("unit", 1)


def _count_blocks(factors: List[Dict[str, Any]], arguments: Sequence[Argument]) -> int:
    return math.prod(_evaluate(factor, arguments) for factor in factors)


def _holds(when: List[List[Dict[str, Any]]], arguments: Sequence[Argument]) -> bool:
    """Whether a call is one of those that a kernel is for: all ranges of one of its conditions hold."""
    def get_size(r: Dict[str, Any]) -> int:
        if "memory_rate" in r:
            return 4800 if "H200" in torch.cuda.get_device_name() else 3350
        size = _evaluate(r, arguments)
        return -(-size // max(_evaluate(r["per"], arguments), 1)) if "per" in r else size

    return not when or any(all(r["least"] <= get_size(r) <= r["most"] for r in ranges) for ranges in when)


@dataclass
class KernelFacts:
    """What the driver made of one kernel."""

    name: str
    registers: int
    local_bytes: int
    shared_bytes: int


class PtxKernel:
    """The kernels of one PTX file (or cubin) and its plan, loaded into PyTorch's context."""

    def __init__(self, code: Union[str, Path], plan: Union[str, Path]) -> None:
        self.plans: List[Dict[str, Any]] = json.loads(Path(plan).read_text())["kernels"]
        image = Path(code).read_bytes() + b"\0"
        info, errors = (ctypes.create_string_buffer(1 << 16) for _ in range(2))
        options = (ctypes.c_int * 5)(_INFO_LOG, _INFO_LOG_BYTES, _ERROR_LOG, _ERROR_LOG_BYTES, _LOG_VERBOSE)
        values = (ctypes.c_void_p * 5)(
            ctypes.addressof(info), len(info) - 1, ctypes.addressof(errors), len(errors) - 1, 1
        )
        self.module = ctypes.c_void_p()
        code_ = driver().cuModuleLoadDataEx(ctypes.byref(self.module), image, 5, options, values)
        check(code_, f"load {code}: {errors.value.decode(errors='replace')}")
        self.log: str = info.value.decode(errors="replace")
        """The assembler's words; empty when the driver had the code in its own cache."""
        self.functions = [self._prepare(plan) for plan in self.plans]
        self.facts = [self._describe(plan, f) for plan, f in zip(self.plans, self.functions)]

    @property
    def num_arguments(self) -> int:
        """One more than the highest argument that the plan mentions, scratch left out."""
        mentioned = {p["argument"] for plan in self.plans for p in plan["parameters"]}
        return 1 + max(mentioned - {s["argument"] for s in self._scratch})

    @property
    def _scratch(self) -> List[Dict[str, Any]]:
        return [scratch for plan in self.plans for scratch in plan["scratch"]]

    @property
    def warnings(self) -> List[str]:
        """Remarks of the assembler that cost speed: serialised products (C75xx), spills."""
        spills = [m.group(0) for m in re.finditer(r"[1-9]\d* bytes spill stores", self.log)]
        return sorted(set(re.findall(r"C75\d\d", self.log))) + spills

    def _prepare(self, plan: Dict[str, Any]) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        code = driver().cuModuleGetFunction(ctypes.byref(function), self.module, plan["name"].encode())
        check(code, f"find the kernel {plan['name']}")
        check(driver().cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, plan["dynamic_shared_bytes"]),
              f"give {plan['name']} {plan['dynamic_shared_bytes']} bytes of shared memory")
        return function

    @staticmethod
    def _describe(plan: Dict[str, Any], function: ctypes.c_void_p) -> KernelFacts:
        value, numbers = ctypes.c_int(), []
        for attribute in (_REGISTERS, _LOCAL, _SHARED):
            check(driver().cuFuncGetAttribute(ctypes.byref(value), attribute, function), "read an attribute")
            numbers.append(value.value)
        return KernelFacts(plan["name"], numbers[0], numbers[1], numbers[2] + plan["dynamic_shared_bytes"])

    def bind(self, arguments: Sequence[Argument]) -> Callable[[], None]:
        """A call on these arguments, which are those of the compiled function, and the current stream."""
        types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32}
        # The first way whose ranges hold: kernels in a row.
        when = next(w for w in (plan.get("when", []) for plan in self.plans) if _holds(w, arguments))
        way = [(plan, f) for plan, f in zip(self.plans, self.functions) if plan.get("when", []) == when]
        wanted = [scratch for plan, _ in way for scratch in plan["scratch"]]
        sizes = [[_count_blocks([f], arguments) for f in s["shape"]] for s in wanted]
        scratch = [torch.empty(z, dtype=types[s["element_type"]], device="cuda") for z, s in zip(sizes, wanted)]
        zeroed = [(ctypes.c_void_p(x.data_ptr()), ctypes.c_size_t(x.numel() * x.element_size()))
                  for x, s in zip(scratch, wanted) if s.get("zero")]
        arguments = [*arguments, *scratch]
        keep: List[Any] = [arguments]
        launches: List[Tuple[Any, ctypes.c_void_p, Any]] = []
        for plan, function in way:
            cells = [_make_parameter(parameter, arguments) for parameter in plan["parameters"]]
            pointers = (ctypes.c_void_p * len(cells))(*(address for _, address in cells))
            attributes = (_LaunchAttribute * 2)()
            count = 0
            if math.prod(plan["cluster"]) > 1:
                attributes[count].id = _CLUSTER_DIMENSION
                attributes[count].value[:3] = plan["cluster"]
                count += 1
            if plan.get("programmatic"):
                attributes[count].id = _PROGRAMMATIC
                attributes[count].value[0] = 1
                count += 1
            grid = [_count_blocks(factors, arguments) for factors in plan["grid"]]
            config = _LaunchConfig(
                (ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*plan["block"]), plan["dynamic_shared_bytes"],
                torch.cuda.current_stream().cuda_stream, attributes, count,
            )
            keep += [cells, attributes]
            launches.append((ctypes.byref(config), function, pointers))
        launch_kernel, set_bytes = driver().cuLaunchKernelEx, driver().cuMemsetD8Async
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

        def call() -> None:
            for address, size in zeroed:
                check(set_bytes(address, ctypes.c_ubyte(0), size, stream), "zero scratch")
            for config, function, pointers in launches:
                code = launch_kernel(config, function, pointers, None)
                if code:
                    check(code, "launch")

        call.keep = keep  # type: ignore[attr-defined]
        call.launches = launches  # type: ignore[attr-defined]
        return call
