"""Tensor memory of sm_100a: 128 lanes of 512 columns of 32 bits, and the products whose sums lie in it (tcgen05).

What tcgen05.ld reads is in registers after tcgen05.wait::ld, and what tcgen05.st writes is there after wait::st. A product
reads shared memory when it is asked for, and is an error where the bytes are those of a copy that its warp has not waited
for. It is carried out some time after its commit, in the order in which products were asked for, and before the commit's
barrier hears of it. Columns are NaN until somebody writes them, and an allocation begins at any column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Dict, List, Tuple

import numpy as np

from . import order
from .descriptors import SIZES, SUM_BYTES, Instruction, decode_elements, decode_instruction, decode_operand, read_elements
from .order import COLUMNS, PARTS, Order, Region
from .program import Instruction as Text

if TYPE_CHECKING:
    from .block import Block, Warp

LANES = 128
# Of a quarter: each warp has one, by its number.
WARP_LANES = 32
EVERYONE = np.ones(WARP_LANES, bool)
# Columns are allocated by so many.
UNIT = 32
# Columns of 32 bits of an operand's rows.
OPERAND_COLUMNS = SUM_BYTES // 4
NAN = 0x7FFFFFFF
LOW = np.uint32(0xFFFF)


def get_lanes(region: Region) -> np.ndarray:
    first = np.arange(PARTS)[region.parts] * (LANES // PARTS)
    return (first[:, None] + np.arange(LANES // PARTS)).reshape(-1)


@dataclass(eq=False)
class Product:
    number: int
    add: Callable[[], None]


class TensorMemory:
    def __init__(self, block: "Block") -> None:
        self.block = block
        self.words = np.full((LANES, COLUMNS), NAN, np.uint32)
        # How many columns begin at each that was allocated.
        self.allocated: Dict[int, int] = {}
        self.smallest = COLUMNS
        self.may_allocate = True
        self.order = Order(len(block.warps))
        # Stores of each warp that nobody has waited for.
        self.stores: Dict[int, List[Tuple[Region, np.ndarray]]] = {warp.number: [] for warp in block.warps}
        # Products that have not been carried out, and the last one of each thread.
        self.flight: List[Product] = []
        self.last: Dict[Tuple[int, int], Product] = {}
        # Which sum a cell is a part of: its place, shape and types.
        self.sums = np.zeros((PARTS, COLUMNS), np.int64)
        self.shapes: Dict[Tuple[object, ...], int] = {}
        # Of each warp with products, the last one that reads a byte of shared memory.
        self.operands: Dict[int, np.ndarray] = {}

    def execute(self, warp: "Warp", i: Text, lanes: np.ndarray) -> None:
        handler = HANDLERS.get(re.sub(r"(\.x\d+|\.kind::(f16|f8f6f4)|\.collector::a::\w+)", "", i.name))
        if handler is None:
            raise NotImplementedError(i.name)
        if handler in (TensorMemory.multiply, TensorMemory.commit):
            if lanes.sum() != 1:
                raise RuntimeError(f"expected one thread, got {int(lanes.sum())}")
        elif not lanes.all() and ".sync." in i.name:
            raise RuntimeError(f"expected all lanes of a warp, got {int(lanes.sum())}")
        handler(self, warp, i, lanes)

    def read_address(self, warp: "Warp", operand: str, lanes: np.ndarray) -> int:
        addresses = self.block.read_addresses(warp, operand)[lanes]
        if (addresses != addresses[0]).any():
            raise RuntimeError(f"expected one address for all lanes, got {operand}")
        return int(addresses[0])

    def find_columns(self, first: int, count: int) -> slice:
        if not any(start <= first and first + count <= start + size for start, size in self.allocated.items()):
            raise RuntimeError(f"expected allocated columns, got {first} to {first + count - 1}")
        return slice(first, first + count)

    # ---- allocation

    def allocate(self, warp: "Warp", i: Text, lanes: np.ndarray) -> None:
        count = self.block.read_one(warp, i.operands[1], "u32", lanes)
        if not UNIT <= count <= COLUMNS or count & (count - 1):
            raise RuntimeError(f"expected a power of two of columns from {UNIT} to {COLUMNS}, got {count}")
        if not self.may_allocate:
            raise RuntimeError("expected no allocation after tcgen05.relinquish_alloc_permit")
        if count > self.smallest:
            raise RuntimeError(f"expected no more columns than the {self.smallest} of the allocation before, got {count}")
        taken = np.zeros(COLUMNS, bool)
        for start, size in self.allocated.items():
            taken[start : start + size] = True
        free = [at for at in range(0, COLUMNS - count + 1, UNIT) if not taken[at : at + count].any()]
        if not free:
            raise RuntimeError(f"expected {count} free columns, got allocations of {sorted(self.allocated.values())}")
        # Another block of the multiprocessor may have the columns before.
        first = self.block.random.choice(free)
        self.allocated[first] = self.smallest = count
        self.words[:, first : first + count] = NAN
        self.order.forget(Region(slice(0, PARTS), slice(first, first + count)))
        where = self.read_address(warp, i.operands[0], lanes) + np.arange(4)
        self.check_written(warp.number, where)
        self.block.shared[where] = np.array([first], np.uint32).view(np.uint8)

    def deallocate(self, warp: "Warp", i: Text, lanes: np.ndarray) -> None:
        first, count = (self.block.read_one(warp, operand, "u32", lanes) for operand in i.operands)
        if self.allocated.get(first) != count:
            raise RuntimeError(f"expected an allocation's address and columns, got {first:#x} and {count}")
        # It is no asynchronous operation, which fences are for.
        region = Region(slice(0, PARTS), slice(first, first + count))
        self.order.check(warp.number, region, order.STORES, "gives back", fenced=False)
        del self.allocated[first]

    def relinquish(self, warp: "Warp", i: Text, lanes: np.ndarray) -> None:
        self.may_allocate = False

    def check_end(self) -> None:
        if self.allocated:
            raise RuntimeError(f"expected tcgen05.dealloc of {sum(self.allocated.values())} columns before the kernel ends")

    # ---- registers

    def find_rows(self, warp: "Warp", i: Text, registers: str, address: str) -> Tuple[List[str], bool, Region]:
        """Of tcgen05.ld and st: registers, whether a word has halves of two columns, and the warp's lanes."""
        names = [name.strip() for name in registers.strip("{}").split(",")]
        halves = "pack::16b" in i.name
        if f".x{len(names)}." not in i.name or len(names) & (len(names) - 1) or len(names) > LANES:
            raise NotImplementedError(i.text)
        at = self.read_address(warp, address, EVERYONE)
        quarter = warp.number % 4
        if at >> 16 != quarter * WARP_LANES:
            raise RuntimeError(f"expected lane {quarter * WARP_LANES} of warp {warp.number}, whose quarter begins there, got {at >> 16}")
        columns = self.find_columns(at & 0xFFFF, len(names) * (2 if halves else 1))
        return names, halves, Region(slice(2 * quarter, 2 * quarter + 2), columns)

    def load(self, warp: "Warp", i: Text, lanes: np.ndarray) -> None:
        names, halves, region = self.find_rows(warp, i, *i.operands)
        self.order.check(warp.number, region, order.LOADS, "reads")
        words = self.words[get_lanes(region), region.columns]
        if halves:
            words = (words[:, ::2] & LOW) | words[:, 1::2] << np.uint32(16)
        for number, name in enumerate(names):
            warp.registers.pop(name, None)
            warp.loading[name] = words[:, number].copy()
        self.order.use(warp.number, order.LOAD, region)

    def wait_load(self, warp: "Warp", i: Text, lanes: np.ndarray) -> None:
        warp.registers.update(warp.loading)
        warp.loading.clear()
        self.order.end(warp.number, order.LOAD, order.LOADED)

    def store(self, warp: "Warp", i: Text, lanes: np.ndarray) -> None:
        names, halves, region = self.find_rows(warp, i, i.operands[1], i.operands[0])
        self.order.check(warp.number, region, order.STORES, "writes")
        words = np.stack([self.block.read(warp, name, "b32") for name in names], 1)
        if halves:
            words = np.stack([words & LOW, words >> np.uint32(16)], 2).reshape(WARP_LANES, -1)
        self.stores[warp.number].append((region, words))
        self.order.use(warp.number, order.STORE, region)

    def wait_store(self, warp: "Warp", i: Text, lanes: np.ndarray) -> None:
        for region, words in self.stores[warp.number]:
            self.words[get_lanes(region), region.columns] = words
        self.stores[warp.number] = []
        self.order.end(warp.number, order.STORE, order.STORED)

    def fence_before(self, warp: "Warp", i: Text, lanes: np.ndarray) -> None:
        self.order.fence_before(warp.number)

    def fence_after(self, warp: "Warp", i: Text, lanes: np.ndarray) -> None:
        self.order.fence_after(warp.number)

    # ---- products

    def multiply(self, warp: "Warp", i: Text, lanes: np.ndarray) -> None:
        # Lanes whose sums are left alone are a vector before the predicate, and a scale of the sum stands behind it.
        if len(i.operands) != 5 or i.operands[4].startswith("{"):
            raise NotImplementedError(i.text)
        to, left, right, word, adds = i.operands
        shape = decode_instruction(self.block.read_one(warp, word, "u32", lanes), i.name.split("kind::")[1].split(".")[0])
        accumulates = bool(self.block.read(warp, adds, "pred")[lanes][0])
        sum_ = self.find_sum(warp, self.read_address(warp, to, lanes), shape)
        b = self.read_shared(warp, self.block.read_one(warp, right, "u64", lanes), shape, 1)
        if left.startswith("["):
            rows = self.find_operand(warp, self.read_address(warp, left, lanes), shape, sum_)
            read_a = lambda: decode_words(self.words[get_lanes(rows), rows.columns], shape.kinds[0])  # noqa: E731
        else:
            a = self.read_shared(warp, self.block.read_one(warp, left, "u64", lanes), shape, 0)
            read_a = lambda: a  # noqa: E731
        place = get_lanes(sum_), sum_.columns

        def add() -> None:
            product = read_a() @ b.T
            if shape.negated[0] != shape.negated[1]:
                product = -product
            if accumulates:
                product = product + decode_sum(self.words[place], shape.sum)
            self.words[place] = encode_sum(product, shape.sum)

        self.order.use(warp.number, order.WRITE, sum_)
        self.order.end(warp.number, order.WRITE, order.ISSUED)
        product = Product(self.order.count(warp.number, order.WRITE), add)
        self.flight.append(product)
        self.last[warp.number, int(np.argmax(lanes))] = product

    def find_sum(self, warp: "Warp", address: int, shape: Instruction) -> Region:
        lane, first = address >> 16, address & 0xFFFF
        if lane not in ((0,) if shape.m == LANES else (0, LANES // PARTS)):
            raise RuntimeError(f"expected lane 0, or 16 of a product of 64 rows, got {lane} of one of {shape.m}")
        # 64 rows are the lower or the upper half of each warp's lanes.
        parts = slice(0, PARTS) if shape.m == LANES else slice(lane * PARTS // LANES, PARTS, 2)
        region = Region(parts, self.find_columns(first, shape.n))
        self.order.check(warp.number, region, order.SUMS, "puts a sum in")
        # Products are in order where they add to one sum. Of others it is not said which comes first.
        number = self.shapes.setdefault((address, shape.m, shape.n, shape.sum, SIZES[shape.kinds[0]]), len(self.shapes) + 1)
        if (self.order.find_unfinished(warp.number, region) & (self.sums[parts, region.columns] != number)).any():
            raise RuntimeError("expected a wait for products whose sums have another place or shape in the same columns")
        self.sums[parts, region.columns] = number
        return region

    def find_operand(self, warp: "Warp", address: int, shape: Instruction, sum_: Region) -> Region:
        """Rows of A in tensor memory: in the lanes of the sum, two or four elements a column."""
        if shape.transposed[0]:
            raise RuntimeError("expected rows of A in tensor memory, got a transposed one")
        lanes = np.arange(PARTS)[sum_.parts]
        if address >> 16 != lanes[0] * (LANES // PARTS):
            raise RuntimeError(f"expected A in the lanes of the sum, from {lanes[0] * (LANES // PARTS)} on, got {address >> 16}")
        columns = self.find_columns(address & 0xFFFF, OPERAND_COLUMNS)
        if columns.start < sum_.columns.stop and sum_.columns.start < columns.stop:
            raise RuntimeError(f"expected A outside of the columns of the sum, got {columns.start} to {columns.stop - 1}")
        region = Region(sum_.parts, columns)
        self.order.check(warp.number, region, order.OPERANDS, "multiplies")
        self.order.use(warp.number, order.READ, region)
        return region

    def read_shared(self, warp: "Warp", word: int, shape: Instruction, side: int) -> np.ndarray:
        """Rows of A, or columns of B: (M or N, depth)."""
        kind = shape.kinds[side]
        addresses = decode_operand(word).locate((shape.m, shape.n)[side], SIZES[kind], shape.transposed[side])
        elements = read_elements(self.block.shared, addresses, kind)
        if self.block.unfenced[addresses].any():
            raise RuntimeError("expected a fence between what threads wrote and a product of it")
        for box in np.unique(self.block.brought[addresses]):
            if not self.order.has_landed(warp.number, *self.block.boxes[box]):
                raise RuntimeError("expected a wait for the barrier of a copy that a product reads")
        reads = self.operands.setdefault(warp.number, np.zeros(self.block.shared.size, np.int64))
        for byte in range(SIZES[kind]):
            reads[addresses + byte] = self.order.count(warp.number, order.WRITE) + 1
        return elements

    def check_written(self, warp: int, where: np.ndarray) -> None:
        """Before a warp writes bytes, or asks for a copy to them."""
        for other, reads in self.operands.items():
            if reads[where].max(initial=0) > self.order.carried[warp, order.PLAIN, order.DONE, other]:
                raise RuntimeError(f"writes what a product of warp {other} reads: expected a wait for the barrier of its commit")

    def commit(self, warp: "Warp", i: Text, lanes: np.ndarray) -> None:
        barrier = self.block.find_barrier(warp, i.operands[0], lanes)
        last = self.last.get((warp.number, int(np.argmax(lanes))))
        told = self.order.commit(warp.number, last.number if last else 0)

        def land() -> None:
            while last in self.flight:
                self.flight.pop(0).add()
            barrier.arrive(told=told)

        self.block.start(land)


def decode_words(words: np.ndarray, kind: str) -> np.ndarray:
    """Elements that lie side by side in columns, the first in the lowest bits."""
    codes = np.ascontiguousarray(words).view(np.uint16 if SIZES[kind] == 2 else np.uint8)
    return decode_elements(codes, kind)


def decode_sum(words: np.ndarray, kind: str) -> np.ndarray:
    """A column has one number, of 16 bits in its lower half."""
    return words.view(np.float32) if kind == "f32" else (words & LOW).astype(np.uint16).view(np.float16).astype(np.float32)


def encode_sum(numbers: np.ndarray, kind: str) -> np.ndarray:
    numbers = numbers.astype(np.float32)
    return numbers.view(np.uint32) if kind == "f32" else numbers.astype(np.float16).view(np.uint16).astype(np.uint32)


# Without how many registers, the kind of a product, and how long a row of A should be remembered, which changes no number.
HANDLERS: Dict[str, Callable[[TensorMemory, "Warp", Text, np.ndarray], None]] = {
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32": TensorMemory.allocate,
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32": TensorMemory.deallocate,
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned": TensorMemory.relinquish,
    "tcgen05.ld.sync.aligned.32x32b.b32": TensorMemory.load,
    "tcgen05.ld.sync.aligned.32x32b.pack::16b.b32": TensorMemory.load,
    "tcgen05.st.sync.aligned.32x32b.b32": TensorMemory.store,
    "tcgen05.st.sync.aligned.32x32b.unpack::16b.b32": TensorMemory.store,
    "tcgen05.wait::ld.sync.aligned": TensorMemory.wait_load,
    "tcgen05.wait::st.sync.aligned": TensorMemory.wait_store,
    "tcgen05.fence::before_thread_sync": TensorMemory.fence_before,
    "tcgen05.fence::after_thread_sync": TensorMemory.fence_after,
    "tcgen05.mma.cta_group::1": TensorMemory.multiply,
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64": TensorMemory.commit,
}
