"""attn.integrations.torch.flex_attention inside of functions that torch.compile compiles whole."""

import pytest

import attn

torch = pytest.importorskip("torch")
from attn.integrations import torch as integration  # noqa: E402
from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402
from torch.nn.attention import flex_attention as flex  # noqa: E402

B, H, S, D = 2, 4, 40, 16


def make(length=S):
    return [torch.randn(B, H, length, D, requires_grad=True) for _ in range(3)]


class Counted:
    """A backend that counts the kernels that the graphs of forward and backward call."""

    def __init__(self):
        self.forward = self.backward = 0

    def __call__(self, graph, inputs):
        from functorch.compile import make_boxed_func
        from torch._dynamo.backends.common import aot_autograd

        def count(module, example):
            targets = [str(node.target) for node in module.graph.nodes]
            self.forward += targets.count("attn.record.default")
            self.backward += targets.count("attn.backward.default")
            return make_boxed_func(module.forward)

        return aot_autograd(fw_compiler=count)(graph, inputs)


def compare(call):
    torch._dynamo.reset()
    tensors, counted = make(), Counted()
    wanted = call(*tensors)
    output = torch.compile(call, backend=counted, fullgraph=True)(*tensors)
    assert torch.allclose(output, wanted, atol=1e-6)
    d_output = torch.randn_like(output)
    gradients = [torch.autograd.grad(x, tensors, d_output) for x in (output, wanted)]
    for got, x in zip(*gradients):
        assert torch.allclose(got, x, atol=1e-5)
    assert (counted.forward, counted.backward) == (1, 1)


BIAS, DOCUMENTS = torch.randn(H, 2 * S), torch.arange(S) // 15
CAUSAL = lambda b, h, i, j: i >= j
WINDOW = lambda b, h, i, j: i - j < 9
SAME = lambda b, h, i, j: DOCUMENTS[i] == DOCUMENTS[j]
HOW = {
    "masks": (None, flex.and_masks(SAME, flex.or_masks(CAUSAL, WINDOW))),
    "bias": (lambda s, b, h, i, j: s + BIAS[h, (i - j).abs().clamp(max=30)], None),
    "alibi": (lambda s, b, h, i, j: s + torch.exp2(-((h + 1) * 8.0 / H)) * (j - i), CAUSAL),
    "functions": (lambda s, b, h, i, j: 20 * torch.tanh(torch.nn.functional.relu(s) / 20), CAUSAL),
    "nothing": (None, flex.noop_mask),
}


@pytest.mark.parametrize("how", HOW)
def test_functions(how):
    score, mask = HOW[how]

    def call(q, k, v):
        block = mask and integration.create_block_mask(mask, B, H, S, S)
        return integration.flex_attention(q, k, v, score_mod=score, block_mask=block).sin()

    compare(call)


@pytest.mark.parametrize("dynamic", [None, False, True])
def test_sizes_of_captured_tensors(dynamic):
    """They are values of the call where shapes are dynamic."""
    last = lambda i: i.clamp(0, DOCUMENTS.shape[0] - 1)
    same = lambda b, h, i, j: DOCUMENTS[last(i)] == DOCUMENTS[last(j)]
    late = lambda b, h, i, j: j * H < BIAS.size(-1) + BIAS.size()[0] * i
    for mask in (same, late):
        block, tensors = flex.create_block_mask(mask, B, H, S, S, device="cpu"), make()
        wanted = flex.flex_attention(*[x.detach() for x in tensors], block_mask=block)
        call = integration.flex_attention
        assert torch.allclose(call(*tensors, block_mask=block), wanted, atol=1e-5)
        torch._dynamo.reset()
        call = torch.compile(call, backend="aot_eager", fullgraph=True, dynamic=dynamic)
        assert torch.allclose(call(*tensors, block_mask=block), wanted, atol=1e-5)


def test_block_mask_of_pytorch():
    block = flex.create_block_mask(CAUSAL, B, H, S, S, device="cpu")
    compare(lambda q, k, v: integration.flex_attention(q, k, v, block_mask=block) * 2)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Buffer(torch.randn(H, 200))
        self.out = torch.nn.Linear(D, D)
        self.window = 7

    def forward(self, q, k, v):
        n = q.shape[2]
        near = lambda b, h, i, j: (i >= j) & (i - j < self.window)
        score = lambda s, b, h, i, j: s + self.bias[h, i - j + n]
        block = integration.create_block_mask(near, None, None, n, n)
        return self.out(integration.flex_attention(q, k, v, score_mod=score, block_mask=block))


def test_a_module_of_any_length():
    torch._dynamo.reset()
    layer, backend = Layer(), CompileCounterWithBackend("inductor")
    compiled = torch.compile(layer, backend=backend, fullgraph=True, dynamic=True)
    for length in (40, 33, 21):
        tensors = make(length)
        wanted, output = layer(*tensors), compiled(*tensors)
        assert torch.allclose(output, wanted, atol=1e-5)
        of = (*tensors, layer.out.weight)
        for x, y in zip(*[torch.autograd.grad(z.square().sum(), of) for z in (output, wanted)]):
            assert torch.allclose(x, y, atol=1e-3)
    # The length is a value of the call, and so is what the buffer holds.
    assert backend.frame_count == 1
    layer.bias.mul_(2)
    assert torch.allclose(compiled(*tensors), layer(*tensors), atol=1e-5)


def test_lse():
    torch._dynamo.reset()
    call = lambda q, k, v: integration.flex_attention(
        q, k, v, score_mod=lambda s, b, h, i, j: s * 2, return_aux=flex.AuxRequest(lse=True)
    )
    tensors = make()
    wanted, aux = call(*tensors)
    output, got = torch.compile(call, backend="eager", fullgraph=True)(*tensors)
    assert torch.equal(output, wanted) and torch.equal(got.lse, aux.lse)


@pytest.mark.parametrize(
    "message, score",
    [
        ("got torch.special_bessel_j0", lambda s, b, h, i, j: torch.special.bessel_j0(s)),
        ("captured tensor of float16, bfloat16", lambda s, b, h, i, j: s * WIDE[h]),
    ],
    ids=["a function", "a parameter of f64"],
)
def test_refused(message, score):
    torch._dynamo.reset()
    call = lambda q, k, v: integration.flex_attention(q, k, v, score_mod=score)
    with pytest.raises(Exception) as error:
        torch.compile(call, backend="eager", fullgraph=True)(*make())
    assert message in str(error.value)


WIDE = torch.randn(H, dtype=torch.float64, requires_grad=True)


class Learned(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.slopes = torch.nn.Parameter(torch.rand(H))
        self.table = torch.nn.Parameter(torch.randn(H, 8))
        self.buckets = torch.nn.Buffer(torch.randint(0, 8, (S, S)))

    def forward(self, q, k, v):
        score = lambda s, b, h, i, j: (
            s - self.slopes[h] * (i - j).abs() + self.table[h, self.buckets[i, j]]
        )
        block = integration.create_block_mask(CAUSAL, None, None, S, S)
        return integration.flex_attention(q, k, v, score_mod=score, block_mask=block)

    def define(self, q, k, v):
        at = torch.arange(S)
        bias = self.table[:, self.buckets] - self.slopes[:, None, None] * (at[:, None] - at).abs()
        bias = bias.masked_fill(at[:, None] < at, -torch.inf)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, bias[None])


@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
def test_gradients_of_what_is_captured(is_compiled):
    torch._dynamo.reset()
    layer, tensors, counted = Learned(), make(), Counted()
    call = torch.compile(layer, backend=counted, fullgraph=True) if is_compiled else layer
    served = integration.served["flex_attention"]
    of = (*tensors, layer.slopes, layer.table)
    output, wanted = call(*tensors), layer.define(*tensors)
    assert torch.allclose(output, wanted, atol=1e-5)
    d_output = torch.randn_like(wanted)
    gradients = [torch.autograd.grad(x, of, d_output) for x in (output, wanted)]
    for got, x in zip(*gradients):
        assert torch.allclose(got, x, atol=1e-4)
    if is_compiled:
        assert (counted.forward, counted.backward) == (1, 1)
    else:
        assert integration.served["flex_attention"] == served + 1
