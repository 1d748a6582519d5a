"""How often attn served a function of PyTorch, and why it did not."""

from __future__ import annotations

import collections
from typing import Counter

import torch

served: Counter[str] = collections.Counter()
"""How often each function was served by attn; graphs of torch.compile do not count."""
fallbacks: Counter[str] = collections.Counter()
"""How often PyTorch was called instead, by reason."""


def count(counter: Counter[str], name: str) -> None:
    # Where Dynamo traces, a count would be a guard that fails in the next call.
    if not torch.compiler.is_dynamo_compiling():
        counter[name] += 1
