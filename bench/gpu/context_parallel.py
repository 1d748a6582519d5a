#!/usr/bin/env python3
"""Attention over a sequence that the GPUs of this machine hold, beside one GPU and PyTorch's context parallel.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/context_parallel.py --out context_parallel.json
    context_parallel.py --cases causal,window --lengths 32768 --heads 64:8

A process for each GPU, NCCL. A row is one mask, length and pair of heads, D = 128, B = 1, bf16: milliseconds of the slowest
rank, forward and backward, and

    of parts    the time of the same call on rows and keys that are there already, over the time with transfers
    of one      the time of one GPU with the whole, over GPUs times the time with all of them
    bits        whether the output of gathered keys has the bits of one GPU
    MB          that a call of gather takes beside its arguments and results on the rank with most, and what the plan says

"gather at once" fetches all key heads before it computes: what overlap is worth.

All in one job, in turns. PyTorch's own is SDPA in its ring, with the back end that it chooses, for causal and full.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from typing import Any, Callable, Dict, List, Optional

import torch
import torch.distributed as dist
import torch.multiprocessing

import attn
import measure
from attn.distributed import context_parallel_attention, explain, plan
from attn.distributed._call import make_numbers, make_table
from attn.distributed._exchange import Route, exchange
from attn.distributed._explain import Shape, count_memory
from attn._functions_of_parts import Functions, make_mask, place
from attn._problem import check_causal, check_window

D = 128
METHODS = ("gather", "ring", "ulysses")


def make_documents(length: int) -> Any:
    generator = torch.Generator().manual_seed(7)
    lengths = torch.empty(length // 64).log_normal_(7.3, 1.4, generator=generator).clamp(16, 32768).int()
    ids = torch.repeat_interleave(torch.arange(len(lengths)), lengths)[:length]
    return ids.to(device="cuda", dtype=torch.int32)


def make_case(name: str, length: int) -> Dict[str, Any]:
    if name == "causal":
        return {"causal": True}
    if name == "window":
        return {"window": (4096, 0)}
    if name == "documents":
        ids = attn.assume_sorted(make_documents(length))
        return {"mask": lambda b, h, i, j: ids[i] == ids[j], "causal": True}
    if name == "alibi":
        slopes = torch.exp2(-8.0 * torch.arange(1, 65, device="cuda") / 64)
        return {"score": lambda s, b, h, i, j: s - slopes[h] * abs(i - j), "causal": True}
    return {}


def time_all(calls: Dict[str, Callable[[], Any]], rounds: int) -> Dict[str, List[float]]:
    """Milliseconds of the slowest rank, in turns: all ranks begin together."""
    times: Dict[str, List[float]] = {name: [] for name in calls}
    for name, call in calls.items():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            torch.cuda.synchronize()
            dist.barrier()
            call()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(3):
                call()
            end.record()
            end.synchronize()
            most = torch.tensor([start.elapsed_time(end) / 3], device="cuda")
            dist.all_reduce(most, op=dist.ReduceOp.MAX)
            times[name].append(float(most))
    return times


def make_gradient(call: Callable[..., Any], inputs: List[Any], d_output: Any) -> Callable[[], Any]:
    """Forward and backward."""

    def run() -> None:
        for x in inputs:
            x.grad = None
        call(*inputs).backward(d_output)

    return run


def make_parts(p: Any, how: Dict[str, Any], options: Any, rank: int) -> Callable[..., Any]:
    """The same call, on keys that are there."""
    how = dict(how)
    causal, window = check_causal(how.pop("causal", False)), check_window(how.pop("window", None))
    mask = make_mask(how.pop("mask", None), causal, window, 0)
    tables = [make_table(x[rank], torch.device("cuda", rank)) for x in (p.rows, p.fetched)]
    score, mask = place(Functions(how.get("score"), mask), *tables, make_numbers(p.total, torch.device("cuda", rank)))
    return lambda q, k, v: attn.attention(q, k, v, score=score, mask=mask, options=options)


def find_pytorch(is_causal: bool, rank: int, ranks: int) -> Optional[Callable[..., Any]]:
    """SDPA under PyTorch's context parallel; its tensors are sharded where it wants them."""
    try:
        from torch.distributed.tensor.experimental import context_parallel
    except ImportError:
        return None
    mesh = dist.init_device_mesh("cuda", (ranks,))

    def run(q: Any, k: Any, v: Any) -> Any:
        buffers = [q, k, v]
        with context_parallel(mesh, buffers=buffers, buffer_seq_dims=[2, 2, 2]):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

    return run


def find_memory(call: Callable[[], Any], result: Any) -> int:
    """Bytes of a call beside what is there and what it returns."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before - result.numel() * result.element_size()


def run_case(o: argparse.Namespace, rank: int, ranks: int, name: str, length: int, heads: str) -> Optional[Dict[str, Any]]:
    h, hkv = (int(x) for x in heads.split(":"))
    how = make_case(name, length)
    options = {"stay": o.stay} if o.stay != "auto" else None
    generator = torch.Generator("cuda").manual_seed(length)
    make = lambda count: torch.randn(1, count, length, D, device="cuda", dtype=torch.bfloat16, generator=generator)  # noqa: E731
    whole, d_output = [make(h), make(hkv), make(hkv)], make(h)
    masks = {x: how[x] for x in ("mask", "causal", "window") if x in how}
    plans = {method: plan(length, method=method, **masks) for method in METHODS if method in o.methods}
    if "gather" in plans:
        plans["gather at once"] = plan(length, method="gather", steps=1, **masks)
    calls: Dict[str, Callable[[], Any]] = {}
    results: Dict[str, Any] = {}
    for method, p in plans.items():
        mine = [p.shard(x, 2).contiguous().requires_grad_() for x in whole]
        d_mine = p.shard(d_output, 2).contiguous()
        call = lambda q, k, v, p=p: context_parallel_attention(q, k, v, plan=p, options=options, **how)  # noqa: E731
        with torch.no_grad():
            results[method] = call(*mine)
        calls[method] = lambda call=call, mine=mine: call(*[x.detach() for x in mine])
        calls[f"{method}, both"] = make_gradient(call, mine, d_mine)
    p = plans.get("gather")
    taken = find_memory(calls["gather"], results["gather"]) if p is not None else 0
    error, has_bits = 0.0, None
    if p is not None:
        mine = [p.shard(x, 2).contiguous() for x in whole]
        d_mine = p.shard(d_output, 2).contiguous()
        route = Route(p.keys, p.fetched)
        there = [mine[0], *(exchange(x, 2, route, None).requires_grad_() for x in mine[1:])]
        parts = make_parts(p, how, options, rank)
        there[0] = there[0].requires_grad_()
        calls["parts"] = lambda: parts(*[x.detach() for x in there])
        calls["parts, both"] = make_gradient(parts, there, d_mine)
    if length <= o.longest:
        one = lambda q, k, v: attn.attention(q, k, v, **how)  # noqa: E731
        leaves = [x.clone().requires_grad_() for x in whole]
        with torch.no_grad():
            exact = one(*leaves)
        for method, found in results.items():
            error = max(error, measure.max_relative(found, plans[method].shard(exact, 2)))
        has_bits = p is None or torch.equal(results["gather"], p.shard(exact, 2))
        calls["one"] = lambda: one(*[x.detach() for x in leaves])
        calls["one, both"] = make_gradient(one, leaves, d_output)
    if o.peer and name in ("causal", "full") and h == hkv:
        peer = find_pytorch(name == "causal", rank, ranks)
        if peer is not None:
            part = [x[:, :, : length // ranks].contiguous() for x in whole]
            calls["pytorch"] = lambda: peer(*[x.clone() for x in part])
    times = time_all(calls, o.rounds)
    bits = torch.tensor([1 if has_bits else 0], device="cuda")
    dist.all_reduce(bits, op=dist.ReduceOp.MIN)
    worst = torch.tensor([error], device="cuda")
    dist.all_reduce(worst, op=dist.ReduceOp.MAX)
    most = torch.tensor([taken], device="cuda")
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    if rank:
        return None
    shape = Shape(1, h, hkv, D, 2)
    expected = max(count_memory(p, r, shape)[0] for r in range(ranks)) if p else None
    return {"case": name, "S": length, "heads": heads, "ranks": ranks, "plan": repr(p), "ms": times, "error": float(worst),
            "bits": bool(bits) if has_bits is not None else None,
            "memory": int(most), "expected_memory": expected,
            "foreign": [p.count_foreign(r) for r in range(ranks)] if p else None,
            "explain": explain(p, heads=h, key_heads=hkv, head_dim=D) if p else None}


def print_row(row: Dict[str, Any]) -> None:
    median = {name: statistics.median(ms) for name, ms in row["ms"].items()}
    print(f"{row['case']} S {row['S']} heads {row['heads']} on {row['ranks']}: {row['plan']} error {row['error']:.1e} bits {row['bits']}")
    if row["expected_memory"]:
        print(f"  MB {row['memory'] / 1e6:.1f}, by the plan {row['expected_memory'] / 1e6:.1f}")
    for name, ms in median.items():
        kind = ", both" if name.endswith(", both") else ""
        ratios = []
        if name.split(",")[0] in (*METHODS, "gather at once"):
            for other, factor in (("parts", 1), ("one", row["ranks"])):
                if other + kind in median:
                    ratios.append(f"of {other} {median[other + kind] / factor / ms:.3f}")
        print(f"  {name:14} {ms:9.3f} ms  {' '.join(ratios)}", flush=True)


def work(rank: int, ranks: int, o: argparse.Namespace) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(o.port))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank))
    rows, began = [], time.time()
    for length in o.lengths:
        for heads in o.heads:
            for name in o.cases:
                over = torch.tensor([time.time() - began > o.limit], device="cuda", dtype=torch.int32)
                dist.broadcast(over, 0)
                if over:
                    continue
                row = run_case(o, rank, ranks, name, length, heads)
                if row is not None:
                    rows.append(row)
                    print_row(row)
                    if o.out:
                        with open(o.out, "w") as file:
                            json.dump({"machine": measure.describe_machine(), "rows": rows}, file, indent=1)
                            file.write("\n")
    dist.destroy_process_group()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--cases", type=words, default=["causal", "full", "window", "documents", "alibi"])
    parser.add_argument("--lengths", type=lambda text: [int(x) for x in text.split(",")], default=[32768, 131072])
    parser.add_argument("--heads", type=words, default=["64:8", "16:16"])
    parser.add_argument("--methods", type=words, default=list(METHODS))
    parser.add_argument("--longest", type=int, default=131072, help="the longest sequence that one GPU is given")
    parser.add_argument("--stay", default="auto", help="the compiler's option of calls on parts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no case begins")
    parser.add_argument("--port", type=int, default=29511)
    parser.add_argument("--peer", action="store_true", help="time PyTorch's context parallel too")
    parser.add_argument("--out", help="write the result here")
    o = parser.parse_args()
    ranks = torch.cuda.device_count()
    if ranks < 2:
        print("expected two GPUs or more, got", ranks)
        return 1
    torch.multiprocessing.spawn(work, (ranks, o), nprocs=ranks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
