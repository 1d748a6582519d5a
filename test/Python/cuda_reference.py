"""Attention in f64 by PyTorch, on a GPU, and tensors to compare it with."""

import torch

DEVICE = "cuda"
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 2.5e-2}


def inputs(b=2, h=4, hkv=2, m=200, n=333, d=64, dv=None, dtype=torch.bfloat16):
    dv = d if dv is None else dv
    shapes = (b, h, m, d), (b, hkv, n, d), (b, hkv, n, dv)
    return tuple(torch.randn(shape, device=DEVICE).to(dtype) for shape in shapes)


def reference(q, k, v, *, scale=None, causal=None, window=None, score=None, mask=None, sink=None):
    """(output, lse) in f64, on the GPU. Functions are called once, on tensors of positions."""
    q, k, v = (x.double() for x in (q, k, v))
    b, h, m, d = q.shape
    n, group = k.shape[2], h // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = q @ k.transpose(2, 3) * (d**-0.5 if scale is None else scale)
    positions = [
        torch.arange(extent, device=DEVICE).view([-1 if i == dim else 1 for i in range(4)])
        for dim, extent in enumerate((b, h, m, n))
    ]
    ib, ih, i, j = positions
    keep = torch.ones_like(s, dtype=torch.bool)
    if causal:
        keep = keep & (j <= i + (n - m if causal == "bottom_right" else 0))
    if window:
        row = i + n - m
        keep = keep & ((j >= row - window[0]) | (window[0] < 0))
        keep = keep & ((j <= row + window[1]) | (window[1] < 0))
    if score is not None:
        s = score(s, ib, ih, i, j).double()
    if mask is not None:
        keep = keep & mask(ib, ih, i, j)
    s = torch.where(keep, s, -torch.inf)
    columns = s
    if sink is not None:
        columns = torch.cat([s, sink.double().view(1, h, 1, 1).expand(b, h, m, 1)], 3)
    lse = torch.logsumexp(columns, 3) if columns.shape[3] else s.new_full((b, h, m), -torch.inf)
    weights = torch.where(keep, torch.exp(s - lse.clamp_min(-1e300)[..., None]), 0)
    return weights @ v, lse


def check(got, wanted, dtype=torch.bfloat16):
    assert got.shape == wanted.shape
    got = got.double()
    finite = torch.isfinite(wanted)
    assert torch.equal(got[~finite], wanted[~finite])
    error = ((got - wanted).abs() / wanted.abs().clamp_min(1))[finite]
    worst = error.max().item() if error.numel() else 0
    assert worst <= TOLERANCE.get(dtype, 1e-4), f"off by {worst}"


def gradients(tensors, d_output, d_lse=None, **how):
    """Of the definition in f64."""
    wide = [x.detach().double().requires_grad_() for x in tensors]
    output, lse = reference(*wide, **how)
    total = (output * d_output.double()).sum()
    if d_lse is not None:
        total = total + (lse * d_lse.double()).sum()
    return torch.autograd.grad(total, wide)


def check_gradients(got, wanted):
    for x, y in zip(got, wanted):
        assert x.shape == y.shape and torch.isfinite(x).all()
        limit = TOLERANCE[x.dtype] * max(1.0, y.abs().max().item())
        assert ((x.double() - y).abs() <= limit).all(), (x.double() - y).abs().max().item() / limit


def recorded(**shape):
    return [x.requires_grad_() for x in inputs(**shape)]
