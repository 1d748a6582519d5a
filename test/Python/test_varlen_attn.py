"""torch.nn.attention.varlen.varlen_attn: the function of that name, and PyTorch's own on the kernels of the
provider, which are those of CUDA. Here they are given tensors of the CPU."""

import pytest

import attn

torch = pytest.importorskip("torch")
import attn.integrations.torch as ours  # noqa: E402
from attn.integrations._flash_ragged import NAMES, Ragged  # noqa: E402
from ragged_reference import (  # noqa: E402, F401  (fixtures)
    D,
    H,
    attend_all,
    check,
    check_gradients,
    make,
    offsets,
    poisoned,
    seeded,
    to_int32,
)

varlen = pytest.importorskip("torch.nn.attention.varlen")
LENGTHS, OTHERS = [5, 0, 13, 1, 130, 0], [7, 3, 2, 0, 140, 0]
OPS = torch.ops.aten
CUDA = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)


def prepare(others=LENGTHS, tail=5, dtype=torch.float32, hkv=H):
    cu_q, cu_k = offsets(LENGTHS), offsets(others)
    tensors = make(cu_q, cu_k, tail, hkv, dtype, dv=D)
    device_q = to_int32(cu_q)
    device_k = device_q if others is LENGTHS else to_int32(cu_k)
    return tensors, (cu_q, cu_k), (device_q, device_k, 130, 140)


def define(tensors, cu, d_output, **how):
    """Output, lse and gradients in f64."""
    wide = [x.detach().double().requires_grad_() for x in tensors]
    output, lse = attend_all(*wide, *cu, **how)
    d_output = d_output.double().nan_to_num(0)
    return output, lse, torch.autograd.grad(output, wide, d_output)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("others", [LENGTHS, OTHERS])
@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (7, 0), (3, 4)])
def test_function(dtype, others, window):
    (*tensors, d_output), cu, given = prepare(others, dtype=dtype, hkv=2)
    tensors = [x.requires_grad_() for x in tensors]
    before = ours.served["varlen_attn"]
    output, lse = ours.varlen_attn(
        *tensors,
        *given,
        window_size=window,
        scale=0.3,
        enable_gqa=True,
        return_aux=varlen.AuxRequest(lse=True),
    )
    assert ours.served["varlen_attn"] == before + 1
    wanted, wanted_lse, exact = define(tensors, cu, d_output, window=window, scale=0.3)
    check(output, wanted, dtype)
    check(lse, wanted_lse, dtype)
    check_gradients(torch.autograd.grad(output, tensors, d_output), exact, dtype)


def test_used_keys():
    (q, k, v, _), cu, given = prepare(OTHERS)
    used = [6, 0, 1, 0, 77, 0]
    output = ours.varlen_attn(q, k, v, *given, seqused_k=to_int32(used))
    check(output, attend_all(q, k, v, *cu, used_k=used)[0])


@pytest.mark.parametrize("dynamic", [False, True])
def test_function_compiled(dynamic):
    (*tensors, d_output), _, given = prepare()
    tensors = [x.requires_grad_() for x in tensors]
    torch._dynamo.reset()
    call = lambda *x: ours.varlen_attn(*x, window_size=(-1, 0))  # noqa: E731
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    results = [function(*tensors, *given) for function in (compiled, call)]
    assert torch.equal(*results)
    found = [torch.autograd.grad(x, tensors, d_output) for x in results]
    assert all(torch.equal(x, y) for x, y in zip(*found))


@pytest.mark.parametrize(
    "how, reason",
    [
        ({"num_splits": 1}, "num_splits=1, which promises the same bits in every batch"),
        ({"block_table": torch.zeros(6, 1, dtype=torch.int32)}, "pages of other dimensions"),
        ({"q": torch.zeros(154, H, D, dtype=torch.float64)}, "elements of torch.float64"),
        ({"k": torch.zeros(154, 2, D), "v": torch.zeros(154, 2, D)}, "heads that do not fit"),
        ({"k": torch.zeros(154, H, 8)}, "shapes that do not fit"),
        (
            {"cu_q": torch.zeros(7, dtype=torch.int64)},
            "offsets that are not int32 of shape (N + 1,)",
        ),
        ({"cu_k": None}, "keys that are no sequence of rows"),
        (
            {"seqused_k": torch.zeros(7, dtype=torch.int32)},
            "a seqused_k that is not int32 of shape (N,)",
        ),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_what_goes_to_pytorch(how, reason, monkeypatch):
    (q, k, v, _), _, (cu_q, cu_k, *most) = prepare(tail=0)
    named = dict(q=q, k=k, v=v, cu_q=cu_q, cu_k=cu_k)
    named.update({name: x for name, x in how.items() if name in named})
    how = {name: x for name, x in how.items() if name not in named}
    calls = []
    monkeypatch.setattr(
        "attn.integrations._varlen_attn._pytorch", lambda *x, **more: calls.append((x, more))
    )
    before = ours.fallbacks[reason]
    assert ours.varlen_attn(*named.values(), *most, **how) is None
    assert ours.fallbacks[reason] == before + 1
    ((given, more),) = calls
    assert given[:5] == tuple(named.values()) and more == how
    monkeypatch.setattr("attn.integrations._varlen_attn._pytorch", None)
    with pytest.raises(
        attn.Error, match="varlen_attn: expected a call that attn serves, or PyTorch 2"
    ):
        ours.varlen_attn(*named.values(), *most, **how)


def test_gradients_with_used_keys_go_to_pytorch():
    (q, k, v, _), _, given = prepare()
    with pytest.raises((RuntimeError, NotImplementedError)):
        ours.varlen_attn(q.requires_grad_(), k, v, *given, seqused_k=to_int32([1] * 6))


# ===- The provider ----------------------------------------------------------------------------===#


@pytest.fixture
def active():
    if not hasattr(torch.nn.attention, "register_flash_attention_impl"):
        pytest.skip("PyTorch has no registry")
    with ours.register_flash_attention() as provider:
        torch.nn.attention.activate_flash_attention_impl("attn")
        yield provider


def redispatch(name, *given, **how):
    return getattr(OPS, name).default.redispatch(CUDA, *given, **how)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("others", [LENGTHS, OTHERS])
@pytest.mark.parametrize(
    "causal, window", [(False, (None, None)), (True, (-1, -1)), (False, (3, 4))]
)
def test_what_the_dispatcher_runs(active, dtype, others, causal, window):
    (*tensors, d_output), cu, given = prepare(others, dtype=dtype, hkv=2)
    exact = define(tensors, cu, d_output, causal=causal, window=window, scale=0.3)
    sides = dict(window_size_left=window[0], window_size_right=window[1], scale=0.3)
    found = redispatch(NAMES[0], *tensors, *given, 0.0, causal, False, **sides)
    output, lse = found[:2]
    check(output, exact[0], dtype)
    check(lse, exact[1], dtype)
    # As the operator's meta function promises to torch.compile.
    on_meta = [x.to("meta") for x in (*tensors, *given[:2])]
    meta = OPS._flash_attention_forward(*on_meta, *given[2:], 0.0, causal, False, **sides)
    for x, promised in zip(found, meta):
        assert (x.shape, x.dtype, x.stride()) == (promised.shape, promised.dtype, promised.stride())
    more = 0.0, causal, *found[2:4]
    back = redispatch(NAMES[2], d_output, *tensors, output, lse, *given, *more, **sides)
    check_gradients(back, exact[2], dtype)
    for x, like in zip(back, tensors):
        assert x.stride() == torch.empty_like(like).stride()
    if hasattr(OPS, NAMES[1]):
        out = torch.full_like(output, torch.nan)
        same = redispatch(NAMES[1], out, *tensors, *given, 0.0, causal, False, **sides)
        assert torch.equal(out, output) and torch.equal(same, lse)


def test_kernels_come_and_go():
    if not hasattr(torch.nn.attention, "register_flash_attention_impl"):
        pytest.skip("PyTorch has no registry")
    dumps = [torch._C._dispatch_dump(f"aten::{name}") for name in NAMES]
    with ours.register_flash_attention():
        torch.nn.attention.activate_flash_attention_impl("attn")
        assert all(torch._C._dispatch_dump(f"aten::{x}") != y for x, y in zip(NAMES, dumps))
    assert [torch._C._dispatch_dump(f"aten::{name}") for name in NAMES] == dumps


def test_what_the_provider_does_not_serve(active, monkeypatch):
    (q, k, v, d_output), _, given = prepare()
    with pytest.raises(attn.Error, match="return_debug_mask: expected False, got True"):
        redispatch(NAMES[0], q, k, v, *given, 0.0, False, True)
    overrides = torch.nn.attention._registry._FLASH_ATTENTION_ACTIVE[1]
    monkeypatch.setattr(overrides, "_before", dict.fromkeys(overrides._before))
    with pytest.raises(
        attn.Error, match="flash_attention_forward: expected a call that attn serves"
    ):
        redispatch(NAMES[0], q, k, v, *given, 0.5, False, False)

    calls = []

    class Kernel:
        def call_boxed(self, *given, **how):
            calls.append((given, how))
            return (q, q[..., 0], q, q, q) if len(given) < 14 else (q, k, v)

    monkeypatch.setattr(overrides, "_before", dict.fromkeys(overrides._before, Kernel()))
    table = torch.zeros(6, 1, dtype=torch.int32)
    for how, dropout, reason in (
        ({}, 0.5, "dropout, whose seed is of the other kernel's kind"),
        ({"block_table": table}, 0.0, "pages of other dimensions"),
        ({"num_splits": 1}, 0.0, "num_splits=1, which promises the same bits in every batch"),
        ({"alibi_slopes": torch.rand(H)}, 0.0, "alibi_slopes, of which the gradient does not know"),
    ):
        before = ours.fallbacks[reason]
        redispatch(NAMES[0], q, k, v, *given, dropout, True, False, scale=0.1, **how)
        assert ours.fallbacks[reason] == before + 1
        called, options = calls.pop()
        assert called[8:] == (dropout, True, False) and options["scale"] == 0.1
        for name, x in how.items():
            assert options[name] is x
    redispatch(NAMES[2], d_output, q, k, v, q, q[..., 0], *given, 0.5, True, q, q, scale=0.1)
    assert calls.pop()[0][11:13] == (0.5, True)
    # What PyTorch's own kernels call is counted where they are.
    before = dict(ours.fallbacks)
    dense = [x[None] for x in (q, k, v)]
    redispatch(NAMES[0], *dense, None, None, 9, 9, 0.0, True, False)
    assert len(calls) == 1 and dict(ours.fallbacks) == before


@pytest.fixture
def on_cpu(active):
    """The kernels of the provider serve tensors of the CPU too."""
    library = torch.library.Library("aten", "IMPL", "CPU")
    ragged = Ragged(None)
    for name in NAMES:
        if hasattr(OPS, name):
            library.impl(name, getattr(ragged, name), "CPU", with_keyset=True)
    yield
    library._destroy()


@pytest.mark.parametrize("compiled", [False, True])
def test_pytorchs_own_function(on_cpu, compiled):
    (*tensors, d_output), cu, given = prepare(OTHERS)
    tensors = [x.requires_grad_() for x in tensors]
    call = lambda *x: varlen.varlen_attn(*x, window_size=(-1, 0))  # noqa: E731
    if compiled:
        torch._dynamo.reset()
        call = torch.compile(call, fullgraph=True, backend="aot_eager")
    output = call(*tensors, *given)
    wanted, _, exact = define(tensors, cu, d_output, causal=True)
    check(output, wanted)
    check_gradients(torch.autograd.grad(output, tensors, d_output), exact)
