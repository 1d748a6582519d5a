"""Dropout: against NumPy's own Philox, forward and backward, and what a seed is."""

import numpy as np
import pytest

import attn

torch = pytest.importorskip("torch")

M0, M1, W0, W1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85
LOW = np.uint64(0xFFFFFFFF)


def philox(counter, key):
    """Philox4x32-7 of arrays of uint64 below 2^32."""
    c, k = list(counter), list(key)
    for _ in range(7):
        p0, p1 = c[0] * np.uint64(M0), c[2] * np.uint64(M1)
        high0, low0, high1, low1 = p0 >> np.uint64(32), p0 & LOW, p1 >> np.uint64(32), p1 & LOW
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
        k = [(k[0] + np.uint64(W0)) & LOW, (k[1] + np.uint64(W1)) & LOW]
    return c


def draw(seed, p, b, h, m, n):
    """The factors (b, h, m, n) of s16."""
    at = [x.astype(np.uint64) for x in np.broadcast_arrays(*np.ogrid[:b, :h, :m, :n])]
    word = seed % (1 << 64)
    key = [np.uint64(word & 0xFFFFFFFF), np.uint64(word >> 32)]
    far, odd = np.uint64(8), np.uint64(1)
    words = philox([at[3] & ~(far | odd), at[2] & ~far, at[1], at[0]], key)
    which = (2 * (at[2] & far != 0) + (at[3] & far != 0)).astype(np.int64)
    drawn = np.choose(which, words) >> (np.uint64(16) * (at[3] & odd)) & np.uint64(0xFFFF)
    least = min(round(p * 2**16), 2**16 - 1)
    return np.where(drawn < least, 0.0, np.float32(1 / (1 - least / 2**16)))


def test_philox_is_that_of_its_authors():
    zero = np.zeros(1, np.uint64)
    assert [int(x[0]) for x in philox([zero] * 4, [zero, zero])] == [
        0x5F6FB709,
        0x0D893F64,
        0x4F121F81,
        0x4F730A48,
    ]


def attend(q, k, v, factors):
    """In f64, of PyTorch, with gradients."""
    s = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    return (torch.softmax(s, -1) * torch.as_tensor(factors)) @ v


def make(m, n, d=32, dtype=torch.float32):
    generator = torch.Generator().manual_seed(m * n)
    shapes = (2, 3, m, d), (2, 3, n, d), (2, 3, n, d)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", [0, 12345678901234567, -3])
@pytest.mark.parametrize("m, n", [(1, 1), (70, 131)])
def test_numpy_computes_the_same(p, seed, m, n):
    q, k, v = make(m, n)
    factors = draw(seed, p, 2, 3, m, n)
    x = [t.clone().requires_grad_() for t in (q, k, v)]
    y = [t.double().requires_grad_() for t in (q, k, v)]
    got = attn.attention(*x, dropout_p=p, dropout_seed=seed)
    expected = attend(*y, factors)
    torch.testing.assert_close(got.double(), expected, rtol=2e-4, atol=2e-5)
    gradient = torch.randn(got.shape, generator=torch.Generator().manual_seed(1))
    for mine, other in zip(
        torch.autograd.grad(got, x, gradient), torch.autograd.grad(expected, y, gradient.double())
    ):
        torch.testing.assert_close(mine.double(), other, rtol=5e-4, atol=2e-4)
    found = attn.gradient(q, k, v, gradient, dropout_p=p, dropout_seed=seed)
    again = attn.attention(*x, dropout_p=p, dropout_seed=seed)
    for mine, other in zip(found, torch.autograd.grad(again, x, gradient)):
        assert torch.equal(mine, other)
    arrays = attn.attention(q.numpy(), k.numpy(), v.numpy(), dropout_p=p, dropout_seed=seed)
    assert np.array_equal(arrays, got.detach().numpy())


def test_it_composes_with_functions():
    q, k, v = make(40, 50)
    bias = torch.randn(3, 50)
    x = [t.clone().requires_grad_() for t in (q, k, v, bias)]
    y = [t.double().requires_grad_() for t in (q, k, v, bias)]
    got = attn.attention(
        *x[:3],
        score=lambda s, b, h, m, n: s + x[3][h, n],
        mask=lambda b, h, m, n: n <= m + 10,
        dropout_p=0.3,
        dropout_seed=5,
    )
    s = y[0] @ y[1].transpose(-1, -2) / 32**0.5 + y[3][:, None, :]
    keep = torch.arange(50) <= torch.arange(40)[:, None] + 10
    weights = torch.softmax(s.masked_fill(~keep, -torch.inf), -1)
    expected = (weights * torch.as_tensor(draw(5, 0.3, 2, 3, 40, 50))) @ y[2]
    torch.testing.assert_close(got.double(), expected, rtol=2e-4, atol=2e-5)
    for mine, other in zip(
        torch.autograd.grad(got.sum(), x), torch.autograd.grad(expected.sum(), y)
    ):
        torch.testing.assert_close(mine.double(), other, rtol=5e-4, atol=3e-4)


def test_rates_and_means():
    """Of 2^18 weights, within five standard deviations."""
    p, n = 0.2, 512
    q = torch.zeros(1, 1, n, 16)
    v = torch.eye(n).reshape(1, 1, n, n)
    k = torch.zeros(1, 1, n, 16)
    weights = attn.attention(q, k, v, dropout_p=p, dropout_seed=7) * n
    kept = weights > 0
    deviation = (p * (1 - p) / kept.numel()) ** 0.5
    assert abs(kept.double().mean() - (1 - p)) < 5 * deviation
    assert abs(weights.double().mean() - 1) < 5 * deviation / (1 - p)
    # Neighbours, rows, keys and seeds know nothing of one another.
    other = attn.attention(q, k, v, dropout_p=p, dropout_seed=8) > 0
    neighbours = [(kept[..., i:], kept[..., :-i]) for i in (1, 2, 8, 9)]
    neighbours += [(kept[:, :, i:], kept[:, :, :-i]) for i in (1, 8)]
    for a, b in (*neighbours, (kept, other)):
        both = (a & b).double().mean()
        assert abs(both - (1 - p) ** 2) < 6 * ((1 - p) ** 2 / a.numel()) ** 0.5


def test_parts_do_not_matter():
    q, k, v = make(100, 200)
    whole = attn.attention(q, k, v, dropout_p=0.4, dropout_seed=1)
    for options in ({"splits": 3}, {"block_m": 16, "block_n": 24}, {"threads": 1}):
        part = attn.attention(q, k, v, dropout_p=0.4, dropout_seed=1, options=options)
        torch.testing.assert_close(part, whole, rtol=1e-4, atol=1e-5)


def test_the_generator_decides():
    q, k, v = make(20, 30)
    torch.manual_seed(3)
    first, second = (attn.attention(q, k, v, dropout_p=0.5) for _ in range(2))
    torch.manual_seed(3)
    again = attn.attention(q, k, v, dropout_p=0.5)
    assert torch.equal(first, again) and not torch.equal(first, second)
    np.random.seed(3)
    arrays = [x.numpy() for x in (q, k, v)]
    one, two = (attn.attention(*arrays, dropout_p=0.5) for _ in range(2))
    np.random.seed(3)
    assert np.array_equal(one, attn.attention(*arrays, dropout_p=0.5))
    assert not np.array_equal(one, two)


def test_a_seed_is_an_argument(monkeypatch):
    q, k, v = make(20, 30)
    expected = attn.attention(q, k, v, dropout_p=0.5, dropout_seed=11)
    from attn import _plan

    monkeypatch.setattr(_plan, "_compile", lambda *_: pytest.fail("compiled again"))
    for seed in (torch.tensor(11), torch.tensor([11], dtype=torch.int32), np.int64(11)):
        got = attn.attention(q, k, v, dropout_p=0.5, dropout_seed=seed)
        assert torch.equal(got, expected)


def test_the_ends():
    q, k, v = make(20, 30)
    assert torch.equal(attn.attention(q, k, v, dropout_p=0.0), attn.attention(q, k, v))
    x = [t.clone().requires_grad_() for t in (q, k, v)]
    output, lse = attn.attention(*x, dropout_p=1.0, return_lse=True)
    assert torch.equal(output, torch.zeros_like(output))
    torch.testing.assert_close(lse, attn.attention(q, k, v, return_lse=True)[1])
    for gradient in torch.autograd.grad(output.sum(), x):
        assert torch.equal(gradient, torch.zeros_like(gradient))


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan"), "half", "0.5"])
def test_probabilities(p):
    q, k, v = make(2, 2)
    with pytest.raises(attn.Error, match="dropout_p: expected a probability from 0 to 1"):
        attn.attention(q, k, v, dropout_p=p)


@pytest.mark.parametrize("seed", [1.5, True, torch.tensor([1, 2]), torch.tensor([1.0]), "seed"])
def test_seeds(seed):
    q, k, v = make(2, 2)
    with pytest.raises(attn.Error, match="dropout_seed: expected None, an integer or an array"):
        attn.attention(q, k, v, dropout_p=0.5, dropout_seed=seed)


def test_seeds_in_arrays_of_numpy():
    q, k, v = [x.requires_grad_() for x in make(2, 2)]
    outputs = [
        attn.attention(q, k, v, dropout_p=0.5, dropout_seed=seed)
        for seed in (3, np.array([3]), np.array(3, np.int32), np.uint8([3])[0])
    ]
    gradients = [torch.autograd.grad(x.sum(), (q, k, v)) for x in outputs]
    assert all(torch.equal(x, outputs[0]) for x in outputs)
    assert all(torch.equal(x, y) for each in gradients for x, y in zip(each, gradients[0]))


def test_a_gradient_needs_the_seed():
    q, k, v = make(2, 2)
    with pytest.raises(attn.Error, match="dropout_seed: expected that of the call"):
        attn.gradient(q, k, v, q, dropout_p=0.5)


def test_drop_ins():
    from attn.integrations import flash_attn
    from attn.integrations import torch as integration

    q, k, v = make(20, 30)
    torch.manual_seed(5)
    expected = attn.attention(q, k, v, dropout_p=0.25)
    torch.manual_seed(5)
    before = dict(integration.served)
    got = integration.scaled_dot_product_attention(q, k, v, dropout_p=0.25)
    assert torch.equal(got, expected)
    assert integration.served["scaled_dot_product_attention"] == 1 + before.get(
        "scaled_dot_product_attention", 0
    )
    torch.manual_seed(5)
    x = [t.transpose(1, 2) for t in (q, k, v)]
    assert torch.equal(flash_attn.flash_attn_func(*x, dropout_p=0.25).transpose(1, 2), expected)
    with pytest.raises(attn.Error, match="dropout_p: expected a probability"):
        flash_attn.flash_attn_func(*x, dropout_p=2.0)


def compile_whole(call, backend="aot_eager"):
    torch._dynamo.reset()
    return torch.compile(call, backend=backend, fullgraph=True)


def test_compiled():
    """One graph; probabilities are constants of it, seeds are not."""
    q, k, v = make(20, 30)

    def call(q, p, seed):
        return attn.attention(q, k, v, dropout_p=p, dropout_seed=seed) + 1

    whole = compile_whole(call)
    for p, seed in ((0.25, 3), (0.25, 5), (0.25, -7), (0.5, -7), (0.5, torch.tensor(9)), (0.0, 1)):
        assert torch.equal(whole(q, p, seed), call(q, p, seed))
    torch.manual_seed(3)
    expected = call(q, 0.25, None)
    torch.manual_seed(3)
    assert torch.equal(whole(q, 0.25, None), expected)
    assert not torch.equal(whole(q, 0.25, None), expected)
    with pytest.raises(Exception, match="a probability from 0 to 1"):
        whole(q, 1.5, 3)


def test_compiled_with_functions():
    """The drop-in, whose mask is a node of the graph; gradients see what forward drew."""
    from attn.integrations import torch as integration

    x = [t.requires_grad_() for t in make(20, 30)]
    keep = torch.rand(20, 30) < 0.7

    def call(*x):
        sdpa = integration.scaled_dot_product_attention
        return sdpa(*x, attn_mask=keep, dropout_p=0.25).sin() + sdpa(*x, dropout_p=0.5)

    before = sum(integration.fallbacks.values())
    results = []
    for function in (call, compile_whole(call)):
        torch.manual_seed(5)
        output = function(*x)
        results.append((output, *torch.autograd.grad(output.sum(), x)))
    for mine, other in zip(*results):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-5)
    assert sum(integration.fallbacks.values()) == before


def test_compiled_by_inductor():
    """It draws from a generator of its own, and torch.manual_seed sets that one too."""
    pytest.importorskip("torch._inductor")
    q, k, v = make(20, 30)
    v.requires_grad_()
    whole = compile_whole(lambda *x: attn.attention(*x, dropout_p=0.25), "inductor")
    first, second = whole(q, k, v), whole(q, k, v)
    assert not torch.equal(first, second)
    (gradient,) = torch.autograd.grad(first.sum(), v)
    # The output is linear in v, if both draw the same.
    torch.testing.assert_close((gradient * v).sum(), first.sum(), rtol=1e-3, atol=1e-3)
    torch.manual_seed(3)
    first = whole(q, k, v)
    torch.manual_seed(3)
    assert torch.equal(whole(q, k, v), first)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_checkpoints(is_compiled):
    """What is computed again is the same."""
    from torch.utils.checkpoint import checkpoint

    q, k, v = make(20, 30)
    v.requires_grad_()

    def call(*x):
        return checkpoint(lambda *x: attn.attention(*x, dropout_p=0.25), *x, use_reentrant=False)

    output = (compile_whole(call) if is_compiled else call)(q, k, v)
    (gradient,) = torch.autograd.grad(output.sum(), v)
    torch.testing.assert_close((gradient * v).sum(), output.sum(), rtol=1e-3, atol=1e-3)


def test_vmap():
    """A seed draws the same for each of what is mapped, as in a loop over it."""
    q, k, v = make(20, 30)
    many = torch.stack([q, q + 1])

    def call(q):
        return attn.attention(q, k, v, dropout_p=0.25, dropout_seed=3)

    assert torch.equal(torch.vmap(call)(many), torch.stack([call(x) for x in many]))
    with pytest.raises(RuntimeError, match="randomness"):
        torch.vmap(lambda q: attn.attention(q, k, v, dropout_p=0.25))(many)


def test_compiled_kernels():
    q, k, v = make(20, 30)
    kernel = attn.compile("float32", 32, causal=True, dropout_p=0.25)
    how = dict(causal=True, dropout_p=0.25)
    expected = attn.attention(q, k, v, **how, dropout_seed=3)
    for seed in (3, torch.tensor([3])):
        assert torch.equal(kernel(q, k, v, dropout_seed=seed), expected)
    out = torch.empty_like(expected)
    assert kernel(q, k, v, dropout_seed=3, out=out) is out and torch.equal(out, expected)
    arrays = [x.numpy() for x in (q, k, v)]
    assert np.array_equal(kernel(*arrays, dropout_seed=3), expected.numpy())
    torch.manual_seed(3)
    drawn = kernel(q, k, v)
    torch.manual_seed(3)
    assert torch.equal(drawn, attn.attention(q, k, v, **how))
    x = [t.clone().requires_grad_() for t in (q, k, v)]
    for mine, other in zip(
        torch.autograd.grad(kernel(*x, dropout_seed=3).sum(), x),
        torch.autograd.grad(attn.attention(*x, **how, dropout_seed=3).sum(), x),
    ):
        assert torch.equal(mine, other)
    with pytest.raises(attn.Error, match="dropout_seed: expected none, got one.*dropout_p=0.1"):
        attn.compile("float32", 32)(q, k, v, dropout_seed=3)


def test_arrays_of_jax():
    """By DLPack: NumPy's generator draws, and seeds may be JAX's."""
    jax = pytest.importorskip("jax")
    tensors = make(20, 30)
    arrays = [jax.numpy.asarray(x.numpy()) for x in tensors]
    expected = attn.attention(*tensors, dropout_p=0.25, dropout_seed=3).numpy()
    kernel = attn.compile("float32", 32, dropout_p=0.25)
    for seed in (3, jax.numpy.int32(3), np.int64(3)):
        got = attn.attention(*arrays, dropout_p=0.25, dropout_seed=seed)
        assert isinstance(got, jax.Array) and np.array_equal(got, expected)
        assert np.array_equal(kernel(*arrays, dropout_seed=seed), expected)
    np.random.seed(3)
    first = attn.attention(*arrays, dropout_p=0.25)
    np.random.seed(3)
    assert np.array_equal(first, attn.attention(*arrays, dropout_p=0.25))
    found = attn.gradient(*arrays, arrays[0], dropout_p=0.25, dropout_seed=seed)
    wanted = attn.gradient(*tensors, tensors[0], dropout_p=0.25, dropout_seed=3)
    for mine, other in zip(found, wanted):
        assert np.array_equal(mine, other.numpy())
