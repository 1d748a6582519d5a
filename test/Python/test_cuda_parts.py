"""Parts that add up in f32 on a GPU: outputs and gradients of float32, states, and multiprocessors that are left to
other kernels. Skipped without one."""

import pytest

import attn

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

TYPES = [torch.bfloat16, torch.float16]


def make(dtype, m, n, d=128, heads=(8, 2)):
    generator = torch.Generator("cuda").manual_seed(0)
    shapes = (2, heads[0], m, d), (2, heads[1], n, d), (2, heads[1], n, d), (2, heads[0], m, d)
    return [torch.randn(shape, generator=generator, device="cuda").to(dtype) for shape in shapes]


@pytest.mark.parametrize("m, n", [(1, 3000), (3, 700), (100, 4096), (300, 77), (1000, 1000), (4096, 4096)])
@pytest.mark.parametrize("d", [64, 128, 256])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_it_is_what_would_be_rounded(dtype, causal, d, m, n):
    q, k, v, _ = make(dtype, m, n, d)
    rounded, lse = attn.attention(q, k, v, causal=causal, return_lse=True)
    wide, wide_lse = attn.attention(q, k, v, causal=causal, return_lse=True, out_dtype=torch.float32)
    assert wide.dtype == torch.float32 and torch.equal(wide.to(dtype), rounded)
    assert torch.equal(wide_lse, lse)


@pytest.mark.parametrize("fused", ["on", "off"])
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("causal", [False, True])
def test_gradients(causal, d, fused):
    q, k, v, d_output = make(torch.bfloat16, 1000, 1000, d)
    how = dict(causal=causal, options={"fused": fused})
    output, lse = attn.attention(q, k, v, return_lse=True, causal=causal)
    of = dict(output=output, lse=lse, **how)
    rounded = attn.gradient(q, k, v, d_output, **of)
    wide = attn.gradient(q, k, v, d_output, out_dtype="float32", **of)
    for x, y in zip(wide, rounded):
        torch.testing.assert_close(x, y.float(), rtol=1e-2, atol=1e-2)
    out = [torch.ones_like(x) for x in wide]
    attn.gradient(q, k, v, d_output, out=out, accumulate=True, **of)
    for x, y in zip(out, wide):
        torch.testing.assert_close(x, 1 + y, rtol=1e-4, atol=1e-4)


def test_autograd_and_graphs():
    q, k, v, d_output = make(torch.bfloat16, 600, 900)
    leaves = [x.requires_grad_() for x in (q, k, v)]

    def attend(q, k, v):
        return attn.attention(q, k, v, causal=True, out_dtype=torch.float32)

    rounded = torch.autograd.grad(attn.attention(q, k, v, causal=True), leaves, d_output)
    for function in (attend, torch.compile(attend, fullgraph=True)):
        wide = function(q, k, v)
        assert wide.dtype == torch.float32
        for x, y in zip(torch.autograd.grad(wide, leaves, d_output.float()), rounded):
            torch.testing.assert_close(x, y, rtol=3e-2, atol=3e-2)


def test_states():
    q, k, v, _ = make(torch.bfloat16, 500, 1024)
    state = None
    for x, y in zip(k.chunk(4, 2), v.chunk(4, 2)):
        state = attn.attention(q, x, y, state=state, return_lse=True, out_dtype=torch.float32)
    output, lse = attn.attention(q, k, v, return_lse=True, out_dtype=torch.float32)
    torch.testing.assert_close(state[0], output, rtol=1e-2, atol=2e-3)
    torch.testing.assert_close(state[1], lse, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reserve", [1, 8, 100, 1000])
@pytest.mark.parametrize("causal", [False, True])
def test_multiprocessors_are_left(causal, reserve):
    """Whatever runs beside them, results are the same bits."""
    for m, n in ((4096, 4096), (1, 9000)):
        q, k, v, _ = make(torch.bfloat16, m, n)
        wanted = attn.attention(q, k, v, causal=causal)
        assert torch.equal(attn.attention(q, k, v, causal=causal, options={"reserve": reserve}), wanted)
