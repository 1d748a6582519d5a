"""Block masks of PyTorch whose lists keep fewer keys than their function, and calls of flex_attention
that PyTorch serves beyond attn's own."""

import pytest

torch = pytest.importorskip("torch")
from attn.integrations import torch as integration  # noqa: E402
from attn.integrations import _blocks  # noqa: E402
from torch.nn.attention import flex_attention as flex  # noqa: E402

B, H, M, N, D = 2, 3, 40, 56, 8
SIZE = 16
ROWS, COLUMNS = 3, 4
CAUSAL = lambda b, h, i, j: j <= i + 16
OFFSETS = torch.tensor([[0, 5, 9], [3, 1, 20]])
OF_HEADS = lambda b, h, i, j: j <= i + OFFSETS[b, h]


def to_lists(dense):
    """(counts, indices) of a table of blocks, the listed ones in front of others in any order."""
    order = torch.argsort(dense.to(torch.int8), dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(torch.int32), order.to(torch.int32)


def expand(blocks):
    return blocks.repeat_interleave(SIZE, -2).repeat_interleave(SIZE, -1)[..., :M, :N]


def apply(function):
    if function is None:
        return torch.ones(B, H, M, N, dtype=torch.bool)
    return flex.create_mask(function, B, H, M, N, device="cpu")


def define(q, k, v, keep):
    s = (q.double() @ k.double().mT / D**0.5).masked_fill(~keep, -torch.inf)
    # A row that keeps no key gives 0.
    s = s.masked_fill(~keep.any(-1, keepdim=True), -1e9)
    weights = torch.softmax(s, -1).masked_fill(~keep, 0)
    return weights @ v.double()


def compare(block, keep, is_compiled):
    tensors = [torch.randn(B, H, n, D, requires_grad=True) for n in (M, N, N)]
    call = integration.flex_attention
    if is_compiled:
        torch._dynamo.reset()
        call = torch.compile(call, backend="aot_eager", fullgraph=True)
    output, wanted = call(*tensors, block_mask=block), define(*tensors, keep)
    assert torch.allclose(output.double(), wanted, atol=1e-5)
    d_output = torch.randn_like(output)
    gradients = torch.autograd.grad(output, tensors, d_output)
    for got, x in zip(gradients, torch.autograd.grad(wanted, tensors, d_output.double())):
        assert torch.allclose(got, x, atol=1e-5)


CASES = {
    "blocks alone": ((B, H), False, None),
    "full blocks alone": ((1, 1), True, None),
    "of batches": ((B, 1), False, CAUSAL),
    "of heads": ((1, H), True, CAUSAL),
    "of both": ((B, H), True, OF_HEADS),
}


@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("case", CASES)
def test_lists(case, is_compiled):
    lead, has_full, function = CASES[case]
    kind = torch.randint(0, 3, (*lead, ROWS, COLUMNS))
    full = to_lists(kind == 2) if has_full else (None, None)
    block = flex.BlockMask.from_kv_blocks(
        *to_lists(kind == 1), *full, BLOCK_SIZE=SIZE, mask_mod=function, seq_lengths=(M, N)
    )
    keep = expand(kind == 1) & apply(function)
    compare(block, keep | expand(kind == 2) if has_full else keep, is_compiled)


@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
def test_listed_pages_that_are_not_there(is_compiled):
    """Page tables say -1, and their lists count it."""
    dense = torch.rand(B, 1, ROWS, COLUMNS) < 0.5
    counts, indices = to_lists(dense)
    last = counts.clamp(max=COLUMNS - 1)[..., None].long()
    counts = (counts + 1).clamp(max=COLUMNS)
    indices = indices.scatter(-1, last, -1)
    listed = torch.arange(COLUMNS) < counts[..., None]
    kept = torch.zeros(B, 1, ROWS, COLUMNS + 1, dtype=torch.bool)
    kept.scatter_(-1, torch.where(listed & (indices >= 0), indices, COLUMNS).long(), True)
    how = dict(BLOCK_SIZE=SIZE, seq_lengths=(M, N))
    block = flex.BlockMask.from_kv_blocks(counts, indices, **how, compute_q_blocks=False)
    compare(block, expand(kept[..., :COLUMNS]).expand(B, H, M, N), is_compiled)


def test_lists_that_say_what_the_function_says_are_not_read():
    block = flex.create_block_mask(OF_HEADS, B, H, M, N, device="cpu", BLOCK_SIZE=SIZE)
    assert _blocks.find_mask(block, (M, N)) is OF_HEADS
    whole = torch.ones(1, 1, ROWS, COLUMNS, dtype=torch.bool)
    how = dict(BLOCK_SIZE=SIZE, seq_lengths=(M, N))
    assert _blocks.find_mask(flex.BlockMask.from_kv_blocks(*to_lists(whole), **how), (M, N)) is None
    # Lists may change between calls.
    block.kv_num_blocks.zero_()
    block.full_kv_num_blocks.zero_()
    compare(block, torch.zeros(B, H, M, N, dtype=torch.bool), False)


def test_masks_of_large_lists_are_looked_at_in_pieces(monkeypatch):
    monkeypatch.setattr(_blocks, "_CHUNK", 6 * N * 5)
    block = flex.create_block_mask(OF_HEADS, B, H, M, N, device="cpu", BLOCK_SIZE=SIZE)
    assert _blocks.find_mask(block, (M, N)) is OF_HEADS
    block.kv_num_blocks[1, 2, -1] -= 1
    assert _blocks.find_mask(block, (M, N)) is not OF_HEADS


@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
def test_the_empty_block_mask(is_compiled):
    block = flex._create_empty_block_mask(torch.empty(0), torch.empty(0))
    compare(block, torch.ones(1, 1, M, N, dtype=torch.bool), is_compiled)


@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
def test_one_batch_of_keys(is_compiled):
    torch._dynamo.reset()
    begin = torch.tensor([0, 16, 30])
    mask = lambda b, h, i, j: (j >= begin[b]) & (j <= begin[b] + i)
    block = integration.create_block_mask(mask, 3, None, M, N)
    tensors = [torch.randn(b, H, n, D, requires_grad=True) for b, n in ((3, M), (1, N), (1, N))]
    call = integration.flex_attention
    call = torch.compile(call, backend="aot_eager", fullgraph=True) if is_compiled else call
    output = call(*tensors, block_mask=block)
    keep = flex.create_mask(mask, 3, 1, M, N, device="cpu")
    wanted = define(*tensors, keep)
    assert torch.allclose(output.double(), wanted, atol=1e-5)
    d_output = torch.randn_like(output)
    gradients = torch.autograd.grad(output, tensors, d_output)
    for got, x in zip(gradients, torch.autograd.grad(wanted, tensors, d_output.double())):
        assert torch.allclose(got, x, atol=1e-5)
    with pytest.raises(ValueError, match="key: expected 3 batches"):
        integration.flex_attention(*tensors)


@pytest.mark.parametrize("create", [flex.create_block_mask, integration.create_block_mask])
def test_f64_is_of_pytorch(create, monkeypatch):
    # Also where attn stands in PyTorch's place.
    monkeypatch.setattr(flex, "flex_attention", integration.flex_attention)
    tensors = [torch.randn(B, H, n, D, dtype=torch.float64) for n in (M, N, N)]
    block = create(OF_HEADS, B, H, M, N, device="cpu")
    integration.fallbacks.clear()
    output = integration.flex_attention(*tensors, block_mask=block)
    assert torch.allclose(output, define(*tensors, apply(OF_HEADS)), atol=1e-12)
    assert dict(integration.fallbacks) == {"elements of torch.float64": 1}
