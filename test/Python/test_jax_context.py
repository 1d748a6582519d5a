"""attn.jax.context_attention on four devices of this machine, compared with one device in f32."""

import os
import subprocess
import sys

import attn
import pytest

pytest.importorskip("jax")

PROGRAM = '''
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec as P
import attn
import attn.jax

W, B, H, HKV, D, N = 4, 2, 4, 2, 16, 256
rng = np.random.default_rng(SEED)
q, k, v, g = (jnp.asarray(rng.standard_normal((B, N, x, D)), jnp.float32) for x in (H, HKV, HKV, H))
sink = jnp.asarray(rng.standard_normal(H), jnp.float32)
slopes = jnp.asarray(rng.random(H), jnp.float32)
mesh = Mesh(np.array(jax.devices()[:W]), ("cp",))
c = N // (2 * W)
zigzag = np.concatenate([np.r_[r * c : r * c + c, (2 * W - 1 - r) * c : (2 * W - r) * c] for r in range(W)])
spec = P(None, "cp")


def bias(s, b, h, i, j):
    return s - 0.1 * slopes[h] * abs(i - j)


KINDS = {
    "full": {},
    "causal": dict(causal=True),
    "window": dict(window=(40, 0)),
    "bias": dict(score=bias, causal=True),
    "lengths": dict(mask=lambda b, h, i, j: j < attn.key_length - i),
    "sink": dict(sink=sink, causal=True),
}


def define(q, k, v, how):
    i, j = jnp.arange(N)[:, None], jnp.arange(N)[None]
    s = jnp.einsum("bihd,bjhd->bhij", q, jnp.repeat(k, H // HKV, 2)) / D**0.5
    if "score" in how:
        s = s - 0.1 * slopes[:, None, None] * abs(i - j)
    keep = jnp.ones((N, N), bool)
    keep = keep & (j <= i) if how.get("causal") else keep
    keep = keep & (j >= i - 40) & (j <= i) if "window" in how else keep
    keep = keep & (j < N - i) if "mask" in how else keep
    s = jnp.where(keep, s, -jnp.inf)
    if "sink" in how:
        s = jnp.concatenate([s, jnp.broadcast_to(sink[:, None, None], (B, H, N, 1))], 3)
    p = jax.nn.softmax(s, -1)[..., :N]
    return jnp.einsum("bhij,bjhd->bihd", p, jnp.repeat(v, H // HKV, 2))


for number, (name, how) in enumerate(KINDS.items()):
    # Each in one order; another seed has the other.
    for order in [(None, zigzag)[(number + SEED) % 2]]:
        def local(q, k, v, at):
            at = None if order is None else at
            return attn.jax.context_attention(q, k, v, axis_name="cp", positions=at, **how)

        run = jax.shard_map(local, mesh=mesh, in_specs=(spec, spec, spec, P("cp")), out_specs=spec, check_vma=False)
        there = np.arange(N) if order is None else order
        back = np.argsort(there)

        @jax.jit
        def parallel(q, k, v):
            return run(*(x[:, there] for x in (q, k, v)), jnp.asarray(there, jnp.int32))[:, back]

        loss = lambda attend: lambda *x: (attend(*x) * g).sum()
        wanted = define(q, k, v, how), *jax.grad(loss(lambda *x: define(*x, how)), (0, 1, 2))(q, k, v)
        got = parallel(q, k, v), *jax.grad(loss(parallel), (0, 1, 2))(q, k, v)
        for what, x, y in zip(("output", "d_q", "d_k", "d_v"), got, wanted):
            error = float(jnp.abs(x - y).max())
            assert error < 5e-5 * max(1.0, float(jnp.abs(y).max())), (name, what, error)

try:
    jax.shard_map(
        lambda q: attn.jax.context_attention(q, q, q, axis_name="cp", positions=jnp.arange(3)),
        mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False,
    )(k)
except attn.Error as error:
    assert "positions: expected a shape of (64,), got (3,)" in str(error), error
else:
    raise AssertionError("expected an Error")
print("right")
'''


@pytest.mark.long
def test_context_attention(rng):
    jax = pytest.importorskip("jax")
    if not hasattr(jax, "shard_map"):
        pytest.skip("no jax.shard_map")
    seed = str(int(rng.integers(1 << 30)))
    done = subprocess.run(
        [sys.executable, "-B", "-W", "ignore", "-c", PROGRAM.replace("SEED", seed)],
        env={
            **os.environ,
            "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
            "PYTHONPATH": os.path.dirname(os.path.dirname(attn.__file__)),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and done.stdout.endswith("right\n"), (seed, done.stderr[-3000:])


@pytest.mark.parametrize("query, key", [((8, 4, 8), (1, 8, 4, 8)), ((1, 8, 4, 8), (1, 9, 4, 8))])
def test_shapes_are_checked(query, key):
    import jax.numpy as jnp

    import attn.jax

    q, k = jnp.zeros(query), jnp.zeros(key)
    with pytest.raises(attn.Error, match="query and key: expected .* of as many positions, got shapes"):
        attn.jax.context_attention(q, k, k, axis_name="cp")
