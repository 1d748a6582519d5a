"""What callers of FlashInfer ask for besides tensors: checked by the names that they give."""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, NamedTuple, Optional, Tuple

import torch

from .._library import refuse
from ._arguments import check_softcap
from ._flashinfer_rope import Rope
from ._pages import Functions

LOG2E, LN2 = math.log2(math.e), math.log(2)


class Asked(NamedTuple):
    """How rows attend; their keys come last."""

    scale: float
    causal: bool
    # The most keys before a row's own; None: all.
    left: Optional[int]
    softcap: float
    # (H,), or None.
    slopes: Any
    # Of queries and keys, or None.
    rope: Optional[Rope] = None

    @property
    def window(self) -> Tuple[Optional[int], Optional[int]]:
        return self.left, 0 if self.causal else None


class Bits(NamedTuple):
    """A mask of each sequence, one after the other."""

    # bool, of all (row, key).
    kept: Any
    # (B,) int64: where that of a sequence begins.
    begin: Any


_HINTS = {
    "jit_args": "attn.serving.paged_attention takes score= and mask=",
    "kv_cache_sf": "4-bit keys and values are not served",
    "scale_q": "8-bit elements are not served; convert q",
    "scale_k": "8-bit elements are not served; convert k",
    "scale_v": "8-bit elements are not served; convert v",
    "o_scale": "8-bit outputs are not served",
    "prefix_len_ptr": "give what it means as custom_mask",
    "token_pos_in_items_ptr": "give what it means as custom_mask",
    "max_item_len_ptr": "give what it means as custom_mask",
    "v_indptr": "values have the offsets of keys",
    "o_indptr": "outputs have the offsets of queries",
}


def refuse_given(**given: Any) -> None:
    """All of these change results and have no meaning here."""
    for name, x in given.items():
        if x is not None:
            got = f"a tensor of shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else repr(x)
            refuse(name, "None", got, _HINTS.get(name, ""))


def read_fixed_split(fixed_split_size: Any, page_size: int) -> Optional[int]:
    """Keys of a part; there it is a number of pages, of one key each where keys lie one after the other."""
    if fixed_split_size is None:
        return None
    step = 16 // math.gcd(16, page_size)
    is_number = isinstance(fixed_split_size, int) and not isinstance(fixed_split_size, bool)
    if not is_number or fixed_split_size < 1 or fixed_split_size % step:
        nearest = max(round(fixed_split_size / step), 1) * step if is_number else step
        expected = f"a multiple of {step} pages of {page_size} keys, or None"
        refuse("fixed_split_size", expected, repr(fixed_split_size), f"the nearest is {nearest}")
    return int(fixed_split_size) * page_size


@functools.lru_cache(maxsize=64)
def make_slopes(heads: int, device: Any) -> torch.Tensor:
    """Of ALiBi, as its paper defines them for any number of heads. They stay: graphs of earlier plans read them."""
    count = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8.0 * i / count) for i in range(1, count + 1)]
    slopes += [2.0 ** (-4.0 * i / count) for i in range(1, 2 * (heads - count), 2)]
    return torch.tensor(slopes, dtype=torch.float32, device=device)


def _read_rope(columns: int, rope_scale: Any, rope_theta: Any) -> Rope:
    if columns % 2:
        refuse("head_dim", "an even number of columns with RoPE", columns)
    scale = 1.0 if rope_scale is None else float(rope_scale)
    theta = 1e4 if rope_theta is None else float(rope_theta)
    for name, x in (("rope_scale", scale), ("rope_theta", theta)):
        if not 0 < x < math.inf:
            refuse(name, "a number above 0", x)
    return Rope(scale, theta)


def read_how(
    shape: Tuple[int, int, Any],
    causal: bool,
    position: Tuple[str, Any, Any],
    sm_scale: Any,
    window_left: Any,
    cap: Any,
) -> Asked:
    """`shape` is (H, D, device) of the queries; `position` how they know of positions: pos_encoding_mode,
    rope_scale and rope_theta."""
    heads, columns, device = shape
    mode, *of_rope = position
    if mode not in ("NONE", "ALIBI", "ROPE_LLAMA"):
        refuse("pos_encoding_mode", '"NONE", "ROPE_LLAMA" or "ALIBI"', repr(mode))
    if isinstance(window_left, bool) or not isinstance(window_left, int):
        refuse("window_left", "a number of keys, or -1", repr(window_left))
    softcap = check_softcap(0.0 if cap is None or (isinstance(cap, float) and cap <= 0) else cap)
    if mode == "ALIBI" and softcap:
        refuse("logits_soft_cap", 'None with pos_encoding_mode="ALIBI"', cap)
    scale = columns**-0.5 if sm_scale is None else float(sm_scale)
    slopes = make_slopes(heads, device) if mode == "ALIBI" else None
    rope = _read_rope(columns, *of_rope) if mode == "ROPE_LLAMA" else None
    return Asked(scale, causal, None if window_left < 0 else window_left, softcap, slopes, rope)


def read_scales(asked: Asked, q_scale: Any, k_scale: Any, v_scale: Any) -> Tuple[Asked, float]:
    """With the factors of queries and keys, and that of values."""
    scale = asked.scale
    for name, x in (("q_scale", q_scale), ("k_scale", k_scale), ("v_scale", v_scale)):
        if x is not None and (isinstance(x, bool) or not isinstance(x, (int, float))):
            got = "a tensor" if isinstance(x, torch.Tensor) else repr(x)
            refuse(name, "a number, or None", got, "kernels take the factor of products from the host")
    scale *= (1.0 if q_scale is None else q_scale) * (1.0 if k_scale is None else k_scale)
    return asked._replace(scale=scale), 1.0 if v_scale is None else float(v_scale)


def read_bits(
    custom_mask: Any, packed_custom_mask: Any, counts: Tuple[Any, Any], device: Any
) -> Optional[Bits]:
    """`counts` are the rows and the keys of each sequence, (B,) int64."""
    rows, keys = counts
    if custom_mask is None and packed_custom_mask is None:
        return None
    sizes = rows * keys
    if packed_custom_mask is not None:
        packed = packed_custom_mask
        if not isinstance(packed, torch.Tensor) or packed.dtype != torch.uint8 or packed.dim() != 1:
            refuse("packed_custom_mask", "uint8 of one dimension", _describe(packed))
        # The bits of each sequence fill whole bytes, the lowest first.
        sizes = (sizes + 7) // 8 * 8
        steps = torch.arange(8, dtype=torch.uint8, device=packed.device)
        kept = ((packed[:, None] >> steps) & 1).bool().flatten().to(device)
        name = "packed_custom_mask"
    else:
        if not isinstance(custom_mask, torch.Tensor) or custom_mask.dtype != torch.bool:
            refuse("custom_mask", "a tensor of bool", _describe(custom_mask))
        kept, name = custom_mask.flatten().to(device), "custom_mask"
    total = int(sizes.sum())
    if kept.numel() != total:
        refuse(name, f"{total} elements, rows times keys of each sequence", kept.numel())
    return Bits(kept, (sizes.cumsum(0) - sizes).to(device)) if total else None


def _describe(x: Any) -> str:
    if not isinstance(x, torch.Tensor):
        return type(x).__name__
    return f"{x.dtype} of shape {tuple(x.shape)}"


def make_functions(slopes: Any, bits: Optional[Bits], keys: Any, shift: Any = None) -> Functions:
    """Row q of sequence b is its row q - shift[b]; keys (B,) int64 is how many keys each has."""

    def find_row(b: Any, q: Any) -> Any:
        return q if shift is None else q - shift[b]

    score: Optional[Callable] = None
    mask: Optional[Callable] = None
    if slopes is not None:
        score = lambda s, b, h, q, kv: s + slopes[h] * (kv - find_row(b, q))  # noqa: E731
    if bits is not None:
        kept, begin = bits
        mask = lambda b, h, q, kv: kept[begin[b] + find_row(b, q) * keys[b] + kv]  # noqa: E731
    return Functions(score, mask)


def check_query(q: Any, expected: Tuple[Any, ...], dtype: Any) -> None:
    """`expected` has None where any size is right."""
    is_right = isinstance(q, torch.Tensor) and q.dim() == len(expected) and q.dtype == dtype
    if not is_right or any(x not in (None, y) for x, y in zip(expected, q.shape)):
        dims = ", ".join("T" if x is None else str(x) for x in expected)
        refuse("q", f"{dtype} of shape ({dims}), as plan() said", _describe(q))


def give(output: Any, lse: Any, factor: float, places: Tuple[Any, Any], return_lse: bool) -> Any:
    """Logarithms are to base 2 there. `places` are the out and lse of the caller, or None."""
    if factor != 1.0:
        output = output * factor
    lse = lse * LOG2E
    found = []
    for name, x, place in zip(("out", "lse"), (output, lse), places):
        if place is not None:
            if tuple(place.shape) != tuple(x.shape) or place.dtype != x.dtype:
                refuse(name, f"{x.dtype} of shape {tuple(x.shape)}", _describe(place))
            place.copy_(x)
        found.append(x if place is None else place)
    return tuple(found) if return_lse else found[0]


def read_type(name: str, dtype: Any) -> torch.dtype:
    """A dtype of PyTorch, or its name."""
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if found not in (torch.float16, torch.bfloat16, torch.float32):
        refuse(name, "float16, bfloat16 or float32", str(dtype))
    return found


def read_types(q_type: Any, kv_type: Any, o_type: Any) -> torch.dtype:
    """The one that all three have."""
    found = read_type("q_data_type", "float16" if q_type is None else q_type)
    for name, x in (("kv_data_type", kv_type), ("o_data_type", o_type)):
        if x is not None and read_type(name, x) != found:
            refuse(name, f"that of the queries, {found}", x)
    return found
