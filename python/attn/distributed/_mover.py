"""Keys on their way to the ranks that want them, and their gradients home, while the caller computes.

What a rank receives lies by position first, (S, B, H, D), so that an interval is one piece of memory: it is received
where it is read from. What a rank has already is copied there meanwhile. Intervals that go to a rank are a message
each, or one message where they are many."""

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
    """Of one rank, for each peer: what goes there and what comes from there. Those of the rank itself are the same."""

    to: List[_Part]
    of: List[_Part]


@functools.lru_cache(maxsize=256)
def find_parts(route: Route, rank: int, device: torch.device) -> _Parts:
    held, wanted = route

    def find(holder: int, taker: int) -> _Part:
        both = intersect(held[holder], wanted[taker])
        places = find_places(held[holder], both), find_places(wanted[taker], both)
        indices = [make_positions(x).to(device) if len(both) > MESSAGES else None for x in places]
        return _Part(*places, *indices)

    ranks = range(len(held))
    return _Parts([find(rank, peer) for peer in ranks], [find(peer, rank) for peer in ranks])


def widen(*tensors: torch.Tensor) -> List[torch.Tensor]:
    """Copies of rows in elements of 16 bytes move at the rate of memory."""
    return [x.view(WIDE) for x in tensors] if all(map(is_wide, tensors)) else list(tensors)


def _slice(x: torch.Tensor, intervals: List[Interval]) -> List[torch.Tensor]:
    return [x[a:b] for a, b in intervals]


def _pack(x: torch.Tensor, intervals: List[Interval], index: Any) -> torch.Tensor:
    """Rows of x, (positions, ...), one after another in memory."""
    if index is not None:
        return select(x, 0, index).contiguous()
    found = x.new_empty((count(intervals), *x.shape[1:]))
    offset = 0
    for part in _slice(x, intervals):
        to, of = widen(found[offset : offset + len(part)], part)
        to.copy_(of)
        offset += len(part)
    return found


def _list_messages(x: torch.Tensor, intervals: List[Interval], index: Any) -> List[torch.Tensor]:
    """Rows that are sent: where they lie, if that is one piece of memory."""
    if index is None and x.is_contiguous():
        return _slice(x, intervals)
    packed = _pack(x, intervals, index)
    if index is not None:
        return [packed]
    return list(packed.split([b - a for a, b in intervals]))


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

    def make_buffer(self, x: torch.Tensor, heads: int) -> torch.Tensor:
        """Memory for what is wanted of so many heads of x, (B, H, S, columns), in one dimension."""
        return x.new_empty(x.shape[0] * heads * self.length * x.shape[3])

    def view(self, buffer: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """(B, H, wanted, columns) of a buffer, for B, H and columns of x."""
        b, h, _, columns = x.shape
        return buffer[: self.length * b * h * columns].view(self.length, b, h, columns).permute(1, 2, 0, 3)

    def fetch(self, parts: List[torch.Tensor], into: List[torch.Tensor]) -> Pending:
        """Of (B, H, S, columns), those that lie here, into those that are wanted, as `view` gives them."""
        return self._move(parts, into, self.parts.to, self.parts.of, _Arrived)

    def send_back(self, parts: List[torch.Tensor], into: List[torch.Tensor]) -> Pending:
        """Gradients of what was fetched, to who holds it: sums in f32, in the order of ranks."""
        turn = lambda xs: [_Part(x.wanted, x.held, x.wanted_index, x.held_index) for x in xs]  # noqa: E731
        return self._move(parts, into, turn(self.parts.of), turn(self.parts.to), _Summed)

    def _move(
        self, parts: List[Any], into: List[Any], to: List[_Part], of: List[_Part], kind: Callable
    ) -> Pending:
        with self._aside():
            messages: List[Tuple[bool, torch.Tensor, int]] = []
            receivers = []
            for x, y in zip(parts, into):
                x, y = x.movedim(2, 0), y.movedim(2, 0)
                for peer, part in enumerate(to):
                    if peer != self.rank and part.held:
                        sent = _list_messages(x, part.held, part.held_index)
                        messages += [(True, message, peer) for message in sent]
                receiver = kind(x, y, of, self.rank)
                messages += [(False, message, peer) for message, peer in receiver.messages]
                receivers.append(receiver)
            works = post(messages, self.group)

            def unpack() -> None:
                for receiver in receivers:
                    receiver.unpack()

            for receiver in receivers:
                receiver.copy_own()
            memory = messages, parts, receivers
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
    """Rows that are received where they belong, y, or beside it where they are many intervals."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor, of: List[_Part], rank: int) -> None:
        self.x, self.y, self.own = x, y, of[rank]
        self.messages: List[Tuple[torch.Tensor, int]] = []
        self.packed = []
        for peer, part in enumerate(of):
            if peer == rank or not part.held:
                continue
            if part.is_packed:
                memory = y.new_empty((part.length, *y.shape[1:]))
                self.messages.append((memory, peer))
                self.packed.append((memory, part.wanted_index))
            else:
                self.messages += [(message, peer) for message in _slice(y, part.wanted)]

    def copy_own(self) -> None:
        own = self.own
        if own.is_packed:
            self._put(select(self.x, 0, own.held_index), own.wanted_index)
            return
        for to, of in zip(_slice(self.y, own.wanted), _slice(self.x, own.held)):
            to, of = widen(to, of)
            to.copy_(of)

    def _put(self, rows: torch.Tensor, index: torch.Tensor) -> None:
        to, of = widen(self.y, rows)
        to.index_copy_(0, index, of)

    def unpack(self) -> None:
        for memory, index in self.packed:
            self._put(memory, index)


class _Summed:
    """Gradients that are received, and added to y in the order of ranks."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor, of: List[_Part], rank: int) -> None:
        self.y, self.x, self.of, self.rank = y, x, of, rank
        # The sum of two is rounded once, whichever is first.
        self.has_many = sum(1 for part in of if part.held) > 2
        self.received: List[List[torch.Tensor]] = []
        self.messages = []
        for peer, part in enumerate(of):
            memory = y.new_empty((part.length if peer != rank else 0, *y.shape[1:]))
            pieces = list(memory.split([b - a for a, b in part.wanted])) if len(memory) else []
            self.received.append(pieces)
            self.messages += [(x, peer) for x in ([memory] if part.is_packed and pieces else pieces)]

    def copy_own(self) -> None:
        if self.has_many:
            return
        own = self.of[self.rank]
        if own.length < len(self.y):
            self.y.zero_()
        for to, of in zip(_slice(self.y, own.wanted), _slice(self.x, own.held)):
            to, of = widen(to, of)
            to.copy_(of)

    def unpack(self) -> None:
        total = torch.zeros_like(self.y, dtype=torch.float32) if self.has_many else self.y
        for peer, part in enumerate(self.of):
            is_own = peer == self.rank
            if is_own and not self.has_many:
                continue
            pieces = _slice(self.x, part.held) if is_own else self.received[peer]
            for to, piece in zip(_slice(total, part.wanted), pieces):
                to += piece
        if self.has_many:
            self.y.copy_(total)
