"""attn.integrations.flashinfer, compared with each sequence by itself in f64. The grid is a sample of FlashInfer's own
tests (0.6.18: test_batch_decode_kernels, test_batch_prefill_kernels, test_shared_prefix_kernels, test_page)."""

import inspect
import math

import pytest

import attn

torch = pytest.importorskip("torch")
from attn.integrations import (  # noqa: E402
    _flashinfer_prefill,
    _flashinfer_wrapper,
    flashinfer,
)
from flashinfer_batch import WORKSPACE, Batch  # noqa: E402
from ragged_reference import attend, check, offsets, seeded, to_int32  # noqa: E402, F401

LOG2E = math.log2(math.e)


def expect(batch, rows, **how):
    """`rows` are the queries of each sequence: (T, H, D), and (T, H) to base 2."""
    found = [attend(q, k, v, **how) for q, (k, v) in zip(rows, batch.keys)]
    return torch.cat([x for x, _ in found]), torch.cat([y.T for _, y in found]) * LOG2E


def check_both(found, wanted, dtype=torch.float32):
    check(found[0], wanted[0], dtype)
    check(found[1], wanted[1], torch.float32 if dtype == torch.float32 else dtype)


PAGES, LAYOUTS = [1, 5, 8, 16], ["NHD", "HND"]


# ===- Decoding -------------------------------------------------------------------------------===#


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("heads", [2, 8])
def test_decode(page, layout, heads, rng):
    form = str(rng.choice(["one", "pair"]))
    batch = Batch([54, 1, 97, 13], page, layout=layout, form=form)
    q = torch.randn(4, heads, 16)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, layout)
    wrapper.plan(*batch.lists, heads, 2, 16, page, q_data_type="float32")
    wanted = expect(batch, q.split(1))
    check_both(wrapper.run(q, batch.cache, return_lse=True), wanted)
    check_both(wrapper.run_return_lse(q, batch.cache), wanted)
    out, lse = torch.empty_like(q), torch.empty(4, heads)
    found = wrapper.run(q, batch.cache, out=out, lse=lse, return_lse=True)
    assert found[0] is out and found[1] is lse
    check_both(found, wanted)


def test_decode_features():
    batch = Batch([54, 1, 97, 13], 8)
    q, sinks = torch.randn(4, 8, 16), torch.randn(8)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    plan = lambda **how: wrapper.plan(*batch.lists, 8, 2, 16, 8, q_data_type=torch.float32, **how)  # noqa: E731
    run = lambda **how: wrapper.run(q, batch.cache, return_lse=True, **how)  # noqa: E731
    plan(window_left=5)
    check_both(run(), expect(batch, q.split(1), window=(5, 0)))
    plan(logits_soft_cap=3.0, sm_scale=0.3)
    check_both(run(), expect(batch, q.split(1), softcap=3.0, scale=0.3))
    plan()
    check_both(run(sinks=sinks), expect(batch, q.split(1), sink=sinks))
    output, lse = expect(batch, q.split(1), scale=0.25 * 2 * 3)
    check_both(run(q_scale=2.0, k_scale=3.0, v_scale=0.5), (output * 0.5, lse))


def test_decode_alibi():
    """The bias is slope * (key - row), with row 0: another constant than positions, which lse shows."""
    batch = Batch([54, 1, 97], 8)
    q = torch.randn(3, 6, 16)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    wrapper.plan(*batch.lists, 6, 2, 16, 8, "ALIBI", q_data_type=torch.float32)
    output, lse = wrapper.run(q, batch.cache, return_lse=True)
    slopes = torch.tensor([2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3])
    wanted, wanted_lse = expect(batch, q.split(1), slopes=slopes)
    check(output, wanted)
    shift = torch.tensor([53, 0, 96])[:, None] * slopes * LOG2E
    torch.testing.assert_close(lse.double(), wanted_lse + shift.double(), rtol=1e-5, atol=1e-4)


def turn(x, first, theta=1e4, scale=1.0):
    """Row i at position first + i: columns j and j + D / 2 by the angle position * theta^(-2 j / D)."""
    half = x.shape[-1] // 2
    angles = (first + torch.arange(len(x)))[:, None, None].double() / scale
    angles = angles * theta ** -(torch.arange(half) / half).double()
    a, b = x.double()[..., :half], x.double()[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


@pytest.mark.parametrize("how", [{}, {"rope_scale": 2.0, "rope_theta": 500.0}], ids=str)
def test_rope(how):
    """Keys of the cache are not rotated: each form rotates them at their positions."""
    of = {x.replace("rope_", ""): y for x, y in how.items()}
    lengths, rows, mode = [54, 7, 97], [3, 0, 17], "ROPE_LLAMA"
    batch = Batch(lengths, 8)
    turned = [[turn(k, 0, **of), v] for k, v in batch.keys]
    rotate = lambda parts: [  # noqa: E731
        turn(x, length - len(x), **of) for x, length in zip(parts, lengths)
    ]
    plan = dict(how, pos_encoding_mode=mode, q_data_type=torch.float32)
    expect_turned = lambda q, **x: [  # noqa: E731
        attend(a, *kv, **x) for a, kv in zip(rotate(q), turned)
    ]
    join = lambda found: (  # noqa: E731
        torch.cat([x for x, _ in found]),
        torch.cat([y.T for _, y in found]) * LOG2E,
    )
    q = torch.randn(6, 4, 16)
    decode = flashinfer.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    decode.plan(*batch.lists, 4, 2, 16, 8, q_len_per_req=2, **plan)
    wanted = join(expect_turned(q.split(2), causal=True))
    check_both(decode.run(q, batch.cache, return_lse=True), wanted)
    q = torch.randn(sum(rows), 4, 16)
    wanted = join(expect_turned(q.split(rows), causal=True))
    paged = flashinfer.BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    paged.plan(to_int32(offsets(rows)), *batch.lists, 4, 2, 16, 8, causal=True, **plan)
    check_both(paged.run(q, batch.cache, return_lse=True), wanted)
    ragged = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE)
    k, v = (torch.cat([x[i] for x in batch.keys]) for i in (0, 1))
    given = to_int32(offsets(rows)), to_int32(offsets(lengths))
    ragged.plan(*given, 4, 2, 16, causal=True, **plan)
    check_both(ragged.run(q, k, v, return_lse=True), wanted)
    single = flashinfer.single_prefill_with_kv_cache
    found = single(q[:3], *batch.keys[0], causal=True, pos_encoding_mode=mode, **how)
    check(found, wanted[0][:3])
    found = flashinfer.single_decode_with_kv_cache(
        q[2], *batch.keys[0], pos_encoding_mode=mode, **how
    )
    check(found, wanted[0][2])


def test_tables_of_rope(monkeypatch):
    """Made by plan() where those of an earlier one are too short, and never by run()."""
    made = []

    def make_rotary(rope, positions, *given):
        made.append(positions)
        return of_rope(rope, positions, *given)

    of_rope = _flashinfer_wrapper.make_rotary
    monkeypatch.setattr(_flashinfer_wrapper, "make_rotary", make_rotary)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    for length, wanted in ((54, [56]), (50, []), (60, [64])):
        batch = Batch([length, 7], 8)
        wrapper.plan(*batch.lists, 4, 2, 16, 8, "ROPE_LLAMA", q_data_type=torch.float32)
        assert made == wanted
        made.clear()
        q = torch.randn(2, 4, 16)
        turned = [[turn(k, 0), v] for k, v in batch.keys]
        rows = [turn(x, len(k) - 1) for x, (k, _) in zip(q.split(1), batch.keys)]
        found = torch.cat([attend(x, *kv)[0] for x, kv in zip(rows, turned)])
        for _ in range(2):
            check(wrapper.run(q, batch.cache), found)
    assert made == []
    wrapper.plan(*batch.lists, 4, 2, 16, 8, q_data_type=torch.float32)
    check(wrapper.run(q, batch.cache), expect(batch, q.split(1))[0])


def test_rows_of_a_plan(monkeypatch):
    """plan() finds the places of rows outside of graphs; run() does for a q of more rows."""
    totals = []

    def make_padding(total, *given):
        totals.append(total)
        return of_pages(total, *given)

    of_pages = _flashinfer_prefill.make_padding
    monkeypatch.setattr(_flashinfer_prefill, "make_padding", make_padding)
    batch, q = Batch([54, 7], 8), torch.randn(7, 4, 16)
    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    wrapper.plan(to_int32([0, 3, 5]), *batch.lists, 4, 2, 16, 8, q_data_type=torch.float32)
    wanted = expect(batch, q[:5].split([3, 2]))[0]
    for _ in range(2):
        check(wrapper.run(q[:5].clone(), batch.cache), wanted)
    assert totals == [5]
    found = wrapper.run(q, batch.cache)
    check(found[:5], wanted)
    assert totals == [5, 7] and not found[5:].any()


def test_several_rows_of_each():
    batch = Batch([54, 3, 97], 8)
    q = torch.randn(9, 8, 16)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, use_tensor_cores=True)
    how = dict(q_data_type=torch.float32, q_len_per_req=3)
    wrapper.plan(*batch.lists, 8, 2, 16, 8, **how)
    check_both(wrapper.run(q, batch.cache, return_lse=True), expect(batch, q.split(3), causal=True))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_types(dtype):
    batch = Batch([54, 97], 16, d=64, dtype=dtype)
    q = torch.randn(2, 8, 64).to(dtype)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    wrapper.plan(*batch.lists, 8, 2, 64, 16, q_data_type=dtype)
    check_both(wrapper.run(q, batch.cache, return_lse=True), expect(batch, q.split(1)), dtype)


def test_buffers_of_graphs():
    """plan() writes where run() reads, and both keep their places."""
    lists = [torch.zeros(4, dtype=torch.int32), torch.zeros(60, dtype=torch.int32)]
    lists.append(torch.ones(3, dtype=torch.int32))
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, "NHD", True, False, *lists)
    assert wrapper.is_cuda_graph_enabled
    places = set()
    for lengths in ([54, 1, 97], [8, 97, 3], [1, 1, 1]):
        batch = Batch(lengths, 8)
        q = torch.randn(3, 8, 16)
        wrapper.plan(*batch.lists, 8, 2, 16, 8, q_data_type=torch.float32)
        places.add((wrapper._table.pages.data_ptr(), wrapper._table.lengths.data_ptr()))
        check_both(wrapper.run(q, batch.cache, return_lse=True), expect(batch, q.split(1)))
        assert torch.equal(lists[0], batch.indptr) and torch.equal(lists[2], batch.last)
        assert torch.equal(lists[1][: len(batch.indices)], batch.indices)
    assert len(places) == 1
    # Slopes too stay where a graph read them.
    plan = lambda: wrapper.plan(*batch.lists, 8, 2, 16, 8, "ALIBI", q_data_type=torch.float32)  # noqa: E731
    slopes = [plan() or wrapper._asked.slopes for _ in range(2)]
    assert slopes[0] is slopes[1]
    with pytest.raises(attn.Error, match="paged_kv_indptr: expected 3 sequences"):
        # Longer than the buffer of indices allows, or of another batch.
        wrapper._table.update(*Batch([8] * 4, 8).lists, 8, 60, torch.device("cpu"))


# ===- Prefill --------------------------------------------------------------------------------===#

ROWS = [3, 0, 17, 1]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_prefill_of_pages(page, causal, layout):
    batch = Batch([54, 7, 97, 1], page, layout=layout)
    q = torch.randn(sum(ROWS), 4, 16)
    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(WORKSPACE, layout)
    wrapper.plan(
        to_int32(offsets(ROWS)), *batch.lists, 4, 2, 16, page, causal=causal, q_data_type="float32"
    )
    found = wrapper.run(q, batch.cache, return_lse=True)
    check_both(found, expect(batch, q.split(ROWS), causal=causal))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_prefill_in_one_piece(causal, layout):
    lengths = [54, 7, 97, 1]
    batch = Batch(lengths, 8)
    q = torch.randn(sum(ROWS), 4, 16)
    k, v = (torch.cat([x[i] for x in batch.keys]) for i in (0, 1))
    if layout == "HND":
        k, v = (x.transpose(0, 1).contiguous() for x in (k, v))
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE, layout)
    given = to_int32(offsets(ROWS)), to_int32(offsets(lengths))
    wrapper.plan(*given, 4, 2, 16, causal=causal, q_data_type=torch.float32)
    wanted = expect(batch, q.split(ROWS), causal=causal)
    check_both(wrapper.run(q, k, v, return_lse=True), wanted)
    wrapper.plan(*given, 4, 2, 16, causal=causal, window_left=6, q_data_type=torch.float32)
    wanted = expect(batch, q.split(ROWS), causal=causal, window=(6, -1))
    check_both(wrapper.run(q, k, v, return_lse=True), wanted)


def pack(masks):
    """The bits of each sequence, the lowest first, in whole bytes."""
    found = []
    for mask in masks:
        bits = torch.nn.functional.pad(mask.flatten().int(), (0, -mask.numel() % 8)).view(-1, 8)
        found.append((bits << torch.arange(8)).sum(1).to(torch.uint8))
    return torch.cat(found)


def attend_masked(q, k, v, mask):
    heads = q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(heads, 1) for x in (k, v))
    s = torch.einsum("mhd,nhd->hmn", q.double(), k) * q.shape[2] ** -0.5
    s = s.masked_fill(~mask, -math.inf)
    lse = torch.logsumexp(s, 2)
    weights = torch.where(mask, (s - torch.where(lse.isinf(), 0, lse)[..., None]).exp(), 0.0)
    return torch.einsum("hmn,nhd->mhd", weights, v), lse.T * LOG2E


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("is_paged", [False, True])
def test_custom_masks(is_packed, is_paged):
    lengths, rows = [11, 7, 20], [3, 2, 9]
    batch = Batch(lengths, 4)
    q = torch.randn(sum(rows), 4, 16)
    masks = [torch.rand(m, n) < 0.6 for m, n in zip(rows, lengths)]
    found = [attend_masked(x, *kv, y) for x, kv, y in zip(q.split(rows), batch.keys, masks)]
    wanted = tuple(torch.cat(x) for x in zip(*found))
    how = {"packed_custom_mask": pack(masks)} if is_packed else {}
    if not is_packed:
        how["custom_mask"] = torch.cat([x.flatten() for x in masks])
    # A mask of one's own takes the place of the causal one.
    how.update(causal=True, q_data_type=torch.float32)
    if is_paged:
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
        wrapper.plan(to_int32(offsets(rows)), *batch.lists, 4, 2, 16, 4, **how)
        check_both(wrapper.run(q, batch.cache, return_lse=True), wanted)
    else:
        wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE)
        wrapper.plan(to_int32(offsets(rows)), to_int32(offsets(lengths)), 4, 2, 16, **how)
        k, v = (torch.cat([x[i] for x in batch.keys]) for i in (0, 1))
        check_both(wrapper.run(q, k, v, return_lse=True), wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_single(layout):
    q, k, v = torch.randn(5, 4, 16), torch.randn(33, 2, 16), torch.randn(33, 2, 24)
    at = (lambda x: x) if layout == "NHD" else (lambda x: x.transpose(0, 1).contiguous())
    single = lambda **how: flashinfer.single_prefill_with_kv_cache(  # noqa: E731
        q, at(k), at(v), kv_layout=layout, return_lse=True, **how
    )
    turned = lambda found: (found[0], found[1].T * LOG2E)  # noqa: E731
    check_both(single(), turned(attend(q, k, v)))
    check_both(single(causal=True), turned(attend(q, k, v, causal=True)))
    how = dict(causal=True, window_left=4, logits_soft_cap=2.0, sm_scale=0.4)
    wanted = attend(q, k, v, causal=True, window=(4, 0), softcap=2.0, scale=0.4)
    check_both(single(**how), turned(wanted))
    mask = torch.rand(5, 33) < 0.5
    check_both(single(custom_mask=mask), attend_masked(q, k, v, mask))
    check_both(single(packed_custom_mask=pack([mask])), attend_masked(q, k, v, mask))
    found = flashinfer.single_decode_with_kv_cache(q[0], at(k), at(v), layout, return_lse=True)
    wanted = attend(q[:1], k, v)
    check(found[0], wanted[0][0])
    check(found[1], wanted[1][:, 0] * LOG2E)


# ===- Merging and appending ------------------------------------------------------------------===#


def test_merges():
    q, k, v = torch.randn(5, 4, 16), torch.randn(33, 2, 16), torch.randn(33, 2, 16)
    cuts = [(0, 9), (9, 10), (10, 33)]
    single = flashinfer.single_prefill_with_kv_cache
    parts = [single(q, k[a:b], v[a:b], return_lse=True) for a, b in cuts]
    output, lse = attend(q, k, v)
    wanted = output, lse.T * LOG2E
    outputs, lses = (torch.stack(x, 1) for x in zip(*parts))
    check_both(flashinfer.merge_states(outputs, lses), wanted)
    two = flashinfer.merge_state(*parts[0], *parts[1])
    check_both(flashinfer.merge_state(*two, *parts[2]), wanted)
    o, s = (x.clone() for x in two)
    mask = torch.tensor([1, 0, 1, 1, 0], dtype=torch.uint8)
    flashinfer.merge_state_in_place(o, s, *parts[2], mask)
    kept = mask.bool()
    check_both((o[kept], s[kept]), (wanted[0][kept], wanted[1][kept]))
    assert torch.equal(o[~kept], two[0][~kept]) and torch.equal(s[~kept], two[1][~kept])
    flashinfer.merge_state_in_place(o := two[0].clone(), s := two[1].clone(), *parts[2])
    check_both((o, s), wanted)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("page", [1, 8])
def test_cascade(causal, page):
    """Two levels: 32 keys that all rows share, then those of each sequence."""
    own, rows = [17, 40, 5], [3, 1, 4]
    batch, prefix = Batch(own, page), Batch([32], page)
    shift = batch.cache.shape[0]
    cache = torch.cat([batch.cache, prefix.cache])
    q = torch.randn(sum(rows), 4, 16)
    wrapper = flashinfer.MultiLevelCascadeAttentionWrapper(2, WORKSPACE)
    wrapper.plan(
        [to_int32([0, sum(rows)]), to_int32(offsets(rows))],
        [prefix.indptr, batch.indptr],
        [prefix.indices + shift, batch.indices],
        [prefix.last, batch.last],
        4,
        2,
        16,
        page,
        causal=causal,
        q_data_type=torch.float32,
    )
    batch.keys = [
        [torch.cat([x, y]) for x, y in zip(prefix.keys[0], mine)] for mine in batch.keys
    ]
    check(wrapper.run(q, cache), expect(batch, q.split(rows), causal=causal)[0])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("page", [1, 5, 16])
def test_append(layout, page):
    lengths, new = [45, 8, 25, 22], [5, 8, 0, 1]
    batch = Batch(lengths, page, form="pair", layout=layout)
    wanted = [x.clone() for x in batch.cache]
    k, v = torch.randn(sum(new), 2, 16), torch.randn(sum(new), 2, 16)
    seq_lens = flashinfer.get_seq_lens(batch.indptr, batch.last, page)
    assert seq_lens.tolist() == lengths
    # Two more rows, of no sequence.
    k, v = (torch.cat([x, torch.full((2, 2, 16), 9.0)]) for x in (k, v))
    given = flashinfer.get_batch_indices_positions(to_int32(offsets(new)), seq_lens, len(k))
    flashinfer.append_paged_kv_cache(k, v, *given, batch.cache, *_lists(batch), layout)
    at = 0
    for b, count in enumerate(new):
        for i in range(count):
            position = lengths[b] - count + i
            assert (int(given[0][at]), int(given[1][at])) == (b, position)
            page_of = int(batch.indices[batch.indptr[b] + position // page])
            for x, row in zip(wanted, (k, v)):
                pages = x if layout == "NHD" else x.transpose(1, 2)
                pages[page_of, position % page] = row[at]
            at += 1
    assert given[0][at:].tolist() == [-1, -1]
    for x, y in zip(batch.cache, wanted):
        assert torch.equal(x.view(torch.int32), y.view(torch.int32))


def _lists(batch):
    return batch.indices, batch.indptr, batch.last


def test_hostile_lists_write_inside():
    memory = torch.full((3 * 7, 4, 2, 8), 7.0)
    pools = [memory[7:14], memory[7:14].clone()]
    row = torch.full((6, 2, 8), 9.0)
    batches = to_int32([-1, 5, 0, 1, 2**31 - 1, -(2**31)])
    positions = to_int32([0, 3, -4, 2**31 - 1, 5, 1])
    pages, ends = to_int32([2**31 - 1, -5, 99]), to_int32([0, 1, 3])
    given = pages, ends, to_int32([1, 1])
    flashinfer.append_paged_kv_cache(row, row, batches, positions, tuple(pools), *given)
    assert (memory == 7).all()


# ===- Names ----------------------------------------------------------------------------------===#


def test_names():
    """In the order of FlashInfer 0.6.18, as far as calls by position go."""
    names = lambda f: list(inspect.signature(f).parameters)  # noqa: E731
    assert names(flashinfer.append_paged_kv_cache) == (
        "append_key append_value batch_indices positions paged_kv_cache kv_indices kv_indptr "
        "kv_last_page_len kv_layout"
    ).split()
    decode = flashinfer.BatchDecodeWithPagedKVCacheWrapper
    assert names(decode)[:4] == "float_workspace_buffer kv_layout use_cuda_graph use_tensor_cores".split()
    assert names(decode.plan)[1:12] == (
        "indptr indices last_page_len num_qo_heads num_kv_heads head_dim page_size pos_encoding_mode "
        "window_left logits_soft_cap q_data_type"
    ).split()
    prefill = flashinfer.BatchPrefillWithPagedKVCacheWrapper
    assert names(prefill.plan)[1:13] == (
        "qo_indptr paged_kv_indptr paged_kv_indices paged_kv_last_page_len num_qo_heads num_kv_heads "
        "head_dim_qk page_size head_dim_vo custom_mask packed_custom_mask causal"
    ).split()
    ragged = flashinfer.BatchPrefillWithRaggedKVCacheWrapper
    assert names(ragged.plan)[1:8] == (
        "qo_indptr kv_indptr num_qo_heads num_kv_heads head_dim_qk head_dim_vo custom_mask"
    ).split()
    for name in flashinfer.__all__:
        assert getattr(flashinfer, name).__doc__
