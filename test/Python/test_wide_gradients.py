"""attn.gradient in float32, into arrays of the caller and added to what is there."""

import attn
import numpy as np
import pytest

torch = pytest.importorskip("torch")

TYPES = [torch.bfloat16, torch.float16]


def make(dtype, m=70, n=90):
    generator = torch.Generator().manual_seed(0)
    shapes = (2, 4, m, 32), (2, 2, n, 32), (2, 2, n, 48), (2, 4, m, 48)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def differentiate(q, k, v, d_output, bias=None):
    """In f64."""
    q, k, v = (x.detach().double().requires_grad_() for x in (q, k, v))
    s = q @ k.repeat_interleave(2, 1).transpose(2, 3) / q.shape[3] ** 0.5
    output = torch.softmax(s, dim=3) @ v.repeat_interleave(2, 1)
    return torch.autograd.grad(output, (q, k, v), d_output.double())


def get_error(found, wanted):
    return (found.double() - wanted).norm() / wanted.norm()


@pytest.mark.parametrize("how", [{}, {"causal": True}, {"score": lambda s, b, h, q, kv: s * 0.5 + 0.01 * (q - kv)}],
                         ids=["plain", "causal", "score"])
@pytest.mark.parametrize("dtype", TYPES)
def test_they_are_what_would_be_rounded(dtype, how):
    given = make(dtype)
    output, lse = attn.attention(*given[:3], return_lse=True, **how)
    of = dict(output=output, lse=lse, **how)
    rounded = attn.gradient(*given, **of)
    wide = attn.gradient(*given, out_dtype="float32", **of)
    for x, y in zip(wide, rounded):
        assert x.dtype == torch.float32 and torch.equal(x.to(dtype), y) and not torch.equal(x, y.float())


def test_a_wide_output_is_exact():
    given = make(torch.bfloat16)
    exact = differentiate(*given)
    wide = attn.gradient(*given, out_dtype=torch.float32)
    for x, y, z in zip(wide, attn.gradient(*given), exact):
        assert get_error(x, z) < get_error(y, z)


def test_a_gradient_of_float32():
    q, k, v, d_output = make(torch.bfloat16)
    for x, y in zip(attn.gradient(q, k, v, d_output.float()), attn.gradient(q, k, v, d_output)):
        assert torch.equal(x, y)


def test_numpy():
    given = [x.numpy() for x in make(torch.float16)]
    wide = attn.gradient(*given, out_dtype="float32")
    out = [np.ones_like(x) for x in wide]
    got = attn.gradient(*given, out=out, accumulate=True)
    for x, y, z in zip(got, wide, out):
        assert x is z and np.array_equal(x, 1 + y)


@pytest.mark.parametrize("out_dtype", [None, torch.float32])
def test_into_arrays(out_dtype):
    given = make(torch.bfloat16)
    wanted = attn.gradient(*given, out_dtype=out_dtype)
    out = [torch.full_like(x, torch.nan) for x in wanted]
    got = attn.gradient(*given, out=out)
    for x, y, z in zip(got, wanted, out):
        assert x is z and torch.equal(x, y)


def test_sinks_and_captured_arrays():
    q, k, v, d_output = make(torch.float16)
    slopes, sink = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([0.0, 1.0, 2.0, 3.0])
    how = dict(score=lambda s, b, h, q, kv: s - slopes[h] * abs(q - kv), sink=sink, wrt=[slopes])
    wide = attn.gradient(q, k, v, d_output, out_dtype="float32", **how)
    assert [x.dtype for x in wide] == [torch.float32] * 5
    out = [torch.ones_like(x) for x in wide]
    for x, y in zip(attn.gradient(q, k, v, d_output, out=out, accumulate=True, **how), wide):
        torch.testing.assert_close(x, 1 + y)
    for x, y in zip(attn.gradient(q, k, v, d_output, out=out, **how), wide):
        assert torch.equal(x, y)


def test_parts_add_up():
    """Gradients of sixteen parts of the keys, of the output and lse of the whole: sums of float32 are as exact as one
    call, sums of 16 bits are not."""
    q, k, v, d_output = make(torch.bfloat16, m=64, n=1024)
    exact = differentiate(q, k, v, d_output)[0]
    output, lse = attn.attention(q, k, v, return_lse=True, out_dtype="float32")
    sums = torch.zeros(q.shape), torch.zeros_like(q)
    parts = list(zip(k.chunk(16, 2), v.chunk(16, 2)))
    for x, y in parts:
        empty = [torch.zeros(z.shape) for z in (x, y)]
        attn.gradient(q, x, y, d_output, output=output, lse=lse, out=[sums[0], *empty], accumulate=True)
        sums[1].add_(attn.gradient(q, x, y, d_output, output=output, lse=lse)[0])
    whole = attn.gradient(q, k, v, d_output, output=output, lse=lse)[0]
    assert get_error(sums[0], exact) < 1.05 * get_error(whole, exact) < 0.8 * get_error(sums[1], exact)


def test_rows_first():
    given = [x.transpose(1, 2).contiguous() for x in make(torch.bfloat16)]
    out = [torch.zeros(x.shape) for x in given[:3]]
    wanted = attn.gradient(*make(torch.bfloat16), out_dtype="float32")
    for x, y in zip(attn.gradient(*given, layout="bshd", out=out, accumulate=True), wanted):
        assert torch.equal(x.transpose(1, 2), y)


def test_elements_of_float32():
    given = make(torch.float32)
    wanted = attn.gradient(*given)
    out = [torch.zeros_like(x) for x in wanted]
    for x, y in zip(attn.gradient(*given, out=out, out_dtype="float32", accumulate=True), wanted):
        assert torch.equal(x, y)


def zeros(dtype=torch.float32):
    return [torch.zeros(x.shape, dtype=dtype) for x in make(torch.bfloat16)[:3]]


@pytest.mark.parametrize("how, words", [
    ({"accumulate": True}, "out: expected arrays of float32 with accumulate, got none"),
    ({"accumulate": True, "out": zeros(torch.bfloat16)}, "out: expected arrays of float32 with accumulate, got arrays"),
    ({"out": zeros()[:2]}, "out: expected 3 arrays, got 2"),
    ({"out": [*zeros()[:2], np.zeros(3)]}, r"out\[2\]: expected an array of NumPy or PyTorch, as q is"),
    ({"out": [zeros()[0], zeros()[2], zeros()[1]]}, r"out\[1\]: expected torch.float32 of shape \(2, 2, 90, 32\)"),
    ({"out": [*zeros()[:2], zeros(torch.bfloat16)[2]]}, r"out\[2\]: expected torch.float32 of shape"),
    ({"out": zeros(torch.float16)}, "out: expected torch.bfloat16 or float32, got torch.float16"),
    ({"out_dtype": torch.float16}, "out_dtype: expected torch.bfloat16 or float32, got torch.float16"),
    ({"out": [x.requires_grad_() for x in zeros()]}, r"out\[0\]: expected an array without gradient"),
])
def test_what_is_refused(how, words):
    with pytest.raises(attn.Error, match=words):
        attn.gradient(*make(torch.bfloat16), **how)


def test_read_only_arrays_are_refused():
    given = [x.numpy() for x in make(torch.float16)]
    out = [np.zeros(x.shape, "float32") for x in given[:3]]
    out[1].flags.writeable = False
    with pytest.raises(attn.Error, match=r"out\[1\]: expected an array that can be written"):
        attn.gradient(*given, out=out)


@pytest.mark.parametrize("fused", ["on", "off"])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120a"])
def test_on_a_gpu(target, fused):
    from attn._explain import Gradients, Source
    from attn._problem import Spec

    text = Source(Spec("bfloat16", 64, 64, "cuda:0", causal=True)).text
    source = text.gradient(Gradients(("query", "key", "value"), False, False, is_wide=True))
    options = (("device", "cuda"), ("target", target), ("fused", fused))
    found = attn._library.explain(source, options, "ptx")
    assert found.count(".entry") >= 3
