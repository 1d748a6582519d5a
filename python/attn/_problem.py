"""Which attention is asked for, and the problem that it is to the compiler."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Tuple

from . import _arrays
from ._library import Error, OptionTexts, option_texts, refuse


@dataclass(frozen=True)
class Problem:
    """What is compiled for; every length is a value of the call."""

    type: str
    head_dim: int
    value_dim: int
    causal: Optional[str]
    window: Optional[Tuple[int, int]]
    has_scale: bool
    has_sink: bool
    return_lse: bool
    # The probability that a weight is dropped.
    dropout: float = 0.0
    # Whether what f32 has no digits for in lse is returned too, as gradients ask for it.
    return_low: bool = False
    # The words of #attn.positions for b, h, m and n, where the call is a part of a whole.
    positions: Optional[Tuple[str, str, str, str]] = None
    # The type of the output where that is not the type of q; else empty.
    output: str = ""

    @property
    def output_type(self) -> str:
        return self.output or self.type


@dataclass(frozen=True)
class Spec:
    """An attention as somebody asks for it. It is made where a plan has to be, and not in each call."""

    dtype: Any
    head_dim: Any
    # As head_dim if None.
    value_dim: Any
    # "cpu", or "cuda:0".
    device: str
    causal: Any = False
    window: Any = None
    score: Optional[Callable] = None
    mask: Optional[Callable] = None
    has_scale: Any = False
    has_sink: Any = False
    return_lse: Any = False
    dropout: Any = 0.0
    # Of the output; as dtype if None.
    out_dtype: Any = None
    # As Problem has it.
    positions: Optional[Tuple[str, str, str, str]] = None

    def check(self) -> Problem:
        """The problem, or an Error that says what is wrong with it."""
        type_ = _arrays.type_name(self.dtype)
        if type_ not in ("f16", "bf16", "f32"):
            raise Error(
                "invalid argument",
                f"q: expected float16, bfloat16 or float32, got {self.dtype}",
                "convert q, k and v",
            )
        value_dim = self.head_dim if self.value_dim is None else self.value_dim
        return Problem(
            type_,
            _check_columns("head_dim", self.head_dim),
            _check_columns("value_dim", value_dim),
            check_causal(self.causal),
            check_window(self.window),
            bool(self.has_scale),
            bool(self.has_sink),
            bool(self.return_lse),
            check_dropout(self.dropout),
            output=_check_output(type_, self.out_dtype),
            positions=self.positions,
        )


def _check_output(type_: str, dtype: Any) -> str:
    """The type of the output, empty for that of q."""
    output = type_ if dtype is None else _arrays.type_name(dtype)
    if output not in (type_, "f32"):
        wanted = _arrays.NAMES_BY_TYPE[type_] + ("" if type_ == "f32" else " or float32")
        refuse("out_dtype", f"{wanted}, as elements are {type_}", repr(dtype))
    return "" if output == type_ else str(output)


def make_spec(dtype: Any, head_dim: Any, value_dim: Any, device: Any, **how: Any) -> Spec:
    """What the arguments of `compile` and `explain` ask for; `how` are those with a name."""
    for name, field in (("scale", "has_scale"), ("sink", "has_sink"), ("dropout_p", "dropout")):
        how[field] = how.pop(name)
    return Spec(dtype, head_dim, value_dim, _arrays.device_name(device), **how)


def is_rows_first(layout: str) -> bool:
    if layout == "bhsd":
        return False
    if layout == "bshd":
        return True
    raise Error("invalid argument", f'layout: expected "bhsd" or "bshd", got {layout!r}')


def check_options(options: Optional[Mapping[str, object]], device: str) -> OptionTexts:
    """The options, as the compiler takes them."""
    texts = option_texts(options)
    for name, text in texts:
        if name == "device":
            raise Error(
                "invalid argument",
                f"options: expected no device, got {text!r}",
                "attention runs where its tensors are; compile and explain take device=",
            )
    return (*texts, ("device", device))


def _to_index(x: Any) -> Optional[int]:
    """An integer of any library, as Python's; a bool is none."""
    if isinstance(x, bool) or not hasattr(x, "__index__"):
        return None
    try:
        return operator.index(x)
    except TypeError:
        return None


def _check_columns(name: str, extent: Any) -> int:
    columns = _to_index(extent)
    if columns is None or not 1 <= columns <= 1 << 20:
        raise Error(
            "invalid argument", f"{name}: expected a number of columns from 1 on, got {extent!r}"
        )
    return columns


def check_causal(causal: Any) -> Optional[str]:
    """None, "top_left" or "bottom_right"."""
    if causal is False or causal is None:
        return None
    if causal is True:
        return "bottom_right"
    if type(causal).__name__ in ("bool_", "bool") and hasattr(causal, "item"):
        return check_causal(causal.item())
    if isinstance(causal, str) and causal in ("top_left", "bottom_right"):
        return causal
    raise Error(
        "invalid argument",
        'causal: expected False, True, "top_left" or "bottom_right", got ' + repr(causal),
    )


def check_dropout(p: Any) -> float:
    """A probability."""
    try:
        value = -1.0 if isinstance(p, (str, bytes)) else float(p)
    except (TypeError, ValueError):
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise Error("invalid argument", f"dropout_p: expected a probability from 0 to 1, got {p!r}")
    return value


def check_window(window: Any) -> Optional[Tuple[int, int]]:
    """(left, right) with -1 for no bound, or None."""
    if window is None:
        return None
    try:
        left, right = (-1 if side is None else _to_index(side) for side in window)
    except (TypeError, ValueError):
        left = right = None
    for side in (left, right):
        if side is None or not -1 <= side <= 1 << 30:
            raise Error(
                "invalid argument",
                f"window: expected None or (left, right) of distances, got {window!r}",
                "None or -1 is no bound",
            )
    return None if (left, right) == (-1, -1) else (left, right)
