#!/usr/bin/env python3
"""Gradients of what scores read: ALiBi's slopes and a relative bias, beside FlexAttention.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/captured_gradients.py --out captured.json

Milliseconds of the backward of q, k, v and the captured tensor, alternating in one process; `plain` is attn without
the captured gradient. bf16, B = 2, H = 16, D = 128, no mask. Errors are of one head's captured gradient against f64.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from pathlib import Path
from typing import Any, Callable, Dict

import torch
from torch.nn.attention.flex_attention import flex_attention

import attn
import measure

Tensor = torch.Tensor
BATCH, HEADS, D, HEAD = 2, 16, 128, 3


def make_captured(name: str, length: int) -> Tensor:
    return torch.randn((HEADS,) if name == "alibi" else (HEADS, 2 * length - 1), device="cuda")


def make_score(name: str, captured: Tensor, length: int) -> Callable[..., Tensor]:
    if name == "alibi":
        return lambda s, b, h, m, n: s + captured[h] * (n - m) * 0.001
    return lambda s, b, h, m, n: s + captured[h, n - m + length - 1]


def find_reference(name: str, captured: Tensor, tensors: Any, d_output: Tensor, length: int) -> Tensor:
    """The gradient of the captured tensor for one head in f64, over the batch."""
    x = captured.detach().double().requires_grad_()
    m, n = torch.arange(length, device="cuda")[:, None], torch.arange(length, device="cuda")[None]
    total = torch.zeros_like(x)
    for b in range(BATCH):
        q, k, v = (t[b, HEAD].detach().double() for t in tensors)
        bias = x[HEAD] * (n - m) * 0.001 if name == "alibi" else x[HEAD][n - m + length - 1]
        output = torch.softmax(q @ k.T / math.sqrt(D) + bias, -1) @ v
        total += torch.autograd.grad(output, x, d_output[b, HEAD].double())[0]
    return total[HEAD]


def measure_score(o: argparse.Namespace, name: str) -> Dict[str, Any]:
    torch.manual_seed(5)
    shape = (BATCH, HEADS, o.length, D)
    tensors = [torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    d_output = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
    captured = make_captured(name, o.length)
    trained = captured.clone().requires_grad_()
    score, fixed = (make_score(name, x, o.length) for x in (trained, captured))
    flex = torch.compile(flex_attention, dynamic=False)
    forwards = {"attn": lambda: attn.attention(*tensors, score=score), "flex": lambda: flex(*tensors, score_mod=score)}
    reference = find_reference(name, captured, tensors, d_output, o.length)
    calls: Dict[str, Callable[[], Any]] = {}
    errors: Dict[str, float] = {}
    for who, forward in forwards.items():
        try:
            output = forward()
            call = lambda output=output: torch.autograd.grad(output, (*tensors, trained), d_output, retain_graph=True)
            found = call()[3][HEAD].double()
        except Exception as error:  # Each peer raises what its compiler raises.
            print(f"  {name} {who} left out: {str(error).splitlines()[0][:200]}", flush=True)
            continue
        errors[who] = ((found - reference).norm() / reference.norm()).item()
        calls[who] = call
    plain = attn.attention(*tensors, score=fixed)
    calls["plain"] = lambda: torch.autograd.grad(plain, tensors, d_output, retain_graph=True)
    times = measure.interleave(calls, o.rounds, o.seconds)
    print(name, {who: round(statistics.median(t), 3) for who, t in times.items()}, errors, flush=True)
    return {"score": name, "B": BATCH, "H": HEADS, "S": o.length, "D": D, "ms": times, "errors": errors}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.25, help="per candidate and round (default: %(default)s)")
    parser.add_argument("--out", help="write the result here, as JSON")
    o = parser.parse_args()
    rows = [measure_score(o, name) for name in ("alibi", "relative_bias")]
    if o.out:
        Path(o.out).write_text(json.dumps({**measure.describe_machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
