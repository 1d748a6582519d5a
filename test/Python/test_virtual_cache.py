"""attn.serving.VirtualCache: attention to keys that grow where they lie has the bits of dense tensors."""

import gc
import weakref

import numpy as np
import pytest

import attn
from attn import serving

ORDERS = ["layers", "tokens"]
SIZES = dict(sequences=3, tokens=3000, layers=2, key_heads=2, head_dim=16)


def make_cache(**others):
    return serving.VirtualCache(**{**SIZES, "dtype": "float32", **others})


def as_arrays(cache, layer, is_torch):
    pair = cache.keys[layer], cache.values[layer]
    if not is_torch:
        return [np.asarray(x) for x in pair]
    torch = pytest.importorskip("torch")
    return [torch.from_dlpack(x) for x in pair]


def to_numpy(x):
    return x if isinstance(x, np.ndarray) else x.float().numpy()


@pytest.mark.parametrize("is_torch", [False, True], ids=["numpy", "torch"])
@pytest.mark.parametrize("order", ORDERS)
def test_steps_of_a_decoder(order, is_torch):
    rng = np.random.default_rng()
    cache, dv = make_cache(order=order, value_dim=8), 8
    dense = [np.zeros((2, 3, 2, 3000, d), "float32") for d in (16, dv)]
    arrays = [as_arrays(cache, layer, is_torch) for layer in range(2)]
    lengths = np.zeros(3, "int32")
    assert cache.keys[1].shape == (3, 2, 3000, 16) and cache.values[0].shape == (3, 2, 3000, dv)
    for _ in range(8):
        for b in range(3):
            if rng.random() < 0.2:
                cache.release(b)
                lengths[b] = 0
            more = min(3000, lengths[b] + int(rng.integers(1, 700)))
            cache.grow(b, more)
            assert cache.tokens(b) >= more
            for layer in range(2):
                for whole, mine in zip(dense, arrays[layer]):
                    rows = rng.standard_normal((2, more - lengths[b], whole.shape[4])).astype("float32")
                    whole[layer, b, :, lengths[b] : more] = rows
                    mine[b, :, int(lengths[b]) : more] = rows if not is_torch else type(mine)(rows)
            lengths[b] = more
        for layer in range(2):
            q = rng.standard_normal((3, 4, 1, 16)).astype("float32")
            used = lengths.copy()
            k, v = arrays[layer]
            if is_torch:
                import torch

                q, used = torch.from_numpy(q), torch.from_numpy(used)
            keep = lambda b, h, m, n: n < used[b]  # noqa: E731
            found = attn.attention(q, k, v, mask=keep)
            make = (lambda x: x) if not is_torch else torch.from_numpy
            expected = attn.attention(q, make(dense[0][layer]), make(dense[1][layer]), mask=keep)
            assert (to_numpy(found) == to_numpy(expected)).all()


@pytest.mark.parametrize("order", ORDERS)
def test_gradients_reach_keys_of_a_cache(order):
    torch = pytest.importorskip("torch")
    cache = make_cache(order=order)
    for b in range(3):
        cache.grow(b, 3000)
    k, v = as_arrays(cache, 1, True)
    torch.manual_seed(0)
    for x in (k, v):
        x.copy_(torch.randn(x.shape))
    q = torch.randn(3, 4, 70, 16)
    results = []
    for keys in ((k, v), (k.contiguous(), v.contiguous())):
        leaves = [x.detach().requires_grad_() for x in (q, *keys)]
        attn.attention(*leaves, causal="bottom_right").square().sum().backward()
        results.append([x.grad for x in leaves])
    for x, y in zip(*results):
        torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5)


def test_prefixes_are_shared():
    cache = make_cache()
    cache.grow(0, 2500)
    k, v = as_arrays(cache, 0, False)
    k[0, :, :2500] = np.arange(2500)[None, :, None]
    shared = cache.share(0, 2, 2400)
    assert shared == 2048 and cache.piece_tokens == 512 and cache.tokens(2) == 2048
    assert (k[2, :, :2048] == np.arange(2048)[None, :, None]).all()
    before = cache.bytes
    cache.release(0)
    assert cache.bytes == before and (k[2, 0, :2048, 3] == np.arange(2048)).all()
    cache.release(2)
    cache.trim()
    assert cache.bytes == 0


def test_arrays_keep_the_memory():
    for make in (np.asarray, getattr(pytest.importorskip("torch"), "from_dlpack")):
        cache = make_cache()
        cache.grow(1, 10)
        array, ended = make(cache.keys[0]), weakref.ref(cache)
        array[1, 0, 9, 15] = 7
        del cache
        gc.collect()
        assert array[1, 0, 9, 15] == 7
        del array
        gc.collect()
        assert ended() is None


def test_a_capsule_that_nobody_takes_is_freed():
    cache = make_cache()
    for _ in range(3):
        cache.values[1].__dlpack__()
    assert cache.keys[0].__dlpack_device__() == (1, 0)


def test_types():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float8_e4m3fn):
        cache = make_cache(dtype=dtype, device=torch.device("cpu"))
        cache.grow(0, 5)
        if dtype.itemsize > 1:
            assert torch.from_dlpack(cache.keys[0]).dtype == dtype
    half = make_cache(dtype=np.float16)
    half.grow(0, 5)
    assert np.asarray(half.keys[0]).dtype == np.float16
    assert not hasattr(make_cache(dtype="bfloat16").keys[0], "__array_interface__")


def test_refuses_by_name():
    for name in SIZES:
        for wrong in (0, -1, 1 << 31):
            with pytest.raises(attn.Error, match=f"{name}: expected a number from 1 to "):
                make_cache(**{name: wrong})
        with pytest.raises(attn.Error, match=f"{name}: expected a number, got 'many'"):
            make_cache(**{name: "many"})
        with pytest.raises(attn.Error, match=f"{name}: expected a number of 64 bits"):
            make_cache(**{name: 1 << 70})
    with pytest.raises(attn.Error, match="value_dim: expected"):
        make_cache(value_dim=-1)
    with pytest.raises(attn.Error, match="order: expected layers or tokens, got heads"):
        make_cache(order="heads")
    with pytest.raises(attn.Error, match="dtype: expected a type"):
        make_cache(dtype="complex64")
    with pytest.raises(attn.Error, match="type: expected f16, bf16, f32"):
        make_cache(dtype="int32")
    with pytest.raises(attn.Error, match="device: expected cpu, cuda or cuda:NUMBER, got tpu"):
        make_cache(device="tpu")
    with pytest.raises(attn.Error, match="expected addresses for"):
        make_cache(tokens=(1 << 31) - 1, head_dim=(1 << 31) - 1)
    cache = make_cache()
    cache.grow(0, 4)
    for call, message in (
        (lambda: cache.grow(3, 1), "sequence: expected a number from 0 to 2, got 3"),
        (lambda: cache.grow(0, 3001), "tokens: expected a number from 0 to 3000, got 3001"),
        (lambda: cache.grow(0, True), "tokens: expected a number, got True"),
        (lambda: cache.release(-1), "sequence: expected a number from 0 to 2"),
        (lambda: cache.tokens(3), "sequence: expected a number from 0 to 2, got 3"),
        (lambda: cache.share(0, 0, 1), "to: expected an empty sequence, got one of 4 tokens"),
        (lambda: cache.share(0, 1, 5), "tokens: expected a number from 0 to 4"),
        (lambda: cache.share(7, 1, 1), "expected a number from 0 to 2, got 7"),
    ):
        with pytest.raises(attn.Error, match=message):
            call()
