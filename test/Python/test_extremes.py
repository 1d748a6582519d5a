"""Masks at the ends of floating point: NaN where keys are dropped, the lowest number as a score, infinite sinks."""

import numpy as np
import pytest

import attn
import reference
from checks import check_mask

LOWEST = float(np.finfo(np.float32).min)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("garbage", [np.nan, np.inf, -np.inf])
def test_padded_keys_hold_anything(make, dtype, garbage):
    q, k, v = make(b=2, h=4, hkv=2, m=40, n=100, dtype=dtype)
    lengths = np.array([70, 33], dtype=np.int32)

    def run(filler):
        keys, values = k.copy(), v.copy()
        for batch, length in enumerate(lengths):
            keys[batch, :, length:] = filler
            values[batch, :, length:] = filler
        return attn.attention(
            q, keys, values, mask=lambda b, h, m, n: n < lengths[b], return_lse=True
        )

    for got, wanted in zip(run(garbage), run(0)):
        assert np.isfinite(got).all()
        np.testing.assert_array_equal(got, wanted)


def test_keys_between_kept_ones_hold_anything(make):
    q, k, v = make(m=40, n=100)
    ids = (np.arange(100) // 10 % 3).astype(np.int32)
    wanted = attn.attention(q, k, v, mask=lambda b, h, m, n: ids[n] != 1)
    k[:, :, ids == 1] = np.nan
    v[:, :, ids == 1] = np.nan
    got = attn.attention(q, k, v, mask=lambda b, h, m, n: ids[n] != 1)
    np.testing.assert_array_equal(got, wanted)


def test_kept_nan_shows(make):
    q, k, v = make(m=4, n=100)
    v[:, :, 50] = np.nan
    assert np.isnan(attn.attention(q, k, v, mask=lambda b, h, m, n: n < 70)).all()


def test_rows_of_the_lowest_number_are_means(make):
    q, k, v = make(b=1, h=2, hkv=2, m=8, n=8)
    bias = np.full((1, 2, 8, 8), LOWEST, dtype=np.float32)
    bias[:, :, 4:] = 0
    bias[:, :, 6:, 3:] = LOWEST
    got = attn.attention(q, k, v, score=lambda s, b, h, m, n: s + bias[b, h, m, n])
    mean = np.broadcast_to(v.mean(axis=2, keepdims=True), v.shape)
    reference.check(got[:, :, :4], mean[:, :, :4])
    reference.check(got[:, :, 4:6], attn.attention(q[:, :, 4:6], k, v))
    reference.check(got[:, :, 6:], attn.attention(q[:, :, 6:], k[:, :, :3], v[:, :, :3]))


def test_large_scores(make):
    q, k, v = make(h=2, m=9, n=9)
    got = attn.attention(q, k, v, score=lambda s, b, h, m, n: s * 0 + 3e38)
    mean = np.broadcast_to(v.mean(axis=2, keepdims=True), v.shape)
    reference.check(got, mean)


@pytest.mark.parametrize("size", [1e7, 1e9, 1e10, 1e12, 1e20, 3e38])
@pytest.mark.parametrize("sign", [-1, 1])
def test_gradients_of_large_scores(make, rng, size, sign):
    """Rows of padding alone, whose scores f32 cannot tell apart: no weight is above 1, and rows without
    a gradient of the output add nothing to others."""
    q, k, v = make(b=1, h=2, hkv=2, m=9, n=11)
    bias = np.zeros((9, 11), dtype=np.float32)
    bias[:3] = sign * size
    d_output = rng.standard_normal(v[:, :, :1].repeat(9, 2).shape).astype(np.float32)

    def run(d_output, bias=bias, rows=slice(None)):
        score = lambda s, b, h, m, n: s + bias[m, n]
        return attn.gradient(q[:, :, rows], k, v, d_output[:, :, rows], score=score)

    bounds = np.abs(d_output).sum(2, keepdims=True)
    assert (np.abs(run(d_output)[2]) <= bounds * 1.001).all()
    d_output[:, :, :3] = 0
    got = run(d_output)
    wanted = run(d_output, bias[3:], slice(3, None))
    assert (got[0][:, :, :3] == 0).all()
    for x, y in zip((got[0][:, :, 3:], *got[1:]), wanted):
        reference.check(x, y)


@pytest.mark.parametrize("sink", [2.5e38, 3.4e38, np.inf])
def test_large_sinks(make, sink):
    q, k, v = make(h=2, hkv=2, m=5, n=9)
    sinks = np.array([sink, 0], dtype=np.float32)
    output, lse = attn.attention(q, k, v, sink=sinks, return_lse=True)
    assert (output[:, 0] == 0).all()
    np.testing.assert_allclose(lse[:, 0], np.float32(sink), rtol=1e-6)
    wanted, wanted_lse = attn.attention(
        q, k, v, sink=np.zeros(2, dtype=np.float32), return_lse=True
    )
    np.testing.assert_array_equal(output[:, 1], wanted[:, 1])
    np.testing.assert_array_equal(lse[:, 1], wanted_lse[:, 1])


NUMBERS = [2**63 - 1, 2**62, 2**40, 2**31, 2**31 - 1, 2**30, 4, -4, -(2**31), -(2**62), -(2**63)]


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_beyond_all_positions(make, number):
    """No limit, as who has no word for it writes it; and a limit that nothing meets."""
    q, k, v = make(b=2, h=2, m=70, n=200)
    limits = np.array([number, 3], dtype=np.int64)
    limit = np.array(number, dtype=np.int64)
    for mask in (
        lambda b, h, i, j: j - i <= limits[b],
        lambda b, h, i, j: (j - i >= limits[b]) | (j < 2),
        lambda b, h, i, j: j < limits[b],
        lambda b, h, i, j: i - j < limit,
        lambda b, h, i, j: j // 8 == limits[b] // 8 + i // 8,
    ):
        check_mask((q, k, v), mask)


def test_numbers_of_32_bits_beyond_all_positions(make):
    q, k, v = make(b=2, h=2, m=70, n=200)
    limits = np.array([2**31 - 1, 3], dtype=np.int32)
    wide = limits.astype(np.int64)
    got = attn.attention(q, k, v, mask=lambda b, h, i, j: j <= i + limits[b])
    wanted = reference.attention(q, k, v, mask=lambda b, h, i, j: j <= i + wide[b])[0]
    reference.check(got, wanted)


def test_differences_of_large_numbers(make, rng):
    """As of times in nanoseconds."""
    times = 10**18 + np.cumsum(rng.integers(0, 9, 100))
    check_mask(make(m=100, n=100), lambda b, h, i, j: times[i] - times[j] <= 40)
    check_mask(make(m=100, n=100), lambda b, h, i, j: abs(times[i] - times[j]) < 60)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_documents_with_the_largest_number(make, dtype):
    """The last document is padding, with a number that no other has."""
    ids = np.sort(np.arange(100) % 5).astype(dtype)
    ids[80:] = np.iinfo(dtype).max
    ordered = attn.assume_sorted(ids)
    q, k, v = make(m=100, n=100)
    got = attn.attention(q, k, v, mask=lambda b, h, i, j: ordered[i] == ordered[j])
    wanted = reference.attention(q, k, v, mask=lambda b, h, i, j: ids[i] == ids[j])[0]
    reference.check(got, wanted)


def test_sums_of_a_million_terms():
    """Added one by one, tenths are off by 1 % at 2^20: over keys, and over rows for a gradient."""
    n = 1 << 20
    one = np.zeros((1, 1, 1, 8), np.float32)
    many, tenths = (np.broadcast_to(np.full_like(one, x), (1, 1, n, 8)) for x in (0, 0.1))
    np.testing.assert_allclose(attn.attention(one, many, tenths), 0.1, rtol=1e-3)
    d_value = attn.gradient(many, one, one, tenths)[2]
    np.testing.assert_allclose(d_value, 0.1 * n, rtol=1e-3)
