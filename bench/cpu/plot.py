#!/usr/bin/env python3
"""Draws bench/results/cpu-sdpa.json as an SVG of bars, with the peak of fused multiply-adds as a line.

With --line or --table, prints the sentence of README.md or the table of docs/Performance.md instead.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import charts


def table(result):
    lines = [
        "| type | D | mask | attn GFLOP/s | PyTorch | ratio | of FMA peak | compile |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        lines.append(
            f"| {row['type']} | {row['D']} | {row['mask']} | {row['attn']:.0f} | {row['torch']:.0f} | "
            f"**{row['ratio']:.2f}x** | {row['of_peak']:.0%} | {row['compile_ms']:.0f} ms |"
        )
    return "\n".join(lines)


def line(result):
    """One sentence for the README: the range of the ratios of each type."""
    ranges = []
    for kind in dict.fromkeys(row["type"] for row in result["rows"]):
        ratios = [row["ratio"] for row in result["rows"] if row["type"] == kind]
        ranges.append(f"{min(ratios):.2f} to {max(ratios):.2f} times ({kind})")
    return f"On {result['threads']} threads of {result['cpu']}, attn is {' and '.join(ranges)} as fast as PyTorch {result['torch']}."


def find_peak(result, row):
    """The peak of the row's type; a processor without bf16 instructions has that of f32."""
    return result["peak_gflops"]["bf16" if row["type"] == "bf16" else "f32"] or result["peak_gflops"]["f32"]


def plot(result):
    from matplotlib.figure import Figure

    rows = result["rows"]
    figure = Figure(figsize=(7.9, 3.1), layout="constrained")
    axes = figure.subplots()
    charts.bars(
        axes,
        [f"{row['type']} D={row['D']}\n{row['mask']}" for row in rows],
        [row["attn"] for row in rows],
        [row["torch"] for row in rows],
        [find_peak(result, row) for row in rows],
    )
    figure.suptitle(
        f"Attention on {result['threads']} threads of {result['cpu']}, B={rows[0]['B']} H={rows[0]['H']} M=N={rows[0]['M']}: "
        "GFLOP/s\n",
        x=0.01, ha="left", fontsize=10,
    )
    charts.legend(figure, "attn", f"PyTorch {result['torch']}", "peak of fused multiply-adds", y=0.94)
    return figure


if __name__ == "__main__":
    charts.run(__doc__, plot, {"line": (line, "the sentence of the README"), "table": (table, "the table of docs/Performance.md")})
