#!/usr/bin/env python3
"""attn beside PyTorch's attentions on the GPU, backward: alternating in one process on the same tensors.

The grid, the peers and the rules are those of sdpa.py. What is timed is torch.autograd.grad of q, k and v
from one recorded output, so that everybody pays autograd's own cost; backward counts 2.5 times the forward's
operations, whatever is computed again. Errors are those of the gradients of one head against f64.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/sdpa_backward.py --configs 'd128-*' --out backward.json
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any, Callable, Dict, List

import torch

import measure
from peers import NAMES as PEERS
from peers import make_peers
from sdpa import Config, list_columns, list_configs, make_ours, make_parser, make_problem, time_calls, time_first, write
from variants import Tensor, Variant

Call = Callable[[], Any]
# Who has a column: attn's deterministic form, of which others are no peers, and the peers.
DETERMINISTIC = "in-order"
COLUMNS = (DETERMINISTIC, *PEERS)


def make_backward(forward: Call, tensors: List[Tensor], d_output: Tensor) -> Call:
    """The gradients of what `forward` gives, recorded once."""
    output = forward()
    return lambda: torch.autograd.grad(output, tensors, d_output, retain_graph=True)


def find_reference(variant: Variant, tensors: List[Tensor], d_output: Tensor, head: int) -> List[Tensor]:
    """Gradients of one head of the first batch in f64, by rows at a time."""
    q, k, v = (x[0, head].detach().double().requires_grad_() for x in tensors)
    length, d = q.shape
    total: List[Tensor] = [torch.zeros_like(x) for x in (q, k, v)]
    columns = torch.arange(length, device=q.device)
    for first in range(0, length, 2048):
        rows = torch.arange(first, min(first + 2048, length), device=q.device)
        s = q[rows] @ k.T / math.sqrt(d)
        at = (0, torch.tensor(head, device=q.device), rows[:, None], columns[None])
        if variant.score:
            s = variant.score(s, *at)
        if variant.mask:
            s = s.masked_fill(~variant.mask(*at), -math.inf)
        output = torch.softmax(s, -1) @ v
        found = torch.autograd.grad(output, (q, k, v), d_output[0, head, rows].double())
        total = [x + y for x, y in zip(total, found)]
    return total


def measure_config(config: Config, o: argparse.Namespace) -> Dict[str, Any]:
    tensors, variant, forward_flops = make_problem(config)
    tensors = [x.requires_grad_() for x in tensors]
    d_output = torch.randn_like(tensors[0], requires_grad=False)
    flops = 2.5 * forward_flops
    ours = make_backward(make_ours(variant, *tensors), tensors, d_output)
    first_ms = time_first(ours)
    peers = make_peers([p for p in o.peers.split(",") if p], variant, *tensors)
    calls = {"attn": ours}
    if o.deterministic:
        calls[DETERMINISTIC] = make_backward(make_ours(variant, *tensors, options={"fused": "off"}), tensors, d_output)
    for name, call in peers.items():
        calls[name] = make_backward(call, getattr(call, "tensors", tensors), d_output)
    head = min(1, tensors[0].shape[1] - 1)
    reference = find_reference(variant, tensors, d_output, head)
    errors = {
        name: [((x[0, head].double() - r).norm() / r.norm()).item() for x, r in zip(call(), reference)]
        for name, call in calls.items()
    }
    del reference
    return {**time_calls(config, calls, flops, o), "first_call_ms": first_ms, "errors": errors}


def peer_error(row: Dict[str, Any], otherwise: float) -> float:
    """The least error of a peer, of its worst gradient."""
    errors = [max(e) for name, e in row["errors"].items() if name not in ("attn", DETERMINISTIC)]
    return min(errors, default=otherwise)


def describe(row: Dict[str, Any]) -> str:
    """One line of the table."""
    columns = list_columns(row, COLUMNS)
    ours = max(row["errors"]["attn"])
    theirs = peer_error(row, otherwise=math.nan)
    columns.append(f"{ours:8.1e} {theirs:8.1e} {row['first_call_ms']:6.0f}ms")
    return " ".join(columns)


def main() -> int:
    parser = make_parser(__doc__, seconds=0.3)
    parser.add_argument("--out", help="write the result here; rows of other configs that it holds stay")
    parser.add_argument("--deterministic", action="store_true", help="time attn's gradients in two passes too, the same bits each time")
    o = parser.parse_args()
    heads = [f"{'':22}", *[f"{name:>7}" for name in ("attn", *COLUMNS)], *[f"/{name:>5}" for name in ("best", *COLUMNS)]]
    print(" ".join(heads), "   error   theirs   first", flush=True)
    result: Dict[str, Any] = {**measure.describe_machine(), "rounds": o.rounds, "seconds": o.seconds, "rows": []}
    is_right = True
    for config in list_configs(o.configs):
        try:
            row = measure_config(config, o)
        except Exception as error:  # One that fails leaves the others.
            print(f"{config.name:22} failed: {str(error).splitlines()[0]}", flush=True)
            is_right = False
            continue
        result["rows"].append(row)
        print(describe(row), flush=True)
        is_right &= max(row["errors"]["attn"]) <= 2 * peer_error(row, otherwise=1e-2) + 1e-3
        if o.out:
            write(o.out, result)
        torch.cuda.empty_cache()
    return int(not is_right)


if __name__ == "__main__":
    sys.exit(main())
