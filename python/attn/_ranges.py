"""Which keys tiles of rows keep, as the analysis of masks finds it."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any, NamedTuple, Optional, Tuple

from . import _arrays
from ._library import check, library, refuse
from ._plan import list_captures
from ._problem import Spec
from ._source import Source
from ._tensors import Tensors, make_arguments
from .typing import Causal, Mask, Window


class MaskRanges(NamedTuple):
    """NumPy arrays of int64, (batches, heads, tiles of rows).

    Some row of a tile keeps a key of [begin, end), and none keeps one outside, as far as the analysis can
    tell; all rows keep all keys of [full_begin, full_end). Bounds are multiples of a tile of keys.
    """

    begin: Any
    full_begin: Any
    full_end: Any
    end: Any


def mask_ranges(
    query_length: int,
    key_length: Optional[int] = None,
    *,
    mask: Optional[Mask] = None,
    causal: Causal = False,
    window: Optional[Window] = None,
    batches: int = 1,
    heads: int = 1,
    tile: Tuple[int, int] = (128, 128),
) -> MaskRanges:
    """The tiles of keys that a kernel visits for each tile of rows. Nothing is compiled, and no element of a
    mask is evaluated: searches take the logarithm of the length.

    Args:
        query_length, key_length: M and N; N is M if None.
        mask, causal, window: as for `attention`. Arrays that the mask reads on a GPU are copied to the
            host, which waits for them.
        batches, heads: how many there are; what the mask reads of b and h is below them.
        tile: rows and keys of a tile.

    Raises:
        Error: an argument that does not fit, or a function that cannot be traced.
    """
    import numpy

    m, n = query_length, query_length if key_length is None else key_length
    numbers = ("query_length", m), ("key_length", n), ("batches", batches), ("heads", heads)
    for name, x in (*numbers, *zip(("tile", "tile"), tile)):
        if isinstance(x, bool) or not isinstance(x, int) or not 1 <= x <= 1 << 28:
            refuse(name, "a number from 1 to 2^28", repr(x))
    spec = Spec(numpy.dtype("float32"), 8, 8, "cpu", causal=causal, window=window, mask=mask)
    source = Source(spec)
    tensors = Tensors(SimpleNamespace(device=-1))  # type: ignore[arg-type]
    for heads_of, length in ((heads, m), (heads, n), (heads, n)):
        tensors.add_shape((batches, heads_of, length, 8), "f32")
    for capture in source.captures:
        if capture.own is not None:
            refuse(capture.name, "the whole array", "a part of one", "what a mask keeps is found for all rows and keys")
    arrays = [_to_host(x) for x in source.arrays]
    tensors.add_captures(list_captures(source, by_slot=False), arrays)
    rows = -(-m // tile[0])
    found = numpy.empty((batches, heads, rows, 4), "int64")
    place = found.ctypes.data_as(ctypes.c_void_p)
    _, pointers, count, _ = make_arguments(None, tensors.tensors, None)
    text = source.text.forward.encode()
    check(library.attn_mask_ranges(text, pointers, count, *tile, place, found.size // 4))
    return MaskRanges(*numpy.moveaxis(found, 3, 0))


def _to_host(x: Any) -> Any:
    return x.detach().cpu() if _arrays.is_torch(x) else x
