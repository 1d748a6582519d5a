"""Gradients of captured tensors and biases that are views of any strides: permuted pair biases, T5."""

import math

import numpy as np
import pytest

import attn

torch = pytest.importorskip("torch")

B, H, M, N, D = 2, 3, 9, 11, 8

# Of a leaf (M, N, H + 1), a table (H, M, N).
VIEWS = {
    "permuted": lambda x: x[..., :H].permute(2, 0, 1),
    "expanded": lambda x: x[:, :1, :H].permute(2, 0, 1).expand(H, M, N),
    "a column": lambda x: x[..., 1].expand(H, M, N),
    "transposed": lambda x: x[..., 0].mT.contiguous().mT.expand(H, M, N),
}


def inputs():
    return [torch.randn(B, H, s, D) for s in (M, N, N)], torch.randn(M, N, H + 1)


def define(q, k, v, table):
    s = q.double() @ k.double().mT / math.sqrt(D) + table.double()
    return torch.softmax(s, -1) @ v.double()


def by_score(q, k, v, table):
    return attn.attention(q, k, v, score=lambda s, b, h, i, j: s + table[h, i, j])


def by_mask(q, k, v, table):
    from attn.integrations.torch import scaled_dot_product_attention

    return scaled_dot_product_attention(q, k, v, attn_mask=table)


@pytest.mark.parametrize("call", [by_score, by_mask])
@pytest.mark.parametrize(
    "view, is_compiled", [*((view, False) for view in VIEWS), ("permuted", True)]
)
def test_autograd(view, is_compiled, call):
    tensors, leaf = inputs()
    run = lambda leaf, *tensors: call(*tensors, VIEWS[view](leaf))
    torch._dynamo.reset()
    if is_compiled:
        run = torch.compile(run, backend="aot_eager", fullgraph=True)
    leaves = [x.requires_grad_() for x in (leaf, *tensors)]
    output = run(*leaves)
    wanted = define(*tensors, VIEWS[view](leaf))
    assert torch.allclose(output.double(), wanted, atol=1e-5)
    d_output = torch.randn_like(output)
    found = torch.autograd.grad(output, leaves, d_output)
    for x, y in zip(found, torch.autograd.grad(wanted, leaves, d_output.double())):
        assert torch.allclose(x, y, atol=1e-4)


@pytest.mark.parametrize("view", [*VIEWS, "reversed"])
def test_gradients_without_autograd(view):
    tensors, leaf = inputs()
    q, k, v = [x.numpy() for x in tensors]
    do = np.random.rand(B, H, M, D).astype("float32")
    table = VIEWS.get(view, VIEWS["permuted"])(leaf).numpy()
    if view == "reversed":
        table = table[:, ::-1, ::-1]
    found = attn.gradient(q, k, v, do, score=lambda s, b, h, i, j: s + table[h, i, j], wrt=[table])
    dense = torch.from_numpy(table.copy()).requires_grad_()
    (wanted,) = torch.autograd.grad(define(*tensors, dense), dense, torch.from_numpy(do).double())
    # In the shape of the array, and dense.
    assert found[3].shape == table.shape and found[3].flags.c_contiguous
    assert np.allclose(found[3], wanted, atol=1e-4)
