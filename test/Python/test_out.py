"""Compiled kernels that write into memory of the caller."""

import numpy as np
import pytest

import attn
import reference

WRONG = {
    "of another shape": lambda q: np.zeros((2, 4, 7, 15), "float32"),
    "of another type": lambda q: np.zeros((2, 4, 7, 16), "float64"),
}


def test_numpy(make):
    q, k, v = make()
    slopes, sink = np.float32([1, 2, 3, 4]), np.float64([0, 1, 2, 3])
    score = lambda s, b, h, i, j: s + slopes[h] * j
    kernel = attn.compile("float32", 16, score=score, sink=True, scale=True, return_lse=True)
    whole = np.zeros((2, 4, 9, 16), "float32")
    out = whole[:, :, 1:8], np.zeros((2, 4, 7), "float32")
    assert kernel(q, k, v, sink=sink, scale=0.3, out=out) is out
    wanted = reference.attention(q, k, v, score=score, sink=sink, scale=0.3)
    for got, x in zip(out, wanted):
        reference.check(got, x)
    assert not whole[:, :, 0].any() and not whole[:, :, 8].any()


@pytest.mark.parametrize("what", WRONG)
def test_wrong(make, what):
    q, k, v = make()
    kernel = attn.compile("float32", 16)
    with pytest.raises(attn.Error, match=r"output: expected f32 of shape \(2, 4, 7, 16\)"):
        kernel(q, k, v, out=WRONG[what](q))
    with pytest.raises(attn.Error, match="out: expected an array, got tuple"):
        kernel(q, k, v, out=(q, q))
    both = attn.compile("float32", 16, return_lse=True)
    with pytest.raises(attn.Error, match=r"out: expected \(output, lse\), got ndarray"):
        both(q, k, v, out=q)


def test_memory_of_arguments(make):
    """Results are written while arguments are read, and are refused where they would overwrite them."""
    q, k, v = make(h=2, hkv=2, m=9, n=9)
    kernel, both = (attn.compile("float32", 16, return_lse=x) for x in (False, True))
    wanted = kernel(q, k, v)
    whole = np.zeros((2, 3, 9, 16), "float32")
    whole[:, 1:] = v
    for name, x, out in (
        ("q", q, q),
        ("q", q, q[::-1]),
        ("q", whole[:, 1:], whole[:, :2]),
    ):
        with pytest.raises(attn.Error, match=f"output: expected memory of its own.*that {name} has"):
            kernel(x, k, v, out=out)
    assert np.array_equal(whole[:, 1:], v) and np.array_equal(kernel(q, k, v), wanted)
    flat = np.zeros(2 * 2 * 9 * 16, "float32")
    out = flat.reshape(2, 2, 9, 16), flat[8:44].reshape(2, 2, 9)
    with pytest.raises(attn.Error, match="lse: expected memory of its own.*that output has"):
        both(q, k, v, out=out)
    # What lies among arguments but shares no element.
    packed = np.stack([q, k, v, np.zeros_like(q)], 3)
    parts = [packed[:, :, :, i] for i in range(4)]
    assert kernel(*parts[:3], out=parts[3]) is parts[3]
    assert np.array_equal(parts[3], wanted) and np.array_equal(parts[2], v)


def test_other_libraries(make):
    jax = pytest.importorskip("jax")
    q, k, v = map(jax.numpy.asarray, make())
    with pytest.raises(attn.Error, match="out: expected q, k and v of NumPy or PyTorch beside it"):
        attn.compile("float32", 16)(q, k, v, out=q)


def test_pytorch(make):
    torch = pytest.importorskip("torch")
    q, k, v = [torch.from_numpy(x).transpose(1, 2) for x in make(dtype="float32")]
    kernel = attn.compile("float32", 16, causal=True, layout="bshd")
    wanted, out = kernel(q, k, v), torch.zeros(2, 7, 8, 16)[:, :, 2:6]
    assert kernel(q, k, v, out=out) is out and torch.equal(out, wanted)
    # Somebody looks.
    out.zero_()
    with torch.profiler.profile() as profile:
        kernel(q, k, v, out=out)
    assert "attn::forward_out" in {event.key for event in profile.key_averages()}
    assert torch.equal(out, wanted)
    with pytest.raises(attn.Error, match="expected a call by attn.attention where gradients are"):
        kernel(q.requires_grad_(), k, v, out=out)
    with torch.no_grad():
        kernel(2 * q, k, v, out=out)
    assert torch.equal(out, kernel(2 * q.detach(), k, v))
