"""attn.mask_ranges: bounds of tiles, compared with masks of all elements."""

import numpy as np
import pytest

import attn
from attn._scan import Captured


def count(keep, ranges, tile, b=0, h=0):
    """Checks one (b, h) against the mask of all elements; how many of its bounds are exact."""
    m, n = keep.shape
    exact = 0
    for t, first in enumerate(range(0, m, tile[0])):
        begin, full_begin, full_end, end = (int(x[b, h, t]) for x in ranges)
        rows = keep[first : first + tile[0]]
        some, all_ = rows.any(0), rows.all(0)
        assert not some[:begin].any() and not some[end:].any()
        assert all_[full_begin : min(full_end, n)].all()
        assert begin <= full_begin <= full_end <= max(end, full_begin) and end - n < tile[1]
        kept = np.flatnonzero(some)
        if len(kept) == 0:
            exact += begin >= end
        else:
            exact += begin == kept[0] // tile[1] * tile[1] and end // tile[1] == kept[-1] // tile[1] + 1
    return exact


def positions(m, n):
    return np.arange(m)[:, None], np.arange(n)[None, :]


@pytest.mark.parametrize("shape", [(1, 1), (7, 300), (300, 7), (517, 517)])
@pytest.mark.parametrize("tile", [(128, 128), (64, 80), (1, 16)])
def test_closed_forms(shape, tile):
    m, n = shape
    i, j = positions(m, n)
    tiles = -(-m // tile[0])
    for how, keep in (
        ({}, j >= 0 * i),
        ({"causal": True}, j <= i + n - m),
        ({"causal": "top_left"}, j <= i),
        ({"window": (50, 20)}, (j >= i + n - m - 50) & (j <= i + n - m + 20)),
        ({"mask": lambda b, h, q, kv: (kv <= q) & (kv > q - 33)}, (j <= i) & (j > i - 33)),
        ({"mask": lambda b, h, q, kv: kv < 40}, (j < 40) & (i >= 0)),
    ):
        ranges = attn.mask_ranges(m, n, tile=tile, **how)
        assert ranges.begin.shape == (1, 1, tiles) and ranges.begin.dtype == np.int64
        assert count(np.broadcast_to(keep, (m, n)), ranges, tile) == tiles, how


def test_arrays_are_read():
    """Lengths of each batch, documents, and tables of positions; a strided array too."""
    rng = np.random.default_rng(0)
    m = n = 400
    i, j = positions(m, n)
    lengths = np.array([0, 7, 400, 250], "int32")
    ranges = attn.mask_ranges(m, mask=lambda b, h, q, kv: kv < lengths[b], batches=4, heads=2)
    for b, length in enumerate(lengths):
        for h in range(2):
            assert count(np.broadcast_to(j < length, (m, n)), ranges, (128, 128), b, h) == 4
    ids = np.sort(rng.integers(0, 9, (2, n, 2)), axis=1)[..., 1]
    sorted_ids = attn.assume_sorted(ids)
    ranges = attn.mask_ranges(
        m, mask=lambda b, h, q, kv: (sorted_ids[b, q] == sorted_ids[b, kv]) & (kv <= q), batches=2
    )
    for b in range(2):
        keep = (ids[b][:, None] == ids[b][None, :]) & (j <= i)
        assert count(keep, ranges, (128, 128), b) == 4
    # Rows and keys at any sorted positions of a longer causal sequence.
    rows, keys = (np.sort(rng.permutation(4000)[:400]).astype("int32") for _ in range(2))
    r, k = attn.assume_sorted(rows), attn.assume_sorted(keys)
    ranges = attn.mask_ranges(m, mask=lambda b, h, q, kv: k[kv] <= r[q])
    assert count(keys[None, :] <= rows[:, None], ranges, (128, 128)) == 4


def test_masks_without_bounds_keep_everything():
    table = np.random.default_rng(1).random((300, 300)) < 0.5
    ranges = attn.mask_ranges(300, mask=lambda b, h, q, kv: table[q, kv])
    assert (ranges.begin == 0).all() and (ranges.end >= 300).all()
    assert (ranges.full_begin == ranges.full_end).all()


def test_long_sequences_take_no_time():
    ranges = attn.mask_ranges(1 << 20, causal=True)
    assert ranges.end.shape == (1, 1, 8192) and ranges.end[0, 0, -1] == 1 << 20


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    lengths = torch.tensor([3, 200])
    ranges = attn.mask_ranges(200, mask=lambda b, h, q, kv: kv < lengths[b], batches=2)
    assert ranges.end[:, 0, 0].tolist() == [128, 256]


@pytest.mark.parametrize(
    "how, words",
    [
        ({"query_length": 0}, "query_length: expected a number from 1 to 2\\^28, got 0"),
        ({"heads": True}, "heads: expected a number"),
        ({"tile": (128, 1 << 21)}, "tile keys: expected 1 to 2\\^20"),
        ({"mask": 3}, "mask: expected a function"),
        ({"causal": "left"}, "causal"),
    ],
    ids=str,
)
def test_errors(how, words):
    with pytest.raises(attn.Error, match=words):
        attn.mask_ranges(**{"query_length": 100, **how})


def test_documents_of_parts():
    """Ids that are read where tables of positions tell: both are sorted, so that ends are searched."""
    rng = np.random.default_rng(3)
    ids = np.sort(rng.integers(0, 40, 4000)).astype("int32")
    rows, keys = (np.sort(rng.permutation(4000)[:size]).astype("int32") for size in (500, 900))
    documents = attn.assume_sorted(ids)
    q, kv = (Captured(x, is_sorted=True, is_natural=True) for x in (rows, keys))
    mask = lambda b, h, i, j: (documents[q[i]] == documents[kv[j]]) & (kv[j] <= q[i])  # noqa: E731
    ranges = attn.mask_ranges(500, 900, mask=mask)
    i, j = rows[:, None], keys[None, :]
    keep = (ids[i] == ids[j]) & (j <= i)
    assert count(keep, ranges, (128, 128)) >= 3


def test_two_captured_numbers():
    """Sums of them are computed in more than 64 bits."""
    first, second = np.array([40], "int64"), np.array([7], "int64")
    ranges = attn.mask_ranges(300, 300, mask=lambda b, h, q, kv: kv + first[0] <= q + second[0])
    i, j = np.arange(300)[:, None], np.arange(300)[None, :]
    assert count(j + 40 <= i + 7, ranges, (128, 128)) >= 1


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("stride", [4, 16])
def test_keys_of_one_rank_in_several(dtype, stride):
    """Key n stands at stride * n + first in the whole, where `first` is captured: no tile is kept in vain."""
    m, n = 2048, 2048 // stride
    first = np.array([stride - 1], dtype)
    masks = {
        "linear": lambda b, h, i, j: stride * j + first[0] <= i,
        "quotient": lambda b, h, i, j: j <= (i - first[0]) // stride,
    }
    i, j = positions(m, n)
    keep = stride * j + stride - 1 <= i
    for name, mask in masks.items():
        ranges = attn.mask_ranges(m, n, mask=mask, tile=(128, 16))
        assert count(keep, ranges, (128, 16)) == 16, name
        # A causal mask keeps half of the tiles, and so does this one.
        visited = int((ranges.end - ranges.begin).sum()) // 16
        assert visited == sum(-(-(128 * (t + 1) // stride) // 16) for t in range(16)), name
    for device in ("cpu", "cuda"):
        for gradient in (False, True):
            how = dict(dtype="bfloat16", head_dim=128, device=device, gradient=gradient)
            text = str(attn.explain(mask=masks["linear"], **how))
            assert "mask-tiles" in text and "cannot be decided" not in text, (device, gradient)


def test_attention_to_keys_of_one_rank(rng):
    first = np.array([3], "int64")
    q, k = (rng.standard_normal((1, 2, length, 16), "float32") for length in (300, 80))
    found = attn.attention(q, k, k, mask=lambda b, h, i, j: 4 * j + first[0] <= i)
    s = np.where(4 * np.arange(80) + 3 <= np.arange(300)[:, None], q @ k.swapaxes(2, 3) / 4, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.nan_to_num(np.exp(s - s.max(3, keepdims=True)))
    wanted = weights @ k / np.maximum(weights.sum(3, keepdims=True), 1e-30)
    assert np.abs(found - wanted).max() < 1e-5
