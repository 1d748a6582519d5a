"""attn.serving.append and rotate, and attn.merge, by kernels of a GPU: the bits of PyTorch's operations there. Skipped
without one."""

import pytest

import attn
from attn import _append_kernel, _merge, serving

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

TYPES = [torch.bfloat16, torch.float16, torch.float32]


def make(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda").to(dtype)


def make_tables(positions, half):
    angles = torch.rand(positions, half, device="cuda") * 6
    return angles.cos(), angles.sin()


def forbid_kernels(monkeypatch):
    monkeypatch.setattr(_append_kernel, "has_kernel", lambda *given, **more: False)
    monkeypatch.setattr(_merge, "_has_kernel", lambda *given: False)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("page", [1, 16, 64])
@pytest.mark.parametrize("d, half", [(64, 32), (128, 64), (128, 20), (256, 0)])
@pytest.mark.parametrize("interleaved", [False, True])
def test_append(monkeypatch, dtype, page, d, half, interleaved):
    tokens, heads, pages = 77, 3, 90
    k, v = make(tokens, heads, d, dtype=dtype), make(tokens, heads, d, dtype=dtype)
    slots = torch.randperm(pages * page, device="cuda")[:tokens]
    slots[::7] = torch.tensor([-1, -(2**63), 2**32 + 3], device="cuda").repeat(4)[: len(slots[::7])]
    how = {}
    if half:
        how["rotary"] = serving.Rotary(*make_tables(200, half), interleaved)
        how["positions"] = torch.randint(0, 200, (tokens,), device="cuda")
    # A guard of NaN before and after the cache.
    guarded = [torch.full((pages + 2, page, heads, d), torch.nan, device="cuda", dtype=dtype) for _ in range(4)]
    mine, theirs = guarded[:2], guarded[2:]
    for cache in guarded:
        cache[1:-1] = 0.5
    assert _append_kernel.has_kernel(k, slots)
    serving.append(k, v, *(x[1:-1] for x in mine), slots, **how)
    forbid_kernels(monkeypatch)
    serving.append(k, v, *(x[1:-1] for x in theirs), slots, **how)
    for x, y in zip(mine, theirs):
        assert torch.equal(x[1:-1], y[1:-1])
        assert x[0].isnan().all() and x[-1].isnan().all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("interleaved", [False, True])
def test_rotate(monkeypatch, dtype, interleaved):
    x, positions = make(50, 5, 128, dtype=dtype), torch.randint(0, 90, (50,), device="cuda")
    rotary = serving.Rotary(*make_tables(90, 32), interleaved)
    mine = serving.rotate(x, positions, rotary)
    forbid_kernels(monkeypatch)
    assert torch.equal(mine, serving.rotate(x, positions, rotary))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("layout, shape, rows", [("bhsd", (2, 3, 77, 128), (2, 3, 77)), ("bshd", (77, 3, 64), (3, 77))])
def test_merge(monkeypatch, dtype, parts, layout, shape, rows):
    outputs = [make(*shape, dtype=dtype) for _ in range(parts)]
    lses = [torch.randn(rows, device="cuda") * 9 for _ in range(parts)]
    # What no key was kept for is not read.
    lses[0][..., ::5] = -torch.inf
    outputs[0].movedim(0 if layout == "bshd" else 2, 0)[::5] = torch.nan
    assert _merge._has_kernel(outputs, lses, layout == "bshd")
    mine, lse = attn.merge(outputs, lses, layout=layout)
    forbid_kernels(monkeypatch)
    theirs, other = attn.merge(outputs, lses, layout=layout)
    bound = 2e-6 if dtype == torch.float32 else 8e-3
    torch.testing.assert_close(mine.float(), theirs.float(), rtol=bound, atol=bound)
    torch.testing.assert_close(lse, other, rtol=2e-6, atol=2e-6)
