#!/usr/bin/env python3
"""Trains a small model on sequences that several processes share.

    torchrun --nproc-per-node 2 docs/examples/context_parallel.py
    torchrun --nproc-per-node 4 docs/examples/context_parallel.py --shards 2   # FSDP over two sequences

The model calls PyTorch's own attention. `context_parallel` takes the place of
torch.distributed.tensor.experimental.context_parallel: inside of it, each process has a part of every sequence, and
attn computes attention over the whole. Gradients are summed by FSDP, over all processes.
"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from attn.integrations.torch import context_parallel
from torch.distributed.fsdp import fully_shard

WORDS, WIDTH, HEADS, KEY_HEADS = 128, 64, 8, 2


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mlp_norm = torch.nn.RMSNorm(WIDTH), torch.nn.RMSNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, WIDTH + 2 * WIDTH // HEADS * KEY_HEADS)
        self.out = torch.nn.Linear(WIDTH, WIDTH)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(WIDTH, 128), torch.nn.GELU(), torch.nn.Linear(128, WIDTH))

    def forward(self, x):
        heads = self.qkv(self.norm(x)).unflatten(2, (-1, WIDTH // HEADS)).transpose(1, 2)
        q, k, v = heads.split([HEADS, KEY_HEADS, KEY_HEADS], 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.mlp_norm(x))


class Model(torch.nn.Module):
    def __init__(self, length):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(WORDS, WIDTH), torch.nn.Embedding(length, WIDTH)
        self.layers = torch.nn.ModuleList([Layer(), Layer()])
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, words, places):
        x = self.words(words) + self.places(places)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=1000, help="tokens of a sequence")
    parser.add_argument("--shards", type=int, default=1, help="sequences of a step")
    parser.add_argument("--steps", type=int, default=5)
    o = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    type_ = torch.bfloat16 if device == "cuda" else torch.float32
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group()
    ranks = dist.get_world_size()
    mesh = dist.init_device_mesh(device, (o.shards, ranks // o.shards), mesh_dim_names=("data", "context"))
    torch.manual_seed(0)
    model = Model(o.length).to(device)
    for layer in (*model.layers, model):
        fully_shard(layer, mesh=dist.init_device_mesh(device, (ranks,)))
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for step in range(o.steps):
        # All processes of a sequence draw the same one.
        draw = torch.Generator().manual_seed(step * o.shards + mesh["data"].get_local_rank())
        words = torch.randint(0, WORDS, (1, o.length + 1), generator=draw).cumsum(1).remainder(WORDS).to(device)
        x, y, places = words[:, :-1].clone(), words[:, 1:].clone(), torch.arange(o.length, device=device)
        with context_parallel(mesh["context"], buffers=[x, y, places], buffer_seq_dims=[1, 1, 0]):
            with torch.autocast(device, type_, enabled=device == "cuda"):
                logits = model(x, places)
            # FSDP takes the mean over processes of what is a part of a sum here.
            loss = F.cross_entropy(logits.float().flatten(0, 1), y.flatten(), reduction="sum")
            loss = loss * ranks / (o.shards * o.length)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if dist.get_rank() == 0:
            print(f"step {step} loss {float(mean) / ranks:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
