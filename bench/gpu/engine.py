#!/usr/bin/env python3
"""The loop of an engine (docs/examples/engine.py): tokens a second and latencies on attn, and on PyTorch in the same loop.

    engine.py                        # 64 requests of mixed lengths, prefixes shared, decoding as one CUDA graph
    engine.py --requests 16 --layers 2 --out engine.json

PyTorch's loop writes keys with index_put_ and reads them with varlen_attn and a block table where the version has it and
the GPU serves it; else it gathers the keys of each sequence for scaled_dot_product_attention with a mask of lengths. Both
loops run the same requests in turns. The tokens of attn are compared with dense attention; in 16 bits two tokens may be as
likely, so that a share is reported.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import inspect
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

import torch
import torch.nn.functional as F


def _load_example() -> Any:
    path = Path(__file__).resolve().parents[2] / "docs" / "examples" / "engine.py"
    spec = importlib.util.spec_from_file_location("engine_example", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look for it.
    sys.modules["engine_example"] = module
    spec.loader.exec_module(module)
    return module


example = _load_example()


def rotate(x: Any, positions: Any, rotary: Any) -> Any:
    cos, sin = (y[positions.clamp(0, len(y) - 1)][:, None] for y in rotary[:2])
    a, b = x.float().chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


class Gathered:
    """PyTorch's operations: keys of each sequence are gathered, and a mask says which there are."""

    name = "PyTorch, gathered keys"

    def write(self, q: Any, k: Any, v: Any, pools: Any, step: Any) -> Any:
        """Rotates, writes, and returns the rotated q. A token without a slot goes to the last page, which no
        request has."""
        q, k = (rotate(x, step.positions, step.rotary) for x in (q, k))
        count, page = pools[0].shape[:2]
        slots = torch.where(step.slots < 0, (count - 1) * page, step.slots)
        for pool, new in zip(pools, (k, v)):
            pool.index_put_((slots // page, slots % page), new)
        return q

    def attend(self, q: Any, k: Any, v: Any, pools: Any, step: Any) -> Any:
        q = self.write(q, k, v, pools, step)
        rows = q.view(-1, step.rows, *q.shape[1:]).transpose(1, 2)
        keys, values = (x[step.table.clamp(min=0)].flatten(1, 2).transpose(1, 2) for x in pools)
        ends = step.lengths[:, None] + 1 + torch.arange(step.rows, device=q.device)
        kept = torch.arange(keys.shape[2], device=q.device) < ends[..., None].clamp(min=1)
        found = F.scaled_dot_product_attention(rows, keys, values, attn_mask=kept[:, None], enable_gqa=True)
        return found.transpose(1, 2).flatten(0, 1)


class InPlace(Gathered):
    """PyTorch's varlen_attn, which reads pages where they are."""

    name = "PyTorch, varlen_attn"

    def __init__(self) -> None:
        from torch.nn.attention.varlen import varlen_attn

        if "block_table" not in inspect.signature(varlen_attn).parameters:
            raise ImportError("a varlen_attn without block_table")
        self._attend = varlen_attn

    def attend(self, q: Any, k: Any, v: Any, pools: Any, step: Any) -> Any:
        q = self.write(q, k, v, pools, step)
        count = step.lengths.shape[0]
        offsets = torch.arange(count + 1, dtype=torch.int32, device=q.device) * step.rows
        used = (step.lengths + step.rows).clamp(min=0)
        most = step.table.shape[1] * pools[0].shape[1]
        how = dict(window_size=(-1, 0), enable_gqa=True, seqused_k=used, block_table=step.table.clamp(min=0))
        return self._attend(q, *pools, offsets, None, step.rows, most, **how)


def find_peer(config: Any) -> Any:
    """The better way of PyTorch that runs here."""
    try:
        peer = InPlace()
        engine = example.Engine(example.Model(config), peer)
        with torch.no_grad():
            engine.serve([example.Request([1, 2, 3], 2)])
        return peer
    except (ImportError, RuntimeError, NotImplementedError, TypeError) as error:
        print(f"varlen_attn with a block table is not there: {str(error).splitlines()[0]}")
        return Gathered()


class Timed(example.Engine):  # type: ignore[name-defined,misc]
    """Notes when each token was made."""

    def serve_timed(self, requests: List[Any]) -> Tuple[float, List[float]]:
        """Seconds, and those between the tokens of each request."""
        seen: Dict[int, Tuple[int, float]] = {}
        gaps: List[float] = []
        self.waiting += requests
        began = time.perf_counter()
        with torch.no_grad():
            while self.waiting or self.running:
                self.step()
                now = time.perf_counter()
                for i, request in enumerate(requests):
                    count, last = seen.get(i, (0, began))
                    if len(request.tokens) > count:
                        if count:
                            gaps.append((now - last) / (len(request.tokens) - count))
                        seen[i] = len(request.tokens), now
        return time.perf_counter() - began, gaps


def measure(config: Any, kernels: Dict[str, Any], requests: List[Any], rounds: int) -> Tuple[Dict, Dict]:
    """(rows by name, tokens by name): medians over rounds, in turns."""
    model = example.Model(config)
    seconds: Dict[str, List[float]] = {name: [] for name in kernels}
    gaps: Dict[str, List[float]] = {name: [] for name in kernels}
    tokens: Dict[str, List[List[int]]] = {}
    for turn in range(rounds + 1):
        for name, kernel in kernels.items():
            engine = Timed(model, kernel)
            if config.device == "cuda":
                with torch.no_grad():
                    engine.capture()
            mine = copy.deepcopy(requests)
            spent, between = engine.serve_timed(mine)
            tokens[name] = [x.tokens for x in mine]
            # The first turn compiles.
            if turn:
                seconds[name].append(spent)
                gaps[name] += between
    count = sum(x.count for x in requests)
    rows = {}
    for name in kernels:
        ordered = sorted(gaps[name])
        rows[name] = {
            "tokens_per_s": count / statistics.median(seconds[name]),
            "p50_ms": 1000 * statistics.median(ordered) if ordered else 0.0,
            "p99_ms": 1000 * ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))] if ordered else 0.0,
        }
    return rows, tokens


def main(arguments: Any = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--longest", type=int, default=2048, help="tokens of a prompt")
    parser.add_argument("--tokens", type=int, default=256, help="new tokens of a request, at most")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    is_gpu = torch.cuda.is_available()
    sizes = dict(layers=options.layers, page=16, columns=(options.longest + options.tokens) // 16 + 2)
    if is_gpu:
        large = dict(heads=32, key_heads=8, head_dim=128, hidden=4096, vocabulary=32000, chunk=512)
        sizes.update(large, batch=64, dtype=torch.bfloat16, device="cuda", positions=8192)
    config = example.Config(**sizes)
    config.pages = (config.batch + 8) * config.columns
    requests = example.make_requests(config, options.requests, options.longest, options.tokens)
    peer = find_peer(config)
    kernels = {"attn": example.Kernels(), peer.name: peer}
    rows, tokens = measure(config, kernels, requests, options.rounds)
    model = example.Model(config)
    same = [x == example.generate_dense(model, y) for x, y in zip(tokens["attn"], requests)]
    device = torch.cuda.get_device_name() if is_gpu else "cpu"
    print(f"{device}, PyTorch {torch.__version__}, {options.requests} requests, {options.layers} layers")
    for name, row in rows.items():
        ratio = row["tokens_per_s"] / rows[peer.name]["tokens_per_s"]
        numbers = f"{row['tokens_per_s']:9.0f} tokens/s  {ratio:5.2f}x  p50 {row['p50_ms']:6.2f} ms  p99 {row['p99_ms']:6.2f} ms"
        print(f"{name:24} {numbers}")
    print(f"{sum(same)} of {len(same)} requests have the tokens of dense attention")
    if options.out:
        options.out.write_text(json.dumps({"device": device, "rows": rows, "same": sum(same), "of": len(same)}, indent=1))
    # In 32 bits all of them do.
    return int(not is_gpu and not all(same))


if __name__ == "__main__":
    sys.exit(main())
