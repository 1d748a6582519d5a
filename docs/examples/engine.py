#!/usr/bin/env python3
"""The loop of a serving engine in a page of Python: keys in pages, prompts in chunks, shared prefixes, requests that come
and go. A small decoder with random weights makes its tokens, and dense attention checks them.

    engine.py                        # on the CPU, or on a GPU if there is one

What attn does is in `Kernels`: `append` writes rotated keys into pages, `paged_attention` reads them. On a GPU a step
of decoding is one CUDA graph, whatever the lengths, tables and the number of requests are.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F

from attn import serving


@dataclass
class Config:
    layers: int = 2
    heads: int = 4
    key_heads: int = 2
    head_dim: int = 32
    hidden: int = 128
    vocabulary: int = 211
    positions: int = 4096
    page: int = 16
    pages: int = 2048
    # The most requests in a batch, pages of one, and tokens of a prompt in one step.
    batch: int = 16
    columns: int = 64
    chunk: int = 64
    dtype: torch.dtype = torch.float32
    device: str = "cpu"


class Kernels:
    """Attention of one layer: pools (pages, P, Hkv, D) and a table of pages."""

    def attend(self, q: Any, k: Any, v: Any, pools: Tuple[Any, Any], step: "Step") -> Any:
        """q, k and v (T, heads, D), which are `step.rows` new tokens of each sequence. Rotates q and k, writes k and
        v, and returns the output (T, H, D)."""
        how = dict(rotary=step.rotary, positions=step.positions, q=q)
        q = serving.append(k, v, *pools, step.slots, **how)
        rows = q.view(-1, step.rows, *q.shape[1:])
        table = dict(page_table=step.table, seqused_k=step.lengths + step.rows)
        return serving.paged_attention(rows, *pools, **table).flatten(0, 1)


@dataclass
class Step:
    """Which tokens of which sequences a run of the model is of."""

    table: Any
    # Keys of each sequence before this step; -1 for one that only fills the batch.
    lengths: Any
    rows: int
    rotary: Any
    slots: Any = None
    positions: Any = None

    def place(self, page: int) -> "Step":
        count = self.lengths.shape[0]
        offsets = torch.arange(count + 1, device=self.lengths.device) * self.rows
        how = dict(page_size=page, page_table=self.table)
        total = count * self.rows
        self.slots, self.positions = serving.find_slots(self.lengths, offsets, total, **how)
        return self


class Model:
    """A decoder: RMS norms, grouped heads with rotary embeddings, a gated network."""

    def __init__(self, config: Config, seed: int = 0) -> None:
        self.config = c = config
        generator = torch.Generator().manual_seed(seed)

        def make(*shape: int) -> Any:
            x = torch.randn(shape, generator=generator) * shape[0] ** -0.5
            return x.to(c.device, c.dtype)

        inner, keys = c.heads * c.head_dim, c.key_heads * c.head_dim
        self.embedding = make(c.vocabulary, c.hidden) * c.vocabulary**0.5
        self.layers = [
            dict(
                qkv=make(c.hidden, inner + 2 * keys),
                out=make(inner, c.hidden),
                gate=make(c.hidden, 4 * c.hidden),
                down=make(2 * c.hidden, c.hidden),
            )
            for _ in range(c.layers)
        ]
        self.head = make(c.hidden, c.vocabulary)
        powers = torch.arange(0, c.head_dim, 2) / c.head_dim
        angles = torch.arange(c.positions)[:, None] * 10000.0**-powers
        tables = (x.to(c.device, torch.float32) for x in (angles.cos(), angles.sin()))
        self.rotary = serving.Rotary(*tables)

    def run(self, tokens: Any, attend: Any) -> Any:
        """The hidden states of tokens (T,); attend(layer, q, k, v) is the attention of a layer."""
        c = self.config
        x = self.embedding[tokens]
        for i, layer in enumerate(self.layers):
            parts = F.rms_norm(x, (c.hidden,)) @ layer["qkv"]
            parts = parts.view(len(tokens), -1, c.head_dim)
            q, k, v = parts.split([c.heads, c.key_heads, c.key_heads], 1)
            x = x + attend(i, q, k, v).reshape(len(tokens), -1) @ layer["out"]
            gate, up = (F.rms_norm(x, (c.hidden,)) @ layer["gate"]).chunk(2, -1)
            x = x + (F.silu(gate) * up) @ layer["down"]
        return x

    def choose(self, x: Any) -> Any:
        """The likeliest next token of each row."""
        return (F.rms_norm(x, (self.config.hidden,)) @ self.head).float().argmax(-1)


@dataclass
class Request:
    prompt: List[int]
    count: int
    tokens: List[int] = field(default_factory=list)
    pages: List[int] = field(default_factory=list)
    # How many of its tokens have keys in pages, and how many pages were found there.
    length: int = 0
    shared: int = 0

    @property
    def all(self) -> List[int]:
        return self.prompt + self.tokens


class Pages:
    """Which pages are free, and which hold the keys of which tokens: whole pages of equal beginnings are shared."""

    def __init__(self, count: int) -> None:
        self.free, self.users = list(range(count))[::-1], [0] * count
        self.known: Dict[Tuple[int, ...], int] = {}
        self.names: Dict[int, Tuple[int, ...]] = {}

    def take(self) -> int:
        page = self.free.pop()
        # Whoever held it before is forgotten now.
        self.known.pop(self.names.pop(page, ()), None)
        self.users[page] = 1
        return page

    def find(self, tokens: Tuple[int, ...]) -> Optional[int]:
        """The page with the last keys of this beginning, used once more."""
        page = self.known.get(tokens)
        if page is not None:
            if not self.users[page]:
                self.free.remove(page)
            self.users[page] += 1
        return page

    def name(self, page: int, tokens: Tuple[int, ...]) -> None:
        if tokens not in self.known:
            self.known[tokens], self.names[page] = page, tokens

    def give(self, pages: List[int]) -> None:
        """The last pages are taken again first: beginnings stay longest."""
        for page in pages:
            self.users[page] -= 1
            if not self.users[page]:
                self.free.insert(0, page)


class Engine:
    """Requests wait, then run: each step is a chunk of one prompt, or one token of all that run."""

    def __init__(self, model: Model, kernels: Optional[Kernels] = None) -> None:
        self.model, self.config = model, model.config
        self.kernels = kernels or Kernels()
        c = self.config
        shape = (c.pages, c.page, c.key_heads, c.head_dim)
        place = dict(dtype=c.dtype, device=c.device)
        self.pools = [(torch.zeros(shape, **place), torch.zeros(shape, **place)) for _ in range(c.layers)]
        self.pages = Pages(c.pages)
        self.waiting: List[Request] = []
        self.running: List[Request] = []
        numbers = dict(dtype=torch.int32, device=c.device)
        self.inputs = torch.zeros(c.batch, **numbers)
        self.table = torch.full((c.batch, c.columns), -1, **numbers)
        self.lengths = torch.full((c.batch,), -1, **numbers)
        self.graph: Any = None
        self.chosen: Any = None

    def _run(self, tokens: Any, step: Step) -> Any:
        step.place(self.config.page)
        attend = lambda i, q, k, v: self.kernels.attend(q, k, v, self.pools[i], step)  # noqa: E731
        return self.model.run(tokens, attend)

    def _reserve(self, request: Request, length: int) -> None:
        while len(request.pages) * self.config.page < length:
            request.pages.append(self.pages.take())

    def _admit(self, request: Request) -> None:
        """With the pages of its beginning that are there; the last token always runs."""
        page, tokens = self.config.page, request.all
        while (len(request.pages) + 1) * page < len(tokens):
            found = self.pages.find(tuple(tokens[: (len(request.pages) + 1) * page]))
            if found is None:
                break
            request.pages.append(found)
        request.shared = len(request.pages)
        request.length = request.shared * page

    def _name_pages(self, request: Request, before: int) -> None:
        page, tokens = self.config.page, request.all
        for i in range(before // page, request.length // page):
            self.pages.name(request.pages[i], tuple(tokens[: (i + 1) * page]))

    def prefill(self, request: Request) -> None:
        """The next chunk of a prompt; the first new token comes with the last one."""
        tokens, begin = request.all, request.length
        chunk = tokens[begin : begin + self.config.chunk]
        self._reserve(request, begin + len(chunk))
        numbers = dict(dtype=torch.int32, device=self.config.device)
        step = Step(
            torch.tensor([request.pages], **numbers),
            torch.tensor([begin], **numbers),
            len(chunk),
            self.model.rotary,
        )
        x = self._run(torch.tensor(chunk, **numbers), step)
        request.length = begin + len(chunk)
        self._name_pages(request, begin)
        if request.length == len(tokens):
            request.tokens.append(int(self.model.choose(x[-1:])))

    def _decode(self) -> None:
        step = Step(self.table, self.lengths, 1, self.model.rotary)
        self.chosen = self.model.choose(self._run(self.inputs, step))

    def capture(self) -> None:
        """A step of decoding as a graph; its kernels are compiled in a first one."""
        self._decode()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._decode()

    def decode(self) -> None:
        """One token of each request that runs."""
        c, requests = self.config, self.running
        for request in requests:
            self._reserve(request, request.length + 1)
        table = [x.pages + [-1] * (c.columns - len(x.pages)) for x in requests]
        count = len(requests)
        self.table[:count].copy_(torch.tensor(table, dtype=torch.int32))
        self.inputs[:count].copy_(torch.tensor([x.tokens[-1] for x in requests], dtype=torch.int32))
        self.lengths[:count].copy_(torch.tensor([x.length for x in requests], dtype=torch.int32))
        self.lengths[count:] = -1
        if self.graph is None:
            self._decode()
        else:
            self.graph.replay()
        for request, token in zip(requests, self.chosen[:count].tolist()):
            request.length += 1
            self._name_pages(request, request.length - 1)
            request.tokens.append(token)

    def step(self) -> None:
        if self.waiting and len(self.running) < self.config.batch:
            request = self.waiting[0]
            if not request.pages:
                self._admit(request)
            self.prefill(request)
            if request.tokens:
                self.running.append(self.waiting.pop(0))
        if self.running:
            self.decode()
        for request in [x for x in self.running if len(x.tokens) >= x.count]:
            del request.tokens[request.count :]
            self.running.remove(request)
            self.pages.give(request.pages)

    @torch.no_grad()
    def serve(self, requests: List[Request]) -> None:
        self.waiting += requests
        while self.waiting or self.running:
            self.step()


@torch.no_grad()
def generate_dense(model: Model, request: Request) -> List[int]:
    """The tokens of PyTorch's attention to all of a sequence, which runs whole for each token."""
    c, tokens = model.config, list(request.prompt)
    for _ in range(request.count):
        positions = torch.arange(len(tokens), device=c.device)
        cos, sin = (x[positions][:, None] for x in model.rotary[:2])

        def rotate(x: Any, cos: Any = cos, sin: Any = sin) -> Any:
            a, b = x.float().chunk(2, -1)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)

        def attend(i: int, q: Any, k: Any, v: Any) -> Any:
            q, k, v = (x.transpose(0, 1)[None] for x in (rotate(q), rotate(k), v))
            found = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            return found[0].transpose(0, 1)

        x = model.run(torch.tensor(tokens, device=c.device), attend)
        tokens.append(int(model.choose(x[-1:])))
    return tokens[len(request.prompt) :]


def make_requests(config: Config, count: int, longest: int, tokens: int, seed: int = 0) -> List[Request]:
    """Mixed lengths; every second one begins with the same tokens."""
    generator = torch.Generator().manual_seed(seed)
    draw = lambda n: torch.randint(config.vocabulary, (n,), generator=generator).tolist()  # noqa: E731
    prefix, requests = draw(longest // 2), []
    for i in range(count):
        length = int(torch.randint(1, longest // 2 + 1, (1,), generator=generator))
        new = int(torch.randint(1, tokens + 1, (1,), generator=generator))
        requests.append(Request((prefix if i % 2 else []) + draw(length), new))
    return requests


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--longest", type=int, default=200, help="tokens of a prompt")
    parser.add_argument("--tokens", type=int, default=24, help="new tokens of a request")
    options = parser.parse_args()
    is_gpu = torch.cuda.is_available()
    config = Config(device="cuda", dtype=torch.bfloat16) if is_gpu else Config()
    engine = Engine(Model(config))
    if is_gpu:
        with torch.no_grad():
            engine.capture()
    requests = make_requests(config, options.requests, options.longest, options.tokens)
    began = time.perf_counter()
    engine.serve(requests)
    seconds = time.perf_counter() - began
    made = sum(len(x.tokens) for x in requests)
    shared = sum(x.shared for x in requests)
    print(f"{made} tokens in {seconds:.2f} s; {shared} pages of prompts were there already")
    wrong = [i for i, x in enumerate(requests) if x.tokens != generate_dense(engine.model, x)]
    print("all are those of dense attention" if not wrong else f"requests {wrong} differ")
    # In 16 bits two tokens may be as likely.
    return int(bool(wrong) and not is_gpu)


if __name__ == "__main__":
    sys.exit(main())
