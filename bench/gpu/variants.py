"""The attentions that the benches compare, each said once in PyTorch.

`score` and `mask` are FlexAttention's score_mod and mask_mod. Called with whole tensors of indices they
are also the reference, and counting what `mask` keeps gives the work: 4 D operations for each score
element that is kept (causal attention counts half of full, as the papers do).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional

import torch

Tensor = torch.Tensor

NAMES = ("full", "causal", "softcap", "alibi", "relbias", "window1024", "document", "prefix2048")
WINDOW, PREFIX, CAP = 1024, 2048, 30.0


@dataclass
class Variant:
    """An attention of M == N == length rows; `captures` are in the order of a kernel's arguments."""

    name: str
    score: Optional[Callable[..., Any]] = None
    mask: Optional[Callable[..., Any]] = None
    captures: Dict[str, Tensor] = field(default_factory=dict)


def _causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q >= kv


def make_documents(batch: int, length: int, device: str, seed: int = 0) -> Tensor:
    """(B, S) ids of documents of 256 to 2048 tokens, alike in all batches."""
    generator = torch.Generator().manual_seed(seed)
    ids: List[int] = []
    while len(ids) < length:
        size = int(torch.randint(256, 2049, (1,), generator=generator))
        ids += [ids[-1] + 1 if ids else 0] * size
    return torch.tensor(ids[:length], dtype=torch.int32, device=device).expand(batch, length).contiguous()


def make_variant(name: str, batch: int, heads: int, length: int, device: str = "cuda") -> Variant:
    """The variant of that name."""
    if name == "full":
        return Variant(name)
    if name == "causal":
        return Variant(name, None, _causal)
    if name == "softcap":
        return Variant(name, lambda s, b, h, q, kv: CAP * torch.tanh(s / CAP), _causal)
    if name == "alibi":
        slopes = torch.exp2(-8.0 * torch.arange(1, heads + 1, device=device) / heads).float()
        return Variant(name, lambda s, b, h, q, kv: s - slopes[h] * (q - kv), _causal, {"slopes": slopes})
    if name == "relbias":
        bias = torch.randn(heads, length, device=device).to(torch.bfloat16)
        return Variant(name, lambda s, b, h, q, kv: s + bias[h, q - kv], _causal, {"bias": bias})
    if name == "window1024":
        return Variant(name, None, lambda b, h, q, kv: (q >= kv) & (q - kv <= WINDOW))
    if name == "document":
        ids = make_documents(batch, length, device)
        mask = lambda b, h, q, kv: (q >= kv) & (ids[b, q] == ids[b, kv])
        return Variant(name, None, mask, {"ids_q": ids, "ids_k": ids})
    if name == "prefix2048":
        return Variant(name, None, lambda b, h, q, kv: (q >= kv) | (kv < PREFIX))
    raise ValueError(f"variant: expected one of {', '.join(NAMES)}, got {name!r}")


def count_flops(variant: Variant, batch: int, heads: int, length: int, d: int, dv: int) -> float:
    """Operations of the forward pass."""
    pairs = float(length * length)
    if variant.name != "full" and variant.mask is _causal:
        pairs /= 2
    elif variant.mask:
        device = next(iter(variant.captures.values())).device if variant.captures else "cpu"
        columns = torch.arange(length, device=device)
        rows = columns[:, None]
        # Masks here depend on neither batch nor head beyond what is alike in all of them.
        pairs = float(sum(variant.mask(0, 0, block, columns).sum().item() for block in rows.split(1024)))
    return 2.0 * (d + dv) * batch * heads * pairs


def reference_rows(variant: Variant, q: Tensor, k: Tensor, v: Tensor, b: int, h: int, rows: Tensor) -> Tensor:
    """The output of some rows of one head, in f64."""
    key_head = h // (q.shape[1] // k.shape[1])
    columns = torch.arange(k.shape[2], device=q.device)
    s = q[b, h, rows].double() @ k[b, key_head].double().T / q.shape[3] ** 0.5
    where = (b, h, rows[:, None], columns[None, :])
    if variant.score:
        s = variant.score(s, *where)
    if variant.mask:
        s = s.masked_fill(~variant.mask(*where), float("-inf"))
    return torch.softmax(s, -1).nan_to_num(0.0) @ v[b, key_head].double()
