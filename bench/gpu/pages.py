#!/usr/bin/env python3
"""Decoding from pages beside the cache in one piece, by the size of pages and by where they lie.

    pages.py                          # sizes, then places of pages of 64, then rows of several sequences
    pages.py --tables sizes --sizes 1,16,64 --batches 1,16 --graphs
    pages.py --tables fixed --keys 32768 --batches 1,4,16,64 --graphs

Pages are in random order. A row is one call of `attn.serving.paged_attention`: TB/s of keys and values, and the ratio to
the cache in one piece without a mask, within rounds. The cache in one piece with a mask of lengths is timed too: no call
with pages is without one. FlashAttention-3 reads the same pages, where flash_attn_interface is installed. In the table of places, pages of 64 lie in six ways: rows before heads (NHD), heads before
rows (HND), keys beside values in one row (content), layers between pages (32 of them), and pages 2 MB apart. In the table
of the adapter, `flash_attn_with_kvcache` is called with `cu_seqlens_q` and without. In the table of
fixed parts, the ratio "of lengths" is that to free parts, which count on the batch.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
from typing import Any, Callable, Dict, List, Tuple

import torch

import attn
import measure
from attn import serving
from attn.integrations import flash_attn

HEADS, KEY_HEADS, D = 32, 8, 128
KEYS = 8192
SIZES = (16, 32, 64, 128, 256)
# The least ratios that are asked for.
BARS = {1: 0.93, 8: 0.95, 16: 0.95, 32: 0.95}
BAR = 0.98
# 2 MB apart.
FAR_BAR = 0.80
FIXED_BAR = 0.95

Calls = Dict[str, Callable[[], Any]]
Pools = Tuple[Any, Any]


def make_cache(batch: int) -> Pools:
    """(B, Hkv, N, D)."""
    return tuple(torch.randn(batch, KEY_HEADS, KEYS, D, device="cuda", dtype=torch.bfloat16) for _ in range(2))


def make_table(batch: int, page: int) -> Any:
    count = batch * KEYS // page
    return torch.randperm(count, device="cuda").reshape(batch, -1).int()


def fill(pool: Any, cache: Any, table: Any) -> Any:
    """The pool (Np, P, Hkv, D), with the keys of the cache where the table says."""
    page = pool.shape[1]
    pool[table.long()] = cache.transpose(1, 2).unflatten(1, (-1, page))
    return pool


def make_pools(place: str, caches: Pools, table: Any, page: int) -> Pools:
    count = table.numel()
    new = lambda *shape: torch.empty(*shape, device="cuda", dtype=torch.bfloat16)  # noqa: E731
    if place == "content":
        both = new(count, page, KEY_HEADS, 2 * D)
        pools = [both[..., :D], both[..., D:]]
    elif place == "HND":
        pools = [new(count, KEY_HEADS, page, D).transpose(1, 2) for _ in caches]
    elif place == "layers":
        pools = [new(count, 32, page, KEY_HEADS, D)[:, 5] for _ in caches]
    elif place == "2 MB apart":
        pools = [new(count, 2**20)[:, : page * KEY_HEADS * D].unflatten(1, (page, KEY_HEADS, D)) for _ in caches]
    else:
        pools = [new(count, page, KEY_HEADS, D) for _ in caches]
    return tuple(fill(pool, cache, table) for pool, cache in zip(pools, caches))


def make_paged(q: Any, pools: Pools, table: Any, lengths: Any) -> Callable[[], Any]:
    return lambda: serving.paged_attention(q, *pools, page_table=table, seqused_k=lengths)


def list_fa3(q: Any, pools: Pools, table: Any, lengths: Any) -> Calls:
    """FlashAttention-3 on the same pages, where it is installed and takes their size."""
    if importlib.util.find_spec("flash_attn_interface") is None:
        return {}
    from flash_attn_interface import flash_attn_with_kvcache

    call = lambda: flash_attn_with_kvcache(q, *pools, cache_seqlens=lengths, page_table=table, causal=True)  # noqa: E731
    try:
        call()
        torch.cuda.synchronize()
    except RuntimeError as error:
        print(f"  fa3 left out: {str(error).splitlines()[0]}")
        return {}
    return {f"fa3 {pools[0].shape[1]}": call}


def prepare(batch: int) -> Tuple[Any, Pools, Any, Calls]:
    q = torch.randn(batch, 1, HEADS, D, device="cuda", dtype=torch.bfloat16)
    caches, lengths = make_cache(batch), torch.full((batch,), KEYS, device="cuda", dtype=torch.int32)
    how = dict(mask=lambda b, h, m, n: n < lengths[b])
    rows = q.transpose(1, 2)
    calls = {
        "one piece": lambda: attn.attention(rows, *caches).transpose(1, 2),
        "one piece, lengths": lambda: attn.attention(rows, *caches, **how).transpose(1, 2),
    }
    return q, caches, lengths, calls


def make_sizes(batch: int, o: argparse.Namespace) -> Calls:
    q, caches, lengths, calls = prepare(batch)
    for page in o.sizes:
        table = make_table(batch, page)
        pools = make_pools("NHD", caches, table, page)
        calls[f"{page}"] = make_paged(q, pools, table, lengths)
        calls.update(list_fa3(q, pools, table, lengths))
    return calls


def make_places(batch: int, o: argparse.Namespace) -> Calls:
    q, caches, lengths, calls = prepare(batch)
    for place in ("NHD", "HND", "content", "layers", "2 MB apart"):
        # 64 sequences of pages that far apart are 32 GB.
        table = make_table(batch, 64)
        calls[place] = make_paged(q, make_pools(place, caches, table, 64), table, lengths)
    return calls


def make_adapter(batch: int, o: argparse.Namespace) -> Calls:
    q, caches, lengths, calls = prepare(batch)
    table = make_table(batch, 64)
    pools = make_pools("NHD", caches, table, 64)
    calls["paged_attention"] = make_paged(q, pools, table, lengths)
    how = dict(cache_seqlens=lengths, block_table=table, causal=True)
    calls["kvcache"] = lambda: flash_attn.flash_attn_with_kvcache(q, *pools, **how)
    rows, cu = q[:, 0], torch.arange(batch + 1, device="cuda", dtype=torch.int32)
    ragged = dict(how, cu_seqlens_q=cu, max_seqlen_q=1)
    calls["kvcache, ragged"] = lambda: flash_attn.flash_attn_with_kvcache(rows, *pools, **ragged)[:, None]
    return calls


def make_fixed(batch: int, o: argparse.Namespace) -> Calls:
    """Parts of fixed keys, whose bits do not depend on the batch, after parts that fill the device."""
    q, caches, lengths, calls = prepare(batch)
    table = make_table(batch, 64)
    pools = make_pools("NHD", caches, table, 64)
    found = {"one piece": calls["one piece"], "free parts": make_paged(q, pools, table, lengths)}
    for split in o.splits:
        given = dict(page_table=table, seqused_k=lengths, fixed_split=split)
        found[f"fixed {split}"] = lambda given=given: serving.paged_attention(q, *pools, **given)
    return found


TABLES = {"sizes": make_sizes, "places": make_places, "adapter": make_adapter, "fixed": make_fixed}


def find_bar(table: str, name: str) -> float:
    if table == "sizes":
        return BARS.get(int(name), BAR) if name.isdigit() else 0.0
    if table == "places":
        return FAR_BAR if name == "2 MB apart" else BAR
    if table == "fixed":
        # Of free parts, the second call.
        return FIXED_BAR if name == "fixed 4096" else 0.0
    return 0.0


def run(table: str, batch: int, o: argparse.Namespace) -> Dict[str, Any]:
    torch.manual_seed(0)
    calls = TABLES[table](batch, o)
    wanted = calls["one piece"]().double()
    errors = {name: measure.max_relative(call(), wanted) for name, call in calls.items()}
    if o.graphs:
        calls = {name: measure.capture(call) for name, call in calls.items()}
    times = measure.interleave(calls, o.rounds, o.seconds, o.lead)
    if o.graphs:
        times = {name: [t / measure.GRAPH_CALLS for t in ms] for name, ms in times.items()}
    size = 4 * batch * KEY_HEADS * KEYS * D
    first, second = list(calls)[:2]
    return {"table": table, "B": batch, "keys": KEYS, "bytes": size, "ms": times, "errors": errors,
            "tbs": {name: size / statistics.median(ms) / 1e9 for name, ms in times.items()},
            "ratio": {name: measure.ratio(ms, times[first]) for name, ms in times.items()},
            "of_lengths": {name: measure.ratio(ms, times[second]) for name, ms in times.items()}}


def print_row(row: Dict[str, Any]) -> None:
    print(f"{row['table']} B{row['B']}, {row['keys']} keys a sequence")
    for name, ms in row["ms"].items():
        bar = find_bar(row["table"], name)
        asked = f" at least {bar}" if bar else ""
        print(f"  {name:20} {1000 * statistics.median(ms):8.1f} us {row['tbs'][name]:6.3f} TB/s {row['ratio'][name]:.3f} "
              f"(of lengths {row['of_lengths'][name]:.3f}) +-{measure.spread(ms) / 2:.1%} err {row['errors'][name]:.1e}{asked}",
              flush=True)


def main() -> int:
    global KEYS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=lambda text: text.split(","), default=list(TABLES))
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=list(SIZES))
    parser.add_argument("--batches", type=lambda text: [int(n) for n in text.split(",")], default=[1, 16, 64])
    parser.add_argument("--splits", type=lambda text: [int(n) for n in text.split(",")], default=[1024, 2048, 4096],
                        help="of the table `fixed`: keys of a part")
    parser.add_argument("--keys", type=int, default=KEYS, help="of a sequence")
    parser.add_argument("--graphs", action="store_true", help="time CUDA graphs of the calls")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="per call and round")
    parser.add_argument("--lead", type=float, default=measure.LEAD, help="seconds before each slice")
    parser.add_argument("--out", help="write the result here")
    o = parser.parse_args()
    KEYS = o.keys
    rows: List[Dict[str, Any]] = []
    for table in o.tables:
        for batch in o.batches:
            rows.append(run(table, batch, o))
            print_row(rows[-1])
    if o.out:
        with open(o.out, "w") as file:
            json.dump({"machine": measure.describe_machine(), "rows": rows}, file, indent=1)
            file.write("\n")
    return 0 if all(error <= 0.05 for row in rows for error in row["errors"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
