"""attention that starts from a state: attention to some keys goes on with others."""

import attn
import numpy as np
import pytest
import reference

torch = pytest.importorskip("torch")


def make(dtype=torch.float32, m=33, n=96, rows_first=False):
    generator = torch.Generator().manual_seed(0)
    shapes = (2, 4, m, 32), (2, 2, n, 32), (2, 2, n, 48)
    tensors = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
    return [x.transpose(1, 2).contiguous() if rows_first else x for x in tensors]


def go_on(q, k, v, count=3, sink=None, dim=2, out_dtype=None, **how):
    """Part after part of the keys, the first with the sink."""
    state = None
    parts = list(zip(k.chunk(count, dim), v.chunk(count, dim)))
    for i, (x, y) in enumerate(parts):
        type_ = out_dtype if i + 1 == len(parts) else torch.float32
        more = {"sink": sink} if i == 0 else {}
        state = attn.attention(q, x, y, state=state, return_lse=True, out_dtype=type_, **more, **how)
    return state


@pytest.mark.parametrize("dtype, bound", [(torch.float32, 3e-6), (torch.bfloat16, 2e-2), (torch.float16, 3e-3)])
def test_parts_are_the_whole(dtype, bound):
    q, k, v = make(dtype)
    output, lse = go_on(q, k, v)
    wanted = reference.attention(*(np.repeat(x.double().numpy(), 1, 0) for x in (q, k, v)))
    assert output.dtype == dtype and lse.dtype == torch.float32
    np.testing.assert_allclose(output.double().numpy(), wanted[0], rtol=bound, atol=bound)
    np.testing.assert_allclose(lse.numpy(), wanted[1], rtol=1e-5, atol=1e-2 if dtype != torch.float32 else 1e-5)


@pytest.mark.parametrize("how", [
    {"scale": 0.3}, {"score": lambda s, b, h, q, kv: attn.tanh(s / 5) * 5}, {"layout": "bshd"},
    {"sink": torch.tensor([0.5, -1.0, 2.0, 0.0])},
], ids=lambda how: next(iter(how)))
def test_arguments(how):
    rows_first = "layout" in how
    q, k, v = make(rows_first=rows_first)
    output, lse = go_on(q, k, v, dim=1 if rows_first else 2, **how)
    wanted = attn.attention(q, k, v, return_lse=True, **how)
    torch.testing.assert_close(output, wanted[0], rtol=1e-5, atol=2e-6)
    torch.testing.assert_close(lse, wanted[1], rtol=1e-5, atol=2e-6)


def test_what_keeps_nothing():
    """Neither a state of nothing nor keys that a mask drops change the other."""
    q, k, v = make()
    wanted = attn.attention(q, k, v, return_lse=True)
    nothing = torch.full_like(wanted[0], torch.nan), torch.full_like(wanted[1], -torch.inf)
    for got in (
        attn.attention(q, k, v, state=nothing, return_lse=True),
        attn.attention(q, k, v, state=wanted, mask=lambda b, h, q, kv: kv < 0, return_lse=True),
    ):
        for x, y in zip(got, wanted):
            torch.testing.assert_close(x, y, rtol=1e-6, atol=1e-6)
    output, lse = attn.attention(q, k, v, state=nothing, mask=lambda b, h, q, kv: kv < 0, return_lse=True)
    assert not output.any() and (lse == -torch.inf).all()


def test_numpy_and_one_result():
    q, k, v = (x.numpy() for x in make())
    first = attn.attention(q, k[:, :, :40], v[:, :, :40], return_lse=True)
    output = attn.attention(q, k[:, :, 40:], v[:, :, 40:], state=first)
    assert isinstance(output, np.ndarray)
    np.testing.assert_allclose(output, attn.attention(q, k, v), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients(dtype):
    tensors = [x.requires_grad_() for x in make(dtype)]
    weights = torch.randn(2, 4, 33, 48, generator=torch.Generator().manual_seed(1))
    found = torch.autograd.grad((go_on(*tensors)[0].float() * weights).sum(), tensors)
    wanted = torch.autograd.grad((attn.attention(*tensors).float() * weights).sum(), tensors)
    bound = 1e-5 if dtype == torch.float32 else 4e-2
    for x, y in zip(found, wanted):
        torch.testing.assert_close(x, y, rtol=bound, atol=bound)


def test_gradients_of_the_state():
    q, k, v = make()
    state = [x.requires_grad_() for x in attn.attention(q, k, v, return_lse=True)]
    output, lse = attn.attention(q, k * 0.5, v, state=tuple(state), return_lse=True)
    found = torch.autograd.grad(output.sum() + lse.sum(), state)
    share = torch.exp(state[1] - lse)
    torch.testing.assert_close(found[0], share[..., None].expand_as(found[0]), rtol=1e-4, atol=1e-6)
    exact = share * (((state[0] - output).sum(3)) + 1)
    torch.testing.assert_close(found[1], exact, rtol=1e-4, atol=1e-5)


def test_in_a_graph():
    q, k, v = make(torch.bfloat16)

    def step(q, k, v):
        return go_on(q, k, v, out_dtype=torch.float32, causal=False)

    got = torch.compile(step, fullgraph=True, backend="aot_eager")(q, k, v)
    for x, y in zip(got, step(q, k, v)):
        torch.testing.assert_close(x, y, rtol=1e-6, atol=1e-6)


def test_under_autocast():
    q, k, v = make()
    first = attn.attention(q, k, v, return_lse=True)
    with torch.autocast("cpu", torch.bfloat16):
        assert attn.attention(q, k, v, state=first).dtype == torch.bfloat16


@pytest.mark.parametrize("change, words", [
    (lambda o, x: o, r"state: expected \(output, lse\), got Tensor"),
    (lambda o, x: (o, x, x), r"state: expected \(output, lse\), got tuple"),
    (lambda o, x: (o.bfloat16(), x), r"state\[0\]: expected float32 of shape \(2, 4, 33, 48\), got torch.bfloat16"),
    (lambda o, x: (o, x[:, :2]), r"state\[1\]: expected float32 of shape \(2, 4, 33\), got torch.float32 of shape"),
    (lambda o, x: (o, 1.0), r"state\[1\]: expected float32"),
])
def test_what_is_refused(change, words):
    q, k, v = make()
    with pytest.raises(attn.Error, match=words):
        attn.attention(q, k, v, state=change(*attn.attention(q, k, v, return_lse=True)))


def test_other_types_are_refused():
    q, k, v = make(torch.bfloat16)
    state = attn.attention(q, k, v, return_lse=True, out_dtype="float32")
    with pytest.raises(attn.Error, match="out_dtype: expected torch.bfloat16 or float32"):
        attn.attention(q, k, v, state=state, out_dtype=torch.float16)
    narrow = [x.to(torch.float8_e4m3fn) for x in (q, k, v)]
    with pytest.raises(attn.Error, match="state: expected None where elements have 8 bits, got one"):
        attn.attention(*narrow, state=state)


def test_parts_of_keys_that_stand_in_a_whole():
    """Keys in two parts, of which the second starts from the first: each counts positions of the whole."""
    q, k, v = (x.requires_grad_() for x in make(m=50, n=50))
    whole = attn.attention(q, k, v, causal=True)
    wanted = torch.autograd.grad(whole.square().sum(), (q, k, v))
    how = dict(causal=True, total=(50, 50), return_lse=True)
    state = attn.attention(q, k[:, :, :30], v[:, :, :30], positions=(None, [(0, 30)]), **how)
    output, _ = attn.attention(q, k[:, :, 30:], v[:, :, 30:], positions=(None, [(30, 50)]), state=state, **how)
    torch.testing.assert_close(output, whole, rtol=1e-5, atol=1e-5)
    for x, y in zip(torch.autograd.grad(output.square().sum(), (q, k, v)), wanted):
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-4)
