"""How PyTorch's Inductor calls attn's operators: as those that autograd passes by.

Graphs keep attn::forward, attn::record and attn::backward, whose autograd is a Python function. Autograd
is done when the code of a graph runs, so this code calls attn::record_plain and its like, and no
Python runs between the code and the kernel. Whoever changes which operators these are, or what they
take, raises `CODE` in _written.py: Inductor keeps code on disk.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch


def register() -> None:
    """Once torch._inductor.lowering is imported. Of what Inductor has for operators of others, this takes
    what it would take by itself; a PyTorch without it calls the operators themselves."""
    try:
        from torch._inductor import lowering
        from torch._library.utils import get_layout_constraint_tag

        for name in ("forward", "record", "backward"):
            _lower(lowering, get_layout_constraint_tag, name)
    except (AttributeError, ImportError, TypeError) as error:
        warnings.warn(f"attn: expected the lowerings of Inductor, got: {error}", stacklevel=2)


def _lower(lowering: Any, find_tag: Any, name: str) -> None:
    operator = getattr(torch.ops.attn, name).default
    plain = getattr(torch.ops.attn, f"{name}_plain").default
    constraint = lowering.tag_to_layout_constraint(find_tag(operator, with_default=True))
    lowering.add_needs_realized_inputs(operator)
    if constraint is not None:
        lowering.add_layout_constraint(operator, constraint)
    lowering.register_lowering(operator, type_promotion_kind=None)(lowering.fallback_handler(plain))
