#!/usr/bin/env python3
"""Draws a result of bench/gpu/sdpa.py as an SVG: a panel for each D and mask, one for the variants.

With --lines, --table or --variants, prints a table of README.md or docs/Performance.md instead, with --shapes one of a
result of shapes.py.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Optional, Tuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import charts

Row = Dict[str, Any]


def select(result: Dict[str, Any], d: int, mask: str) -> List[Row]:
    return [r for r in result["rows"] if r["D"] == d and r["variant"] == mask]


def grid(result: Dict[str, Any]) -> List[Tuple[int, str]]:
    """The (D, mask) that were measured."""
    return sorted({(r["D"], r["variant"]) for r in result["rows"] if r["variant"] in ("full", "causal")},
                  key=lambda pair: (pair[0], pair[1] == "causal"))


def variants(result: Dict[str, Any]) -> List[Row]:
    return [r for r in result["rows"] if r["variant"] not in ("full", "causal")]


def best_ratio(row: Row) -> Optional[float]:
    """To the better of FlashAttention-3 and cuDNN; to cuDNN where the other was not measured."""
    return row["ratio"].get("best", row["ratio"].get("cudnn"))


def lines(result: Dict[str, Any]) -> str:
    """One line for each D: a length in the middle of the field, and the range over all lengths."""
    length = 8192
    out = [f"| D | full, S={length} | causal, S={length} | over all S and both masks |", "|---|---|---|---|"]
    for d in sorted({d for d, _ in grid(result)}):
        rows = select(result, d, "full") + select(result, d, "causal")
        ratios = [ratio for row in rows if (ratio := best_ratio(row))]
        cells = [f"{r['tflops']['attn']:.0f}, **{best_ratio(r):.2f}x**" for r in rows if r["S"] == length]
        out.append(f"| {d} | {' | '.join(cells)} | {min(ratios):.2f}x to {max(ratios):.2f}x |")
    return "\n".join(out)


def table(result: Dict[str, Any]) -> str:
    lengths = sorted({r["S"] for d, mask in grid(result) for r in select(result, d, mask)})
    lines = ["| D | mask | " + " | ".join(f"S={s}" for s in lengths) + " |", "|---|---|" + "---|" * len(lengths)]
    for d, mask in grid(result):
        cells = []
        for s in lengths:
            row = next((r for r in select(result, d, mask) if r["S"] == s), None)
            if row is None:
                cells.append("")
                continue
            ratio = best_ratio(row)
            cells.append(f"{row['tflops']['attn']:.0f}" + (f", **{ratio:.2f}x**" if ratio else ""))
        lines.append(f"| {d} | {mask} | " + " | ".join(cells) + " |")
    fa2 = [r["ratio"]["fa2"] for r in result["rows"] if "fa2" in r["ratio"]]
    if fa2:
        lines += ["", f"Beside FlashAttention-2, in the same runs: {min(fa2):.2f} to {max(fa2):.2f} times as fast."]
    return "\n".join(lines)


def variant_table(result: Dict[str, Any]) -> str:
    lines = ["| variant | attn TFLOP/s | FlexAttention | ratio |", "|---|---|---|---|"]
    for row in variants(result):
        flex, ratio = row["tflops"].get("flex"), row["ratio"].get("flex")
        cells = (f"{flex:.0f}", f"**{ratio:.2f}x**") if flex else ("", "")
        lines.append(f"| {row['variant']} | {row['tflops']['attn']:.0f} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def shape_table(result: Dict[str, Any]) -> str:
    lines = ["| pass | shape | B | M, N | attn TFLOP/s | cuDNN | FlashAttention-3 | ratio |", "|---|---|---|---|---|---|---|---|"]
    for row in result["rows"]:
        peers = [f"{row['tflops'][peer]:.0f}" if peer in row["tflops"] else "" for peer in ("cudnn", "fa3")]
        cells = [row["pass"], row["config"], str(row["B"]), f"{row['M']}, {row['N']}", f"{row['tflops']['attn']:.0f}", *peers]
        lines.append(f"| {' | '.join(cells)} | **{row['ratio']['best']:.2f}x** |")
    return "\n".join(lines)


def plot(result: Dict[str, Any]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.9, 5.6), layout="constrained")
    panels = grid(result)
    sizes = sorted({d for d, _ in panels})
    named = variants(result)
    places = figure.add_gridspec(2 + bool(named), len(sizes))
    top = 1.12 * max(max(r["tflops"].values()) for r in result["rows"])
    for d, mask in panels:
        rows = select(result, d, mask)
        peers = [r["tflops"].get("cudnn") for r in rows]
        best = [max(peer, r["tflops"]["fa3"]) if peer and "fa3" in r["tflops"] else None for r, peer in zip(rows, peers)]
        axes = figure.add_subplot(places[int(mask == "causal"), sizes.index(d)])
        lengths = [f"{r['S'] // 1024}k" if r["S"] % 1024 == 0 else str(r["S"]) for r in rows]
        charts.bars(axes, lengths, [r["tflops"]["attn"] for r in rows], peers, best, narrow=True)
        axes.set(title=f"D = {d}, {mask}", ylim=(0, top))
    if named:
        axes = figure.add_subplot(places[2, :])
        ours, flex = [r["tflops"]["attn"] for r in named], [r["tflops"].get("flex") for r in named]
        charts.bars(axes, [r["variant"] for r in named], ours, flex, [None] * len(named))
        axes.set(title="variants, D = 128, S = 8192", ylim=(0, top))
    figure.suptitle(
        f"Forward attention on {result['device']}, bf16, B S = 16384, H D = 2048: TFLOP/s by S\n", x=0.01, ha="left", fontsize=10)
    charts.legend(
        figure, "attn", "cuDNN (variants: FlexAttention)", "the better of FlashAttention-3 and cuDNN", y=0.97)
    return figure


if __name__ == "__main__":
    charts.run(__doc__, plot, {
        "lines": (lines, "one line for each D"),
        "table": (table, "attn's TFLOP/s and its ratio to the best, for each D, mask and S"),
        "variants": (variant_table, "the variants beside FlexAttention"),
        "shapes": (shape_table, "shapes beyond the square grid, of a result of shapes.py"),
    })
