"""Keys in pages for callers of flash_attn and of PyTorch's varlen_attn, compared with a loop over sequences in f64.
What no key needs is NaN, and so is memory before it is written; entries that no key needs are no pages."""

import pytest

import attn

torch = pytest.importorskip("torch")
from attn.integrations import flash_attn  # noqa: E402
from attn.integrations import torch as ours  # noqa: E402
from attn.integrations._pages import Pages, attend_pages, find_pages_reason  # noqa: E402
from attn.integrations._rows_schema import How  # noqa: E402
from ragged_reference import (  # noqa: E402, F401  (fixtures)
    DV,
    PEER,
    D,
    H,
    attend,
    check,
    offsets,
    poisoned,
    seeded,
    to_int32,
)

B, HKV = 3, 2
NO_PAGE = [-1, 2147480000, -(2**31), -7]


class Cache:
    """Pages in any order, three times as many as needed, and the same keys in one piece."""

    def __init__(self, lengths, page=8, columns=6, new=0, pads=None, dtype=torch.float32, dv=DV):
        self.page, self.lengths = page, lengths
        sizes = (3 * B * columns, page, HKV)
        self.pools = [torch.full((*sizes, d), torch.nan, dtype=dtype) for d in (D, dv)]
        order = torch.randperm(sizes[0])[: B * columns].reshape(B, columns)
        self.table = order.to(torch.int32)
        self.rows = []
        for b, length in enumerate(lengths):
            for j in range(-(-(length + new) // page), columns):
                self.table[b, j] = NO_PAGE[(b + j) % 4]
            first = 0 if pads is None else pads[b]
            self.rows.append([])
            for pool in self.pools:
                rows = torch.full((length, HKV, pool.shape[3]), torch.nan, dtype=dtype)
                rows[first:] = torch.randn(length - first, HKV, pool.shape[3]).to(dtype)
                self.rows[b].append(rows)
                self.write(pool, b, 0, rows)

    def write(self, pool, b, first, rows):
        for n, row in enumerate(rows, first):
            pool[self.table[b, n // self.page], n % self.page] = row


def same_bits(x, y):
    return torch.equal(x.view(torch.int8), y.view(torch.int8))


def compare(lengths, rows=4, new=0, pads=None, ragged=None, name="block_table", **how):
    dtype = how.pop("dtype", torch.float32)
    cache = Cache(lengths, new=new, pads=pads, dtype=dtype, page=how.pop("page", 8))
    q = torch.randn(B, rows, H, D).to(dtype)
    news = [torch.randn(B, new, *x.shape[2:]).to(dtype) for x in cache.pools]
    wanted_pools = [x.clone() for x in cache.pools]
    given = {PEER.get(key, key): x for key, x in how.items()}
    given.update({"cache_seqlens": to_int32(lengths), name: cache.table})
    given["cache_leftpad"] = None if pads is None else to_int32(pads)
    packed, counts = q, [rows] * B if ragged is None else ragged
    if ragged is not None:
        # Rows after the last sequence are nobody's.
        used = [q[b, :count] for b, count in enumerate(ragged)]
        packed = torch.cat([*used, torch.full((2, H, D), torch.nan, dtype=dtype)])
        given.update(cu_seqlens_q=to_int32(offsets(ragged)), max_seqlen_q=max(ragged) + 1)
    output, lse = flash_attn.flash_attn_with_kvcache(
        packed, *cache.pools, *(news if new else ()), **given, return_softmax_lse=True
    )
    assert output.dtype == dtype and lse.dtype == torch.float32
    first = 0
    for b, count in enumerate(counts):
        keys = [torch.cat([x, y[b]]) for x, y in zip(cache.rows[b], news)]
        for pool, x in zip(wanted_pools, news):
            cache.write(pool, b, lengths[b], x[b])
        own = dict(how, start=0 if pads is None else pads[b])
        if own.get("slopes") is not None and own["slopes"].dim() == 2:
            own["slopes"] = own["slopes"][b]
        wanted, wanted_lse = attend(q[b, :count], *keys, **own)
        place = b if ragged is None else slice(first, first + count)
        check(output[place], wanted, dtype)
        check(lse[b] if ragged is None else lse[:, place], wanted_lse, dtype)
        first += count
    if ragged is not None:
        assert (output[first:] == 0).all() and (lse[:, first:] == -torch.inf).all()
    assert all(same_bits(x, y) for x, y in zip(cache.pools, wanted_pools))


FEATURES = [
    {},
    {"causal": True},
    {"window": (3, 0)},
    {"window": (3, 5)},
    {"window": (4, -1), "causal": True},
    {"softcap": 2.0},
    {"slopes": "heads", "causal": True},
    {"slopes": "batches"},
    {"sink": True, "causal": True, "scale": 0.3},
]


@pytest.mark.parametrize("features", FEATURES, ids=str)
def test_features(features, rng):
    features = dict(features)
    if "slopes" in features:
        features["slopes"] = torch.rand((H,) if features["slopes"] == "heads" else (B, H))
    if "sink" in features:
        features["sink"] = torch.randn(H)
    page = int(rng.choice([1, 3, 8, 16]))
    lengths = [int(x) for x in rng.integers(0, 5 * page, 2)] + [0]
    compare(lengths, page=page, **features)
    compare(lengths, page=page, new=int(rng.integers(1, page + 1)), **features)
    compare([5, 17, 46], pads=[2, 0, 9], ragged=[4, 0, 3], **features)
    compare([5, 17, 40], new=3, ragged=[1, 2, 3], name="page_table", **features)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_types(dtype):
    compare([0, 17, 46], new=2, dtype=dtype, causal=True)


def test_lengths_without_a_tensor():
    """One number for all batches; none: as many as the table has room for."""
    cache = Cache([20, 20, 20])
    q = torch.randn(B, 2, H, D)
    how = dict(block_table=cache.table, causal=True)
    each = flash_attn.flash_attn_with_kvcache(
        q, *cache.pools, cache_seqlens=to_int32([20] * B), **how
    )
    one = flash_attn.flash_attn_with_kvcache(q, *cache.pools, cache_seqlens=20, **how)
    full = dict(how, block_table=cache.table[:, :2].contiguous())
    whole = flash_attn.flash_attn_with_kvcache(q, *cache.pools, **full)
    wanted = flash_attn.flash_attn_with_kvcache(q, *cache.pools, cache_seqlens=16, **full)
    assert torch.equal(one, each) and torch.equal(whole, wanted)


@pytest.mark.parametrize("lengths", [[-3, 46, 70], [-(1 << 31), (1 << 31) - 1, 45]])
def test_broken_calls_write_and_read_inside(lengths):
    """Keys without a page are dropped: the memory around stays, and others are written."""
    cache = Cache([0, 40, 40], new=8)
    memory = torch.full((3 * cache.pools[0].shape[0], 8, HKV, D), 7.0)
    pool = memory[cache.pools[0].shape[0] : 2 * cache.pools[0].shape[0]]
    before = memory.clone()
    new = torch.full((B, 4, HKV, D), 9.0)
    table = cache.table.clone()
    table[0] = to_int32([-1, 1 << 30, -(1 << 31), 10**6, 54, -54])
    how = dict(cache_seqlens=to_int32(lengths), block_table=table, causal=True)
    q = torch.randn(B, 2, H, D)
    output = flash_attn.flash_attn_with_kvcache(q, pool, pool.clone(), new, new, **how)
    assert output.shape == q.shape
    for b, length in enumerate(lengths):
        for n in range(length, length + 4):
            if 0 <= n < 48 and 0 <= int(table[b, n // 8]) < pool.shape[0]:
                at = pool.shape[0] + int(table[b, n // 8])
                assert (memory[at, n % 8] == 9).all()
                before[at, n % 8] = 9
    assert torch.equal(memory, before)
    for cu in ([0, 9, 3, 5], [-5, 2, 4, 99], [6, 4, 2, 0]):
        ragged = dict(cu_seqlens_q=to_int32(cu), max_seqlen_q=2)
        output = flash_attn.flash_attn_with_kvcache(
            q.flatten(0, 1), pool, pool.clone(), **how, **ragged
        )
        assert output.shape == (6, H, D)


def test_rows_above_the_most_are_cut():
    cache = Cache([20, 30, 40])
    q, cu = torch.randn(9, H, D), to_int32([0, 5, 7, 9])
    how = dict(cache_seqlens=to_int32([20, 30, 40]), page_table=cache.table, cu_seqlens_q=cu)
    attend_most = lambda most: flash_attn.flash_attn_with_kvcache(  # noqa: E731
        q, *cache.pools, **how, causal=True, max_seqlen_q=most
    )
    whole, cut = attend_most(5), attend_most(2)
    assert torch.equal(cut[3:], whole[3:]) and (cut[:3] == 0).all()


def test_no_rows_no_keys_no_pages():
    cache = Cache([0, 5, 9])
    lengths = to_int32([0, 5, 9])
    given = dict(cache_seqlens=lengths, block_table=cache.table, return_softmax_lse=True)
    output, lse = flash_attn.flash_attn_with_kvcache(torch.zeros(B, 0, H, D), *cache.pools, **given)
    assert output.shape == (B, 0, H, DV) and lse.shape == (B, H, 0)
    q, sink = torch.randn(B, 2, H, D), torch.randn(H)
    empty = dict(given, block_table=cache.table[:, :0])
    output, lse = flash_attn.flash_attn_with_kvcache(
        q, *cache.pools, **empty, learnable_sink=sink
    )
    assert (output == 0).all() and torch.equal(lse, sink[:, None].expand(B, H, 2))
    ragged = dict(cu_seqlens_q=to_int32([0, 0, 0, 0]), max_seqlen_q=0)
    output, lse = flash_attn.flash_attn_with_kvcache(
        torch.zeros(0, H, D), *cache.pools, **given, **ragged
    )
    assert output.shape == (0, H, DV) and lse.shape == (H, 0)


@pytest.mark.parametrize("is_used", [False, True])
def test_varlen(is_used):
    lengths, counts = [5, 17, 40], [3, 0, 6]
    cache = Cache(lengths)
    q, cu = torch.randn(sum(counts), H, D), to_int32(offsets(counts))
    keys = dict(seqused_k=to_int32(lengths)) if is_used else {}
    cu_k = None if is_used else to_int32(offsets(lengths))
    output, lse = flash_attn.flash_attn_varlen_func(
        q, *cache.pools, cu, cu_k, 6, 40, causal=True, block_table=cache.table, return_lse=True, **keys
    )
    for b in range(B):
        rows = slice(sum(counts[:b]), sum(counts[: b + 1]))
        wanted, wanted_lse = attend(q[rows], *cache.rows[b], causal=True)
        check(output[rows], wanted)
        check(lse[:, rows], wanted_lse)
    # Of three rows of the first sequence, two count: they end with its last key.
    used = to_int32([2, 0, 6])
    output = flash_attn.flash_attn_varlen_func(
        q, *cache.pools, cu, cu_k, 6, causal=True, block_table=cache.table, seqused_q=used, **keys
    )
    check(output[:2], attend(q[:2], *cache.rows[0], causal=True)[0])
    assert (output[2] == 0).all()


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (7, 0)])
def test_varlen_attn(window):
    lengths, counts = [5, 17, 40], [3, 0, 6]
    cache = Cache(lengths)
    q, cu = torch.randn(sum(counts), H, D), to_int32(offsets(counts))
    how = dict(seqused_k=to_int32(lengths), block_table=cache.table, enable_gqa=True)
    before = ours.served["varlen_attn"]
    output = ours.varlen_attn(q, *cache.pools, cu, None, 6, 40, window_size=window, **how)
    assert ours.served["varlen_attn"] == before + 1
    for b in range(B):
        rows = slice(sum(counts[:b]), sum(counts[: b + 1]))
        check(output[rows], attend(q[rows], *cache.rows[b], window=window)[0])


Q, POOL = torch.zeros(3, 2, 4, 16), torch.zeros(9, 8, 2, 16)
TABLE, THREE = torch.zeros(3, 5, dtype=torch.int32), torch.zeros(3, dtype=torch.int32)
ROWS = {"q": Q[0], "cu_seqlens_q": torch.zeros(4, dtype=torch.int32), "max_seqlen_q": 2}
NEW = torch.zeros(3, 41, 2, 16)


@pytest.mark.parametrize(
    "how, words",
    [
        ({"block_table": TABLE.long()}, r"block_table: expected int32 of shape \(3, C\), got"),
        ({"block_table": TABLE[:2]}, r"block_table: expected int32 of shape \(3, C\), got"),
        ({"block_table": THREE}, r"block_table: expected int32 of shape \(3, C\), got"),
        ({"block_table": [[0]]}, r"block_table: expected int32 of shape \(3, C\), got list"),
        ({"block_table": TABLE.to("meta")}, "block_table: expected a tensor on cpu, as q is, got"),
        ({"page_table": TABLE}, "page_table: expected one of block_table and page_table"),
        ({"cache_batch_idx": THREE}, "cache_batch_idx: expected None with pages.*of block_table"),
        ({"k_cache": POOL[0]}, r"k_cache: expected a tensor \(Np, P, Hkv, D\)"),
        ({"v_cache": POOL[:, :7]}, r"v_cache: expected shape \(9, 8, 2\) before its columns"),
        ({"cache_seqlens": 41}, "cache_seqlens: expected 0 to 40, keys of a batch, got 41"),
        ({"k": NEW, "v": NEW, "cache_seqlens": 0}, "k: expected 40 new keys at most"),
        ({**ROWS, "max_seqlen_q": None}, "max_seqlen_q: expected with pages, the most rows"),
        ({**ROWS, "max_seqlen_q": -1}, "max_seqlen_q: expected with pages, the most rows"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_what_is_refused(how, words):
    given = dict(q=Q, k_cache=POOL, v_cache=POOL, block_table=TABLE)
    with pytest.raises(attn.Error, match=f"(?s){words}"):
        flash_attn.flash_attn_with_kvcache(**{**given, **how})


def test_training_with_pages_is_refused():
    q, cu = torch.zeros(3, 4, 16), to_int32([0, 1, 2, 3])
    given = dict(cu_seqlens_q=cu, cu_seqlens_k=cu, max_seqlen_q=1, block_table=TABLE)
    with pytest.raises(attn.Error, match="dropout_p: expected 0 with pages"):
        flash_attn.flash_attn_varlen_func(q, POOL, POOL, **given, dropout_p=0.5)
    with pytest.raises(attn.Error, match="block_table: expected None in training"):
        flash_attn.flash_attn_varlen_func(q.requires_grad_(), POOL, POOL, **given)


@pytest.mark.parametrize(
    "change, reason",
    [
        ({}, ""),
        ({"q": torch.zeros(2, 3, 4, 16)}, "pages of other dimensions"),
        ({"q": torch.zeros(3, 0, 16)}, "pages of other dimensions"),
        ({"v": torch.zeros(9, 8, 2, 0)}, "pages of other dimensions"),
        ({"v": torch.zeros(9, 7, 2, 16)}, "shapes that do not fit"),
        ({"q": torch.zeros(3, 4, 24)}, "shapes that do not fit"),
        ({"q": torch.zeros(3, 3, 16)}, "shapes that do not fit"),
        ({"cu_q": torch.zeros(4, dtype=torch.int64)}, "that are not int32 of a row"),
        ({"used": None}, "that are not int32 of a row"),
        ({"used": torch.zeros(2, dtype=torch.int32)}, "that are not int32 of a row"),
        ({"table": torch.zeros(3, dtype=torch.int32)}, "that are not int32 of a row"),
        ({"table": torch.zeros(3, 5, dtype=torch.int32, device="meta")}, "that are not int32 of a row"),
    ],
)
def test_which_calls_are_served(change, reason):
    given = {"q": torch.zeros(3, 4, 16), "k": POOL, "v": POOL, "cu_q": ROWS["cu_seqlens_q"]}
    found = find_pages_reason(**{**given, "used": THREE, "table": TABLE, **change})
    assert reason in found and bool(found) == bool(reason)


def make_call():
    """(q, pages, window, how) of `attend_pages`."""
    cache = Cache([7, 30, 18], dv=D)
    return torch.randn(B, 2, H, D), Pages(*cache.pools, cache.table, to_int32(cache.lengths)), (None, 0), How()


def test_out():
    q, *how = make_call()
    wanted, whole = attend_pages(q, *how)[0], torch.full((B, 4, H, D), 7.0)
    out = whole[:, 1:3]
    assert attend_pages(q, *how, out=out)[0] is out and torch.equal(out, wanted)
    assert (whole[:, 0] == 7).all() and (whole[:, 3] == 7).all()
    # Without keys.
    pages = how[0]._replace(table=how[0].table[:, :0])
    assert attend_pages(q, pages, *how[1:], out=out)[0] is out and not out.any()
    with pytest.raises(attn.Error, match="out: expected torch.float32 of shape"):
        attend_pages(q, pages, *how[1:], out=out[:, :1])


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda q, pages: torch.zeros(B, 2, H, DV), r"out: expected torch.float32 of shape \(3, 2, 4, 16\)"),
        (lambda q, pages: torch.zeros_like(q).half(), "out: expected torch.float32 of shape .* got torch.float16"),
        (lambda q, pages: torch.zeros_like(q, device="meta"), "out: expected a tensor on the CPU"),
        (lambda q, pages: torch.zeros(B, 2, D, H).mT, "expected a contiguous last dimension"),
        (lambda q, pages: torch.zeros(B, 2, 1, D).expand(B, 2, H, D), "expected elements of their own"),
        (lambda q, pages: q, "expected memory of its own, got memory that q has"),
        (lambda q, pages: pages.v.flatten()[: q.numel()].view(q.shape), "got memory that v_cache has"),
    ],
)
def test_out_that_is_refused(make, words):
    q, pages, *how = make_call()
    with pytest.raises(attn.Error, match=words):
        attend_pages(q, pages, *how, out=make(q, pages))
