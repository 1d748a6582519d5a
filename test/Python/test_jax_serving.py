"""attn.jax.paged_attention, under every transform, against a definition in f64 on gathered keys."""

import numpy as np
import pytest

import attn
from reference import attention as define
from reference import check

jax = pytest.importorskip("jax")
jax.config.update("jax_num_cpu_devices", 2)

import jax.numpy as jnp  # noqa: E402
from jax.sharding import NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import attn.jax  # noqa: E402
from attn import _jax_paged  # noqa: E402

paged_attention = attn.jax.paged_attention
D, DV, HEADS, KEY_HEADS = 16, 24, 4, 2


def make(page=8, batch=3, rows=2, entries=5, seed=0, dtype="float32"):
    """A call: shared pages in any order, and holes where no key is."""
    random = np.random.default_rng(seed)
    pages = 3 * entries
    lengths = random.integers(rows, entries * page + 1, batch)
    table = random.integers(0, pages, (batch, entries))
    for b, length in enumerate(lengths):
        holes = range(-(-int(length) // page), entries)
        table[b, holes] = [[-1, pages, 2147480000, -(2**31), -7][j % 5] for j in holes]
    normal = lambda *shape: jnp.asarray(random.standard_normal(shape), dtype)  # noqa: E731
    return {
        "q": normal(batch, rows, HEADS, D),
        "k_cache": normal(pages, page, KEY_HEADS, D),
        "v_cache": normal(pages, page, KEY_HEADS, DV),
        "page_table": jnp.asarray(table, jnp.int32),
        "seqused_k": jnp.asarray(lengths, jnp.int32),
    }


def expect(call, *, causal=True, **how):
    """(output, lse), sequence by sequence. Functions are told b of their own."""
    outputs, lses = [], []
    page = call["k_cache"].shape[1]
    for b, length in enumerate(call["seqused_k"].tolist()):
        table = np.asarray(call["page_table"][b])
        at = np.arange(length)
        q = np.asarray(call["q"][b : b + 1], "f8").swapaxes(1, 2)
        k, v = (
            np.asarray(call[x], "f8")[table[at // page], at % page][None].swapaxes(1, 2)
            for x in ("k_cache", "v_cache")
        )
        mine = {
            name: (lambda *x, f=f, b=b: f(*x[:-4], b, *x[-3:])) if callable(f) else f
            for name, f in how.items()
        }
        o, lse = define(q, k, v, causal="bottom_right" if causal else None, **mine)
        outputs.append(o.swapaxes(1, 2))
        lses.append(lse)
    return np.concatenate(outputs), np.concatenate(lses)


def check_call(call, wanted, dtype="float32", **how):
    run = jax.jit(lambda call: paged_attention(**call, **how, return_lse=True))
    for got, want in zip(run(call), wanted):
        check(got, want, dtype)


@pytest.mark.parametrize("page", [1, 3, 8, 16, 64])
@pytest.mark.parametrize("causal", [False, True])
def test_pages(page, causal):
    call = make(page, entries=max(2, 70 // page), seed=page)
    check_call(call, expect(call, causal=causal), causal=causal)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_types(dtype):
    call = make(16, dtype=dtype)
    check_call(call, expect(call), dtype)


def test_how():
    slopes, sink = jnp.array([0.5, 0.25, 0.125, 0.0625]), jnp.array([0.5, -1.0, 2.0, 0.0])
    call = make(rows=3)
    length, of = call["seqused_k"].tolist(), np.asarray(slopes).tolist()
    check_call(call, expect(call, window=(5, 0)), window=(5, 0))
    check_call(call, expect(call, causal=False, window=(5, 3)), causal=False, window=(5, 3))
    check_call(call, expect(call, sink=np.asarray(sink)), sink=sink)
    check_call(call, expect(call, scale=0.3), scale=0.3)
    wanted = expect(call, score=lambda s, b, h, i, j: 2 * np.tanh(s / 2))
    check_call(call, wanted, softcap=2.0)
    wanted = expect(call, score=lambda s, b, h, i, j: s - of[h] * abs(i + length[b] - 3 - j))
    check_call(call, wanted, alibi_slopes=slopes)
    wanted = expect(call, mask=lambda b, h, i, j: (j + h + b) % 3 != 0)
    check_call(call, wanted, mask=lambda b, h, q, kv: (kv + h + b) % 3 != 0)
    wanted = expect(call, score=lambda s, b, h, i, j: s + of[(b + j) % 4])
    check_call(call, wanted, score=lambda s, b, h, q, kv: s + slopes[(b + kv) % 4])


def test_layouts_and_one_row():
    call = make(rows=1)
    wanted, lse = paged_attention(**call, return_lse=True)
    heads_first = {x: call[x].swapaxes(1, 2) for x in ("k_cache", "v_cache")}
    assert (paged_attention(**{**call, **heads_first}, kv_layout="HND") == wanted).all()
    output, rows = paged_attention(**{**call, "q": call["q"][:, 0]}, return_lse=True)
    assert (output == wanted[:, 0]).all() and (rows == lse[..., 0]).all()


def test_one_program_serves_all_lengths_and_tables():
    run = jax.jit(lambda call: paged_attention(**call))
    for seed in range(3):
        call = make(seed=seed)
        check(run(call), expect(call)[0])
    assert run._cache_size() == 1


def test_same_calls_are_traced_once(monkeypatch):
    call, others = make(), make(seed=1)
    paged_attention(**call)
    monkeypatch.setattr(_jax_paged, "Source", None)
    check(paged_attention(**others), expect(others)[0])


def test_scales_of_a_gpu(monkeypatch):
    """There a scale is a captured array."""
    monkeypatch.setattr(_jax_paged, "is_on_gpu", lambda: True)
    call = make()
    check_call(call, expect(call, scale=0.3), scale=0.3)


def test_broken_lengths_end():
    call = make(entries=4)
    call["page_table"] = call["page_table"].clip(0, 11)
    call["seqused_k"] = jnp.array([-5, 0, 10**6], jnp.int32)
    output, lse = paged_attention(**call, causal=False, return_lse=True)
    assert (output[:2] == 0).all() and (lse[:2] == -jnp.inf).all()
    assert jnp.isfinite(output[2]).all()


# ===- Transforms -------------------------------------------------------------------------------===#


def map_over(names, call, **how):
    """By vmap over these arguments, and one call after the other."""
    others = {name: x for name, x in call.items() if name not in names}
    run = lambda given: paged_attention(**given, **others, **how)  # noqa: E731
    given = {name: call[name] for name in names}
    count = next(iter(given.values())).shape[0]
    each = [run({name: x[i] for name, x in given.items()}) for i in range(count)]
    return jax.jit(jax.vmap(run)), given, jnp.stack(each)


def stack(*calls):
    return {name: jnp.stack([call[name] for call in calls]) for name in calls[0]}


@pytest.mark.parametrize(
    "names", [["q"], ["q", "page_table", "seqused_k"], ["seqused_k"], ["page_table", "seqused_k"]]
)
def test_vmap_is_a_part_of_the_batch(names):
    call, others = make(), stack(make(), make(seed=1))
    run, given, wanted = map_over(names, {**call, **{name: others[name] for name in names}})
    text = run.lower(given).compile().as_text()
    assert text.count('custom_call_target="attn_run"') == 1 and "while" not in text
    assert jnp.array_equal(run(given), wanted)


def test_vmap_one_after_the_other():
    """Of caches that are mapped, and of functions that read b."""
    both = stack(make(), make(seed=1))
    run, given, wanted = map_over(list(both), both)
    assert "while" in run.lower(given).compile().as_text()
    assert jnp.array_equal(run(given), wanted)
    call = {**make(), "q": both["q"]}
    run, given, wanted = map_over(["q"], call, mask=lambda b, h, q, kv: (kv + b) % 2 == 0)
    assert jnp.array_equal(run(given), wanted)


@pytest.mark.parametrize("spec", [P(None, None, "x"), P("x")], ids=["heads", "batch"])
def test_sharded_arrays_stay(spec):
    call = make(batch=4)
    mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    shard = lambda x, s: jax.device_put(x, NamedSharding(mesh, s))  # noqa: E731
    rows = P("x") if spec == P("x") else P()
    sharded = {
        name: shard(x, spec if name == "q" else rows if x.ndim < 4 else P())
        for name, x in call.items()
    }
    run = jax.jit(lambda call: paged_attention(**call))
    wanted = run(call)
    output = run(sharded)
    assert output.sharding.is_equivalent_to(NamedSharding(mesh, spec), 4)
    assert jnp.array_equal(output, wanted)
    assert "all-gather" not in run.lower(sharded).compile().as_text()


def test_no_derivatives():
    call = make()
    with pytest.raises(attn.Error, match="paged_attention: expected no derivatives"):
        jax.grad(lambda q: paged_attention(**{**call, "q": q}).sum())(call["q"])


@pytest.mark.parametrize(
    "change, name",
    [
        ({"q": jnp.zeros((3, 16))}, "q"),
        ({"k_cache": jnp.zeros((15, 8, 2, 16), jnp.float16)}, "k_cache"),
        ({"v_cache": jnp.zeros((14, 8, 2, 24))}, "v_cache"),
        ({"page_table": jnp.zeros((3, 5))}, "page_table"),
        ({"page_table": jnp.zeros((2, 5), jnp.int32)}, "page_table"),
        ({"seqused_k": jnp.zeros(4, jnp.int32)}, "seqused_k"),
        ({"kv_layout": "HDN"}, "kv_layout"),
        ({"causal": "top_left"}, "causal"),
        ({"softcap": -1.0}, "softcap"),
        ({"window": 3}, "window"),
        ({"alibi_slopes": jnp.zeros(())}, "alibi_slopes"),
        ({"alibi_slopes": jnp.zeros(3)}, "alibi_slopes"),
        ({"sink": jnp.zeros(3)}, "sink"),
    ],
)
def test_errors_name_the_argument(change, name):
    with pytest.raises(Exception, match=rf"{name}: expected"):
        jax.block_until_ready(paged_attention(**{**make(), **change}))
