#!/usr/bin/env python3
"""Draws a result of bench/gpu/sdpa.py as an SVG: a panel for each D and mask, one for the variants. No dependencies.

With --table or --variants, prints a table of the README instead.
"""

from __future__ import annotations

import html
import os
import sys
from typing import Any, Dict, List, Optional, Tuple

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import charts

COLORS = {"attn": "#1f6feb", "peer": "#c9c9c9", "best": "#d1242f"}
WIDTH, PANEL, TOP, BOTTOM, LEFT = 760, 190, 46, 30, 46

Row = Dict[str, Any]
Bar = Tuple[str, float, Optional[float], Optional[float]]
"""Label, attn, the peer, and the best of the peers where that is another."""


def select(result: Dict[str, Any], d: int, mask: str) -> List[Row]:
    return [r for r in result["rows"] if r["D"] == d and r["variant"] == mask]


def grid(result: Dict[str, Any]) -> List[Tuple[int, str]]:
    """The (D, mask) that were measured."""
    return sorted({(r["D"], r["variant"]) for r in result["rows"] if r["variant"] in ("full", "causal")},
                  key=lambda pair: (pair[0], pair[1] == "causal"))


def variants(result: Dict[str, Any]) -> List[Row]:
    return [r for r in result["rows"] if r["variant"] not in ("full", "causal")]


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
            ratio = row["ratio"].get("best", row["ratio"].get("cudnn"))
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


def draw_panel(title: str, bars: List[Bar], x: float, y: float, width: float, top: float) -> List[str]:
    """One panel with its lower edge at `y`; bars up to `top`."""
    height = PANEL - TOP
    at = lambda value: y - value / top * height
    out = [f'<text x="{x:.1f}" y="{y - height - 8:.1f}" font-weight="bold">{html.escape(title)}</text>']
    for value in range(0, int(top), 200):
        out.append(f'<line x1="{x:.1f}" x2="{x + width:.1f}" y1="{at(value):.1f}" y2="{at(value):.1f}" stroke="#eee"/>')
        out.append(f'<text x="{x - 4:.1f}" y="{at(value) + 4:.1f}" text-anchor="end" fill="#666">{value}</text>')
    step = width / len(bars)
    for i, (label, ours, peer, best) in enumerate(bars):
        left = x + i * step
        for j, (kind, value) in enumerate((("attn", ours), ("peer", peer))):
            if value:
                out.append(f'<rect x="{left + step * (0.10 + 0.41 * j):.1f}" y="{at(value):.1f}" width="{step * 0.38:.1f}" '
                           f'height="{y - at(value):.1f}" fill="{COLORS[kind]}"/>')
        out.append(f'<text x="{left + step * 0.29:.1f}" y="{at(ours) - 3:.1f}" text-anchor="middle" font-size="9">{ours:.0f}</text>')
        if best:
            out.append(f'<line x1="{left + step * 0.05:.1f}" x2="{left + step * 0.95:.1f}" y1="{at(best):.1f}" '
                       f'y2="{at(best):.1f}" stroke="{COLORS["best"]}" stroke-width="1.5"/>')
        out.append(f'<text x="{left + step / 2:.1f}" y="{y + 13:.1f}" text-anchor="middle" font-size="10">{html.escape(label)}</text>')
    return out


def plot(result: Dict[str, Any]) -> str:
    rows = result["rows"]
    top = 1.1 * max(max(*r["tflops"].values(), r["tflops"].get("cudnn", 0) * r.get("factor", 1)) for r in rows)
    panels = grid(result)
    lines = (len(panels) + 1) // 2
    height = TOP + (lines + bool(variants(result))) * (PANEL + BOTTOM - 20) + 6
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="16" font-size="13">Forward attention on {html.escape(result["device"])}, bf16, '
        f'B S = 16384, H D = 2048: TFLOP/s</text>',
    ]
    legend = (("attn", "attn"), ("peer", "cuDNN (variants: FlexAttention)"), ("best", "best of FlashAttention-3 and cuDNN"))
    for i, (kind, text) in enumerate(legend):
        x = LEFT + (0, 60, 270)[i]
        out.append(f'<rect x="{x}" y="24" width="10" height="8" fill="{COLORS[kind]}"/>')
        out.append(f'<text x="{x + 14}" y="32">{text}</text>')
    width = (WIDTH - 2 * LEFT - 14) / 2
    base = lambda line: TOP + (line + 1) * (PANEL + BOTTOM - 20) - BOTTOM + 10
    for i, (d, mask) in enumerate(panels):
        bars: List[Bar] = []
        for r in select(result, d, mask):
            peer = r["tflops"].get("cudnn")
            bars.append((str(r["S"]), r["tflops"]["attn"], peer, peer * r["factor"] if peer and "factor" in r else None))
        out += draw_panel(f"D = {d}, {mask}", bars, LEFT + i % 2 * (width + LEFT), base(i // 2), width, top)
    if variants(result):
        bars = [(r["variant"], r["tflops"]["attn"], r["tflops"].get("flex"), None) for r in variants(result)]
        out += draw_panel("variants, D = 128, S = 8192", bars, LEFT, base(lines), WIDTH - LEFT - 14, top)
    out.append("</svg>")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    charts.run(__doc__, plot, {
        "table": (table, "attn's TFLOP/s and its ratio to the best, for each D, mask and S"),
        "variants": (variant_table, "the variants beside FlexAttention"),
    })
