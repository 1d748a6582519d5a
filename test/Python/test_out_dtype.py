"""out_dtype: outputs of float32 of elements of 16 bits, and their gradients."""

import attn
import numpy as np
import pytest

torch = pytest.importorskip("torch")
import dense_reference  # noqa: E402

TYPES = [torch.bfloat16, torch.float16]


def make(dtype, m=70, n=90, heads=(4, 2), columns=(32, 48), rows_first=False):
    generator = torch.Generator().manual_seed(0)
    shapes = (2, heads[0], m, columns[0]), (2, heads[1], n, columns[0]), (2, heads[1], n, columns[1])
    tensors = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
    return [x.transpose(1, 2).contiguous() if rows_first else x for x in tensors]


def attend(q, k, v, causal):
    """In f64."""
    return dense_reference.attend(*(x.double() for x in (q, k, v)), causal)[0]


def score(s, b, h, q, kv):
    return s * 0.5 - 0.01 * abs(q - kv)


HOW = {
    "plain": {},
    "causal": {"causal": True},
    "score": {"score": score},
    "scale and dropout": {"scale": 0.2, "dropout_p": 0.3, "dropout_seed": 7},
    "window": {"window": (20, 0)},
}


@pytest.mark.parametrize("how", HOW.values(), ids=HOW.keys())
@pytest.mark.parametrize("dtype", TYPES)
def test_it_is_what_would_be_rounded(dtype, how):
    q, k, v = make(dtype)
    rounded, lse = attn.attention(q, k, v, return_lse=True, **how)
    wide, wide_lse = attn.attention(q, k, v, return_lse=True, out_dtype=torch.float32, **how)
    assert wide.dtype == torch.float32 and rounded.dtype == dtype
    assert torch.equal(wide.to(dtype), rounded) and not torch.equal(wide, rounded.float())
    assert torch.equal(wide_lse, lse)


def test_names_of_types():
    q, k, v = make(torch.bfloat16)
    wide = attn.attention(q, k, v, out_dtype="float32")
    for name in (torch.float32, np.float32, "f32"):
        assert torch.equal(attn.attention(q, k, v, out_dtype=name), wide)
    assert attn.attention(q, k, v, out_dtype=torch.bfloat16).dtype == torch.bfloat16
    assert attn.attention(*(x.float() for x in (q, k, v)), out_dtype="float32").dtype == torch.float32


def test_arrays_of_numpy():
    arrays = [x.numpy() for x in make(torch.float16)]
    wide, lse = attn.attention(*arrays, causal=True, return_lse=True, out_dtype=np.float32)
    assert wide.dtype == lse.dtype == np.float32
    assert np.array_equal(wide.astype(np.float16), attn.attention(*arrays, causal=True))


def test_rows_first():
    tensors = make(torch.bfloat16, rows_first=True)
    wide = attn.attention(*tensors, layout="bshd", out_dtype=torch.float32)
    turned = attn.attention(*(x.transpose(1, 2) for x in tensors), out_dtype=torch.float32)
    assert torch.equal(wide, turned.transpose(1, 2))


def test_compiled_kernels():
    q, k, v = make(torch.float16)
    kernel = attn.compile("float16", 32, 48, causal=True, return_lse=True, out_dtype="float32")
    wide, lse = kernel(q, k, v)
    assert torch.equal(wide, attn.attention(q, k, v, causal=True, out_dtype="float32"))
    out = torch.empty_like(wide), torch.empty_like(lse)
    kernel(q, k, v, out=out)
    assert torch.equal(out[0], wide) and torch.equal(out[1], lse)
    with pytest.raises(attn.Error, match="output: expected f32 of shape"):
        kernel(q, k, v, out=(wide.half(), lse))


@pytest.mark.parametrize("how", HOW.values(), ids=HOW.keys())
@pytest.mark.parametrize("dtype", TYPES)
def test_gradients(dtype, how):
    """Of a gradient that 16 bits hold they are those of a rounded output, up to delta, which is more exact."""
    q, k, v = (x.requires_grad_() for x in make(dtype))
    wide = attn.attention(q, k, v, out_dtype=torch.float32, **how)
    d_output = torch.randn(wide.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    found = torch.autograd.grad(wide, (q, k, v), d_output.float())
    rounded = torch.autograd.grad(attn.attention(q, k, v, **how), (q, k, v), d_output)
    for x, y in zip(found, rounded):
        assert x.dtype == dtype
        torch.testing.assert_close(x.float(), y.float(), atol=2e-2, rtol=2e-2)
    assert torch.equal(found[2], rounded[2])


def test_gradients_are_no_less_exact():
    q, k, v = (x.requires_grad_() for x in make(torch.bfloat16))
    wide = attn.attention(q, k, v, causal=True, out_dtype=torch.float32)
    d_output = torch.randn(wide.shape, generator=torch.Generator().manual_seed(1)).bfloat16()
    doubles = [x.detach().double().requires_grad_() for x in (q, k, v)]
    exact = torch.autograd.grad(attend(*doubles, True), doubles, d_output.double())
    found = torch.autograd.grad(wide, (q, k, v), d_output.float())
    rounded = torch.autograd.grad(attn.attention(q, k, v, causal=True), (q, k, v), d_output)
    for x, y, z in zip(found, rounded, exact):
        assert (x.double() - z).norm() <= 1.01 * (y.double() - z).norm()


def test_parts_lose_nothing():
    """Sixteen parts of the keys, merged: rounding their outputs to 16 bits doubles the error."""
    q, k, v = make(torch.bfloat16, m=64, n=1024)
    exact = attend(q, k, v, False)

    def join(out_dtype):
        parts = [
            attn.attention(q, x, y, return_lse=True, out_dtype=out_dtype)
            for x, y in zip(k.chunk(16, 2), v.chunk(16, 2))
        ]
        output = attn.merge([x for x, _ in parts], [x for _, x in parts])[0]
        return (output.double() - exact).norm()

    assert join(torch.float32) < 0.7 * join(None)


@pytest.mark.parametrize("fullgraph", [True, False])
def test_in_graphs(fullgraph):
    q, k, v = (x.requires_grad_() for x in make(torch.bfloat16))

    def plain(q, k, v):
        return attn.attention(q, k, v, causal=True, out_dtype=torch.float32) * 2

    def scored(q, k, v):
        return attn.attention(q, k, v, score=score, out_dtype="float32").sin()

    for function in (plain, scored):
        expected = function(q, k, v)
        got = torch.compile(function, fullgraph=fullgraph, backend="aot_eager")(q, k, v)
        assert torch.equal(got, expected) and got.dtype == torch.float32
        for x, y in zip(torch.autograd.grad(got.sum(), (q, k, v)), torch.autograd.grad(expected.sum(), (q, k, v))):
            assert torch.equal(x, y)


def test_operators_say_the_type():
    q, k, v = (x.requires_grad_() for x in make(torch.bfloat16))

    def attend(q, k, v):
        return attn.attention(q, k, v, out_dtype=torch.float32)

    mapped = torch.vmap(attend)(*(torch.stack([x, x]) for x in (q, k, v)))
    assert torch.equal(mapped[1], attend(q, k, v)) and mapped.dtype == torch.float32
    grads = torch.func.grad(lambda *x: attend(*x).sum(), argnums=(0, 1, 2))(q, k, v)
    for x, y in zip(grads, torch.autograd.grad(attend(q, k, v).sum(), (q, k, v))):
        assert torch.equal(x, y)


def test_under_autocast():
    q, k, v = make(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        wide = attn.attention(q, k, v, out_dtype=torch.float32)
        assert wide.dtype == torch.float32
        assert torch.equal(wide.bfloat16(), attn.attention(q, k, v))


@pytest.mark.parametrize("dtype, out_dtype, words", [
    (torch.bfloat16, torch.float16, "out_dtype: expected bfloat16 or float32, as elements are bf16, got torch.float16"),
    (torch.float16, torch.float64, "out_dtype: expected float16 or float32"),
    (torch.float32, torch.bfloat16, "out_dtype: expected float32, as elements are f32"),
    (torch.bfloat16, "other", "out_dtype: expected bfloat16 or float32"),
])
def test_what_is_refused(dtype, out_dtype, words):
    with pytest.raises(attn.Error, match=words):
        attn.attention(*make(dtype), out_dtype=out_dtype)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120a"])
def test_on_a_gpu(target):
    how = dict(device="cuda", causal=True, return_lse=True, options={"target": target})
    text = attn.explain("bfloat16", 128, until="tile", out_dtype="float32", **how)
    assert "memref<?x?x?x128xf32, strided<[?, ?, ?, 1]>>" in text and "memref<?x?x?x128xbf16" in text
    assert ".entry" in attn.explain("bfloat16", 128, until="ptx", out_dtype="float32", **how)
