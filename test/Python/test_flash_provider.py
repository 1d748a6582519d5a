"""attn as a flash attention of PyTorch's registry. Its kernels are those of CUDA; here they are given
tensors of the CPU."""

import sys
import types

import attn
import pytest

torch = pytest.importorskip("torch")
import attn.integrations.torch as ours  # noqa: E402

nn = torch.nn.attention
FORWARD = torch.ops.aten._scaled_dot_product_flash_attention.default
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_backward.default
CUDA = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)


@pytest.mark.parametrize("registry", [None, types.SimpleNamespace()])
def test_older_versions_are_refused(monkeypatch, registry):
    monkeypatch.setitem(sys.modules, "torch.nn.attention._registry", registry)
    with pytest.raises(attn.Error, match="register_flash_attention: expected a PyTorch with torch"):
        ours.register_flash_attention()


needs_registry = pytest.mark.skipif(
    not hasattr(nn, "register_flash_attention_impl"), reason="PyTorch has no registry"
)


@pytest.fixture
def active():
    with ours.register_flash_attention() as provider:
        nn.activate_flash_attention_impl("attn")
        yield provider


@needs_registry
def test_it_comes_and_goes():
    before = torch._C._dispatch_dump(FORWARD.name())
    names = nn.list_flash_attention_impls()
    provider = ours.register_flash_attention()
    assert sorted([*names, "attn"]) == nn.list_flash_attention_impls()
    assert nn.current_flash_attention_impl() is None
    with pytest.raises(attn.Error, match="name: expected one that no other flash attention has"):
        ours.register_flash_attention()
    for _ in range(2):
        nn.activate_flash_attention_impl("attn")
        assert nn.current_flash_attention_impl() == "attn"
        assert torch._C._dispatch_dump(FORWARD.name()) != before
        nn.restore_flash_attention_impl()
        assert torch._C._dispatch_dump(FORWARD.name()) == before
    nn.activate_flash_attention_impl("attn")
    provider.undo()
    assert nn.list_flash_attention_impls() == names
    assert nn.current_flash_attention_impl() is None
    assert torch._C._dispatch_dump(FORWARD.name()) == before
    provider.undo()


def make(dtype, rows_first, m=37, n=37, hkv=4):
    torch.manual_seed(0)
    shapes = (2, 4, m, 16), (2, hkv, n, 16), (2, hkv, n, 16)
    if rows_first:
        return [torch.randn(b, s, h, d, dtype=dtype).transpose(1, 2) for b, h, s, d in shapes]
    return [torch.randn(shape, dtype=dtype) for shape in shapes]


@needs_registry
@pytest.mark.parametrize("dtype, rows_first", [(torch.float32, False), (torch.bfloat16, True)])
def test_what_the_dispatcher_runs(active, dtype, rows_first):
    q, k, v = make(dtype, rows_first)
    for is_causal, scale in ((False, None), (True, 0.3)):
        wide = [x.double().requires_grad_() for x in (q, k, v)]
        how = dict(is_causal=is_causal, scale=scale)
        wanted = torch.nn.functional.scaled_dot_product_attention(*wide, **how)
        d_output = torch.randn_like(wanted).to(dtype)
        gradients = torch.autograd.grad(wanted, wide, d_output.double())

        found = FORWARD.redispatch(CUDA, q, k, v, 0.0, is_causal, scale=scale)
        output, lse = found[:2]
        tolerance = (
            dict(atol=2e-5, rtol=1e-5) if dtype == torch.float32 else dict(atol=4e-2, rtol=4e-2)
        )
        torch.testing.assert_close(output.double(), wanted, **tolerance)
        # As the operator's meta function promises to torch.compile.
        meta = FORWARD(*[x.to("meta") for x in (q, k, v)], 0.0, is_causal, scale=scale)
        for x, promised in zip(found, meta):
            if isinstance(x, torch.Tensor):
                assert (x.shape, x.dtype) == (promised.shape, promised.dtype)
                assert x.stride() == promised.stride()
            else:
                assert x == promised
        back = BACKWARD.redispatch(
            CUDA,
            d_output,
            q,
            k,
            v,
            output,
            lse,
            *found[2:6],
            0.0,
            is_causal,
            *found[6:8],
            scale=scale,
        )
        for x, exact, like in zip(back, gradients, (q, k, v)):
            torch.testing.assert_close(x.double(), exact, **tolerance)
            assert x.stride() == torch.empty_like(like).stride()


@needs_registry
def test_causal_counts_from_the_last_row(active):
    q, k, v = make(torch.float32, False, m=5, n=9, hkv=2)
    output = FORWARD.redispatch(CUDA, q, k, v, 0.0, True)[0]
    torch.testing.assert_close(output, attn.attention(q, k, v, causal=True))


@needs_registry
def test_strides_of_views(active):
    q, k, v = make(torch.float32, False)
    wanted = FORWARD.redispatch(CUDA, q, k, v)[0]
    apart = [torch.stack([x, x], -1)[..., 0] for x in (q, k, v)]
    torch.testing.assert_close(FORWARD.redispatch(CUDA, *apart)[0], wanted)
    one = k[:, :1].expand(-1, 4, -1, -1)
    torch.testing.assert_close(
        FORWARD.redispatch(CUDA, q, one, one)[0], FORWARD.redispatch(CUDA, q, k[:, :1], k[:, :1])[0]
    )


@needs_registry
def test_what_it_does_not_serve(active, monkeypatch):
    q, k, v = make(torch.float32, False)
    with pytest.raises(attn.Error, match="return_debug_mask: expected False, got True"):
        FORWARD.redispatch(CUDA, q, k, v, 0.0, False, True)
    # Where PyTorch has no kernel of CUDA, there is none to go to.
    overrides = nn._registry._FLASH_ATTENTION_ACTIVE[1]
    monkeypatch.setattr(overrides, "_before", dict.fromkeys(overrides._before))
    with pytest.raises(attn.Error, match="expected a call that attn serves, got dropout"):
        FORWARD.redispatch(CUDA, q, k, v, 0.5)

    calls = []

    class Kernel:
        def call_boxed(self, *given, **how):
            calls.append((given, how))
            return (q, q[..., 0], None, None, 1, 1, q, q, q) if len(given) == 7 else (q, k, v)

    monkeypatch.setattr(overrides, "_before", dict.fromkeys(overrides._before, Kernel()))
    before = dict(ours.fallbacks)
    FORWARD.redispatch(CUDA, q, k, v, 0.5, True, scale=0.1)
    BACKWARD.redispatch(
        CUDA, q, q, k, v, q, q[..., 0], None, None, 37, 37, 0.5, True, q, q, scale=0.1
    )
    (forward, how), (backward, _) = calls
    assert forward[4:] == (0.5, True, False) and how == {"scale": 0.1}
    assert backward[11:13] == (0.5, True)
    reason = "dropout, whose seed is of the other kernel's kind"
    assert ours.fallbacks[reason] == before.get(reason, 0) + 2
