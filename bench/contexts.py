#!/usr/bin/env python3
"""Draws what attn.distributed's model says of many GPUs as an SVG: the rate of all ranks over that of as many GPUs without
transfers, causal attention, forward, by the number of ranks.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/contexts.py docs/images/ranks.svg

Predictions by arithmetic, for H200s with NVLink and one rail of 400 Gb/s each (attn.distributed.Rates); nothing here is measured.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple

sys.path.insert(0, str(Path(__file__).parent))
import charts
from attn.distributed import Rates, plan
from attn.distributed._explain import Shape, _estimate

RANKS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
HEADS = ((64, 8), (16, 16))
METHODS = ("gather", "ring")
# Of a GPU.
TOKENS = (2048, 8192, 32768)


def find_rate(ranks: int, tokens: int, heads: Tuple[int, int], method: str) -> float:
    p = plan(ranks * tokens, ranks, causal=True, sharding="zigzag", method=method)
    shape = Shape(1, *heads, 128, 2)
    # All have the same work; transfers are of nodes, so that a node tells of the others.
    costs = [_estimate(p, rank, shape, Rates()) for rank in range(0, ranks, max(1, ranks // 16))]
    return sum(c.forward for c in costs) / len(costs) / max(c.total for c in costs)


def find_rates() -> Dict[Tuple[Tuple[int, int], str, int], List[float]]:
    return {(heads, method, tokens): [find_rate(ranks, tokens, heads, method) for ranks in RANKS]
            for heads in HEADS for method in METHODS for tokens in TOKENS}


def plot() -> Any:
    import matplotlib.pyplot as plt

    rates = find_rates()
    figure, panels = plt.subplots(1, len(HEADS), figsize=(7.2, 3.3), sharey=True, layout="constrained")
    for axes, heads in zip(panels, HEADS):
        for method, color in zip(METHODS, (charts.OURS, charts.MARK)):
            for tokens, line in zip(TOKENS, ((0, (1, 1)), "--", "-")):
                axes.plot(range(len(RANKS)), rates[heads, method, tokens], color=color, linestyle=line, linewidth=1.4,
                          label=f"{method}, {tokens // 1024}k tokens a GPU")
        axes.set_xticks(range(len(RANKS)), [str(x) for x in RANKS])
        axes.set_ylim(0, 1.05)
        axes.set_xlabel("GPUs")
        axes.set_title(f"{heads[0]} query heads, {heads[1]} key heads")
    panels[0].set_ylabel("share of the rate without transfers")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(TOKENS), frameon=False, fontsize=7)
    return figure


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 1
    charts.draw(plot, sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
