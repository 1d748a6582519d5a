"""Keys on their way to the ranks that want them, and their gradients home, while the caller computes.

What a rank receives lies by position first, the keys of a position and then its values, so that an interval of both is
one piece of memory: where it is all that comes from a rank, it is received where it is read from. What a rank has already
is copied there meanwhile. All that goes from a rank to another one is one message, and GPUs exchange all messages by one
collective: each further one costs the host more than a copy of several megabytes takes."""

from __future__ import annotations

import contextlib
import functools
import itertools
from typing import Any, Callable, Iterator, List, NamedTuple, Tuple

import torch
import torch.distributed as dist

from ._copies import find_forms, list_copies
from ._exchange import WIDE, Route, find_places, is_wide, select
from ._group import find_device
from ._shardings import Interval, count, intersect, make_positions

# The most intervals that are copied one by one, and not by an index.
COPIES = 8


class _Part(NamedTuple):
    """Positions that one rank holds and another one wants: their places among what is held and what is wanted, as
    intervals, and as indices on the device where they are many."""

    held: Tuple[Interval, ...]
    wanted: Tuple[Interval, ...]
    held_index: Any
    wanted_index: Any
    length: int

    @property
    def is_indexed(self) -> bool:
        return len(self.held) > COPIES


class _Parts(NamedTuple):
    """Of one rank, for each peer: what goes there and what comes from there. Those of the rank itself are the same.
    Then the same of gradients, which go back."""

    to: List[_Part]
    of: List[_Part]
    back_to: List[_Part]
    back_of: List[_Part]


@functools.lru_cache(maxsize=256)
def find_parts(route: Route, rank: int, device: torch.device) -> _Parts:
    held, wanted = route.held, route.wanted

    def find(holder: int, taker: int) -> _Part:
        both = intersect(held[holder], wanted[taker])
        there, here = tuple(find_places(held[holder], both)), tuple(find_places(wanted[taker], both))
        indices = [make_positions(x).to(device) if len(both) > COPIES else None for x in (there, here)]
        return _Part(there, here, indices[0], indices[1], count(both))

    ranks = range(len(held))
    to, of = [find(rank, peer) for peer in ranks], [find(peer, rank) for peer in ranks]
    turn = lambda xs: [_Part(x.wanted, x.held, x.wanted_index, x.held_index, x.length) for x in xs]  # noqa: E731
    return _Parts(to, of, turn(of), turn(to))


def widen(*tensors: torch.Tensor) -> List[torch.Tensor]:
    """Copies of rows in elements of 16 bytes move at the rate of memory."""
    return [x.view(WIDE) for x in tensors] if all(map(is_wide, tensors)) else list(tensors)


def _slice(x: torch.Tensor, intervals: Tuple[Interval, ...]) -> List[torch.Tensor]:
    return [x[a:b] for a, b in intervals]


def _find_lanes(parts: List[torch.Tensor]) -> List[List[torch.Tensor]]:
    """What moves together, in one message: keys beside values, unless kernels would read one of them from addresses
    that are not multiples of 16 bytes."""
    is_one = all(x.dtype == parts[0].dtype and x.shape[3] * x.element_size() % 16 == 0 for x in parts)
    return [parts] if is_one else [[x] for x in parts]


def _view_rows(memory: torch.Tensor, like: List[torch.Tensor], length: int) -> List[torch.Tensor]:
    """Of one dimension, all columns of a position and then those of the next: (B, H, positions, C) of each."""
    found, before, total = [], memory.storage_offset(), _count_columns(like)
    for x in like:
        b, h, _, c = x.shape
        found.append(torch.as_strided(memory, (b, h, length, c), (h * c, c, total, 1), before))
        before += b * h * c
    return found


def _cut_blocks(memory: torch.Tensor, like: List[torch.Tensor], length: int) -> List[torch.Tensor]:
    """Of one dimension, that many positions of the first, then those of the next: (positions, B, H, C) of each."""
    sizes = [length * x.shape[0] * x.shape[1] * x.shape[3] for x in like]
    shapes = [(length, x.shape[0], x.shape[1], x.shape[3]) for x in like]
    return [x.view(shape) for x, shape in zip(memory.split(sizes), shapes)]


def _count_columns(lane: List[torch.Tensor]) -> int:
    return sum([x.shape[0] * x.shape[1] * x.shape[3] for x in lane])


def _copy(
    lane: List[torch.Tensor], memory: torch.Tensor, held: Tuple[Interval, ...], wanted: Tuple[Interval, ...], is_rows: bool
) -> None:
    """Into new memory, from its beginning on."""
    list_copies(find_forms(lane), lane[0].element_size(), held, wanted, is_rows).run(lane, memory)


def _pack(lane: List[torch.Tensor], part: _Part, has_rows: bool) -> torch.Tensor:
    """What is sent of (B, H, S, C): all of a position together, or, of gradients and of what an index takes, all
    positions of each tensor."""
    packed = lane[0].new_empty(part.length * _count_columns(lane))
    if not part.is_indexed:
        _copy(lane, packed, part.held, _join_up(part.held), has_rows)
        return packed
    for x, to in zip(lane, _cut_blocks(packed, lane, part.length)):
        to, of = widen(to, x.movedim(2, 0))
        torch.index_select(of, 0, part.held_index, out=to)
    return packed


@functools.lru_cache(maxsize=1024)
def _join_up(intervals: Tuple[Interval, ...]) -> Tuple[Interval, ...]:
    """The same lengths, one after the other."""
    ends = list(itertools.accumulate(b - a for a, b in intervals))
    return tuple(zip([0, *ends], ends))


class Pending(NamedTuple):
    """A transfer on its way: what `finish` waits for, and what it does then on a CPU. Holds the memory that
    is sent and received."""

    works: List[Any]
    unpack: Callable[[], None]
    into: List[torch.Tensor]
    memory: Any


def post(messages: List[Tuple[bool, torch.Tensor, int]], group: Any, is_collective: bool = False) -> List[Any]:
    """Starts messages, (is sent, memory, peer): of a pair of ranks in the same order on both. By a collective there
    is at most one for each peer and direction."""
    if is_collective:
        return _post_all(messages, group)
    ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    operations = [
        dist.P2POp(dist.isend if is_sent else dist.irecv, x, ranks[peer], group)
        for is_sent, x, peer in messages
        if x.numel()
    ]
    return dist.batch_isend_irecv(operations) if operations else []


def _post_all(messages: List[Tuple[bool, torch.Tensor, int]], group: Any) -> List[Any]:
    # Who has none takes part, too.
    none = torch.empty(0, device=find_device(group)) if not messages else messages[0][1].new_empty(0)
    ends = [[none] * dist.get_world_size(group) for _ in range(2)]
    for is_sent, x, peer in messages:
        ends[is_sent][peer] = x
    return [dist.all_to_all(*ends, group=group, async_op=True)]


class Mover:
    """Transfers along one route that run while the caller computes: on a GPU on a stream of their own, on a
    CPU by the threads of the process group. All ranks start them in the same order."""

    def __init__(self, route: Route, group: Any, device: torch.device) -> None:
        self.group, self.rank = group, dist.get_rank(group)
        self.parts = find_parts(route, self.rank, device)
        self.length = count(route.wanted[self.rank])
        self.stream = _find_stream(device) if device.type == "cuda" else None
        # gloo has no exchange of lists.
        self.has_collective = self.stream is not None

    def make_buffers(self, parts: List[torch.Tensor], heads: int) -> List[torch.Tensor]:
        """Memory for what is wanted of so many heads of (B, H, S, C), in one dimension."""
        lanes = _find_lanes(parts)
        columns = [sum(x.shape[0] * heads * x.shape[3] for x in lane) for lane in lanes]
        return [lane[0].new_empty(self.length * of) for lane, of in zip(lanes, columns)]

    def fetch(self, parts: List[torch.Tensor], buffers: List[torch.Tensor]) -> Pending:
        """Of (B, H, S, C), those that lie here, into those that are wanted, in memory of `make_buffers`."""
        receivers = []
        for lane, buffer in zip(_find_lanes(parts), buffers):
            receivers.append(_Arrived(lane, buffer, self.parts.of, self.rank, self.length))
        into = [y for receiver in receivers for y in receiver.into]
        return self._move(receivers, into, self.parts.to, True)

    def send_back(self, parts: List[torch.Tensor], into: List[torch.Tensor]) -> Pending:
        """Gradients of what was fetched, to who holds it: sums in f32, in the order of ranks."""
        to, of = self.parts.back_to, self.parts.back_of
        ends = iter(into)
        receivers = [_Summed(lane, [next(ends) for _ in lane], of, self.rank) for lane in _find_lanes(parts)]
        return self._move(receivers, into, to, False)

    def _move(self, receivers: List[Any], into: List[torch.Tensor], to: List[_Part], has_rows: bool) -> Pending:
        with self._aside():
            messages: List[Tuple[bool, torch.Tensor, int]] = []
            for receiver in receivers:
                for peer, part in enumerate(to):
                    if peer != self.rank and part.length:
                        messages.append((True, _pack(receiver.lane, part, has_rows), peer))
                messages += [(False, x, peer) for x, peer in receiver.make_messages()]
            works = post(messages, self.group, len(receivers) == 1 and self.has_collective)

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
    """Rows that are received where they belong, in `memory`, all columns of a position and then those of the next, or
    beside it where they are several intervals. `lane` has what is held, (B, H, S, C)."""

    def __init__(self, lane: List[torch.Tensor], memory: torch.Tensor, of: List[_Part], rank: int, length: int) -> None:
        self.lane, self.memory, self.of, self.rank = lane, memory, of, rank
        self.columns = _count_columns(lane)
        # (B, H, positions, C).
        self.into = _view_rows(memory, lane, length)
        self.packed: List[Tuple[torch.Tensor, _Part]] = []

    def make_messages(self) -> List[Tuple[torch.Tensor, int]]:
        messages = []
        for peer, part in enumerate(self.of):
            if peer == self.rank or not part.length:
                continue
            if len(part.held) == 1:
                memory = self._find_rows(self.memory, part.wanted[0])
            else:
                memory = self.memory.new_empty(part.length * self.columns)
                self.packed.append((memory, part))
            messages.append((memory, peer))
        return messages

    def _find_rows(self, memory: torch.Tensor, interval: Interval) -> torch.Tensor:
        return memory[interval[0] * self.columns : interval[1] * self.columns]

    def copy_own(self) -> None:
        own = self.of[self.rank]
        if not own.is_indexed:
            _copy(self.lane, self.memory, own.held, own.wanted, True)
            return
        for x, y in zip(self.lane, self.into):
            _put(y.movedim(2, 0), select(x.movedim(2, 0), 0, own.held_index), own.wanted_index)

    def unpack(self) -> None:
        for memory, part in self.packed:
            if part.is_indexed:
                for y, rows in zip(self.into, _cut_blocks(memory, self.lane, part.length)):
                    _put(y.movedim(2, 0), rows, part.wanted_index)
                continue
            for to, of in zip(part.wanted, _join_up(part.wanted)):
                self._find_rows(self.memory, to).copy_(self._find_rows(memory, of))


def _put(to: torch.Tensor, rows: torch.Tensor, index: torch.Tensor) -> None:
    to, rows = widen(to, rows)
    to.index_copy_(0, index, rows)


class _Summed:
    """Gradients that are received, and added to `into`, (B, H, S, C), in the order of ranks."""

    def __init__(self, lane: List[torch.Tensor], into: List[torch.Tensor], of: List[_Part], rank: int) -> None:
        self.lane, self.of, self.rank = lane, of, rank
        self.into = [y.movedim(2, 0) for y in into]
        # The sum of two is rounded once, whichever is first.
        self.has_many = sum(1 for part in of if part.length) > 2
        self.received: List[Any] = [None] * len(of)

    def make_messages(self) -> List[Tuple[torch.Tensor, int]]:
        columns = _count_columns(self.lane)
        for peer, part in enumerate(self.of):
            if peer != self.rank and part.length:
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
