#!/usr/bin/env python3
"""Draws bench/results/cpu-sdpa.json as an SVG of bars, with the peak of fused multiply-adds as a line. No dependencies.

With --table, prints the table of the README instead.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import charts

COLORS = {"attn": "#1f6feb", "torch": "#c9c9c9"}
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 760, 300, 56, 46, 34


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


def plot(result):
    rows = result["rows"]
    top = 1.08 * max([r["attn"] for r in rows] + [r["torch"] for r in rows] + list(result["peak_gflops"].values()))
    step = (WIDTH - LEFT - 10) / len(rows)
    y = lambda v: HEIGHT - BOTTOM - v / top * (HEIGHT - BOTTOM - TOP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="16" font-size="13">Attention on {result["threads"]} threads of {result["cpu"]}, '
        f'B={rows[0]["B"]} H={rows[0]["H"]} M=N={rows[0]["M"]}: GFLOP/s</text>',
    ]
    tick = 100 if top < 800 else 200
    for value in range(0, int(top), tick):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#eee"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value}</text>')
    for i, row in enumerate(rows):
        x = LEFT + i * step
        for j, name in enumerate(("attn", "torch")):
            left = x + step * (0.14 + 0.36 * j)
            out.append(
                f'<rect x="{left:.1f}" y="{y(row[name]):.1f}" width="{step * 0.34:.1f}" '
                f'height="{HEIGHT - BOTTOM - y(row[name]):.1f}" fill="{COLORS[name]}"/>'
            )
            out.append(f'<text x="{left + step * 0.17:.1f}" y="{y(row[name]) - 4:.1f}" text-anchor="middle">{row[name]:.0f}</text>')
        peak = result["peak_gflops"]["bf16" if row["type"] == "bf16" else "f32"] or result["peak_gflops"]["f32"]
        out.append(
            f'<line x1="{x + step * 0.08:.1f}" x2="{x + step * 0.92:.1f}" y1="{y(peak):.1f}" y2="{y(peak):.1f}" '
            f'stroke="#d1242f" stroke-dasharray="4 3"/>'
        )
        for k, text in enumerate((f"{row['type']} D={row['D']}", row["mask"])):
            out.append(f'<text x="{x + step / 2:.1f}" y="{HEIGHT - BOTTOM + 15 + 13 * k}" text-anchor="middle">{text}</text>')
    for i, (color, text) in enumerate(((COLORS["attn"], "attn"), (COLORS["torch"], f"PyTorch {result['torch']}"), ("#d1242f", "FMA peak"))):
        out.append(f'<rect x="{WIDTH - 250 + 85 * i}" y="22" width="10" height="8" fill="{color}"/>')
        out.append(f'<text x="{WIDTH - 236 + 85 * i}" y="30">{text}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    charts.run(__doc__, plot, {"table": (table, "the table of the README")})
