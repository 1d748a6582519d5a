"""PyTorch's operators on a GPU, of libattn_torch.so where that is there: the same bits as those of Python."""

import pytest

import attn
from attn import _written

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
from attn import _operator  # noqa: E402  It imports PyTorch.
from same_bits import check_same  # noqa: E402

B, H, HKV, M, N, D = 2, 8, 2, 300, 333, 64
PLAIN = [True, True, True, False]


def make(dtype=torch.bfloat16, rows_first=False, everything=False):
    shapes = (B, H, M, D), (B, HKV, N, D), (B, HKV, N, D)
    tensors = [torch.randn(shape, device="cuda").to(dtype) for shape in shapes]
    if rows_first:
        tensors = [x.transpose(1, 2).contiguous() for x in tensors]
    if not everything:
        kernel = attn.compile(dtype, D, device="cuda", causal=True)
        return (*tensors, None, None, _written.write_source(kernel._plan), None, rows_first)
    table = torch.randn(H, N, device="cuda")
    kernel = attn.compile(
        dtype,
        D,
        device="cuda",
        scale=True,
        sink=True,
        score=lambda s, b, h, i, j: s + table[h, j],
    )
    sink = torch.randn(H, device="cuda")
    return (*tensors, sink, [table], _written.write_source(kernel._plan), 0.2, rows_first)


def make_backward(call, wanted, d_lse=None):
    q, k, v, sink, captures, *last = call
    output, lse, low = torch.ops.attn.record(*call)
    given = q, k, v, sink, captures, output, lse
    return (torch.randn_like(output), d_lse, *given, *last, wanted, low)


@pytest.fixture
def in_order():
    """Sums of gradients in one order, so that bits can be compared."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("rows_first", [False, True])
def test_the_same_bits_as_python(in_order, dtype, rows_first):
    call = make(dtype, rows_first)
    for name, python in (("forward", _operator._forward), ("record", _operator._record)):
        check_same(getattr(torch.ops.attn, name)(*call), python(*call))
        check_same(getattr(torch.ops.attn, f"{name}_plain")(*call), python(*call))
    for d_lse in (None, torch.randn(B, H, M, device="cuda")):
        for wanted in (PLAIN, [False, True, False, False]):
            given = make_backward(call, wanted, d_lse)
            check_same(torch.ops.attn.backward(*given), _operator.backward(*given))
            check_same(torch.ops.attn.backward_plain(*given), _operator.backward(*given))


def test_everything(in_order):
    call = make(everything=True)
    recorded = torch.ops.attn.record(*call)
    assert recorded[2].shape == (B, H, M)
    check_same(recorded, _operator._record(*call))
    given = make_backward(call, [*[True] * 4, False])
    check_same(torch.ops.attn.backward(*given), _operator.backward(*given))
    # Of the captured tensor, sums come in any order.
    given = make_backward(call, [*[False] * 4, True])
    for x, y in zip(torch.ops.attn.backward(*given), _operator.backward(*given)):
        assert torch.allclose(x, y, atol=1e-3, rtol=1e-3)


def test_results_that_are_given():
    call = make()
    output, lse = torch.ops.attn.forward(*call)
    results = torch.zeros_like(output), torch.zeros_like(lse)
    torch.ops.attn.forward_out(*call, output=results[0], lse=results[1])
    check_same(results, (output, lse))


def test_current_stream():
    call = make()
    wanted = torch.ops.attn.record(*call)
    given = make_backward(call, PLAIN)
    gradients = torch.ops.attn.backward(*given)
    torch.cuda.synchronize()
    before = call[0].clone()
    call[0].zero_()
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        call[0].copy_(before)
        found, others = torch.ops.attn.record(*call), torch.ops.attn.backward(*given)
        # Queued after the sleep, and only queued.
        assert not stream.query()
    stream.synchronize()
    check_same(found[:2], wanted[:2])
    for x, y in zip(others, gradients):
        assert torch.allclose(x, y, atol=1e-2, rtol=1e-2)


def test_graph():
    call = make()
    given = make_backward(call, PLAIN)
    torch.ops.attn.backward(*given)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = torch.ops.attn.record(*call)
        gradients = torch.ops.attn.backward(*given)
    for x in (*found[:2], *gradients):
        x.zero_()
    graph.replay()
    torch.cuda.synchronize()
    check_same(found[:2], torch.ops.attn.record(*call)[:2])
    for x, y in zip(gradients, torch.ops.attn.backward(*given)):
        assert torch.allclose(x, y, atol=1e-2, rtol=1e-2)


def test_allocates_only_the_results():
    call = make()
    torch.ops.attn.record(*call)
    before = torch.cuda.memory_allocated()
    results = torch.ops.attn.record(*call)
    blocks = sum(-(-x.numel() * x.element_size() // 512) * 512 for x in results)
    assert torch.cuda.memory_allocated() - before == blocks


def test_tensors_of_other_devices():
    q, k, v, *rest = make()
    message = "k: expected a tensor on cuda:0, got one on cpu"
    with pytest.raises((attn.Error, RuntimeError), match=message):
        torch.ops.attn.record(q, k.cpu(), v, *rest)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_models_learn(is_compiled):
    q, k, v = [x.requires_grad_() for x in make()[:3]]
    call = lambda q, k, v: attn.attention(q * 2, k, v, causal="top_left")  # noqa: E731
    found = (torch.compile(call, fullgraph=True) if is_compiled else call)(q, k, v)
    d_output = torch.randn_like(found)
    got = torch.autograd.grad(found, (q, k, v), d_output)
    each = [x.detach().float().requires_grad_() for x in (q, k, v)]
    output = torch.nn.functional.scaled_dot_product_attention(
        each[0] * 2, *each[1:], is_causal=True, enable_gqa=True
    )
    for x, y in zip(got, torch.autograd.grad(output, each, d_output.float())):
        assert (x.float() - y).abs().max() < 0.02 * y.abs().max()
