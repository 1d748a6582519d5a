"""attn.jax on a GPU. Skipped where JAX finds none; needs this package and libattn.so, no build tree."""

import os

import pytest

import attn

jax = pytest.importorskip("jax")
jnp = jax.numpy
# Others in this process need memory too.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
if jax.default_backend() not in ("gpu", "cuda"):
    pytest.skip("JAX has no GPU", allow_module_level=True)

import attn.jax  # noqa: E402


def inputs(b=2, m=70, n=90, h=4, g=2, d=64, dtype=jnp.bfloat16):
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = (b, m, h, d), (b, n, g, d), (b, n, g, d)
    return [jax.random.normal(key, shape, dtype) for key, shape in zip(keys, shapes)]


def wanted(q, k, v, **how):
    """In f32, of JAX."""
    with jax.default_matmul_precision("highest"):
        return jax.nn.dot_product_attention(*[x.astype(jnp.float32) for x in (q, k, v)], **how)


def is_close(x, y, tolerance=2.5e-2):
    x, y = x.astype(jnp.float32), y.astype(jnp.float32)
    return bool(jnp.linalg.norm(x - y) <= tolerance * jnp.linalg.norm(y))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize(
    "how", [{}, {"is_causal": True}, {"scale": 0.3}, {"local_window_size": (9, 4)}]
)
def test_calls(dtype, how):
    x = inputs(dtype=dtype)
    got = attn.jax.attention(*x, **how)
    assert got.dtype == dtype and list(got.devices())[0].platform == "gpu"
    assert is_close(got, wanted(*x, **how))
    assert is_close(jax.jit(lambda *x: attn.jax.attention(*x, **how))(*x), wanted(*x, **how))


def test_gradients():
    x = inputs()
    bias = jax.random.normal(jax.random.key(1), (1, 4, 70, 90), jnp.float32)

    def loss(attend, scale, bias, *x):
        return attend(*x, bias=bias, scale=scale).astype(jnp.float32).sum()

    got = jax.jit(jax.grad(lambda *x: loss(attn.jax.attention, *x), range(5)))(0.2, bias, *x)
    expected = jax.grad(lambda *x: loss(wanted, *x), range(5))(0.2, bias, *x)
    for mine, other in zip(got, expected):
        assert is_close(mine, other, 4e-2)


def test_vmap_and_functions():
    x = inputs()
    slopes = jnp.float32([0.5, 0.25, 0.125, 0.0625])
    many = jnp.stack([x[0], x[0] + 1])

    def call(q, slopes):
        return attn.jax.attention(q, *x[1:], score=lambda s, b, h, i, j: s - slopes[h] * abs(i - j))

    distance = jnp.abs(jnp.arange(70)[:, None] - jnp.arange(90))
    bias = -slopes[None, :, None, None] * distance
    got = jax.vmap(lambda q: call(q, slopes))(many)
    for i in range(2):
        assert is_close(got[i], wanted(many[i], *x[1:], bias=bias))


def test_eager_arrays():
    """attn.attention itself, through DLPack and PyTorch."""
    pytest.importorskip("torch")
    q, k, v = [x.swapaxes(1, 2) for x in inputs()]
    got = attn.attention(q, k, v, causal="top_left")
    expected = wanted(*[x.swapaxes(1, 2) for x in (q, k, v)], is_causal=True)
    assert isinstance(got, jax.Array) and is_close(got.swapaxes(1, 2), expected)


def test_refusals():
    x = inputs(dtype=jnp.float32)
    with pytest.raises(Exception, match="float16|f16"):
        jax.block_until_ready(attn.jax.attention(*x))
