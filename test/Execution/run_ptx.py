#!/usr/bin/env python3
"""Runs the PTX of attention on this CPU, warp by warp, and compares with f64: rooms 7 and 8 without a GPU.

    run_ptx.py build/dev/bin                      # the cases of ptx_cases.py
    run_ptx.py build/dev/bin --case causal-128    # some of them
    run_ptx.py build/dev/bin --drop wgmma.wait    # without such instructions, which it has to find
    run_ptx.py build/dev/bin --target sm_80 --sample 9    # some of them, as another machine has them
    ATTN_SHARE=1/3 run_ptx.py build/dev/bin       # each third of the cases, from the second on

What the simulator proves of room 6 is not what the device gets. This executes the text (ptx/block.py), with copies and
products as late as they may be, on lengths that end within tiles, in bf16: forward, with keys in parts, heads as rows,
lists of tiles and captured numbers of any size, and gradients.
"""

import argparse
import fnmatch
import json
import math
import os
import random
import re
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
from ptx.narrow import LARGEST, from_narrow, to_e4m3  # noqa: E402
from ptx.scalars import from_bf16, to_bf16  # noqa: E402
from ptx_cases import CASES, GRADIENTS, NARROW, NUM_SAMPLED, RAGGED, RESULTS, SAMPLED, WIDE  # noqa: E402

# Blocks that stay have several tiles each.
MULTIPROCESSORS = 2
# GB/s, of an H200.
MEMORY_RATE = 4800
# Of bf16, beside the root mean square; four times what is seen, for inputs are fresh.
BOUND = 4e-2
# The same of f32, whose products are of three parts of bf16. The definition is in f32 too.
F32_BOUND = 2e-5
# And of weights of 8 bits.
NARROW_BOUND = 4e-1
# Keys before a sequence's end, as the mask has it.
WINDOW = 50
# Keys and values lie in pages of so many keys, and pages in one of these orders; without one it is NHD.
PAGED = re.compile(r"page=(\d+)(?: order=(\w+))? ?")
# Whose products take such elements.
NARROW_TARGETS = ("cuda", "sm_90a")
# Masks of captured integers, which the device computes in 32 bits. The first number is as large as there are, the second not.
INT64 = np.array([2**63 - 1, 9], np.int64)
INT32 = np.array([2**31 - 1, 9], np.int32)
MASKS = {
    "limit": ("tensor<?xi64>", """
      %limit = tensor.extract %x[%b] : tensor<?xi64>
      %far = arith.index_cast %limit : i64 to index
      %distance = arith.subi %n, %m : index
      %keep = arith.cmpi sle, %distance, %far : index"""),
    "length": ("tensor<?xi32>", """
      %limit = tensor.extract %x[%b] : tensor<?xi32>
      %j = arith.index_cast %n : index to i32
      %keep = arith.cmpi slt, %j, %limit : i32"""),
    "window": ("tensor<?xi32>", """
      %limit = tensor.extract %x[%b] : tensor<?xi32>
      %to = arith.index_cast %limit : i32 to index
      %wide = arith.constant 50 : index
      %from = arith.subi %to, %wide : index
      %near = arith.cmpi sge, %n, %from : index
      %is = arith.cmpi slt, %n, %to : index
      %keep = arith.andi %near, %is : i1"""),
    "two": ("tensor<?xi64>", """
      %one = arith.constant 1 : index
      %limit = tensor.extract %x[%b] : tensor<?xi64>
      %other = tensor.extract %x[%one] : tensor<?xi64>
      %j = arith.index_cast %n : index to i64
      %distance = arith.subi %j, %limit : i64
      %keep = arith.cmpi sle, %distance, %other : i64"""),
    "constant": ("tensor<?xi32>", """
      %none = arith.constant 1099511627776 : index
      %distance = arith.subi %m, %n : index
      %near = arith.cmpi sle, %distance, %none : index
      %before = arith.cmpi sle, %n, %m : index
      %keep = arith.andi %near, %before : i1"""),
    "product": ("tensor<?xi32>", """
      %large = arith.constant 100000007 : index
      %seven = arith.constant 7 : index
      %none = arith.constant 0 : index
      %product = arith.muli %m, %large : index
      %number = arith.addi %product, %n : index
      %rest = arith.remui %number, %seven : index
      %keep = arith.cmpi ne, %rest, %none : index"""),
    "sum": ("tensor<?xi32>", """
      %limit = tensor.extract %x[%b] : tensor<?xi32>
      %far = arith.index_cast %limit : i32 to index
      %last = arith.addi %m, %far : index
      %keep = arith.cmpi sle, %n, %last : index"""),
    "sorted": ("tensor<?x?xi32>", """
      %i = tensor.extract %ids[%b, %m] : tensor<?x?xi32>
      %j = tensor.extract %ids[%b, %n] : tensor<?x?xi32>
      %keep = arith.cmpi eq, %i, %j : i32"""),
}


def get_page(schedule: str) -> int:
    """The keys of a page; 0 where they lie in none."""
    found = PAGED.match(schedule)
    return int(found.group(1)) if found else 0


def is_ragged(schedule: str) -> bool:
    return schedule.startswith(RAGGED)


def get_order(schedule: str) -> str:
    found = PAGED.match(schedule)
    return (found.group(2) if found else None) or "NHD"


def is_wide(schedule: str) -> bool:
    return schedule.startswith(WIDE)


def has_wide_results(schedule: str) -> bool:
    return schedule.startswith((RESULTS, RAGGED + RESULTS))


def is_narrow(schedule: str) -> bool:
    return schedule.startswith(NARROW)


def has_gradients(schedule: str) -> bool:
    return schedule.startswith((GRADIENTS, RAGGED + GRADIENTS, WIDE + GRADIENTS, RAGGED + RESULTS + GRADIENTS))


def make_name(mask: str, d: int, schedule: str) -> str:
    return "-".join([mask, str(d), *schedule.replace("=", "-").split()])


# All scores of every second row are large, as those of padding are. Products are too small to change them.
PADDING = """score(%s, %b, %h, %m, %n) {
      %two = arith.constant 2 : index
      %one = arith.constant 1 : index
      %large = arith.constant -1.0e9 : f32
      %half = arith.remui %m, %two : index
      %is_padding = arith.cmpi eq, %half, %one : index
      %x = arith.addf %s, %large : f32
      %t = arith.select %is_padding, %x, %s : f32
      attn.yield %t : f32
    }"""


def put_in_pages(source: str, d: int, page: int) -> str:
    """The same function of pools and a table."""
    t, pool, table = f"tensor<?x?x?x{d}xbf16>", f"tensor<?x{page}x?x{d}xbf16>", "tensor<?x?xi32>"
    source = source.replace(f"%k: {t}, %v: {t}", f"%pool_k: {pool}, %pool_v: {pool}, %table: {table}")
    views = "".join(f"  %{x} = attn.paged %pool_{x}[%table] : {pool}, {table} -> {t}\n" for x in "kv")
    return source.replace("{\n", "{\n" + views, 1)


OFFSETS, SIZE = "tensor<?xi32>", "tensor<?xi8>"
# Those of operands by name: of queries or of keys.
SEQUENCES_OF = {"q": "q", "k": "k", "v": "k", "g": "q", "o": "q", "l": "q"}


def get_rows(view: str) -> str:
    """The type of the rows that a view shows, a dimension less."""
    return view.replace("tensor<?x", "tensor<", 1)


def make_views(types: Dict[str, str]) -> Tuple[List[str], str]:
    """Arguments for query, key and value with their sequences, then for the others, and the views that show them. The most rows
    of a sequence are sizes of tensors that nothing reads."""
    given = [f"%rows_{x}: {get_rows(t)}" for x, t in types.items()]
    given[3:3] = [f"%at_{x}: {OFFSETS}" for x in "qk"] + [f"%most_{x}: {SIZE}" for x in "qk"]
    text = "  %zero = arith.constant 0 : index\n  %one_ = arith.constant 1 : index\n"
    for x in "qk":
        text += f"  %size_{x} = tensor.dim %most_{x}, %zero : {SIZE}\n"
    for x, t in types.items():
        y = SEQUENCES_OF[x]
        text += f"  %{x} = attn.ragged %rows_{x}[%at_{y}] up_to %size_{y} : {get_rows(t)}, {OFFSETS} -> {t}\n"
    return given, text


def make_place(value: str, like: str, t: str, of: str) -> str:
    """Puts a batch where the rows of the operand `like`, which is `of` that type, are, as %placed_ and its name."""
    rows = get_rows(t)
    text = "".join(f"  %{x}_{like} = tensor.dim %rows_{like}, %{y} : {get_rows(of)}\n" for x, y in (("t", "zero"), ("h", "one_")))
    text += f"  %e_{like} = tensor.empty(%t_{like}, %h_{like}) : {rows}\n"
    return text + f"  %placed_{like} = attn.place {value}[%at_{SEQUENCES_OF[like]}] into %e_{like} : {t}, {OFFSETS} -> {rows}\n"


def put_in_sequences(source: str, d: int) -> str:
    """The same function of rows of sequences."""
    t = f"tensor<?x?x?x{d}xbf16>"
    given, views = make_views(dict.fromkeys("qkv", t))
    source = source.replace(f"%q: {t}, %k: {t}, %v: {t}", ", ".join(given)).replace(f"-> {t} {{\n", f"-> {get_rows(t)} {{\n", 1)
    source = source.replace("{\n", "{\n" + views, 1)
    return source.replace(f"  return %o : {t}", f"{make_place('%o', 'q', t, t)}  return %placed_q : {get_rows(t)}")


def make_sequence_gradients(mask: str, d: int, wide: bool) -> str:
    """The gradients of rows of sequences. Arguments: query, keys, values, offsets, the most rows, d_output, output and lse."""
    t, lse = f"tensor<?x?x?x{d}xbf16>", "tensor<?x?x?xf32>"
    w = f"tensor<?x?x?x{d}xf32>" if wide else t
    given, text = make_views({**dict.fromkeys("qkvg", t), "o": w, "l": lse})
    variants = "variants [#attn.causal<bottom_right>]" if mask == "causal" else ""
    text += f"  %dq, %dk, %dv = attn.attention_grad %q, %k, %v, %o, %l, %g {variants} : {t}, {t}, {t}, {w}, {lse}, {t}"
    text += f" -> d_query({w}) d_key({w}) d_value({w})\n"
    text += "".join(make_place(f"%d{x}", x, w, t) for x in "qkv")
    results = ", ".join([get_rows(w)] * 3)
    return (
        f"func.func @gradient({', '.join(given)}) -> ({results}) {{\n{text}"
        f"  return %placed_q, %placed_k, %placed_v : {results}\n}}\n"
    )


def scale(source: str, d: int) -> str:
    """The same function of elements of 8 bits and their scales, which come last."""
    t, narrow = f"tensor<?x?x?x{d}xbf16>", f"tensor<?x?x?x{d}xf8E4M3FN>"
    source = source.replace(f"%q: {t}, %k: {t}, %v: {t}", ", ".join(f"%narrow_{x}: {narrow}" for x in "qkv"), 1)
    scales = ", ".join(f"%scale_{x}: tensor<?x?xf32>" for x in "qkv")
    source = source.replace(") ->", f", {scales}) ->", 1)
    views = "".join(f"  %{x} = attn.scaled %narrow_{x}, %scale_{x} : {narrow}, tensor<?x?xf32> -> {t}\n" for x in "qkv")
    return source.replace("{\n", "{\n" + views, 1)


def widen_results(source: str, d: int) -> str:
    """The same function whose output is f32."""
    t, w = f"tensor<?x?x?x{d}xbf16>", f"tensor<?x?x?x{d}xf32>"
    for before in (f"-> {t} {{", f"{t}, {t}, {t} -> {t}", f"return %o : {t}"):
        assert source.count(before) == 1, source
        source = source.replace(before, w.join(before.rsplit(t, 1)))
    return source


def make_source(mask: str, d: int) -> str:
    if mask == "padding":
        t = f"tensor<?x?x?x{d}xbf16>"
        return (
            f"func.func @attention(%q: {t}, %k: {t}, %v: {t}) -> {t} {{\n  %o = attn.attention %q, %k, %v {PADDING} : "
            f"{t}, {t}, {t} -> {t}\n  return %o : {t}\n}}\n"
        )
    if mask == "sink":
        t = f"tensor<?x?x?x{d}xbf16>"
        return (
            f"func.func @attention(%q: {t}, %k: {t}, %v: {t}, %x: tensor<?xf32>) -> {t} {{\n"
            f"  %o = attn.attention %q, %k, %v sink(%x : tensor<?xf32>) : {t}, {t}, {t} -> {t}\n  return %o : {t}\n}}\n"
        )
    if mask not in MASKS:
        return revisions.make_source(mask, d)
    type_, region = MASKS[mask]
    t = f"tensor<?x?x?x{d}xbf16>"
    assumed = f"  %ids = attn.assume nondecreasing %x : {type_}\n" if mask == "sorted" else ""
    return (
        f"func.func @attention(%q: {t}, %k: {t}, %v: {t}, %x: {type_}) -> {t} {{\n{assumed}"
        f"  %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {{{region}\n      attn.yield %keep : i1\n  }} : {t}, {t}, {t} -> {t}\n"
        f"  return %o : {t}\n}}\n"
    )


def emit(bin_: Path, target: str, mask: str, d: int, schedule: str) -> Tuple[str, Dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel")
        words = schedule
        for kind in (GRADIENTS, RAGGED, WIDE, NARROW, RESULTS):
            words = words.replace(kind, "")
        passes = revisions.list_passes(path, PAGED.sub("", words), target)
        appends = has_gradients(schedule) and not is_ragged(schedule)
        if is_ragged(schedule) and has_gradients(schedule):
            source = make_sequence_gradients(mask, d, has_wide_results(schedule))
        else:
            source = make_source(mask, d)
            source = widen_results(source, d) if has_wide_results(schedule) else source
            source = put_in_sequences(source, d) if is_ragged(schedule) else source
        if page := get_page(schedule):
            source = put_in_pages(source, d, page)
        if is_narrow(schedule):
            source = scale(source, d)
        if is_wide(schedule):
            source = source.replace("xbf16>", "xf32>")
        command = [str(bin_ / "attn-opt"), "-", *(["--attn-append-gradients"] if appends else []), *passes]
        subprocess.run(command, input=source, text=True, check=True)
        return Path(f"{path}.ptx").read_text(), json.loads(Path(f"{path}.json").read_text())


def make_arguments(plan: Dict[str, Any], names: List[str], tensors: List[np.ndarray], memory: Memory) -> Dict[str, Any]:
    addresses = [memory.add(tensor) for tensor in tensors]
    arguments: Dict[str, Any] = {}
    for name, parameter in zip(names, plan["parameters"]):
        tensor = tensors[parameter["argument"]]
        kind = parameter["kind"]
        if kind == "tensor_map":
            arguments[name] = TensorMap(tensor, parameter["box"], parameter["dims"], parameter["swizzle"])
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
            count *= max(MULTIPROCESSORS - factor.get("less", 0), 1) * factor["multiprocessors"]
        elif "parts" in factor:
            # Any number is right; the most there may be has the most to join.
            count *= min(factor["parts"], count_blocks(factor["of"][:1], tensors))
        elif "argument" in factor:
            size = tensors[factor["argument"]].shape[factor["dim"]] - factor.get("less", 0)
            extent = size * factor.get("multiplier", 1)
            count *= -(-extent // factor.get("divisor", 1)) * factor.get("unit", 1)
        else:
            count *= factor["constant"]
    return count


def is_for(plan: Dict[str, Any], tensors: List[np.ndarray]) -> bool:
    """Whether the kernel is of a way that such calls take: all ranges of one of its conditions hold."""
    def holds(r: Dict[str, Any]) -> bool:
        size = MEMORY_RATE if "memory_rate" in r else count_blocks([r], tensors)
        return r["least"] <= -(-size // (count_blocks([r["per"]], tensors) if "per" in r else 1)) <= r["most"]

    return "when" not in plan or any(all(map(holds, ranges)) for ranges in plan["when"])


def choose_kernels(plan: Dict[str, Any], tensors: List[np.ndarray]) -> List[Dict[str, Any]]:
    """Those of the first way that serves the call; the last serves all."""
    way = next(kernel.get("when") for kernel in plan["kernels"] if is_for(kernel, tensors))
    return [kernel for kernel in plan["kernels"] if kernel.get("when") == way]


def add_scratch(plan: Dict[str, Any], tensors: List[np.ndarray]) -> None:
    """What kernels hand to those behind them: arguments after the function's own, of which nothing is known."""
    for scratch in plan["scratch"]:
        shape = [count_blocks([factor], tensors) for factor in scratch["shape"]]
        if scratch["argument"] != len(tensors):
            raise NotImplementedError(f"scratch as argument {scratch['argument']} of {len(tensors)}")
        unknown = {"f32": np.float32(np.nan), "bf16": np.uint16(0x7FFF)}.get(scratch["element_type"], np.int32(-(2**31)))
        tensors.append(np.full(shape, unknown))


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


def make_captured(mask: str, rng: np.random.Generator, batches: int, heads: int, keys: int) -> List[np.ndarray]:
    if mask == "alibi":
        return [rng.uniform(0.01, 0.5, heads).astype(np.float32)]
    if mask == "sink":
        return [rng.uniform(-2, 4, heads).astype(np.float32)]
    if mask == "relbias":
        return [to_bf16(rng.standard_normal((heads, keys)).astype(np.float32))]
    if mask in ("document", "sorted"):
        ids = np.sort(rng.integers(0, 4, (batches, keys)), axis=1).astype(np.int32)
        ids[:, -20:] = INT32[0]
        return [ids, ids] if mask == "document" else [ids]
    if mask in ("length", "window"):
        return [np.array([keys - 3, *rng.integers(1, keys, batches - 1)], np.int32)]
    return [INT64 if "i64" in MASKS[mask][0] else INT32] if mask in MASKS else []


def widen(x: np.ndarray) -> np.ndarray:
    return from_bf16(x) if x.dtype == np.uint16 else x


def compute_exactly(mask: str, q: np.ndarray, k: np.ndarray, v: np.ndarray, captured: List[np.ndarray]) -> np.ndarray:
    """What is not full attention and has no mask of its own is causal from the last row and key, as its positions are."""
    m, n = q.shape[2], k.shape[2]
    numbers = [widen(x) for x in captured]
    scores = {
        "softcap": lambda s, b, h, i, j: 30 * math.tanh(s / 30),
        "alibi": lambda s, b, h, i, j: s - numbers[0][h] * (i + n - m - j),
        "relbias": lambda s, b, h, i, j: s + numbers[0][h, min(max(i + n - m - j, 0), n - 1)],
    }
    same = lambda b, h, i, j: numbers[0][b, i] == numbers[0][b, j]
    far = lambda b, h, i, j: j - i <= int(numbers[0][b])
    near = lambda b, h, i, j: j <= int(numbers[0][b]) + int(numbers[0][1])
    below = lambda b, h, i, j: j < int(numbers[0][b])
    window = lambda b, h, i, j: 0 <= int(numbers[0][b]) - j - 1 < WINDOW
    masks = {"document": same, "sorted": same, "limit": far, "sum": far, "two": near, "length": below, "window": window,
             "constant": lambda b, h, i, j: j <= i, "product": lambda b, h, i, j: (i * 100000007 + j) % 7 != 0}
    causal = None if mask in ("full", "sink", *MASKS) else "bottom_right"
    tensors = map(widen, (q, k, v))
    return reference.attention(*tensors, causal=causal, score=scores.get(mask), mask=masks.get(mask),
                               sink=numbers[0] if mask == "sink" else None)[0]


def drop(text: str, prefix: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not (prefix and line.strip().startswith(prefix)))


def compute_gradients(mask: str, q: np.ndarray, k: np.ndarray, v: np.ndarray, d_output: np.ndarray) -> List[np.ndarray]:
    """The output and what is returned for q, k and v, of full and causal attention, and of padding."""
    q, k, v, d_output = (widen(x).astype(np.float64) for x in (q, k, v, d_output))
    (b, h, m, d), (_, hkv, n, _) = q.shape, k.shape
    k, v = (x.repeat(h // hkv, axis=1) for x in (k, v))
    keep = np.tri(m, n, n - m, dtype=bool) if mask == "causal" else np.ones((m, n), bool)
    scores = np.where(keep, q @ k.swapaxes(2, 3) / math.sqrt(d), -np.inf)
    if mask == "padding":
        # In f32 they are all the same.
        scores[:, :, 1::2] = -1e9
    # Rows without a key have weights of zero.
    weights = np.exp(scores - scores.max(axis=3, keepdims=True, initial=-1e300))
    weights /= np.maximum(weights.sum(axis=3, keepdims=True), 1e-300)
    output = weights @ v
    d_scores = weights * (d_output @ v.swapaxes(2, 3) - (d_output * output).sum(axis=3, keepdims=True)) / math.sqrt(d)
    of_heads = [x.reshape(b, hkv, h // hkv, n, d).sum(axis=2) for x in (d_scores.swapaxes(2, 3) @ q, weights.swapaxes(2, 3) @ d_output)]
    return [output, d_scores @ k, *of_heads]


def compute_lse(mask: str, q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Of full and causal attention; -inf for rows without a key."""
    q, k = (from_bf16(x).astype(np.float64) for x in (q, k))
    (_, h, m, d), (_, hkv, n, _) = q.shape, k.shape
    keep = np.tri(m, n, n - m, dtype=bool) if mask == "causal" else np.ones((m, n), bool)
    scores = np.where(keep, q @ k.repeat(h // hkv, axis=1).swapaxes(2, 3) / math.sqrt(d), -np.inf)
    return np.logaddexp.reduce(scores, axis=3)


def make_pools(count: int, page: int, heads: int, d: int, order: str) -> List[np.ndarray]:
    """Two pools of pages (count, page, heads, d) that hold NaN: rows of a head apart, together, or beside the other pool's."""
    if order == "content":
        content = np.full((count, page, heads, 2 * d), 0x7FFF, np.uint16)
        return [content[..., :d], content[..., d:]]
    if order == "HND":
        return [np.full((count, heads, page, d), 0x7FFF, np.uint16).swapaxes(1, 2) for _ in range(2)]
    return [np.full((count, page, heads, d), 0x7FFF, np.uint16) for _ in range(2)]


def scatter(k: np.ndarray, v: np.ndarray, page: int, order: str, kept: List[Tuple[int, int]],
            rng: np.random.Generator) -> Tuple[List[np.ndarray], np.ndarray]:
    """Pools of pages, the table, and no page where a sequence keeps no key: NaN lies around. All share their first page."""
    b, hkv, n, d = k.shape
    entries = n // page
    places = rng.permutation(2 * b * entries)[: b * entries].reshape(b, entries).astype(np.int32)
    places[:, 0] = places[0, 0]
    pools = make_pools(2 * b * entries, page, hkv, d, order)
    for x, pool in zip((k, v), pools):
        x[:, :, :page] = x[0, :, :page]
        for i, j in np.ndindex(b, entries):
            pool[places[i, j]] = x[i, :, j * page : (j + 1) * page].swapaxes(0, 1)
    garbage = np.array([-1, 2 * b * entries, 2147480000, -(2**31)], np.int32)
    for i, j in np.ndindex(b, entries):
        if j * page >= kept[i][1] or (j + 1) * page <= kept[i][0]:
            places[i, j] = garbage[(i + j) % 4]
    return pools, places


def make_offsets(m: int, n: int) -> Tuple[np.ndarray, np.ndarray]:
    """Of three sequences, of which the second has no rows."""
    first = 3
    rows, keys = np.array([0, m, 0, m // 3 + 1]), np.array([0, n, 37, n // 2])
    return first + np.cumsum(rows).astype(np.int32), first + np.cumsum(keys).astype(np.int32)


def make_sequences_to_differentiate(mask: str, schedule: str, shape: Tuple[int, ...], d: int,
                                    rng: np.random.Generator) -> Tuple[List[np.ndarray], ...]:
    """The same sequences, with d_output, output and lse. Keys without rows have gradients of 0."""
    _, h, hkv, m, n = shape
    at_q, at_k = make_offsets(m, n)
    empty = lambda at, heads: np.full((at[-1] + 5, heads, d), 0x7FFF, np.uint16)
    tensors = [empty(at_q, h), empty(at_k, hkv), empty(at_k, hkv), empty(at_q, h)]
    wide = has_wide_results(schedule)
    output, lse = empty(at_q, h), np.full((at_q[-1] + 5, h), np.nan, np.float32)
    output = widen(output) if wide else output
    exact = [np.full(x.shape, np.nan) for x in tensors[:3]]
    places = at_q, at_k, at_k, at_q
    for b in range(3):
        for x, at in zip(tensors, places):
            x[at[b] : at[b + 1]] = to_bf16(rng.standard_normal((at[b + 1] - at[b], *x.shape[1:])).astype(np.float32))
        if at_q[b] == at_q[b + 1]:
            for x in exact[1:]:
                x[at_k[b] : at_k[b + 1]] = 0
            continue
        alone = [x[at[b] : at[b + 1]].swapaxes(0, 1)[None] for x, at in zip(tensors, places)]
        of, *gradients = compute_gradients(mask, *alone)
        of = of[0].swapaxes(0, 1).astype(np.float32)
        output[at_q[b] : at_q[b + 1]] = of if wide else to_bf16(of)
        lse[at_q[b] : at_q[b + 1]] = compute_lse(mask, *alone[:2])[0].T
        for x, at, gradient in zip(exact, places, gradients):
            x[at[b] : at[b + 1]] = gradient[0].swapaxes(0, 1)
    *operands, d_output = tensors
    inputs = [*operands, at_q, at_k, np.zeros(m, np.int8), np.zeros(n, np.int8), d_output, output, lse]
    unknown = np.float32(np.nan) if wide else np.uint16(0x7FFF)
    return inputs, [np.full(x.shape, unknown) for x in operands], exact


def make_sequences(mask: str, shape: Tuple[int, ...], d: int, rng: np.random.Generator) -> Tuple[List[np.ndarray], ...]:
    """Rows of three sequences, the second with keys of NaN and without rows. NaN lies around, where results stay as they are."""
    _, h, hkv, m, n = shape
    at_q, at_k = make_offsets(m, n)
    empty = lambda at, heads: np.full((at[-1] + 5, heads, d), 0x7FFF, np.uint16)
    q, k, v, output = empty(at_q, h), empty(at_k, hkv), empty(at_k, hkv), empty(at_q, h)
    captured = make_captured(mask, rng, 3, h, n)
    exact = np.full(output.shape, np.nan)
    for b in (0, 2):
        for x, at in ((q, at_q), (k, at_k), (v, at_k)):
            x[at[b] : at[b + 1]] = to_bf16(rng.standard_normal((at[b + 1] - at[b], *x.shape[1:])).astype(np.float32))
        alone = (x[at[b] : at[b + 1]].swapaxes(0, 1)[None] for x, at in ((q, at_q), (k, at_k), (v, at_k)))
        exact[at_q[b] : at_q[b + 1]] = compute_exactly(mask, *alone, captured)[0].swapaxes(0, 1)
    inputs = [q, k, v, at_q, at_k, np.zeros(m, np.int8), np.zeros(n, np.int8), *captured]
    return inputs, [output], [exact]


def find_kept(mask: str, captured: List[np.ndarray], batches: int, keys: int) -> List[Tuple[int, int]]:
    """The keys that rows of each batch keep: from one to before another."""
    if mask not in ("length", "window"):
        return [(0, keys)] * batches
    return [(int(end) - WINDOW if mask == "window" else 0, int(end)) for end in captured[0]]


def make_problem(mask: str, schedule: str, shape: Tuple[int, ...], d: int, rng: np.random.Generator) -> Tuple[List[np.ndarray], ...]:
    """The arguments of a function, its results, of which nothing is known, and what they ought to be."""
    if is_ragged(schedule):
        if has_gradients(schedule):
            return make_sequences_to_differentiate(mask, schedule, shape, d, rng)
        return make_sequences(mask, shape, d, rng)
    b, h, hkv, m, n = shape
    draw = lambda heads, length: rng.standard_normal((b, heads, length, d)).astype(np.float32)
    make = draw if is_wide(schedule) else lambda heads, length: to_bf16(draw(heads, length))
    is_f32 = is_wide(schedule) or has_wide_results(schedule)
    unknown = lambda tensor: np.full(tensor.shape, np.float32(np.nan) if is_f32 else np.uint16(0x7FFF))
    q, k, v = make(h, m), make(hkv, n), make(hkv, n)
    if has_gradients(schedule):
        inputs = [q, k, v, make(h, m)]
        return inputs, [unknown(x) for x in (q, q, k, v)], compute_gradients(mask, *inputs)
    captured = make_captured(mask, rng, b, h, n)
    if is_narrow(schedule):
        scales = [rng.uniform(0.5, 2, (b, hkv)).astype(np.float32) for _ in range(3)]
        narrow = [to_e4m3(np.clip(3 * draw(heads, length), -LARGEST, LARGEST)) for heads, length in ((h, m), (hkv, n), (hkv, n))]
        numbers = [from_narrow(x) / 3 * factor.repeat(x.shape[1] // hkv, axis=1)[:, :, None, None] for x, factor in zip(narrow, scales)]
        scales = [factor / np.float32(3) for factor in scales]
        return [*narrow, *captured, *scales], [unknown(q)], [compute_exactly(mask, *numbers, captured)]
    if page := get_page(schedule):
        pools, table = scatter(k, v, page, get_order(schedule), find_kept(mask, captured, b, n), rng)
        return [q, *pools, table, *captured], [unknown(q)], [compute_exactly(mask, q, k, v, captured)]
    return [q, k, v, *captured], [unknown(q)], [compute_exactly(mask, q, k, v, captured)]


def get_error(got: np.ndarray, exact: np.ndarray) -> float:
    """Beside the root mean square; NaN is infinite. What ought to be NaN is not written."""
    stays = np.isnan(exact)
    held = got[stays]
    if not np.all(held == 0x7FFF if held.dtype == np.uint16 else np.isnan(held)):
        return math.inf
    got = widen(got)
    got, exact = got[~stays], exact[~stays]
    error = np.abs(got - exact) / np.maximum(np.abs(exact), np.sqrt(np.mean(exact**2)))
    return float(np.nan_to_num(error, nan=math.inf).max())


def check(o: argparse.Namespace, mask: str, d: int, schedule: str, shape: Tuple[int, ...]) -> bool:
    inputs, outputs, exact = make_problem(mask, schedule, shape, d, np.random.default_rng(o.seed))
    text, plan = emit(o.bin, o.target, mask, d, schedule)
    began = time.perf_counter()
    line = f"{make_name(mask, d, schedule):45} {'x'.join(map(str, shape)):14}"
    try:
        with np.errstate(all="ignore"):
            tensors = [*inputs, *outputs]
            for kernel in choose_kernels(plan, tensors):
                add_scratch(kernel, tensors)
                run_kernel(drop(text, o.drop), kernel, tensors, o.seed)
    except RuntimeError as error:
        print(f"{line} WRONG: {error}", flush=True)
        return False
    worst = max(map(get_error, outputs, exact))
    # Gradients round scores a second time.
    bound = F32_BOUND if is_wide(schedule) else NARROW_BOUND if is_narrow(schedule) else BOUND
    is_right = worst <= bound * (2 if has_gradients(schedule) else 1)
    print(f"{line} {worst:.1e} {time.perf_counter() - began:5.1f} s{'' if is_right else '  WRONG'}", flush=True)
    return is_right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=Path, help="the folder of attn-opt")
    parser.add_argument("--case", default="*", help="patterns of names, with commas between")
    parser.add_argument("--sample", type=int, default=0, help="run so many of all cases, others each time")
    parser.add_argument("--target", default="cuda", help="the machine whose kernels run (default: %(default)s)")
    parser.add_argument("--drop", default="", help="leave out instructions whose names begin so")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of inputs and delays (default: another each time)")
    o = parser.parse_args()
    drawn = random.Random(o.seed)
    share, shares = map(int, os.environ.get("ATTN_SHARE", "0/1").split("/"))
    cases = CASES + (SAMPLED if o.case != "*" or o.sample else drawn.sample(SAMPLED, NUM_SAMPLED))
    cases = [case for case in cases if o.target in NARROW_TARGETS or not is_narrow(case[2])]
    if o.sample:
        cases = drawn.sample(cases, o.sample)
    elif o.case == "*":
        cases = cases[share::shares]
    chosen = [case for case in cases if any(fnmatch.fnmatch(make_name(*case[:3]), p) for p in o.case.split(","))]
    if not chosen:
        print(f"--case: expected a pattern of one of {', '.join(make_name(*case[:3]) for case in CASES + SAMPLED)}, got {o.case}")
        return 1
    print(f"seed {o.seed}")
    wrong = sum(not check(o, *case) for case in chosen)
    print(f"{len(chosen)} kernels, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
