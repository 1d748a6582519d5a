"""Attention with a mask of its own, from Python."""

import numpy

import attn

rng = numpy.random.default_rng(0)
q, k, v = (rng.standard_normal((1, 2, 40, 16), dtype="float32") for _ in range(3))
output = attn.attention(q, k, v, mask=lambda b, h, i, j: (j <= i) & (i - j < 8))

i, j = numpy.mgrid[:40, :40]
scores = numpy.where((j <= i) & (i - j < 8), q @ k.swapaxes(2, 3) / 4, -numpy.inf)
weights = numpy.exp(scores - scores.max(-1, keepdims=True))
expected = weights / weights.sum(-1, keepdims=True) @ v
assert numpy.abs(output - expected).max() < 1e-5
print("Python: as defined")
