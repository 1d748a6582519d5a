#!/usr/bin/env python3
"""Decoding of batches whose sequences differ in length, beside one whose sequences are equal.

    skew.py                          # all cells
    skew.py --cells long --graphs

Keys lie in pages of 64, 32 query heads share 8 key heads, D = 128. A cell has as many live keys, to 1 %, in each of its
calls: `equal` shares them out equally; `skewed` by the cell's lengths; both with parts by length (the option `balance`)
and without, and with parts that another layer has dealt (`plan`). FlashAttention-3 reads the same pages, where
flash_attn_interface is installed. A row is one call: TB/s of live keys and values, and the ratio to `equal` without
balance, within rounds.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
from typing import Any, Callable, Dict, List

import torch

import measure
from attn import serving

HEADS, KEY_HEADS, D, PAGE = 32, 8, 128, 64
# The least ratio of skewed lengths with balance.
BAR = 0.93

Calls = Dict[str, Callable[[], Any]]


def make_lengths(cell: str) -> List[int]:
    """long: one sequence of 128k among 63 of 1k. uniform: 1/64 to 64/64 of 8k. few: 8 sequences, one of 64k. heavy: 256
    sequences of a long-tailed distribution, 64 to 32k. one: a sequence of 8k by itself."""
    if cell == "long":
        return [131072, *[1024] * 63]
    if cell == "uniform":
        return [128 * (1 + (37 * i) % 64) for i in range(64)]
    if cell == "few":
        return [65536, *[2048] * 7]
    if cell == "one":
        return [8192]
    generator = torch.Generator().manual_seed(0)
    return [int(x) for x in (torch.randn(256, generator=generator) + 7.5).exp().clamp(64, 32768)]


CELLS = ("long", "uniform", "few", "heavy", "one")


def make_calls(lengths: List[int]) -> Any:
    """The calls of one batch, which differ in the option alone, and the output of f32 on gathered keys."""
    batch, columns = len(lengths), max(-(-n // PAGE) for n in lengths)
    used = [-(-n // PAGE) for n in lengths]
    pages = torch.randperm(sum(used), device="cuda").int()
    table = torch.full((batch, columns), -1, device="cuda", dtype=torch.int32)
    at = 0
    for b, count in enumerate(used):
        table[b, :count] = pages[at : at + count]
        at += count
    k, v = (torch.randn(at, PAGE, KEY_HEADS, D, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    q = torch.randn(batch, HEADS, D, device="cuda", dtype=torch.bfloat16)
    seqused = torch.tensor(lengths, device="cuda", dtype=torch.int32)

    plan = serving.Plan()

    def call(balance: str, plan: Any = None) -> Any:
        how = {"page_table": table, "seqused_k": seqused, "options": {"balance": balance}, "plan": plan}
        return serving.paged_attention(q, k, v, **how)

    calls: Calls = {"off": lambda: call("off"), "on": lambda: call("on"), "plan": lambda: call("on", plan)}
    if importlib.util.find_spec("flash_attn_interface"):
        from flash_attn_interface import flash_attn_with_kvcache

        calls["fa3"] = lambda: flash_attn_with_kvcache(
            q[:, None], k, v, cache_seqlens=seqused, page_table=table.clamp(min=0), causal=True
        )[:, 0]
    return calls, lambda: attend(q, k, v, table, lengths)


def attend(q: Any, k: Any, v: Any, table: Any, lengths: List[int]) -> Any:
    outputs = []
    for b, n in enumerate(lengths):
        rows = table[b, : -(-n // PAGE)].long()
        keys, values = (x[rows].reshape(-1, KEY_HEADS, D)[:n].transpose(0, 1).float() for x in (k, v))
        query = q[b].reshape(KEY_HEADS, -1, D).float()
        weights = torch.softmax(query @ keys.transpose(1, 2) * D**-0.5, -1)
        outputs.append((weights @ values).reshape(HEADS, D))
    return torch.stack(outputs)


def run(cell: str, o: argparse.Namespace) -> Dict[str, Any]:
    torch.manual_seed(0)
    lengths = make_lengths(cell)
    equal = [-(-sum(lengths) // len(lengths))] * len(lengths)
    calls: Calls = {}
    errors: Dict[str, float] = {}
    for name, of in (("equal", equal), ("skewed", lengths)):
        made, reference = make_calls(of)
        wanted = reference().double()
        for option, call in made.items():
            errors[f"{name}, {option}"] = measure.max_relative(call(), wanted)
            calls[f"{name}, {option}"] = call
    if o.graphs:
        calls = {name: measure.capture(call) for name, call in calls.items()}
    times = measure.interleave(calls, o.rounds, o.seconds)
    if o.graphs:
        times = {name: [t / measure.GRAPH_CALLS for t in ms] for name, ms in times.items()}
    size = 4 * KEY_HEADS * D * sum(lengths)
    return {"cell": cell, "B": len(lengths), "keys": sum(lengths), "most": max(lengths), "bytes": size, "ms": times,
            "errors": errors, "tbs": {name: size / statistics.median(ms) / 1e9 for name, ms in times.items()},
            "ratio": {name: measure.ratio(ms, times["equal, off"]) for name, ms in times.items()}}


def print_row(row: Dict[str, Any]) -> bool:
    """Whether skewed lengths with balance reach the bar."""
    print(f"{row['cell']}: B {row['B']}, {row['keys']} keys, the longest {row['most']}")
    for name, ms in row["ms"].items():
        print(f"  {name:12} {1000 * statistics.median(ms):8.1f} us {row['tbs'][name]:6.3f} TB/s {row['ratio'][name]:.3f} "
              f"+-{measure.spread(ms) / 2:.1%} err {row['errors'][name]:.1e}", flush=True)
    return row["ratio"]["skewed, on"] >= BAR


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=lambda text: text.split(","), default=list(CELLS))
    parser.add_argument("--graphs", action="store_true", help="time CUDA graphs of the calls")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2, help="per call and round")
    parser.add_argument("--out", help="write the result here")
    o = parser.parse_args()
    rows = [run(cell, o) for cell in o.cells]
    reaches = [print_row(row) for row in rows]
    if o.out:
        with open(o.out, "w") as file:
            json.dump({"machine": measure.describe_machine(), "rows": rows}, file, indent=1)
            file.write("\n")
    right = all(error <= 0.05 for row in rows for error in row["errors"].values())
    return 0 if right and all(reaches) else 1


if __name__ == "__main__":
    sys.exit(main())
