"""The drop-ins of attn.integrations.torch where PyTorch's machinery looks at the call: patches, modes,
classes of tensors, TorchScript, transforms, chosen kernels, and the order of results in memory."""

import itertools
import threading

import pytest

torch = pytest.importorskip("torch")
from attn.integrations import torch as integration  # noqa: E402
from torch._dynamo.testing import CompileCounter  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.nn.attention import flex_attention as flex  # noqa: E402
from torch.nn.attention.bias import causal_lower_right, causal_upper_left  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

F = torch.nn.functional
sdpa = F.scaled_dot_product_attention


def make(m=5, n=9, dtype=torch.float32):
    shapes = (2, 3, m, 8), (2, 3, n, 8), (2, 3, n, 8)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def check_with_gradients(call, tensors, tolerance=1e-5):
    """`call` of attn's function and of PyTorch's."""
    output, wanted = call(integration.scaled_dot_product_attention), call(sdpa)
    assert torch.allclose(output, wanted, atol=tolerance)
    d_output = torch.randn_like(wanted)
    gradients = [torch.autograd.grad(x, tensors, d_output) for x in (output, wanted)]
    for got, x in zip(*gradients):
        assert torch.allclose(got, x, atol=10 * tolerance)


# ===- patch ------------------------------------------------------------------------------------===#


@pytest.mark.parametrize("make_bias", [causal_upper_left, causal_lower_right])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_causal_biases_while_patched(make_bias, dtype):
    tensors, bias = make(dtype=dtype), make_bias(5, 9)
    wanted = sdpa(*tensors, attn_mask=bias)
    with integration.patch():
        got = F.scaled_dot_product_attention(*tensors, attn_mask=bias)
        with pytest.raises(ValueError, match="CausalBias should not be used"):
            F.scaled_dot_product_attention(*tensors, attn_mask=bias, is_causal=True)
    assert torch.allclose(got, wanted, atol=1e-5)
    d_output = torch.randn_like(wanted)
    for x, y in zip(*[torch.autograd.grad(z, tensors, d_output) for z in (got, wanted)]):
        assert torch.allclose(x, y, atol=1e-5)


class Mine(torch.Tensor):
    """Asked for PyTorch's function, as it was or as it is found there."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is sdpa and function is F.scaled_dot_product_attention:
            return "answered by the class"
        return super().__torch_function__(function, types, args, kwargs or {})


class Watch(TorchFunctionMode):
    calls = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.calls += function is F.scaled_dot_product_attention
        return function(*args, **(kwargs or {}))


def test_classes_and_modes_are_asked():
    x = torch.randn(1, 2, 4, 8)
    y = x.as_subclass(Mine)
    with integration.patch():
        assert F.scaled_dot_product_attention(y, y, y) == "answered by the class"
        served = integration.served.total()
        with Watch() as watch:
            got = F.scaled_dot_product_attention(x, x, x)
        assert (watch.calls, integration.served.total()) == (1, served + 1)
        assert F.scaled_dot_product_attention is integration.scaled_dot_product_attention
    assert F.scaled_dot_product_attention is sdpa
    assert torch.allclose(got, sdpa(x, x, x), atol=1e-5)


def test_undone_while_a_class_is_asked():
    class Slow(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if function is sdpa:
                asked.set()
                undone.wait(10)
            return super().__torch_function__(function, types, args, kwargs or {})

    asked, undone, patch = threading.Event(), threading.Event(), integration.patch()
    x = torch.randn(1, 2, 4, 8).as_subclass(Slow)
    thread = threading.Thread(target=lambda: integration.scaled_dot_product_attention(x, x, x))
    thread.start()
    assert asked.wait(10)
    patch.undo()
    undone.set()
    thread.join()
    assert F.scaled_dot_product_attention is sdpa


def test_nested_tensors_while_patched():
    parts = [torch.randn(n, 2, 8) for n in (3, 5)]
    x = torch.nested.nested_tensor(parts, layout=torch.jagged).transpose(1, 2)
    with integration.patch():
        got = F.scaled_dot_product_attention(x, x, x)
    for part, y in zip(parts, got.transpose(1, 2).unbind()):
        part = part.transpose(0, 1)
        assert torch.allclose(y.transpose(0, 1), sdpa(part, part, part), atol=1e-5)


class Model(torch.nn.Module):
    def forward(self, q: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, q, q, is_causal=True)


@pytest.mark.filterwarnings("ignore")
def test_torch_script_while_patched():
    q = torch.randn(1, 2, 5, 8)
    wanted = Model()(q)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    x = torch.randn(2, 5, 8)
    of_layer, before = layer(x), integration.fallbacks["torch.jit.trace"]
    with integration.patch():
        traced, scripted = torch.jit.trace(Model(), (q,)), torch.jit.script(Model())
        assert integration.fallbacks["torch.jit.trace"] > before
        assert torch.allclose(torch.jit.script(layer)(x), of_layer, atol=1e-5)
    for model in (traced, scripted):
        assert "aten::scaled_dot_product_attention" in str(model.inlined_graph)
        assert torch.allclose(model(q), wanted, atol=1e-5)


# ===- Transforms and kernels that were chosen --------------------------------------------------===#


def test_vmap_with_a_mapped_mask():
    q, k, v = (torch.randn(3, 2, 5, 8, requires_grad=True) for _ in range(3))
    keep, bias = torch.rand(3, 5, 5) > 0.4, torch.randn(3, 5, 5)
    keep[..., 0] = True
    masked = lambda f: lambda q, k, v, mask: f(q, k, v, attn_mask=mask)
    inside = lambda f: lambda q, k, v: f(
        q, k, v, attn_mask=q.new_ones(5, 5, dtype=torch.bool).tril()
    )
    of = q, k, v
    check_with_gradients(lambda f: torch.vmap(masked(f))(q, k, v, keep), of)
    check_with_gradients(lambda f: torch.vmap(masked(f))(q, k, v, bias), of)
    check_with_gradients(lambda f: torch.vmap(inside(f))(q, k, v), of)
    only_mask = lambda f: torch.vmap(masked(f), in_dims=(None, None, None, 0))(q, k, v, bias)
    check_with_gradients(only_mask, of)


def test_the_kernel_with_second_derivatives():
    q = torch.randn(1, 2, 5, 8, requires_grad=True)

    def penalty():
        output = F.scaled_dot_product_attention(q, q, q)
        (gradient,) = torch.autograd.grad(output.sum(), q, create_graph=True)
        return torch.autograd.grad(gradient.pow(2).sum(), q)[0]

    def tangent():
        call = lambda q: F.scaled_dot_product_attention(q, q, q)
        return torch.func.jvp(call, (q.detach(),), (torch.ones_like(q),))[1]

    with sdpa_kernel(SDPBackend.MATH):
        wanted = penalty(), tangent()
        with integration.patch():
            got = penalty(), tangent()
    for x, y in zip(got, wanted):
        assert torch.allclose(x, y, atol=1e-4)


def test_calls_in_graphs_are_compiled_once():
    torch._dynamo.reset()
    counted = CompileCounter()
    call = torch.compile(
        lambda q, k, v, mask: integration.scaled_dot_product_attention(q, k, v, mask),
        backend=counted,
        fullgraph=True,
    )
    tensors, mask = [x.detach() for x in make()], torch.randn(5, 9)
    for _ in range(3):
        assert torch.allclose(call(*tensors, mask), sdpa(*tensors, mask), atol=1e-5)
    assert counted.frame_count == 1


# ===- Order in memory -------------------------------------------------------------------------===#


def place(shape, permutation):
    """A tensor of that shape whose dimensions lie in that order, the outermost first."""
    inverse = [permutation.index(i) for i in range(len(shape))]
    return torch.randn([shape[i] for i in permutation]).permute(inverse)


def test_results_lie_as_those_of_pytorch():
    k, v = torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 4)
    calls = {
        "sdpa": (integration.scaled_dot_product_attention, sdpa),
        "flex": (integration.flex_attention, flex.flex_attention),
    }
    for permutation in itertools.permutations(range(4)):
        q = place((2, 3, 5, 8), permutation)
        for name, (ours, theirs) in calls.items():
            if name == "flex" and permutation[-1] != 3:
                continue
            got, wanted = ours(q, k, v), theirs(q, k, v)
            assert got.stride() == wanted.stride(), (name, permutation)
            assert torch.allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("has_mask", [False, True], ids=["plain", "masked"])
def test_heads_are_joined_without_a_copy(is_compiled, has_mask):
    torch._dynamo.reset()
    tensors = [torch.randn(2, 5, 3, 8, requires_grad=True) for _ in range(3)]
    mask = torch.rand(5, 5) < 0.7 if has_mask else None

    def join(function):
        output = function(*[x.transpose(1, 2) for x in tensors], attn_mask=mask)
        return output.transpose(1, 2).view(2, 5, 24)

    def call(function):
        is_ours = is_compiled and function is not sdpa
        how = dict(backend="aot_eager", fullgraph=True)
        return torch.compile(join, **how)(function) if is_ours else join(function)

    check_with_gradients(call, tensors)
