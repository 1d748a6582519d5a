#!/usr/bin/env python3
"""Prompts and steps of decoding in one call, beside two calls.

    mixed.py                          # four prompts of 2048 rows and 60 steps on 8192 keys
    mixed.py --prompts 1,4 --keys 1024,8192 --graphs

Keys lie in pages of 64, 32 query heads share 8 key heads, D = 128. `one call` is `flash_attn_varlen_func` with a table of
pages for all sequences; `two calls` are that for prompts, and `flash_attn_with_kvcache` for steps. A row is both:
microseconds, and how many times as fast one call is, within rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from typing import Any, Callable, Dict, List

import torch

import measure
from attn.integrations import flash_attn

HEADS, KEY_HEADS, D, PAGE, ROWS = 32, 8, 128, 64, 2048
BAR = 1.0

Calls = Dict[str, Callable[[], Any]]


def to_int32(numbers: Any) -> Any:
    return torch.tensor(numbers, device="cuda", dtype=torch.int32)


def make_calls(prompts: int, steps: int, keys: int) -> Calls:
    lengths = [ROWS] * prompts + [keys] * steps
    columns = max(lengths) // PAGE
    table = torch.randperm(len(lengths) * columns, device="cuda").reshape(-1, columns).int()
    k, v = (torch.randn(table.numel(), PAGE, KEY_HEADS, D, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    rows = [ROWS] * prompts + [1] * steps
    q = torch.randn(sum(rows), HEADS, D, device="cuda", dtype=torch.bfloat16)
    cu = to_int32([0, *torch.tensor(rows).cumsum(0).tolist()])
    used, split = to_int32(lengths), prompts * ROWS

    def one() -> Any:
        return flash_attn.flash_attn_varlen_func(
            q, k, v, cu, None, ROWS, max(lengths), causal=True, block_table=table, seqused_k=used
        )

    def two() -> Any:
        first = flash_attn.flash_attn_varlen_func(
            q[:split], k, v, cu[: prompts + 1], None, ROWS, ROWS, causal=True, block_table=table[:prompts],
            seqused_k=used[:prompts]
        )
        last = flash_attn.flash_attn_with_kvcache(
            q[split:, None], k, v, cache_seqlens=used[prompts:], block_table=table[prompts:], causal=True
        )
        return first, last

    return {"one call": one, "two calls": two}


def run(prompts: int, steps: int, keys: int, o: argparse.Namespace) -> Dict[str, Any]:
    torch.manual_seed(0)
    calls = make_calls(prompts, steps, keys)
    whole, parts = (call() for call in calls.values())
    error = measure.max_relative(whole, torch.cat([parts[0], parts[1][:, 0]]).double())
    if o.graphs:
        calls = {name: measure.capture(call) for name, call in calls.items()}
    times = measure.interleave(calls, o.rounds, o.seconds)
    if o.graphs:
        times = {name: [t / measure.GRAPH_CALLS for t in ms] for name, ms in times.items()}
    return {"prompts": prompts, "steps": steps, "keys": keys, "ms": times, "error": error,
            "ratio": measure.ratio(times["one call"], times["two calls"])}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers: Callable[[str], List[int]] = lambda text: [int(n) for n in text.split(",")]
    parser.add_argument("--prompts", type=numbers, default=[4])
    parser.add_argument("--steps", type=numbers, default=[60])
    parser.add_argument("--keys", type=numbers, default=[8192])
    parser.add_argument("--graphs", action="store_true", help="time CUDA graphs of the calls")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2, help="per call and round")
    parser.add_argument("--out", help="write the result here")
    o = parser.parse_args()
    rows = [run(p, s, n, o) for p in o.prompts for s in o.steps for n in o.keys]
    for row in rows:
        one, two = (1000 * statistics.median(ms) for ms in row["ms"].values())
        print(f"{row['prompts']} prompts, {row['steps']} steps of {row['keys']} keys: {one:.1f} us, two calls {two:.1f} "
              f"us, {row['ratio']:.3f} (at least {BAR}), error {row['error']:.1e}", flush=True)
    if o.out:
        with open(o.out, "w") as file:
            json.dump({"machine": measure.describe_machine(), "rows": rows}, file, indent=1)
            file.write("\n")
    return 0 if all(row["ratio"] >= BAR and row["error"] < 0.05 for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
