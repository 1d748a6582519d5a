#!/usr/bin/env python3
"""What calls that autograd records cost the host, and a block of four layers around them, beside PyTorch's.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/recorded.py --out recorded.json

Calls are of (1, 4, 128, 64) in bf16 under a causal mask: microseconds of the host, medians of 15 runs of 200 calls, each
run after the one before has ended on the GPU. The block has B = 8, S = 1024 and 12 heads of 64 columns: milliseconds of
a step, forward and backward, in eager mode, compiled, and as a CUDA graph. Candidates take turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any, Callable, Dict

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import attn

Call = Callable[[], Any]
Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def run_attn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attn.attention(q, k, v, causal=True)


def run_sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def run_cudnn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return run_sdpa(q, k, v)


CANDIDATES: Dict[str, Attend] = {"attn": run_attn, "sdpa": run_sdpa, "cudnn": run_cudnn}


def time_turns(calls: Dict[str, Call], batch: int, waits: bool, rounds: int = 15) -> Dict[str, float]:
    """Microseconds of each call by the host's clock, with the GPU's share if it `waits` for the end of a batch."""
    samples: Dict[str, list] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(20):
            call()
    for _ in range(rounds):
        for name, call in calls.items():
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(batch):
                call()
            if waits:
                torch.cuda.synchronize()
            samples[name].append((time.perf_counter() - began) / batch * 1e6)
    return {name: round(statistics.median(times), 1) for name, times in samples.items()}


def measure_calls() -> Dict[str, Dict[str, float]]:
    plain = [torch.randn(1, 4, 128, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
    recorded = [x.clone().requires_grad_() for x in plain]
    d_output = torch.randn_like(plain[0])
    both = {
        name: lambda run=run: torch.autograd.grad(run(*recorded), recorded, d_output)
        for name, run in CANDIDATES.items()
    }
    return {
        "unrecorded_us": time_turns({name: lambda run=run: run(*plain) for name, run in CANDIDATES.items()}, 200, False),
        "recorded_us": time_turns({name: lambda run=run: run(*recorded) for name, run in CANDIDATES.items()}, 200, False),
        "forward_and_backward_us": time_turns(both, 100, False),
    }


class Layer(torch.nn.Module):
    def __init__(self, attend: Attend) -> None:
        super().__init__()
        self.attend, self.norm = attend, torch.nn.LayerNorm(768)
        self.inputs, self.output = torch.nn.Linear(768, 2304), torch.nn.Linear(768, 768)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.inputs(self.norm(x)).view(batch, length, 3, 12, 64).permute(2, 0, 3, 1, 4)
        return x + self.output(self.attend(q, k, v).transpose(1, 2).reshape(batch, length, 768))


def make_step(attend: Attend, is_compiled: bool = False) -> Call:
    torch.manual_seed(0)
    x = torch.randn(8, 1024, 768, device="cuda", dtype=torch.bfloat16)
    block: Any = torch.nn.Sequential(*[Layer(attend) for _ in range(4)]).to("cuda", torch.bfloat16)
    run = torch.compile(block) if is_compiled else block

    def step() -> None:
        block.zero_grad(set_to_none=True)
        run(x).float().square().mean().backward()

    return step


def make_graph(attend: Attend) -> Call:
    step, stream, graph = make_step(attend), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def measure_blocks() -> Dict[str, Dict[str, float]]:
    ways: Dict[str, Callable[[Attend], Call]] = {
        "eager": make_step,
        "compiled": lambda attend: make_step(attend, is_compiled=True),
        "graph": make_graph,
    }
    results = {}
    for name, make in ways.items():
        us = time_turns({who: make(attend) for who, attend in CANDIDATES.items()}, 20, True)
        results[f"block_{name}_ms"] = {who: round(x / 1000, 3) for who, x in us.items()}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="write the result here, as JSON")
    arguments = parser.parse_args()
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, **measure_calls(), **measure_blocks()}
    text = json.dumps(result, indent=1)
    print(text)
    if arguments.out:
        Path(arguments.out).write_text(text + "\n")


if __name__ == "__main__":
    main()
