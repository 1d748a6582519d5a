"""Arrays of other libraries, which hand them over by DLPack."""

import numpy as np
import pytest

import attn
from reference import attention, check


class Plain:
    """No more than DLPack asks for."""

    def __init__(self, array):
        self.array, self.dtype, self.shape = array, array.dtype, array.shape

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Named(Plain):
    """That of a library which says how to make more. It copies: what NumPy 1 has by DLPack is
    read-only, and NumPy 1 hands over nothing that is."""

    def __array_namespace__(self):
        return type("library", (), {"from_dlpack": lambda x: Named(np.from_dlpack(x).copy())})


class Broken(Plain):
    def __dlpack_device__(self):
        raise RuntimeError("it is gone")


def test_results_are_of_the_library_of_q(make):
    arrays = make()
    wanted, lse = attention(*arrays, causal="bottom_right")
    named = [Named(x) for x in arrays]
    output, got = attn.attention(*named, causal=True, return_lse=True)
    assert type(output) is type(got) is Named
    check(output.array, wanted)
    check(got.array, lse)
    # One that does not say how gets NumPy's.
    check(attn.attention(*[Plain(x) for x in arrays], causal=True), wanted)
    kernel = attn.compile("float32", 16, causal=True)
    check(kernel(*named).array, wanted)
    gradients = attn.gradient(*named, Named(output.array), causal=True)
    same = attn.gradient(*arrays, output.array, causal=True)
    for x, y in zip(gradients, same):
        assert np.array_equal(x.array, y)


def test_captured_arrays_and_sinks(make):
    arrays = make()
    slopes = np.float32([0.5, 0.25, 0.125, 0.0625])
    mine = Plain(slopes)
    wanted, _ = attention(*arrays, score=lambda s, b, h, i, j: s * slopes[h], sink=slopes)
    named = [Named(x) for x in arrays]
    score = lambda s, b, h, i, j: s * mine[h]
    check(attn.attention(*named, score=score, sink=mine).array, wanted)
    wanted, _ = attention(*arrays, score=lambda s, b, h, i, j: s * slopes[h])
    check(attn.attention(*arrays, score=score), wanted)
    check(attn.compile("float32", 16, score=score)(*arrays), wanted)
    marked = attn.tensor(mine)
    check(attn.attention(*arrays, score=lambda s, b, h, i, j: s * marked[h]), wanted)


def test_refused(make):
    q, k, v = make()
    with pytest.raises(attn.Error, match="q: expected an array that DLPack hands over.*it is gone"):
        attn.attention(Broken(q), k, v)
    with pytest.raises(attn.Error, match="k: expected a NumPy array or PyTorch tensor, got Plain"):
        attn.attention(q, Plain(k), v)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_jax(make, dtype):
    jax = pytest.importorskip("jax")
    arrays = [jax.numpy.asarray(x, dtype) for x in make()]
    slopes = jax.numpy.array([0.5, 0.25, 0.125, 0.0625])
    wanted, lse = attention(
        *[np.asarray(x, "f8") for x in arrays],
        score=lambda s, b, h, i, j: s * float(slopes[h]),
    )
    output, got = attn.attention(
        *arrays, score=lambda s, b, h, i, j: s * slopes[h], return_lse=True
    )
    assert isinstance(output, jax.Array) and output.dtype == dtype and got.dtype == "float32"
    check(np.asarray(output, "f8"), wanted, dtype)
    check(np.asarray(got, "f8"), lse, dtype)
