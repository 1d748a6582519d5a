#!/usr/bin/env python3
"""A small language model trained with attn's attention and with PyTorch's, from the same seeds: loss curves and time per step.

Four layers as wide as GPT-2's (768, twelve heads of 64) on synthetic text, a Markov chain of order two, in bf16 with f32
weights. Two of PyTorch's own back ends train beside attn, so that their distance says what rounding alone does to a curve.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/gpu/training.py --out training.json
    bench/gpu/training.py --device cpu --steps 20 --length 128 --batch 2     # a short one anywhere
    bench/gpu/training.py --draw training.json docs/images/gpu-training.svg
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

WIDTH, HEADS, LAYERS, TOKENS = 768, 12, 4, 256

Attend = Callable[[Any, Any, Any], Any]


def list_attentions(device: str) -> Dict[str, Attend]:
    """Causal attention on (B, H, S, D), by name: attn first, then the peer, then what measures the noise."""
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    import attn

    def with_backend(backend: SDPBackend) -> Attend:
        def attend(q: Any, k: Any, v: Any) -> Any:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=True)

        return attend

    peers = (
        {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
        if device == "cuda"
        else {"flash": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}
    )
    return {"attn": lambda q, k, v: attn.attention(q, k, v, causal=True), **{n: with_backend(b) for n, b in peers.items()}}


def make_model(attend: Attend, length: int) -> Any:
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x: Any) -> Any:
            b, s, _ = x.shape
            q, k, v = (t.view(b, s, HEADS, -1).transpose(1, 2) for t in self.qkv(self.norms[0](x)).chunk(3, -1))
            x = x + self.out(attend(q, k, v).transpose(1, 2).reshape(b, s, WIDTH))
            return x + self.mlp(self.norms[1](x))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(length, WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
            self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS))

        def forward(self, x: Any) -> Any:
            return self.head(self.blocks(self.tokens(x) + self.places.weight[: x.shape[1]]))

    torch.manual_seed(0)
    return Model()


def make_text(size: int) -> Any:
    """Letters that follow from the two before them, four choices each."""
    import torch

    generator = torch.Generator().manual_seed(1)
    choices = torch.randint(64, (64, 64, 4), generator=generator)
    picks = torch.randint(4, (size,), generator=generator).tolist()
    table, text = choices.tolist(), [0, 1]
    for pick in picks[2:]:
        text.append(table[text[-2]][text[-1]][pick])
    return torch.tensor(text)


def train(attend: Attend, text: Any, o: argparse.Namespace) -> Dict[str, List[float]]:
    """The loss and the milliseconds of each step."""
    import torch
    import torch.nn.functional as F

    model = make_model(attend, o.length).to(o.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    generator = torch.Generator().manual_seed(2)
    losses, times = [], []
    for _ in range(o.steps):
        at = torch.randint(len(text) - o.length - 1, (o.batch,), generator=generator)
        batch = torch.stack([text[i : i + o.length + 1] for i in at.tolist()]).to(o.device)
        start = time.perf_counter()
        with torch.autocast(o.device, dtype=torch.bfloat16):
            logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(1000 * (time.perf_counter() - start))
    return {"loss": losses, "ms": times}


def distance(curves: Dict[str, Any], one: str, other: str) -> float:
    """The largest difference of two curves, each smoothed over ten steps."""
    smooth = lambda x: [statistics.fmean(x[max(0, i - 9) : i + 1]) for i in range(len(x))]
    return max(abs(a - b) for a, b in zip(smooth(curves[one]["loss"]), smooth(curves[other]["loss"])))


def measure(o: argparse.Namespace) -> int:
    import torch

    text = make_text(200_000)
    curves = {name: train(attend, text, o) for name, attend in list_attentions(o.device).items()}
    ours, peer, other = curves
    result = {"device": torch.cuda.get_device_name() if o.device == "cuda" else "cpu", "torch": torch.__version__,
              "batch": o.batch, "length": o.length, "curves": curves,
              "distance": {f"{ours} to {peer}": distance(curves, ours, peer), f"{other} to {peer}": distance(curves, other, peer)}}
    for name, curve in curves.items():
        print(f"{name:6} loss {curve['loss'][0]:.4f} -> {curve['loss'][-1]:.4f}, {statistics.median(curve['ms']):.1f} ms a step")
    print("largest distance of smoothed curves: " + ", ".join(f"{k} {v:.4f}" for k, v in result["distance"].items()))
    if o.out:
        Path(o.out).write_text(json.dumps(result, indent=1) + "\n")
    mine, noise = result["distance"].values()
    return int(not mine <= 3 * noise + 0.01)


def draw(path: str, svg: str) -> int:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    import charts

    result = json.loads(Path(path).read_text())

    def plot() -> Any:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 2.6), layout="constrained")
        axes = figure.add_subplot()
        styles = [dict(color=charts.OURS, linewidth=1.2, zorder=3), dict(color=charts.MARK, linewidth=2.4, alpha=0.5), dict(color=charts.PEER, linewidth=3.5)]
        for (name, curve), style in zip(result["curves"].items(), styles):
            axes.plot(curve["loss"], label=f"{name}, {statistics.median(curve['ms']):.0f} ms a step", **style)
        axes.set(xlabel="step", ylabel="loss", title=f"Four layers of GPT-2 on synthetic text, {result['device']}")
        axes.legend(frameon=False)
        return figure

    charts.draw(plot, svg)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--length", type=int, default=1024, help="tokens of a sequence (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=8, help="sequences of a step (default: %(default)s)")
    parser.add_argument("--out", help="write the result here, as JSON")
    parser.add_argument("--draw", nargs=2, metavar=("JSON", "SVG"), help="draw a result instead")
    o = parser.parse_args()
    return draw(*o.draw) if o.draw else measure(o)


if __name__ == "__main__":
    sys.exit(main())
