"""Captured NumPy arrays and sinks of every make beside PyTorch's q, k and v: a call that autograd
records takes and refuses the same ones as a call that nobody watches."""

import warnings

import numpy as np
import pytest

import attn
from reference import attention, check

torch = pytest.importorskip("torch")

M, N = 5, 6


def inputs():
    return tuple(torch.randn(1, 2, s, 16) for s in (M, N, N))


def make(kind):
    base = np.random.default_rng(0).standard_normal((2, M, N)).astype("float32")
    if kind == "negative strides":
        return base[::-1, :, ::-1]
    if kind == "read-only":
        base.flags.writeable = False
        return base
    if kind == "bfloat16":
        return base.astype(pytest.importorskip("ml_dtypes").bfloat16)[:, ::-1]
    if kind == "expanded":
        return np.broadcast_to(base[:, :1], base.shape)
    if kind == "a field":
        # 8 bytes from one to the next.
        table = np.zeros((2, M, N), dtype=[("a", "f4"), ("b", "f4")])
        table["a"] = base
        return table["a"]
    if kind == "a subclass":
        return base.view(type("Sub", (np.ndarray,), {}))
    if kind == "an odd field":
        return np.zeros((2, M, N), dtype=[("a", "f4"), ("b", "i1")])["a"]
    if kind == "another order":
        return base.astype(">f4")
    if kind == "structured":
        return np.zeros((2, M, N), dtype=[("a", "f4"), ("b", "i1")])
    if kind == "unsigned":
        return base.astype("uint32")
    if kind == "unaligned":
        return np.frombuffer(bytearray(base.nbytes + 1), "uint8")[1:].view("f4").reshape(base.shape)
    return np.ma.masked_array(base)


SERVED = "negative strides", "read-only", "bfloat16", "expanded", "a field", "a subclass"
REFUSED = {
    "an odd field": "bias: expected strides of whole elements",
    "another order": "bias: expected elements of float16, bfloat16, float32, ",
    "structured": "bias: expected elements of float16, bfloat16, float32, ",
    "unsigned": "bias: expected elements of float16, bfloat16, float32, ",
    "unaligned": "bias: expected data aligned to its elements of 4 bytes",
    "masked": "bias: expected an array without a mask, got a masked array",
}


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("kind", SERVED)
def test_served(kind, is_recorded):
    q, k, v = inputs()
    bias = make(kind)
    table = bias.astype("float64")
    wanted, _ = attention(q, k, v, score=lambda s, b, h, i, j: s + table[h, i, j])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        output = attn.attention(
            q.requires_grad_(is_recorded), k, v, score=lambda s, b, h, i, j: s + bias[h, i, j]
        )
    check(output.detach().numpy(), wanted)
    assert output.requires_grad == is_recorded
    if is_recorded:
        output.sum().backward()
        assert bool(q.grad.isfinite().all())


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("kind", REFUSED)
def test_refused(kind, is_recorded):
    q, k, v = inputs()
    bias = make(kind)
    with pytest.raises(attn.Error) as error:
        attn.attention(
            q.requires_grad_(is_recorded), k, v, score=lambda s, b, h, i, j: s + bias[h, i, j]
        )
    assert REFUSED[kind] in str(error.value)


@pytest.mark.parametrize("what", ["captured", "sink"])
def test_what_changes_after_the_call(what):
    """Gradients are those of the call, whatever is written to arrays between forward and backward."""
    q, k, v = inputs()
    table, sink = make("expanded").copy(), np.float32([0.5, -1.0])

    def run(q, table, sink):
        return attn.attention(q, k, v, score=lambda s, b, h, i, j: s * table[h, i, j], sink=sink)

    wanted = q.clone().requires_grad_()
    run(wanted, torch.tensor(table), torch.tensor(sink)).pow(2).sum().backward()
    output = run(q.requires_grad_(), table, sink).pow(2).sum()
    changed = table if what == "captured" else sink
    changed *= 100
    output.backward()
    assert torch.equal(q.grad, wanted.grad)


@pytest.mark.parametrize("is_recorded", [False, True])
def test_sinks(is_recorded):
    q, k, v = inputs()
    q.requires_grad_(is_recorded)
    floats = np.float32([0.5, -1.0])
    frozen = floats[::-1].copy()
    frozen.flags.writeable = False
    for sink in (floats[::-1], frozen, floats.astype("f8")[::-1], floats.astype("f2")):
        wanted, _ = attention(q.detach(), k, v, sink=sink)
        check(attn.attention(q, k, v, sink=sink).detach().numpy(), wanted)
    for sink in (floats > 0, floats.astype("int16"), floats.astype(">f4"), torch.tensor([1, 2])):
        with pytest.raises(attn.Error, match="sink: expected floats of shape"):
            attn.attention(q, k, v, sink=sink)
    with pytest.raises(attn.Error, match="sink: expected an array without a mask"):
        attn.attention(q, k, v, sink=np.ma.masked_array(floats))
