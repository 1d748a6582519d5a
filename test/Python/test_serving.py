"""attn.serving: paged keys and values, against a definition in f64 on gathered keys."""

import numpy as np
import pytest

import attn
from attn import serving
from reference import attention as define

torch = pytest.importorskip("torch")


def make(
    batch=3, rows=2, heads=4, key_heads=2, d=16, dv=24, page=8, most=5, seed=0, dtype="float32"
):
    """A call: three times as many pages as needed, shared and in any order, holes where no key is."""
    random = np.random.default_rng(seed)
    pages = 3 * most
    q = random.standard_normal((batch, rows, heads, d))
    k = random.standard_normal((pages, page, key_heads, d))
    v = random.standard_normal((pages, page, key_heads, dv))
    lengths = random.integers(rows, most * page + 1, batch)
    table = random.integers(0, pages, (batch, most))
    for b, length in enumerate(lengths):
        holes = range(-(-int(length) // page), most)
        table[b, holes] = [[-1, pages, 2147480000, -(2**31), -7][j % 5] for j in holes]
    to = lambda x: torch.from_numpy(x).to(getattr(torch, dtype))  # noqa: E731
    return {
        "q": to(q),
        "k_cache": to(k),
        "v_cache": to(v),
        "page_table": torch.from_numpy(table.astype("int32")),
        "seqused_k": torch.from_numpy(lengths.astype("int32")),
    }


def gather(cache, table, length):
    """(1, Hkv, length, D) of one sequence."""
    page = cache.shape[1]
    rows = [cache[int(table[n // page]), n % page] for n in range(length)]
    return torch.stack(rows)[None].transpose(1, 2)


def expect(call, *, causal=True, window=None, score=None, mask=None, sink=None, scale=None):
    """(output, lse), sequence by sequence."""
    outputs, lses = [], []
    for b, length in enumerate(call["seqused_k"].tolist()):
        table = call["page_table"][b].tolist()
        q = call["q"][b : b + 1].transpose(1, 2).double().numpy()
        k, v = (gather(call[x], table, length).double().numpy() for x in ("k_cache", "v_cache"))
        at = lambda function: (  # noqa: E731
            None if function is None else lambda *x, b=b: function(*x[:-4], b, *x[-3:])
        )
        o, lse = define(
            q,
            k,
            v,
            causal="bottom_right" if causal else None,
            window=window,
            score=at(score),
            mask=at(mask),
            sink=sink,
            scale=scale,
        )
        outputs.append(o.swapaxes(1, 2))
        lses.append(lse)
    return np.concatenate(outputs), np.concatenate(lses)


def check(call, how, wanted, bound=2e-5):
    output, lse = serving.paged_attention(**call, **how, return_lse=True)
    np.testing.assert_allclose(output.double().numpy(), wanted[0], rtol=0, atol=bound)
    np.testing.assert_allclose(lse.numpy(), wanted[1], rtol=0, atol=max(bound, 2e-5))


@pytest.mark.parametrize("page", [1, 2, 3, 8, 16, 17, 64])
@pytest.mark.parametrize("causal", [False, True])
def test_pages(page, causal):
    call = make(page=page, most=max(2, 70 // page), seed=page)
    check(call, {"causal": causal}, expect(call, causal=causal))


@pytest.mark.parametrize("dtype, bound", [("float16", 4e-3), ("bfloat16", 3e-2)])
def test_types(dtype, bound):
    call = make(page=16, dtype=dtype, d=64, dv=64, heads=8)
    check(call, {}, expect(call), bound)


def test_how():
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625])
    sink = torch.tensor([0.5, -1.0, 2.0, 0.0])
    call = make(rows=3, page=16, most=4)
    length = call["seqused_k"].tolist()
    check(call, {"window": (5, 0)}, expect(call, window=(5, 0)))
    check(
        call, {"window": (5, 3), "causal": False}, expect(call, window=(5, 3), causal=False)
    )
    check(call, {"sink": sink}, expect(call, sink=sink.numpy()))
    check(call, {"scale": 0.3}, expect(call, scale=0.3))
    check(
        call,
        {"softcap": 2.0},
        expect(call, score=lambda s, b, h, i, j: 2 * np.tanh(s / 2)),
    )
    check(
        call,
        {"alibi_slopes": slopes},
        expect(call, score=lambda s, b, h, i, j: s - float(slopes[h]) * abs(i + length[b] - 3 - j)),
    )
    check(
        call,
        {
            "mask": lambda b, h, q, kv: (kv + h) % 3 != 0,
            "score": lambda s, b, h, q, kv: s + 0.5 * (kv % 2),
        },
        expect(
            call,
            mask=lambda b, h, i, j: (j + h) % 3 != 0,
            score=lambda s, b, h, i, j: s + 0.5 * (j % 2),
        ),
    )


def test_layouts():
    """Pages with heads first, keys beside values in one row, a layer of a larger cache."""
    call = make()
    wanted = serving.paged_attention(**call)
    heads_first = {x: call[x].transpose(1, 2).contiguous() for x in ("k_cache", "v_cache")}
    output = serving.paged_attention(**{**call, **heads_first}, kv_layout="HND")
    assert torch.equal(output, wanted)
    content = torch.cat([call["k_cache"], call["v_cache"]], 3)
    d = call["k_cache"].shape[3]
    beside = {"k_cache": content[..., :d], "v_cache": content[..., d:]}
    assert torch.equal(serving.paged_attention(**{**call, **beside}), wanted)
    layers = torch.stack([torch.full_like(call["k_cache"], float("nan")), call["k_cache"]], 1)
    assert torch.equal(serving.paged_attention(**{**call, "k_cache": layers[:, 1]}), wanted)
    wide = {x: call[x].long() for x in ("page_table", "seqused_k")}
    assert torch.equal(serving.paged_attention(**{**call, **wide}), wanted)


def test_out_and_one_row():
    call = make(rows=1)
    wanted, lse = serving.paged_attention(**call, return_lse=True)
    one = {**call, "q": call["q"][:, 0]}
    out = torch.full(wanted[:, 0].shape, float("nan"))
    output, rows = serving.paged_attention(**one, out=out, return_lse=True)
    assert output is out and torch.equal(out, wanted[:, 0]) and torch.equal(rows, lse[..., 0])


def test_numpy():
    call = make()
    wanted = serving.paged_attention(**call)
    output = serving.paged_attention(**{name: x.numpy() for name, x in call.items()})
    assert isinstance(output, np.ndarray)
    np.testing.assert_array_equal(output, wanted.numpy())


def test_lengths_and_tables_are_values_of_a_call():
    call = make()
    for seed in range(3):
        other = {**call, **{x: make(seed=seed)[x] for x in ("page_table", "seqused_k")}}
        check(other, {}, expect(other))


def test_broken_lengths_end():
    """Negative lengths keep nothing; those above the table keep all of it."""
    call = make(most=4)
    call["page_table"] = call["page_table"].clamp(0, 11)
    call["seqused_k"] = torch.tensor([-5, 0, 10**6], dtype=torch.int32)
    output, lse = serving.paged_attention(**call, causal=False, return_lse=True)
    assert (output[:2] == 0).all() and (lse[:2] == -float("inf")).all()
    assert output[2].isfinite().all()


@pytest.mark.parametrize(
    "change, name",
    [
        ({"q": torch.zeros(3, 16)}, "q"),
        ({"k_cache": torch.zeros(3, 8, 16)}, "k_cache"),
        ({"k_cache": torch.zeros(15, 8, 2, 16, dtype=torch.float16)}, "k_cache"),
        ({"k_cache": torch.zeros(15, 8, 2, 17)}, "k_cache"),
        ({"k_cache": torch.zeros(15, 8, 3, 16), "v_cache": torch.zeros(15, 8, 3, 24)}, "k_cache"),
        ({"v_cache": torch.zeros(15, 4, 2, 24)}, "v_cache"),
        ({"v_cache": torch.zeros(14, 8, 2, 24)}, "v_cache"),
        ({"page_table": torch.zeros(3, 5)}, "page_table"),
        ({"page_table": torch.zeros(2, 5, dtype=torch.int32)}, "page_table"),
        ({"page_table": torch.zeros(5, dtype=torch.int32)}, "page_table"),
        ({"seqused_k": torch.zeros(3)}, "seqused_k"),
        ({"seqused_k": torch.zeros(4, dtype=torch.int32)}, "seqused_k"),
        ({"kv_layout": "HDN"}, "kv_layout"),
        ({"causal": "top_left"}, "causal"),
        ({"softcap": -1.0}, "softcap"),
        ({"window": 3}, "window"),
        ({"sink": torch.zeros(3)}, "sink"),
        ({"out": torch.zeros(3, 2, 4, 16)}, "out"),
        (
            {"k_cache": torch.zeros(0, 8, 2, 16), "v_cache": torch.zeros(0, 8, 2, 24)},
            "k_cache",
        ),
    ],
)
def test_errors_name_the_argument(change, name):
    with pytest.raises(attn.Error, match=rf"^{name}:|{name}: expected"):
        serving.paged_attention(**{**make(), **change})
