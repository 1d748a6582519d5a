#!/usr/bin/env python3
"""Runs the PTX of steps around attention on this CPU, as run_ptx.py does that of attention itself.

    run_ptx_steps.py build/dev/bin                     # the cases below
    run_ptx_steps.py build/dev/bin --case merge-*      # some of them
    run_ptx_steps.py build/dev/bin --target sm_80      # as another machine has them

Numbers are compared with definitions in f64. Parts that kept nothing hold NaN, and so does all that ought to stay as it is.
"""

import argparse
import fnmatch
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "bench" / "gpu")]

import revisions  # noqa: E402  (its folder is on the path now)
import run_ptx  # noqa: E402
from ptx.scalars import from_bf16, to_bf16  # noqa: E402

NAN = {"f32": np.float32(np.nan), "bf16": np.uint16(0x7FFF)}
# The greatest difference of a number: rounding to the type, and f32 on the way.
BOUNDS = {"f32": 2e-6, "bf16": 8e-3}

# The text, its tensors, and per result what it ought to be in f64; NaN where it stays as it is.
Case = Tuple[str, List[np.ndarray], List[np.ndarray], List[np.ndarray]]


def store(x: np.ndarray, type_: str) -> np.ndarray:
    return to_bf16(x.astype(np.float32)) if type_ == "bf16" else x.astype(np.float32)


def load(x: np.ndarray) -> np.ndarray:
    return (from_bf16(x) if x.dtype == np.uint16 else x).astype(np.float64)


def write_merge(type_: str, d: int) -> str:
    part, row = f"tensor<?x?x?x?x{d}x{type_}>", "tensor<?x?x?x?xf32>"
    output, lse = f"tensor<?x?x?x{d}x{type_}>", "tensor<?x?x?xf32>"
    sizes = "".join(f"  %c{i} = arith.constant {i} : index\n  %d{i} = tensor.dim %p, %c{i} : {part}\n" for i in (1, 2, 3))
    return (
        f"func.func @merge(%p: {part}, %l: {row}) -> ({output}, {lse}) {{\n{sizes}"
        f"  %o = tensor.empty(%d1, %d2, %d3) : {output}\n  %e = tensor.empty(%d1, %d2, %d3) : {lse}\n"
        f"  %r:2 = attn.merge %p, %l outs(%o, %e) : {part}, {row}, {output}, {lse} -> {output}, {lse}\n"
        f"  return %r#0, %r#1 : {output}, {lse}\n}}\n"
    )


def make_merge(rng: np.random.Generator, type_: str, d: int, parts: int) -> Case:
    """Some parts kept nothing, a row has none at all, and one is the whole, of a sink of +inf."""
    shape = 2, 3, 7
    lse = (3 * rng.standard_normal((parts, *shape))).astype(np.float32)
    lse[rng.random(lse.shape) < 0.3] = -np.inf
    lse[:, 0, 0, 0] = -np.inf
    lse[parts - 1 : parts, 1, 2, 6] = np.inf
    values = store(rng.standard_normal((*lse.shape, d)), type_)
    values[lse == -np.inf] = NAN[type_]
    top = lse.max(axis=0, initial=-np.inf).astype(np.float64)
    with np.errstate(invalid="ignore"):
        weights = np.where(lse == top, 1.0, np.exp(lse - top)) * (lse != -np.inf)
    total = weights.sum(axis=0)
    exact = (weights[..., None] * np.where(weights[..., None] > 0, load(values), 0)).sum(axis=0)
    exact /= np.maximum(total, 1e-300)[..., None]
    results = [np.full((*shape, d), NAN[type_]), np.full(shape, NAN["f32"])]
    with np.errstate(divide="ignore"):
        return write_merge(type_, d), [values, lse], results, [exact, top + np.log(np.where(total > 0, total, 1))]


# Numbers of slots that are none, of which indices of 32 bits would make some.
HOSTILE = [-1, -(2**31), -(2**63), 2**63 - 1, 2**31, 2**32 + 3, 2147480000]
PAGES, HEADS, LINES = 3, 5, 9


def turn(x: np.ndarray, positions: np.ndarray, cos: np.ndarray, sin: np.ndarray, is_interleaved: bool) -> np.ndarray:
    """s28: rows (T, H, D) in f64."""
    pairs = cos.shape[1]
    line = np.clip(positions, 0, LINES - 1)
    c, s = (y.astype(np.float64)[line][:, None] for y in (cos, sin))
    first, second = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if is_interleaved else (slice(pairs), slice(pairs, 2 * pairs))
    turned = x.copy()
    turned[..., first] = x[..., first] * c - x[..., second] * s
    turned[..., second] = x[..., second] * c + x[..., first] * s
    return turned


def make_append(rng: np.random.Generator, type_: str, d: int, page: int, pairs: int, order: str, word: str) -> Case:
    """Rows of new keys go to pages that hold NaN; `pairs` columns are turned, in neither style where there are none."""
    rows = 14
    new = store(rng.standard_normal((rows, HEADS, d)), type_)
    slots = np.concatenate([rng.permutation(PAGES * page)[: rows - 7], HOSTILE, [PAGES * page] * rows])[:rows]
    slots = rng.permutation(slots.astype(np.int64))
    if word == "i32":
        slots = np.clip(slots, -(2**31), 2**31 - 1).astype(np.int32)
    positions = np.array([-(2**31), 2**31 - 1, *rng.integers(0, LINES, rows - 2)], np.int32)
    tables = [rng.uniform(-1, 1, (LINES, pairs)).astype(np.float32) for _ in range(2)]
    exact = load(new)
    if pairs:
        exact = turn(exact, positions, *tables, order == "interleaved")
    source, t = f"tensor<?x?x{d}x{type_}>", f"tensor<?x?x?x{d}x{type_}>"
    at, table = "tensor<?xi32>", f"tensor<?x{pairs}xf32>"
    given = f", %at: {at}, %cos: {table}, %sin: {table}" if pairs else ""
    rotary = f" rotary(%at, %cos, %sin : {at}, {table}, {table})" if pairs else ""
    style = " interleaved" if pairs and order == "interleaved" else ""
    sizes = "".join(f"  %c{i} = arith.constant {i} : index\n  %d{i} = tensor.dim %pool, %c{i} : {t}\n" for i in range(3))
    text = (
        f"func.func @append(%new: {source}, %slots: tensor<?x{word}>{given}, %pool: {t}) -> {t} {{\n{sizes}"
        f"  %memory = tensor.empty(%d0, %d1, %d2) : {t}\n"
        f"  %r = attn.append %new[%slots]{rotary}{style} into %memory : {source}, tensor<?x{word}>, {t} -> {t}\n"
        f"  return %r : {t}\n}}\n"
    )
    pool, wanted = np.full((PAGES, page, HEADS, d), NAN[type_]), np.full((PAGES, page, HEADS, d), np.nan)
    for row, slot in zip(exact, slots.tolist()):
        if 0 <= slot < PAGES * page:
            wanted[slot // page, slot % page] = row
    return text, [new, slots, *([positions, *tables] if pairs else []), pool], [pool], [wanted]


def make_rotary(rng: np.random.Generator, type_: str, d: int, pairs: int, order: str) -> Case:
    rows = 6
    x = store(rng.standard_normal((rows, HEADS, d)), type_)
    positions = np.array([-(2**63), 2**32, *rng.integers(0, LINES, rows - 2)], np.int64)
    tables = [rng.uniform(-1, 1, (LINES, pairs)).astype(np.float32) for _ in range(2)]
    t, table = f"tensor<?x?x{d}x{type_}>", f"tensor<?x{pairs}xf32>"
    style = "interleaved " if order == "interleaved" else ""
    sizes = "".join(f"  %c{i} = arith.constant {i} : index\n  %d{i} = tensor.dim %x, %c{i} : {t}\n" for i in range(2))
    text = (
        f"func.func @rotary(%x: {t}, %at: tensor<?xi64>, %cos: {table}, %sin: {table}) -> {t} {{\n{sizes}"
        f"  %e = tensor.empty(%d0, %d1) : {t}\n"
        f"  %r = attn.rotary %x at %at by %cos, %sin {style}outs(%e) : {t}, tensor<?xi64>, {table}, {table}, {t} -> {t}\n"
        f"  return %r : {t}\n}}\n"
    )
    exact = turn(load(x), positions, *tables, order == "interleaved")
    return text, [x, positions, *tables], [np.full(x.shape, NAN[type_])], [exact]


CASES: Dict[str, Callable[[np.random.Generator], Case]] = {
    f"merge-{type_}-{d}-{parts}": lambda rng, type_=type_, d=d, parts=parts: make_merge(rng, type_, d, parts)
    for type_, d, parts in [("bf16", 128, 2), ("f32", 64, 3), ("f32", 80, 1), ("bf16", 256, 7), ("bf16", 64, 37), ("f32", 40, 0)]
}

CASES.update({
    "-".join(map(str, ["append", *words])): lambda rng, words=words: make_append(rng, *words)
    for words in [("bf16", 128, 16, 0, "", "i64"), ("f32", 64, 1, 0, "", "i32"), ("bf16", 128, 7, 64, "halves", "i64"),
                  ("bf16", 80, 64, 12, "interleaved", "i64"), ("f32", 256, 3, 100, "halves", "i32"),
                  ("f32", 40, 5, 20, "interleaved", "i32")]
})
CASES.update({
    "-".join(map(str, ["rotary", *words])): lambda rng, words=words: make_rotary(rng, *words)
    for words in [("bf16", 128, 64, "halves"), ("f32", 96, 31, "interleaved"), ("f32", 192, 8, "halves")]
})


def emit(bin_: Path, target: str, source: str) -> Tuple[str, Dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel")
        command = [str(bin_ / "attn-opt"), "-", *revisions.list_passes(path, "", target)]
        subprocess.run(command, input=source, text=True, check=True)
        return Path(f"{path}.ptx").read_text(), json.loads(Path(f"{path}.json").read_text())


def get_error(got: np.ndarray, exact: np.ndarray) -> float:
    """Beside what the type holds. Infinities and what stays as it is agree, or the error is infinite."""
    stays = np.isnan(exact)
    untouched = got == 0x7FFF if got.dtype == np.uint16 else np.isnan(got)
    got = load(got)
    if np.any(untouched != stays) or np.any(np.isinf(exact) & (got != exact)):
        return float("inf")
    inside = np.isfinite(exact)
    return float((np.abs(got[inside] - exact[inside]) / np.maximum(np.abs(exact[inside]), 1)).max(initial=0))


def check(o: argparse.Namespace, name: str) -> bool:
    source, inputs, outputs, exact = CASES[name](np.random.default_rng(o.seed))
    text, plan = emit(o.bin, o.target, source)
    began = time.perf_counter()
    try:
        with np.errstate(all="ignore"):
            for kernel in plan["kernels"]:
                run_ptx.run_kernel(run_ptx.drop(text, o.drop), kernel, [*inputs, *outputs], o.seed)
    except RuntimeError as error:
        print(f"{name:30} WRONG: {error}", flush=True)
        return False
    errors = [get_error(x, y) for x, y in zip(outputs, exact)]
    bounds = [BOUNDS["bf16" if x.dtype == np.uint16 else "f32"] for x in outputs]
    is_right = all(error <= bound for error, bound in zip(errors, bounds))
    numbers = " ".join(f"{error:.1e}" for error in errors)
    print(f"{name:30} {numbers} {time.perf_counter() - began:5.1f} s{'' if is_right else '  WRONG'}", flush=True)
    return is_right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, help="the folder of attn-opt")
    parser.add_argument("--case", default="*", help="patterns of names, with commas between")
    parser.add_argument("--target", default="cuda", help="the machine whose kernels run (default: %(default)s)")
    parser.add_argument("--drop", default="", help="leave out instructions whose names begin so")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of inputs (default: another each time)")
    o = parser.parse_args()
    chosen = [name for name in CASES if any(fnmatch.fnmatch(name, p) for p in o.case.split(","))]
    if not chosen:
        print(f"--case: expected a pattern of one of {', '.join(CASES)}, got {o.case}")
        return 1
    print(f"seed {o.seed}")
    wrong = sum(not check(o, name) for name in chosen)
    print(f"{len(chosen)} cases, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
