"""Functions of PyTorch and NumPy inside a score: values and gradients as their own."""

import inspect
import math

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


# ===- Bends, small numbers, integers and rows ---------------------------------------------------===#

BENDS = {
    "clamp": (lambda x: torch.clamp(x, -1, 1), [1.0, -1.0, 0.5, 2.0]),
    "clip": (lambda x: x.clip(-1, 1), [1.0, -1.0, 0.5, -2.0]),
    "clamp(min=0)": (lambda x: torch.clamp(x, min=0), [0.0, 0.0, 0.5, -1.0]),
    "clamp_max": (lambda x: torch.clamp_max(x, 0.5), [0.5, 0.0, 0.7, -1.0]),
    "relu": (torch.relu, [0.0, -0.0, 0.5, -1.0]),
    "hardtanh": (F.hardtanh, [1.0, -1.0, 0.5, 2.0]),
    "relu6": (F.relu6, [0.0, 6.0, 0.5, 7.0]),
    "elu": (F.elu, [0.0, -0.0, 0.5, -1.0]),
    "softplus": (lambda x: F.softplus(x, 2, 4), [2.0, 2.0, 0.5, 7.0]),
    "abs": (torch.abs, [0.0, -0.0, 0.5, -1.0]),
    "maximum": (lambda x: torch.maximum(x, torch.zeros_like(x)), [0.0, 0.0, 0.5, -1.0]),
}


def compare_captured(f, values):
    """Values and gradients of a score that adds f of a captured number, beside those of f64."""
    q, k, v = torch.randn(1, 1, 3, 8), torch.randn(1, 1, 4, 8), torch.randn(1, 1, 4, 8)
    given = torch.tensor(values, requires_grad=True)
    wide = given.detach().double().requires_grad_()
    weights = torch.softmax(q.double() @ k.double().mT / 8**0.5 + f(wide), -1)
    wanted = weights @ v.double()
    got = attn.attention(q, k, v, score=lambda s, b, h, i, j: s + f(given[j]))
    torch.testing.assert_close(got.double(), wanted, atol=2e-5, rtol=2e-5)
    d_output = torch.randn_like(got)
    (mine,) = torch.autograd.grad(got, given, d_output)
    (theirs,) = torch.autograd.grad(wanted, wide, d_output.double())
    torch.testing.assert_close(mine.double(), theirs, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", BENDS)
def test_gradients_at_bends(name):
    compare_captured(*BENDS[name])


def test_nan_passes_a_clamp():
    x = torch.full((1, 1, 1, 8), torch.nan)
    for f in (lambda s: s.clamp(-1, 1), torch.relu):
        output = attn.attention(x, x, torch.ones(1, 1, 1, 8), score=lambda s, b, h, i, j: f(s))
        assert torch.isnan(output).all()


@pytest.mark.parametrize("f", [torch.log1p, torch.expm1])
def test_small_numbers(f):
    compare_captured(lambda x: f(x * 1e-9) * 1e9, [1.0, -0.5, 0.0, 2.0])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.to(torch.int32),
        lambda x: x.to(int) if isinstance(x, attn._symbols.Symbol) else x.to(torch.int64),
        lambda x: x.int() + x.long(),
        lambda x: attn.to_int(x) if isinstance(x, attn._symbols.Symbol) else x.long(),
        lambda x: torch.clamp(x, -1e9, 1e9).to(torch.int32) % 7,
    ],
    ids=["int32", "int", "int, long", "to_int", "remainder"],
)
def test_floats_become_integers(f):
    values = torch.tensor([0.0, -0.5, 1.99, -1.99, 7.5, -7.5, 123456.7, -2e9, 2e9])
    table = torch.arange(-3.0, 3.0) / 4
    q = torch.zeros(1, 1, 1, 8)
    k, v = torch.zeros(1, 1, 9, 8), torch.eye(9)[None, None]
    score = lambda s, b, h, i, j: s + table[f(values[j]) % 6]
    got = attn.attention(q, k, v, score=score)[0, 0, 0]
    torch.testing.assert_close(got, torch.softmax(table[f(values) % 6], -1))


def test_integers_of_numbers_that_have_none():
    values = torch.tensor([torch.nan, torch.inf, -torch.inf, 1e30, -1e30, 2147483520.0])
    least, most = -(2**31), 2**31 - 128
    wanted = torch.tensor([least, most, least, most, least, most])
    q, k, v = torch.zeros(1, 1, 1, 8), torch.zeros(1, 1, 6, 8), torch.eye(6)[None, None]
    mask = lambda b, h, i, j: attn.to_int(values[j]) == wanted[j]
    assert torch.allclose(attn.attention(q, k, v, mask=mask), torch.tensor(1 / 6))
    assert attn.to_int(-1.9) == -1 and attn.to_int(float("nan")) == least
    assert attn.to_int(1e300) == most and attn.to_int(True) == 1


def t5_bucket(distance, buckets=8, farthest=20):
    """As Transformers writes it, of both directions."""
    buckets //= 2
    found = (distance > 0).to(torch.long) * buckets
    distance = torch.abs(distance)
    exact = buckets // 2
    far = exact + (
        torch.log(distance.float() / exact) / math.log(farthest / exact) * (buckets - exact)
    ).to(torch.long)
    far = torch.min(far, torch.full_like(far, buckets - 1))
    return found + torch.where(distance < exact, distance, far)


def test_buckets_of_t5():
    table = torch.randn(8, 2, requires_grad=True)
    q, k, v = (torch.randn(1, 2, n, 16, requires_grad=True) for n in (40, 40, 40))
    at = torch.arange(40)
    bias = table[t5_bucket(at - at[:, None])].permute(2, 0, 1)
    wanted = F.scaled_dot_product_attention(q, k, v, bias[None])
    got = attn.attention(q, k, v, score=lambda s, b, h, i, j: s + table[t5_bucket(j - i), h])
    torch.testing.assert_close(got, wanted, atol=2e-5, rtol=2e-5)
    d_output, of = torch.randn_like(wanted), (q, k, v, table)
    for mine, theirs in zip(*[torch.autograd.grad(x, of, d_output) for x in (got, wanted)]):
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)


PLACES, WEIGHTS = torch.randn(11, 3), torch.rand(3)
ROW_SCORES = [
    lambda p, r: (p - r).pow(2).sum(-1),
    lambda p, r: (p - r).abs().amax(-1) - (p * r).mean(dim=-1),
    lambda p, r: torch.sum(torch.exp(-((p - r) ** 2)), dim=-1) / 2,
    lambda p, r: (torch.tanh(p) * r * WEIGHTS).sum(-1) + (2 - p).prod(-1),
    lambda p, r: torch.where(p > r, p, r).amin(-1) + torch.sigmoid(-p).sum(-1),
]


@pytest.mark.parametrize("f", ROW_SCORES, ids=range(len(ROW_SCORES)))
def test_rows_of_captured_arrays(f):
    places = PLACES.clone().requires_grad_()
    q, k, v = (torch.randn(1, 2, n, 16, requires_grad=True) for n in (9, 11, 11))
    bias = f(places[:9, None].expand(9, 11, 3), places[None].expand(9, 11, 3))
    wanted = torch.softmax(q @ k.mT / 4 - bias, -1) @ v
    got = attn.attention(q, k, v, score=lambda s, b, h, i, j: s - f(places[i], places[j]))
    torch.testing.assert_close(got, wanted, atol=2e-5, rtol=2e-5)
    d_output, of = torch.randn_like(wanted), (q, k, v, places)
    for mine, theirs in zip(*[torch.autograd.grad(x, of, d_output) for x in (got, wanted)]):
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)
