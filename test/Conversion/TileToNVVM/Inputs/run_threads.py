"""Runs the threads of one block of a kernel without branches, in the LLVM dialect, and compares what it stores.

    attn-opt KERNEL --convert-tile-to-nvvm | run_threads.py EXPECTED COLUMNS

The kernel has a source and a destination of 64 x COLUMNS numbers of 32 bits. The first is random; EXPECTED names what the
other must hold. All threads are at one instruction at a time, so that lanes exchange what they have.
"""

import re
import sys
from typing import Callable, Dict

import numpy as np

THREADS, ROWS = 128, 64
INSTRUCTION = re.compile(r"\s*(?:(%\d+) = )?(?:llvm\.|nvvm\.)([\w.]+)(.*)")
INTEGERS = {"i1": 1, "i32": 32, "i64": 64}
BINARY: Dict[str, Callable] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshr": np.right_shift,
    "shl": np.left_shift,
    "udiv": np.floor_divide,
    "urem": np.remainder,
    "fadd": np.add,
    "fmul": np.multiply,
}
COMPARE = {"eq": np.equal, "ne": np.not_equal, "ult": np.less, "slt": np.less, "uge": np.greater_equal}


def sum_diagonals(tile: np.ndarray) -> np.ndarray:
    """The definition of tile.sum_diagonals."""
    sums = np.zeros_like(tile)
    for (row, column), value in np.ndenumerate(tile):
        steps = min(row % 16, column)
        sums[row - steps, column - steps] += value
    return sums


EXPECTED = {"sum_diagonals": sum_diagonals}


class Block:
    """The values of all threads: arrays with one entry for each thread, vectors with one more axis."""

    def __init__(self, source: np.ndarray):
        self.memory = np.concatenate([source.ravel(), np.full(source.size, np.nan)])
        # Addresses are bytes.
        self.values: Dict[str, np.ndarray] = {
            "%arg0": np.zeros(THREADS, int),
            "%arg1": np.full(THREADS, 4 * source.size),
        }

    def run(self, name: str, rest: str) -> np.ndarray:
        operands = [self.values[x] for x in re.findall(r"%\w+", rest.split(":")[0]) if x in self.values]
        if name == "mlir.constant":
            return np.full(THREADS, float(rest[1:].split()[0]) if "f32" in rest else int(rest[1:].split()[0]))
        if name == "mlir.poison":
            return np.zeros((THREADS, 2))
        if name == "read.ptx.sreg.tid.x":
            return np.arange(THREADS)
        if name in BINARY:
            return BINARY[name](*operands)
        if name in ("sext", "zext"):
            return operands[0]
        if name == "icmp":
            return COMPARE[re.search(r'"(\w+)"', rest).group(1)](*operands)
        if name == "select":
            return np.where(*operands)
        if name == "getelementptr":
            step = operands[1] if len(operands) > 1 else int(re.search(r"\[(-?\d+)\]", rest).group(1))
            return operands[0] + step * (1 if rest.endswith("i8") else 4)
        if name == "extractelement":
            return operands[0][np.arange(THREADS), operands[1]]
        if name == "insertelement":
            value, vector, index = operands
            vector = vector.copy()
            vector[np.arange(THREADS), index] = value
            return vector
        if name == "load":
            return self.memory[operands[0][:, None] // 4 + np.arange(2)]
        if name == "shfl.sync":
            mask, value, lane, clamp = operands
            assert (mask == -1).all() and (clamp == 31).all()
            own = np.arange(THREADS) % 32
            other = lane if " idx " in rest else own ^ lane
            return value[np.where(other < 32, np.arange(THREADS) - own + other, np.arange(THREADS))]
        raise ValueError(f"expected an instruction of straight code, got {name}{rest}")

    def execute(self, line: str):
        instruction = INSTRUCTION.match(line)
        if not instruction or instruction.group(2) in ("mlir.global", "func", "return"):
            return
        result, name, rest = instruction.groups()
        if name == "store":
            value, pointer = (self.values[x] for x in re.findall(r"%\w+", rest))
            self.memory[pointer[:, None] // 4 + np.arange(2)] = value
        else:
            self.values[result] = self.run(name, rest)


def main() -> int:
    name, columns = sys.argv[1], int(sys.argv[2])
    source = np.random.default_rng().standard_normal((ROWS, columns))
    block = Block(source)
    for line in sys.stdin:
        block.execute(line)
    stored = block.memory[source.size :].reshape(source.shape)
    expected = EXPECTED[name](source)
    if not np.allclose(stored, expected, atol=1e-9):
        print(f"{name}: expected\n{expected}\ngot\n{stored}")
        return 1
    print(f"{name}: {np.count_nonzero(stored)} of {stored.size} elements are no zeros")
    return 0


if __name__ == "__main__":
    sys.exit(main())
