"""Elements of 8 bits with scales: attn.attention of float8 tensors, as FlashAttention-3 names them."""

import math

import attn
import numpy as np
import pytest

torch = pytest.importorskip("torch")
from dense_reference import attend  # noqa: E402

TYPES = [torch.float8_e4m3fn, torch.float8_e5m2]


def narrow(x, dtype):
    """A tensor of 8 bits, its scale for each batch and head, and the numbers that both stand for."""
    scale = x.abs().amax(dim=(2, 3)) / torch.finfo(dtype).max
    codes = (x / scale[:, :, None, None]).to(dtype)
    return codes, scale, codes.double() * scale.double()[:, :, None, None]


def make(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(params=TYPES, ids=["e4m3", "e5m2"])
def problem(request):
    tensors = make((2, 4, 70, 32), 0), make((2, 2, 90, 32), 1), make((2, 2, 90, 48), 2)
    return [narrow(x, request.param) for x in tensors]


def test_scales_of_heads(problem):
    (q, qs, qx), (k, ks, kx), (v, vs, vx) = problem
    got, lse = attn.attention(
        q, k, v, q_descale=qs, k_descale=ks, v_descale=vs, causal=True, return_lse=True,
        out_dtype=torch.float32,
    )
    exact, exact_lse = attend(qx, kx, vx, causal=True)
    torch.testing.assert_close(got, exact.float(), atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(lse, exact_lse.float(), atol=2e-5, rtol=1e-5)


def test_scales_of_key_heads_of_queries(problem):
    """FlashAttention-3 has a scale of queries for each key head."""
    (q, _, _), (k, ks, kx), (v, vs, vx) = problem
    got = attn.attention(q, k, v, q_descale=ks, k_descale=ks, v_descale=vs)
    assert got.dtype == torch.bfloat16
    numbers = q.double() * ks.double().repeat_interleave(2, dim=1)[:, :, None, None]
    torch.testing.assert_close(got.double(), attend(numbers, kx, vx)[0], atol=2e-2, rtol=1e-2)


@pytest.mark.parametrize("scale", [0.5, torch.tensor([0.5]), torch.tensor(0.5), torch.full((1, 1), 0.5).expand(2, 2)],
                         ids=["number", "array of one", "scalar", "repeated"])
def test_one_scale(problem, scale):
    (q, _, _), (k, _, _), (v, _, _) = problem
    got = attn.attention(q, k, v, k_descale=scale, scale=0.01, out_dtype=torch.float32)
    exact = attend(q.double() * 0.5 * 0.01 * math.sqrt(32), k.double(), v.double())[0]
    torch.testing.assert_close(got, exact.float(), atol=1e-3, rtol=1e-3)


def test_elements_without_scales(problem):
    (q, _, _), (k, _, _), (v, _, _) = problem
    got = attn.attention(q, k, v, scale=0.001, out_dtype=torch.float16)
    assert got.dtype == torch.float16
    exact = attend(q.double() * 0.001 * math.sqrt(32), k.double(), v.double())[0]
    torch.testing.assert_close(got.double(), exact, atol=2.0, rtol=1e-2)


def test_scales_of_blocks(problem):
    (q, _, _), (k, _, _), (v, vs, vx) = problem
    q_scale, k_scale = (make((2, 2, count), 3).abs() * 0.01 for count in (3, 6))
    got = attn.attention(
        q, k, v, q_descale=q_scale, k_descale=k_scale, v_descale=vs, descale_block=(32, 16),
        out_dtype=torch.float32,
    )
    qx = q.double() * q_scale.double().repeat_interleave(2, dim=1).repeat_interleave(32, dim=2)[:, :, :70, None]
    kx = k.double() * k_scale.double().repeat_interleave(16, dim=2)[:, :, :90, None]
    torch.testing.assert_close(got, attend(qx, kx, vx)[0].float(), atol=2e-5, rtol=1e-4)


def test_layouts_and_functions(problem):
    (q, qs, qx), (k, ks, kx), (v, vs, vx) = problem
    slopes = torch.tensor([0.1, 0.2, 0.3, 0.4])
    swapped = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
    got = attn.attention(
        *swapped, q_descale=qs, k_descale=ks, v_descale=vs, layout="bshd", out_dtype=torch.float32,
        score=lambda s, b, h, i, j: s - slopes[h] * (i - j), mask=lambda b, h, i, j: j <= i + 20,
    )
    i, j = torch.arange(70)[:, None], torch.arange(90)
    k_all, v_all = kx.repeat_interleave(2, dim=1), vx.repeat_interleave(2, dim=1)
    s = qx @ k_all.transpose(2, 3) / math.sqrt(32) - slopes.double()[:, None, None] * (i - j)
    exact = torch.softmax(s.masked_fill(j > i + 20, -math.inf), dim=3) @ v_all
    torch.testing.assert_close(got.transpose(1, 2), exact.float(), atol=5e-5, rtol=1e-4)


def test_numpy(problem):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    (q, qs, qx), (k, ks, kx), (v, vs, vx) = problem
    name = ml_dtypes.float8_e4m3fn if q.dtype == torch.float8_e4m3fn else ml_dtypes.float8_e5m2
    arrays = [x.view(torch.uint8).numpy().view(name) for x in (q, k, v)]
    scales = dict(q_descale=qs.numpy(), k_descale=ks.numpy(), v_descale=vs.numpy())
    got = attn.attention(*arrays, **scales, out_dtype="float32")
    assert isinstance(got, np.ndarray)
    np.testing.assert_allclose(got, attend(qx, kx, vx)[0].numpy(), atol=2e-5, rtol=1e-4)
    assert attn.attention(*arrays, **scales).dtype == ml_dtypes.bfloat16


def test_errors(problem):
    (q, qs, _), (k, ks, _), (v, vs, _) = problem
    with pytest.raises(attn.Error, match="elements of 8 bits have none: detach it"):
        attn.attention(q.detach().requires_grad_(), k, v)
    with pytest.raises(attn.Error, match="k_descale: expected a tensor without gradients"):
        attn.attention(q, k, v, k_descale=ks.clone().requires_grad_())
    with pytest.raises(attn.Error, match="k: expected the type of q, torch.float8"):
        attn.attention(q, k.float(), v)
    with pytest.raises(attn.Error, match="q: expected float8_e4m3fn or float8_e5m2 where there are scales"):
        attn.attention(q.float(), k.float(), v.float(), q_descale=qs)
    with pytest.raises(attn.Error, match=r"v_descale: expected \(B, S\) of B 2 and an S that divides 2"):
        attn.attention(q, k, v, v_descale=torch.ones(2, 3))
    with pytest.raises(attn.Error, match=r"k_descale: expected one number, \(B, S\), got shape"):
        attn.attention(q, k, v, k_descale=torch.ones(2, 2, 6))
    with pytest.raises(attn.Error, match="k_descale: expected float32"):
        attn.attention(q, k, v, k_descale=ks.double())
    with pytest.raises(attn.Error, match="descale_block: expected a number of rows"):
        attn.attention(q, k, v, k_descale=torch.ones(2, 2, 6), descale_block=0)
    with pytest.raises(attn.Error, match="out_dtype: expected float16, bfloat16 or float32"):
        attn.attention(q, k, v, out_dtype=torch.float64)
    with pytest.raises(attn.Error, match="dropout_p: expected 0"):
        attn.attention(q, k, v, dropout_p=0.5)


@pytest.mark.parametrize("per", ["tensor", "head", 16])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_preparation(per, layout):
    """What is subtracted and rotated does not change the weights, and a mean of keys costs no bits."""
    q, k, v = make((2, 4, 70, 32), 0), make((2, 2, 90, 32), 1), make((2, 2, 90, 32), 2)
    k += 3 * make((1, 1, 1, 32), 3)
    exact = attend(q.double(), k.double(), v.double(), causal=True)[0]
    tensors = [x.transpose(1, 2) if layout == "bshd" else x for x in (q, k, v)]
    errors = []
    for how in ({}, {"smooth": True, "rotate": True}):
        prepared = attn.to_float8(*tensors, per=per, layout=layout, **how)
        assert prepared.q.dtype == torch.float8_e4m3fn and prepared.q.shape == tensors[0].shape
        got = attn.attention(*prepared[:3], causal=True, out_dtype=torch.float32, **prepared.how)
        got = got.transpose(1, 2) if layout == "bshd" else got
        errors.append(((got - exact).norm() / exact.norm()).item())
    assert errors[1] < 0.08 and errors[1] < 0.9 * errors[0]


def test_preparation_of_zeros_and_errors():
    q = torch.zeros(1, 1, 4, 16)
    prepared = attn.to_float8(q, q, q)
    assert torch.equal(attn.attention(*prepared[:3], **prepared.how), torch.zeros(1, 1, 4, 16, dtype=torch.bfloat16))
    with pytest.raises(attn.Error, match="rotate: expected a power of two"):
        attn.to_float8(*[torch.zeros(1, 1, 4, 48)] * 3, rotate=True)
    with pytest.raises(attn.Error, match='per: expected "tensor", "head" or a number of rows'):
        attn.to_float8(q, q, q, per="column")
    with pytest.raises(attn.Error, match="q, k and v: expected PyTorch tensors"):
        attn.to_float8(*[np.zeros((1, 1, 4, 16), "float32")] * 3)
    with pytest.raises(attn.Error, match="dtype: expected float8_e4m3fn"):
        attn.to_float8(q, q, q, dtype="float16")
