"""Rows and keys of a whole, and outputs of float32, in attn.jax: compared with one call of the whole."""

import numpy as np
import pytest

import attn

jax = pytest.importorskip("jax")
jax.config.update("jax_num_cpu_devices", 2)

import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import attn.jax

B, M, N, H, D = 2, 40, 50, 4, 16
WHOLE = dict(total=(M, N))


@pytest.fixture
def tensors(rng):
    shapes = (B, M, H, D), (B, N, 2, D), (B, N, 2, D), (H, M + N + 1)
    return [jnp.asarray(rng.standard_normal(shape), jnp.float32) for shape in shapes]


def attend(q, k, v, table, **how):
    return attn.jax.attention(q, k, v, score=lambda s, b, h, i, j: s + table[h, i - j + N], is_causal=True, **how)


# Where rows stand, and how a call says so.
ROWS = {
    "origin": (np.arange(5, 9), 5),
    "number of an array": (np.arange(5, 9), np.int32(5)),
    "interval": (np.arange(5, 9), [(5, 9)]),
    "intervals": (np.r_[0:3, 7:9], [(0, 3), (7, 9)]),
    "table": (np.r_[3:9, 20:31], np.r_[3:9, 20:31]),
}


@pytest.mark.parametrize("kind", ROWS)
def test_rows(tensors, kind):
    at, rows = ROWS[kind]
    q, *others = tensors
    wanted = attend(q, *others)[:, at]
    how = dict(positions=(rows, None), **WHOLE)
    assert jnp.array_equal(attend(q[:, at], *others, **how), wanted)
    if isinstance(rows, np.ndarray):
        # As JAX traces it.
        run = jax.jit(lambda q, rows: attend(q, *others, positions=(rows, None), **WHOLE))
        assert jnp.array_equal(run(q[:, at], jnp.asarray(rows)), wanted)


def test_keys_add_up(tensors):
    """Two halves of the keys, of float32, and what attn.merge makes of them."""
    q, k, v, table = tensors
    q, k, v = (x.astype(jnp.bfloat16) for x in (q, k, v))
    parts = []
    for keys in ([(0, 20), (30, 40)], [(20, 30), (40, 50)]):
        at = np.concatenate([np.arange(*x) for x in keys])
        how = dict(positions=(None, keys), **WHOLE, out_dtype="float32", return_residual=True)
        parts.append(attend(q, k[:, at], v[:, at], table, **how))
    assert parts[0][0].dtype == jnp.float32 and parts[0][0].shape == q.shape
    outputs, lses = zip(*[(np.asarray(x), np.asarray(y, "float32").swapaxes(1, 2)) for x, y in parts])
    merged, _ = attn.merge(outputs, lses, layout="bshd")
    assert np.abs(merged - np.asarray(attend(q, k, v, table), "float32")).max() < 3e-2


def test_wide_output(tensors):
    """It is what would be rounded, and gradients are those of the output that is."""
    q, k, v, _ = (x.astype(jnp.bfloat16) for x in tensors)
    wide = jax.jit(lambda *x: attn.jax.attention(*x, out_dtype=jnp.float32))
    narrow = attn.jax.attention(q, k, v)
    assert wide(q, k, v).dtype == jnp.float32
    assert jnp.array_equal(wide(q, k, v).astype(jnp.bfloat16), narrow)
    loss = lambda attend: lambda *x: (attend(*x).astype(jnp.float32) ** 2).sum()
    got, wanted = (jax.grad(loss(x), (0, 1, 2))(q, k, v) for x in (wide, attn.jax.attention))
    for x, y in zip(got, wanted):
        assert x.dtype == jnp.bfloat16 and jnp.abs(x - y).max() < 2e-2 * jnp.abs(y).max()


def test_gradients(tensors):
    at = np.r_[3:9, 20:31]

    def loss(is_part):
        def run(q, *others):
            if is_part:
                return (attend(q[:, at], *others, positions=(at, None), **WHOLE) ** 2).sum()
            return (attend(q, *others)[:, at] ** 2).sum()

        return jax.grad(run, (0, 1, 2, 3))(*tensors)

    for x, y in zip(loss(True), loss(False)):
        assert x.shape == y.shape and jnp.abs(x - y).max() < 1e-5


def test_functions_see_the_whole(tensors):
    """Lengths, tables of all rows and keys, and windows."""
    q, k, v, _ = tensors
    keep = jnp.asarray(np.random.default_rng(1).random((1, 1, M, N)) < 0.7)
    lengths = lambda b, h, i, j: j < attn.key_length - i + attn.query_length - 30
    cases = (
        ({"mask": keep}, lambda b, h, i, j: keep[0, 0, i, j]),
        ({"mask": lengths}, lengths),
        ({"local_window_size": (4, 3)}, lambda b, h, i, j: (i <= j + 4) & (i >= j - 3)),
    )
    for how, mask in cases:
        found = attn.jax.attention(q[:, 7:20], k[:, 10:], v[:, 10:], positions=(7, 10), **WHOLE, **how)
        wanted = attn.jax.attention(q, k, v, mask=lambda b, h, i, j: (j >= 10) & mask(b, h, i, j))[:, 7:20]
        assert jnp.abs(found - wanted).max() < 1e-6, how


def test_parts_of_batch_and_heads(tensors):
    """Positions of rows besides those of the batch and the heads that a device has, and under vmap."""
    q, k, v, table = tensors
    at = np.r_[3:9, 20:31]
    how = dict(positions=(jnp.asarray(at), None), **WHOLE)
    wanted = attend(q, k, v, table)[:, at]
    mesh = jax.make_mesh((2,), ("x",))
    for spec in (P("x"), P(None, None, "x")):
        there = [jax.device_put(x, NamedSharding(mesh, spec)) for x in (q[:, at], k, v)]
        found = jax.jit(lambda *x: attend(*x, table, **how))(*there)
        assert jnp.abs(found - wanted).max() < 1e-6, spec
    mapped = jax.vmap(lambda q, k, v: attend(q[None], k[None], v[None], table, **how)[0])(q[:, at], k, v)
    assert jnp.abs(mapped - wanted).max() < 1e-6


@pytest.mark.parametrize(
    "how, words",
    [
        (dict(positions=(0, None)), "total: expected .M, N., the rows and keys of the whole"),
        (dict(positions=5, total=(M, N)), "positions: expected .rows, keys., got 5"),
        (dict(positions=(9, None), total=(M, N)), "positions: expected None, an origin from 0 to 0 for 40 of 40 rows"),
        (dict(positions=(None, "end"), total=(M, N)), "positions: expected None, an origin from 0 to 0 for 50 of 50 keys"),
        (dict(positions=([(0, 3)], None), total=(M, N)), "positions: expected intervals of 40 rows, as the call has, got 3"),
        (dict(positions=(jnp.arange(3), None), total=(M, N)), "positions: expected a table of 40 rows, as the call has"),
        (dict(positions=(jnp.arange(40.0), None), total=(M, N)), "positions: expected integers for rows, got float32"),
        (dict(positions=(jnp.arange(40)[::-1], None), total=(M, N)), "positions: expected a table of rows that does not"),
        (dict(out_dtype="float16"), "out_dtype: expected float32, as elements are f32"),
    ],
    ids=str,
)
def test_what_is_refused(tensors, how, words):
    with pytest.raises(attn.Error, match=words):
        attn.jax.attention(*tensors[:3], **how)
