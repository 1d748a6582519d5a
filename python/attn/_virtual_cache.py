"""Keys and values of sequences that grow where they lie."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Literal, Optional, Tuple, Union

from . import _arrays
from ._library import check, library, refuse
from ._tensors import Tensor


class _CacheSpec(ctypes.Structure):
    """attn_cache_spec."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        *((name, ctypes.c_int64) for name in ("sequences", "tokens", "layers", "key_heads", "head_dim", "value_dim")),
        *((name, ctypes.c_char_p) for name in ("type", "device", "order")),
    ]


# By index they are functions of this module alone: as attributes they are everybody's, with everybody's types.
_make_capsule = ctypes.pythonapi["PyCapsule_New"]
_make_capsule.restype = ctypes.py_object
_make_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_is_capsule = ctypes.pythonapi["PyCapsule_IsValid"]
_is_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_get_pointer = ctypes.pythonapi["PyCapsule_GetPointer"]
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _end_capsule(capsule: Any) -> None:
    """Of one whose tensor nobody took."""
    if _is_capsule(capsule, b"dltensor"):
        managed = _get_pointer(capsule, b"dltensor")
        deleter = ctypes.c_void_p.from_address(managed + ctypes.sizeof(Tensor) + ctypes.sizeof(ctypes.c_void_p))
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter.value or 0)(managed)


class CacheArray:
    """The keys or the values of one layer, (B, Hkv, N, D), for `torch.from_dlpack` and others that speak
    DLPack. `numpy.asarray` gives an array that may be written to, of float16 or float32."""

    def __init__(self, cache: "VirtualCache", layer: int, is_value: bool) -> None:
        self._cache, self._at = cache, (layer, int(is_value))
        self._tensor = Tensor()
        check(library.attn_cache_tensor(cache._handle, *self._at, ctypes.byref(self._tensor)))

    @property
    def shape(self) -> Tuple[int, ...]:
        """Sequences, key heads, the most tokens of a sequence, and columns."""
        return tuple(self._tensor.shape[:4])

    @property
    def strides(self) -> Tuple[int, ...]:
        """In elements."""
        return tuple(self._tensor.strides[:4])

    def __dlpack__(self, *arguments: Any, **how: Any) -> Any:
        managed = ctypes.c_void_p()
        check(library.attn_cache_export(self._cache._handle, *self._at, ctypes.byref(managed)))
        return _make_capsule(managed, b"dltensor", ctypes.cast(_end_capsule, ctypes.c_void_p))

    def __dlpack_device__(self) -> Tuple[int, int]:
        return self._tensor.device_type, self._tensor.device_id

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        size = self._tensor.bits // 8
        if self._tensor.device_type != _arrays.CPU or self._tensor.code != _arrays.TYPES["f32"][0]:
            raise AttributeError("NumPy has no such memory or type")
        return {
            "version": 3,
            "shape": self.shape,
            "strides": tuple(x * size for x in self.strides),
            "typestr": f"<f{size}",
            "data": (self._tensor.data, False),
        }

    def __repr__(self) -> str:
        what = "values" if self._at[1] else "keys"
        return f"{what} of layer {self._at[0]}, {self.shape}, of {self._cache!r}"


class VirtualCache:
    """Keys and values of a batch of sequences that grow. Addresses are reserved for the longest sequences,
    and memory is mapped to them only as far as sequences have grown.

        cache = attn.serving.VirtualCache(
            sequences=64, tokens=131072, layers=32, key_heads=8, head_dim=128, device="cuda"
        )
        k, v = torch.from_dlpack(cache.keys[0]), torch.from_dlpack(cache.values[0])
        cache.grow(3, 1000)

    Kernels see dense tensors (B, Hkv, N, D) whose addresses never change: no page table, every schedule,
    and captured graphs stay valid. Give them the lengths of sequences (`mask=`, `attn.integrations`'
    `cache_seqlens`).

    Reading where nothing is mapped is a fault, not a wrong number: lengths that a kernel is given must
    not be above those that sequences were grown to. A tile may read 256 tokens further, which have
    memory too.

    Args:
        sequences, tokens: B, and the most tokens of one sequence, N.
        layers, key_heads, head_dim, value_dim: L, Hkv, D and Dv, which is D if None.
        dtype: of 16 or 8 bits, or float32; a dtype of any library, or a name.
        device: "cpu", "cuda", "cuda:1", a number, or PyTorch's device.
        order: the arrangement in memory. "layers": the tokens of one layer, which kernels read at full
            speed; a piece of a GPU's memory is 2 MB. "tokens": all layers of a token, which leaves less
            memory over for each sequence, and rows far apart.

    Attributes:
        keys, values: of each layer a `CacheArray`. Arrays made of one keep the memory.

    Raises:
        Error: a number that does not fit, a device that is not there or has no virtual memory, or no
            addresses for so much.
    """

    def __init__(
        self,
        *,
        sequences: int,
        tokens: int,
        layers: int,
        key_heads: int,
        head_dim: int,
        value_dim: Optional[int] = None,
        dtype: Any = "bf16",
        device: Any = "cpu",
        order: Literal["layers", "tokens"] = "layers",
    ) -> None:
        self._handle = ctypes.c_void_p()
        counts = dict(
            sequences=sequences, tokens=tokens, layers=layers, key_heads=key_heads, head_dim=head_dim,
            value_dim=head_dim if value_dim is None else value_dim,
        )  # fmt: skip
        name = _arrays.type_name(dtype)
        if name is None:
            refuse("dtype", "a type of 8, 16 or 32 bits, such as bfloat16", repr(dtype))
        place = f"cuda:{device}" if isinstance(device, int) and not isinstance(device, bool) else str(device)
        texts = name, place, order
        numbers = [_read_count(key, x) for key, x in counts.items()]
        spec = _CacheSpec(
            ctypes.sizeof(_CacheSpec), *numbers, *(str(x).encode(errors="replace") for x in texts)
        )
        check(library.attn_cache_create(ctypes.byref(spec), ctypes.byref(self._handle)))
        self.keys = tuple(CacheArray(self, layer, False) for layer in range(layers))
        self.values = tuple(CacheArray(self, layer, True) for layer in range(layers))
        self._text = f"VirtualCache({', '.join(f'{key}={x}' for key, x in counts.items())}, on {place})"

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), ctypes.c_void_p()
        if handle:
            library.attn_cache_free(handle)

    def __repr__(self) -> str:
        return self._text

    def grow(self, sequence: int, tokens: int) -> None:
        """Gives the first `tokens` of a sequence memory, where they have none. Tokens that are there stay
        where they are, so kernels may run meanwhile. New memory holds anything.

        Raises:
            Error: a number that does not fit, or no memory: the sequence is then as long as it was.
        """
        check(library.attn_cache_grow(self._handle, _read_count("sequence", sequence), _read_count("tokens", tokens)))

    def share(self, origin: int, to: int, tokens: int) -> int:
        """Lets an empty sequence `to` begin with the memory of the first `tokens` of `origin`.

        Returns:
            how many of them whole pieces of memory hold, 0 to `tokens`. Nobody may write to these any more;
            the rest is the caller's to copy.
        """
        shared = ctypes.c_int64()
        numbers = [_read_count(name, x) for name, x in (("origin", origin), ("to", to), ("tokens", tokens))]
        check(library.attn_cache_share(self._handle, *numbers, ctypes.byref(shared)))
        return shared.value

    def release(self, sequence: int, stream: Optional[Any] = None) -> None:
        """Ends a sequence: it is empty from now on, and its memory serves others as soon as `stream` has
        passed.

        Args:
            stream: PyTorch's, or the address of a CUstream; the current one of PyTorch if None.
        """
        kind, number = self.keys[0].__dlpack_device__()
        if stream is None and kind == _arrays.CUDA:
            stream = _arrays.find_current_stream(number)
        address = ctypes.c_void_p(getattr(stream, "cuda_stream", stream))
        check(library.attn_cache_release(self._handle, _read_count("sequence", sequence), address))

    def trim(self) -> None:
        """Gives memory back that no sequence has."""
        check(library.attn_cache_trim(self._handle))

    def tokens(self, sequence: int) -> int:
        """How many tokens of a sequence have memory."""
        found: int = library.attn_cache_tokens(self._handle, _read_count("sequence", sequence))
        if found < 0:
            refuse("sequence", f"a number from 0 to {self.keys[0].shape[0] - 1}", sequence)
        return found

    @property
    def bytes(self) -> int:
        """Of memory: those of sequences, and those that wait for one."""
        return int(library.attn_cache_bytes(self._handle))

    @property
    def piece_tokens(self) -> int:
        """Tokens of one sequence that a piece of memory holds, of the keys of one layer, or of all that a
        token has."""
        return int(library.attn_cache_piece_tokens(self._handle))


def _read_count(name: str, x: Union[int, Any]) -> int:
    if isinstance(x, bool) or not hasattr(x, "__index__"):
        refuse(name, "a number", repr(x))
    number = x.__index__()
    if not -(1 << 63) <= number < 1 << 63:
        refuse(name, "a number of 64 bits", number)
    return int(number)
