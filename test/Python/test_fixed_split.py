"""fixed_split on a CPU: the bits of a row are its own, in any batch, beside any sequences, in any pages (s22)."""

import pytest

import attn
from attn import serving

torch = pytest.importorskip("torch")
from attn.integrations import flash_attn, flashinfer  # noqa: E402
from own_bits import MASKS, Sequences, are_same  # noqa: E402
from ragged_reference import attend, check  # noqa: E402

F = 64
LENGTHS = [3, 64, 65, 128, 200, 333, 1, 64 * 4]
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
# To Sequences, and what pages are like: keys of a page, and pages that tables have room for.
PLACES = [(16, 21), (64, 6), (8, 100), (7, 60)]


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(5)


def call(sequences, picked, page, columns, rows=slice(None), fixed_split=F, **how):
    k, v, table, used = sequences.lay(picked, page, columns)
    given = dict(page_table=table, seqused_k=used, fixed_split=fixed_split, return_lse=True)
    return serving.paged_attention(sequences.q[picked][:, rows], k, v, **given, **how)


def call_alone(sequences, **how):
    """Each sequence in a batch of one."""
    found = [call(sequences, [i], *PLACES[0], **how) for i in range(len(sequences.k))]
    return [torch.cat(x) for x in zip(*found)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MASKS)
def test_batches_and_pages(name, dtype):
    sequences = Sequences(LENGTHS, 1, dtype)
    alone = call_alone(sequences, **MASKS[name])
    for picked, place in (
        ([4, 2, 4], PLACES[0]),
        (torch.randint(len(LENGTHS), (17,)).tolist(), PLACES[1]),
        ([5], PLACES[2]),
        (torch.randperm(len(LENGTHS)).tolist() * 5, PLACES[3]),
    ):
        found = call(sequences, picked, *place, **MASKS[name])
        assert all(are_same(x, y[picked]) for x, y in zip(found, alone))


@pytest.mark.parametrize("name", MASKS)
def test_rows_beside_each_other(name):
    """A row has the bits of a call that has no other, though rows of a tile keep other keys."""
    sequences = Sequences([40, 64, 100, 200, 333], 40, torch.bfloat16)
    every = list(range(5))
    output, lse = call(sequences, every, *PLACES[0], **MASKS[name])
    last = call(sequences, every, *PLACES[0], slice(39, 40), **MASKS[name])
    assert are_same(output[:, 39:], last[0]) and are_same(lse[..., 39:], last[1])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["causal", "window", "softcap", "sink", "slopes"])
def test_numbers(name, dtype):
    sequences = Sequences(LENGTHS[2:6], 3, dtype)
    how = dict(MASKS[name])
    output, lse = call(sequences, [0, 1, 2, 3], *PLACES[1], **how)
    how["slopes"] = how.pop("alibi_slopes", None)
    how["window"] = tuple(-1 if x is None else x for x in how.get("window", (-1, -1)))
    for i in range(4):
        wanted, wanted_lse = attend(sequences.q[i], sequences.k[i], sequences.v[i], causal=True, **how)
        check(output[i], wanted, dtype)
        check(lse[i], wanted_lse, dtype)


def test_parts_are_of_so_many_keys():
    """Another number gives other bits, and one above all keys is one part."""
    sequences = Sequences([333], 1, torch.float32)
    found = {split: call(sequences, [0], 16, 21, fixed_split=split)[0] for split in (64, 128, 4096, None)}
    assert not are_same(found[64], found[128])
    assert are_same(found[4096], call(sequences, [0], 16, 400, fixed_split=8192)[0])
    torch.testing.assert_close(found[64], found[None])


@pytest.mark.parametrize("causal", [False, True])
def test_one_piece(causal):
    """Of a cache whose room changes, with a length for each batch."""
    sequences = Sequences([200, 64, 130], 2, torch.bfloat16)
    kernel = lambda *x, **how: attn.attention(*x, options={"fixed_split": F}, **how)  # noqa: E731
    results = []
    for picked, room in (([0], 200), ([1], 64), ([2], 130), ([2, 0, 1, 0], 640)):
        k, v = (torch.full((len(picked), room, 2, 32), torch.nan, dtype=torch.bfloat16) for _ in "kv")
        for b, i in enumerate(picked):
            k[b, : sequences.k[i].shape[0]], v[b, : sequences.v[i].shape[0]] = sequences.k[i], sequences.v[i]
        lengths = torch.tensor([sequences.k[i].shape[0] for i in picked])

        def keep(b, h, q, kv, lengths=lengths):
            return (kv <= q + lengths[b] - 2) if causal else kv < lengths[b]

        results.append(kernel(sequences.q[picked], k, v, mask=keep, layout="bshd"))
    alone = torch.cat(results[:3])
    assert are_same(results[3], alone[[2, 0, 1, 0]])


def test_sequences():
    sequences = Sequences([200, 64, 130], 5, torch.bfloat16)

    def run(picked, most):
        k, v = (torch.cat([x[i] for i in picked]) for x in (sequences.k, sequences.v))
        q = torch.cat([sequences.q[i] for i in picked])
        rows = torch.arange(len(picked) + 1).int() * 5
        keys = torch.tensor([0, *(sequences.k[i].shape[0] for i in picked)]).cumsum(0).int()
        most = dict(max_seqlen_q=5, max_seqlen_k=most)
        return serving.varlen_attention(q, k, v, rows, keys, causal=True, fixed_split=F, **most)

    alone = [run([i], n) for i, n in enumerate([200, 64, 130])]
    for picked in ([2, 0, 1], [1, 1, 0, 2, 2]):
        assert are_same(run(picked, 640), torch.cat([alone[i] for i in picked]))


def test_gradients_do_not_know_it():
    tensors = [torch.randn(1, 2, 70, 16, requires_grad=True) for _ in range(3)]
    found = [attn.attention(*tensors, options=x) for x in ({"fixed_split": F}, None)]
    torch.testing.assert_close(*found)
    pairs = zip(*(torch.autograd.grad(x.sum(), tensors) for x in found))
    assert all(torch.allclose(x, y, atol=1e-5) for x, y in pairs)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"fixed_split": 100}, "fixed_split of whole tiles of 16 keys, got 100; the nearest is 96"),
        ({"fixed_split": 0}, "fixed_split: expected a number of keys from 1 on, or None, got 0"),
        ({"fixed_split": True}, "fixed_split: expected a number of keys from 1 on, or None, got True"),
        ({"fixed_split": 64, "options": {"fixed_split": 128}}, "fixed_split: expected that of options, 128"),
        ({"fixed_split": 64, "options": {"block_n": 48}}, "whole tiles of 48 keys, got 64; the nearest is 48"),
        ({"fixed_split": 64, "options": {"splits": 2}}, "expected a fixed_split without splits, fill, balance"),
        ({"fixed_split": 64, "options": [1]}, "options: expected a dict"),
    ],
    ids=str,
)
def test_refusals(given, words):
    sequences = Sequences([70], 1, torch.float32)
    k, v, table, used = sequences.lay([0], 16, 5)
    with pytest.raises(attn.Error, match=words):
        serving.paged_attention(sequences.q, k, v, page_table=table, seqused_k=used, **given)


def test_flash_attn():
    """num_splits=1 promises the same bits in every batch."""
    sequences = Sequences([200, 64], 1, torch.bfloat16)
    run = lambda picked, columns: (  # noqa: E731
        lambda k, v, table, used: flash_attn.flash_attn_with_kvcache(
            sequences.q[picked], k, v, cache_seqlens=used, block_table=table, causal=True, num_splits=1
        )
    )(*sequences.lay(picked, 16, columns))
    assert are_same(run([1, 0, 1], 300)[1:2], run([0], 13))


def test_flash_attn_in_one_piece():
    sequences = Sequences([200, 64], 2, torch.float16)

    def run(picked, room):
        caches = [torch.full((len(picked), room, 2, 32), torch.nan).half() for _ in "kv"]
        lengths = [sequences.k[i].shape[0] for i in picked]
        for b, (i, n) in enumerate(zip(picked, lengths)):
            caches[0][b, :n], caches[1][b, :n] = sequences.k[i], sequences.v[i]
        how = dict(cache_seqlens=torch.tensor(lengths).int(), causal=True, num_splits=1)
        return flash_attn.flash_attn_with_kvcache(sequences.q[picked], *caches, **how)

    assert are_same(run([1, 0, 1], 5000)[1:2], run([0], 200))


def test_flashinfer():
    """fixed_split_size counts pages."""
    sequences = Sequences([200, 64, 130], 1, torch.float16)

    def run(picked):
        k, v, table, used = sequences.lay(picked, 16, 13)
        counts = (used + 15) // 16
        indptr = torch.cat([torch.zeros(1).int(), counts.cumsum(0).int()])
        indices = torch.cat([row[:n] for row, n in zip(table, counts)])
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.zeros(1, dtype=torch.uint8))
        how = dict(q_data_type=torch.float16, fixed_split_size=4)
        wrapper.plan(indptr, indices, (used - 1) % 16 + 1, 4, 2, 32, 16, **how)
        return wrapper.run(sequences.q[picked][:, 0], (k, v))

    alone = [run([i]) for i in range(3)]
    assert are_same(run([2, 0, 1, 2]), torch.cat([alone[i] for i in (2, 0, 1, 2)]))
    assert are_same(alone[0], call(sequences, [0], 16, 13)[0][0])
