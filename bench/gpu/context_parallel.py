#!/usr/bin/env python3
"""Attention over a sequence that the GPUs of this machine hold, beside one GPU and PyTorch's context parallel.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so torchrun --nproc-per-node=2 bench/gpu/context_parallel.py --out context_parallel.json
    context_parallel.py --cases causal,window --lengths 32768 --heads 64:8

A process for each GPU, by torchrun or of its own, NCCL. A row is one mask, length and pair of heads, D = 128, B = 1, bf16:
milliseconds of the slowest rank, forward and backward, and

    of parts    the time of the same call on rows and keys that are there already, over the time with transfers
    of one      the time of one GPU with the whole, over GPUs times the time with all of them
    of model    the time that `explain` predicts with rates measured before the row, over the time
    bits        whether output and gradient of queries of gathered keys have the bits of one GPU; the gradient in two
                passes, whose order of additions is fixed
    MB          that a call of gather takes beside its arguments and results on the rank with most, and what the plan says
    bytes       that each rank received in one call, and what the plan says

"gather at once" fetches all key heads before it computes: what overlap is worth. "gather 2 by 8" has two groups of key
heads, and kernels whose blocks stay leave 8 multiprocessors to transfers (--steps, --reserves). "gather going" is causal attention whose
blocks do not stay. Rates are those of two transfers, and for each row those of one call of the same mask, score and
heads on one GPU, on as many tokens as a GPU has in the row, or on 32768.

All in one job, in turns. PyTorch's own (--peer) is SDPA in its ring, with the fastest of its back ends, for causal and full,
and FlexAttention on all keys for the others; --refusals asks it for what it does not do. Each row is written at once.
Without a GPU, gloo on CPUs: a test of this program.
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
import context_peers
import measure
from attn.distributed import Rates, _mover, context_parallel_attention, explain, plan
from attn.distributed._exchange import exchange
from attn.distributed._explain import Shape, _estimate, count_memory
from attn.distributed._mover import Mover
from context_peers import DEVICE, synchronize

D = 128
METHODS = ("gather", "ring", "ulysses")


def make_documents(length: int) -> Any:
    generator = torch.Generator().manual_seed(7)
    lengths = torch.empty(length // 64).log_normal_(7.3, 1.4, generator=generator).clamp(16, 32768).int()
    ids = torch.repeat_interleave(torch.arange(len(lengths)), lengths)[:length]
    return ids.to(device=DEVICE, dtype=torch.int32)


def make_case(name: str, length: int, arrays: Dict[str, Any]) -> Dict[str, Any]:
    """Arguments of attn. What functions read is left in `arrays`, by name."""
    if name == "causal":
        return {"causal": True}
    if name == "window":
        return {"window": (4096, 0)}
    if name == "documents":
        plain = make_documents(length)
        ids = attn.assume_sorted(plain)
        arrays["ids"] = plain
        return {"mask": lambda b, h, i, j: ids[i] == ids[j], "causal": True}
    if name == "alibi":
        slopes = arrays["slopes"] = torch.exp2(-8.0 * torch.arange(1, 65, device=DEVICE) / 64)
        return {"score": lambda s, b, h, i, j: s - slopes[h] * abs(i - j), "causal": True}
    return {}


# Milliseconds of a call from which one is timed, and from which nothing runs before it in its turn.
LONG = 50


def time_all(calls: Dict[str, Callable[[], Any]], rounds: int) -> Dict[str, List[float]]:
    """Milliseconds of the slowest rank, in turns: all ranks begin together."""
    times: Dict[str, List[float]] = {name: [] for name in calls}
    counts = {}
    for name, call in calls.items():
        # What is made at the first call is not timed.
        call()
        counts[name] = 1 if take_most(lambda: measure.time_batch(call, 1)) > LONG else 3
    for turn in range(rounds):
        for name in list(calls) if turn % 2 else reversed(calls):
            synchronize()
            dist.barrier()
            if counts[name] > 1:
                calls[name]()
            times[name].append(take_most(lambda: measure.time_batch(calls[name], counts[name])))
    return times


def take_most(find: Callable[[], float]) -> float:
    most = torch.tensor([find()], device=DEVICE, dtype=torch.float64)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    return float(most)


# ===- Rates ------------------------------------------------------------------------------------===#


def measure_rates(ranks: int) -> Rates:
    """Of transfers: by two of all keys, of 8 heads. The longer one takes far longer than the host takes to start it."""
    short, long = (1024, 2048) if DEVICE == "cpu" else (8192, 262144)
    times = {}
    for length in (short, long):
        p = plan(length, sharding="contiguous")
        x = torch.zeros(1, 8, length // ranks, D, dtype=torch.bfloat16, device=DEVICE)
        mover = Mover(p.route, None, x.device)
        into = mover.make_buffers([x, x], 8)
        call = lambda: mover.finish(mover.fetch([x, x], into))  # noqa: E731
        call()
        dist.barrier()
        times[length] = 1e-3 * statistics.median(take_most(lambda: measure.time_batch(call, 5)) for _ in range(5))
    moved = lambda length: 2 * 8 * D * 2 * (length - length // ranks)  # noqa: E731
    link = (moved(long) - moved(short)) / max(1e-9, times[long] - times[short])
    latency = max(0.0, times[short] - moved(short) / link)
    return Rates(link=link, latency=latency)


def measure_call(rates: Rates, name: str, length: int, heads: str, ranks: int) -> Rates:
    """Rates with those of computing: of this mask, score and heads, by a call of one GPU on a shorter sequence."""
    length = max(256, min(length // ranks, 32768))
    h, hkv = (int(x) for x in heads.split(":"))
    how = make_case(name, length, {})
    q, k, v = (torch.randn(1, x, length, D, device=DEVICE, dtype=torch.bfloat16, requires_grad=True) for x in (h, hkv, hkv))
    whole = plan(length, 1, **{x: how[x] for x in ("mask", "causal", "window") if x in how})
    parts = make_parts(whole, how, 0)
    call = lambda: parts(q.detach(), k.detach(), v.detach())  # noqa: E731
    both = make_gradient(parts, [q, k, v], torch.ones_like(q))
    seconds = []
    for each in (call, both):
        each()
        measure.time_batch(each, 3)
        seconds.append(1e-3 * statistics.median(take_most(lambda: measure.time_batch(each, 3)) for _ in range(3)))
    work = D * h * whole.work[0]
    return rates._replace(forward=4 * work / seconds[0], backward=10 * work / max(1e-9, seconds[1] - seconds[0]))


def make_gradient(call: Callable[..., Any], inputs: List[Any], d_output: Any, repeat: int = 1) -> Callable[[], Any]:
    """Forward and backward."""

    def run() -> None:
        for x in inputs:
            x.grad = None
        call(*inputs * repeat).backward(d_output)

    return run


def make_parts(p: Any, how: Dict[str, Any], rank: int) -> Callable[..., Any]:
    """The same call, on keys that are there, with the schedule that the call takes."""
    options = {"stay": "on", "slack": 0} if how == {"causal": True} and DEVICE != "cpu" else None
    where = dict(positions=(p.rows[rank], p.fetched[rank]), total=p.total)
    return lambda q, k, v: attn.attention(q, k, v, options=options, **where, **how)


def count_received(call: Callable[[], Any]) -> int:
    """Bytes that this rank receives in a call."""
    received, post = [], _mover.post

    def count(messages: Any, group: Any, *how: Any) -> Any:
        received.extend(x.numel() * x.element_size() for is_sent, x, _ in messages if not is_sent)
        return post(messages, group, *how)

    _mover.post = count
    try:
        call()
    finally:
        _mover.post = post
    return sum(received)


def find_memory(call: Callable[[], Any], result: Any) -> int:
    """Bytes of a call beside what is there and what it returns."""
    if DEVICE == "cpu":
        call()
        return 0
    synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    synchronize()
    return torch.cuda.max_memory_allocated() - before - result.numel() * result.element_size()


# Gradients of queries are sums in one order.
TWO_PASSES = {"fused": "off"}


def has_query_bits(p: Any, how: Dict[str, Any], whole: List[Any], d_output: Any) -> bool:
    """Whether gradients of this rank's queries have the bits of one GPU, in two passes."""
    exact = [x.detach().requires_grad_() for x in whole]
    attn.attention(*exact, options=TWO_PASSES, **how).backward(d_output)
    mine = [p.shard(x.detach(), 2).contiguous().requires_grad_() for x in whole]
    found = context_parallel_attention(*mine, plan=p, options=TWO_PASSES, **how)
    found.backward(p.shard(d_output, 2).contiguous())
    return torch.equal(mine[0].grad, p.shard(exact[0].grad, 2))


def gather_numbers(x: int) -> List[int]:
    """Of all ranks."""
    each = [torch.zeros(1, dtype=torch.int64, device=DEVICE) for _ in range(dist.get_world_size())]
    dist.all_gather(each, torch.tensor([x], device=DEVICE))
    return [int(x) for x in each]


def run_case(
    o: argparse.Namespace, rank: int, ranks: int, name: str, length: int, heads: str, rates: Rates
) -> Optional[Dict[str, Any]]:
    h, hkv = (int(x) for x in heads.split(":"))
    rates = measure_call(rates, name, length, heads, ranks)
    arrays: Dict[str, Any] = {}
    how = make_case(name, length, arrays)
    generator = torch.Generator(DEVICE).manual_seed(length)
    make = lambda count: torch.randn(1, count, length, D, device=DEVICE, dtype=torch.bfloat16, generator=generator)  # noqa: E731
    whole, d_output = [make(h), make(hkv), make(hkv)], make(h)
    masks = {x: how[x] for x in ("mask", "causal", "window") if x in how}
    plans = {method: plan(length, method=method, **masks) for method in o.methods}
    options: Dict[str, Any] = {}
    p = plans["gather"]
    if p.count_steps(1, h, hkv) > 1:
        plans["gather at once"] = plan(length, method="gather", steps=1, **masks)
    if name == "causal" and DEVICE != "cpu":
        plans["gather going"], options["gather going"] = p, {"stay": "off"}
    for steps in o.steps:
        for reserve in o.reserves:
            of = f"gather {steps} by {reserve}"
            plans[of], options[of] = plan(length, method="gather", steps=steps, **masks), {"reserve": reserve}
    calls: Dict[str, Callable[[], Any]] = {}
    results: Dict[str, Any] = {}
    for method, of in plans.items():
        mine = [of.shard(x, 2).contiguous().requires_grad_() for x in whole]
        d_mine = of.shard(d_output, 2).contiguous()
        call = lambda q, k, v, of=of, method=method: context_parallel_attention(  # noqa: E731
            q, k, v, plan=of, options=options.get(method), **how)
        with torch.no_grad():
            results[method] = call(*mine)
        calls[method] = lambda call=call, mine=mine: call(*[x.detach() for x in mine])
        if not o.forward:
            calls[f"{method}, both"] = make_gradient(call, mine, d_mine)
            calls[f"{method}, both"]()
    taken = find_memory(calls["gather"], results["gather"])
    received = gather_numbers(count_received(calls["gather"]))
    mine = [p.shard(x, 2).contiguous() for x in whole]
    there = [mine[0].requires_grad_(), *(exchange(x, 2, p.route, None).requires_grad_() for x in mine[1:])]
    parts = make_parts(p, how, rank)
    calls["parts"] = lambda: parts(*[x.detach() for x in there])
    if not o.forward:
        calls["parts, both"] = make_gradient(parts, there, p.shard(d_output, 2).contiguous())
    error, has_bits = 0.0, [-1, -1]
    if length <= o.longest:
        one = lambda q, k, v: attn.attention(q, k, v, **how)  # noqa: E731
        leaves = [x.clone().requires_grad_() for x in whole]
        with torch.no_grad():
            exact = one(*leaves)
        calls["one"] = lambda: one(*[x.detach() for x in leaves])
        if not o.forward:
            calls["one, both"] = make_gradient(one, leaves, d_output)
        for method, found in results.items():
            # Some heads: the measure is in f64.
            error = max(error, measure.max_relative(found[:, ::8], plans[method].shard(exact[:, ::8], 2)))
        has_bits[0] = int(torch.equal(results["gather"], p.shard(exact, 2)))
        del exact
        if not o.forward:
            has_bits[1] = int(has_query_bits(p, how, leaves, d_output))
    results.clear()
    failed = context_peers.add_calls(calls, o.peer, name, arrays, whole, rank, ranks)
    times = time_all(calls, o.rounds)
    bits = [min(gather_numbers(x)) for x in has_bits]
    memory = max(gather_numbers(taken))
    worst = take_most(lambda: error)
    if rank:
        return None
    shape = Shape(1, h, hkv, D, 2)
    costs = [_estimate(p, r, shape, rates) for r in range(ranks)]
    tell = lambda x: None if x < 0 else bool(x)  # noqa: E731
    return {"case": name, "S": length, "heads": heads, "ranks": ranks, "plan": repr(p), "steps": p.count_steps(1, h, hkv),
            "ms": times, "error": worst, "bits": tell(bits[0]), "bits_of_d_query": tell(bits[1]),
            "memory": memory, "expected_memory": max(count_memory(p, r, shape)[0] for r in range(ranks)),
            "received": received, "expected": [2 * hkv * D * 2 * p.count_foreign(r) for r in range(ranks)],
            "neighbours": 2 * hkv * D * 2 * 4096 if name == "window" else None,
            "rates": rates._asdict(), "predicted": {"gather": 1e3 * max(c.total for c in costs),
                          "gather, both": 1e3 * max(c.total + c.backward + c.exposed_back for c in costs)},
            "peers_failed": failed,
            "explain": explain(p, heads=h, key_heads=hkv, head_dim=D, rates=rates)}


def print_row(row: Dict[str, Any], seconds: float) -> None:
    median = {name: statistics.median(ms) for name, ms in row["ms"].items()}
    print(f"{row['case']} S {row['S']} heads {row['heads']} on {row['ranks']}: {row['plan']} steps {row['steps']} error {row['error']:.1e} "
          f"bits {row['bits']} of d_query {row['bits_of_d_query']}, after {seconds:.0f} s")
    print(f"  MB {row['memory'] / 1e6:.1f}, by the plan {row['expected_memory'] / 1e6:.1f}; received {row['received']}, "
          f"by the plan {row['expected']}")
    for name, ms in median.items():
        kind = ", both" if name.endswith(", both") else ""
        ratios = []
        if name.split(",")[0] not in ("parts", "one"):
            for other, factor in (("parts", 1), ("one", row["ranks"])):
                if other + kind in median:
                    ratios.append(f"of {other} {median[other + kind] / factor / ms:.3f}")
        if name in row["predicted"]:
            ratios.append(f"of model {row['predicted'][name] / ms:.3f}")
        print(f"  {name:22} {ms:9.3f} ms  {' '.join(ratios)}", flush=True)


def work(rank: int, ranks: int, o: argparse.Namespace) -> None:
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(o.port))
    began, document = time.time(), {"machine": measure.describe_machine(), "rates": None, "rows": [], "refusals": []}
    context_peers.start(rank, ranks)

    def is_over() -> bool:
        over = torch.tensor([time.time() - began > o.limit], device=DEVICE, dtype=torch.int32)
        dist.broadcast(over, 0)
        return bool(over)

    def write() -> None:
        if o.out and not rank:
            with open(o.out, "w") as file:
                json.dump(document, file, indent=1)
                file.write("\n")

    rates = measure_rates(ranks)
    document["rates"] = rates._asdict()
    if not rank:
        print(f"rates {rates}, after {time.time() - began:.0f} s", flush=True)
    write()
    for cell in o.cells or [f"{name}/{length}/{heads}" for length in o.lengths for heads in o.heads for name in o.cases]:
        if is_over():
            break
        name, length, heads = cell.split("/")
        row = run_case(o, rank, ranks, name, int(length), heads, rates)
        if row is not None:
            document["rows"].append(row)
            print_row(row, time.time() - began)
        write()
        if DEVICE != "cpu":
            torch.cuda.empty_cache()
    if o.refusals and not is_over():
        for line in context_peers.find_refusals(rank, ranks):
            document["refusals"].append(line)
            if not rank:
                print(f"{line}, after {time.time() - began:.0f} s", flush=True)
            write()
    dist.destroy_process_group()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",") if text else []  # noqa: E731
    numbers = lambda text: [int(x) for x in text.split(",")]  # noqa: E731
    parser.add_argument("--cases", type=words, default=["causal", "full", "window", "documents", "alibi"])
    parser.add_argument("--lengths", type=numbers, default=[32768, 131072])
    parser.add_argument("--heads", type=words, default=["64:8", "16:16"])
    parser.add_argument("--cells", type=words, default=[], help="in place of these three: causal/32768/64:8,...")
    parser.add_argument("--methods", type=words, default=["gather"], help="gather, and ring or ulysses beside it")
    parser.add_argument("--steps", type=numbers, default=[], help="groups of key heads to time beside the plan's choice")
    parser.add_argument("--reserves", type=numbers, default=[0], help="multiprocessors that these leave to transfers")
    parser.add_argument("--longest", type=int, default=131072, help="the longest sequence that one GPU is given")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--forward", action="store_true", help="the forward pass alone")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no case begins")
    parser.add_argument("--port", type=int, default=29511)
    parser.add_argument("--peer", action="store_true", help="time PyTorch's context parallel too")
    parser.add_argument("--refusals", action="store_true", help="list what PyTorch's context parallel refuses, and attn serves")
    parser.add_argument("--out", help="write the result here")
    o = parser.parse_args()
    if "gather" not in o.methods:
        parser.error("--methods: expected gather among them")
    if "RANK" in os.environ:
        work(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), o)
        return 0
    ranks = torch.cuda.device_count() if DEVICE != "cpu" else 2
    if ranks < 2:
        print("expected two GPUs or more, got", ranks)
        return 1
    torch.multiprocessing.spawn(work, (ranks, o), nprocs=ranks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
