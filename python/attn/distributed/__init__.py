"""Attention over a sequence that several processes hold, by torch.distributed.

    plan = attn.distributed.plan(131072, group=group, causal=True)
    q, k, v = (plan.shard(x, dim=2) for x in (q, k, v))
    output = attn.distributed.context_parallel_attention(q, k, v, plan=plan)

Each process holds rows and keys of the sequence, and says what it wants as if it held all: masks, scores,
`causal` and `window` are about positions in the whole.
"""

from ._attention import context_parallel_attention
from ._explain import explain
from ._parts import gather, merge
from ._plan import Plan, plan
from ._rates import Rates
from ._shared import keys, rows

__all__ = [
    "Plan",
    "Rates",
    "context_parallel_attention",
    "explain",
    "gather",
    "keys",
    "merge",
    "plan",
    "rows",
]
