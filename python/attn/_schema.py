"""The arguments of attn's operators, each list written once: PyTorch's schemas, fakes, rules of vmap and of
sharding, and the implementations read it here.

`source` (_written.py) is the IR of one attention and what its gradients are written from.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Union, get_type_hints

from torch import Tensor

from ._given import Given


class Forward(NamedTuple):
    """Of attn::forward, attn::record and attn::forward_out."""

    q: Tensor
    k: Tensor
    v: Tensor
    sink: Optional[Tensor]
    captures: Optional[List[Tensor]]
    source: str
    scale: Optional[float]
    rows_first: bool


class Backward(NamedTuple):
    """Of attn::backward."""

    d_output: Tensor
    d_lse: Optional[Tensor]
    q: Tensor
    k: Tensor
    v: Tensor
    sink: Optional[Tensor]
    captures: Optional[List[Tensor]]
    output: Tensor
    lse: Tensor
    source: str
    scale: Optional[float]
    rows_first: bool
    wanted: List[bool]
    # Younger than programs that were exported.
    lse_low: Optional[Tensor] = None


def find_given(call: Union[Forward, Backward]) -> Given:
    captured = call.captures or []
    return Given(call.q, call.k, call.v, call.scale, call.sink, call.rows_first, captured)


_TYPES: Dict[Any, str] = {
    Tensor: "Tensor",
    Optional[Tensor]: "Tensor?",
    Optional[List[Tensor]]: "Tensor[]?",
    List[bool]: "bool[]",
    float: "float",
    Optional[float]: "float?",
    bool: "bool",
    str: "str",
}


def write_schema(of: Any) -> str:
    """The fields of a NamedTuple as PyTorch's registry takes arguments."""
    types, defaults = get_type_hints(of), of._field_defaults
    return ", ".join(
        f"{_TYPES[types[name]]} {name}{'=None' if name in defaults else ''}" for name in of._fields
    )
