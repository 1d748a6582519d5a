"""Keys on their way to the ranks that want them, and their gradients home, while the caller computes.

What a rank receives lies by position first, the keys of a position and then its values, so that an interval of both is
one piece of memory: it is received where it is read from. What a rank has already is copied there meanwhile. Intervals
that go to a rank are a message each, or one message where they are many. Gradients are one message for each rank."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator, List, NamedTuple, Tuple

import torch
import torch.distributed as dist

from ._exchange import WIDE, Route, find_places, is_wide, select
from ._shardings import Interval, count, intersect, make_positions

# The most intervals that are messages of their own.
MESSAGES = 4


class _Part(NamedTuple):
    """Positions that one rank holds and another one wants: their places among what is held and what is wanted, as
    intervals, and as indices on the device where they are many."""

    held: List[Interval]
    wanted: List[Interval]
    held_index: Any
    wanted_index: Any

    @property
    def is_packed(self) -> bool:
        return len(self.held) > MESSAGES

    @property
    def length(self) -> int:
        return count(self.held)


class _Parts(NamedTuple):
    """Of one rank, for each peer: what goes there and what comes from there. Those of the rank itself are the same.
    Then the same of gradients, which go back."""

    to: List[_Part]
    of: List[_Part]
    back_to: List[_Part]
    back_of: List[_Part]


@functools.lru_cache(maxsize=256)
def find_parts(route: Route, rank: int, device: torch.device) -> _Parts:
    held, wanted = route

    def find(holder: int, taker: int) -> _Part:
        both = intersect(held[holder], wanted[taker])
        places = find_places(held[holder], both), find_places(wanted[taker], both)
        indices = [make_positions(x).to(device) if len(both) > MESSAGES else None for x in places]
        return _Part(*places, *indices)

    ranks = range(len(held))
    to, of = [find(rank, peer) for peer in ranks], [find(peer, rank) for peer in ranks]
    turn = lambda xs: [_Part(x.wanted, x.held, x.wanted_index, x.held_index) for x in xs]  # noqa: E731
    return _Parts(to, of, turn(of), turn(to))


def widen(*tensors: torch.Tensor) -> List[torch.Tensor]:
    """Copies of rows in elements of 16 bytes move at the rate of memory."""
    return [x.view(WIDE) for x in tensors] if all(map(is_wide, tensors)) else list(tensors)


def _slice(x: torch.Tensor, intervals: List[Interval]) -> List[torch.Tensor]:
    return [x[a:b] for a, b in intervals]


def _find_lanes(parts: List[torch.Tensor]) -> List[List[torch.Tensor]]:
    """What moves together, in one message: keys beside values, unless kernels would read one of them from addresses
    that are not multiples of 16 bytes."""
    is_one = all(x.dtype == parts[0].dtype and x.shape[3] * x.element_size() % 16 == 0 for x in parts)
    return [parts] if is_one else [[x] for x in parts]


def _cut_rows(memory: torch.Tensor, like: List[torch.Tensor]) -> List[torch.Tensor]:
    """Of (positions, columns of all), (positions, B, H, C) of each, for (B, H, S, C)."""
    found, offset = [], 0
    for x in like:
        b, h, _, columns = x.shape
        found.append(memory[:, offset : offset + b * h * columns].unflatten(1, (b, h, columns)))
        offset += b * h * columns
    return found


def _cut_blocks(memory: torch.Tensor, like: List[torch.Tensor], length: int) -> List[torch.Tensor]:
    """Of one dimension, that many positions of the first, then those of the next: (positions, B, H, C) of each."""
    sizes = [length * x.shape[0] * x.shape[1] * x.shape[3] for x in like]
    shapes = [(length, x.shape[0], x.shape[1], x.shape[3]) for x in like]
    return [x.view(shape) for x, shape in zip(memory.split(sizes), shapes)]


def _count_columns(lane: List[torch.Tensor]) -> int:
    return sum(x.shape[0] * x.shape[1] * x.shape[3] for x in lane)


def _copy(to: torch.Tensor, of: torch.Tensor, intervals: List[Interval], index: Any) -> None:
    """Positions of `of`, (positions, ...), one after another."""
    if index is not None:
        to, of = widen(to, of)
        torch.index_select(of, 0, index, out=to)
        return
    offset = 0
    for part in _slice(of, intervals):
        each, part = widen(to[offset : offset + len(part)], part)
        each.copy_(part)
        offset += len(part)


def _pack(lane: List[torch.Tensor], part: _Part, has_rows: bool) -> List[torch.Tensor]:
    """What is sent of (B, H, S, C): a message for each interval, that has all of a position together, or one of all
    positions of each."""
    packed = lane[0].new_empty(part.length * _count_columns(lane))
    if has_rows:
        memory = packed.view(part.length, -1)
        messages, cut = list(memory.split([b - a for a, b in part.held])), _cut_rows(memory, lane)
    else:
        messages, cut = [packed], _cut_blocks(packed, lane, part.length)
    for x, to in zip(lane, cut):
        _copy(to, x.movedim(2, 0), part.held, part.held_index)
    return messages


class Pending(NamedTuple):
    """A transfer on its way: what `finish` waits for, and what it does then on a CPU. Holds the memory that
    is sent and received."""

    works: List[Any]
    unpack: Callable[[], None]
    into: List[torch.Tensor]
    memory: Any


def post(messages: List[Tuple[bool, torch.Tensor, int]], group: Any) -> List[Any]:
    """Starts messages, (is sent, memory, peer): of a pair of ranks in the same order on both."""
    ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    operations = [
        dist.P2POp(dist.isend if is_sent else dist.irecv, x, ranks[peer], group)
        for is_sent, x, peer in messages
        if x.numel()
    ]
    return dist.batch_isend_irecv(operations) if operations else []


class Mover:
    """Transfers along one route that run while the caller computes: on a GPU on a stream of their own, on a
    CPU by the threads of the process group. All ranks start them in the same order."""

    def __init__(self, route: Route, group: Any, device: torch.device) -> None:
        self.group, self.rank = group, dist.get_rank(group)
        self.parts = find_parts(route, self.rank, device)
        self.length = count(route.wanted[self.rank])
        self.stream = _find_stream(device) if device.type == "cuda" else None

    def make_buffers(self, parts: List[torch.Tensor], heads: int) -> List[torch.Tensor]:
        """Memory for what is wanted of so many heads of (B, H, S, C), in one dimension."""
        lanes = _find_lanes(parts)
        columns = [sum(x.shape[0] * heads * x.shape[3] for x in lane) for lane in lanes]
        return [lane[0].new_empty(self.length * of) for lane, of in zip(lanes, columns)]

    def fetch(self, parts: List[torch.Tensor], buffers: List[torch.Tensor]) -> Pending:
        """Of (B, H, S, C), those that lie here, into those that are wanted, in memory of `make_buffers`."""
        receivers = []
        for lane, buffer in zip(_find_lanes(parts), buffers):
            columns = _count_columns(lane)
            memory = buffer[: self.length * columns].view(self.length, columns)
            receivers.append(_Arrived(lane, memory, self.parts.of, self.rank))
        into = [y.permute(1, 2, 0, 3) for receiver in receivers for y in receiver.into]
        return self._move(receivers, into, self.parts.to, lambda part: not part.is_packed)

    def send_back(self, parts: List[torch.Tensor], into: List[torch.Tensor]) -> Pending:
        """Gradients of what was fetched, to who holds it: sums in f32, in the order of ranks."""
        to, of = self.parts.back_to, self.parts.back_of
        ends = iter(into)
        receivers = [_Summed(lane, [next(ends) for _ in lane], of, self.rank) for lane in _find_lanes(parts)]
        return self._move(receivers, into, to, lambda part: False)

    def _move(
        self, receivers: List[Any], into: List[torch.Tensor], to: List[_Part], has_rows: Callable[[_Part], bool]
    ) -> Pending:
        with self._aside():
            messages: List[Tuple[bool, torch.Tensor, int]] = []
            for receiver in receivers:
                for peer, part in enumerate(to):
                    if peer != self.rank and part.held:
                        messages += [(True, x, peer) for x in _pack(receiver.lane, part, has_rows(part))]
                messages += [(False, x, peer) for x, peer in receiver.make_messages()]
            works = post(messages, self.group)

            def unpack() -> None:
                for receiver in receivers:
                    receiver.unpack()

            for receiver in receivers:
                receiver.copy_own()
            memory = messages, receivers
            if self.stream is None:
                return Pending(works, unpack, into, memory)
            # The stream waits, and not the host.
            for work in works:
                work.wait()
            unpack()
            done = torch.cuda.Event()
            done.record(self.stream)
        return Pending([done], lambda: None, into, memory)

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        """What is queued here runs after all that the caller has queued so far, and beside what it queues
        from now on."""
        if self.stream is None:
            yield
            return
        self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
        with torch.cuda.stream(self.stream):
            yield

    def finish(self, pending: Pending) -> List[torch.Tensor]:
        if self.stream is None:
            for work in pending.works:
                work.wait()
            pending.unpack()
        else:
            for done in pending.works:
                torch.cuda.current_stream(self.stream.device).wait_event(done)
        return pending.into


# Blocks of a transfer run before those of a kernel that was queued earlier and still has blocks to begin.
@functools.lru_cache(maxsize=64)
def _find_stream(device: torch.device) -> Any:
    return torch.cuda.Stream(device, priority=-1)


class _Arrived:
    """Rows that are received where they belong, in `memory`, (positions, columns), or beside it where they are many
    intervals. `lane` has what is held, (B, H, S, C)."""

    def __init__(self, lane: List[torch.Tensor], memory: torch.Tensor, of: List[_Part], rank: int) -> None:
        self.lane, self.memory, self.of, self.rank = lane, memory, of, rank
        self.into = _cut_rows(memory, lane)
        self.packed: List[Tuple[torch.Tensor, _Part]] = []

    def make_messages(self) -> List[Tuple[torch.Tensor, int]]:
        messages = []
        for peer, part in enumerate(self.of):
            if peer == self.rank or not part.held:
                continue
            if part.is_packed:
                memory = self.memory.new_empty(part.length * self.memory.shape[1])
                messages.append((memory, peer))
                self.packed.append((memory, part))
            else:
                messages += [(message, peer) for message in _slice(self.memory, part.wanted)]
        return messages

    def copy_own(self) -> None:
        own = self.of[self.rank]
        for x, y in zip(self.lane, self.into):
            x = x.movedim(2, 0)
            if own.is_packed:
                _put(y, select(x, 0, own.held_index), own.wanted_index)
                continue
            for to, of in zip(_slice(y, own.wanted), _slice(x, own.held)):
                to, of = widen(to, of)
                to.copy_(of)

    def unpack(self) -> None:
        for memory, part in self.packed:
            for y, rows in zip(self.into, _cut_blocks(memory, self.lane, part.length)):
                _put(y, rows, part.wanted_index)


def _put(to: torch.Tensor, rows: torch.Tensor, index: torch.Tensor) -> None:
    to, rows = widen(to, rows)
    to.index_copy_(0, index, rows)


class _Summed:
    """Gradients that are received, and added to `into`, (B, H, S, C), in the order of ranks."""

    def __init__(self, lane: List[torch.Tensor], into: List[torch.Tensor], of: List[_Part], rank: int) -> None:
        self.lane, self.of, self.rank = lane, of, rank
        self.into = [y.movedim(2, 0) for y in into]
        # The sum of two is rounded once, whichever is first.
        self.has_many = sum(1 for part in of if part.held) > 2
        self.received: List[Any] = [None] * len(of)

    def make_messages(self) -> List[Tuple[torch.Tensor, int]]:
        columns = _count_columns(self.lane)
        for peer, part in enumerate(self.of):
            if peer != self.rank and part.held:
                self.received[peer] = self.lane[0].new_empty(part.length * columns)
        return [(x, peer) for peer, x in enumerate(self.received) if x is not None]

    def copy_own(self) -> None:
        if self.has_many:
            return
        own = self.of[self.rank]
        for x, y in zip(self.lane, self.into):
            if own.length < len(y):
                y.zero_()
            for to, of in zip(_slice(y, own.wanted), _slice(x.movedim(2, 0), own.held)):
                to, of = widen(to, of)
                to.copy_(of)

    def unpack(self) -> None:
        for number, (x, y) in enumerate(zip(self.lane, self.into)):
            total = torch.zeros_like(y, dtype=torch.float32) if self.has_many else y
            for peer, part in enumerate(self.of):
                if peer == self.rank:
                    pieces = _slice(x.movedim(2, 0), part.held) if self.has_many else []
                elif self.received[peer] is not None:
                    rows = _cut_blocks(self.received[peer], self.lane, part.length)[number]
                    pieces = list(rows.split([b - a for a, b in part.wanted]))
                else:
                    pieces = []
                for to, piece in zip(_slice(total, part.wanted), pieces):
                    to += piece
            if self.has_many:
                y.copy_(total)
