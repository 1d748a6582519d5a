"""attn.serving.append, find_slots and rotate, compared with loops over rows. What nobody writes keeps its bits."""

import numpy as np
import pytest

import attn
from attn import serving

PAGES = [1, 2, 3, 8, 16, 17, 64]
HOSTILE = [-1, -7, -(2**31), 2**31 - 1, 2147480000]


def turn(x, position, cos, sin, interleaved):
    """One row of one head in f32, pair by pair."""
    x, half = np.array(x, np.float32), cos.shape[1]
    found = x.copy()
    for i in range(half):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
        c, s = np.float32(cos[position, i]), np.float32(sin[position, i])
        found[a], found[b] = x[a] * c - x[b] * s, x[b] * c + x[a] * s
    return found


def make_tables(rng, positions=90, half=4):
    angles = rng.random((positions, half)) * 6
    return np.cos(angles).astype("float32"), np.sin(angles).astype("float32")


def make_call(rng, page, tokens=9, pages=7, heads=2, d=12, dv=5):
    k = rng.standard_normal((tokens, heads, d)).astype("float32")
    v = rng.standard_normal((tokens, heads, dv)).astype("float32")
    caches = [rng.standard_normal((pages, page, heads, x)).astype("float32") for x in (d, dv)]
    slots = rng.permutation(pages * page + 9)[:tokens] - 4
    slots[0] = HOSTILE[rng.integers(5)]
    if tokens > pages * page:
        slots = rng.permutation(np.concatenate([slots, np.full(tokens, -1)]))[:tokens]
    return k, v, *caches, slots.astype("int64")


def expect(call, positions=None, tables=None, interleaved=False):
    k, v, k_cache, v_cache, slots = (x.copy() for x in call)
    page = k_cache.shape[1]
    for t, slot in enumerate(slots):
        if not 0 <= slot < k_cache.shape[0] * page:
            continue
        for h in range(k.shape[1]):
            row = k[t, h]
            if positions is not None:
                row = turn(row, positions[t], *tables, interleaved)
            k_cache[slot // page, slot % page, h] = row
            v_cache[slot // page, slot % page, h] = v[t, h]
    return k_cache, v_cache


def as_tensors(arrays, is_torch):
    if not is_torch:
        return [x.copy() for x in arrays]
    torch = pytest.importorskip("torch")
    return [torch.from_numpy(x.copy()) for x in arrays]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("is_torch", [False, True])
def test_slots(rng, page, is_torch):
    call = make_call(rng, page)
    wanted = expect(call)
    given = as_tensors(call, is_torch)
    assert serving.append(*given) is None
    np.testing.assert_array_equal(np.asarray(given[2]), wanted[0])
    np.testing.assert_array_equal(np.asarray(given[3]), wanted[1])


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("half", [6, 4, 1, 0])
@pytest.mark.parametrize("is_torch", [False, True])
def test_rotary(rng, interleaved, half, is_torch):
    """Both styles, of all columns and of some: the bits of a loop."""
    call = make_call(rng, 8)
    tables = make_tables(rng, half=half)
    positions = rng.integers(0, 90, len(call[0])).astype("int32")
    q = rng.standard_normal((len(call[0]), 6, 12)).astype("float32")
    wanted = expect(call, positions, tables, interleaved)
    *given, at, rows, cos, sin = as_tensors([*call, positions, q, *tables], is_torch)
    rotary = serving.Rotary(cos, sin, interleaved)
    found = serving.append(*given, rotary=rotary, positions=at, q=rows)
    np.testing.assert_array_equal(np.asarray(given[2]), wanted[0])
    np.testing.assert_array_equal(np.asarray(given[3]), wanted[1])
    for t, position in enumerate(positions):
        for h in range(6):
            row = turn(q[t, h], position, *tables, interleaved)
            np.testing.assert_array_equal(np.asarray(found[t, h]), row)
    np.testing.assert_array_equal(np.asarray(rows), q)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("interleaved", [False, True])
def test_types(rng, dtype, interleaved):
    """Products in f32, rounded once."""
    torch = pytest.importorskip("torch")
    type_ = getattr(torch, dtype)
    x = torch.randn(5, 2, 8).to(type_)
    cos, sin = (torch.from_numpy(x).to(type_) for x in make_tables(rng))
    positions = torch.tensor([0, 3, 89, 1, 7])
    found = serving.rotate(x, positions, serving.Rotary(cos, sin, interleaved))
    tables = cos.float().numpy(), sin.float().numpy()
    for t in range(5):
        for h in range(2):
            row = turn(x[t, h].float().numpy(), int(positions[t]), *tables, interleaved)
            assert torch.equal(found[t, h], torch.from_numpy(row).to(type_))


def test_positions_outside_of_the_table(rng):
    x = rng.standard_normal((3, 2, 8)).astype("float32")
    rotary = serving.Rotary(*make_tables(rng, positions=5))
    wanted = serving.rotate(x, np.int64([0, 4, 4]), rotary)
    found = serving.rotate(x, np.int64([-(2**40), 2**40, 5]), rotary)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("slots", [[-1] * 9, [300] * 9, [5] * 9], ids=["none", "beyond", "equal"])
@pytest.mark.parametrize("is_torch", [False, True])
def test_no_slot_and_equal_slots(rng, slots, is_torch):
    """Of rows with one slot, one is written whole, and nothing else."""
    call = *make_call(rng, 8)[:4], np.int32(slots)
    given = as_tensors(call, is_torch)
    serving.append(*given)
    for new, before, after in ((0, 2, 2), (1, 3, 3)):
        found, was = np.asarray(given[after]), call[before].copy()
        if slots[0] == 5:
            assert any((found[0, 5] == row).all() for row in call[new])
            found, was = found.copy(), was
            found[0, 5] = was[0, 5]
        np.testing.assert_array_equal(found, was)


def test_memory_orders(rng):
    """Heads first, a layer of a larger cache, and keys beside values: nothing outside is written."""
    torch = pytest.importorskip("torch")
    call = make_call(rng, 8, dv=12)
    k_wanted, v_wanted = (torch.from_numpy(x) for x in expect(call))
    k, v, k_cache, v_cache, slots = as_tensors(call, True)
    heads_first = [x.transpose(1, 2).contiguous() for x in (k_cache, v_cache)]
    serving.append(k, v, *heads_first, slots, kv_layout="HND")
    assert torch.equal(heads_first[0].transpose(1, 2), k_wanted)
    assert torch.equal(heads_first[1].transpose(1, 2), v_wanted)
    content = torch.cat([k_cache, v_cache], -1)
    serving.append(k, v, content[..., :12], content[..., 12:], slots)
    assert torch.equal(content, torch.cat([k_wanted, v_wanted], -1))
    layers = torch.stack([torch.full_like(k_cache, 7.0), k_cache, v_cache], 1)
    serving.append(k, v, layers[:, 1], layers[:, 2], slots.int())
    assert torch.equal(layers[:, 1], k_wanted) and (layers[:, 0] == 7).all()


def test_a_graph_of_torch_compile(rng):
    """No host read: slots, positions and lengths are values of one graph."""
    torch = pytest.importorskip("torch")

    def step(k, v, k_cache, v_cache, lengths, offsets, table, cos, sin):
        how = dict(page_size=k_cache.shape[1], page_table=table)
        slots, positions = serving.find_slots(lengths, offsets, k.shape[0], **how)
        rotary = serving.Rotary(cos, sin)
        return serving.append(
            k, v, k_cache, v_cache, slots, rotary=rotary, positions=positions, q=k
        )

    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    table = torch.from_numpy(rng.permutation(7)[:6].reshape(2, 3).astype("int32"))
    for lengths in ([0, 20], [5, 1]):
        k, v, *caches, _ = as_tensors(make_call(rng, 8), True)
        others = [x.clone() for x in caches]
        more = torch.tensor(lengths), torch.tensor([0, 4, 8]), table
        more = *more, *as_tensors(make_tables(rng), True)
        wanted = step(k, v, *others, *more)
        assert torch.equal(compiled(k, v, *caches, *more), wanted)
        assert all(map(torch.equal, caches, others))


# ===- Slots ----------------------------------------------------------------------------------===#


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("is_torch", [False, True])
@pytest.mark.parametrize("is_paged", [False, True])
def test_find_slots(rng, page, is_torch, is_paged):
    lengths = np.int32([0, 5, 3, page, 4 * page])
    counts, tail = [3, 0, 4, 2, 2], 2
    offsets = np.cumsum([0, *counts]).astype("int32")
    table = rng.integers(-1, 9, (5, 4)).astype("int32")
    total = int(offsets[-1]) + tail
    arrays = as_tensors([lengths, offsets, table], is_torch)
    more = {"page_table": arrays[2]} if is_paged else {}
    slots, positions = serving.find_slots(*arrays[:2], total, page_size=page, **more)
    assert tuple(slots.shape) == tuple(positions.shape) == (total,)
    for t in range(total):
        b = next((i for i in range(5) if offsets[i] <= t < offsets[i + 1]), None)
        wanted = -1
        if b is not None:
            position = int(lengths[b]) + t - int(offsets[b])
            columns = 4 if is_paged else 1
            if position < columns * page:
                assert int(positions[t]) == position
                at = int(table[b, position // page]) if is_paged else b
                wanted = at * page + position % page if at >= 0 else -1
        assert int(slots[t]) == wanted


@pytest.mark.parametrize("is_torch", [False, True])
def test_broken_lengths_offsets_and_tables(rng, is_torch):
    """Whatever they hold, a slot is that of a page of the table, or -1."""
    for _ in range(20):
        pick = lambda *shape: rng.choice([*HOSTILE, 0, 1, 5], shape).astype("int32")  # noqa: E731
        arrays = as_tensors([pick(3), pick(4), pick(3, 2)], is_torch)
        how = dict(page_size=8, page_table=arrays[2])
        slots, positions = serving.find_slots(*arrays[:2], 11, **how)
        allowed = {int(x) for x in np.asarray(arrays[2]).flat} | {-1}
        for slot in np.asarray(slots):
            assert slot == -1 or (slot >= 0 and int(slot) // 8 in allowed)
        assert ((np.asarray(positions) >= 0) & (np.asarray(positions) < 16)).all()


def test_no_sequences_and_no_rows():
    slots, positions = serving.find_slots(np.int32([]), np.int32([0]), 3, page_size=4)
    assert slots.tolist() == [-1] * 3 and positions.tolist() == [0] * 3
    cache = np.ones((2, 4, 2, 8), "f4")
    none = np.zeros((0, 2, 8), "f4")
    serving.append(none, none, cache, cache.copy(), np.int32([]))
    row = np.zeros((1, 2, 8), "f4")
    serving.append(row, row, cache[:0], cache[:0], np.int32([0]))
    assert (cache == 1).all()


ROW, CACHE = np.zeros((3, 2, 8), "f4"), np.zeros((5, 4, 2, 8), "f4")
SLOTS, TABLES = np.zeros(3, "i4"), (np.zeros((9, 4), "f4"), np.zeros((9, 4), "f4"))


@pytest.mark.parametrize(
    "how, words",
    [
        ({"k": ROW[0]}, r"k: expected \(T, Hkv, D\)"),
        ({"k": [1]}, "k: expected a NumPy array or PyTorch tensor"),
        ({"k": ROW[:2]}, "v: expected as many rows as k, 2, got 3"),
        ({"k": ROW.astype("f2")}, r"k: expected float32 of shape \(T, 2, 8\), as k_cache has"),
        ({"v": ROW[:, :1]}, r"v: expected float32 of shape \(T, 2, 8\), as v_cache has"),
        ({"k_cache": CACHE[0]}, r"k_cache: expected \(Np, P, Hkv, D\)"),
        ({"v_cache": CACHE[:4]}, "v_cache: expected as many pages and rows as k_cache"),
        ({"slots": SLOTS[:2]}, "slots: expected one for each of 3 rows, got 2"),
        ({"slots": SLOTS.astype("f4")}, "slots: expected int32 or int64"),
        ({"kv_layout": "HDN"}, 'kv_layout: expected "NHD" or "HND"'),
        ({"positions": SLOTS}, "positions: expected None without rotary"),
        ({"q": ROW}, "q: expected None without rotary"),
        ({"rotary": TABLES}, "rotary: expected attn.serving.Rotary"),
        ({"rotary": serving.Rotary(*TABLES)}, "positions: expected one for each row"),
        (
            {"rotary": serving.Rotary(TABLES[0], TABLES[1][:8]), "positions": SLOTS},
            "rotary.sin: expected the shape of rotary.cos",
        ),
        (
            {"rotary": serving.Rotary(*[np.zeros((9, 5), "f4")] * 2), "positions": SLOTS},
            "rotary.cos: expected a position or more, of 4 columns at most",
        ),
        (
            {"rotary": serving.Rotary(*TABLES), "positions": SLOTS, "q": ROW[:2]},
            "q: expected rows and columns of k",
        ),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_errors_name_the_argument(how, words):
    given = dict(k=ROW, v=ROW, k_cache=CACHE, v_cache=CACHE, slots=SLOTS)
    positional = ["k", "v", "k_cache", "v_cache", "slots"]
    given.update(how)
    with pytest.raises(attn.Error, match=f"^{words}"):
        serving.append(*[given.pop(x) for x in positional], **given)


@pytest.mark.parametrize(
    "how, words",
    [
        ({"cu_seqlens": SLOTS[:2]}, "cu_seqlens: expected 4 offsets, got 2"),
        ({"total": -1}, "total: expected an integer of 0 or more"),
        ({"page_size": 0}, "page_size: expected an integer of 1 or more"),
        ({"page_table": SLOTS}, r"page_table: expected \(B, C\)"),
        ({"page_table": np.zeros((2, 4), "i4")}, "page_table: expected 3 rows"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_errors_of_slots(how, words):
    given = dict(cache_seqlens=SLOTS, cu_seqlens=np.zeros(4, "i4"), total=3, page_size=4)
    with pytest.raises(attn.Error, match=f"^{words}"):
        serving.find_slots(**{**given, **how})


@pytest.mark.parametrize("interleaved", [False, True])
def test_gradients_are_rotated_back(interleaved):
    torch = pytest.importorskip("torch")
    cos, sin = (torch.from_numpy(x) for x in make_tables(np.random.default_rng(3)))
    rotary, back = (serving.Rotary(cos, x, interleaved) for x in (sin, -sin))
    x, d = torch.randn(9, 2, 12, requires_grad=True), torch.randn(9, 2, 12)
    positions = torch.randint(0, 90, (9,))
    (found,) = torch.autograd.grad(serving.rotate(x, positions, rotary), x, d)
    torch.testing.assert_close(found, serving.rotate(d, positions, back))


def test_caches_record_nothing():
    """A cache is changed in place; queries that are rotated beside it have gradients."""
    torch = pytest.importorskip("torch")
    k, v, k_cache, v_cache, slots = as_tensors(make_call(np.random.default_rng(4), 16), True)
    rotary = serving.Rotary(*(torch.from_numpy(x) for x in make_tables(np.random.default_rng(5))))
    positions, wanted = torch.arange(9), [k_cache.clone(), v_cache.clone()]
    serving.append(k, v, *wanted, slots, rotary=rotary, positions=positions)
    q = torch.randn(9, 4, 12, requires_grad=True)
    rows = [x.requires_grad_() for x in (k, v)]
    turned = serving.append(*rows, k_cache, v_cache, slots, rotary=rotary, positions=positions, q=q)
    assert not k_cache.requires_grad and not v_cache.requires_grad
    for x, y in zip((k_cache, v_cache), wanted):
        torch.testing.assert_close(x, y)
    alone = serving.rotate(q, positions, rotary)
    found, expected = (torch.autograd.grad(x.square().sum(), q)[0] for x in (turned, alone))
    assert found.any() and torch.equal(found, expected)
