#!/usr/bin/env python3
"""attn beside PyTorch's attentions on the GPU, forward: alternating in one process on the same tensors.

Full and causal attention stand beside cuDNN, FlashAttention-3 (where flash_attn_interface is installed),
FlashAttention-2 and FlexAttention, the variants beside FlexAttention. `best` is the ratio to the better of
cuDNN and FlashAttention-3, where both ran. Prints a table and writes a JSON file with every round.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/sdpa.py --configs 'd128-*' --out sdpa.json
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

import torch

import attn
import measure
from peers import NAMES as PEERS
from peers import Checker, make_peers
from variants import NAMES, Tensor, Variant, count_flops, make_variant

DIMS, LENGTHS = (64, 128, 256), (512, 1024, 2048, 4096, 8192, 16384)
TOKENS, HIDDEN, VARIANT_LENGTH, VARIANT_DIM = 16384, 2048, 8192, 128


@dataclass(frozen=True)
class Config:
    """One problem of the grid: B * S = 16384 tokens, H * D = 2048."""

    variant: str
    d: int
    length: int

    @property
    def name(self) -> str:
        return f"d{self.d}-{self.variant}-s{self.length}"


def list_configs(patterns: str) -> List[Config]:
    """Those whose names match one of the comma-separated patterns."""
    configs = [Config(mask, d, s) for d in DIMS for mask in ("full", "causal") for s in LENGTHS]
    configs += [Config(name, VARIANT_DIM, VARIANT_LENGTH) for name in NAMES[2:]]
    return [c for c in configs if any(fnmatch.fnmatch(c.name, p) for p in patterns.split(","))]


def attn_arguments(variant: Variant) -> Dict[str, Any]:
    """What attn.attention is told."""
    if variant.name == "window1024":
        return {"window": (1024, 0)}
    if variant.name == "document":
        ids = attn.assume_sorted(variant.captures["ids_q"])
        return {"causal": True, "mask": lambda b, h, q, kv: ids[b, q] == ids[b, kv]}
    if variant.name == "prefix2048":
        return {"mask": variant.mask}
    if variant.name == "full":
        return {}
    return {"causal": True, "score": variant.score} if variant.score else {"causal": True}


def make_ours(variant: Variant, q: Tensor, k: Tensor, v: Tensor, **more: Any) -> Callable[[], Any]:
    arguments = {**attn_arguments(variant), **more}
    return lambda: attn.attention(q, k, v, **arguments)


def parse_options(text: str) -> Dict[str, Any]:
    """Options of the compiler, such as slack=8,way=long."""
    pairs = [pair.partition("=")[::2] for pair in text.split(",")]
    return {name: int(value) if value.lstrip("-").isdigit() else value for name, value in pairs}


def make_others(also: Sequence[str], variant: Variant, q: Tensor, k: Tensor, v: Tensor) -> Dict[str, Callable[[], Any]]:
    """attn with options, by what they are."""
    return {f"attn {text}": make_ours(variant, q, k, v, options=parse_options(text)) for text in also}


def time_first(call: Callable[[], Any]) -> float:
    """Milliseconds until the first result is there: tracing, compiling, loading and one run."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - start)


def time_calls(config: Config, calls: Dict[str, Callable[[], Any]], flops: float, o: argparse.Namespace) -> Dict[str, Any]:
    """Everybody's rounds, and what follows from them."""
    if getattr(o, "graphs", False):
        graphs = {name: measure.capture(call) for name, call in calls.items()}
        times = measure.interleave(graphs, o.rounds, o.seconds)
        times = {name: [t / measure.GRAPH_CALLS for t in rounds] for name, rounds in times.items()}
    else:
        times = measure.interleave(calls, o.rounds, o.seconds)
    ratios = {name: measure.ratio(times["attn"], times[name]) for name in calls if name != "attn"}
    if "cudnn" in ratios and "fa3" in ratios:
        ratios["best"] = min(ratios["cudnn"], ratios["fa3"])
    return {
        "config": config.name, "variant": config.variant, "B": TOKENS // config.length, "H": HIDDEN // config.d,
        "S": config.length, "D": config.d, "ms": times,
        "tflops": {name: measure.tflops(flops, t) for name, t in times.items()},
        "spread": {name: measure.spread(t) for name, t in times.items()},
        "ratio": ratios,
    }


def make_problem(config: Config) -> Tuple[List[Tensor], Variant, float]:
    """(queries, keys and values), what is done to their scores, and the operations of the forward pass."""
    batch, heads = TOKENS // config.length, HIDDEN // config.d
    torch.manual_seed(0)
    shape = (batch, heads, config.length, config.d)
    tensors = [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
    variant = make_variant(config.variant, batch, heads, config.length)
    return tensors, variant, count_flops(variant, batch, heads, config.length, config.d, config.d)


def measure_config(config: Config, o: argparse.Namespace) -> Dict[str, Any]:
    (q, k, v), variant, flops = make_problem(config)
    ours = make_ours(variant, q, k, v)
    first_ms = time_first(ours)
    calls = {"attn": ours, **make_others(o.also, variant, q, k, v)}
    calls.update(make_peers([p for p in o.peers.split(",") if p], variant, q, k, v))
    check = Checker(variant, q, k, v)
    errors = {name: check(call()) for name, call in calls.items()}
    row = time_calls(config, calls, flops, o)
    row.update({"first_call_ms": first_ms, "errors": errors})
    return row


def peer_error(row: Dict[str, Any]) -> float:
    """The least error of a peer; without peers, what bf16 may do."""
    return min((e for name, e in row["errors"].items() if not name.startswith("attn")), default=1.3e-2)


def list_columns(row: Dict[str, Any], peers: Sequence[str]) -> List[str]:
    """The config, everybody's rate, and the ratios to the best and to these peers."""
    columns = [f"{row['config']:22}"]
    for name in ("attn", *peers):
        columns.append(f"{row['tflops'][name]:7.1f}" if name in row["tflops"] else f"{'-':>7}")
    for name in ("best", *peers):
        columns.append(f"{row['ratio'][name]:6.3f}" if name in row["ratio"] else f"{'-':>6}")
    return columns


def describe(row: Dict[str, Any]) -> str:
    """One line of the table."""
    columns = list_columns(row, PEERS)
    columns.append(f"{row['errors']['attn']:8.1e} {peer_error(row):8.1e} {row['first_call_ms']:6.0f}ms")
    columns += [f"  {name} {rate:.1f}" for name, rate in row["tflops"].items() if name.startswith("attn ")]
    return " ".join(columns)


def make_parser(description: str, seconds: float) -> argparse.ArgumentParser:
    """What the benches of both passes take."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configs", default="*", help="patterns of names such as d128-causal-s8192, with commas between")
    parser.add_argument("--peers", default=",".join(PEERS), help="of " + ", ".join(PEERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=seconds, help="per candidate and round")
    return parser


def main() -> int:
    parser = make_parser(__doc__, seconds=0.4)
    parser.add_argument("--also", action="append", default=[], metavar="OPTIONS", help="attn with options too, such as slack=8")
    parser.add_argument("--graphs", action="store_true", help="replay everybody's calls as CUDA graphs: kernels without their hosts")
    parser.add_argument("--out", help="write the result here; rows of other configs that it holds stay")
    parser.add_argument("--list", action="store_true", help="print the names of the configs")
    o = parser.parse_args()
    configs = list_configs(o.configs)
    if o.list or not configs:
        print("\n".join(c.name for c in configs) or f"--configs: expected a pattern of some name, got {o.configs}")
        return int(not configs)

    result: Dict[str, Any] = {
        **measure.describe_machine(), "rounds": o.rounds, "seconds": o.seconds, "lead": measure.LEAD, "rows": []
    }
    if o.graphs:
        result["graphs"] = True
    print(f"{result['device']}, PyTorch {result['torch']}, cuDNN {result['cudnn']}, bf16; TFLOP/s and ratios, "
          f"medians of {o.rounds} rounds of {o.seconds} s")
    rates, ratios = ("attn", *PEERS), ("best", *PEERS)
    print(" ".join([f"{'config':22}", *[f"{name:>7}" for name in rates], *[f"/{name:>5}" for name in ratios], "   error     peer    first"]))
    failed = []
    for config in configs:
        try:
            row = measure_config(config, o)
        except attn.Error as error:
            print(f"{config.name:22} {error}", flush=True)
            failed.append(config.name)
            continue
        result["rows"].append(row)
        print(describe(row), flush=True)
        if max(error for name, error in row["errors"].items() if name.startswith("attn")) > 3 * peer_error(row):
            failed.append(config.name)
        if o.out:
            write(o.out, result)
    best = [row["ratio"]["best"] for row in result["rows"] if "best" in row["ratio"]]
    if best:
        print(f"to the best of FlashAttention-3 and cuDNN: geometric mean {statistics.geometric_mean(best):.3f}, "
              f"least {min(best):.3f}")
    if failed:
        print("wrong or not run: " + ", ".join(failed))
    return int(bool(failed))


def write(path: str, result: Dict[str, Any]) -> None:
    """Keeps the rows of an earlier run on the same device that this one has not measured."""
    merged = measure.merge_rows(path, result, lambda row: row["config"])
    order = {config.name: i for i, config in enumerate(list_configs("*"))}
    rows = sorted(merged["rows"], key=lambda row: order.get(row["config"], len(order)))
    Path(path).write_text(json.dumps({**merged, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
