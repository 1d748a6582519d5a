"""Types of the arguments and results of attn, for type checkers and editors.

    from attn.typing import Array, Mask, Score

No library of arrays is imported for them: an array is whatever has a shape and a type of elements and
speaks DLPack, as those of NumPy, PyTorch, JAX, CuPy and TensorFlow do.
"""

from __future__ import annotations

from typing import (
    Any,
    Callable,
    Literal,
    Mapping,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    TypeVar,
    Union,
    runtime_checkable,
)

from ._options import Options

__all__ = [
    "Array",
    "Causal",
    "DType",
    "Device",
    "DropoutSeed",
    "Layout",
    "Mask",
    "Options",
    "OptionsLike",
    "Place",
    "PositionKinds",
    "Positions",
    "Room",
    "Scale",
    "Score",
    "Window",
]


@runtime_checkable
class DLPack(Protocol):
    """An object that hands its memory over by DLPack."""

    def __dlpack__(self, *arguments: Any, **how: Any) -> Any: ...

    def __dlpack_device__(self) -> Tuple[Any, Any]: ...


@runtime_checkable
class Array(DLPack, Protocol):
    """An array or a tensor of any library that speaks DLPack."""

    @property
    def shape(self) -> Tuple[int, ...]: ...

    @property
    def dtype(self) -> Any: ...


# An array of one library: results are of the library of the arguments.
ArrayT = TypeVar("ArrayT", bound=Array)

DType = Any
"""A dtype of NumPy, ml_dtypes, PyTorch or JAX, or its name: "float32", "float16", "bfloat16"."""
Device = Any
""""cpu", "cuda", "cuda:1", or a torch.device."""
Causal = Union[bool, Literal["top_left", "bottom_right"]]
"""Which keys up to the row's own position are kept, and from which corner positions count."""
Window = Tuple[Optional[int], Optional[int]]
"""(left, right), numbers of keys; None or -1 is no bound."""
Scale = Union[float, Array, None]
"""A factor of elements of 8 bits: a number, an array of float32, or None for 1."""
Place = Union[int, Sequence[Tuple[int, int]], Array, None]
"""Where rows or keys stand: an origin, intervals, a table of integers that do not decrease, or None."""
Positions = Tuple[Place, Place]
"""(rows, keys)."""
PositionKinds = Tuple[Optional[Literal["origin", "table"]], Optional[Literal["origin", "table"]]]
"""(rows, keys) of `compile`: how calls will say positions; None for those that are their own."""
Layout = Literal["bhsd", "bshd"]
"""The order of batch, heads, sequence and head dimension."""
Score = Callable[[Any, Any, Any, Any, Any], Any]
"""score(s, b, h, q, kv), a float of a float and four integers. Traced once, so values are symbols."""
Mask = Callable[[Any, Any, Any, Any], Any]
"""mask(b, h, q, kv), a bool of four integers. Traced once, so values are symbols."""
Room = Literal["problem", "grid", "online", "tile", "placed", "async", "thread", "ptx"]
"""A form of the IR on its way to a kernel; those from "tile" on are of GPUs."""
DropoutSeed = Union[int, Array, None]
"""An integer, an array of one integer, or None."""
OptionsLike = Union[Options, Mapping[str, Any], None]
"""Options of the compiler: `attn.Options`, or a mapping of their names."""
