"""Score and mask functions: each runs compiled and, on Python numbers, as its own reference."""

import functools
import math
import operator
import types

import numpy as np
import pytest

import attn
import random_functions
import reference
from checks import check_mask, check_score


@pytest.mark.parametrize("score", [
    lambda s, b, h, q, kv: s,
    lambda s, b, h, q, kv: -s,
    lambda s, b, h, q, kv: +s * 2 - 1 + s / 3,
    lambda s, b, h, q, kv: 1 - s,
    lambda s, b, h, q, kv: 2 / (3 + abs(s)),
    lambda s, b, h, q, kv: s + 0.1 * (q - kv),
    lambda s, b, h, q, kv: s + (q * kv) / 100,
    lambda s, b, h, q, kv: s + (q - 5) // 3 + (kv - 4) % 3,
    lambda s, b, h, q, kv: s + (q - kv) // -3 + (q - kv) % -4,
    lambda s, b, h, q, kv: s + (7 // (q + 1)) * 0.5 + 7 % (kv + 1),
    lambda s, b, h, q, kv: s // 0.5 + s % 0.75,
    lambda s, b, h, q, kv: s**2 - s**3 + (q - kv) ** 2 * 0.01,
    lambda s, b, h, q, kv: (abs(s) + 0.5) ** 1.5 + 2**s + 2.5 ** (q - kv) * 0.01,
    lambda s, b, h, q, kv: s + (q << 1) * 0.1 + (kv >> 1) * 0.1 + ((q ^ kv) & 3) + (q | 4) * 0.1,
    lambda s, b, h, q, kv: s + (q < kv) + 2 * (q == kv) - (b != h),
    lambda s, b, h, q, kv: 0.5,
    lambda s, b, h, q, kv: q,
    lambda s, b, h, q, kv: s + (q > 3) * (kv < 5),
    lambda s, b, h, q, kv: s + ((q > 3) & (kv < 5)) * 1.5 + ((q > 3) ^ (kv < 5)),
    lambda s, b, h, q, kv: s + ~q * 0.01,
    lambda s, b, h, q, kv: s * 1e-3 + 1e30 * 1e-31 - 3.0000001,
    lambda s, b, h, q, kv: max(s, 0.1) + min(s, q, kv) + max(q, kv) + min(2, 3),
])  # fmt: skip
def test_operators(make, score):
    check_score(make(), score)


@pytest.mark.parametrize(
    "name", ["tanh", "exp", "exp2", "sin", "cos", "erf", "floor", "ceil", "abs", "sigmoid"]
)
def test_functions(make, name):
    function = getattr(attn, name)
    check_score(make(), lambda s, b, h, q, kv: function(s * 1.5) + function(0.25))


@pytest.mark.parametrize("name", ["log", "log2", "sqrt", "rsqrt"])
def test_functions_of_positive_numbers(make, name):
    function = getattr(attn, name)
    check_score(make(), lambda s, b, h, q, kv: function(abs(s) + 0.1) + function(q + 1))


def test_functions_of_two(make):
    check_score(
        make(), lambda s, b, h, q, kv: attn.maximum(s, 0) + attn.minimum(q, 3) * attn.minimum(s, kv)
    )
    check_score(
        make(), lambda s, b, h, q, kv: attn.where(q > kv, s, 0.25) + attn.where(s > 0, q, kv)
    )
    check_score(make(), lambda s, b, h, q, kv: attn.clip(s, -0.5, 0.5) + attn.clip(q - kv, -2, 2))


def test_functions_of_numpy(make):
    bound = np.float32(0.75)
    check_score(
        make(), lambda s, b, h, q, kv: np.tanh(s) * bound + np.maximum(s, q) + np.abs(q - kv)
    )
    q, k, v = make()
    got = attn.attention(q, k, v, score=lambda s, b, h, q, kv: np.where(q >= kv, s, -np.inf))
    reference.check(got, reference.attention(q, k, v, causal="top_left")[0])


def test_softcap_and_alibi(make):
    slopes = np.float32([0.5, 0.25, 0.125, 0.0625])
    check_score(
        make(m=70, n=70), lambda s, b, h, q, kv: 20 * attn.tanh(s / 20) - slopes[h] * abs(q - kv)
    )


def test_approximate_tanh(make):
    # The CPU computes it exactly all the same.
    check_score(make(), lambda s, b, h, q, kv: attn.tanh(s, approximate=True) + attn.tanh(0.5))


@pytest.mark.parametrize("mask", [
    lambda b, h, q, kv: kv <= q,
    lambda b, h, q, kv: (kv <= q) & (q - kv < 5),
    lambda b, h, q, kv: abs(q - kv) <= 2,
    lambda b, h, q, kv: (kv < 3) | (True ^ (q < kv)),
    lambda b, h, q, kv: q // 4 == kv // 4,
    lambda b, h, q, kv: (q + kv) % 3 != 0,
    lambda b, h, q, kv: (h % 2 == 0) | (kv > b),
    lambda b, h, q, kv: True,
    lambda b, h, q, kv: False,
    lambda b, h, q, kv: min(q, kv) > 2,
    lambda b, h, q, kv: (q < kv) < (kv < 4),
    lambda b, h, q, kv: q * 0.5 > kv,
])  # fmt: skip
@pytest.mark.parametrize("m,n", [(7, 9), (70, 66)])
def test_masks(make, mask, m, n):
    check_mask(make(b=1, h=2, m=m, n=n), mask)


def test_lengths_of_the_call(make):
    q, k, v = make(m=5, n=12)
    mask = lambda b, h, q, kv: kv - attn.key_length <= q - attn.query_length  # noqa: E731
    reference.check(
        attn.attention(q, k, v, mask=mask), reference.attention(q, k, v, causal="bottom_right")[0]
    )
    score = lambda s, b, h, q, kv: s + kv / attn.key_length  # noqa: E731
    wanted = reference.attention(q, k, v, score=lambda s, b, h, q, kv: s + kv / 12)[0]
    reference.check(attn.attention(q, k, v, score=score), wanted)


def test_mask_joins_causal_and_window(make):
    check_mask(
        make(m=20, n=20), lambda b, h, q, kv: kv % 2 == 0, causal="bottom_right", window=(7, None)
    )


# ===- Captured values ------------------------------------------------------------------------===#

table = np.float32([0.5, -0.25, 0.125, 1.0])
power = 2


def scaled(s, h):
    return s * table[h]


def test_globals_and_helpers(make):
    check_score(make(), lambda s, b, h, q, kv: scaled(s, h) ** power)


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "int32", "int64", "bool"]
)
def test_element_types(make, rng, dtype):
    values = rng.integers(0, 2 if dtype == "bool" else 5, (2, 9)).astype(dtype)
    # A plain float, so that the reference does not compute in f16.
    wide = values.astype("float64")
    q, k, v = make()
    got = attn.attention(q, k, v, score=lambda s, b, h, q, kv: s + 0.5 * values[b, kv])
    wanted = reference.attention(q, k, v, score=lambda s, b, h, q, kv: s + 0.5 * wide[b, kv])[0]
    reference.check(got, wanted)


def test_bools_of_other_bytes(make):
    keep = np.array([2, 0, 1, 255, 128, 0, 4, 1, 1], "uint8").view("bool")
    limit = np.array(2, "uint8").view("bool")
    plain = keep.view("uint8") != 0
    q, k, v = make()
    got = attn.attention(q, k, v, mask=lambda b, h, q, kv: keep[kv] & limit)
    reference.check(got, reference.attention(q, k, v, mask=lambda b, h, q, kv: plain[kv])[0])


def test_bias_of_every_dimension(make, rng):
    bias = rng.standard_normal((2, 4, 7, 9)).astype("float32")
    check_score(make(), lambda s, b, h, q, kv: s + bias[b, h, q, kv])
    check_score(make(), lambda s, b, h, q, kv: s + bias[b][h][q, kv])


def test_relative_bias(make, rng):
    bias = rng.standard_normal((4, 33)).astype("float32")
    check_score(make(m=20, n=20), lambda s, b, h, q, kv: s + bias[h, attn.clip(q - kv + 16, 0, 32)])


def test_shape_of_a_captured_array(make, rng):
    bias = rng.standard_normal((4, 8)).astype("float32")
    check_score(make(), lambda s, b, h, q, kv: s + bias[h, attn.minimum(kv, bias.shape[1] - 1)])


def test_strided_captures(make, rng):
    slopes = rng.standard_normal(12)[::3]
    bias = rng.standard_normal((9, 30)).astype("float32")[::2, 5:25]
    check_score(make(), lambda s, b, h, q, kv: s * slopes[h] + bias[h, kv])


@pytest.mark.parametrize(
    "arrange",
    [
        lambda x: x.transpose(2, 0, 1),
        lambda x: x.transpose(2, 1, 0).swapaxes(1, 2)[:, ::-1, ::-1],
        lambda x: x.transpose(2, 0, 1)[..., ::-2],
        lambda x: np.broadcast_to(x.transpose(2, 0, 1)[..., :1], (4, 20, 20)),
        lambda x: x[::-1, ::-1, ::-1].transpose(2, 0, 1),
    ],
)
def test_captures_of_any_strides(make, rng, arrange):
    plain = rng.standard_normal((20, 20, 4)).astype("float32")
    bias, keep = arrange(plain), arrange(plain > 0)
    assert bias.strides[-1] != bias.itemsize and keep.strides[-1] != keep.itemsize
    check_score(make(m=20), lambda s, b, h, q, kv: s + bias[h, q, kv])
    check_mask(make(m=20), lambda b, h, q, kv: keep[h, q, kv])


def test_sorted_captures_of_any_strides(make, rng):
    ids = np.sort(rng.integers(0, 4, (70, 2)), axis=0).astype("int32").T
    sorted_ids = attn.assume_sorted(ids)
    q, k, v = make(m=70, n=70)
    same = lambda b, h, q, kv: ids[b, q] == ids[b, kv]  # noqa: E731
    got = attn.attention(q, k, v, mask=lambda b, h, q, kv: sorted_ids[b, q] == sorted_ids[b, kv])
    reference.check(got, reference.attention(q, k, v, mask=same)[0])


def test_a_gpu_is_told_of_strides(rng):
    def explain(bias, device, until="problem"):
        score = lambda s, b, h, q, kv: s + bias[h, q, kv]  # noqa: E731
        return attn.explain("bfloat16", 64, score=score, device=device, until=until)

    argument = "tensor<?x?x?xf32> {attn.strided}"
    rows = np.zeros((4, 20, 20), "float32")
    columns = np.zeros((20, 20, 4), "float32").transpose(2, 0, 1)
    assert argument in explain(columns, "cuda") and argument not in explain(columns, "cpu")
    assert ".target sm_90a" in explain(columns, "cuda", until="ptx")
    # A dimension of one element has no stride to speak of.
    for contiguous in (rows, columns[..., :1]):
        assert argument not in explain(contiguous, "cuda")


def test_documents(make, rng):
    ids = np.sort(rng.integers(0, 4, (2, 70)), axis=1).astype("int32")
    sorted_ids = attn.assume_sorted(ids)
    q, k, v = make(m=70, n=70)
    wanted = reference.attention(
        q, k, v, mask=lambda b, h, q, kv: ids[b, q] == ids[b, kv], causal="top_left"
    )[0]
    for documents in (ids, sorted_ids, attn.tensor(ids)):
        mask = lambda b, h, q, kv: documents[b, q] == documents[b, kv]  # noqa: E731
        reference.check(attn.attention(q, k, v, mask=mask, causal=True), wanted)
    assert "first(" in attn.explain(
        "float32", 16, mask=lambda b, h, q, kv: sorted_ids[b, q] == sorted_ids[b, kv]
    )


def test_key_lengths(make, rng):
    lengths = np.array([3, 8])
    check_mask(make(), lambda b, h, q, kv: kv < lengths[b])


def test_scalars_are_values_of_the_call(make):
    limit, factor = np.array(3), np.array(0.5, "float32")
    mask = lambda b, h, q, kv: kv <= limit  # noqa: E731
    score = lambda s, b, h, q, kv: s * factor  # noqa: E731
    inputs = make()
    sources = set()
    for value in (3, 0, 6):
        limit[()], factor[()] = value, value / 4
        sources.add(attn.compile("float32", 16, mask=mask, score=score).source)
        got = attn.attention(*inputs, mask=mask, score=score)
        reference.check(got, reference.attention(*inputs, mask=mask, score=score)[0])
    assert len(sources) == 1


def test_numbers_are_constants(make):
    inputs = make()
    for limit in (3, 0, 6):
        check_mask(inputs, lambda b, h, q, kv: kv <= limit)


def test_arrays_are_read_at_each_call(make):
    inputs = make()
    values = np.zeros(4, "float32")
    score = lambda s, b, h, q, kv: s * values[h]  # noqa: E731
    for i in range(3):
        values[:] = i
        reference.check(
            attn.attention(*inputs, score=score), reference.attention(*inputs, score=score)[0]
        )


def test_a_new_array_under_an_old_name(make, rng):
    inputs = make()
    for dtype in ("float32", "float32", "float64", "int32"):
        values = (rng.standard_normal(4) * 5).astype(dtype)
        twin = values if dtype == "float32" else values + 1
        check_score(inputs, lambda s, b, h, q, kv: s * values[h] + twin[h])


def test_defaults_partials_methods_and_objects(make, rng):
    values = rng.standard_normal(4).astype("float32")
    inputs = make()

    def with_default(s, b, h, q, kv, values=values, *, factor=0.5):
        return s * values[h] * factor

    def with_more(values, factor, s, b, h, q, kv):
        return s * values[h] * factor

    class Bias:
        def __init__(self):
            self.values, self.factor = values, 0.25

        def score(self, s, b, h, q, kv):
            return s + self.values[h] * self.factor

        __call__ = score

    bias, namespace = Bias(), types.SimpleNamespace(values=values, factor=3)
    check_score(inputs, with_default)
    check_score(inputs, functools.partial(with_more, values, 0.5))
    check_score(inputs, bias.score)
    check_score(inputs, bias)
    check_score(inputs, lambda s, b, h, q, kv: s + namespace.values[h] * namespace.factor)
    bias.factor, namespace.factor = 2, 1
    check_score(inputs, bias.score)
    check_score(inputs, lambda s, b, h, q, kv: s + namespace.values[h] * namespace.factor)


def test_lists_of_arrays(make, rng):
    tables = [rng.standard_normal(4).astype("float32") for _ in range(3)]
    check_score(make(), lambda s, b, h, q, kv: s + sum(x[h] for x in tables))


def test_unread_arrays_are_no_arguments(make):
    unread = np.zeros((3, 3), "complex64")
    score = lambda s, b, h, q, kv: s if unread is not None else unread[0, 0]  # noqa: E731
    assert "complex" not in attn.compile("float32", 16, score=score).source
    check_score(make(), score)


def test_a_divisor_of_zero_does_not_end_the_process(make):
    q, k, v = make()
    size = np.array(0)
    attn.attention(q, k, v, mask=lambda b, h, q, kv: q // size == kv // size)
    # A quotient of what is above 0 may be 0.
    attn.attention(q, k, v, mask=lambda b, h, q, kv: kv // ((q + 10) // (kv * 20 + 1)) >= 0)
    # So may be a product that wraps.
    attn.attention(q, k, v, mask=lambda b, h, q, kv: q // (((q + 1) << 40) * ((kv + 1) << 40)) >= 0)


def test_the_least_integer_by_minus_one_does_not_end_the_process(make):
    least, minus_one = np.full(9, -(2**63)), np.full(9, -1)
    q, k, v = make()
    for function in (operator.floordiv, operator.mod):
        attn.attention(
            q, k, v, score=lambda s, b, h, q, kv: s + function(least[kv], minus_one[kv]) % 2
        )


def test_python_numbers():
    assert (
        attn.tanh(0.5) == math.tanh(0.5)
        and attn.where(True, 1, 2) == 1
        and attn.maximum(1, 2.5) == 2.5
    )


@pytest.mark.parametrize("seed", range(16))
def test_random_functions(seed):
    problem = random_functions.Problem(seed)
    np.testing.assert_allclose(problem.run(), problem.probabilities(), atol=2e-4)
