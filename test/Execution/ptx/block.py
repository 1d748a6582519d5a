"""A block of threads: warps that take turns at random, and what runs beside them, as late as it may.

One warp of a block is late: it has a turn when nobody else can go on. Warps of a warpgroup meet where they fence its products
and where they wait for them, since a product is one of all four. Copies land after random delays, those of threads (cp.async)
too. Products are carried out when somebody waits for them, or when they are committed, by chance, so that a wait that is
missing shows as a wrong number. Shared memory begins as NaN. A register that is read before it is written is an error, and
so are a block in which nobody can go on, an address outside of a tensor, and a product of what threads wrote before any
thread fenced it.
"""

from __future__ import annotations

import collections
import random
import re
from dataclasses import dataclass
from typing import Callable, Dict, Iterable, List, MutableMapping, Optional, Sequence, Tuple, cast

import numpy as np

from . import async_units, narrow
from .async_units import SHARED, Barrier, TensorMap
from .program import Instruction, Kernel
from .scalars import TYPES, compute
from .tensor_memory import TensorMemory

# Addresses of what kernels are given: of parameters in memory, and of tensors, far apart.
PARAMETERS, TENSORS = 1 << 60, 1 << 40
# Instructions of a warp before another one has its turn.
TURN = 500


class Memory:
    """Tensors at addresses."""

    def __init__(self) -> None:
        self.tensors: List[np.ndarray] = []

    def add(self, tensor: np.ndarray) -> int:
        """The address of a tensor, which may be a part of another one."""
        whole = tensor if tensor.flags.c_contiguous else tensor.base
        self.tensors.append(whole.reshape(-1).view(np.uint8))
        return TENSORS * len(self.tensors) + tensor.ctypes.data - whole.ctypes.data

    def find(self, addresses: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """The bytes of the tensor, and where in it."""
        number = int(addresses[0]) // TENSORS
        if not 1 <= number <= len(self.tensors):
            raise RuntimeError(f"expected an address of a tensor, got {int(addresses[0]):#x}")
        return self.tensors[number - 1], (addresses - np.uint64(number * TENSORS)).astype(np.int64)


# What add.cc leaves for addc.
CARRY = "%carry"


@dataclass(eq=False)
class Copy:
    """Lands after so many rounds of all warps."""

    rounds: int
    land: Callable[[], None]


class Warp:
    def __init__(self, number: int) -> None:
        self.number = number
        self.registers: MutableMapping[str, np.ndarray] = {}
        # Where paths that parted go on: instruction, lanes, and where they meet those below.
        self.paths: List[Tuple[int, np.ndarray, Optional[int]]] = [(0, np.ones(32, bool), None)]
        self.open: List[Callable[[], None]] = []
        self.groups: List[List[Callable[[], None]]] = []
        # Sums in bulk, of which nobody waits for the end.
        self.sums: List[Callable[[], None]] = []
        # Pieces that its threads copy and that have not landed.
        self.pieces: List[Copy] = []
        self.waits_for: Optional[Tuple[str, int]] = None
        # Registers that tcgen05.ld fills, until the warp waits for it.
        self.loading: Dict[str, np.ndarray] = {}


class Block:
    def __init__(self, kernel: Kernel, arguments: Dict[str, object], memory: Memory, ids: Sequence[int],
                 grid: Sequence[int], threads: int, shared_bytes: int, seed: int) -> None:
        self.kernel, self.arguments, self.memory = kernel, arguments, memory
        self.random = random.Random(seed)
        self.shared = np.full(SHARED + shared_bytes, 0xFF, np.uint8)
        self.barriers: Dict[int, Barrier] = {}
        self.meetings: Dict[str, Tuple[set, int]] = {}
        self.copies: List[Copy] = []
        # Bytes that threads wrote, and that the asynchronous proxy does not see yet.
        self.unfenced = np.zeros(self.shared.size, bool)
        # Of each byte, the box that brings it, from 1 on; and of each box, the barrier and how many of its phases end by then.
        self.brought = np.zeros(self.shared.size, np.int64)
        self.boxes: List[Tuple[int, int]] = [(0, 0)]
        # Arrivals of lanes at barriers, with the pieces that they wait for.
        self.arrivals: List[Tuple[Barrier, int, List[Copy], Optional[np.ndarray]]] = []
        # At the one barrier that counts: who votes, the register of the answer, the lanes and their votes.
        self.votes: List[Tuple[Warp, str, np.ndarray, np.ndarray]] = []
        self.warps = [Warp(number) for number in range(threads // 32)]
        self.special = {f"%{name}.{axis}": values[i] for name, values in (("ctaid", ids), ("nctaid", grid))
                        for i, axis in enumerate("xyz")}
        self.late = self.random.choice(self.warps)
        # Counts what others may wait for.
        self.events = 0
        # Of kernels that use it.
        uses = any(i.name.startswith("tcgen05.") for i in kernel.code)
        self.tensor: Optional[TensorMemory] = TensorMemory(self) if uses else None

    # ---- running

    def run(self) -> None:
        idle = 0
        while any(warp.paths for warp in self.warps):
            before = self.events
            going = [warp for warp in self.warps if warp.paths]
            for warp in self.random.sample(going, len(going)):
                if warp is not self.late or idle:
                    self.run_warp(warp)
            for copy in list(self.copies):
                copy.rounds -= 1
                if copy.rounds == 0:
                    self.copies.remove(copy)
                    copy.land()
                    self.events += 1
            self.arrive_landed()
            idle = 0 if self.events != before or self.copies else idle + 1
            if idle > 50:
                where = [f"warp {w.number}: {self.kernel.code[w.paths[-1][0]].text}" for w in self.warps if w.paths]
                raise RuntimeError("nobody goes on:\n  " + "\n  ".join(where))
        for warp in self.warps:
            self.add_sums(warp)
        if self.tensor:
            self.tensor.check_end()

    def run_warp(self, warp: Warp) -> None:
        if warp.waits_for and not self.has_met(warp):
            return
        warp.waits_for = None
        for _ in range(TURN):
            while warp.paths and (warp.paths[-1][0] == warp.paths[-1][2] or not warp.paths[-1][1].any()):
                warp.paths.pop()
            if not warp.paths:
                self.events += 1
                return
            at, lanes, join = warp.paths[-1]
            instruction = self.kernel.code[at]
            warp.paths[-1] = (at + 1, lanes, join)
            try:
                if not self.execute(warp, at, instruction, lanes):
                    return
            except Exception as error:
                raise RuntimeError(f"warp {warp.number} at '{instruction.text[:120]}': {error}") from error

    def execute(self, warp: Warp, at: int, i: Instruction, lanes: np.ndarray) -> bool:
        """False where somebody else should have a turn."""
        if i.name.startswith("bra"):
            return self.branch(warp, at, i, lanes)
        if i.guard:
            lanes = lanes & (self.read(warp, i.guard, "pred") ^ i.negated)
            if not lanes.any():
                return True
        if i.name in ("ret", "exit"):
            warp.paths = [(pc, mask & ~lanes, join) for pc, mask, join in warp.paths]
            return True
        family = i.name.split(".")[0]
        handler = getattr(self, f"do_{family}", None)
        if handler:
            return handler(warp, i, lanes) is not False
        if family in ("addc", "subc") or ".cc." in i.name:
            return self.carry(warp, i, lanes)
        value = compute(i.name, lambda k, type_: self.read(warp, i.operands[k + 1], type_), len(i.operands) - 1)
        self.write(warp, i.operands[0], value, lanes)
        return True

    def carry(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> bool:
        """add.cc, addc, sub.cc, subc: what is carried, or borrowed, is a register of each lane."""
        family, type_ = i.name.split(".")[0], "u" + i.name[-2:]
        x, y = (self.read(warp, operand, type_) for operand in i.operands[1:])
        before = self.read(warp, CARRY, "pred") if family.endswith("c") else np.zeros(32, bool)
        if family.startswith("add"):
            value = x + y + before
            after = (value < x) | (before & (value == x))
        else:
            value = x - y - before
            after = (x < y) | (before & (x == y))
        self.write(warp, i.operands[0], value, lanes)
        if ".cc." in i.name:
            self.write(warp, CARRY, after, lanes)
        return True

    def do_brx(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        """To one of a list, the same for all lanes."""
        target = self.kernel.lists[i.operands[1]][self.read_one(warp, i.operands[0], "u32", lanes)]
        warp.paths[-1] = (self.kernel.labels[target], *warp.paths[-1][1:])

    def branch(self, warp: Warp, at: int, i: Instruction, lanes: np.ndarray) -> bool:
        target = self.kernel.labels[i.operands[0]]
        taken = lanes & (self.read(warp, i.guard, "pred") ^ i.negated) if i.guard else lanes
        after, _, join = warp.paths[-1]
        if (taken == lanes).all():
            warp.paths[-1] = (target, lanes, join)
        elif taken.any():
            meet = self.kernel.joins[at]
            # Where paths only end, nobody goes on behind them.
            warp.paths.pop()
            if meet is not None:
                warp.paths.append((meet, lanes, join))
            warp.paths += [(after, lanes & ~taken, meet), (target, taken, meet)]
        return True

    # ---- registers

    def read(self, warp: Warp, operand: str, type_: str) -> np.ndarray:
        to = np.dtype(TYPES[type_])
        if operand.startswith("{"):
            low, high = (self.read_half(warp, part.strip(), to.itemsize // 2) for part in operand.strip("{}").split(","))
            return (low | high << np.uint64(to.itemsize * 4)).astype(f"u{to.itemsize}").view(to)
        if operand in warp.registers:
            value = warp.registers[operand]
            if value.dtype == np.bool_ or value.dtype.itemsize == to.itemsize:
                return value.view(to) if value.dtype != np.bool_ else value
            return value.astype(f"u{to.itemsize}").view(to)
        return np.full(32, 0, to) + self.read_constant(warp, operand, to)

    def read_half(self, warp: Warp, operand: str, bytes_: int) -> np.ndarray:
        """As a word of 64 bits. Half of a word of which nobody reads the other may be undefined: NaN, whoever reads it."""
        if bytes_ == 2 and operand.startswith("%rs") and operand not in warp.registers:
            return np.full(32, 0x7FFF, np.uint64)
        return self.read(warp, operand, "u32" if bytes_ == 4 else "b16").astype(np.uint64)

    def read_constant(self, warp: Warp, operand: str, to: np.dtype) -> np.ndarray:
        if operand == "%tid.x":
            return (np.arange(32) + 32 * warp.number).astype(to)
        if operand in self.special:
            return to.type(self.special[operand])
        if operand.startswith("0f"):
            return np.array([int(operand[2:], 16)], np.uint32).view(np.float32).astype(to if to.kind == "f" else np.float32).view(to)[0]
        if operand == "attn_shared":
            return to.type(SHARED)
        if operand in self.kernel.parameters:
            return to.type(PARAMETERS + self.kernel.parameters.index(operand))
        if operand in warp.loading:
            raise RuntimeError(f"{operand} is read before tcgen05.wait::ld")
        if operand.startswith("%") or operand == "p":
            raise RuntimeError(f"{operand} is read before it is written")
        return np.array([int(operand.rstrip("U"), 0) & (2 ** (8 * to.itemsize) - 1)], f"u{to.itemsize}").view(to)[0]

    def write(self, warp: Warp, operand: str, value: np.ndarray, lanes: np.ndarray) -> None:
        if operand == "_":
            return
        if operand.startswith("{"):
            bits = value.dtype.itemsize * 4
            words = value.view(f"u{value.dtype.itemsize}")
            for number, part in enumerate(operand.strip("{}").split(",")):
                half = (words >> words.dtype.type(bits * number)) & words.dtype.type(2**bits - 1)
                self.write(warp, part.strip(), half.astype(f"u{bits // 8}"), lanes)
            return
        if value.shape != (32,):
            value = np.broadcast_to(value, 32)
        value = value if value.dtype == np.bool_ else value.view(f"u{value.dtype.itemsize}")
        old = warp.registers.get(operand)
        if lanes.all() or old is None:
            warp.registers[operand] = value.copy()
        else:
            warp.registers[operand] = np.where(lanes, value, old)

    def read_one(self, warp: Warp, operand: str, type_: str, lanes: np.ndarray) -> int:
        values = self.read(warp, operand, type_)[lanes]
        if (values != values[0]).any():
            raise RuntimeError(f"expected one {operand} for all lanes")
        return int(values[0])

    def read_addresses(self, warp: Warp, operand: str) -> np.ndarray:
        base, _, offset = operand.strip("[]").partition("+")
        # Offsets may be negative.
        return self.read(warp, base.strip(), "u64") + np.int64(int(offset or 0)).astype(np.uint64)

    # ---- instructions with a family of their own

    def do_mov(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        if warp.loading and any(part.strip() in warp.loading for part in i.operands[1].strip("{}").split(",")):
            self.move_loading(warp, i, lanes)
            return
        self.write(warp, i.operands[0], self.read(warp, i.operands[1], i.name.split(".")[1]), lanes)

    def move_loading(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        """What tcgen05.ld fills keeps waiting in other registers: LLVM pairs them in front of the wait, which ptxas respects."""
        registers, moved = warp.registers, cast(Dict[str, np.ndarray], {})
        warp.registers = collections.ChainMap(moved, warp.loading, registers)
        self.write(warp, i.operands[0], self.read(warp, i.operands[1], i.name.split(".")[1]), lanes)
        warp.registers = registers
        warp.loading.update(moved)

    def do_cvta(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        self.write(warp, i.operands[0], self.read(warp, i.operands[1], "u64"), lanes)

    def do_ld(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        parts = i.name.split(".")
        type_ = np.dtype(TYPES[parts[-1]])
        if parts[1] == "param":
            value = self.arguments[i.operands[1].strip("[]")]
            self.write(warp, i.operands[0], np.full(32, value, np.int64).astype(f"u{type_.itemsize}"), lanes)
            return
        bytes_, at = self.find_bytes(warp, i.operands[1], parts[1], lanes)
        words = bytes_[: bytes_.size // type_.itemsize * type_.itemsize].view(f"u{type_.itemsize}")
        for number, register in enumerate(i.operands[0].strip("{}").split(",")):
            value = np.zeros(32, words.dtype)
            value[lanes] = words[at // type_.itemsize + number]
            # A wider register has the sign of what has one.
            self.write(warp, register.strip(), value.view(type_).astype(np.int64) if type_.kind == "i" else value, lanes)

    def do_st(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        parts = i.name.split(".")
        type_ = np.dtype(TYPES[parts[-1]])
        bytes_, at = self.find_bytes(warp, i.operands[0], parts[1], lanes)
        words = bytes_[: bytes_.size // type_.itemsize * type_.itemsize].view(f"u{type_.itemsize}")
        for number, register in enumerate(i.operands[1].strip("{}").split(",")):
            if parts[1] == "shared":
                self.note_written(warp, (at + number * type_.itemsize)[:, None] + np.arange(type_.itemsize))
            words[at // type_.itemsize + number] = self.read(warp, register.strip(), parts[-1])[lanes].view(words.dtype)

    def note_written(self, warp: Warp, where: np.ndarray) -> None:
        """By threads, into shared memory."""
        self.unfenced[where] = True
        if self.tensor:
            self.tensor.check_written(warp.number, where)

    def find_bytes(self, warp: Warp, operand: str, space: str, lanes: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        addresses = self.read_addresses(warp, operand)[lanes]
        if space == "shared":
            return self.shared, addresses.astype(np.int64)
        return self.memory.find(addresses)

    def do_shfl(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        if not lanes.all():
            raise RuntimeError("expected all lanes at a shuffle")
        value, by = self.read(warp, i.operands[1], "b32"), self.read(warp, i.operands[2], "u32").astype(np.int64)
        # Of an index, the bits outside of the lane's segment count.
        segment = int(i.operands[3], 0) >> 8 & 31
        source = np.arange(32) & segment | by & 31 & ~segment if ".idx" in i.name else np.arange(32) ^ by
        self.write(warp, i.operands[0].split("|")[0], value[source], lanes)

    def do_vote(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        if not i.name.startswith("vote.sync.any") or not lanes.all():
            raise NotImplementedError(i.text)
        self.write(warp, i.operands[0], np.full(32, self.read(warp, i.operands[1], "pred").any()), lanes)

    def do_elect(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        register, predicate = i.operands[0].split("|")
        first = int(np.argmax(lanes))
        self.write(warp, register, np.full(32, first, np.uint32), lanes)
        self.write(warp, predicate, np.arange(32) == first, lanes)

    def do_nothing(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        pass

    do_setmaxnreg = do_griddepcontrol = do_prefetch = do_nothing

    def do_fence(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        if i.name.startswith("fence.proxy.async"):
            self.unfenced[:] = False

    # ---- meetings

    def do_bar(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> bool:
        """bar.red also tells all threads whether the predicates of any or all of them hold."""
        if ".warp." in i.name:
            return True
        is_vote = ".red." in i.name
        name, *counts = i.operands[1:-1] if is_vote else i.operands
        if is_vote:
            self.votes.append((warp, i.operands[0], lanes, self.read(warp, i.operands[-1], "pred")[lanes]))
        # Warpgroups of a role may have a barrier each, whose number is then in a register.
        name = str(self.read_one(warp, name, "u32", lanes))
        if self.meet(warp, name, int(counts[0]) // 32 if counts else len(self.warps)):
            self.count_votes(all if ".and." in i.name else any)
        return False

    def meet(self, warp: Warp, name: str, count: int) -> bool:
        """Whether the warp is the last of so many. It has its next turn when all are there."""
        there, generation = self.meetings.get(name, (set(), 0))
        there = there | {warp.number}
        warp.waits_for = (name, generation)
        is_last = len(there) == count
        self.meetings[name] = (set(), generation + 1) if is_last else (there, generation)
        if is_last and self.tensor:
            self.tensor.order.meet(there)
        self.events += 1
        return is_last

    def count_votes(self, decide: Callable[[Iterable[bool]], bool]) -> None:
        holds = decide(bool(vote) for *_, votes in self.votes for vote in votes)
        for warp, register, lanes, _ in self.votes:
            self.write(warp, register, np.full(32, holds), lanes)
        self.votes = []

    def has_met(self, warp: Warp) -> bool:
        name, generation = warp.waits_for  # type: ignore[misc]
        return self.meetings[name][1] != generation

    def find_barrier(self, warp: Warp, operand: str, lanes: np.ndarray) -> Barrier:
        address = int(self.read_addresses(warp, operand)[lanes][0])
        if address not in self.barriers:
            raise RuntimeError(f"expected an address of a barrier, got {address - SHARED} in shared memory")
        return self.barriers[address]

    def do_mbarrier(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> Optional[bool]:
        kind = i.name.split(".")[1]
        if kind == "init":
            address = int(self.read_addresses(warp, i.operands[0])[lanes][0])
            self.barriers[address] = Barrier(self.read_one(warp, i.operands[1], "u32", lanes), len(self.barriers))
            return None
        if kind == "try_wait":
            barrier = self.find_barrier(warp, i.operands[1], lanes)
            ended = barrier.has_ended(self.read_one(warp, i.operands[2], "u32", lanes))
            if ended and self.tensor:
                self.tensor.order.learn(warp.number, barrier)
            self.write(warp, i.operands[0], np.full(32, ended), lanes)
            return ended
        barrier = self.find_barrier(warp, i.operands[1], lanes)
        announced = self.read_one(warp, i.operands[2], "u32", lanes) if "expect_tx" in i.name else 0
        told = self.tell(warp)
        for _ in range(int(lanes.sum())):
            barrier.arrive(announced, told)
        self.events += 1
        return None

    def tell(self, warp: Warp) -> Optional[np.ndarray]:
        return self.tensor.order.tell(warp.number) if self.tensor else None

    # ---- copies and products

    def start(self, land: Callable[[], None]) -> Copy:
        """Something that ends when it likes."""
        copy = Copy(self.random.randint(1, 40), land)
        self.copies.append(copy)
        return copy

    def do_cp(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        if i.name.startswith("cp.reduce.async.bulk.global"):
            self.reduce(warp, i, lanes)
        elif i.name.startswith("cp.async.bulk.wait_group"):
            if i.operands[0] != "0":
                raise NotImplementedError(i.text)
            self.add_sums(warp)
        elif i.name.startswith("cp.async.mbarrier.arrive.noinc"):
            barrier = self.find_barrier(warp, i.operands[0], lanes)
            self.arrivals.append((barrier, int(lanes.sum()), list(warp.pieces), self.tell(warp)))
        elif i.name in ("cp.async.cg.shared.global", "cp.async.ca.shared.global"):
            self.copy_pieces(warp, i, lanes)
        elif i.name == "cp.async.wait_group":
            if i.operands[0] != "0":
                raise NotImplementedError(i.text)
            self.land_pieces(warp)
        elif i.name == "cp.async.commit_group":
            pass
        elif not i.name.startswith("cp.async.bulk.commit_group"):
            self.copy_box(warp, i, lanes)

    def copy_pieces(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        """16 or 4 bytes of each lane, of which so many come from memory, and the others are zeros."""
        size = int(i.operands[2])
        to = self.read_addresses(warp, i.operands[0])[lanes].astype(np.int64)
        bytes_, at = self.memory.find(self.read_addresses(warp, i.operands[1])[lanes])
        counts = self.read(warp, i.operands[3], "u32")[lanes] if len(i.operands) > 3 else np.full(len(to), size)
        if (at < 0).any() or (at + size > bytes_.size).any() or (at % size).any() or (to % size).any():
            raise RuntimeError(f"expected pieces of {size} bytes in a tensor of {bytes_.size} bytes, got {at} to {to}")
        every = np.arange(size)
        where = to[:, None] + every
        data = np.where(every < counts[:, None], bytes_[at[:, None] + every], 0).astype(np.uint8)

        def land() -> None:
            warp.pieces.remove(copy)
            self.shared[where] = data
            self.unfenced[where] = True

        # Until it lands, nothing is there that could be read instead.
        self.note_written(warp, where)
        self.shared[where] = 0xFF
        copy = self.start(land)
        warp.pieces.append(copy)

    def land_pieces(self, warp: Warp) -> None:
        for piece in list(warp.pieces):
            self.copies.remove(piece)
            piece.land()
        self.events += 1

    def arrive_landed(self) -> None:
        waiting, self.arrivals = self.arrivals, []
        for barrier, count, pieces, told in waiting:
            if any(piece.rounds > 0 for piece in pieces):
                self.arrivals.append((barrier, count, pieces, told))
                continue
            for _ in range(count):
                barrier.arrive(told=told)
            self.events += 1

    def reduce(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        """Adds to memory what stands in shared memory when somebody waits until it is read."""
        if not i.name.endswith("add.f32") or lanes.sum() != 1:
            raise NotImplementedError(i.name)
        bytes_, at = self.memory.find(self.read_addresses(warp, i.operands[0])[lanes])
        source = int(self.read_addresses(warp, i.operands[1])[lanes][0]) // 4
        count = self.read_one(warp, i.operands[2], "u32", lanes) // 4

        def add() -> None:
            bytes_.view(np.float32)[int(at[0]) // 4 :][:count] += self.shared.view(np.float32)[source : source + count]

        warp.sums.append(add)

    @staticmethod
    def add_sums(warp: Warp) -> None:
        for add in warp.sums:
            add()
        warp.sums = []

    def copy_box(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        if not i.name.startswith("cp.async.bulk.tensor") or "mbarrier::complete_tx" not in i.name or lanes.sum() != 1:
            raise NotImplementedError(i.name)
        to = int(self.read_addresses(warp, i.operands[0])[lanes][0])
        map_name, coordinates = i.operands[1].strip("[]").split(",", 1)
        number = self.read_one(warp, map_name.strip(), "u64", lanes) - PARAMETERS
        map_: TensorMap = self.arguments[self.kernel.parameters[number]]  # type: ignore[assignment]
        at = [self.read_one(warp, c.strip(), "s32", lanes) for c in coordinates.strip(" {}").split(",")]
        barrier = self.find_barrier(warp, i.operands[2], lanes)
        box = map_.read(at)

        def land() -> None:
            async_units.write_box(self.shared, to, box, map_.swizzle)
            self.unfenced[to : to + box.nbytes] = False
            barrier.complete(box.nbytes)

        if self.tensor:
            self.tensor.check_written(warp.number, np.arange(to, to + box.nbytes))
        self.brought[to : to + box.nbytes] = len(self.boxes)
        self.boxes.append((barrier.number, barrier.ended + 1))
        self.start(land)

    def do_tcgen05(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        assert self.tensor
        self.tensor.execute(warp, i, lanes)
        self.events += 1

    def do_wgmma(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> Optional[bool]:
        kind = i.name.split(".")[1]
        if not lanes.all():
            raise RuntimeError("expected all lanes at a product")
        if kind == "mma_async":
            warp.open.append(self.make_product(warp, i))
        elif kind == "commit_group":
            warp.groups.append(warp.open)
            warp.open = []
            if self.random.random() < 0.5:
                self.finish(warp, 0)
        elif kind == "wait_group":
            self.finish(warp, int(i.operands[0]))
        if kind not in ("fence", "wait_group"):
            return None
        self.meet(warp, f"warpgroup {warp.number // 4}", 4)
        return False

    def find_matrices(self, warp: Warp, i: Instruction, lanes: np.ndarray, registers: str, rows: str) -> Tuple[List[str], np.ndarray]:
        """The registers that ldmatrix or stmatrix names, one a matrix, and the addresses of rows that lanes have."""
        kind = i.name.partition(".")[0]
        if not lanes.all() or not i.name.startswith(f"{kind}.sync.aligned.m8n8.x") or not i.name.endswith("shared.b16"):
            raise NotImplementedError(i.text)
        names = registers.strip("{}").split(",")
        addresses = self.read_addresses(warp, rows).astype(np.int64)
        if (addresses[: 8 * len(names)] % 16).any():
            raise RuntimeError("expected rows of matrices at multiples of 16 bytes")
        return names, addresses

    def do_ldmatrix(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        """8 x 8 matrices of 16 bits: each lane has the address of a row, and afterwards two neighbours of a row or a column."""
        registers, addresses = self.find_matrices(warp, i, lanes, i.operands[0], i.operands[1])
        words, lane = self.shared.view(np.uint16), np.arange(32)
        for number, register in enumerate(registers):
            rows = words[addresses[8 * number : 8 * number + 8, None] // 2 + np.arange(8)]
            rows = (rows.T if ".trans." in i.name else rows).astype(np.uint32)
            low, high = rows[lane // 4, lane % 4 * 2], rows[lane // 4, lane % 4 * 2 + 1]
            self.write(warp, register.strip(), low | high << np.uint32(16), lanes)

    def do_stmatrix(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        """The inverse of ldmatrix."""
        if ".trans." in i.name:
            raise NotImplementedError(i.text)
        registers, addresses = self.find_matrices(warp, i, lanes, i.operands[1], i.operands[0])
        words, lane = self.shared.view(np.uint32), np.arange(32)
        for number, register in enumerate(registers):
            at = addresses[8 * number + lane // 4] + lane % 4 * 4
            self.note_written(warp, at[:, None] + np.arange(4))
            words[at // 4] = self.read(warp, register.strip(), "b32")

    def do_prmt(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        low, high = (self.read(warp, operand, "b32") for operand in i.operands[1:3])
        self.write(warp, i.operands[0], narrow.permute(low, high, self.read_one(warp, i.operands[3], "u32", lanes)), lanes)

    def do_mma(self, warp: Warp, i: Instruction, lanes: np.ndarray) -> None:
        if not lanes.all() or not i.name.endswith("m16n8k16.row.col.f32.bf16.bf16.f32"):
            raise NotImplementedError(i.text)
        to, a, b, c = ([r.strip() for r in operand.strip("{}").split(",")] for operand in i.operands)
        left = async_units.gather_rows([self.read(warp, r, "b32") for r in a])
        product = left @ async_units.gather_columns([self.read(warp, r, "b32") for r in b])
        for number, (register, added) in enumerate(zip(to, c)):
            value = product[async_units.locate(number)] + self.read(warp, added, "f32")
            self.write(warp, register, value.astype(np.float32), lanes)

    @staticmethod
    def finish(warp: Warp, pending: int) -> None:
        while len(warp.groups) > pending:
            for product in warp.groups.pop(0):
                product()

    def make_product(self, warp: Warp, i: Instruction) -> Callable[[], None]:
        columns = int(re.search(r"m64n(\d+)k", i.name).group(1))  # type: ignore[union-attr]
        *_, left_kind, right_kind = i.name.split(".")
        is_narrow = left_kind in narrow.TABLES and right_kind in narrow.TABLES
        if not is_narrow and (left_kind, right_kind) != ("bf16", "bf16"):
            raise NotImplementedError(i.name)
        registers = [r.strip() for r in i.operands[0].strip("{}").split(",")]
        in_registers = i.operands[1].startswith("{")
        adds = i.operands[3] == "1" or bool(self.read(warp, i.operands[3], "pred")[0])
        rhs_rows_are_k = i.operands[-1] == "1"
        everyone = np.ones(32, bool)
        rhs = self.read_one(warp, i.operands[2], "u64", everyone)
        lhs = None if in_registers else self.read_one(warp, i.operands[1], "u64", everyone)
        first_row = warp.number % 4 * 16

        def multiply() -> None:
            for descriptor in [rhs] if lhs is None else [rhs, lhs]:
                if self.unfenced[(descriptor & 0x3FFF) << 4]:
                    raise RuntimeError("expected a fence between what threads wrote and a product of it")
            parts = [self.read(warp, r.strip(), "b32") for r in i.operands[1].strip("{}").split(",")] if lhs is None else []
            if is_narrow:
                a = narrow.gather_rows(parts, left_kind) if lhs is None else narrow.read_operand(self.shared, lhs, 64, left_kind)
                a = a if lhs is None else a[first_row : first_row + 16]
            elif lhs is None:
                a = async_units.gather_rows(parts)
            else:
                a = async_units.read_operand(self.shared, lhs, 64, i.operands[-2] == "1")[first_row : first_row + 16]
            if is_narrow:
                b = narrow.read_operand(self.shared, rhs, columns, right_kind)
            else:
                b = async_units.read_operand(self.shared, rhs, columns, rhs_rows_are_k)
            product = a @ b.T
            for number, register in enumerate(registers):
                value = product[async_units.locate(number)]
                value = value + self.read(warp, register, "f32") if adds else value
                self.write(warp, register, value.astype(np.float32), everyone)

        return multiply
