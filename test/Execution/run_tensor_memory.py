#!/usr/bin/env python3
"""Kernels of sm_100a by hand on this CPU: tensor memory computes what it should, and mistakes of its use are found.

    run_tensor_memory.py                  # run them
    run_tensor_memory.py --ptxas ptxas    # and assemble each, so that none is only the interpreter's idea of PTX

Operands are laid out here by boxes and by cells, as copies and threads write them. The interpreter reads them by their
descriptors (ptx/descriptors.py). Whoever uses tensor memory without a wait, a barrier or a fence hears of it (ptx/order.py).
"""

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np
from ptx import program
from ptx.async_units import SHARED, TensorMap, write_box
from ptx.block import Block, Memory
from ptx.descriptors import decode_elements, decode_instruction, decode_operand
from tensor_memory_mistakes import (BF16, CONSTANT, INSTRUCTION, INSTRUCTIONS, MISTAKES, MN, MODES, OPERANDS, RIGHT,
                                    SEQUENCES, K, make_word)
from tensor_memory_texts import (FRONT, HEAD, MULTIPLY, PRODUCT, SEQUENCE, WEIGHTS, fill, make_descriptor, name_registers,
                                 store_rows)

# Bytes of the sum that a product takes of each row.
STEP = 32
# What any of the kernels stores.
MOST_WORDS = 1 << 16


@dataclass
class Layout:
    """Where a matrix of (rows, depth) is: by boxes with rows of 128, 64 or 32 bytes, or by cells of 8 rows of 16 bytes."""

    row: int
    transposed: bool

    def write(self, shared: np.ndarray, at: int, codes: np.ndarray) -> Tuple[int, List[int]]:
        """The bits of descriptors, and the byte at which each step of the sum begins; the last is the end."""
        size = codes.itemsize
        lying = codes.T if self.transposed else codes
        together, steps = self.row // size, codes.shape[1] * size // STEP
        if self.row == 16:
            # One empty cell stands behind each row of cells: what is too far is seen.
            cells = lying.reshape(lying.shape[0] // 8, 8, -1, together).transpose(0, 2, 1, 3)
            across, along = (cells.shape[1] + 1) * 128, 128
            for i, j in np.ndindex(cells.shape[:2]):
                write_box(shared, at + i * across + j * along, cells[i, j], 0)
            # The leading offset is along the sum, the stride along rows.
            leading, stride = (across, along) if self.transposed else (along, across)
            begin = [at + step * (STEP // size // 8 * across if self.transposed else 2 * along) for step in range(steps)]
            end = at + cells.shape[0] * across
        else:
            boxes = lying.reshape(lying.shape[0], -1, together).transpose(1, 0, 2)
            box = boxes[0].nbytes
            for number, part in enumerate(boxes):
                write_box(shared, at + number * box, np.ascontiguousarray(part), self.row)
            leading, stride = box if self.transposed else 16, 8 * self.row
            # Along rows, steps lie side by side; of columns, a step has rows of its own.
            begin = [at + (step * STEP // size * self.row if self.transposed else step * STEP // self.row * box + step * STEP % self.row)
                     for step in range(steps)]
            end = at + boxes.nbytes
        return MODES[self.row] << 61 | CONSTANT | stride >> 4 << 32 | leading >> 4 << 16, [*begin, -(-end // 1024) * 1024]


def make_shared() -> np.ndarray:
    return np.full(SHARED + FRONT + 96 * 1024, 0xFF, np.uint8)


def run(text: str, shared: np.ndarray, words: int, given: Optional[np.ndarray] = None, seed: int = 0) -> np.ndarray:
    """What the kernel stores."""
    memory = Memory()
    out = np.full(words, 0x7FFFFFFF, np.uint32)
    rows = np.zeros(1, np.uint32) if given is None else given
    box = TensorMap(np.zeros((8, 64), np.uint16), (64, 8), (1, 0), 128)
    kernel, = program.parse(text).values()
    arguments = {"out": memory.add(out), "given": memory.add(rows), "map": box}
    threads = int(re.search(r"\.reqntid (\d+)", text).group(1))  # type: ignore[union-attr]
    block = Block(kernel, arguments, memory, (0, 0, 0), (1, 1, 1), threads, shared.size - SHARED, seed)
    block.shared[:] = shared
    block.run()
    return out


@dataclass
class Case:
    """A product: its shape, and layouts of A and B. Without one of A, threads put it into tensor memory."""

    m: int
    n: int
    kinds: Tuple[str, str]
    left: Optional[Layout]
    right: Layout
    depth: int
    sum: str = "f32"
    lane: int = 0
    negated: bool = False

    def make(self, rng: np.random.Generator) -> Tuple[str, np.ndarray, Optional[np.ndarray], np.ndarray]:
        """The kernel, shared memory, what threads are given, and the exact result."""
        codes = [make_codes(rng, (count, self.depth), kind) for count, kind in zip((self.m, self.n), self.kinds)]
        a, b = (decode_elements(code, kind).astype(np.float64) for code, kind in zip(codes, self.kinds))
        shared = make_shared()
        transposed = bool(self.left and self.left.transposed), self.right.transposed
        word = make_word(self.m, self.n, *self.kinds, transposed, self.sum) | self.negated << 13
        kind = "f16" if codes[0].itemsize == 2 else "f8f6f4"
        if self.left is None:
            return self.make_weights(word, kind, shared, codes, a, b)
        left, begin = self.left.write(shared, SHARED + FRONT, codes[0])
        right, others = self.right.write(shared, begin[-1], codes[1])
        lines = [f"	add.s32 %r9, %r5, {self.lane << 16};", "	setp.eq.u32 %p6, %r2, %r2;", "	setp.ne.u32 %p7, %r2, %r2;"]
        for step, (x, y) in enumerate(zip(begin[:-1], others[:-1])):
            lines += [make_descriptor("%rd6", x - SHARED, left), make_descriptor("%rd7", y - SHARED, right),
                      MULTIPLY.format(kind=kind, a="%rd6", word=word, adds="%p6" if step else "%p7")]
        text = PRODUCT.format(name="product", threads=128, multiplier=0, allocated=256, products="\n".join(lines), stores=store_rows(self.n))
        return text, shared, None, -a @ b.T if self.negated else a @ b.T

    def make_weights(self, word: int, kind: str, shared: np.ndarray, codes: List[np.ndarray], a: np.ndarray,
                     b: np.ndarray) -> Tuple[str, np.ndarray, np.ndarray, np.ndarray]:
        """Two products of 128 rows, one after another: the second half of the sum follows the first."""
        right, begin = self.right.write(shared, SHARED + FRONT, codes[1])
        lines = ["	add.s32 %r9, %r5, 32;", "	setp.eq.u32 %p6, %r2, %r2;",
                 make_descriptor("%rd6", begin[0] - SHARED, right), make_descriptor("%rd7", begin[1] - SHARED, right),
                 "	setp.eq.u32 %p7, %r8, 0;", "	selp.b64 %rd7, %rd6, %rd7, %p7;",
                 MULTIPLY.format(kind=kind, a="[%r5]", word=word, adds="%p6")]
        text = WEIGHTS.format(name="weights", threads=160, multiplier=128, allocated=64, products="\n".join(lines),
                              zeros=fill(self.n, 32), stores=store_rows(self.n, 32))
        half = self.depth // 2
        given = np.concatenate([np.ascontiguousarray(codes[0][:, part]).view(np.uint32) for part in (slice(0, half), slice(half, None))])
        return text, shared, given, np.concatenate([1 + a[:, :half] @ b[:, :half].T, 1 + a @ b.T])

    def check(self, seed: int) -> str:
        """What is wrong, or nothing."""
        text, shared, given, exact = self.make(np.random.default_rng(seed))
        words = run(text, shared, 128 * self.n * (1 if self.left else 2), given, seed).reshape(-1, self.n)
        got = words.view(np.float32) if self.sum == "f32" else (words & 0xFFFF).astype(np.uint16).view(np.float16)
        rows = np.arange(exact.shape[0])
        # 64 rows are sixteen of each warp's lanes.
        rows = rows if self.m == 128 else rows // 16 * 32 + rows % 16 + self.lane
        error = np.abs(got[rows] - exact).max() / np.sqrt((exact**2).mean())
        return "" if error < (1e-5 if self.sum == "f32" else 1e-2) else f"error {error:.2e}"


def make_codes(rng: np.random.Generator, shape: Tuple[int, int], kind: str) -> np.ndarray:
    """Numbers of a type, without those that are not finite."""
    if kind in ("f16", "bf16"):
        numbers = rng.standard_normal(shape).astype(np.float32)
        return numbers.astype(np.float16).view(np.uint16) if kind == "f16" else (numbers.view(np.uint32) >> 16).astype(np.uint16)
    return (rng.integers(0, 2, shape) << 7 | rng.integers(0, 0x70, shape)).astype(np.uint8)


F16, E4M3, E5M2 = ("f16", "f16"), ("e4m3", "e4m3"), ("e5m2", "e4m3")
CASES: Dict[str, Case] = {
    "rows of 128 bytes": Case(128, 128, BF16, Layout(128, K), Layout(128, K), 64),
    "rows of 64 bytes": Case(128, 48, BF16, Layout(64, K), Layout(64, K), 64),
    "rows of 32 bytes": Case(128, 32, F16, Layout(32, K), Layout(32, K), 48),
    "cells": Case(128, 32, BF16, Layout(16, K), Layout(16, K), 32),
    "columns of 128 bytes": Case(128, 256, BF16, Layout(128, MN), Layout(128, MN), 32, negated=True),
    "columns of 64 bytes": Case(128, 64, F16, Layout(64, MN), Layout(64, MN), 32),
    "columns of 32 bytes": Case(128, 16, BF16, Layout(32, MN), Layout(32, MN), 32),
    "columns of cells": Case(128, 144, F16, Layout(16, MN), Layout(16, MN), 32),
    "values of attention": Case(128, 64, BF16, Layout(128, K), Layout(128, MN), 64),
    "a sum of f16": Case(128, 16, F16, Layout(64, K), Layout(32, MN), 32, sum="f16"),
    "64 rows": Case(64, 24, BF16, Layout(128, MN), Layout(128, K), 64),
    "64 rows of upper lanes": Case(64, 8, BF16, Layout(128, K), Layout(16, K), 64, lane=16),
    "8 bits": Case(128, 64, E4M3, Layout(128, K), Layout(64, K), 128),
    "8 bits of both types": Case(128, 32, E5M2, Layout(32, MN), Layout(32, MN), 64),
    "8 bits of cells": Case(64, 16, E5M2, Layout(16, MN), Layout(16, MN), 64),
    "weights": Case(128, 32, BF16, None, Layout(64, MN), 32),
    "weights of 8 bits": Case(128, 16, E4M3, None, Layout(32, K), 64),
}


def make_sequence(lines: List[str]) -> str:
    """Of two warps, with a descriptor of B that nobody has filled."""
    operand = make_descriptor("%rd7", FRONT, RIGHT & ~0x3FFF)
    return SEQUENCE.format(name="sequence", threads=64, multiplier=0, allocated=512, operand=operand, lines="\n".join(lines))


# Each thread takes four words.
TAKE = ["	mul.wide.u32 %rd3, %r2, 16;", "	add.s64 %rd3, %rd2, %rd3;", f"	ld.global.v4.b32 {name_registers(4)}, [%rd3];"]


def make_halves() -> str:
    """Words become two columns' halves, and are loaded as columns and as words."""
    lines = [f"	tcgen05.st.sync.aligned.32x32b.x4.unpack::16b.b32 [%r7], {name_registers(4)};", "	tcgen05.wait::st.sync.aligned;"]
    return make_sequence([*TAKE, *lines, store_rows(8), store_rows(4, 0, ".pack::16b")])


def make_pairs() -> str:
    """Arithmetic of two numbers in a register of 64 bits, and the largest of three."""
    lines = ["	mov.b64 %rd9, {%r100, %r101};", "	mov.b64 %rd10, {%r102, %r103};", "	fma.rn.f32x2 %rd11, %rd9, %rd10, %rd9;",
             "	mul.rn.ftz.f32x2 %rd11, %rd11, %rd10;", "	add.rn.f32x2 %rd11, %rd11, %rd9;", "	mov.b64 {%r104, %r105}, %rd11;",
             "	max.f32 %r106, %r100, %r101, %r102;", "	min.f32 %r107, %r101, %r102, %r103;", "	mul.wide.u32 %rd4, %r2, 16;",
             "	add.s64 %rd4, %rd1, %rd4;", f"	st.global.v4.b32 [%rd4], {name_registers(4, 104)};"]
    return make_sequence([*TAKE, *lines])


def check_pairs(seed: int) -> str:
    x = np.random.default_rng(seed).standard_normal((64, 4)).astype(np.float32)
    got = run(make_pairs(), make_shared(), 64 * 4, x.view(np.uint32), seed).view(np.float32).reshape(64, 4)
    low, high = x[:, :2].astype(np.float64), x[:, 2:]
    exact = np.concatenate([(low * high + low) * high + low, x[:, :3].max(1, keepdims=True), x[:, 1:].min(1, keepdims=True)], 1)
    return "" if np.abs(got - exact).max() < 1e-5 else f"got {got} instead of {exact}"


def check_halves(seed: int) -> str:
    given = np.random.default_rng(seed).integers(0, 2**32, (64, 4), np.uint32)
    out = run(make_halves(), make_shared(), 128 * 12, given, seed)
    columns, words = out[: 64 * 8].reshape(64, 8), out[128 * 8 :][: 64 * 4].reshape(64, 4)
    return "" if (columns == given.view(np.uint16)).all() and (words == given).all() else f"got {columns} and {words}"


def find_error(function: Callable[[], object], says: str) -> str:
    """What is wrong with an error that there should be, or nothing. Where none should be, `says` is empty."""
    try:
        function()
    except (RuntimeError, NotImplementedError) as error:
        return "" if says and re.search(says, str(error)) else f"expected '{says}', got '{error}'"
    return f"expected '{says}', got nothing" if says else ""


def make_checks(seed: int) -> Iterator[Tuple[str, Callable[[], str]]]:
    for name, case in CASES.items():
        yield name, lambda case=case: case.check(seed)  # type: ignore[misc]
    yield "halves", lambda: check_halves(seed)
    yield "pairs", lambda: check_pairs(seed)
    for name, mistake in MISTAKES.items():
        text, shared, given, _ = CASES[mistake.case].make(np.random.default_rng(seed))
        yield name, lambda t=mistake.apply(text), s=shared, g=given, e=mistake.says: find_error(  # type: ignore[misc]
            lambda: run(t, s, MOST_WORDS, g, seed), e)
    for name, (lines, says) in SEQUENCES.items():
        yield name, lambda t=make_sequence(lines), e=says: find_error(  # type: ignore[misc]
            lambda: run(t, make_shared(), MOST_WORDS, seed=seed), e)
    for name, (bits, transposed, says) in OPERANDS.items():
        yield f"operand: {name}", lambda b=bits, t=transposed, e=says: find_error(  # type: ignore[misc]
            lambda: decode_operand(RIGHT ^ b).locate(64, 2, t), e)
    for name, (bits, kind, says) in INSTRUCTIONS.items():
        yield f"instruction: {name}", lambda b=bits, k=kind, e=says: find_error(  # type: ignore[misc]
            lambda: decode_instruction(INSTRUCTION ^ b, k), e)


def assemble(ptxas: str) -> str:
    """What the assembler has against the texts, all of them in one module."""
    rng = np.random.default_rng(0)
    texts = [case.make(rng)[0] for case in CASES.values()]
    texts += [make_halves(), make_pairs(), *(make_sequence(lines) for lines, _ in SEQUENCES.values())]
    texts += [mistake.apply(CASES[mistake.case].make(rng)[0]) for mistake in MISTAKES.values()]
    module = HEAD + "".join(re.sub(r"\.entry \w+", f".entry kernel{number}", text) for number, text in enumerate(texts))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.ptx"
        path.write_text(module)
        done = subprocess.run([ptxas, "-arch=sm_100a", str(path), "-o", str(path) + ".cubin"], capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", default="", help="only those whose name contains this")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ptxas", help="assembles all texts, too")
    o = parser.parse_args()
    checks = [check for check in make_checks(o.seed) if o.case in check[0]]
    found = [(name, check()) for name, check in checks]
    if o.ptxas:
        found.append(("assembler", assemble(o.ptxas)))
    for name, wrong in found:
        if wrong:
            print(f"{name}: {wrong}")
    count = sum(bool(wrong) for _, wrong in found)
    print(f"{len(checks)} texts and descriptors, {count} wrong")
    return int(count > 0 or not checks)


if __name__ == "__main__":
    sys.exit(main())
