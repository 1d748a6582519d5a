"""attn.serving.cascade_attention, compared with one attention to all keys of each sequence."""

import numpy as np
import pytest

import attn
from attn import _paged, serving
from test_serving import expect, make

torch = pytest.importorskip("torch")


def share(call, pages, seed=0):
    """The call whose sequences begin with the same pages, and have rows after them."""
    random = np.random.default_rng(seed)
    table, page = call["page_table"].clone(), call["k_cache"].shape[1]
    batch, rows = call["q"].shape[:2]
    columns, count = table.shape[1], call["k_cache"].shape[0]
    table[:] = torch.from_numpy(random.integers(0, count, table.shape).astype("int32"))
    table[:, :pages] = table[0, :pages]
    lengths = random.integers(pages * page + rows, columns * page + 1, batch)
    for b, length in enumerate(lengths):
        table[b, -(-int(length) // page) :] = -1
    return {**call, "page_table": table, "seqused_k": torch.from_numpy(lengths.astype("int32"))}


def check(call, pages, wanted, bound=2e-5, **how):
    output, lse = serving.cascade_attention(**call, shared_pages=pages, **how, return_lse=True)
    np.testing.assert_allclose(output.double().numpy(), wanted[0], rtol=0, atol=bound)
    np.testing.assert_allclose(lse.double().numpy(), wanted[1], rtol=0, atol=max(bound, 2e-5))


@pytest.mark.parametrize("page, most, pages", [(1, 40, 17), (8, 5, 1), (8, 5, 3), (16, 4, 2)])
@pytest.mark.parametrize("causal", [False, True])
def test_pages(page, most, pages, causal):
    call = share(make(page=page, most=most, rows=3), pages)
    check(call, pages, expect(call, causal=causal), causal=causal)


def test_how():
    pages = 2
    call = share(make(rows=3, page=8, most=6), pages)
    length = call["seqused_k"].tolist()
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625])
    sink = torch.tensor([0.5, -1.0, 2.0, 0.0])
    check(call, pages, expect(call, sink=sink.numpy()), sink=sink)
    check(call, pages, expect(call, scale=0.3), scale=0.3)
    check(call, pages, expect(call, window=(20, 0)), window=(20, 0))
    wanted = expect(call, window=(25, 2), causal=False)
    check(call, pages, wanted, window=(25, 2), causal=False)
    bias = lambda s, b, h, i, j: s - float(slopes[h]) * abs(i + length[b] - 3 - j)  # noqa: E731
    check(call, pages, expect(call, score=bias), alibi_slopes=slopes)
    each = torch.stack([slopes, slopes * 2, slopes * 3])
    wanted = expect(
        call, score=lambda s, b, h, i, j: s - float(each[b, h]) * abs(i + length[b] - 3 - j)
    )
    check(call, pages, wanted, alibi_slopes=each)
    wanted = expect(call, score=lambda s, b, h, i, j: 2 * np.tanh(s / 2))
    check(call, pages, wanted, softcap=2.0)
    functions = {
        "mask": lambda b, h, q, kv: (kv + h + q + b) % 3 != 0,
        "score": lambda s, b, h, q, kv: s + 0.25 * ((kv + q + b) % 4),
    }
    check(call, pages, expect(call, **functions), **functions)
    both = {**functions, "window": (20, 0)}
    check(call, pages, expect(call, **both), **both)


def test_layouts_rows_and_libraries():
    pages = 2
    call = share(make(rows=1, page=8, most=6), pages)
    wanted, lse = serving.cascade_attention(**call, shared_pages=pages, return_lse=True)
    heads_first = {x: call[x].transpose(1, 2).contiguous() for x in ("k_cache", "v_cache")}
    found = serving.cascade_attention(**{**call, **heads_first}, kv_layout="HND", shared_pages=pages)
    assert torch.equal(found, wanted)
    one = serving.cascade_attention(
        **{**call, "q": call["q"][:, 0]}, shared_pages=pages, return_lse=True
    )
    assert torch.equal(one[0], wanted[:, 0]) and torch.equal(one[1], lse[..., 0])
    arrays = {name: x.numpy() for name, x in call.items()}
    found = serving.cascade_attention(**arrays, shared_pages=pages)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, wanted.numpy())
    wide = {x: call[x].long() for x in ("page_table", "seqused_k")}
    assert torch.equal(serving.cascade_attention(**{**call, **wide}, shared_pages=pages), wanted)


def test_nothing_shared_is_paged_attention():
    call = make(rows=2)
    wanted = serving.paged_attention(**call, return_lse=True)
    found = serving.cascade_attention(**call, shared_pages=0, return_lse=True)
    assert all(map(torch.equal, found, wanted))


def test_shared_pages_are_values_of_a_call():
    """Neither the number of shared pages nor lengths compile another kernel."""
    for pages in (1, 2):
        call = share(make(rows=2, page=8, most=5), pages, seed=pages)
        check(call, pages, expect(call))
        before = len(_paged.plans)
    assert len(_paged.plans) == before


@pytest.mark.parametrize("pages", [-1, 5, True, 1.0])
def test_errors(pages):
    with pytest.raises(attn.Error, match="^shared_pages: expected 0 to 4"):
        serving.cascade_attention(**make(), shared_pages=pages)
    with pytest.raises(attn.Error, match="^causal"):
        serving.cascade_attention(**make(), shared_pages=1, causal="top_left")
    with pytest.raises(attn.Error, match="^alibi_slopes: expected a NumPy array or PyTorch tensor"):
        serving.cascade_attention(**make(), shared_pages=1, alibi_slopes=[0.5])
