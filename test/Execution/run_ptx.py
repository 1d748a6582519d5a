#!/usr/bin/env python3
"""Runs the PTX of attention on this CPU, warp by warp, and compares with f64: rooms 7 and 8 without a GPU.

    run_ptx.py build/dev/bin                      # the cases below
    run_ptx.py build/dev/bin --case causal-128    # some of them
    run_ptx.py build/dev/bin --drop wgmma.wait    # without such instructions, which it has to find

What the simulator proves of room 6 is not what the device gets. This executes the text (ptx/block.py), with copies and
products as late as they may be, on lengths that end within tiles, forward, in bf16.
"""

import argparse
import fnmatch
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "Python"), str(HERE.parent.parent / "bench" / "gpu")]

import ptx.program  # noqa: E402  (its folder is on the path now)
import reference  # noqa: E402
import revisions  # noqa: E402
from ptx.async_units import TensorMap  # noqa: E402
from ptx.block import Block, Memory  # noqa: E402
from ptx.scalars import from_bf16, to_bf16  # noqa: E402

# Blocks that stay have several tiles each.
MULTIPROCESSORS = 2
# Of bf16, beside the root mean square; four times what is seen, for inputs are fresh.
BOUND = 4e-2
STAYS = "stay=true recompute=true"
# (mask, D, what attn-to-online takes, (B, H, Hkv, M, N)).
CASES: List[Tuple[str, int, str, Tuple[int, ...]]] = [
    ("full", 64, "way=short", (1, 2, 1, 129, 130)),
    ("full", 64, "way=long", (2, 1, 1, 70, 700)),
    ("full", 128, "way=short", (1, 3, 3, 200, 129)),
    ("full", 128, "way=long", (1, 1, 1, 193, 161)),
    ("full", 128, f"{STAYS} slack=0", (1, 2, 2, 200, 100)),
    ("full", 256, "", (1, 1, 1, 129, 161)),
    ("full", 256, f"{STAYS} block-n=80", (1, 3, 1, 130, 81)),
    ("causal", 64, "way=short", (1, 2, 2, 150, 200)),
    ("causal", 128, "", (1, 2, 1, 257, 300)),
    ("causal", 128, STAYS, (1, 2, 1, 200, 150)),
    ("causal", 192, "", (1, 1, 1, 129, 129)),
    ("causal", 256, "", (1, 2, 2, 130, 65)),
    ("softcap", 128, "", (1, 1, 1, 130, 200)),
    ("alibi", 128, "", (1, 2, 1, 129, 260)),
    ("alibi", 128, STAYS, (1, 2, 1, 200, 150)),
    ("relbias", 64, "", (1, 2, 2, 100, 150)),
]


def make_name(mask: str, d: int, schedule: str) -> str:
    return "-".join([mask, str(d), *schedule.replace("=", "-").split()])


def emit(bin_: Path, mask: str, d: int, schedule: str) -> Tuple[str, Dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel")
        command = [str(bin_ / "attn-opt"), "-", *revisions.list_passes(path, schedule)]
        subprocess.run(command, input=revisions.make_source(mask, d), text=True, check=True)
        return Path(f"{path}.ptx").read_text(), json.loads(Path(f"{path}.json").read_text())


def make_arguments(plan: Dict[str, Any], names: List[str], tensors: List[np.ndarray], memory: Memory) -> Dict[str, Any]:
    addresses = [memory.add(tensor) for tensor in tensors]
    arguments: Dict[str, Any] = {}
    for name, parameter in zip(names, plan["parameters"]):
        tensor = tensors[parameter["argument"]]
        kind = parameter["kind"]
        if kind == "tensor_map":
            arguments[name] = TensorMap(tensor, parameter["box"], parameter["dims"])
        elif kind == "pointer":
            arguments[name] = addresses[parameter["argument"]]
        elif kind == "size":
            arguments[name] = tensor.shape[parameter["dim"]]
        elif kind == "stride":
            arguments[name] = tensor.strides[parameter["dim"]] // tensor.itemsize
        else:
            raise NotImplementedError(f"a parameter of kind {kind}")
    return arguments


def count_blocks(factors: List[Dict[str, int]], tensors: List[np.ndarray]) -> int:
    count = 1
    for factor in factors:
        if "multiprocessors" in factor:
            count *= MULTIPROCESSORS * factor["multiprocessors"]
        elif "argument" in factor:
            extent = tensors[factor["argument"]].shape[factor["dim"]] * factor.get("multiplier", 1)
            count *= -(-extent // factor.get("divisor", 1)) * factor.get("unit", 1)
        else:
            count *= factor["constant"]
    return count


def run_kernel(text: str, plan: Dict[str, Any], tensors: List[np.ndarray], seed: int) -> None:
    kernel = ptx.program.parse(text)[plan["name"]]
    memory = Memory()
    arguments = make_arguments(plan, kernel.parameters, tensors, memory)
    grid = [count_blocks(factors, tensors) for factors in plan["grid"]] + [1, 1, 1]
    for z in range(grid[2]):
        for y in range(grid[1]):
            for x in range(grid[0]):
                Block(kernel, arguments, memory, (x, y, z), grid[:3], plan["block"][0], plan["dynamic_shared_bytes"],
                      seed + x).run()


def make_captured(mask: str, rng: np.random.Generator, heads: int, keys: int) -> List[np.ndarray]:
    if mask == "alibi":
        return [rng.uniform(0.01, 0.5, heads).astype(np.float32)]
    if mask == "relbias":
        return [to_bf16(rng.standard_normal((heads, keys)).astype(np.float32))]
    return []


def compute_exactly(mask: str, q: np.ndarray, k: np.ndarray, v: np.ndarray, captured: List[np.ndarray]) -> np.ndarray:
    """Everything but full attention is causal from the last row and key, as its positions are."""
    m, n = q.shape[2], k.shape[2]
    numbers = [x if x.dtype == np.float32 else from_bf16(x) for x in captured]
    scores = {
        "softcap": lambda s, b, h, i, j: 30 * math.tanh(s / 30),
        "alibi": lambda s, b, h, i, j: s - numbers[0][h] * (i + n - m - j),
        "relbias": lambda s, b, h, i, j: s + numbers[0][h, min(max(i + n - m - j, 0), n - 1)],
    }
    causal = None if mask == "full" else "bottom_right"
    return reference.attention(from_bf16(q), from_bf16(k), from_bf16(v), causal=causal, score=scores.get(mask))[0]


def drop(text: str, prefix: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not (prefix and line.strip().startswith(prefix)))


def check(o: argparse.Namespace, mask: str, d: int, schedule: str, shape: Tuple[int, ...]) -> bool:
    b, h, hkv, m, n = shape
    rng = np.random.default_rng(o.seed)
    q, k, v = (to_bf16(rng.standard_normal((b, heads, length, d)).astype(np.float32))
               for heads, length in ((h, m), (hkv, n), (hkv, n)))
    out = np.full(q.shape, 0x7FFF, np.uint16)
    captured = make_captured(mask, rng, h, n)
    text, plan = emit(o.bin, mask, d, schedule)
    began = time.perf_counter()
    try:
        with np.errstate(all="ignore"):
            for kernel in plan["kernels"]:
                run_kernel(drop(text, o.drop), kernel, [q, k, v, *captured, out], o.seed)
    except RuntimeError as error:
        print(f"{make_name(mask, d, schedule):45} {'x'.join(map(str, shape)):14} WRONG: {error}", flush=True)
        return False
    exact = compute_exactly(mask, q, k, v, captured)
    error = np.abs(from_bf16(out) - exact) / np.maximum(np.abs(exact), np.sqrt(np.mean(exact**2)))
    is_right = bool((error <= BOUND).all())
    print(f"{make_name(mask, d, schedule):45} {'x'.join(map(str, shape)):14} {np.max(error):.1e} "
          f"{time.perf_counter() - began:5.1f} s{'' if is_right else '  WRONG'}", flush=True)
    return is_right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, help="the folder of attn-opt")
    parser.add_argument("--case", default="*", help="patterns of names, with commas between")
    parser.add_argument("--drop", default="", help="leave out instructions whose names begin so")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of inputs and delays (default: another each time)")
    o = parser.parse_args()
    chosen = [case for case in CASES if any(fnmatch.fnmatch(make_name(*case[:3]), p) for p in o.case.split(","))]
    if not chosen:
        print(f"--case: expected a pattern of one of {', '.join(make_name(*case[:3]) for case in CASES)}, got {o.case}")
        return 1
    print(f"seed {o.seed}")
    wrong = sum(not check(o, *case) for case in chosen)
    print(f"{len(chosen)} kernels, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
