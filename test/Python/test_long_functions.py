"""Scores of so many functions that the compiler splits their code."""

import math

import numpy as np
import pytest

import attn

torch = pytest.importorskip("torch")

# 20 instructions each.
COUNT = 150


def test_numbers():
    q, k, v = [torch.randn(1, 2, s, 8, requires_grad=True) for s in (5, 19, 19)]
    wide = [x.detach().double().requires_grad_() for x in (q, k, v)]
    slope = torch.tensor(2.0, requires_grad=True)
    wide.append(slope.detach().double().requires_grad_())

    def chain(s, slope):
        # Each function bends a little, so that many of them neither vanish nor grow.
        for _ in range(COUNT):
            s = s + torch.tanh(s) * 0.002
        return s * slope

    output = attn.attention(q, k, v, score=lambda s, b, h, i, j: chain(s, slope))
    s = chain(wide[0] @ wide[1].mT / math.sqrt(8), wide[3])
    wanted = torch.softmax(s, -1) @ wide[2]
    assert torch.allclose(output.double(), wanted, atol=2e-5)
    d_output = torch.from_numpy(np.random.rand(*output.shape).astype("float32"))
    found = torch.autograd.grad(output, (q, k, v, slope), d_output)
    for x, y in zip(found, torch.autograd.grad(wanted, wide, d_output.double())):
        assert torch.allclose(x.double(), y, atol=2e-4)
