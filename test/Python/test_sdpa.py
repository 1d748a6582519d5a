"""attn.integrations.torch.scaled_dot_product_attention: every legal call, equal to PyTorch's."""

import itertools

import pytest

torch = pytest.importorskip("torch")
from attn.integrations import torch as integration  # noqa: E402
from torch.nn.attention.bias import causal_lower_right, causal_upper_left  # noqa: E402

sdpa = torch.nn.functional.scaled_dot_product_attention
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3, torch.float64: 1e-9}


def make(q=(2, 4, 7, 16), k=(2, 4, 9, 16), v=None, dtype=torch.float32):
    return [torch.randn(shape).to(dtype) for shape in (q, k, v or k)]


def list_calls():
    """(name, tensors, keywords, whether attn serves it)."""
    calls = []

    def add(name, tensors, served=True, **how):
        calls.append((name, tensors, how, served))

    for dtype, causal in itertools.product(
        (torch.float32, torch.bfloat16, torch.float16), (False, True)
    ):
        add(f"{dtype} causal={causal}", make(dtype=dtype), is_causal=causal)
    for m, n, causal in itertools.product((1, 7, 33), (1, 9, 40), (False, True)):
        add(f"M={m} N={n} causal={causal}", make((2, 4, m, 16), (2, 4, n, 16)), is_causal=causal)
    for d, dv in ((1, 1), (3, 5), (16, 32), (80, 80), (64, 8), (130, 130)):
        add(f"D={d} Dv={dv}", make((2, 4, 7, d), (2, 4, 9, d), (2, 4, 9, dv)))
    for scale in (0.0, 0.3, 1.0, -0.7):
        add(f"scale {scale}", make(), scale=scale)
    # Ranks, and batches that are broadcast.
    for q, k in (
        ((7, 16), (9, 16)),
        ((3, 7, 16), (3, 9, 16)),
        ((3, 7, 16), (1, 9, 16)),
        ((1, 7, 16), (3, 9, 16)),
        ((2, 3, 4, 7, 16), (2, 3, 4, 9, 16)),
        ((2, 3, 4, 7, 16), (1, 3, 4, 9, 16)),
        ((2, 3, 4, 7, 16), (3, 4, 9, 16)),
        ((1, 4, 7, 16), (2, 4, 9, 16)),
        ((2, 4, 7, 16), (1, 4, 9, 16)),
        ((2, 1, 7, 16), (2, 4, 9, 16)),
        ((2, 4, 7, 16), (2, 1, 9, 16)),
        ((4, 7, 16), (2, 4, 9, 16)),
        ((2, 2, 2, 2, 7, 16), (2, 2, 2, 2, 9, 16)),
    ):
        for causal in (False, True):
            add(f"ranks {q} {k} causal={causal}", make(q, k), is_causal=causal)
    # Heads in groups.
    for heads, k_heads, v_heads in (
        (4, 2, 2),
        (4, 1, 1),
        (8, 4, 2),
        (8, 2, 4),
        (6, 3, 2),
        (4, 4, 4),
    ):
        shapes = (2, heads, 7, 16), (2, k_heads, 9, 16), (2, v_heads, 9, 16)
        add(f"groups {heads} {k_heads} {v_heads}", make(*shapes), enable_gqa=True)
        add(
            f"groups {heads} {k_heads} {v_heads} causal",
            make(*shapes),
            enable_gqa=True,
            is_causal=True,
        )
    # Masks.
    for shape in (
        (7, 9),
        (1, 9),
        (7, 1),
        (1, 1),
        (4, 7, 9),
        (1, 7, 9),
        (4, 1, 9),
        (2, 4, 7, 9),
        (2, 1, 7, 9),
        (1, 4, 7, 9),
        (2, 1, 1, 9),
        (1, 1, 1, 1),
    ):
        keep = torch.rand(shape) < 0.7
        add(f"bool mask {shape}", make(), attn_mask=keep)
        add(f"float mask {shape}", make(), attn_mask=torch.randn(shape))
        add(
            f"float mask of -inf {shape}",
            make(),
            attn_mask=torch.zeros(shape).masked_fill(~keep, -torch.inf),
        )
    least = torch.finfo(torch.float32).min
    add("a mask of finfo.min", make(), attn_mask=torch.full((7, 9), least))
    add("nothing kept", make(), attn_mask=torch.zeros(7, 9, dtype=torch.bool))
    for dtype in (torch.bfloat16, torch.float16):
        add(f"mask of {dtype}", make(dtype=dtype), attn_mask=torch.randn(7, 9).to(dtype))
        add(f"bool mask beside {dtype}", make(dtype=dtype), attn_mask=torch.rand(7, 9) < 0.7)
    for shape in ((2, 3, 4, 7, 9), (1, 3, 1, 7, 9), (3, 4, 7, 9), (7, 9)):
        tensors = make((2, 3, 4, 7, 16), (2, 3, 4, 9, 16))
        add(f"rank 5, mask {shape}", tensors, attn_mask=torch.randn(shape))
    add("expanded mask", make(), attn_mask=(torch.rand(2, 1, 1, 9) < 0.7).expand(2, 4, 7, 9))
    add("transposed mask", make(), attn_mask=torch.randn(9, 7).T)
    add("masked groups", make(k=(2, 2, 9, 16)), enable_gqa=True, attn_mask=torch.randn(4, 7, 9))
    add("upper left", make(), attn_mask=causal_upper_left(7, 9))
    add("lower right", make(), attn_mask=causal_lower_right(7, 9))
    # Strides.
    q, k, v = make((2, 7, 4, 16), (2, 9, 4, 16))
    add("rows first", [x.transpose(1, 2) for x in (q, k, v)])
    add("columns apart", [x[..., ::2] for x in make((2, 4, 7, 32), (2, 4, 9, 32))])
    add("columns last", [x.mT.contiguous().mT for x in make()])
    add("expanded keys", [q.transpose(1, 2), *[x[:, :1].expand(2, 4, 9, 16) for x in make()[1:]]])
    add("one tensor thrice", [make()[0]] * 3)
    # Nothing there.
    add("no rows", make((2, 4, 0, 16)))
    add("no keys", make(k=(2, 4, 0, 16)))
    # PyTorch's own.
    add("f64", make(dtype=torch.float64), served=False)
    add("no columns", make((2, 4, 7, 0), (2, 4, 9, 0), (2, 4, 9, 16)), served=False)
    add("no values", make(v=(2, 4, 9, 0)), served=False)
    add("no batch", make((0, 4, 7, 16), (0, 4, 9, 16)), served=False)
    return calls


def check(got, wanted):
    assert got.shape == wanted.shape and got.dtype == wanted.dtype
    assert torch.allclose(got.double(), wanted.double(), atol=TOLERANCE[got.dtype], rtol=1e-3)


def test_legal_calls():
    calls = list_calls()
    assert len(calls) >= 120 and sum(served for *_, served in calls) >= 110
    for name, tensors, how, is_served in calls:
        wanted = sdpa(*tensors, **how)
        served, fallbacks = integration.served.total(), integration.fallbacks.total()
        got = integration.scaled_dot_product_attention(*tensors, **how)
        assert integration.served.total() - served == is_served, name
        assert integration.fallbacks.total() - fallbacks == (not is_served), name
        try:
            check(got, wanted)
        except AssertionError:
            pytest.fail(name)


@pytest.mark.parametrize(
    "tensors, how",
    [
        (make(k=(2, 4, 9, 8)), {}),
        (make(k=(2, 3, 9, 16)), {}),
        (make(k=(2, 3, 9, 16)), {"enable_gqa": True}),
        (make(), {"attn_mask": torch.ones(7, 8)}),
        (make(), {"attn_mask": torch.ones(7, 9, dtype=torch.int32)}),
        (make(), {"attn_mask": torch.ones(7, 9, dtype=torch.bool), "is_causal": True}),
        ([make()[0], make()[1].double(), make()[2]], {}),
    ],
)
def test_wrong_calls_fail_as_before(tensors, how):
    def outcome(function):
        try:
            return function(*tensors, **how)
        except Exception as error:  # noqa: BLE001
            return type(error), str(error)

    ours, theirs = outcome(integration.scaled_dot_product_attention), outcome(sdpa)
    assert type(ours) is type(theirs)
    assert torch.equal(ours, theirs) if isinstance(ours, torch.Tensor) else ours == theirs


def test_reasons_are_named():
    q, k, v = make()
    integration.fallbacks.clear()
    with pytest.raises(RuntimeError):
        integration.scaled_dot_product_attention(q, k, v, dropout_p=1.5)
    integration.scaled_dot_product_attention(q.double(), k.double(), v.double())
    assert dict(integration.fallbacks) == {
        "a dropout_p that is no probability": 1,
        "elements of torch.float64": 1,
    }


def test_gradients():
    for how in ({}, {"is_causal": True}, {"attn_mask": torch.rand(2, 1, 7, 9) < 0.7}):
        tensors = [x.requires_grad_() for x in make(k=(2, 2, 9, 16))]
        output = integration.scaled_dot_product_attention(*tensors, enable_gqa=True, **how)
        d_output = torch.randn_like(output)
        got = torch.autograd.grad(output, tensors, d_output)
        wanted = torch.autograd.grad(sdpa(*tensors, enable_gqa=True, **how), tensors, d_output)
        for x, y in zip(got, wanted):
            check(x, y)


@pytest.mark.parametrize("shape", [(7, 9), (4, 7, 9), (2, 1, 7, 1), (2, 4, 7, 9)])
def test_gradients_of_masks(shape):
    tensors = [x.requires_grad_() for x in (*make(k=(2, 2, 9, 16)), torch.randn(shape))]
    served = integration.served["scaled_dot_product_attention"]

    def call(function):
        *qkv, mask = tensors
        output = function(*qkv, attn_mask=mask, enable_gqa=True)
        return torch.autograd.grad((output * weights).sum(), tensors)

    weights = torch.randn(2, 4, 7, 16)
    for x, y in zip(call(integration.scaled_dot_product_attention), call(sdpa)):
        check(x, y)
    assert integration.served["scaled_dot_product_attention"] == served + 1


def test_patch():
    q, k, v = make()
    layer = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()
    x = torch.randn(2, 5, 16)
    wanted = layer(x, x, x, need_weights=False)[0]
    served = integration.served.total()
    with integration.patch():
        got = layer(x, x.clone(), x.clone(), need_weights=False)[0]
        torch.nn.functional.scaled_dot_product_attention(q, k, v)
    assert integration.served.total() == served + 2
    check(got.detach(), wanted.detach())
    assert torch.nn.functional.scaled_dot_product_attention is sdpa
    integration.patch().undo()
    assert torch.nn.functional.scaled_dot_product_attention is sdpa


def test_one_graph():
    q, k, v = make()
    compiled = torch.compile(
        lambda q, k, v: integration.scaled_dot_product_attention(q, k, v, is_causal=True) + 1,
        fullgraph=True,
        backend="aot_eager",
    )
    check(compiled(q, k, v), sdpa(q, k, v, is_causal=True) + 1)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_masks_in_one_graph(kind):
    torch._dynamo.reset()
    q, k, v = make()
    m, n = q.shape[-2], k.shape[-2]
    mask = torch.randn(1, 4, m, n) if kind == "float" else torch.rand(m, n) < 0.7
    before = integration.fallbacks.total()
    compiled = torch.compile(
        lambda *x: integration.scaled_dot_product_attention(*x) + 1,
        fullgraph=True,
        backend="aot_eager",
    )
    check(compiled(q, k, v, mask), sdpa(q, k, v, mask) + 1)
    assert integration.fallbacks.total() == before
