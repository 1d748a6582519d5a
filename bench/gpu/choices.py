#!/usr/bin/env python3
"""How good sizes are that the rule and the search choose: problems outside of the tables, beside every size that compiles.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/choices.py --out choices.json

For each problem all sizes of tiles that compile, spilled registers or not, are timed in two rounds; then the eight fastest, what the
rule takes and what `attn.tune` finds, in turns. The lines say how far behind the fastest both are: `rule` is what a call without
options runs, `tuned` one with the options of a search. Goals are 5 % and 2 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import dataclass
from typing import Any, Callable, Dict, List

import torch

import attn
import measure

TOKENS, HIDDEN = 16384, 2048
ROWS, KEYS = (64, 128, 192), range(16, 177, 16)


@dataclass(frozen=True)
class Problem:
    """Attention of M == N == length rows."""

    d: int
    mask: str
    dtype: str
    length: int

    @property
    def name(self) -> str:
        return f"d{self.d}-{self.mask}-{self.dtype}-s{self.length}"

    @property
    def arguments(self) -> Dict[str, Any]:
        return {"full": {}, "causal": {"causal": True}, "window300": {"window": (300, 0)}}[self.mask]

    @property
    def flops(self) -> float:
        """Of the pairs that the mask keeps, all heads together."""
        n = self.length
        pairs = {"full": n * n, "causal": n * (n + 1) / 2}.get(self.mask, min(n, 301) * n - min(n, 301) * (min(n, 301) - 1) / 2)
        return 4.0 * (TOKENS // n) * (HIDDEN // self.d) * pairs * self.d


# Head dimensions, masks, types and lengths that no table was measured at.
KINDS = ((128, "causal", "f16"), (64, "window300", "bf16"), (112, "full", "bf16"), (48, "causal", "bf16"), (224, "causal", "bf16"))
PROBLEMS = [Problem(*kind, length) for kind in KINDS for length in (640, 1280, 3328, 6656)]


def list_sizes() -> List[Dict[str, Any]]:
    return [{"way": "short"}, {"way": "long"}] + [{"block_m": m, "block_n": n} for m in ROWS for n in KEYS]


def describe(options: Dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in options.items()) or "rule"


def measure_problem(problem: Problem, rounds: int, seconds: float) -> Dict[str, Any]:
    torch.manual_seed(problem.length)
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[problem.dtype]
    shape = (TOKENS // problem.length, HIDDEN // problem.d, problem.length, problem.d)
    q, k, v = (torch.randn(shape, device="cuda", dtype=dtype) for _ in range(3))
    everything = attn.tune(q, k, v, candidates=list_sizes(), rounds=2, seconds=0.01, again=True, **problem.arguments)
    tuned = attn.tune(q, k, v, rounds=3, seconds=0.02, again=True, **problem.arguments)

    def make_call(options: Dict[str, Any]) -> Callable[[], Any]:
        return lambda: attn.attention(q, k, v, options=options or None, **problem.arguments)

    sizes = {describe(size): size for size in list_sizes()}
    fastest = [name for name in everything.milliseconds if name in sizes][:8]
    calls = {name: make_call(sizes[name]) for name in fastest}
    calls.update(rule=make_call({}), tuned=make_call(dict(tuned.options)))
    times = measure.interleave(calls, rounds, seconds)
    medians = {name: statistics.median(t) for name, t in times.items()}
    best = min(medians, key=medians.__getitem__)
    behind = {name: measure.ratio(times[best], times[name]) - 1 for name in ("rule", "tuned")}
    return {"problem": problem.name, "best": best, "tuned": describe(dict(tuned.options)), "ms": medians,
            "tflops": measure.tflops(problem.flops, times[best]), "behind": behind,
            "tried": len(everything.milliseconds), "refused": len(everything.refused)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=0.03, help="per candidate and round")
    parser.add_argument("--only", default="", help="problems whose names contain this")
    parser.add_argument("--out", help="write the result here, as JSON")
    o = parser.parse_args()
    rows = []
    for problem in PROBLEMS:
        if o.only not in problem.name:
            continue
        row = measure_problem(problem, o.rounds, o.seconds)
        rows.append(row)
        print(f"{row['problem']:26} {row['tflops']:6.1f} TFLOP/s  best {row['best']:24} rule +{row['behind']['rule']:6.1%}  "
              f"tuned +{row['behind']['tuned']:6.1%} ({row['tuned']}), {row['tried']} tried", flush=True)
        if o.out:
            with open(o.out, "w") as file:
                json.dump({**measure.describe_machine(), "rounds": o.rounds, "seconds": o.seconds, "rows": rows}, file, indent=1)
                file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
