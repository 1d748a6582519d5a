#!/usr/bin/env python3
"""Attention of a part of a whole on one GPU, by how a call is told where its rows and keys stand, forward and backward.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/positions.py --out positions.json

The part is that of one rank of two by zigzag: the first and the last quarter of 32768 positions. B = 1, 16 heads, D = 128, bf16.

    own own        the whole with half of the heads, which has as many pairs: what positions cost
    table own      the rows of the part, on all keys
    table table    the same, and all keys by a table too
    own table      all rows, on the keys of the part
    table table k  the same, and all rows by a table too

Milliseconds of a call, alternating in one process, and ratios to "own own". `tiles` says whether the mask is decided by tile in
each kernel; `error` compares with the whole, for outputs and gradients of queries where rows are parts.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch

import attn
import measure

D = 128
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Part(NamedTuple):
    rows: Optional[torch.Tensor]
    keys: Optional[torch.Tensor]
    is_table: Tuple[bool, bool]


def make_case(name: str, heads: int) -> Dict[str, Any]:
    if name == "window":
        return {"window": (4096, 0)}
    if name == "alibi":
        slopes = torch.exp2(-8.0 * torch.arange(1, heads + 1, device=DEVICE) / heads)
        return {"score": lambda s, b, h, i, j: s - slopes[h] * abs(i - j), "causal": True}
    return {"causal": True}


def list_parts(length: int) -> Dict[str, Part]:
    places = torch.arange(length, device=DEVICE, dtype=torch.int32)
    half = torch.cat([places[: length // 4], places[-(length // 4) :]])
    return {
        "own own": Part(None, None, (False, False)),
        "table own": Part(half, None, (True, False)),
        "table table": Part(half, None, (True, True)),
        "own table": Part(None, half, (False, True)),
        "table table k": Part(None, half, (True, True)),
    }


def take(x: torch.Tensor, places: Optional[torch.Tensor]) -> torch.Tensor:
    return (x if places is None else x[:, :, places.long()]).detach().contiguous().requires_grad_(True)


def describe_tiles(where: Dict[str, Any], how: Dict[str, Any]) -> List[str]:
    """Of the forward kernel and of those of gradients."""
    told = dict(dtype="bfloat16", head_dim=D, device="cuda", **how)
    if where:
        told["positions"] = tuple(None if x is None else "table" for x in where["positions"])
    texts = [str(attn.explain(gradient=gradient, **told)) for gradient in (False, True)]
    return ["undecided" if "cannot be decided" in text else "decided" for text in texts]


def measure_case(o: argparse.Namespace, name: str) -> Dict[str, Any]:
    torch.manual_seed(0)
    length, total = o.length, (o.length, o.length)
    whole = [torch.randn(1, o.heads, length, D, device=DEVICE, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    d_output = torch.randn_like(whole[0])
    how = make_case(name, o.heads)
    exact = attn.attention(*whole, **how)
    d_query = torch.autograd.grad(exact, whole[:1], d_output)[0]
    forwards: Dict[str, Callable] = {}
    backwards: Dict[str, Callable] = {}
    row: Dict[str, Any] = {"case": name, "S": length, "heads": o.heads, "tiles": {}, "error": {}}
    places = torch.arange(length, device=DEVICE, dtype=torch.int32)
    for label, part in list_parts(length).items():
        x = [take(whole[0], part.rows), take(whole[1], part.keys), take(whole[2], part.keys)]
        d = d_output if part.rows is None else d_output[:, :, part.rows.long()].contiguous()
        mine, where = make_case(name, o.heads), {}
        if label == "own own":
            x, d = [take(each[:, : o.heads // 2], None) for each in x], d[:, : o.heads // 2].contiguous()
            mine = make_case(name, o.heads // 2)
        else:
            told = [
                (places if mine is None else mine) if is_table else None
                for mine, is_table in zip((part.rows, part.keys), part.is_table)
            ]
            where = {"positions": tuple(told), "total": total}
        call = lambda x=x, mine=mine, where=where: attn.attention(*x, **mine, **where)  # noqa: E731
        output = call()
        forwards[label] = call
        backwards[label] = lambda o=output, x=x, d=d: torch.autograd.grad(o, x, d, retain_graph=True)
        row["tiles"][label] = describe_tiles(where, mine)
        if part.rows is not None:
            rows = part.rows.long()
            found = torch.autograd.grad(output, x[:1], d, retain_graph=True)[0]
            errors = [(a - b[:, :, rows]).abs().max().item() for a, b in ((output, exact), (found, d_query))]
            row["error"][label] = errors
    for kind, calls in (("forward", forwards), ("backward", backwards)):
        times = measure.interleave(calls, o.rounds, o.seconds)
        row[kind] = {"ms": times, "ratio": {x: measure.ratio(times[x], times["own own"]) for x in times}}
        print(f"{name:7} {kind:8}", " ".join(f"{who}: {statistics.median(t):.3f}" for who, t in times.items()), flush=True)
    print(f"{name:7} tiles", row["tiles"], "error", row["error"], flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=lambda text: text.split(","), default=["causal", "window", "alibi"])
    parser.add_argument("--length", type=int, default=32768)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="per candidate and round (default: %(default)s)")
    parser.add_argument("--out", help="write the result here, as JSON")
    o = parser.parse_args()
    result: Dict[str, Any] = {**measure.describe_machine(), "rows": []}
    for name in o.cases:
        result["rows"].append(measure_case(o, name))
        if o.out:
            Path(o.out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
