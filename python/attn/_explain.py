"""explain: how an attention is compiled, and the way of one call."""

from __future__ import annotations

import html
import sys
from typing import Any, Dict, List, Optional, Tuple, Union

from . import _arrays, _library
from ._library import Error
from ._log import find_reason
from ._picture import MaskPicture, visualize_mask
from ._positions import check_kinds
from ._problem import Spec, check_options, is_rows_first, make_spec
from ._seed import Seed
from ._source import Gradients, Source
from ._tools import frame, make_page
from .typing import (
    Array,
    Causal,
    Device,
    DType,
    Layout,
    Mask,
    OptionsLike,
    PositionKinds,
    Positions,
    Room,
    Score,
    Window,
)


class Explanation(str):
    """Text that a prompt shows as it is."""

    def __repr__(self) -> str:
        return str(self)


class ExplainedSource(Explanation):
    """How a source is compiled. A notebook shows all rooms, two at a time, with what became of their
    lines, and above them a call: the tiles that its mask keeps, and the timeline of a block on a GPU."""

    source: str
    options: Tuple[Tuple[str, str], ...]
    shape: str
    mask: Optional[MaskPicture]

    def __new__(
        cls,
        text: str,
        source: str,
        options: Tuple[Tuple[str, str], ...],
        shape: str = "",
        mask: Optional[MaskPicture] = None,
    ) -> ExplainedSource:
        made = super().__new__(cls, text)
        made.source, made.options, made.shape, made.mask = source, options, shape, mask
        return made

    def _repr_html_(self) -> str:
        mask: Optional[Dict[str, Any]] = None
        if self.mask is not None:
            lines = ["".join(map(str, line)) for line in self.mask.tiles.tolist()]
            (rows, keys), tile = self.mask.extents, list(self.mask.tile)
            mask = dict(rows=rows, keys=keys, tile=tile, lines=lines, density=self.mask.density)
        page = make_page(self.source, self.options, self.shape, mask)
        return frame(page) if page else f"<pre>{html.escape(self)}</pre>"


def _check_call(arrays: List[Any]) -> None:
    for name, x in zip("qkv", arrays):
        if not _arrays.is_array(x) or len(x.shape) != 4:
            got = f"shape {tuple(x.shape)}" if hasattr(x, "shape") else type(x).__name__
            raise Error("invalid argument", f"{name}: expected an array of 4 dimensions, got {got}")


def _tell_shape(arrays: List[Any], rows_first: bool) -> str:
    """As the tools take it."""
    length, heads = (1, 2) if rows_first else (2, 1)
    q, k = arrays[0].shape, arrays[1].shape
    return f"B={q[0]},H={q[heads]},Hkv={k[heads]},M={q[length]},N={k[length]}"


def _draw_mask(arrays: List[Any], rows_first: bool, spec: Spec) -> Optional[MaskPicture]:
    """Of a call on the CPU that drops keys: elsewhere a mask may read what is not here."""
    how = {"causal": spec.causal, "window": spec.window, "mask": spec.mask}
    on_cpu = not (_arrays.is_torch(arrays[0]) and arrays[0].is_cuda)
    if spec.positions is not None or not on_cpu or all(x is None or x is False for x in how.values()):
        return None
    length = 1 if rows_first else 2
    return visualize_mask(arrays[0].shape[length], arrays[1].shape[length], **how)


def _describe(arrays: List[Any], reason: str, mask: Optional[MaskPicture]) -> str:
    """Lines above those of the compiler. `reason` is why its kernel is not there, or empty."""
    shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in zip("qkv", arrays))
    lines = [
        f"// call        {shapes} of {arrays[0].dtype}",
        f"// path        {_find_path(arrays)}",
        f"// kernel      {'not compiled yet: ' + reason if reason else 'compiled before'}",
    ]
    if mask is not None:
        lines.append(f"// tiles       {mask.splitlines()[0]}")
    return "\n".join(lines) + "\n"


def _find_path(arrays: List[Any]) -> str:
    if all(_arrays.is_foreign(x) for x in arrays):
        return "through DLPack to the kernel, and back"
    q, k, v = arrays
    if not _arrays.is_watched(q, k, v, None):
        return "straight to the kernel"
    torch = sys.modules["torch"]
    count_modes, find_transform, is_profiled = _arrays.find_watchers()
    if torch.is_grad_enabled() and any(x.requires_grad for x in arrays):
        who = "autograd records it"
    elif find_transform() is not None:
        who = "a transform of torch.func looks"
    elif count_modes():
        who = "a mode of PyTorch looks"
    elif is_profiled():
        who = "the profiler looks"
    else:
        who = f"a {type(q).__name__} stands for others"
    return f"the operator attn::forward of PyTorch, some 25 us more: {who}"


def find_source(spec: Spec, gradient: bool = False) -> str:
    """What calls of it compile, or the function of its gradients, which takes a gradient of lse where
    the attention returns lse."""
    text = Source(spec, seed=Seed()).text
    if not gradient:
        return text.forward
    wanted = ("query", "key", "value") + (("sink",) if spec.has_sink else ())
    has_low = text.reads_low(spec.device == "cpu")
    return text.gradient(Gradients(wanted, has_lse_gradient=spec.return_lse, has_low=has_low))


def explain(
    dtype: Union[DType, Array],
    head_dim: Union[int, Array],
    value_dim: Union[int, Array, None] = None,
    *,
    until: Room = "online",
    gradient: bool = False,
    scale: Union[bool, float, None] = False,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: Union[bool, Array, None] = False,
    layout: Layout = "bhsd",
    return_lse: bool = False,
    device: Device = "cpu",
    options: OptionsLike = None,
    dropout_p: float = 0.0,
    out_dtype: Optional[DType] = None,
    positions: Union[Positions, PositionKinds, None] = None,
    total: Optional[Tuple[int, int]] = None,
) -> Explanation:
    """Explains how an attention is compiled.

    The text has the schedule and the rule that chose it, the key tiles that each mask visits, the
    times of compiling, and the IR after a room. For a GPU it also has the instructions of the PTX,
    floors of the time, and registers where a driver or ptxas can tell them. The GPU need not be
    there.

    q, k and v of a call may replace dtype, head_dim and value_dim, with its scale and sink. The
    text then also tells which way the call takes and whether its kernel is there, and on the CPU
    which tiles the mask keeps for batch 0 and head 0. No attention is computed.

    Args:
        until: "problem", "grid" or "online"; for a GPU also "tile", "placed", "async", "thread"
            and "ptx".
        gradient: explain the function of the gradients of q, k, v and the sink. With return_lse it
            takes a gradient of lse too, as graphs of torch.compile do.
        positions, total: as for `compile` or, as in a call, for `attention`. No tiles of a mask are told
            with positions.
        dtype, head_dim, value_dim, and the others: as for `compile`.

    Returns:
        A text that a prompt shows as it is. A notebook shows the page of `attn-translate --html`
        instead, where that tool is there: the rooms, the tiles that the mask of a call keeps, and the
        timeline of a block on a GPU, with the speed that the model predicts.

    Raises:
        Error: as `compile`.
    """
    call: List[Any] = []
    if _arrays.is_array(dtype):
        call = [dtype, head_dim, value_dim]
        _check_call(call)
        scale, sink = (x is not None and x is not False for x in (scale, sink))
        device = getattr(dtype, "device", "cpu") if _arrays.is_torch(dtype) else "cpu"
        dtype, head_dim, value_dim = (dtype.dtype, dtype.shape[-1], call[2].shape[-1])
    rows_first = is_rows_first(layout)
    how: Dict[str, Any] = dict(
        scale=scale, sink=sink, causal=causal, window=window, score=score, mask=mask
    )
    how.update(return_lse=return_lse, dropout_p=dropout_p, out_dtype=out_dtype, positions=check_kinds(positions))
    if total is not None and positions is None:
        how["positions"] = check_kinds((None, None))
    spec = make_spec(dtype, head_dim, value_dim, device, **how)
    text, texts = find_source(spec, gradient), check_options(options, spec.device)
    lines, shape, drawn = "", "", None
    if call:
        reason = find_reason(find_source(spec), texts)
        shape, drawn = _tell_shape(call, rows_first), _draw_mask(call, rows_first, spec)
        lines = _describe(call, reason, drawn)
    return ExplainedSource(lines + _library.explain(text, texts, until), text, texts, shape, drawn)
