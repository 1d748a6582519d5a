"""Whether all ranks mean the same call, before anything is sent: where they do not, each has an Error."""

from __future__ import annotations

import hashlib
from typing import Any, Dict, Set, Tuple

import torch
import torch.distributed as dist

from .._library import Error
from .._problem import is_rows_first
from ._plan import Plan

_agreed: Set[Tuple] = set()
_BYTES = 16


def agree(
    group: Any,
    q: torch.Tensor,
    plan: Plan,
    causal: Any,
    window: Any,
    sink: Any,
    return_lse: bool,
    **how: Any,
) -> None:
    """Raises Error on every rank, with the argument's name, where ranks differ. Once for each combination."""
    batch, heads, dim = q.shape[0], q.shape[2 if is_rows_first(how["layout"]) else 1], q.shape[3]
    facts = {
        "q": f"{q.dtype}, {batch} batches, {heads} heads, {dim} columns",
        "plan": plan.text,
        "causal": repr(causal),
        "window": repr(window),
        "sink": "none" if sink is None else str(sink.dtype),
        "return_lse": repr(return_lse),
        "gradients": repr(torch.is_grad_enabled() and q.requires_grad),
        **{name: repr(x) for name, x in how.items()},
    }
    key = (group, *facts.values())
    if key in _agreed:
        return
    _compare(group, q.device, facts)
    if len(_agreed) > 4096:
        _agreed.clear()
    _agreed.add(key)


def _compare(group: Any, device: torch.device, facts: Dict[str, str]) -> None:
    texts = [facts[name] for name in sorted(facts)]
    digests = b"".join(hashlib.blake2b(x.encode(), digest_size=_BYTES).digest() for x in texts)
    mine = torch.frombuffer(bytearray(digests), dtype=torch.uint8).to(device)
    everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(everyone, mine, group=group)
    each = torch.stack(everyone).cpu().unflatten(1, (len(texts), _BYTES))
    differs = (each != each[:1]).any(2)
    if not differs.any():
        return
    rank, number = (int(x) for x in differs.nonzero()[0])
    name = sorted(facts)[number]
    own = facts[name] if len(facts[name]) < 200 else facts[name][:200] + "..."
    raise Error(
        "invalid argument",
        f"{name}: expected the same on all ranks, got another one on rank {rank} than on rank 0; on this "
        f"rank it is {own}",
        "give every rank the same arguments, but for its parts of q, k and v",
    )
