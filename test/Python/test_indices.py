"""Indices of captured arrays below 0 and beyond the last: what the library of the array does, or an
error; at a distance of attention itself the nearest element. Forward and gradients."""

import numpy as np
import pytest

import attn

torch = pytest.importorskip("torch")
from attn.integrations import torch as integration  # noqa: E402

S, D = 9, 8
IDS = torch.tensor([-1, -2, 0, 1, 2, 3, 4, 5, -9])
# (index, extent of the table)
FROM_END = {
    "i - j": (lambda i, j: i - j, 40),
    "(i - j) // 2": (lambda i, j: (i - j) // 2, 40),
    "j - 9": (lambda i, j: j - 9, 9),
    "ids[j]": (lambda i, j: IDS[j], 9),
    "-1": (lambda i, j: -1, 9),
    "j + 1 - 3": (lambda i, j: j + 1 - 3, 11),
}


def make():
    return [torch.randn(1, 2, S, D, requires_grad=True) for _ in range(3)]


def define(tensors, bias):
    q, k, v = (x.double() for x in tensors)
    return torch.softmax(q @ k.mT / D**0.5 + bias.double(), -1) @ v


def compare(output, wanted, of):
    assert torch.allclose(output.double(), wanted, atol=1e-5)
    d_output = torch.randn_like(output)
    gradients = torch.autograd.grad(output, of, d_output)
    for got, x in zip(gradients, torch.autograd.grad(wanted, of, d_output.double())):
        assert torch.allclose(got, x.to(got.dtype), atol=1e-4)


ROWS, KEYS = torch.arange(S)[:, None], torch.arange(S)[None, :]


@pytest.mark.parametrize("way", ["eager", "compiled"])
@pytest.mark.parametrize("name", FROM_END)
def test_flex_counts_from_the_end(name, way):
    index, extent = FROM_END[name]
    table, tensors = torch.randn(extent, requires_grad=True), make()
    score = lambda s, b, h, i, j: s + table[index(i, j)]
    call = integration.flex_attention
    if way == "compiled":
        torch._dynamo.reset()
        call = torch.compile(call, backend="aot_eager", fullgraph=True)
    output = call(*tensors, score_mod=score)
    wanted = define(tensors, table[index(ROWS, KEYS)].expand(S, S))
    compare(output, wanted, (*tensors, table))


def test_a_mask_of_flex_counts_from_the_end():
    keep, tensors = torch.rand(2, 40) < 0.7, make()
    keep[:, 0] = True
    block = integration.create_block_mask(lambda b, h, i, j: keep[h - 2, i - j], 1, 2, S, S)
    output = integration.flex_attention(*tensors, block_mask=block)
    bias = torch.zeros(2, S, S).masked_fill(~keep[:, ROWS - KEYS], -torch.inf)
    compare(output, define(tensors, bias), tensors)


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_attention_counts_from_the_end_but_at_distances(library):
    table, tensors = torch.randn(9, requires_grad=library == "torch"), make()
    held = table if library == "torch" else table.numpy()
    ids = IDS if library == "torch" else IDS.numpy()
    of = (*tensors, table) if library == "torch" else tensors
    for name in ("j - 9", "ids[j]", "-1"):
        index, _ = FROM_END[name]
        given = (lambda i, j: ids[j]) if name == "ids[j]" else index
        output = attn.attention(*tensors, score=lambda s, b, h, i, j: s + held[given(i, j)])
        compare(output, define(tensors, table[index(ROWS, KEYS)].expand(S, S)), of)
    # The nearest element; of the middle of the table, and of what lies beyond both ends.
    output = attn.attention(*tensors, score=lambda s, b, h, i, j: s + held[i - j + 2])
    compare(output, define(tensors, table[(ROWS - KEYS + 2).clamp(0, 8)]), of)


@pytest.mark.parametrize("place", [1, 4, 10_000_000])
@pytest.mark.parametrize(
    "call", [attn.attention, integration.flex_attention], ids=["attention", "flex"]
)
def test_positions_beyond_the_last_are_refused(call, place):
    table, tensors = torch.randn(S), [x.detach() for x in make()]
    name = "score" if call is attn.attention else "score_mod"
    with pytest.raises(attn.Error, match=f"table: expected at least {S + place} elements"):
        call(*tensors, **{name: lambda s, b, h, i, j: s + table[j + place]})
    with pytest.raises(attn.Error, match="table: expected a shape of at least"):
        call(*tensors, **{name: lambda s, b, h, i, j: s + table[-S - place]})
    enough = torch.randn(S + 1)
    output = call(*tensors, **{name: lambda s, b, h, i, j: s + enough[1 + i]})
    assert torch.allclose(output.double(), define(tensors, torch.zeros(())), atol=1e-5)


def test_jax_takes_the_last_element_beyond_it():
    jax = pytest.importorskip("jax")
    import attn.jax

    x = [jax.numpy.asarray(np.random.default_rng(0).standard_normal((1, S, 2, D)), "float32")] * 3
    table = jax.numpy.arange(S, dtype="float32") ** 2 / 20
    j = jax.numpy.arange(S)
    inside = [lambda i, j: i - j, lambda i, j: j - 9, lambda i, j: j]
    for index in (*inside, lambda i, j: j + 4, lambda i, j: j - 13):

        def define_in_jax(q, table):
            bias = table[jax.numpy.broadcast_to(index(j[:, None], j[None, :]), (S, S))]
            return jax.nn.dot_product_attention(q, *x[1:], bias=bias[None, None])

        def call(q, table):
            score = lambda s, b, h, i, j: s + table[index(i, j)]
            return attn.jax.attention(q, *x[1:], score=score)

        assert np.allclose(call(x[0], table), define_in_jax(x[0], table), atol=1e-5)
        gradients = [
            jax.grad(lambda *a: (f(*a) ** 2).sum(), argnums=(0, 1))(x[0], table)
            for f in (call, define_in_jax)
        ]
        assert np.allclose(gradients[0][0], gradients[1][0], atol=1e-4)
        # Of what lies beyond the ends JAX drops the gradient. Here it is that of what is read.
        if index in inside:
            assert np.allclose(gradients[0][1], gradients[1][1], atol=1e-4)


def test_attention_in_graphs_reads_what_it_reads_outside_of_them():
    torch._dynamo.reset()
    table, tensors = torch.randn(9, requires_grad=True), make()
    score = lambda s, b, h, i, j: s + table[i - j + 2] + table[IDS[j]]
    call = lambda *x: attn.attention(*x, score=score)
    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    for each in (call, compiled):
        bias = table[(ROWS - KEYS + 2).clamp(0, 8)] + table[IDS[KEYS]]
        compare(each(*tensors), define(tensors, bias), (*tensors, table))
