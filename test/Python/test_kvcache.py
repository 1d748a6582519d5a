"""flash_attn_with_kvcache, compared with a loop over batches in f64. What a cache holds beyond its lengths is
NaN, and so is memory before it is written."""

import inspect

import pytest

import attn

torch = pytest.importorskip("torch")
from attn.integrations import flash_attn  # noqa: E402
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

B, S, HKV = 3, 50, 2


def make_cache(lengths, pads=None, hkv=HKV, dtype=torch.float32, capacity=S):
    """k_cache and v_cache whose rows from the pad to the length are numbers."""
    caches = [torch.full((len(lengths), capacity, hkv, d), torch.nan, dtype=dtype) for d in (D, DV)]
    for cache in caches:
        for b, length in enumerate(lengths):
            first = 0 if pads is None else pads[b]
            cache[b, first:length] = torch.randn(length - first, *cache.shape[2:]).to(dtype)
    return caches


def compare(
    lengths,
    rows=4,
    new=0,
    pads=None,
    index=None,
    ragged=None,
    dtype=torch.float32,
    hkv=HKV,
    capacity=S,
    **how,
):
    """`lengths` is a number or one for each batch; `index` the batches of a cache of 5; `ragged` how many
    rows each batch has."""
    each = [lengths] * B if isinstance(lengths, int) else lengths
    batches = list(range(B)) if index is None else index
    of_cache = [0] * (B if index is None else 5)
    pads_of_cache = list(of_cache)
    for b, place in enumerate(batches):
        of_cache[place] = each[b]
        pads_of_cache[place] = 0 if pads is None else pads[b]
    caches = make_cache(of_cache, pads_of_cache, hkv, dtype, capacity)
    wanted_caches = [x.clone() for x in caches]
    news = [torch.randn(B, new, *x.shape[2:]).to(dtype) for x in caches] if new else [None, None]
    q = torch.randn(B, rows, H, D).to(dtype)

    given = {PEER.get(name, name): x for name, x in how.items()}
    given["cache_seqlens"] = lengths if isinstance(lengths, int) else to_int32(lengths)
    given["cache_batch_idx"] = None if index is None else to_int32(index)
    given["cache_leftpad"] = None if pads is None else to_int32(pads)
    counts = [rows] * B if ragged is None else ragged
    packed = q
    if ragged is not None:
        packed = torch.cat([q[b, :count] for b, count in enumerate(ragged)])
        given["cu_seqlens_q"] = to_int32(offsets(ragged))
    output, lse = flash_attn.flash_attn_with_kvcache(
        packed, *caches, *news, **given, return_softmax_lse=True
    )
    assert output.dtype == dtype and lse.dtype == torch.float32

    for b, count in enumerate(counts):
        place, length = batches[b], each[b] + new
        if new:
            for cache, x in zip(wanted_caches, news):
                cache[place, each[b] : length] = x[b]
        k, v = (x[place, :length] for x in wanted_caches)
        own = dict(how, start=0 if pads is None else pads[b])
        if own.get("slopes") is not None and own["slopes"].dim() == 2:
            own["slopes"] = own["slopes"][b]
        wanted, wanted_lse = attend(q[b, :count], k, v, **own)
        if ragged is None:
            got, got_lse = output[b], lse[b]
        else:
            first = sum(ragged[:b])
            got, got_lse = output[first : first + count], lse[:, first : first + count]
        check(got, wanted, dtype)
        check(got_lse, wanted_lse, dtype)
    for got, wanted in zip(caches, wanted_caches):
        assert torch.equal(got.view(torch.int8), wanted.view(torch.int8))


LENGTHS = [0, 17, 46]
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


def make_features(features):
    made = dict(features)
    if "slopes" in made:
        made["slopes"] = torch.rand((H,) if made["slopes"] == "heads" else (B, H))
    if "sink" in made:
        made["sink"] = torch.randn(H)
    return made


@pytest.mark.parametrize("features", FEATURES, ids=str)
def test_features(features):
    features = make_features(features)
    compare(LENGTHS, **features)
    compare(LENGTHS, new=4, **features)
    compare(20, new=1, **features)
    compare([5, 17, 46], pads=[2, 0, 9], **features)
    compare([5, 17, 46], ragged=[4, 0, 3], **features)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_types(dtype, rng):
    for i in rng.permutation(len(FEATURES))[:3]:
        compare(LENGTHS, new=2, dtype=dtype, **make_features(FEATURES[i]))


@pytest.mark.parametrize("hkv", [1, 2, 4])
@pytest.mark.parametrize("rows", [1, 5, 70])
def test_rows_and_heads(rows, hkv):
    compare(LENGTHS, rows=rows, hkv=hkv, causal=True)
    compare([50, 1, 49], rows=rows, hkv=hkv)


def test_batches_of_the_cache():
    compare([5, 17, 44], index=[4, 0, 2], new=3, causal=True)
    compare([5, 17, 46], index=[3, 1, 0], pads=[2, 0, 9], new=2)
    compare([5, 17, 46], index=[3, 1, 0], pads=[2, 0, 9], ragged=[1, 2, 3], new=2, causal=True)
    compare(20, index=[1, 3, 4], ragged=[1, 2, 3], pads=[2, 0, 20], window=(5, 1))


# Of flash-attention's own grid: rows and the capacity.
GRID = [(1, 128), (1, 339), (3, 1024), (64, 800), (64, 256), (3, 799), (64, 2048), (128, 128)]


def test_a_sample_of_the_grid_of_the_peer(rng):
    for rows, capacity in rng.permutation(GRID)[:3]:
        new = int(rng.integers(0, min(rows, 9)))
        lengths = [int(x) for x in rng.integers(0, capacity - new + 1, B)]
        features = make_features(FEATURES[rng.integers(len(FEATURES))])
        features.update(rows=int(rows), new=new, hkv=int(rng.choice([1, 2, 4])))
        compare(lengths, capacity=int(capacity), **features)


def test_all_of_the_cache():
    q = torch.randn(B, 2, H, D)
    caches = make_cache([S] * B)
    got = flash_attn.flash_attn_with_kvcache(q, *caches, causal=True)
    assert torch.equal(got, flash_attn.flash_attn_func(q, *caches, causal=True))


@pytest.mark.parametrize("lengths", [[-3, 49, 60], [-(1 << 31), (1 << 31) - 1, 48]])
def test_broken_lengths_write_and_read_inside(lengths):
    """What does not fit is dropped; the rest of the cache stays."""
    memory = torch.full((B * S * 3, HKV, D), 7.0)
    caches = [memory[B * S : 2 * B * S].view(B, S, HKV, D)] * 2
    caches = [caches[0], caches[1].clone()]
    new = torch.full((B, 4, HKV, D), 9.0)
    q = torch.randn(B, 2, H, D)
    for more in (
        {},
        {"cache_batch_idx": to_int32([7, -5, 1])},
        {"cu_seqlens_q": to_int32([0, 2, 4, 6])},
    ):
        rows = q.flatten(0, 1) if "cu_seqlens_q" in more else q
        how = dict(cache_seqlens=to_int32(lengths), causal=True, **more)
        output = flash_attn.flash_attn_with_kvcache(rows, *caches, new, new, **how)
        assert output.isfinite().all()
    assert (memory[: B * S] == 7).all() and (memory[2 * B * S :] == 7).all()
    written = caches[0] == 9
    for length, rows in zip(lengths, written):
        wanted = torch.zeros(S, dtype=torch.bool)
        wanted[[i for i in range(S) if length <= i < length + 4]] = True
        # Batches that the index clamped to are written for others too.
        assert (rows[:, 0, 0] | ~wanted).all()


def test_no_rows_and_no_batches():
    caches = make_cache(LENGTHS)
    lengths = to_int32(LENGTHS)
    for rows in (torch.zeros(B, 0, H, D), torch.zeros(0, 3, H, D)):
        count = rows.shape[0]
        given = *[x[:count] for x in caches], None, None
        output, lse = flash_attn.flash_attn_with_kvcache(
            rows, *given, cache_seqlens=lengths[:count], causal=True, return_softmax_lse=True
        )
        assert output.shape == (*rows.shape[:3], DV) and lse.shape == (count, H, rows.shape[1])


def test_there_are_no_gradients():
    q = torch.randn(B, 2, H, D, requires_grad=True)
    new = torch.randn(B, 2, HKV, D, requires_grad=True), torch.randn(B, 2, HKV, DV)
    caches = make_cache([5] * B)
    output = flash_attn.flash_attn_with_kvcache(q, *caches, *new, cache_seqlens=5)
    assert not output.requires_grad and not caches[0].requires_grad


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("ragged", [False, True])
def test_compiled(dynamic, ragged):
    """A step of decoding as one graph, in which nothing is read on the host."""
    slopes = torch.rand(H)
    cu = to_int32([0, 2, 4, 6]) if ragged else None

    def step(q, k_cache, v_cache, k, v, lengths):
        how = dict(causal=True, window_size=(5, 0), softcap=3.0, alibi_slopes=slopes)
        return flash_attn.flash_attn_with_kvcache(
            q, k_cache, v_cache, k, v, cache_seqlens=lengths, cu_seqlens_q=cu, **how
        )

    q = torch.randn(6, H, D) if ragged else torch.randn(B, 2, H, D)
    caches = make_cache(LENGTHS)
    others = [x.clone() for x in caches]
    new = torch.randn(B, 2, HKV, D), torch.randn(B, 2, HKV, DV)
    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    got = compiled(q, *caches, *new, to_int32(LENGTHS))
    check(got, step(q, *others, *new, to_int32(LENGTHS)).double())
    for x, y in zip(caches, others):
        assert torch.equal(x.view(torch.int8), y.view(torch.int8))


def test_names():
    names = list(inspect.signature(flash_attn.flash_attn_with_kvcache).parameters)
    first = (
        "q k_cache v_cache k v rotary_cos rotary_sin cache_seqlens cache_batch_idx cache_leftpad block_table "
        "softmax_scale causal window_size softcap rotary_interleaved alibi_slopes num_splits return_softmax_lse"
    )
    assert names[:19] == first.split() and {"page_table", "cu_seqlens_q"} <= set(names)


Q, CACHE = torch.zeros(3, 2, 4, 16), torch.zeros(3, 9, 2, 16)
NEW, THREE = torch.zeros(3, 2, 2, 16), torch.zeros(3, dtype=torch.int32)
COS, WIDE, SOME = torch.zeros(9, 4), torch.zeros(9, 9), {"k": NEW, "v": NEW, "cache_seqlens": THREE}


@pytest.mark.parametrize(
    "how, words",
    [
        ({"rotary_cos": COS, "rotary_sin": COS}, "rotary_cos: expected None without new keys"),
        ({"rotary_seqlens": THREE}, "rotary_seqlens: expected None without rotary_cos"),
        ({"rotary_sin": COS, **SOME}, r"rotary_cos: expected a tensor \(positions, R / 2\)"),
        ({"rotary_cos": COS, **SOME}, r"rotary_sin: expected a tensor \(positions, R / 2\)"),
        (
            {"rotary_cos": COS, "rotary_sin": COS[:3], **SOME},
            r"rotary_sin: expected floats of shape \(9, 4\)",
        ),
        (
            {"rotary_cos": WIDE, "rotary_sin": WIDE, **SOME},
            "rotary_cos: expected a position or more, of 8 columns at most",
        ),
        (
            {"rotary_cos": COS, "rotary_sin": COS, "rotary_seqlens": THREE[:2], **SOME},
            r"rotary_seqlens: expected int32 of shape \(3,\)",
        ),
        ({"cu_seqlens_k_new": THREE}, "cu_seqlens_k_new: expected None without new keys"),
        ({"cu_seqlens_k_new": THREE, **SOME}, r"k: expected a tensor \(T, H, D\)"),
        (
            {"cu_seqlens_k_new": THREE, "k": NEW[0], "v": NEW[0]},
            r"cu_seqlens_k_new: expected int32 of shape \(4,\)",
        ),
        ({"qv": Q}, "qv: expected None"),
        ({"q_descale": Q}, "q_descale: expected None"),
        ({"k_descale": Q}, "k_descale: expected None"),
        ({"v_descale": Q}, "v_descale: expected None"),
        ({"attention_chunk": 8}, "attention_chunk: expected 0, got 8"),
        ({"q": Q[0]}, r"q: expected a tensor \(B, S, H, D\)"),
        ({"q": Q[:2]}, "k_cache: expected 2 batches, as q has, got 3"),
        ({"k_cache": CACHE[0]}, r"k_cache: expected a tensor \(B, S, H, D\)"),
        ({"k_cache": CACHE.half()}, "k_cache: expected elements of torch.float32, as q has"),
        ({"v_cache": CACHE[:, :8]}, r"v_cache: expected shape \(3, 9, 2\) before its columns"),
        ({"k_cache": CACHE[..., :8]}, "k_cache: expected 16 columns, as q has, got 8"),
        ({"q": Q[:, :, :3]}, "k_cache: expected a number of heads that divides 3"),
        ({"cache_seqlens": 10}, "cache_seqlens: expected 0 to 9, keys of a batch, got 10"),
        ({"cache_seqlens": -1}, "cache_seqlens: expected 0 to 9, keys of a batch, got -1"),
        (
            {"cache_seqlens": THREE.long()},
            r"cache_seqlens: expected int32 of shape \(3,\), got torch.int64",
        ),
        ({"cache_seqlens": THREE[:2]}, r"cache_seqlens: expected int32 of shape \(3,\)"),
        ({"cache_seqlens": [1, 2, 3]}, r"cache_seqlens: expected int32 of shape \(3,\), got list"),
        (
            {"cache_seqlens": THREE.to("meta")},
            "cache_seqlens: expected a tensor on cpu, as q is, got meta",
        ),
        ({"cache_batch_idx": THREE[:2]}, r"cache_batch_idx: expected int32 of shape \(3,\)"),
        ({"cache_leftpad": THREE.long()}, r"cache_leftpad: expected int32 of shape \(3,\)"),
        ({"cu_seqlens_q": THREE}, r"q: expected a tensor \(T, H, D\)"),
        ({"cu_seqlens_q": THREE, "q": Q[0]}, "k_cache: expected 2 batches, as q has, got 3"),
        ({"k": NEW}, "v: expected new keys with new values, got None"),
        ({"v": NEW}, "k: expected new keys with new values, got None"),
        (
            {"k": NEW[:2], "v": NEW},
            r"k: expected torch.float32 of shape \(3, 2, 2, 16\) on cpu, got",
        ),
        (
            {"k": NEW, "v": NEW.half()},
            r"v: expected torch.float32 of shape \(3, 2, 2, 16\) on cpu, got",
        ),
        ({"k": NEW, "v": NEW}, "k: expected 0 new keys at most, as k_cache has room for, got 2"),
        ({"k": NEW, "v": NEW, "cache_seqlens": 8}, "k: expected 1 new keys at most"),
        ({"window_size": (1, 2, 3)}, "window_size: expected a pair of integers"),
        ({"softcap": float("nan")}, "softcap: expected 0 or a bound"),
        (
            {"alibi_slopes": torch.rand(2)},
            r"alibi_slopes: expected floats of shape \(4,\) or \(3, 4\)",
        ),
        ({"learnable_sink": torch.rand(3, 4)}, r"learnable_sink: expected floats of shape \(4,\)"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_what_is_refused(how, words):
    given = dict(q=Q, k_cache=CACHE, v_cache=CACHE)
    with pytest.raises(attn.Error, match=f"(?s){words}"):
        flash_attn.flash_attn_with_kvcache(**{**given, **how})
