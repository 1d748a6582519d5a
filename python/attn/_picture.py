"""Pictures of masks: which tiles they keep whole, in part or not at all."""

from __future__ import annotations

import os
from typing import Any, Optional, Tuple, Union

from ._attention import attention
from ._library import refuse
from .typing import Causal, Mask, Window

_SIGNS = "·▒█"
_COLORS = ("#f3f4f6", "#93c5fd", "#1d4ed8")
_NAMES = ("empty", "partial", "full")


class MaskPicture(str):
    """A text of one sign for each tile, which a notebook shows as an SVG.

    Attributes:
        tiles: (rows, columns); 0 for an empty tile, 1 for a partial tile, 2 for a full tile.
        density: the share of pairs that are kept.
        extents: (M, N), of which `tile` rows and keys are a tile.
    """

    tiles: Any
    density: float
    extents: Tuple[int, int]
    tile: Tuple[int, int]

    def __repr__(self) -> str:
        return str(self)

    def count(self, status: str) -> int:  # type: ignore[override]
        """Tiles that are "full", "partial" or "empty"."""
        return int((self.tiles == _NAMES.index(status)).sum())

    @property
    def svg(self) -> str:
        rows, columns = self.tiles.shape
        size = max(2, min(16, 640 // max(rows, columns, 1)))
        parts = []
        for status in range(3):
            paths = "".join(
                f"M{j * size} {i * size}h{size}v{size}h-{size}z"
                for i, j in zip(*(self.tiles == status).nonzero())
            )
            parts.append(
                f'<path fill="{_COLORS[status]}" stroke="#fff" stroke-width="0.5" d="{paths}">'
                f"<title>{_NAMES[status]}</title></path>"
            )
        width, height = columns * size, rows * size
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}">{"".join(parts)}</svg>'
        )

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the SVG."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)


def visualize_mask(
    query_length: int,
    key_length: Optional[int] = None,
    *,
    mask: Optional[Mask] = None,
    causal: Causal = False,
    window: Optional[Window] = None,
    batch: int = 0,
    head: int = 0,
    tile: Tuple[int, int] = (64, 64),
) -> MaskPicture:
    """Shows which tiles of a mask are full, partial and empty, as attn itself sees them: a kernel
    with this mask counts the keys that each row keeps.

    Args:
        query_length, key_length: M and N; N is M if None.
        mask, causal, window: as for `attention`. Captured arrays are on the CPU.
        batch, head: the b and h that are drawn.
        tile: rows and keys of a tile. `explain` tells the sizes that the compiler chose.

    Returns:
        A text: one sign for each tile, and a notebook's picture.

    Raises:
        Error: an argument that does not fit, or a function that cannot be traced.
    """
    import numpy

    m, n = query_length, query_length if key_length is None else key_length
    for name, x in (("query_length", m), ("key_length", n), *zip(("tile", "tile"), tile)):
        if isinstance(x, bool) or not isinstance(x, int) or not 1 <= x <= 1 << 20:
            refuse(name, "a number from 1 to 2^20", x)
    rows, columns = -(-m // tile[0]), -(-n // tile[1])
    if rows * columns > 1 << 20 or m * columns > 1 << 28:
        refuse("tile", "at most 2^20 tiles", f"{rows} x {columns}", "larger ones")
    one = mask and (lambda b, h, q, kv: mask(batch, head, q, kv))
    # All scores are 0, so that the weights of a row are 1 / the keys that it keeps; column t of the
    # values is 1 for the keys of tile t.
    q, k = numpy.zeros((1, 1, m, 8), "float32"), numpy.zeros((1, 1, n, 8), "float32")
    v = (numpy.arange(n)[:, None] // tile[1] == numpy.arange(columns)).astype("float32")
    output, lse = attention(
        q, k, v[None, None], causal=causal, window=window, mask=one, return_lse=True
    )
    counts = numpy.rint(
        output[0, 0].astype("float64") * numpy.exp(lse[0, 0, :, None].astype("float64"))
    )
    kept = numpy.add.reduceat(counts, numpy.arange(0, m, tile[0]), axis=0)
    heights = numpy.minimum(tile[0], m - tile[0] * numpy.arange(rows))
    widths = numpy.minimum(tile[1], n - tile[1] * numpy.arange(columns))
    tiles = (kept > 0).astype(int) + (kept == heights[:, None] * widths)
    lines = ["".join(_SIGNS[x] for x in line) for line in tiles]
    picture = MaskPicture("\n".join([_write_head(m, n, tile, tiles, kept), *lines]))
    picture.tiles, picture.density = tiles, float(kept.sum() / (m * n))
    picture.extents, picture.tile = (m, n), tile
    return picture


def _write_head(m: int, n: int, tile: Tuple[int, int], tiles: Any, kept: Any) -> str:
    counts = [int((tiles == status).sum()) for status in (2, 1, 0)]
    parts = ", ".join(
        f"{count} {name} {sign}"
        for count, name, sign in zip(counts, reversed(_NAMES), reversed(_SIGNS))
    )
    return f"{m} x {n}, tiles of {tile[0]} x {tile[1]}: {parts}; {kept.sum() / (m * n):.1%} of the pairs"
