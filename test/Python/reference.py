"""The definition of attention in f64, slow and obvious."""

import numpy as np


def keep_causal(alignment, m, n, i, j):
    return j <= i + (n - m if alignment == "bottom_right" else 0)


def attention(q, k, v, *, scale=None, causal=None, window=None, score=None, mask=None, sink=None):
    """(output, lse) in f64 of arrays (B, H, S, D). Functions are called element by element."""
    q, k, v = (np.asarray(x, dtype=np.float64) for x in (q, k, v))
    batch, heads, m, d = q.shape
    n, group = k.shape[2], heads // max(k.shape[1], 1)
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    s = q @ k.swapaxes(2, 3) * (d**-0.5 if scale is None else scale)
    keep = np.ones(s.shape, dtype=bool)
    i, j = np.arange(m)[:, None], np.arange(n)[None, :]
    if causal:
        keep &= keep_causal(causal, m, n, i, j)
    if window:
        left, right = (-1 if side is None else side for side in window)
        row = i + n - m
        keep &= (j >= row - left) | (left < 0)
        keep &= (j <= row + right) | (right < 0)
    for position in np.ndindex(*s.shape):
        if mask is not None:
            keep[position] &= bool(mask(*position))
        if score is not None:
            s[position] = float(score(float(s[position]), *position))
    s = np.where(keep, s, -np.inf)
    columns = s
    if sink is not None:
        extra = np.broadcast_to(
            np.asarray(sink, dtype=np.float64)[None, :, None, None], (batch, heads, m, 1)
        )
        columns = np.concatenate([s, extra], axis=3)
    with np.errstate(divide="ignore", invalid="ignore"):
        top = np.max(columns, axis=3, keepdims=True, initial=-np.inf)
        safe = np.where(np.isfinite(top), top, 0)
        total = np.exp(columns - safe).sum(axis=3, keepdims=True)
        output = np.where(total > 0, (np.exp(s - safe) / total) @ v, 0)
        lse = (safe + np.log(total))[..., 0]
    return output, lse


TOLERANCE = {"float32": 2e-5, "float16": 3e-3, "bfloat16": 2.5e-2}


def check(got, wanted, dtype="float32"):
    got = np.asarray(got, dtype=np.float64)
    assert got.shape == wanted.shape
    finite = np.isfinite(wanted)
    assert np.array_equal(got[~finite], wanted[~finite])
    error = np.abs(got[finite] - wanted[finite])
    limit = TOLERANCE[str(dtype)] * np.maximum(1, np.abs(wanted[finite]))
    assert (error <= limit).all(), f"off by {error.max()}"
