#!/usr/bin/env python3
"""A Mistral of four layers with a window of 256 on the CPU, 4096 tokens: attn beside PyTorch's sdpa, alternating in one process.

    PYTHONPATH=python ATTN_LIBRARY=.../libattn.so bench/cpu/model.py --out model.json

Milliseconds of a prefill, the best round of each (the machine may be shared), and how far logits are from one another. Random weights,
f32, without a gradient or a cache.
"""

import argparse
import json
import os
import time
from pathlib import Path

import torch
import transformers

from attn.integrations import transformers as integration

SHAPE = {
    "num_hidden_layers": 4,
    "hidden_size": 512,
    "intermediate_size": 1408,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "sliding_window": 256,
    "vocab_size": 1000,
}


def time_once(model, ids, implementation):
    model.set_attn_implementation(implementation)
    start = time.perf_counter()
    with torch.no_grad():
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=16).logits
    return 1000 * (time.perf_counter() - start), logits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", help="write the result here, as JSON")
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(0)
    ours = integration.register()
    model = transformers.MistralForCausalLM(
        transformers.MistralConfig(**SHAPE, max_position_embeddings=o.tokens, pad_token_id=0)
    ).eval()
    ids = torch.randint(0, SHAPE["vocab_size"], (1, o.tokens))
    names = (ours, "sdpa")
    logits = {name: time_once(model, ids, name)[1] for name in names}
    times = {name: [] for name in names}
    for i in range(o.rounds):
        for name in names if i % 2 == 0 else reversed(names):
            times[name].append(time_once(model, ids, name)[0])
    best = {name: min(found) for name, found in times.items()}
    difference = ((logits[ours] - logits["sdpa"]).norm() / logits["sdpa"].norm()).item()
    ratio = best["sdpa"] / best[ours]
    print(
        f"attn {best[ours]:.0f} ms, sdpa {best['sdpa']:.0f} ms, {ratio:.2f} times as fast; logits differ by {difference:.1e}"
    )
    if o.out:
        facts = {"torch": torch.__version__, "transformers": transformers.__version__, "threads": o.threads}
        load = os.getloadavg()
        result = {
            **facts,
            "load": load,
            "tokens": o.tokens,
            "shape": SHAPE,
            "ms": times,
            "ratio": ratio,
            "difference": difference,
        }
        Path(o.out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
