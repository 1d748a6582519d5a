"""Kernels that calls on a GPU choose by their shapes. Skipped without one, as test_cuda.py is."""

import pytest

import attn

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
if torch.cuda.get_device_capability() != (9, 0):
    pytest.skip("no device of compute capability 9.0", allow_module_level=True)

from cuda_reference import (  # noqa: E402  (needs PyTorch)
    DEVICE,
    check,
    check_gradients,
    gradients,
    recorded,
    reference,
)


@pytest.mark.parametrize("d", [64, 128, 96, 256])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize(
    "shape", [(2, 8, 2, 1, 300), (1, 12, 2, 5, 129), (1, 8, 1, 8, 77), (2, 6, 2, 17, 64), (2, 3, 3, 2, 1500)]
)
def test_few_rows_of_grouped_heads(shape, layout, d):
    """Heads of a group share tiles where they fit, which the last but one does not; in the last each has
    keys of its own."""
    batch, heads, key_heads, rows, keys = shape
    torch.manual_seed(rows)
    q = torch.randn(batch, heads, rows, d, device="cuda", dtype=torch.bfloat16)
    k, v = (
        torch.randn(batch, key_heads, keys, d, device="cuda", dtype=torch.bfloat16)
        for _ in range(2)
    )
    given = [x.transpose(1, 2).contiguous() if layout == "bshd" else x for x in (q, k, v)]
    out = attn.attention(*given, causal="bottom_right", layout=layout)
    out = out.transpose(1, 2) if layout == "bshd" else out
    kk, vv = (x.double().repeat_interleave(heads // key_heads, 1) for x in (k, v))
    drop = torch.ones(rows, keys, dtype=torch.bool, device="cuda").triu(keys - rows + 1)
    wanted = (q.double() @ kk.mT / d**0.5).masked_fill(drop, -torch.inf).softmax(-1) @ vv
    torch.testing.assert_close(out.double(), wanted, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("d, dv", [(64, 64), (128, 128), (80, 40), (256, 192)])
@pytest.mark.parametrize("m, n", [(1, 2049), (100, 3000), (128, 4096), (300, 77), (1025, 154)])
def test_few_rows_or_keys(d, dv, m, n):
    """Calls with another kernel, also where autograd records them."""
    tensors = recorded(m=m, n=n, d=d, dv=dv, h=2)
    with torch.no_grad():
        check(attn.attention(*tensors), reference(*tensors)[0])
    output = attn.attention(*tensors)
    d_output = torch.randn_like(output)
    got = torch.autograd.grad(output, tensors, d_output)
    check_gradients(got, gradients(tensors, d_output))


@pytest.mark.parametrize("how", [{}, {"causal": True}, {"window": (300, 0)}])
@pytest.mark.parametrize(
    "heads, rows, keys", [((8, 2), 1, 700), ((8, 2), 5, 90), ((2, 2), 9, 2500), ((4, 2), 300, 77), ((4, 2), 300, 300)]
)
def test_graphs_choose_as_calls_do(how, heads, rows, keys):
    """The operator of a graph that was traced for any lengths takes the kernel that the call takes: the
    same bits."""
    torch._dynamo.reset()
    graph = torch.compile(
        lambda *x: attn.attention(*x, **how), backend="aot_eager", fullgraph=True, dynamic=True
    )
    for length in (keys, keys + 1):
        q = torch.randn(2, heads[0], rows, 64, device=DEVICE).bfloat16()
        k, v = (torch.randn(2, heads[1], length, 64, device=DEVICE).bfloat16() for _ in range(2))
        assert torch.equal(graph(q, k, v), attn.attention(q, k, v, **how))


def make(batch, heads, key_heads, rows, keys, d=128):
    q = torch.randn(batch, heads, rows, d, device=DEVICE).bfloat16()
    k, v = (torch.randn(batch, key_heads, keys, d, device=DEVICE).bfloat16() for _ in range(2))
    return q, k, v


# Calls of one attention and the kernels that they take; an H100 has no narrow tiles.
CALLS = [
    ((1, 32, 8, 1, 8192), "packed4"),
    ((16, 32, 8, 1, 2048), "packed4-whole"),
    ((1, 4, 4, 1, 4096), "packed2"),
    ((1, 8, 8, 100, 4096), "few"),
    ((2, 8, 8, 1024, 77), "narrow"),
    ((1, 8, 8, 1024, 1024), ""),
]


@pytest.mark.parametrize("shape, way", CALLS)
def test_captures_take_what_is_ready(shape, way):
    """A call that is captured compiles nothing; after prepare() a graph holds the kernel of the call."""
    kernel = attn.compile("bfloat16", 128, device="cuda", options={"lazy": True, "cache": "off"})
    given = make(*shape)
    reads_fast = torch.cuda.get_device_properties(0).total_memory >= 100 << 30
    assert kernel.way(*given) == (way if way != "narrow" or reads_fast else "")
    out = torch.empty_like(given[0])
    with pytest.raises(attn.Error, match=r"ready before the stream is captured.*prepare\(\)"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            kernel(*given, out=out)
    kernel.prepare(*given)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(*given, out=out)
    out.fill_(torch.nan)
    graph.replay()
    assert torch.equal(out, attn.attention(*given))
    check(out, reference(*given)[0])


@pytest.mark.parametrize("shape", [shape for shape, _ in CALLS])
def test_a_workspace_holds_what_kernels_leave_for_each_other(shape):
    kernel = attn.compile("bfloat16", 128, device="cuda")
    given = make(*shape)
    size = kernel.workspace_size(*given)
    assert (size > 0) == (kernel.way(*given) in ("packed4", "packed2"))
    workspace = torch.full((size,), 255, device=DEVICE, dtype=torch.uint8)
    out = torch.empty_like(given[0])
    kernel(*given, out=out, workspace=workspace)
    assert torch.equal(out, kernel(*given))
    if size:
        with pytest.raises(attn.Error, match="workspace"):
            kernel(*given, out=out, workspace=workspace[:-1])


@pytest.mark.parametrize(
    "how",
    [
        {"score": lambda s, b, h, q, kv: s - 0.01 * h * (q - kv)},
        {"score": lambda s, b, h, q, kv: 30 * attn.tanh(s / 30)},
    ],
)
def test_scores_are_packed_too(how):
    given = make(2, 12, 3, 3, 2500)
    kernel = attn.compile("bfloat16", 128, device="cuda", **how)
    assert kernel.way(*given).startswith("packed4")
    single = attn.compile("bfloat16", 128, device="cuda", options={"way": "long"}, **how)
    torch.testing.assert_close(kernel(*given), single(*given), atol=2e-2, rtol=2e-2)
