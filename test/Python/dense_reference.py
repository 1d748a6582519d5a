"""Attention of PyTorch's operators, which autograd records: of the types that it is given."""

import math

import torch


def attend(q, k, v, causal=False):
    """(output, lse) of (B, H, S, D); rows and keys end together."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    s = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
    m, n = s.shape[2:]
    if causal:
        s = s.masked_fill(~torch.ones(m, n, dtype=torch.bool).tril(n - m), -math.inf)
    return torch.softmax(s, dim=3).nan_to_num() @ v, torch.logsumexp(s, dim=3)
