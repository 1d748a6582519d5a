"""Sequences of any lengths and caches on a GPU. Skipped without one. Rows and keys in no sequence hold NaN, and so
does what a cache holds beyond its lengths."""

import contextlib

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
if torch.cuda.get_device_capability() != (9, 0):
    pytest.skip("no device of compute capability 9.0", allow_module_level=True)

import attn.integrations.torch as ours  # noqa: E402
from attn.integrations import flash_attn  # noqa: E402
from ragged_reference import (  # noqa: E402, F401  (fixtures)
    H,
    attend,
    attend_all,
    check,
    check_gradients,
    make,
    offsets,
    seeded,
    to_int32,
)

LENGTHS, OTHERS = [5, 0, 313, 1, 600, 0], [7, 3, 240, 0, 640, 0]


def prepare(lengths, others, tail=0, hkv=2, d=128, dtype=torch.bfloat16):
    """(q, k, v, the gradient of the output), the offsets, and these on the device."""
    cu = offsets(lengths), offsets(others)
    tensors = [x.cuda() for x in make(*cu, tail, hkv, dtype, d=d, dv=d)]
    device_q = to_int32(cu[0]).cuda()
    return tensors, cu, (device_q, device_q if others is lengths else to_int32(cu[1]).cuda())


@contextlib.contextmanager
def without_waiting():
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("d", [64, 128, 256])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("others", [LENGTHS, OTHERS])
@pytest.mark.parametrize("how", [{}, {"causal": True}, {"window": (70, 10)}], ids=str)
def test_varlen(d, dtype, others, how):
    for tail in (0, 77):
        (*tensors, d_output), cu, given = prepare(LENGTHS, others, tail, d=d, dtype=dtype)
        tensors = [x.requires_grad_() for x in tensors]
        wide = [x.detach().double().requires_grad_() for x in tensors]
        wanted, wanted_lse = attend_all(*wide, *cu, **how)
        options = {"window_size" if name == "window" else name: x for name, x in how.items()}
        output, lse = flash_attn.flash_attn_varlen_func(
            *tensors, *given, 600, 640, return_lse=True, **options
        )
        check(output, wanted, dtype)
        check(lse, wanted_lse, torch.float16)
        exact = torch.autograd.grad(wanted, wide, d_output.double().nan_to_num(0))
        check_gradients(torch.autograd.grad(output, tensors, d_output), exact, dtype)


@pytest.mark.parametrize("others", [LENGTHS, OTHERS])
def test_varlen_features(others):
    (*tensors, d_output), cu, given = prepare(LENGTHS, others, 33)
    sink = torch.randn(H, device="cuda", requires_grad=True)
    tensors = [x.requires_grad_() for x in (*tensors, sink)]
    how = dict(softcap=5.0, causal=True)
    for slopes in (torch.rand(H).cuda(), torch.rand(len(LENGTHS), H).cuda()):
        wide = [x.detach().double().requires_grad_() for x in tensors]
        wanted, _ = attend_all(*wide[:3], *cu, sink=wide[3], slopes=slopes, **how)
        output = flash_attn.flash_attn_varlen_func(
            *tensors[:3], *given, 600, 640, alibi_slopes=slopes, learnable_sink=sink, **how
        )
        check(output, wanted, torch.bfloat16)
        exact = torch.autograd.grad(wanted, wide, d_output.double().nan_to_num(0))
        found = torch.autograd.grad(output, tensors, d_output)
        check_gradients(found[:3], exact[:3], torch.bfloat16)
        check_gradients(found[3:], exact[3:], torch.bfloat16)


@pytest.mark.parametrize("hkv", [1, 2, 4])
def test_decoding_by_varlen(hkv):
    """Few rows and many keys: heads that share keys are packed, and keys are split into parts."""
    lengths, others = [1, 1, 0, 2, 1], [3000, 1, 77, 4096, 600]
    (q, k, v, _), cu, given = prepare(lengths, others, 5, hkv=hkv)
    for how in ({}, {"causal": True}, {"window": (500, 0)}):
        options = {"window_size" if name == "window" else name: x for name, x in how.items()}
        output, lse = flash_attn.flash_attn_varlen_func(
            q, k, v, *given, 2, 4096, return_lse=True, **options
        )
        wanted, wanted_lse = attend_all(q, k, v, *cu, **how)
        check(output, wanted, torch.bfloat16)
        check(lse, wanted_lse, torch.float16)


def test_varlen_in_order_is_the_same_bits():
    (*tensors, d_output), _, given = prepare(LENGTHS, OTHERS, 9)
    tensors = [x.requires_grad_() for x in tensors]
    how = dict(causal=True, deterministic=True)
    found = []
    for _ in range(3):
        output = flash_attn.flash_attn_varlen_func(*tensors, *given, 600, 640, **how)
        found.append(torch.autograd.grad(output, tensors, d_output))
    for others in found[1:]:
        assert all(torch.equal(x, y) for x, y in zip(found[0], others))


def test_varlen_in_a_graph(rng):
    """One capture, replayed with other lengths: nothing is read on the host."""
    rows = 700
    q, k, v, d_output = (torch.randn(rows, H, 64, device="cuda").bfloat16() for _ in range(4))
    tensors = [x.requires_grad_() for x in (q, k, v)]
    cu = torch.zeros(9, dtype=torch.int32, device="cuda")

    def step():
        output = flash_attn.flash_attn_varlen_func(*tensors, cu, cu, rows, rows, causal=True)
        return output, *torch.autograd.grad(output, tensors, d_output)

    def draw():
        lengths = [int(x) for x in rng.integers(0, 2 * rows // 8, 8)]
        cut = [min(x, rows) for x in offsets(lengths)]
        cu.copy_(to_int32(cut))
        return cut

    draw()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.synchronize()
    with without_waiting():
        step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = step()
    for _ in range(20):
        cut = draw()
        for x in results:
            x.detach().fill_(torch.nan)
        graph.replay()
        wide = [x.detach().double().requires_grad_() for x in tensors]
        wanted, _ = attend_all(*wide, cut, cut, causal=True)
        check(results[0], wanted, torch.bfloat16)
        exact = torch.autograd.grad(wanted, wide, d_output.double())
        check_gradients(results[1:], exact, torch.bfloat16)


# ===- Caches -----------------------------------------------------------------------------------===#

B, S, HKV = 3, 3000, 2


def make_caches(lengths, d=128):
    caches = [
        torch.full((B, S, HKV, d), torch.nan, dtype=torch.bfloat16, device="cuda") for _ in range(2)
    ]
    for cache in caches:
        for b, length in enumerate(lengths):
            cache[b, :length] = torch.randn(length, HKV, d).cuda().bfloat16()
    return caches


def check_step(q, caches, lengths, output, **how):
    for b, length in enumerate(lengths):
        k, v = (x[b, :length] for x in caches)
        check(output[b], attend(q[b], k, v, **how)[0], torch.bfloat16)


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("rows", [1, 4, 200])
@pytest.mark.parametrize(
    "how", [{}, {"causal": True}, {"window": (300, 0)}, {"softcap": 4.0}], ids=str
)
def test_kvcache(d, rows, how):
    lengths = [0, 1777, 2990]
    caches = make_caches(lengths, d)
    q = torch.randn(B, rows, H, d, device="cuda").bfloat16()
    options = {"window_size" if name == "window" else name: x for name, x in how.items()}
    given = dict(cache_seqlens=to_int32(lengths).cuda(), **options)
    new = [torch.randn(B, 2, HKV, d, device="cuda").bfloat16() for _ in range(2)]
    with without_waiting():
        output = flash_attn.flash_attn_with_kvcache(q, *caches, **given)
    check_step(q, caches, lengths, output, **how)
    output = flash_attn.flash_attn_with_kvcache(q, *caches, *new, **given)
    for cache, x in zip(caches, new):
        for b, length in enumerate(lengths):
            assert torch.equal(cache[b, length : length + 2], x[b])
            assert cache[b, length + 2 :].isnan().all()
    check_step(q, caches, [length + 2 for length in lengths], output, **how)


def test_kvcache_with_sinks_and_slopes():
    lengths = [5, 1777, 2990]
    caches = make_caches(lengths)
    q = torch.randn(B, 1, H, 128, device="cuda").bfloat16()
    how = dict(sink=torch.randn(H, device="cuda"), slopes=torch.rand(H, device="cuda") / 100)
    output = flash_attn.flash_attn_with_kvcache(
        q,
        *caches,
        cache_seqlens=to_int32(lengths).cuda(),
        learnable_sink=how["sink"],
        alibi_slopes=how["slopes"],
    )
    check_step(q, caches, lengths, output, **how)


def test_kvcache_of_ragged_rows():
    lengths, counts = [5, 1777, 2990], [3, 0, 200]
    caches = make_caches(lengths)
    q = torch.randn(203, H, 128, device="cuda").bfloat16()
    given = dict(cache_seqlens=to_int32(lengths).cuda(), causal=True)
    cu = offsets(counts)
    output = flash_attn.flash_attn_with_kvcache(
        q, *caches, cu_seqlens_q=to_int32(cu).cuda(), **given
    )
    for b, length in enumerate(lengths):
        rows = slice(cu[b], cu[b + 1])
        wanted, _ = attend(q[rows], *(x[b, :length] for x in caches), causal=True)
        check(output[rows], wanted, torch.bfloat16)


def test_kvcache_in_a_graph():
    """Steps of decoding by replays: lengths grow on the device."""
    lengths = [0, 100, 2000]
    caches = make_caches(lengths)
    q = torch.randn(B, 1, H, 128, device="cuda").bfloat16()
    new = [torch.randn(B, 1, HKV, 128, device="cuda").bfloat16() for _ in range(2)]
    filled = to_int32(lengths).cuda()

    def step():
        output = flash_attn.flash_attn_with_kvcache(
            q, *caches, *new, cache_seqlens=filled, causal=True
        )
        filled.add_(1)
        return output

    before = [x.clone() for x in (*caches, filled)]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = step()
    for x, saved in zip((*caches, filled), before):
        x.copy_(saved)
    for count in range(1, 21):
        for x in (q, *new):
            x.normal_()
        graph.replay()
        check_step(q, caches, [length + count for length in lengths], output)
    assert filled.tolist() == [length + 20 for length in lengths]


# ===- PyTorch's own function ---------------------------------------------------------------------===#


@pytest.mark.parametrize("compiled", [False, True])
def test_varlen_attn_on_the_provider(compiled):
    varlen = pytest.importorskip("torch.nn.attention.varlen")
    nn = torch.nn.attention
    if not hasattr(nn, "register_flash_attention_impl"):
        pytest.skip("PyTorch has no registry")
    (*tensors, d_output), cu, given = prepare(LENGTHS, LENGTHS, 20, hkv=H)
    tensors = [x.requires_grad_() for x in tensors]
    call = lambda *x: varlen.varlen_attn(*x, 600, 600, window_size=(-1, 0))  # noqa: E731
    with ours.register_flash_attention():
        nn.activate_flash_attention_impl("attn")
        before = dict(ours.fallbacks)
        if compiled:
            torch._dynamo.reset()
            call = torch.compile(call, fullgraph=True)
        output = call(*tensors, *given)
        found = torch.autograd.grad(output, tensors, d_output)
        assert dict(ours.fallbacks) == before
    wide = [x.detach().double().requires_grad_() for x in tensors]
    wanted, _ = attend_all(*wide, *cu, causal=True)
    check(output, wanted, torch.bfloat16)
    exact = torch.autograd.grad(wanted, wide, d_output.double().nan_to_num(0))
    check_gradients(found, exact, torch.bfloat16)
