#!/usr/bin/env python3
"""How a kernel's rate settles behind another one: how long the lead of a measurement has to be (measure.LEAD).

The chip controls its power over some time, so a kernel that follows one with more power starts slower than it goes on, and one
that follows an idle chip or one with less power faster. Prints TFLOP/s of the first slices, then means of longer ones.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/settle.py --configs d128-full-s8192 --peers cudnn,fa3 --out settle.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import torch

import measure
import sdpa
from peers import make_peers

SLICE, SLICES, SHOWN, LONG = 0.03, 40, 12, 7
BEFORE = 0.8
IDLE = "idle"


def time_slices(call: Callable[[], Any], seconds: float, count: int) -> List[float]:
    """Milliseconds per call in each of `count` slices, one behind the other."""
    calls = max(1, round(1000 * seconds / measure.time_batch(call, 5)))
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    events[0].record()
    for event in events[1:]:
        for _ in range(calls):
            call()
        event.record()
    events[-1].synchronize()
    return [start.elapsed_time(end) / calls for start, end in zip(events, events[1:])]


def measure_pair(calls: Dict[str, Callable[[], Any]], before: str, name: str) -> List[float]:
    """The slices of one behind the other, or behind a second of nothing."""
    if before == IDLE:
        torch.cuda.synchronize()
        time.sleep(1)
    else:
        time_slices(calls[before], BEFORE, 1)
    return time_slices(calls[name], SLICE, SLICES)


def measure_config(config: sdpa.Config, peers: List[str]) -> Dict[str, Any]:
    (q, k, v), variant, flops = sdpa.make_problem(config)
    calls = {"attn": sdpa.make_ours(variant, q, k, v), **make_peers(peers, variant, q, k, v)}
    pairs = {}
    print(config.name)
    for before, name in itertools.permutations([*calls, IDLE], 2):
        if name == IDLE:
            continue
        rates = [flops / t / 1e9 for t in measure_pair(calls, before, name)]
        means = [statistics.mean(rates[i : i + LONG]) for i in range(SHOWN, SLICES, LONG)]
        print(f"{before:>6} > {name:6}", *(f"{x:.0f}" for x in rates[:SHOWN]), "|", *(f"{x:.0f}" for x in means), flush=True)
        pairs[f"{before} > {name}"] = {"first": rates[:SHOWN], "means": means}
    return {"config": config.name, "tflops": pairs}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configs", default="d128-full-s8192,d256-full-s8192,d128-causal-s16384", help="as of sdpa.py")
    parser.add_argument("--peers", default="cudnn,fa3")
    parser.add_argument("--out", help="write the result here")
    o = parser.parse_args()
    rows = [measure_config(config, o.peers.split(",")) for config in sdpa.list_configs(o.configs)]
    if o.out:
        result = {**measure.describe_machine(), "slice": SLICE, "before": BEFORE, "mean_of": LONG, "rows": rows}
        Path(o.out).write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
