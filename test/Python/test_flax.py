"""attn as attention_fn of Flax, in both of its APIs and by itself. Runs where Flax is installed: make test-neighbours."""

import pytest

import attn

jax = pytest.importorskip("jax")
pytest.importorskip("flax")
import jax.numpy as jnp  # noqa: E402

from attn.integrations.flax import dot_product_attention  # noqa: E402

pytestmark = pytest.mark.made_of("python/attn/integrations/flax.py", "python/attn/jax.py")


def make(*batch, m=9, n=11, h=4, d=16):
    keys = jax.random.split(jax.random.key(0), 3)
    return [jax.random.normal(key, (*batch, x, h, d)) for key, x in zip(keys, (m, n, n))]


def define(q, k, v, bias=None, mask=None, is_causal=False):
    s = jnp.einsum("...mhd,...nhd->...hmn", q, k) * q.shape[-1] ** -0.5
    s = s if bias is None else s + bias
    s = s if mask is None else jnp.where(mask, s, -jnp.inf)
    if is_causal:
        s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -jnp.inf)
    return jnp.einsum("...hmn,...nhd->...mhd", jax.nn.softmax(s), v)


@pytest.mark.parametrize(
    "batch, bias, mask, is_causal",
    [
        ((2,), None, None, False),
        ((2,), (2, 4, 9, 11), None, True),
        ((2, 3), (4, 1, 11), (2, 3, 1, 1, 11), False),
        ((), None, (9, 11), False),
        ((2, 3), (2, 1, 4, 9, 11), None, False),
    ],
)
def test_calls(batch, bias, mask, is_causal):
    """Forward, and gradients of queries, keys, values and the bias."""
    q, k, v = make(*batch)
    bias = None if bias is None else jax.random.normal(jax.random.key(1), bias)
    mask = None if mask is None else jax.random.bernoulli(jax.random.key(2), 0.7, mask).at[..., 0].set(True)
    how = dict(mask=mask, is_causal=is_causal)
    got, wanted = dot_product_attention(q, k, v, bias, **how), define(q, k, v, bias, **how)
    assert got.shape == wanted.shape and jnp.allclose(got, wanted, atol=2e-5)
    of = (0, 1, 2) if bias is None else (0, 1, 2, 3)
    both = [
        jax.jit(jax.grad(lambda *x: (f(*x, **how) ** 2).sum(), of))(*([q, k, v] + [bias] * (len(of) - 3)))
        for f in (dot_product_attention, define)
    ]
    for x, y in zip(*both):
        assert jnp.allclose(x, y, atol=1e-4)


def test_types_are_promoted():
    q, k, v = make(1)
    assert dot_product_attention(q.astype(jnp.bfloat16), k, v).dtype == jnp.float32
    assert dot_product_attention(q, k, v, dtype=jnp.bfloat16).dtype == jnp.bfloat16


def test_nnx():
    nnx = pytest.importorskip("flax.nnx")
    x = jax.random.normal(jax.random.key(0), (2, 9, 32))
    mask = nnx.make_causal_mask(jnp.ones((2, 9)))
    modules = [
        nnx.MultiHeadAttention(4, 32, decode=False, rngs=nnx.Rngs(0), **how)
        for how in ({}, {"attention_fn": dot_product_attention})
    ]
    wanted, got = (module(x, mask=mask) for module in modules)
    assert jnp.allclose(got, wanted, atol=2e-5)
    losses = [nnx.grad(lambda module: (module(x, mask=mask) ** 2).sum())(module) for module in modules]
    for mine, theirs in zip(*(jax.tree.leaves(loss) for loss in losses)):
        assert jnp.allclose(mine, theirs, atol=1e-3)


def test_linen():
    linen = pytest.importorskip("flax.linen")
    x = jax.random.normal(jax.random.key(0), (2, 9, 32))
    mask = linen.make_causal_mask(jnp.ones((2, 9)))
    modules = [
        linen.MultiHeadDotProductAttention(num_heads=4, **how)
        for how in ({}, {"attention_fn": dot_product_attention})
    ]
    parameters = modules[0].init(jax.random.key(1), x)
    wanted, got = (module.apply(parameters, x, mask=mask) for module in modules)
    assert jnp.allclose(got, wanted, atol=2e-5)
    gradients = [
        jax.grad(lambda p: (module.apply(p, x, mask=mask) ** 2).sum())(parameters) for module in modules
    ]
    for mine, theirs in zip(*(jax.tree.leaves(each) for each in gradients)):
        assert jnp.allclose(mine, theirs, atol=1e-3)


@pytest.mark.parametrize(
    "how, message",
    [
        ({"dropout_rate": 0.1}, "^dropout_rate: expected 0, or deterministic=True, got 0.1"),
        ({"module": object()}, "^module: expected None, got a module that stores the weights"),
        ({"einsum": jnp.einsum}, "^einsum: expected None"),
        ({"force_fp32_for_softmax": True}, "^force_fp32_for_softmax: expected None, got True"),
        ({"precision": 3}, "^precision: expected a jax.lax.Precision, got 3"),
        ({"bias": jnp.zeros((1, 1, 1, 9, 11))}, r"^bias: expected a shape that broadcasts to \(1, 4, 9, 11\)"),
        ({"mask": jnp.zeros((3, 9, 11), bool)}, "mask: expected a shape that broadcasts"),
    ],
)
def test_refusals(how, message):
    with pytest.raises(attn.Error, match=message):
        dot_product_attention(*make(1), **how)


def test_other_batches_are_refused():
    q, k, v = make(1)
    with pytest.raises(attn.Error, match=r"^key and value: expected batches \(1,\), as in query"):
        dot_product_attention(q, jnp.concatenate([k, k]), v)


def test_dropout_that_is_off():
    q, k, v = make(1)
    got = dot_product_attention(q, k, v, dropout_rate=0.1, deterministic=True)
    assert jnp.allclose(got, define(q, k, v), atol=2e-5)
