"""Numbers on NumPy arrays, against the definition in f64."""

import numpy as np
import pytest

import attn
import reference


@pytest.mark.parametrize(
    "m,n", [(0, 5), (5, 0), (1, 1), (1, 127), (7, 7), (127, 129), (129, 127), (200, 64)]
)
@pytest.mark.parametrize("causal", [False, True, "top_left"])
def test_lengths(make, m, n, causal):
    q, k, v = make(m=m, n=n)
    output, lse = attn.attention(q, k, v, causal=causal, return_lse=True)
    alignment = "bottom_right" if causal is True else causal or None
    wanted, wanted_lse = reference.attention(q, k, v, causal=alignment)
    reference.check(output, wanted)
    reference.check(lse, wanted_lse)
    assert output.dtype == np.float32 and lse.dtype == np.float32


@pytest.mark.parametrize(
    "b,h,hkv", [(0, 2, 2), (1, 0, 1), (1, 1, 1), (3, 6, 2), (2, 8, 1), (1, 5, 5)]
)
def test_heads(make, b, h, hkv):
    q, k, v = make(b=b, h=h, hkv=hkv)
    reference.check(attn.attention(q, k, v), reference.attention(q, k, v)[0])


@pytest.mark.parametrize("d,dv", [(1, 1), (3, 5), (64, 64), (40, 24), (192, 128)])
def test_head_dims(make, d, dv):
    q, k, v = make(d=d, dv=dv, m=17, n=33)
    reference.check(attn.attention(q, k, v), reference.attention(q, k, v)[0])


def test_f16(make):
    q, k, v = make(m=65, n=70, d=64, dtype="float16")
    output = attn.attention(q, k, v, causal=True)
    assert output.dtype == np.float16
    reference.check(output, reference.attention(q, k, v, causal="bottom_right")[0], "float16")


def test_bf16(make):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    q, k, v = make(m=65, n=70, d=64, dtype=ml_dtypes.bfloat16)
    output = attn.attention(q, k, v, causal=True)
    assert output.dtype == ml_dtypes.bfloat16
    reference.check(output, reference.attention(q, k, v, causal="bottom_right")[0], "bfloat16")


@pytest.mark.parametrize(
    "window", [(0, 0), (3, None), (None, 2), (-1, 4), (5, 5), (300, 300), (None, None)]
)
@pytest.mark.parametrize("m,n", [(7, 9), (130, 70)])
def test_window(make, window, m, n):
    q, k, v = make(m=m, n=n)
    output, lse = attn.attention(q, k, v, window=window, return_lse=True)
    wanted, wanted_lse = reference.attention(q, k, v, window=window)
    reference.check(output, wanted)
    reference.check(lse, wanted_lse)


def test_window_counts_from_the_bottom_right(make):
    q, k, v = make(m=3, n=8)
    wanted = reference.attention(q, k, v, causal="bottom_right", window=(2, None))[0]
    reference.check(attn.attention(q, k, v, causal=True, window=[2, None]), wanted)


@pytest.mark.parametrize("scale", [0, 1, 0.3, -2.0, np.float32(0.25)])
def test_scale(make, scale):
    q, k, v = make()
    wanted = reference.attention(q, k, v, scale=float(scale))[0]
    reference.check(attn.attention(q, k, v, scale=scale), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_sink(make, rng, dtype):
    q, k, v = make(m=6, n=3)
    sink = rng.standard_normal(8)[::2].astype(dtype)
    output, lse = attn.attention(q, k, v, causal=True, sink=sink, return_lse=True)
    wanted, wanted_lse = reference.attention(q, k, v, causal="bottom_right", sink=sink)
    reference.check(output, wanted)
    reference.check(lse, wanted_lse)


def test_row_that_keeps_nothing(make):
    q, k, v = make(m=5, n=2)
    output, lse = attn.attention(q, k, v, causal=True, return_lse=True)
    assert (output[:, :, :3] == 0).all() and (lse[:, :, :3] == -np.inf).all()


def test_strides(make):
    q, k, v = make(b=4, h=4, hkv=4, m=20, n=30, d=24)
    q, k, v = q[::2, ::-1, 3::2, 4:20], k[1::2, :, ::-3, 4:20], v[::2, :, ::-3, :16]
    wanted = reference.attention(q, k, v)[0]
    reference.check(attn.attention(q, k, v), wanted)


def test_broadcast_keys(make):
    q, k, v = make(b=3, hkv=1)
    k, v = np.broadcast_to(k[:1], k.shape), np.broadcast_to(v[:1], v.shape)
    reference.check(attn.attention(q, k, v), reference.attention(q, k, v)[0])


def test_rows_first(make):
    q, k, v = make(m=11, n=13)
    rows = [np.ascontiguousarray(x.swapaxes(1, 2)) for x in (q, k, v)]
    output, lse = attn.attention(*rows, causal=True, layout="bshd", return_lse=True)
    wanted, wanted_lse = reference.attention(q, k, v, causal="bottom_right")
    assert output.shape == (2, 11, 4, 16) and output.flags.c_contiguous
    reference.check(output.swapaxes(1, 2), wanted)
    reference.check(lse, wanted_lse)


def test_packed_projection(make, rng):
    """Views of one buffer, as a fused projection makes them, are used without a copy."""
    packed = rng.standard_normal((2, 10, 3, 4, 16)).astype("float32")
    q, k, v = packed[:, :, 0], packed[:, :, 1], packed[:, :, 2]
    output = attn.attention(q, k, v, layout="bshd")
    wanted = reference.attention(*(x.swapaxes(1, 2) for x in (q, k, v)))[0]
    reference.check(output.swapaxes(1, 2), wanted)


def test_inputs_are_not_written(make):
    q, k, v = make()
    copies = [x.copy() for x in (q, k, v)]
    for x in (q, k, v):
        x.flags.writeable = False
    attn.attention(q, k, v, causal=True)
    assert all(np.array_equal(a, b) for a, b in zip((q, k, v), copies))


@pytest.mark.parametrize(
    "options",
    [
        {"threads": 1},
        {"threads": 3},
        {"block_m": 16, "block_n": 32},
        {"splits": 3},
        {"cpu": "x86-64"},
    ],
)
def test_options(make, options):
    q, k, v = make(m=70, n=150)
    wanted = reference.attention(q, k, v, causal="bottom_right")[0]
    reference.check(attn.attention(q, k, v, causal=True, options=options), wanted)
