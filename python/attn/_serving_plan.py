"""What the layers of a model compute alike in a step of an engine."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from . import _arrays
from ._tensors import Tensors


class Plan:
    """The numbers that calls of `attn.serving` compute of lengths, tables and masks, kept for the other
    layers of a model:

        plan = attn.serving.Plan()
        for step in range(steps):
            plan.update()  # Lengths and tables have changed.
            for layer in range(layers):
                output = attn.serving.paged_attention(q, k_cache[layer], v_cache[layer],
                                                      page_table=table, seqused_k=lengths, plan=plan)

    On a GPU the first call after `update` runs the small kernels in front of an attention, such as those
    that deal parts of keys to sequences (the option `balance`). Calls with tensors of the same shapes then
    run the attention alone. All of them use the plan's memory, so that they must be in the order of one
    stream. A CUDA graph that begins with `update` plans anew in each replay. On the CPU a plan changes
    nothing.

    Calls without `update` after lengths, tables, or tensors that masks read have changed give wrong
    results, and touch no other memory.
    """

    def __init__(self) -> None:
        # By kernel and shapes: the memory, and whether what calls share is there.
        self._workspaces: Dict[Any, Tuple[Any, bool]] = {}

    def update(self) -> None:
        """Lets the next call of each kind compute anew what calls share."""
        self._workspaces = {key: (memory, False) for key, (memory, _) in self._workspaces.items()}

    def run(self, tensors: Tensors, like: Any) -> None:
        """A call, with memory like the array's on its device. Of `attn.serving`."""
        key = (tensors.kernel, tensors.list_shapes())
        if key not in self._workspaces:
            count = tensors.count_workspace()
            memory = _arrays.empty_like(like, "f32", (-(-count // 4),)) if count else None
            self._workspaces[key] = memory, False
        memory, is_planned = self._workspaces[key]
        tensors.run(memory, is_planned)
        self._workspaces[key] = memory, memory is not None
