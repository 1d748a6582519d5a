"""PyTorch tensors on the CPU."""

import numpy as np
import pytest

import attn
import reference

torch = pytest.importorskip("torch")


def inputs(dtype=torch.float32, b=2, h=4, hkv=2, m=37, n=41, d=32):
    shapes = (b, h, m, d), (b, hkv, n, d), (b, hkv, n, d)
    return tuple(torch.randn(shape).to(dtype) for shape in shapes)


def in_f64(*tensors):
    return [x.double().numpy() for x in tensors]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_types(dtype):
    q, k, v = inputs(dtype)
    output, lse = attn.attention(q, k, v, causal=True, return_lse=True)
    assert output.dtype == dtype and lse.dtype == torch.float32 and output.is_contiguous()
    wanted, wanted_lse = reference.attention(*in_f64(q, k, v), causal="bottom_right")
    reference.check(output.double().numpy(), wanted, str(dtype)[6:])
    reference.check(lse.numpy(), wanted_lse, "float32")


def test_agrees_with_pytorch():
    q, k, v = inputs(m=64, n=64)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, is_causal=True, enable_gqa=True
    )
    assert torch.allclose(attn.attention(q, k, v, causal=True), wanted, atol=2e-5)


def test_transposed_views():
    q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs())
    reference.check(attn.attention(q, k, v).numpy(), reference.attention(*in_f64(q, k, v))[0])
    rows = [x.transpose(1, 2) for x in (q, k, v)]
    output = attn.attention(*rows, layout="bshd")
    reference.check(output.transpose(1, 2).numpy(), reference.attention(*in_f64(q, k, v))[0])


def test_expanded_keys():
    q, k, v = inputs(hkv=1)
    k, v = k.expand(2, 4, -1, -1), v.expand(2, 4, -1, -1)
    reference.check(attn.attention(q, k, v).numpy(), reference.attention(*in_f64(q, k, v))[0])


def test_every_call_may_have_another_layout():
    kernel = attn.compile("float32", 32, causal=True)
    rows = attn.compile("float32", 32, causal=True, layout="bshd")

    def check(q, k, v):
        wanted = reference.attention(*in_f64(q, k, v), causal="bottom_right")[0]
        for _ in range(2):
            output = kernel(q, k, v)
            assert output.shape == q.shape and output.is_contiguous()
            reference.check(output.numpy(), wanted)
            in_rows = [x.transpose(1, 2) for x in (q, k, v)]
            output = rows(*in_rows)
            assert output.is_contiguous()
            reference.check(output.transpose(1, 2).numpy(), wanted)
            # Here the two layouts share a kernel, and so what it remembers.
            reference.check(attn.attention(q, k, v, causal=True).numpy(), wanted)
            output = attn.attention(*in_rows, causal=True, layout="bshd")
            reference.check(output.transpose(1, 2).numpy(), wanted)

    q, k, v = inputs()
    check(q, k, v)
    check(q.clone(), k.clone(), v.clone())
    check(q, k[:, :, :40], v[:, :, :40])
    check(q[:, :, 1:], k, v)
    # The same shapes, other strides of one.
    for i in range(3):
        check(q, k, v)
        tensors = [q, k, v]
        tensors[i] = tensors[i].transpose(1, 2).contiguous().transpose(1, 2)
        check(*tensors)
    check(k, q[:, :2], q[:, :2])
    # Only the order of the dimensions tells these apart.
    x = torch.randn(2, 4, 4, 32)
    for layout in ("bhsd", "bshd", "bhsd"):
        y = x.numpy() if layout == "bhsd" else x.transpose(1, 2).numpy()
        wanted = reference.attention(y, y, y, causal="bottom_right")[0]
        output = attn.attention(x, x, x, causal=True, layout=layout)
        reference.check((output if layout == "bhsd" else output.transpose(1, 2)).numpy(), wanted)
    wanted = reference.attention(*in_f64(q, k, v), causal="bottom_right")[0]
    reference.check(kernel(q, k, v).numpy(), wanted)
    # What a NumPy array or a mistake leaves behind is not taken for the last layout.
    reference.check(kernel(*(x.numpy() for x in (q[:1], k[:1], v[:1]))), wanted[:1])
    reference.check(kernel(q, k, v).numpy(), wanted)
    for bad in (k[0], k[:, :, :, :16], k.double()):
        with pytest.raises(attn.Error):
            kernel(q, bad, v)
        reference.check(kernel(q, k, v).numpy(), wanted)


def test_shape_and_class_of_the_output():
    q, k, _ = inputs()
    kernel = attn.compile("float32", 32, 16)
    v = torch.randn(2, 2, 41, 16)
    output = kernel(q.transpose(0, 1).contiguous().transpose(0, 1), k, v)
    assert output.shape == (2, 4, 37, 16) and output.is_contiguous()
    assert kernel(q[:, :, :0], k, v).shape == (2, 4, 0, 16)

    class Named(torch.Tensor):
        pass

    output = kernel(q.as_subclass(Named), k, v)
    assert type(output) is Named and torch.equal(output.as_subclass(torch.Tensor), kernel(q, k, v))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_calls_take_the_short_way(monkeypatch, dtype):
    kernel = attn.compile(dtype, 32)
    monkeypatch.setattr(type(kernel._plan), "_put_arrays", None)
    q, k, v = inputs(dtype)
    assert kernel(q, k, v).shape == q.shape


def test_without_the_function_of_inductor(monkeypatch):
    monkeypatch.setattr(torch._C._dynamo, "guards", None)
    q, k, v = inputs()
    kernel = attn.compile("float32", 32)
    output = kernel(q, k, v)
    assert output.is_contiguous()
    reference.check(output.numpy(), reference.attention(*in_f64(q, k, v))[0])


def test_negated_views_are_refused():
    q, k, v = inputs()
    negated = torch.complex(k, k).conj().imag
    assert negated.is_neg() and negated.dtype == torch.float32
    with pytest.raises(attn.Error, match="k: expected a strided tensor"):
        attn.attention(q, negated, v)
    # No complex type has parts of bfloat16: those are not asked.
    types = [x for x in vars(torch).values() if isinstance(x, torch.dtype) and x.is_complex]
    assert torch.bfloat16 not in [x.to_real() for x in types]


def test_captured_tensors_and_functions():
    q, k, v = inputs()
    slopes, bias = torch.rand(4), torch.randn(4, 37, 41).to(torch.bfloat16)
    limit = torch.tensor(20)

    def score(s, b, h, q, kv):
        return torch.where(kv <= limit, torch.tanh(s) * slopes[h], s) + bias[h, q, kv]

    def plain(s, b, h, q, kv):
        x = np.tanh(s) * float(slopes[h]) if kv <= 20 else s
        return x + float(bias[h, q, kv])

    reference.check(
        attn.attention(q, k, v, score=score).numpy(),
        reference.attention(*in_f64(q, k, v), score=plain)[0],
    )


def test_a_score_written_for_flex_attention():
    q, k, v = inputs(hkv=4, m=40, n=40)

    def causal(score, b, h, q_idx, kv_idx):
        return torch.where(q_idx >= kv_idx, score, -float("inf"))

    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(attn.attention(q, k, v, score=causal), wanted, atol=2e-5)


def test_documents():
    q, k, v = inputs(m=41)
    ids = torch.sort(torch.randint(0, 4, (2, 41)), dim=1).values
    sorted_ids = attn.assume_sorted(ids)
    output = attn.attention(q, k, v, mask=lambda b, h, q, kv: sorted_ids[b, q] == sorted_ids[b, kv])
    plain = ids.numpy()
    wanted = reference.attention(
        *in_f64(q, k, v), mask=lambda b, h, q, kv: plain[b, q] == plain[b, kv]
    )[0]
    reference.check(output.numpy(), wanted)


def test_sink_of_bf16():
    q, k, v = inputs()
    sink = torch.randn(4).to(torch.bfloat16)
    wanted = reference.attention(*in_f64(q, k, v), sink=sink.double().numpy())[0]
    reference.check(attn.attention(q, k, v, sink=sink).numpy(), wanted)


def test_gradients_are_refused():
    q, k, v = inputs()
    q.requires_grad_()
    with pytest.raises(attn.Error, match="q: expected a tensor without gradient"):
        attn.attention(q, k, v)
    with torch.no_grad():
        attn.attention(q, k, v)


def test_other_devices_are_refused():
    q, k, v = (x.to("meta") for x in inputs())
    with pytest.raises(
        attn.Error, match="q: expected a tensor on the CPU or a CUDA device, got one on meta"
    ) as error:
        attn.attention(q, k, v)
    assert error.value.code == "no device"


def test_kernel_of_a_torch_type():
    kernel = attn.compile(torch.bfloat16, 32, causal=True)
    q, k, v = inputs(torch.bfloat16)
    wanted = reference.attention(*in_f64(q, k, v), causal="bottom_right")[0]
    reference.check(kernel(q, k, v).double().numpy(), wanted, "bfloat16")
