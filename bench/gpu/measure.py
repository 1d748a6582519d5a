"""Times calls on the GPU by the rules of bench/NOTES.md: alternating, sustained, in one process.

The chip is limited by power, so a short burst flatters by 10 to 15 %, and a figure means something only
beside another one taken in the same minute. Hence: candidates take turns, each runs for `seconds` in each
round behind a lead of its own, and what is reported are medians over rounds and ratios within rounds.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import torch

Call = Callable[[], Any]


def time_batch(call: Call, count: int) -> float:
    """Milliseconds per call of `count` back-to-back calls, by the GPU's clock, or by the host's where there is none."""
    if not torch.cuda.is_available():
        began = time.perf_counter()
        for _ in range(count):
            call()
        return 1000 * (time.perf_counter() - began) / count
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / count


# Seconds that run before a slice untimed. The chip's control of its power takes 0.2 to 0.3 s to settle: FlashAttention-3 has
# 0.86 of its rate in the first 30 ms behind cuDNN, and attn 1.05.
LEAD = 0.3


def interleave(calls: Dict[str, Call], rounds: int, seconds: float, lead: float = LEAD) -> Dict[str, List[float]]:
    """Milliseconds per call of each candidate, one number for each round.

    Candidates run in a random order, and in the next round backwards, each for `lead` seconds before it is timed: behind
    one that takes more power, the clock is lower for a while, and who stands behind whom would decide.
    """
    lead = lead if torch.cuda.is_available() else seconds / 3
    counts: Dict[str, int] = {}
    leads: Dict[str, int] = {}
    for name, call in calls.items():
        time_batch(call, 3)
        # The second estimate is of a warm chip and long enough to be one.
        estimate = time_batch(call, 5)
        estimate = time_batch(call, max(5, int(50 / estimate)))
        counts[name] = max(5, math.ceil(1000 * seconds / estimate))
        leads[name] = math.ceil(1000 * lead / estimate)
    times: Dict[str, List[float]] = {name: [] for name in calls}
    order, draw = list(calls), random.Random(0)
    for i in range(rounds):
        order = order[::-1] if i % 2 else draw.sample(order, len(order))
        for name in order:
            time_batch(calls[name], leads[name])
            times[name].append(time_batch(calls[name], counts[name]))
    return times


# Calls in a graph, so that what launches a graph is little of each.
GRAPH_CALLS = 8


def capture(call: Call) -> Call:
    """Replays a CUDA graph of `GRAPH_CALLS` calls: what the host does for one is left out, as where a program replays.

    The call ran before. Raises a RuntimeError where it cannot be captured.
    """
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(GRAPH_CALLS):
            call()
    return graph.replay


def tflops(flops: float, times: List[float]) -> float:
    """TFLOP/s of the median round."""
    return flops / statistics.median(times) / 1e9


def ratio(times: List[float], peer: List[float]) -> float:
    """How many times faster than the peer: the median of the ratios within each round."""
    return statistics.median(theirs / ours for ours, theirs in zip(times, peer))


def spread(times: List[float]) -> float:
    """(slowest - fastest) / median of the rounds."""
    return (max(times) - min(times)) / statistics.median(times)


def max_relative(x: torch.Tensor, reference: torch.Tensor) -> float:
    """The measure of the tests: max |x - r| / max(|r|, rms(r)). Infinite where x is not finite and r is."""
    if reference.numel() == 0:
        return 0.0
    x, reference = x.double(), reference.double()
    same = (x == reference) | (x.isnan() & reference.isnan())
    finite = reference[reference.isfinite()]
    rms = finite.square().mean().sqrt() if finite.numel() else torch.ones((), device=x.device)
    error = (x - reference).abs() / torch.maximum(reference.abs(), rms)
    error = torch.where(same, torch.zeros_like(error), error)
    return torch.nan_to_num(error, nan=math.inf, posinf=math.inf).max().item()


def query_clocks() -> Dict[str, str]:
    """What nvidia-smi says of the first GPU; empty without it."""
    fields = ["driver_version", "clocks.sm", "clocks.max.sm", "clocks.mem", "power.draw", "power.limit", "temperature.gpu"]
    command = ["nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader"]
    try:
        line = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return {}
    return dict(zip(fields, (value.strip() for value in line.split(","))))


def describe_machine() -> Dict[str, Any]:
    """The device and the versions that a result depends on."""
    if not torch.cuda.is_available():
        return {"device": "cpu", "torch": torch.__version__, "date": time.strftime("%Y-%m-%d")}
    facts: Dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "date": time.strftime("%Y-%m-%d"),
        "nvidia_smi": query_clocks(),
    }
    try:
        import triton

        facts["triton"] = triton.__version__
    except ImportError:
        pass
    return facts


def add_problem_options(parser: argparse.ArgumentParser, dims: List[int], tokens: int) -> None:
    """What benches ask that measure each head dimension and length, full and causal."""
    parser.add_argument("--dims", type=int, nargs="+", default=dims)
    parser.add_argument("--lengths", type=int, nargs="+", default=[1024, 4096, 16384])
    parser.add_argument("--tokens", type=int, default=tokens, help="of all sequences (default: %(default)s)")
    parser.add_argument("--hidden", type=int, default=2048, help="columns of all heads (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="per candidate and round (default: %(default)s)")
    parser.add_argument("--out", help="write the result here, as JSON")


def measure_problems(o: argparse.Namespace, measure: Callable[[argparse.Namespace, int, int, bool], Dict[str, Any]]) -> int:
    """All problems of such options, and the result file. 1 where one is not right."""
    rows = [measure(o, d, length, causal) for d in o.dims for length in o.lengths for causal in (False, True)]
    if o.out:
        result = {"machine": describe_machine(), "rounds": o.rounds, "seconds": o.seconds, "problems": rows}
        Path(o.out).write_text(json.dumps(result, indent=1) + "\n")
    return int(not all(row["right"] for row in rows))


def merge_rows(path: str, result: Dict[str, Any], identify: Callable[[Dict[str, Any]], Any]) -> Dict[str, Any]:
    """`result`, with the rows that a file of the same device holds and whose `identify` none of its own rows has."""
    known = {identify(row) for row in result["rows"]}
    old = json.loads(Path(path).read_text()) if Path(path).exists() else {}
    if old.get("device") != result["device"]:
        return result
    return {**result, "rows": [row for row in old["rows"] if identify(row) not in known] + result["rows"]}
