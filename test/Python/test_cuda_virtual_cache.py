"""attn.serving.VirtualCache on a GPU. Skipped without one. Sequences without tokens have no memory, and a kernel that
read there would end the process."""

import random

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
if torch.cuda.get_device_capability() != (9, 0):
    pytest.skip("no device of compute capability 9.0", allow_module_level=True)

import attn  # noqa: E402
from attn.serving import VirtualCache  # noqa: E402

H, HKV, D, MOST = 8, 2, 128, 20000


def make(order, sequences=4, dtype=torch.bfloat16):
    cache = VirtualCache(
        sequences=sequences, tokens=MOST, layers=2, key_heads=HKV, head_dim=D, dtype=dtype, device="cuda", order=order
    )  # fmt: skip
    return cache, [[torch.from_dlpack(x[i]) for x in (cache.keys, cache.values)] for i in range(2)]


def attend(q, k, v, lengths):
    rows = q.shape[2]
    return attn.attention(q, k, v, mask=lambda b, h, m, n: n - m <= lengths[b] - rows)


def fill(cache, layers, dense, lengths, b, tokens):
    cache.grow(b, tokens)
    begin = int(lengths[b])
    for mine, whole in zip(layers, dense):
        for x, y in zip(mine, whole):
            y[b, :, begin:tokens] = torch.randn_like(y[b, :, begin:tokens])
            x[b, :, begin:tokens] = y[b, :, begin:tokens]
    lengths[b] = tokens


@pytest.mark.parametrize("rows", [1, 3, 200])
@pytest.mark.parametrize("order", ["layers", "tokens"])
def test_grown_keys_have_the_bits_of_a_tensor(order, rows):
    cache, layers = make(order)
    dense = [[torch.zeros(4, HKV, MOST, D, device="cuda", dtype=torch.bfloat16) for _ in range(2)] for _ in layers]
    lengths = torch.zeros(4, dtype=torch.int32, device="cuda")
    for step in range(6):
        # The last sequence stays empty, and has no memory at all.
        for b in range(3):
            if step and random.random() < 0.2:
                cache.release(b)
                lengths[b] = 0
            fill(cache, layers, dense, lengths, b, min(MOST, int(lengths[b]) + random.randint(1, 4000)))
        q = torch.randn(4, H, rows, D, device="cuda", dtype=torch.bfloat16)
        for mine, whole in zip(layers, dense):
            found, expected = attend(q, *mine, lengths), attend(q, *whole, lengths)
            assert torch.equal(found, expected) and not found[3].any()
    torch.cuda.synchronize()


@pytest.mark.parametrize("order", ["layers", "tokens"])
def test_gradients_reach_keys_of_a_cache(order):
    """Gradients of keys that lie in a cache, which are dense, are those of the same keys in a tensor."""
    cache, layers = make(order, sequences=2)
    for b in range(2):
        cache.grow(b, 3000)
    k, v = (x[:, :, :3000] for x in layers[1])
    for x in (k, v):
        x.copy_(torch.randn(x.shape, device="cuda", dtype=x.dtype))
    q = torch.randn(2, H, 1000, D, device="cuda", dtype=torch.bfloat16)
    d = torch.randn_like(q)
    results = []
    for keys in ((k, v), (k.contiguous(), v.contiguous())):
        leaves = [x.detach().requires_grad_() for x in (q, *keys)]
        output = attn.attention(*leaves, causal="bottom_right")
        results.append([output, *torch.autograd.grad(output, leaves, d)])
    for found, expected in zip(*results):
        assert found.isfinite().all() and found.any()
        torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
    assert torch.equal(results[0][0], results[1][0])


def test_a_graph_follows_what_grows():
    cache, layers = make("layers")
    dense = [[torch.zeros(4, HKV, MOST, D, device="cuda", dtype=torch.bfloat16) for _ in range(2)] for _ in layers]
    lengths = torch.zeros(4, dtype=torch.int32, device="cuda")
    q = torch.randn(4, H, 1, D, device="cuda", dtype=torch.bfloat16)
    attend(q, *layers[0], lengths)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = attend(q, *layers[0], lengths)
    for _ in range(40):
        b = random.randrange(4)
        if random.random() < 0.3:
            cache.release(b)
            lengths[b] = 0
        else:
            fill(cache, layers, dense, lengths, b, min(MOST, int(lengths[b]) + random.randint(1, 2000)))
        graph.replay()
        assert torch.equal(found, attend(q, *dense[0], lengths))


def test_memory_waits_for_the_stream():
    cache, layers = make("layers", sequences=2)
    cache.grow(0, 3000)
    k = layers[0][0]
    k[0, :, :3000] = 1
    torch.cuda._sleep(200_000_000)
    total = k[0, :, :3000].float().sum()
    cache.release(0)
    cache.grow(1, 3000)
    k[1, :, :3000] = 2
    cache.grow(0, 3000)
    k[0, :, :3000] = 3
    assert total.item() == 3000 * HKV * D and k[1, 0, 2999, 0] == 2 and k[0, 0, 0, 0] == 3
    with pytest.raises(attn.Error, match="capture"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            cache.release(0)


def test_prefixes_are_shared():
    cache, layers = make("layers")
    cache.grow(0, 10000)
    for x in layers[1]:
        x[0, :, :10000] = torch.randn_like(x[0, :, :10000])
    before = cache.bytes
    shared = cache.share(0, 1, 9000)
    # 2 MB hold 4096 tokens; what a tile reads further has memory of its own.
    assert shared == 8192 and cache.bytes - before == 4 << 21
    q = torch.randn(1, H, 1, D, device="cuda", dtype=torch.bfloat16).expand(4, -1, -1, -1)
    lengths = torch.tensor([8192, 8192, 0, 0], dtype=torch.int32, device="cuda")
    found = attend(q, *layers[1], lengths)
    assert torch.equal(found[0], found[1]) and found[0].any()


def test_a_full_device_is_an_error():
    cache = VirtualCache(sequences=1, tokens=1 << 27, layers=1, key_heads=8, head_dim=128, device="cuda")
    with pytest.raises(attn.Error, match="out of memory"):
        cache.grow(0, 1 << 27)
    assert cache.tokens(0) == 0
    cache.trim()
    cache.grow(0, 1000)
