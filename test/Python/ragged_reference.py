"""Attention of sequences that lie one after the other, one at a time in f64, and sequences to compare it with."""

import math

import pytest
import torch

TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def attend(
    q,
    k,
    v,
    *,
    scale=None,
    causal=False,
    window=(-1, -1),
    softcap=0.0,
    slopes=None,
    sink=None,
    start=0,
):
    """(M, H, Dv) and (H, M) of one sequence: q (M, H, D), k (N, Hkv, D). Keys before `start` are dropped."""
    q, k, v = (x.double().transpose(0, 1) for x in (q, k, v))
    group = q.shape[0] // k.shape[0]
    # A key that nobody keeps is not read.
    k, v = (x[:, start:].repeat_interleave(group, 0) for x in (k, v))
    s = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    heads, m, n = s.shape
    row = (torch.arange(m, device=q.device) + n - m)[:, None]
    distance = row - torch.arange(n, device=q.device)
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    if slopes is not None:
        s = s - slopes.double()[:, None, None] * distance.abs()
    keep = torch.ones_like(distance, dtype=torch.bool)
    left, right = (-1 if side is None else side for side in window)
    keep = keep if left < 0 else keep & (distance <= left)
    keep = keep if right < 0 else keep & (distance >= -right)
    keep = keep & (distance >= 0) if causal else keep
    columns = s.masked_fill(~keep, -math.inf)
    if sink is not None:
        columns = torch.cat([columns, sink.double()[:, None, None].expand(heads, m, 1)], 2)
    if columns.shape[2] == 0:
        return (q @ k.mT @ v).transpose(0, 1), s.new_full((heads, m), -math.inf)
    lse = torch.logsumexp(columns, 2)
    # Rows that keep nothing have weights of 0, and so have their gradients.
    is_empty = (~keep.any(1))[None, :, None]
    weights = torch.exp(
        s.masked_fill(~keep, -1e300) - lse.masked_fill(lse == -math.inf, 0.0)[..., None]
    )
    weights = weights.masked_fill(is_empty, 0.0)
    return (weights @ v).transpose(0, 1), lse


def attend_all(q, k, v, cu_q, cu_k, *, used_q=None, used_k=None, slopes=None, sink=None, **how):
    """(T, H, Dv) and (H, T): zeros and -inf for rows in no sequence, of whose tensors nothing is read."""
    output = q.new_zeros((*q.shape[:2], v.shape[2]), dtype=torch.float64)
    lse = q.new_full((q.shape[1], q.shape[0]), -math.inf, dtype=torch.float64)
    outputs, places = [], []
    for s in range(len(cu_q) - 1):
        m = cu_q[s + 1] - cu_q[s] if used_q is None else used_q[s]
        n = cu_k[s + 1] - cu_k[s] if used_k is None else used_k[s]
        rows, keys = slice(cu_q[s], cu_q[s] + m), slice(cu_k[s], cu_k[s] + n)
        slope = slopes[s] if slopes is not None and slopes.dim() == 2 else slopes
        found = attend(q[rows], k[keys], v[keys], slopes=slope, sink=sink, **how)
        outputs.append(found)
        places.append(rows)
    for rows, (x, y) in zip(places, outputs):
        index = torch.arange(rows.start, rows.stop, device=q.device)
        output = output.index_copy(0, index, x)
        lse = lse.index_copy(1, index, y)
    if sink is not None:
        # A row in no sequence still has its sink.
        lse = torch.where(lse == -math.inf, sink.double()[:, None], lse)
    return output, lse


def check(got, wanted, dtype=torch.float32, scale=1.0):
    assert got.shape == wanted.shape
    got, wanted = got.detach().double(), wanted.detach().double()
    finite = wanted.isfinite()
    assert torch.equal(got[~finite], wanted[~finite])
    limit = TOLERANCE[dtype] * wanted.abs().clamp_min(scale)
    error = ((got - wanted).abs() / limit)[finite]
    assert error.numel() == 0 or error.max() <= 1, f"{error.max().item()} times what is allowed"


def check_gradients(got, wanted, dtype=torch.float32):
    for x, y in zip(got, wanted):
        # Of what is small, the absolute error counts.
        check(x, y, dtype, scale=max(1.0, y.abs().max().item()) if y.numel() else 1.0)


def offsets(lengths):
    found = [0]
    for length in lengths:
        found.append(found[-1] + length)
    return found


# ===- Sequences ------------------------------------------------------------------------------===#

H, D, DV = 4, 16, 24
# Names of the peer's parameters, by those of the definition.
PEER = {
    "scale": "softmax_scale",
    "window": "window_size",
    "slopes": "alibi_slopes",
    "sink": "learnable_sink",
    "used_q": "seqused_q",
    "used_k": "seqused_k",
}


@pytest.fixture(autouse=True)
def poisoned():
    """What nobody writes is NaN."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(autouse=True)
def seeded(rng):
    torch.manual_seed(int(rng.integers(1 << 31)))


def to_int32(numbers):
    return torch.tensor(numbers, dtype=torch.int32)


def make(cu_q, cu_k, tail=0, hkv=2, dtype=torch.float32, used_q=None, used_k=None, d=D, dv=DV):
    """q, k, v and the gradient of the output, with NaN outside of what is used."""
    rows, keys = cu_q[-1] + tail, cu_k[-1] + tail
    shapes = (rows, H, d), (keys, hkv, d), (keys, hkv, dv), (rows, H, dv)
    tensors = [torch.randn(shape).to(dtype) for shape in shapes]
    for x, cu, used in zip(tensors, (cu_q, cu_k, cu_k, cu_q), (used_q, used_k, used_k, used_q)):
        is_used = torch.zeros(x.shape[0], dtype=torch.bool)
        for s in range(len(cu) - 1):
            is_used[cu[s] : cu[s + 1] if used is None else cu[s] + used[s]] = True
        x[~is_used] = torch.nan
    return tensors
