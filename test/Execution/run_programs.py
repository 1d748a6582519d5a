#!/usr/bin/env python3
"""Programs that are no attention, on this CPU: rooms 5 to 8 derive a kernel from any program of tiles.

    run_programs.py build/dev/bin                             # those of the list below
    run_programs.py build/dev/bin --case transposed-lhs,while # some of them

They stand in test/Transforms/Tile/Programs, whose tests simulate them. Here their PTX is executed (ptx/block.py), and what it
stores is compared with f64 that rounds where the program does. Lengths end within tiles.
"""

import argparse
import fnmatch
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import numpy as np
from run_ptx import HERE, from_bf16, get_error, run_kernel, to_bf16

Arrays = List[np.ndarray]

# Sums in f32 differ in their last bits, and now and then a value is rounded the other way.
BOUND = 2e-2
PROGRAM_FOLDER = HERE.parent / "Transforms" / "Tile" / "Programs"


def rounded(x: np.ndarray) -> np.ndarray:
    return from_bf16(to_bf16(x.astype(np.float32))).astype(np.float64)


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def take(x: np.ndarray, first: int, count: int) -> np.ndarray:
    """Rows of x; those outside are zero."""
    rows = np.arange(first, first + count)
    inside = (rows >= 0) & (rows < x.shape[0])
    return np.where(inside[:, None], x[np.clip(rows, 0, x.shape[0] - 1)], 0.0)


def chain_of_three(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> Arrays:
    output = np.zeros((a.shape[0], 64))
    for i in range(0, b.shape[0], 64):
        inner = rounded(relu(a @ take(b, i, 64).T))
        output += rounded(relu(inner @ take(c, i, 64))) @ d
    return [output]


def guarded_lhs(a: np.ndarray, b: np.ndarray) -> Arrays:
    squares = rounded(a * a)
    return [sum(squares[:, i : i + 64] @ b[i : i + 64] for i in range(0, b.shape[0], 128))]


def sum_and_maxima(a: np.ndarray, b: np.ndarray, w: np.ndarray) -> Arrays:
    sums, largest = np.zeros((a.shape[0], 64)), np.full(a.shape[0], -1e30)
    for i in range(0, b.shape[0], 32):
        sums += a[:, i : i + 32] @ b[i : i + 32]
        largest = np.maximum(largest, sums.max(axis=1))
    return [rounded(sums) @ w, largest]


def two_loops_one_tensor(a: np.ndarray, b: np.ndarray) -> Arrays:
    n = b.shape[0]
    r = sum(a @ take(b, i, 64).T for i in range(0, n, 64))
    for j in range(0, n, 64):
        r = rounded(r) @ take(b, n - 64 - j, 64)
    return [r]


def sum_of_scores(q: np.ndarray, k: np.ndarray) -> Arrays:
    return [sum(q @ take(k, i, 64).T for i in range(0, k.shape[0], 64))]


# Of each program: the shapes of its inputs and of its outputs, and what it computes. Outputs are f32.
PROGRAMS: Dict[str, Tuple[List[Tuple[int, ...]], List[Tuple[int, ...]], Callable[..., Arrays]]] = {
    "chain-of-three": ([(200, 64), (150, 64), (150, 64), (64, 64)], [(200, 64)], chain_of_three),
    "condition": ([(200, 64), (64, 64)], [(200, 64)], lambda q, k: [q @ k.T]),
    "guarded-lhs": ([(150, 280), (280, 64)], [(150, 64)], guarded_lhs),
    "norm-then-product": (
        [(200, 64), (64, 64)],
        [(200, 64)],
        lambda x, w: [rounded(x / np.sqrt((x * x).sum(axis=1, keepdims=True))) @ w],
    ),
    "three-products": (
        [(150, 64), (130, 64), (130, 64), (150, 64)],
        [(150, 64)],
        lambda q, k, v, do: [rounded(2.0 ** (q @ k.T) * (do @ v.T)) @ k],
    ),
    "persistent": ([(1000, 64), (130, 64)], [(1000, 64)], sum_of_scores),
    "sum-and-maxima": ([(100, 152), (152, 64), (64, 64)], [(100, 64), (100,)], sum_and_maxima),
    "transposed-lhs": ([(150, 200), (150, 64)], [(200, 64)], lambda a, b: [a.T @ b]),
    "transposed": ([(100, 64), (128, 64)], [(100, 64)], lambda q, k: [rounded(k @ q.T).T @ k]),
    "two-loops-one-tensor": ([(200, 64), (150, 64)], [(200, 64)], two_loops_one_tensor),
    "two-products-one-sum": (
        [(200, 152), (152, 64), (200, 152), (152, 64)],
        [(200, 64)],
        lambda a, b, c, d: [a @ b + c @ d],
    ),
    "while": ([(100, 64), (150, 64)], [(100, 64)], sum_of_scores),
}


def check(o: argparse.Namespace, name: str) -> bool:
    inputs, outputs, define = PROGRAMS[name]
    path = PROGRAM_FOLDER / f"{name}.mlir"
    rng = np.random.default_rng(o.seed)
    # Small enough for powers of two, and for products of three.
    given = [to_bf16(0.3 * rng.standard_normal(shape).astype(np.float32)) for shape in inputs]
    found = [np.full(shape, np.nan, np.float32) for shape in outputs]
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder, "kernel")
        passes = ["--tile-to-async", "--async-to-thread", f"--emit-ptx=ptx={to}.ptx plan={to}.json", "-o", "/dev/null"]
        subprocess.run([str(o.bin / "attn-opt"), str(path), *passes], check=True)
        text, plan = Path(f"{to}.ptx").read_text(), json.loads(Path(f"{to}.json").read_text())
    began = time.perf_counter()
    # Rows that do not exist are not stored, whatever they are.
    with np.errstate(all="ignore"):
        for kernel in plan["kernels"]:
            run_kernel(text, kernel, [*given, *found], o.seed)
    exact = define(*(from_bf16(x).astype(np.float64) for x in given))
    worst = max(map(get_error, found, exact))
    print(f"{name:24} {worst:.1e} {time.perf_counter() - began:5.1f} s{'' if worst <= BOUND else '  WRONG'}", flush=True)
    return worst <= BOUND


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, help="the folder of attn-opt")
    parser.add_argument("--case", default="*", help="patterns of names, with commas between")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of inputs and delays (default: another each time)")
    o = parser.parse_args()
    chosen = [name for name in PROGRAMS if any(fnmatch.fnmatch(name, p) for p in o.case.split(","))]
    if not chosen:
        print(f"--case: expected a pattern of one of {', '.join(PROGRAMS)}, got {o.case}")
        return 1
    print(f"seed {o.seed}")
    wrong = sum(not check(o, name) for name in chosen)
    print(f"{len(chosen)} programs, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
