"""Calls that autograd records: past the dispatcher where nobody else looks, and the same numbers."""

import sys
import weakref

import pytest

import attn
from attn import _direct, _gradient, _plan

torch = pytest.importorskip("torch")
from attn import _autograd, _watched  # noqa: E402  They import PyTorch.

B, H, M, N, D, DV = 2, 4, 7, 9, 16, 24
IS_DIRECT = _direct.extension is not None and hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
SEEN = torch.rand(B, N) < 0.8


def make(rows_first=False, dtype=torch.float32):
    shapes = (B, H, M, D), (B, 2, N, D), (B, 2, N, DV)
    tensors = [torch.randn(shape).to(dtype) for shape in shapes]
    tensors = [x.transpose(1, 2).contiguous() if rows_first else x for x in tensors]
    return [x.requires_grad_() for x in tensors]


def everything(q, k, v, sink, bias, few):
    return attn.attention(
        q,
        k,
        v,
        scale=0.3,
        sink=sink,
        layout="bshd",
        return_lse=True,
        score=lambda s, b, h, i, j: s + bias[h, i - j + 9] * few[2],
        mask=lambda b, h, i, j: SEEN[b, j],
    )


def make_everything(dtype):
    others = torch.randn(H), torch.randn(H, 17).to(dtype), torch.randn(3)
    return [*make(True, dtype), *[x.requires_grad_() for x in others]]


CALLS = {
    "plain": (attn.attention, make),
    "causal": (lambda q, k, v: attn.attention(q, k, v, causal=True, return_lse=True), make),
    "dropout": (lambda *x: attn.attention(*x, dropout_p=0.5, dropout_seed=3), make),
    "everything": (everything, lambda: make_everything(torch.float32)),
    "everything in bf16": (everything, lambda: make_everything(torch.bfloat16)),
}


def differentiate(call, tensors, of=None):
    torch.manual_seed(0)
    results = call(*tensors)
    results = results if isinstance(results, tuple) else (results,)
    each = [torch.randn_like(x) for x in results]
    wanted = tensors if of is None else [tensors[i] for i in of]
    return [*results, *torch.autograd.grad(results, wanted, each)]


def through_the_dispatcher(monkeypatch, call, tensors, of=None):
    with monkeypatch.context() as patch:
        patch.setattr(_watched, "record", lambda *call: None)
        patch.setattr(_gradient.GradientPlan, "direct", _direct.take_nothing)
        return differentiate(call, tensors, of)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("only", [False, True])
def test_the_short_way_gives_the_same_bits(monkeypatch, name, only):
    call, make_tensors = CALLS[name]
    tensors = make_tensors()
    # Of some arguments alone: the last one, and those around the sink.
    of = [2] if len(tensors) == 3 else [1, 4, 5]
    of = of if only else None
    differentiate(call, tensors, of)
    with monkeypatch.context() as patch:
        if IS_DIRECT:
            patch.setattr(_plan, "Tensors", None)
            patch.setattr(_gradient, "Tensors", None)
        patch.setattr(_autograd.Attention, "apply", None)
        got = differentiate(call, tensors, of)
    assert "Recorded" in str(got[0].grad_fn)
    wanted = through_the_dispatcher(monkeypatch, call, tensors, of)
    assert "Attention" in str(wanted[0].grad_fn) and len(got) == len(wanted)
    for x, y in zip(got, wanted):
        assert torch.equal(x, y) and x.dtype == y.dtype and x.stride() == y.stride()


def test_gradients_of_any_strides():
    """Kernels do not read all that autograd hands over."""
    q, k, v = make()
    output = attn.attention(q, k, v)
    ones = torch.ones_like(output)

    def differentiate(d_output):
        return torch.autograd.grad(output, (q, k, v), d_output, retain_graph=True)

    wanted = differentiate(ones)
    for d_output in (
        ones.flatten()[:1].expand(ones.shape),
        torch.ones(B, H, M, 2 * DV)[..., ::2],
        torch.ones(B, M, H, DV).transpose(1, 2),
        torch.ones(ones.numel() + 1)[1:].view(ones.shape),
    ):
        assert all(torch.equal(x, y) for x, y in zip(differentiate(d_output), wanted))


def test_autocast_takes_the_short_way(monkeypatch):
    def call(q, k, v):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return attn.attention(q, k, v)

    tensors = make()
    got = differentiate(call, tensors)
    assert "Recorded" in str(got[0].grad_fn) and got[0].dtype == torch.bfloat16
    for x, y in zip(got, through_the_dispatcher(monkeypatch, call, tensors)):
        assert torch.equal(x, y)


def test_who_else_looks_is_shown_the_operators():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Names(TorchDispatchMode):
        seen: set = set()

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.seen.add(str(function))
            return function(*args, **(kwargs or {}))

    q, k, v = make()
    output = attn.attention(q, k, v)
    with Names():
        output.sum().backward()
        attn.attention(q, k, v)
    assert {"attn.record.default", "attn.backward.default"} <= Names.seen


def test_who_looks_at_gradients_alone():
    """Nothing but the extension asks."""
    q, k, v = make()
    output = attn.attention(q, k, v)
    ones = torch.ones_like(output)
    wanted = torch.autograd.grad(output, (q, k, v), ones, retain_graph=True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        found = torch.autograd.grad(output, (q, k, v), ones)
    assert "attn::backward" in {event.name for event in profile.events()}
    assert all(torch.equal(x, y) for x, y in zip(found, wanted))


def test_results_that_nobody_asked_for_take_no_time():
    q, k, v = make()
    for return_lse, count in ((False, 1), (True, 2)):
        found = attn.attention(q, k, v, return_lse=return_lse)
        node = (found[0] if return_lse else found).grad_fn
        assert len(node._input_metadata) == count


def test_tensors_that_a_transform_left():
    left = []
    q, k, v = make()
    torch.func.grad(lambda x: left.append(x) or x.sum())(q.detach())
    assert torch.equal(attn.attention(left[0], k, v), attn.attention(q, k, v))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant):
    from torch.utils.checkpoint import checkpoint

    q, k, v = make()
    wanted = torch.autograd.grad(attn.attention(q, k, v).sin().sum(), (q, k, v))
    call = lambda *x: attn.attention(*x).sin()
    checkpoint(call, q, k, v, use_reentrant=reentrant).sum().backward()
    for x, y in zip((q, k, v), wanted):
        assert torch.equal(x.grad, y)


def test_what_was_saved_has_changed():
    q, k, v = make()
    output = attn.attention(q, k, v)
    with torch.no_grad():
        k.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


def test_second_derivatives_are_refused():
    q, k, v = make()
    first = torch.autograd.grad(attn.attention(q, k, v).square().sum(), q, create_graph=True)[0]
    with pytest.raises(attn.Error, match="got a second one"):
        first.sum().backward()


def test_nothing_is_held():
    """References of what the extension is given, and of what it makes."""
    tensors = make_everything(torch.float32)
    differentiate(everything, tensors)
    held = [*tensors, SEEN, torch.float32, torch.Tensor, torch.nn.Parameter]
    before = [sys.getrefcount(x) for x in held]
    made = list(map(weakref.ref, differentiate(everything, tensors)))
    assert not any(x() for x in made)
    for _ in range(50):
        differentiate(everything, tensors)
    assert all(abs(sys.getrefcount(x) - count) < 20 for x, count in zip(held, before))
