"""Functions of PyTorch and NumPy inside a score: values and gradients as their own."""

import inspect

import numpy as np
import pytest

import attn

torch = pytest.importorskip("torch")
F = torch.nn.functional

# Steps and kinks lie where no score does.
SCORES = [
    lambda s, i, j: torch.add(s, i, alpha=0.25) + torch.sub(s, j, alpha=0.5) + s.add(i, alpha=2),
    lambda s, i, j: torch.rsub(s, 1, alpha=2) + torch.reciprocal(s * s + 1),
    lambda s, i, j: s + torch.div(i, 2, rounding_mode="floor") + torch.div(i, 4),
    lambda s, i, j: s + torch.div(i - j, 3, rounding_mode="trunc"),
    lambda s, i, j: s
    + torch.div(s * 4, 3, rounding_mode="trunc")
    + s.div(3, rounding_mode="floor"),
    lambda s, i, j: s + torch.fmod(i - j, 3) + torch.remainder(i - j, 3) + torch.fmod(s * 4, 1.5),
    lambda s, i, j: s + torch.trunc(s * 3) + torch.fix(i) + torch.round(i),
    lambda s, i, j: s + torch.round(s * 3) + torch.round((i - j) * 0.5),
    lambda s, i, j: s * torch.sign(s) + torch.sign(i - j) + s.sign(),
    lambda s, i, j: torch.where(torch.isnan(s), 0.0, s) + torch.isfinite(s) + torch.isinf(s),
    lambda s, i, j: torch.where(torch.isinf(torch.where(i > j, torch.inf, s)), 0.5, s),
    lambda s, i, j: F.leaky_relu(s, 0.1) + F.leaky_relu(s * 2),
    lambda s, i, j: F.elu(s * 2) + F.elu(s, alpha=0.5),
    lambda s, i, j: F.hardtanh(s) + F.hardtanh(s, -0.5, 0.25),
    lambda s, i, j: F.logsigmoid(s * 3) + F.softplus(s) + F.silu(s) + F.gelu(s),
    lambda s, i, j: torch.tan(s * 0.3) + torch.log10(abs(s) + 1),
    lambda s, i, j: s + torch.bitwise_left_shift(i, 2) * 0.1 + torch.bitwise_right_shift(j, 1),
    lambda s, i, j: s + torch.logical_xor(i > 2, j > 2).float() + torch.bitwise_not(i) * 0.1,
    lambda s, i, j: s.clone().contiguous() + torch.bitwise_not(i > j).float(),
]


@pytest.mark.parametrize("f", SCORES, ids=range(len(SCORES)))
def test_values_and_gradients(f):
    q, k, v = (torch.randn(1, 2, n, 16).requires_grad_() for n in (9, 11, 11))
    i, j = torch.arange(9)[:, None], torch.arange(11)[None, :]
    wanted = torch.softmax(f(q @ k.mT / 4, i, j), -1) @ v
    got = attn.attention(q, k, v, score=lambda s, b, h, i, j: f(s, i, j))
    torch.testing.assert_close(got, wanted, atol=2e-5, rtol=2e-5)
    d_output = torch.randn_like(wanted)
    for mine, theirs in zip(
        torch.autograd.grad(got, (q, k, v), d_output),
        torch.autograd.grad(wanted, (q, k, v), d_output),
    ):
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)


def test_functions_of_numpy():
    q = np.random.default_rng(1).standard_normal((1, 1, 9, 8)).astype(np.float32)

    def f(s, i, j):
        return (
            np.sign(s)
            + np.trunc(s * 3)
            + np.rint(i * 0.5)
            + np.fmod(i - j, 4)
            + np.left_shift(i, 1)
        )

    i, j = np.arange(9)[:, None], np.arange(9)[None, :]
    weights = np.exp(f(q @ q.swapaxes(-1, -2) / np.sqrt(8), i, j))
    wanted = weights / weights.sum(-1, keepdims=True) @ q
    got = attn.attention(q, q, q, score=lambda s, b, h, i, j: f(s, i, j))
    np.testing.assert_allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize("f, message", [
    (lambda s: np.add(s, s, dtype="f4"), "expected a call of numpy.add without dtype"),
    (lambda s: np.add.outer(s, s), "expected a call of numpy.add, got numpy.add.outer"),
    (lambda s: torch.round(s, decimals=2), "expected no decimals, got 2"),
    (lambda s: torch.div(s, 2, rounding_mode="up"), 'or None as the rounding mode, got \'up\''),
    (lambda s: F.rrelu(s), "expected a function that attn can compile, got torch.rrelu"),
])  # fmt: skip
def test_refusals_name_the_line_of_the_user(f, message):
    q = np.zeros((1, 1, 4, 8), np.float32)
    with pytest.raises(attn.Error) as caught:
        attn.attention(q, q, q, score=lambda s, b, h, i, j: f(s))
    assert message in str(caught.value)
    assert f"{__file__}:{inspect.getsourcelines(f)[1]}" in str(caught.value)
