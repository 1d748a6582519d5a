"""Each rank fetches the keys that its rows keep: one group of key heads after the other, and while one is
computed the next one moves. In the backward pass the gradients of one group go home meanwhile."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Tuple

import torch

from .._given import Given
from ._call import Call, Rows, Sums, attend, make_output
from ._mover import Mover, Pending
from ._shardings import cut
from ._shared import bring_home, gather_shared


class _Group(NamedTuple):
    """Query heads and key heads of one step."""

    heads: slice
    keys: slice


def _find_groups(call: Call, q: torch.Tensor, k: torch.Tensor, is_backward: bool) -> List[_Group]:
    batch, heads, key_heads = q.shape[0], q.shape[1], k.shape[1]
    ratio, steps = heads // key_heads, call.plan.count_steps(batch, heads, key_heads, is_backward)
    return [_Group(slice(a * ratio, b * ratio), slice(a, b)) for a, b in cut(key_heads, steps)]


class _Keys:
    """Keys and values of groups, as they come, in two buffers in turn. All in (B, H, S, D)."""

    def __init__(self, call: Call, k: torch.Tensor, v: torch.Tensor, groups: List[_Group]) -> None:
        self.k, self.v, self.groups = k, v, groups
        self.mover = Mover(call.plan.route, call.group, k.device)
        most = max(x.keys.stop - x.keys.start for x in groups)
        self.buffers = [self.mover.make_buffers([k, v], most) for _ in range(min(2, len(groups)))]
        self.coming: Optional[Pending] = None
        self._start(0)

    def _start(self, number: int) -> None:
        keys = self.groups[number].keys
        parts = [x[:, keys] for x in (self.k, self.v)]
        self.coming = self.mover.fetch(parts, self.buffers[number % 2])

    def take(self, number: int) -> List[torch.Tensor]:
        """Those of a group; the next one begins to move, into the buffer of the one before."""
        assert self.coming is not None
        found = self.mover.finish(self.coming)
        # Its memory is free for the next.
        self.coming = None
        if number + 1 < len(self.groups):
            self._start(number + 1)
        return found


def _choose(x: Any, heads: slice) -> Any:
    return None if x is None else x[:, heads].contiguous()


def forward(call: Call, q: Any, k: Any, v: Any, sink: Any, is_recorded: bool) -> Tuple[Any, Any, Any]:
    """(output, lse, lse_low); all of them heads first."""
    groups, rank = _find_groups(call, q, k, False), call.rank
    keys, rows = _Keys(call, k, v, groups), call.plan.rows[rank]
    call = gather_shared(call)
    output = make_output(call, q, v.shape[3])
    found: List[Rows] = []
    for number, (heads, _) in enumerate(groups):
        k_there, v_there = keys.take(number)
        captured = call.bind(q, rows, call.plan.fetched[rank], heads.start)
        mine = None if sink is None else sink[heads]
        if q.shape[2]:
            given = Given(q[:, heads], k_there, v_there, call.scale, mine, False, captured)
            found.append(attend(call, given, output[:, heads], is_recorded))
        else:
            lse = q.new_empty((q.shape[0], heads.stop - heads.start, 0), dtype=torch.float32)
            found.append(Rows(None, lse, None))
    if len(found) == 1:
        return output, found[0].lse, found[0].low
    lse = torch.cat([x.lse for x in found], 1)
    low = None if found[0].low is None else torch.cat([x.low for x in found], 1)
    return output, lse, low


class _Gradients:
    """Gradients of keys and values on their way home, one group at a time."""

    def __init__(self, call: Call, keys: _Keys) -> None:
        self.mover, self.groups = keys.mover, keys.groups
        self.found = [torch.empty_like(x) for x in (keys.k, keys.v)]
        self.going: Optional[Pending] = None

    def send(self, number: int, parts: List[torch.Tensor]) -> None:
        self.finish()
        into = [x[:, self.groups[number].keys] for x in self.found]
        self.going = self.mover.send_back(parts, into)

    def finish(self) -> List[torch.Tensor]:
        if self.going is not None:
            self.mover.finish(self.going)
            self.going = None
        return self.found


def backward(
    call: Call, q: Any, k: Any, v: Any, sink: Any, rows: Rows, gradients: Tuple[Any, Any], wanted: List[bool]
) -> List[Any]:
    """Gradients of q, k, v, the sink and captured arrays, those that are wanted."""
    d_output, d_lse = gradients
    groups, rank = _find_groups(call, q, k, True), call.rank
    held = call.plan.rows[rank], call.plan.fetched[rank]
    keys, before, call = _Keys(call, k, v, groups), call, gather_shared(call)
    sums = Sums(call, wanted, sink)
    has_keys = wanted[1] or wanted[2]
    home = _Gradients(call, keys) if has_keys else None
    d_q: Any = None
    for number, (heads, _) in enumerate(groups):
        there = keys.take(number)
        # A rank without rows fetches nothing.
        found: Any = there
        if q.shape[2]:
            captured = call.bind(q, *held, heads.start)
            mine = None if sink is None else sink[heads]
            given = Given(q[:, heads], *there, call.scale, mine, False, captured)
            of = Rows(rows.output[:, heads], _choose(rows.lse, heads), _choose(rows.low, heads))
            part, *found = sums.differentiate(given, of, d_output[:, heads], _choose(d_lse, heads), heads)
            if len(groups) == 1:
                d_q = part
            else:
                d_q = torch.empty_like(q) if d_q is None else d_q
                d_q[:, heads] = part
        if home is not None:
            home.send(number, found)
        # Memory that is sent is the mover's to keep.
        found = None
    d_q = torch.empty_like(q) if d_q is None else d_q
    bring_home(before, sums)
    results = [d_q, *(home.finish() if home is not None else (None, None))]
    return [x for x, is_wanted in zip(results, wanted) if is_wanted] + sums.list()
