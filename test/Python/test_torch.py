"""PyTorch tensors on the CPU."""

import os

import numpy as np
import pytest

import attn
import reference
from attn import _direct, _library, _log, _plan
from attn._scan import Scan

torch = pytest.importorskip("torch")
forward_ad = pytest.importorskip("torch.autograd.forward_ad")


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


has_extension = pytest.mark.skipif(
    os.environ.get("CI") != "true"
    and (_direct.extension is None or not hasattr(torch.Tensor, "__dlpack_c_exchange_api__")),
    reason="calls of plain tensors take the general way",
)


@has_extension
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_calls_take_the_short_way(monkeypatch, dtype, layout):
    q, k, v = inputs(dtype, hkv=4)
    bias = torch.nn.Parameter(torch.randn(4))
    kept = torch.randint(0, 2, (41,), dtype=torch.bool)
    sink = torch.randn(4)
    kernel = attn.compile(
        dtype,
        32,
        scale=True,
        sink=True,
        return_lse=True,
        layout=layout,
        score=lambda s, b, h, i, j: s + bias[h],
        mask=lambda b, h, i, j: kept[j],
    )
    tensors = [x.transpose(1, 2) if layout == "bshd" else x for x in (q, k, v)]
    with torch.no_grad():
        monkeypatch.setattr(type(kernel._plan), "direct", _direct.take_nothing)
        wanted = kernel(*tensors, scale=0.5, sink=sink)
        monkeypatch.undo()
        monkeypatch.setattr(_plan, "Tensors", None)
        got = kernel(*tensors, scale=0.5, sink=sink)
    assert [x.shape for x in got] == [x.shape for x in wanted]
    assert all(map(torch.equal, got, wanted)) and got[0].is_contiguous()


@has_extension
def test_what_does_not_take_the_short_way():
    q, k, v = inputs()
    bias = torch.randn(4, 5)
    plain = attn.compile("float32", 32)
    kernel = attn.compile("float32", 32, scale=True, score=lambda s, b, h, i, j: s + bias[h, 4])
    assert plain(q, k, v) is not None and kernel(q, k, v, scale=1.0) is not None

    def direct(q=q, k=k, v=v, scale=1.0, sink=None, captured=bias, is_operator=False, out=None):
        how = scale, sink, [captured], False, is_operator, out
        return kernel._plan.direct(q, k, v, *how)

    assert isinstance(direct(), torch.Tensor)
    recorded = q.clone().requires_grad_()
    negative = torch.complex(q, q).conj().imag
    for refused in (
        direct(q=q.numpy()),
        direct(q=q.half()),
        direct(k=k[0]),
        direct(v=v.to_sparse()),
        direct(q=negative),
        direct(q=q.to("meta")),
        direct(q=recorded),
        direct(k=k[..., ::2]),
        direct(scale=None),
        direct(scale=1),
        direct(scale=1e300),
        direct(sink=torch.zeros(4)),
        direct(captured=bias.numpy()),
        direct(captured=bias.double()),
        direct(captured=bias[:, :4]),
        direct(captured=torch.nn.Parameter(bias)),
        direct(out=recorded),
        direct(out=q[:1]),
        direct(out=(q.clone(), torch.zeros(2, 4, 37))),
    ):
        assert refused is None
    with torch.no_grad():
        assert torch.equal(direct(q=recorded), direct())
    assert torch.equal(direct(q=recorded, is_operator=True), direct())
    with torch.autocast("cpu", torch.bfloat16):
        assert direct() is None
    with torch.profiler.profile():
        assert direct() is None and direct(is_operator=True) is not None
    with torch.autograd.forward_ad.dual_level():
        assert direct() is None and direct(is_operator=True) is None
    with pytest.raises(TypeError, match="expected 9 arguments, got 3"):
        plain._plan.direct(q, k, v)
    with pytest.raises(TypeError, match="expected 3 arguments, got 0"):
        _direct.launch()


@has_extension
def test_more_than_the_short_way_has_room_for():
    q, k, v = inputs()
    shifts = [torch.randn(4) for _ in range(17)]
    score = lambda s, b, h, i, j: s + sum(x[h] for x in shifts)  # noqa: E731
    kernel = attn.compile("float32", 32, score=score)
    assert kernel(q, k, v).shape == q.shape and kernel._plan.direct is _direct.take_nothing


def test_without_the_extension(monkeypatch):
    q, k, v = inputs()
    bias = torch.randn(1, 1, 1, 1, 1, 1, 1, 1, 4)
    score = lambda s, b, h, i, j: s * 2 + bias[0, 0, 0, 0, 0, 0, 0, 0, h]  # noqa: E731
    wanted = attn.attention(q, k, v, score=score, scale=0.5)
    monkeypatch.setattr(_direct, "extension", None)
    monkeypatch.setattr(_direct, "launch", _direct.take_nothing)
    kernel = attn.compile("float32", 32, score=score, scale=True)
    assert torch.equal(kernel(q, k, v, scale=0.5), wanted)
    assert kernel._plan.direct is _direct.take_nothing


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
    # PyTorch 2.15 has a complex type of bfloat16, which nothing computes with yet.
    negated = k.bfloat16()._neg_view()
    if _direct._has_complex_bf16(torch):
        with pytest.raises(attn.Error, match="k: expected a strided tensor"):
            attn.attention(q.bfloat16(), negated, v.bfloat16())


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


def refused(message, call, hint=""):
    with pytest.raises(attn.Error) as error:
        call()
    assert message in error.value.message and hint in error.value.hint, str(error.value)
    assert "\n" not in str(error.value)


def test_tangents_are_refused():
    q, k, v = inputs()
    slopes = torch.rand(4)
    with forward_ad.dual_level():
        for i, name in enumerate("qkv"):
            tensors = [q, k, v]
            tensors[i] = forward_ad.make_dual(tensors[i], torch.ones_like(tensors[i]))
            message = f"{name}: expected a tensor without tangent"
            refused(message, lambda: attn.attention(*tensors), "primal")
        dual = forward_ad.make_dual(slopes, slopes)
        score = lambda s, b, h, q, kv: s * dual[h]  # noqa: E731
        refused(
            "dual: expected a tensor without tangent", lambda: attn.attention(q, k, v, score=score)
        )
        scale = forward_ad.make_dual(torch.tensor(0.5), torch.tensor(1.0))
        refused(
            "scale: expected a tensor without tangent", lambda: attn.attention(q, k, v, scale=scale)
        )
        attn.attention(q, k, v)


def test_a_learned_scale():
    q, k, v = inputs()
    scale = torch.nn.Parameter(torch.tensor(0.5))
    refused(
        "scale: expected a tensor without gradient", lambda: attn.attention(q, k, v, scale=scale)
    )
    wanted = attn.attention(q, k, v, scale=0.5)
    with torch.no_grad():
        assert torch.equal(attn.attention(q, k, v, scale=scale), wanted)
    for number in (torch.tensor([0.5]), np.float32(0.5), np.array(0.5)):
        assert torch.equal(attn.attention(q, k, v, scale=number), wanted)
    refused("scale: expected a number", lambda: attn.attention(q, k, v, scale=torch.ones(2)))
    refused("scale: expected a number", lambda: attn.attention(q, k, v, scale=True))
    refused("scale: expected a number that f32 holds", lambda: attn.attention(q, k, v, scale=1e300))


def test_tangents_are_refused():
    q, k, v = inputs()
    call = lambda x: attn.attention(x, k, v)  # noqa: E731
    refused("q: expected", lambda: torch.func.jvp(call, (q,), (q,)), "use backward()")
    # Nothing is mutated.
    assert torch.equal(torch.func.functionalize(call)(q), call(q))


def test_tensors_without_memory_are_refused():
    q, k, v = inputs()
    nested = torch.nested.nested_tensor([q[0], q[1]], layout=torch.jagged)
    refused("got a NestedTensor", lambda: attn.attention(nested, k, v), "padded")


def test_autocast():
    q, k, v = inputs()
    wanted = attn.attention(*(x.bfloat16() for x in (q, k, v)))
    kernels = attn.compile("bfloat16", 32), attn.compile("float32", 32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(attn.attention(q, k.bfloat16(), v), wanted)
        assert torch.equal(kernels[0](q, k, v), wanted)
        # A kernel of another type was asked for by name.
        assert kernels[1](q, k, v).dtype == torch.float32
        refused("got torch.float64", lambda: attn.attention(q.double(), k.double(), v.double()))
    assert attn.attention(q, k, v).dtype == torch.float32


def test_tracing_of_torch_jit_is_refused():
    q, k, v = inputs()
    kernel = attn.compile("float32", 32)
    for call in (lambda x: attn.attention(x, k, v), lambda x: kernel(x, k, v)):
        refused(
            "got one inside torch.jit.trace", lambda: torch.jit.trace(call, (q,)), "torch.export"
        )


def test_as_many_threads_as_pytorch():
    before = torch.get_num_threads()
    try:
        for count in (1, 2, 1):
            torch.set_num_threads(count)
            attn.attention(*inputs())
            assert _library.library.attn_get_num_threads() == count
    finally:
        torch.set_num_threads(before)


def test_compile_with_graph_breaks():
    q, k, v = inputs(hkv=4, n=37)

    def f(q, bias):
        return (
            attn.attention(q * 2, k, v[:, :, :37], score=lambda s, b, h, m, n: s + bias[m, n]) + 1
        )

    compiled = torch.compile(f, backend="eager")
    for _ in range(2):
        bias = torch.randn(37, 37)
        assert torch.equal(compiled(q, bias), f(q, bias))
    kernel = attn.compile("float32", 32)
    compiled = torch.compile(lambda q: kernel(q * 2, k, v) + 1, backend="eager")
    assert torch.equal(compiled(q), kernel(q * 2, k, v) + 1)
    with pytest.raises(Exception, match="traces Python functions itself"):
        torch.compile(lambda q: kernel(q, k, v), backend="eager", fullgraph=True)(q)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bias", torch.randn(4, 128))
        self.inner = torch.nn.Linear(4, 4).requires_grad_(False)
        self.alpha = 0.5

    def function(self):
        return (
            lambda s, b, h, m, n: (s + self.bias[h, m - n + 64]) * self.alpha + self.inner.bias[h]
        )

    def forward(self, s, b, h, m, n):
        return self.function()(s, b, h, m, n)


def test_functions_of_modules():
    q, k, v = inputs()
    layer = Layer()
    score = layer.function()
    kernels = _log.count_compiled()
    for _ in range(2):
        layer.alpha += 1
        for _ in range(2):
            bias = layer.bias.double().numpy()
            inner, alpha = layer.inner.bias.double().numpy(), layer.alpha
            plain = lambda s, b, h, m, n: (s + bias[h, m - n + 64]) * alpha + inner[h]  # noqa: E731
            wanted = reference.attention(*in_f64(q, k, v), score=plain)[0]
            reference.check(attn.attention(q, k, v, score=score).numpy(), wanted)
            layer.bias.mul_(0.5)
    assert not Scan(score).is_volatile and _log.count_compiled() == kernels + 2
    bias = layer.bias.double().numpy()
    wanted = reference.attention(*in_f64(q, k, v), score=plain)[0]
    reference.check(attn.attention(q, k, v, score=Forward(layer)).numpy(), wanted)


class Forward(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, s, b, h, m, n):
        layer = self.layer
        return (s + layer.bias[h, m - n + 64]) * layer.alpha + layer.inner.bias[h]


def test_masks_of_pytorch_and_of_hugging_face():
    from torch.nn.attention.flex_attention import and_masks, noop_mask, or_masks

    q, k, v = inputs()

    def causal(b, h, m, n):
        return n <= m

    def anti(b, h, m, n):
        return n >= m

    def and_of_hugging_face(*functions):
        def mask(b, h, m, n):
            result = m.new_ones((), dtype=torch.bool)
            for function in functions:
                result = result & function(b, h, m, n).to(result.device)
            return result

        return mask

    padding = torch.rand(2, 41) > 0.3
    first = lambda b, h, m, n: n < 3  # noqa: E731
    for mask, keep in (
        (and_masks(causal, noop_mask), causal),
        (and_masks(anti, noop_mask), anti),
        (or_masks(causal, first), lambda b, h, m, n: n <= m or n < 3),
        (
            and_of_hugging_face(causal, lambda b, h, m, n: padding[b, n]),
            lambda b, h, m, n: n <= m and bool(padding[b, n]),
        ),
    ):
        assert not Scan(mask).is_volatile
        wanted = reference.attention(*in_f64(q, k, v), mask=keep)[0]
        reference.check(attn.attention(q, k, v, mask=mask).numpy(), wanted)


def test_conversions_of_indices():
    q, k, v = inputs()

    def score(s, b, h, m, n):
        x = s.to(torch.float32) + m.float() / 8 + (n > 3).int() + n.new_zeros(())
        return x + m.new_full((), 2, dtype=torch.int64) - n.new_tensor(2.0)

    plain = lambda s, b, h, m, n: s + m / 8 + (n > 3)  # noqa: E731
    wanted = reference.attention(*in_f64(q, k, v), score=plain)[0]
    reference.check(attn.attention(q, k, v, score=score).numpy(), wanted)
    whole = lambda s, b, h, m, n: np.trunc(s)  # noqa: E731
    wanted = reference.attention(*in_f64(q, k, v), score=whole)[0]
    got = attn.attention(q, k, v, score=lambda s, b, h, m, n: s.long())
    reference.check(got.numpy(), wanted)
    message = "expected one element, got new tensors of shape (2, 3)"
    refused(message, lambda: attn.attention(q, k, v, score=lambda s, b, h, m, n: s.new_ones(2, 3)))


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
