"""attn.jax.attention beside jax.nn.dot_product_attention, under every transform."""

import os
import subprocess
import sys

import numpy as np
import pytest

import attn
from reference import attention as define
from reference import check

jax = pytest.importorskip("jax")
jax.config.update("jax_num_cpu_devices", 2)

import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import attn.jax

attention = attn.jax.attention
reference = jax.nn.dot_product_attention
B, M, N, H, D = 2, 13, 17, 4, 16


def inputs(heads_of_k=2, dtype="float32", value_dim=D, seed=0):
    keys = jax.random.split(jax.random.key(seed), 3)
    shapes = (B, M, H, D), (B, N, heads_of_k, D), (B, N, heads_of_k, value_dim)
    return tuple(jax.random.normal(key, shape, dtype) for key, shape in zip(keys, shapes))


def close(got, wanted, limit=5e-5):
    got, wanted = jax.tree.leaves(got), jax.tree.leaves(wanted)
    assert len(got) == len(wanted)
    for x, y in zip(got, wanted):
        assert x.shape == y.shape and x.dtype == y.dtype
        error = np.abs(np.asarray(x, "f8") - np.asarray(y, "f8")).max()
        assert error <= limit, error


def text_of(function, *arguments):
    """The program that XLA runs; attn's kernels are custom calls of it."""
    text = jax.jit(function).lower(*arguments).compile().as_text()
    assert 'custom_call_target="attn_run"' in text
    return text


def squares(function, **how):
    return lambda *arguments: (function(*arguments, **how).astype("float32") ** 2).sum()


# ===- The arguments of jax.nn.dot_product_attention ---------------------------------------------===#

LENGTHS = {"key_value_seq_lengths": jnp.array([5, 17], jnp.int32)}
HOW = {
    "plain": {},
    "causal": {"is_causal": True},
    "scale": {"scale": 0.3},
    "window": {"local_window_size": (3, 5)},
    "symmetric window": {"local_window_size": 4, "is_causal": True},
    "lengths": LENGTHS,
    "residual": {"return_residual": True, "is_causal": True},
}


@pytest.mark.parametrize("how", HOW)
def test_arguments(how):
    q, k, v = inputs()
    call = lambda function: jax.jit(lambda *x: function(*x, **HOW[how]))
    close(call(attention)(q, k, v), call(reference)(q, k, v))
    text_of(lambda *x: attention(*x, **HOW[how]), q, k, v)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_types(dtype):
    q, k, v = inputs(dtype=dtype)
    got = jax.jit(attention)(q, k, v)
    assert got.dtype == dtype
    wanted, _ = define(*[np.asarray(x, "f8").swapaxes(1, 2) for x in (q, k, v)])
    check(np.asarray(got, "f8").swapaxes(1, 2), wanted, dtype)


def test_tables():
    q, k, v = inputs()
    bias = jax.random.normal(jax.random.key(1), (1, H, M, N))
    mask = jax.random.bernoulli(jax.random.key(2), 0.7, (B, 1, M, N)).at[..., 0].set(True)
    close(jax.jit(attention)(q, k, v, bias, mask), reference(q, k, v, bias, mask))
    # (N, T, S), and queries without a batch.
    one = q[0], k[0], v[0]
    close(attention(*one, bias[0], mask[0]), reference(*one, bias[0], mask[0]))


def test_rows_that_keep_nothing():
    q, k, v = inputs()
    lengths = jnp.array([5, 0], jnp.int32)
    output, residual = attention(q, k, v, query_seq_lengths=lengths, return_residual=True)
    close(output[0, :5], reference(q, k, v)[0, :5])
    assert not output[0, 5:].any() and not output[1].any()
    assert bool(jnp.isneginf(residual[1]).all())


def test_values_of_other_columns_and_a_sink():
    q, k, v = inputs(value_dim=24)
    sink = jnp.array([0.5, -1.0, 2.0, 0.0])
    wanted, _ = define(*[np.asarray(x).swapaxes(1, 2) for x in (q, k, v)], sink=np.asarray(sink))
    check(np.asarray(jax.jit(lambda *x: attention(*x, sink=sink))(q, k, v)).swapaxes(1, 2), wanted)


# ===- Functions -------------------------------------------------------------------------------===#

SLOPES = jnp.array([0.5, 0.25, 0.125, 0.0625])
DISTANCE = jnp.abs(jnp.arange(M)[:, None] - jnp.arange(N)[None])


def with_slopes(q, k, v, slopes=SLOPES):
    """It reads h, and b."""
    return attention(q, k, v, score=lambda s, b, h, i, j: s - slopes[h] * jnp.abs(i - j), **LENGTHS)


def reference_with_slopes(q, k, v, slopes=SLOPES):
    return reference(q, k, v, -(slopes[:, None, None] * DISTANCE)[None], **LENGTHS)


def test_functions():
    q, k, v = inputs()
    wanted = reference_with_slopes(q, k, v)
    close(with_slopes(q, k, v), wanted)
    # What they capture may be traced by JAX.
    close(jax.jit(with_slopes)(q, k, v, SLOPES), wanted)
    close(jax.jit(with_slopes)(q, k, v, 2 * SLOPES), reference_with_slopes(q, k, v, 2 * SLOPES))
    mask = lambda b, h, i, j: jnp.where(j < 5, True, i >= j)
    keep = (jnp.arange(N) < 5) | (jnp.arange(M)[:, None] >= jnp.arange(N))
    capped = lambda s, b, h, i, j: 5 * jnp.tanh(jax.nn.relu(s) / 5)
    output = jax.jit(lambda *x: attention(*x, capped, mask))(q, k, v)
    defined, _ = define(
        *[np.asarray(x).swapaxes(1, 2) for x in (q, k, v)],
        score=lambda s, b, h, i, j: 5 * np.tanh(max(s, 0) / 5),
        mask=lambda b, h, i, j: keep[i, j],
    )
    check(np.asarray(output).swapaxes(1, 2), defined)


def test_same_functions_are_traced_once(monkeypatch):
    q, k, v = inputs()
    scales = [jnp.float32(0.5), jnp.float32(2.0)]
    call = lambda scale: attention(q, k, v, score=lambda s, b, h, i, j: s * scale)
    call(scales[0])
    monkeypatch.setattr(attn.jax, "Source", None)
    close(call(scales[1]), reference(q, k, v, scale=2 * D**-0.5))


# ===- Transforms -------------------------------------------------------------------------------===#


def test_gradients():
    q, k, v = inputs()
    of = lambda function, **how: jax.jit(jax.grad(squares(function, **how), (0, 1, 2)))
    close(of(attention, is_causal=True)(q, k, v), of(reference, is_causal=True)(q, k, v))
    close(of(with_slopes)(q, k, v), of(reference_with_slopes)(q, k, v))
    # The gradient of lse joins where somebody uses it.
    loss = lambda q: attn.jax.attention(q, k, v).sum()
    close(jax.grad(jax.checkpoint(loss))(q), jax.grad(lambda q: reference(q, k, v).sum())(q))


def test_gradients_of_captured_arrays():
    q, k, v = inputs()
    bias = jax.random.normal(jax.random.key(1), (1, H, M, N))
    call = lambda function: lambda *x: squares(function)(*x)
    for x in (bias, bias[:, :1].astype("bfloat16"), bias[:, :, :, :1]):
        of = jax.jit(jax.grad(call(attention), (0, 3)))
        limit = 0.15 if x.dtype == "bfloat16" else 5e-5  # Rounded to 8 bits.
        close(of(q, k, v, x), jax.grad(call(reference), (0, 3))(q, k, v, x), limit)
    # Of a table that a function reads, alone.
    of = jax.grad(squares(with_slopes), 3)
    assert "d_query(tensor" not in text_of(of, q, k, v, SLOPES)
    wanted = jax.grad(squares(reference_with_slopes), 3)(q, k, v, SLOPES)
    close(jax.jit(of)(q, k, v, SLOPES), wanted, 5e-4)
    many = jnp.stack([SLOPES, 2 * SLOPES])
    each = jnp.stack([jax.grad(squares(reference_with_slopes), 3)(q, k, v, x) for x in many])
    close(jax.vmap(of, (None, None, None, 0))(q, k, v, many), each, 5e-4)


def test_only_what_is_wanted_is_computed():
    q, k, v = inputs()
    text = text_of(jax.grad(squares(attention), 1), q, k, v)
    assert "d_key(tensor" in text and "d_query(tensor" not in text


def test_vmap():
    q, k, v = inputs()
    many = [jnp.stack([x, 1.5 * x, x - 1]) for x in (q, k, v)]
    close(jax.vmap(attention)(*many), jax.vmap(reference)(*many))
    axes, swapped = (0, None, 1), (many[0], k, jnp.moveaxis(many[2], 0, 1))
    close(jax.jit(jax.vmap(attention, axes, 1))(*swapped), jax.vmap(reference, axes, 1)(*swapped))
    of = lambda function: jax.jit(jax.vmap(jax.grad(squares(function), (0, 1, 2))))(*many)
    close(of(attention), of(reference), 1e-4)


def test_vmap_of_nothing():
    q, k = jnp.zeros((0, 2, 9, 4, 8)), jnp.zeros((0, 2, 11, 4, 8))
    attend = lambda q, k: attn.jax.attention(q, k, k)
    assert jax.vmap(attend)(q, k).shape == q.shape
    assert jax.vmap(attend, (None, 0))(jnp.zeros((2, 9, 4, 8)), k).shape == q.shape
    gradients = jax.vmap(jax.grad(lambda *x: attend(*x).sum(), (0, 1)))(q, k)
    assert [x.shape for x in gradients] == [q.shape, k.shape]


def test_vmap_of_functions_that_read_the_batch():
    q, k, v = inputs()
    many, slopes = [jnp.stack([x, 1.5 * x]) for x in (q, k, v)], jnp.stack([SLOPES, 2 * SLOPES])
    close(jax.vmap(with_slopes)(*many, slopes), jax.vmap(reference_with_slopes)(*many, slopes))


@pytest.mark.parametrize("heads_of_k", [2, 1])
@pytest.mark.parametrize("spec", [P(None, None, "x"), P("x")], ids=["heads", "batch"])
def test_sharded_arrays_stay(spec, heads_of_k):
    mesh = jax.make_mesh((2,), ("x",))
    arrays = inputs(heads_of_k)
    held = P() if heads_of_k == 1 and spec[0] is None else spec
    specs = (spec, held, held)
    sharded = [jax.device_put(x, NamedSharding(mesh, s)) for x, s in zip(arrays, specs)]
    for function, wanted in ((attention, reference), (with_slopes, reference_with_slopes)):
        assert "all-gather" not in text_of(function, *sharded)
        output = jax.jit(function)(*sharded)
        close(output, wanted(*arrays))
        assert output.sharding.spec[: len(spec)] == tuple(spec)
    gradient = jax.grad(squares(with_slopes), (0, 1, 2))
    assert "all-gather" not in text_of(gradient, *sharded)
    wanted = jax.grad(squares(reference_with_slopes), (0, 1, 2))(*arrays)
    close(jax.jit(gradient)(*sharded), wanted, 1e-4)
    # Each device has a part of the sum.
    of_slopes = [
        jax.jit(jax.grad(squares(function), 3))(*given, SLOPES)
        for function, given in ((with_slopes, sharded), (reference_with_slopes, arrays))
    ]
    close(*of_slopes, 5e-4)


def test_sharded_gradient_of_a_sink():
    mesh = jax.make_mesh((2,), ("x",))
    arrays, sink = inputs(), jnp.array([0.5, -1.0, 2.0, 0.0])
    gradient = jax.grad(lambda sink, *x: (attention(*x, sink=sink) ** 2).sum())
    sharded = [jax.device_put(x, NamedSharding(mesh, P("x"))) for x in arrays]
    close(jax.jit(gradient)(sink, *sharded), gradient(sink, *arrays))


def test_shard_map():
    mesh = jax.make_mesh((2,), ("x",))
    q, k, v = inputs()
    spec = P(None, None, "x")
    sharded = [jax.device_put(x, NamedSharding(mesh, spec)) for x in (q, k, v)]
    run = jax.shard_map(attention, mesh=mesh, in_specs=spec, out_specs=spec)
    close(jax.jit(run)(*sharded), reference(q, k, v))


PROGRAM = """
import jax, jax.numpy as jnp
events = []
jax.monitoring.register_event_listener(lambda name, **_: events.append(name))
import attn.jax
x = jnp.arange(160, dtype=jnp.float32).reshape(1, 5, 2, 16) / 160
call = lambda x: attn.jax.attention(x, x, x, is_causal=True, score=lambda s, b, h, i, j: s + 3 * h)
print(jax.jit(call)(x).sum(), len([x for x in events if x.endswith("cache_hits")]))
"""


def test_a_second_process_finds_the_program(tmp_path):
    package = os.path.dirname(os.path.dirname(attn.__file__))
    environment = {
        **os.environ,
        "PYTHONPATH": package,
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    found = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-B", "-c", PROGRAM],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        found.append(done.stdout.split())
    assert found[0][0] == found[1][0]
    assert found[0][1] == "0" and int(found[1][1]) > 0


def test_a_call_that_was_not_written_by_attn():
    x = jnp.zeros((1, 2, 2, 16))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)

    def call(x, swapped, source):
        how = {"swapped": swapped, "source": source, "options": ""}
        return jax.ffi.ffi_call("attn_run", shape)(x, **how)

    source = (
        "func.func @f(%x: tensor<?x?x?x16xf32>) -> tensor<?x?x?x16xf32> "
        "{ return %x : tensor<?x?x?x16xf32> }"
    )
    for message, arguments in (
        ("attn: swapped: expected 2 letters, got 1", (x, ".", source)),
        ("attn: ", (x, "..", "func.func @f(")),
        ("attn: ", (x, "..", "")),
        ("attn: tensor 0: expected a type that attn has", (x.astype("complex64"), "..", source)),
    ):
        with pytest.raises(Exception, match=message):
            jax.block_until_ready(call(*arguments))


# ===- What is refused ---------------------------------------------------------------------------===#


def test_gradients_of_wide_arrays_are_refused():
    q, k, v = inputs()
    with jax.enable_x64(True):
        slopes = jnp.ones(H, "float64")
        with pytest.raises(attn.Error, match="arrays of float16, bfloat16 or float32 where JAX"):
            jax.grad(squares(with_slopes), 3)(q, k, v, slopes)


def test_f64_is_of_jax(monkeypatch):
    # Also where attn stands in JAX's place.
    monkeypatch.setattr(jax.nn, "dot_product_attention", attention)
    with jax.enable_x64(True):
        q, k, v = inputs(dtype="float64")
        keep = jnp.arange(N) < 9
        how = dict(mask=keep, is_causal=True, return_residual=True)
        close(attention(q, k, v, **how), reference(q, k, v, **how), 0)
        with pytest.raises(attn.Error, match="expected float16, bfloat16 or float32"):
            attention(q, k, v, score=lambda s, b, h, i, j: s)


def test_refused():
    q, k, v = inputs()
    bias = jnp.zeros((1, H, M, N))
    cases = {
        "mask: expected bools, got float32": lambda: attention(q, k, v, None, bias),
        "bias: expected a shape that broadcasts to (2, 4, 13, 17)": lambda: attention(
            q, k, v, bias[:, :3]
        ),
        "implementation: expected None, got 'cudnn'": lambda: attention(
            q, k, v, implementation="cudnn"
        ),
        "key: expected elements of float32 as in query": lambda: attention(q, k.astype("f2"), v),
        "query, key and value: expected (B, T, N, H)": lambda: attention(q[:, :, :3], k, v),
        "query: expected (B, S, H, D) or (S, H, D)": lambda: attention(q[0, 0], k, v),
        "key_value_seq_lengths: expected a shape of (2,)": lambda: attention(
            q, k, v, key_value_seq_lengths=jnp.ones(3, int)
        ),
        "q: expected float16, bfloat16 or float32, got int8": lambda: attention(
            *(x.astype("int8") for x in (q, k, v))
        ),
        "got uint8": lambda: attention(
            q, k, v, mask=lambda b, h, i, j, t=jnp.ones(M, "uint8"): t[i] > 0
        ),
        "score and mask: expected captured arrays of types that JAX holds, got int64": lambda: (
            attention(q, k, v, mask=lambda b, h, i, j, t=np.arange(N): t[j] > 3)
        ),
        "score: expected a function, got int": lambda: attention(q, k, v, score=3),
        "sink: ": lambda: attention(q, k, v, sink=jnp.zeros(3)),
        "scale: expected a number without gradient": lambda: jax.grad(
            lambda scale: attention(q, k, v, scale=scale).sum()
        )(0.3),
        "attention: expected first derivatives, got a second one": lambda: jax.grad(
            lambda q: jax.grad(squares(attention))(q, k, v).sum()
        )(q),
        "use attn.jax.attention inside of jax.jit": lambda: jax.jit(attn.attention)(q, q, q),
    }
    for message, call in cases.items():
        with pytest.raises(Exception) as error:
            jax.block_until_ready(call())
        assert message in str(error.value), str(error.value)[:500]


def test_scales_of_a_gpu(monkeypatch):
    """There a scale is a captured array; its gradient comes with it."""
    monkeypatch.setattr(attn.jax, "is_on_gpu", lambda: True)
    q, k, v = inputs()
    attend = lambda attention, scale: attention(q, k, v, scale=scale)
    close(attend(attention, 0.3), attend(reference, 0.3))
    both = [
        jax.grad(lambda x: attend(f, x).sum())(jnp.float32(0.3)) for f in (attention, reference)
    ]
    close(*both, 1e-3)
    slopes = jnp.linspace(0.5, 2, H)
    got = attention(q, k, v, scale=0.3, score=lambda s, b, h, i, j: s * slopes[h])
    close(got, attention(q * (slopes * 0.3 * D**0.5)[:, None], k, v))


def test_what_xla_refuses_is_told():
    """The handler of GPUs, where XLA has no stream."""
    name = "attn_run_on_a_gpu"
    handler = attn._library.library.attn_xla_run_cuda
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="cpu")
    q, k, v = inputs()
    shapes = [jax.ShapeDtypeStruct(q.shape, q.dtype)]
    call = jax.ffi.ffi_call(name, shapes)
    with pytest.raises(Exception, match="attn: "):
        jax.block_until_ready(call(q, k, v, source="", options="", swapped="ssss"))
