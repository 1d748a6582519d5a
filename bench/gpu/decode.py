#!/usr/bin/env python3
"""A few query rows against long keys, of grouped heads: what decoding asks, beside cuDNN and FlashAttention-3.

    decode.py                                       # attn as it is
    decode.py --schedule 'n128=block_n = 128, stages = 3' --schedule 'split=block_n = 64, stages = 6, splits = 16'

A row of the table is one problem: the floor, keys and values at 4.5 TB/s, and then TB/s of each candidate. `--schedule`
adds one of packed heads with these numbers of `#attn.schedule`; `--slots` says how many slots its groups have.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from typing import Any, Callable, Dict, List

import torch

import attn
import measure
from attn import _plan
from peers import NAMES as PEERS

# (B, rows, keys)
CELLS = [(1, 131072), (16, 8192), (64, 8192), (16, 32768)]
HEADS, KEY_HEADS, D = 32, 8, 128
FLOOR_TBS = 4.5


def compile_with(attributes: str, causal: bool) -> Callable[..., Any]:
    """An attention whose op has these attributes."""
    original = _plan._compile

    def patched(text: str, options: Any) -> Any:
        edited, count = re.subn(r"(attn\.attention [^\n]*?)(\s*:\s*tensor)", rf"\1 {{{attributes}}}\2", text, count=1)
        if count != 1:
            raise ValueError(f"expected an attention in {text}")
        return original(edited, options)

    _plan._compile = patched
    try:
        return attn.compile(torch.bfloat16, D, causal=causal, device="cuda")
    finally:
        _plan._compile = original


def make_schedule(text: str, slots: int) -> str:
    return f"attn.pack = {slots}, attn.schedule = #attn.schedule<block_m = 64, {text}>"


def make_fa3(q: Any, k: Any, v: Any, causal: bool) -> Callable[[], Any]:
    from flash_attn_interface import flash_attn_func

    ours = [x.transpose(1, 2).contiguous() for x in (q, k, v)]

    def call(parts: int) -> Any:
        output = flash_attn_func(*ours, causal=causal, num_splits=parts)
        return (output[0] if isinstance(output, tuple) else output).transpose(1, 2)

    # Builds without split kernels refuse to choose.
    try:
        call(0)
        return lambda: call(0)
    except RuntimeError:
        return lambda: call(1)


def make_cudnn(q: Any, k: Any, v: Any, causal: bool) -> Callable[[], Any]:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    # One row sees all keys; several as causal from the end need a bias that says so.
    bias = None
    if causal:
        from torch.nn.attention.bias import causal_lower_right

        bias = causal_lower_right(q.shape[2], k.shape[2])

    def call() -> Any:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=True)

    return call


def reference(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """In f64, of one batch at a time."""
    group, outputs = q.shape[1] // k.shape[1], []
    rows, keys = q.shape[2], k.shape[2]
    drop = torch.ones(rows, keys, dtype=torch.bool, device=q.device).triu(keys - rows + 1)
    for b in range(min(q.shape[0], 2)):
        heads = []
        for h in range(q.shape[1]):
            s = q[b, h].double() @ k[b, h // group].double().T / D**0.5
            heads.append((s.masked_fill(drop, -torch.inf) if causal else s).softmax(-1) @ v[b, h // group].double())
        outputs.append(torch.stack(heads))
    return torch.stack(outputs)


def measure_cell(batch: int, rows: int, keys: int, o: argparse.Namespace) -> Dict[str, Any]:
    torch.manual_seed(0)
    causal = rows > 1
    q = torch.randn(batch, rows, HEADS, D, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    k, v = (torch.randn(batch, KEY_HEADS, keys, D, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    calls: Dict[str, Callable[[], Any]] = {}
    how = "bottom_right" if causal else False
    candidates = {"attn": lambda: attn.attention(q, k, v, causal=how)}
    if o.graph:
        # What torch.compile makes of the call, for keys of any length.
        graph = torch.compile(lambda q, k, v: attn.attention(q, k, v, causal=how), fullgraph=True, backend="aot_eager")
        torch._dynamo.mark_dynamic(k, 2), torch._dynamo.mark_dynamic(v, 2)
        candidates["attn in a graph"] = lambda: graph(q, k, v)
    for text in o.schedule:
        name, _, numbers = text.partition("=")
        kernel = compile_with(make_schedule(numbers, o.slots), how)
        candidates[name] = lambda kernel=kernel: kernel(q, k, v)
    makers = {"cudnn": make_cudnn, "fa3": make_fa3}
    wanted = reference(q, k, v, causal)
    errors: Dict[str, float] = {}
    for name in [*candidates, *filter(None, o.peers.split(","))]:
        try:
            call = candidates[name] if name in candidates else makers[name](q, k, v, causal)
            errors[name] = measure.max_relative(call()[: wanted.shape[0]], wanted)
            torch.cuda.synchronize()
        except Exception as error:  # pylint: disable=broad-except  # A peer that cannot is left out.
            print(f"  {name}: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
            continue
        calls[name] = call
    times = measure.interleave(calls, o.rounds, o.seconds)
    size = 2 * k.numel() * k.element_size()
    return {"B": batch, "M": rows, "N": keys, "bytes": size, "floor_ms": size / FLOOR_TBS / 1e9, "ms": times,
            "errors": errors, "tbs": {name: size / statistics.median(t) / 1e9 for name, t in times.items()}}


def print_row(row: Dict[str, Any]) -> None:
    print(f"B{row['B']} M{row['M']} N{row['N']}: floor {1000 * row['floor_ms']:.1f} us")
    best = max((t for name, t in row["tbs"].items() if name in PEERS), default=None)
    for name, tbs in sorted(row["tbs"].items(), key=lambda item: -item[1]):
        us = 1000 * statistics.median(row["ms"][name])
        ratio = f" {tbs / best:.3f} of the better peer" if best else ""
        print(f"  {name:16} {us:8.1f} us {tbs:6.3f} TB/s{ratio} +-{measure.spread(row['ms'][name]) / 2:.1%} "
              f"err {row['errors'][name]:.1e}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedule", action="append", default=[], metavar="NAME=NUMBERS")
    parser.add_argument("--graph", action="store_true", help="add attn's call as torch.compile makes it")
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--rows", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4])
    parser.add_argument("--peers", default="cudnn,fa3")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.4, help="per candidate and round")
    parser.add_argument("--out", help="write the result here")
    o = parser.parse_args()
    table: List[Dict[str, Any]] = []
    for rows in o.rows:
        for batch, keys in CELLS:
            table.append(measure_cell(batch, rows, keys, o))
            print_row(table[-1])
    if o.out:
        with open(o.out, "w") as file:
            json.dump({"machine": measure.describe_machine(), "cells": table}, file, indent=1)
            file.write("\n")
    return 0 if all(e <= 0.05 for row in table for e in row["errors"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
