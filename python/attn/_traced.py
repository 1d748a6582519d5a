"""The call of `attention` as torch.compile traces it: an operator of the graph.

It imports PyTorch, so attn imports this module only where Dynamo traces.
"""

from __future__ import annotations

from typing import Any, Dict

from torch.fx.experimental.symbolic_shapes import guard_scalar

from . import _dynamo, _watched
from ._given import Given
from ._library import option_texts
from ._problem import Spec
from ._seed import Seed, make_traced_seed
from ._source import Source
from ._written import write_text


@_dynamo.assume_constant
def make_source(options: Any, **fields: Any) -> str:
    """Of an attention without functions; the fields are those of its Spec."""
    source = Source(Spec(return_lse=True, **fields), seed=Seed())
    return write_text(source.text, source.captures, option_texts(options))


def attend(q: Any, k: Any, v: Any, return_lse: bool, how: Dict[str, Any]) -> Any:
    """A call without functions. `how` has scale, causal, window, sink, rows_first, options, dropout_p and
    dropout_seed, and may have out_dtype and, of a part of a whole, placed."""
    dropout, seed, window = 0.0, None, how["window"]
    if how["dropout_p"]:
        dropout, seed = make_traced_seed(how["dropout_p"], how["dropout_seed"], q)
    if window is not None:
        window = tuple([side if side is None else guard_scalar(side) for side in window])
    # Kernels are compiled for these; where shapes are symbols, they are constants from here on.
    placed = how.get("placed")
    source = make_source(
        how["options"],
        positions=None if placed is None else placed.kinds,
        dtype=q.dtype,
        head_dim=guard_scalar(q.shape[-1]),
        value_dim=guard_scalar(v.shape[-1]),
        device=str(q.device),
        causal=how["causal"],
        window=window,
        has_scale=how["scale"] is not None,
        has_sink=how["sink"] is not None,
        dropout=dropout,
        out_dtype=how.get("out_dtype"),
    )
    given = Given(q, k, v, how["scale"], how["sink"], how["rows_first"], [])
    captured = [] if placed is None else [*placed.arrays]
    captured += [] if seed is None else [seed]
    return _watched.apply(source, given, captured, return_lse)
