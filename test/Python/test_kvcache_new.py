"""flash_attn_with_kvcache with rotary tables and with new keys of any number for each sequence: compared with the
same call on queries and keys that were rotated row by row before, and with caches filled by a loop."""

import pytest

torch = pytest.importorskip("torch")
from attn.integrations import flash_attn  # noqa: E402
from ragged_reference import (  # noqa: E402, F401  (fixtures)
    DV,
    D,
    H,
    offsets,
    poisoned,
    seeded,
    to_int32,
)

B, S, HKV, P = 3, 48, 2, 8
LENGTHS = [0, 17, 40]


def turn(x, position, tables, interleaved):
    """x (H, D) at one position, in f64."""
    cos, sin = (y[position].double() for y in tables)
    half = cos.shape[0]
    found = x.double().clone()
    first = slice(0, 2 * half, 2) if interleaved else slice(0, half)
    second = slice(1, 2 * half, 2) if interleaved else slice(half, 2 * half)
    a, b = x.double()[:, first], x.double()[:, second]
    found[:, first], found[:, second] = a * cos - b * sin, b * cos + a * sin
    return found.to(x.dtype)


def turn_all(rows, counts, begins, tables, interleaved, is_still=False):
    """rows (T, H, D), `counts` of each sequence."""
    if tables is None:
        return rows
    found, at = rows.clone(), 0
    for b, count in enumerate(counts):
        for i in range(count):
            found[at] = turn(rows[at], begins[b] + (0 if is_still else i), tables, interleaved)
            at += 1
    return found


def make_tables(half):
    angles = torch.rand(S + 20, half) * 6
    return angles.cos(), angles.sin()


def compare(counts, rows, *, form, tables=None, interleaved=True, begins=None, ragged_new=False, **how):
    """`form` is where keys lie: "one piece", "pages", or "batches" of a larger cache."""
    caches = [torch.randn(B, S, HKV, d) for d in (D, DV)]
    wanted = [x.clone() for x in caches]
    new = [torch.randn(sum(counts), HKV, d) for d in (D, DV)]
    q = torch.randn(sum(rows), H, D)
    at = LENGTHS if begins is None else begins
    is_still = not how.get("causal") and how.get("window_size", (-1, -1)) == (-1, -1)
    keys = turn_all(new[0], counts, at, tables, interleaved)
    for b, first in enumerate(offsets(counts)[:-1]):
        for i in range(counts[b]):
            if LENGTHS[b] + i < S:
                wanted[0][b, LENGTHS[b] + i] = keys[first + i]
                wanted[1][b, LENGTHS[b] + i] = new[1][first + i]
    lengths = [length + count for length, count in zip(LENGTHS, counts)]
    turned = turn_all(q, rows, at, tables, interleaved, is_still)

    is_ragged = len(set(rows)) > 1
    shape = lambda x: x if is_ragged else x.view(B, -1, H, D)  # noqa: E731
    more = {"cu_seqlens_q": to_int32(offsets(rows)), "max_seqlen_q": max(rows)} if is_ragged else {}
    expected = flash_attn.flash_attn_with_kvcache(
        shape(turned), *wanted, cache_seqlens=to_int32(lengths), **more, **how
    )
    given = dict(more, **how)
    if tables is not None:
        given.update(rotary_cos=tables[0], rotary_sin=tables[1], rotary_interleaved=interleaved)
    if begins is not None:
        given["rotary_seqlens"] = to_int32(begins)
    if ragged_new:
        given["cu_seqlens_k_new"] = to_int32(offsets(counts))
    else:
        new = [x.view(B, -1, *x.shape[1:]) for x in new]
    if form == "pages":
        order = torch.randperm(B * S // P)
        table = order.view(B, S // P).int()
        places = torch.empty_like(order)
        places[order] = torch.arange(len(order))
        caches = [x.view(-1, P, *x.shape[2:])[places].contiguous() for x in caches]
        given["page_table"] = table
    elif form == "batches":
        index = torch.tensor([4, 0, 2])
        larger = [torch.randn(5, *x.shape[1:]) for x in caches]
        for x, y in zip(larger, caches):
            x[index] = y
        caches, given["cache_batch_idx"] = larger, index.int()
    found = flash_attn.flash_attn_with_kvcache(
        shape(q), *caches, *new, cache_seqlens=to_int32(LENGTHS), **given
    )
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=2e-6)
    for cache, x in zip(caches, wanted):
        got = cache
        if form == "pages":
            got = cache[given["page_table"].long()].flatten(1, 2)
        elif form == "batches":
            got = cache[given["cache_batch_idx"].long()]
        torch.testing.assert_close(got, x, rtol=1e-6, atol=1e-6)


FORMS = ["one piece", "pages", "batches"]
WINDOWS = [{"causal": True}, {"window_size": (5, 0)}, {}]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", WINDOWS, ids=str)
@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary(form, how, interleaved, rng):
    half = int(rng.choice([D // 2, D // 4, 1]))
    tables = make_tables(half)
    compare([4] * B, [4] * B, form=form, tables=tables, interleaved=interleaved, **how)
    compare([1] * B, [1] * B, form=form, tables=tables, interleaved=interleaved, **how)
    begins = [3, 60, 0]
    given = dict(form=form, tables=tables, interleaved=interleaved, begins=begins, **how)
    compare([2] * B, [2] * B, **given)


@pytest.mark.parametrize("form", FORMS)
def test_new_keys_of_each_sequence(form):
    how = dict(form=form, causal=True, ragged_new=True)
    compare([4, 0, 2], [2] * B, **how)
    # Sequence 2 has no room for its last two.
    compare([1, 2, 10], [1] * B, **how)
    compare([3, 1, 2], [3, 1, 2], **how, tables=make_tables(D // 2))
    compare([3, 0, 2], [3, 2, 2], **how, tables=make_tables(3), interleaved=False)


def test_compiled():
    tables = make_tables(D // 2)

    def step(q, k_cache, v_cache, k, v, lengths, offsets):
        how = dict(causal=True, rotary_cos=tables[0], rotary_sin=tables[1])
        how.update(cache_seqlens=lengths, cu_seqlens_k_new=offsets)
        return flash_attn.flash_attn_with_kvcache(q, k_cache, v_cache, k, v, **how)

    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    caches = [torch.randn(B, S, HKV, d) for d in (D, DV)]
    others = [x.clone() for x in caches]
    new = [torch.randn(6, HKV, d) for d in (D, DV)]
    given = *new, to_int32(LENGTHS), to_int32([0, 2, 4, 6])
    q = torch.randn(B, 2, H, D)
    torch.testing.assert_close(compiled(q, *caches, *given), step(q, *others, *given))
    assert all(map(torch.equal, caches, others))
