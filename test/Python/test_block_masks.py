"""Masks of blocks: what is read once a tile is what is read by element, and what a dense mask says."""

import numpy as np
import pytest

import attn

torch = pytest.importorskip("torch")

SIZES = [1, 16, 64, 128, 256]
SPELLINGS = {
    "//": lambda position, size: position // size,
    ">>": lambda position, size: position >> (size.bit_length() - 1),
    "twice": lambda position, size: position // max(size // 2, 1) // min(size, 2),
}


def draw(rng, rows, keys):
    """Rows and keys that end within a block, and a table of any density."""
    m, n = rng.integers(1, 2 * rows + 40), rng.integers(1, 2 * keys + 40)
    density = rng.choice([0, 0.1, 0.5, 0.9, 1])
    table = rng.random((2, -(-m // rows), -(-n // keys))) < density
    return int(m), int(n), torch.from_numpy(table)


def spread(table, rows, keys, m, n):
    return table.repeat_interleave(rows, 1).repeat_interleave(keys, 2)[:, :m, :n]


def compute(q, k, v, gradient, **mask):
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    output = attn.attention(*leaves, **mask)
    return [output, *torch.autograd.grad(output, leaves, gradient)]


def check(results, others):
    for result, other in zip(results, others):
        assert not torch.isnan(result).any()
        torch.testing.assert_close(result, other, atol=2e-5, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:attn. 3 kernels differ")
@pytest.mark.parametrize("number", range(6))
def test_blocks_are_elements_are_a_dense_mask(rng, number):
    rows, keys = (int(rng.choice(SIZES)) for _ in range(2))
    if number < 3:
        rows, keys = [(128, 128), (64, 64), (256, 128)][number]
    m, n, table = draw(rng, rows, keys)
    q, k, v = (torch.from_numpy(rng.standard_normal((1, 2, x, 16), dtype=np.float32)) for x in (m, n, n))
    gradient = torch.from_numpy(rng.standard_normal((1, 2, m, 16), dtype=np.float32))
    dense = spread(table, rows, keys, m, n)
    divide = SPELLINGS[rng.choice(list(SPELLINGS))]
    causal = {"causal": "top_left"} if rng.random() < 0.5 else {}
    blocks = compute(q, k, v, gradient, mask=lambda b, h, i, j: table[h, divide(i, rows), divide(j, keys)], **causal)
    elements = compute(q, k, v, gradient, mask=lambda b, h, i, j: dense[h, i, j], **causal)
    check(blocks, elements)
    kept = dense & (torch.arange(n)[None] <= torch.arange(m)[:, None]) if causal else dense
    check(blocks[:1], [torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=kept[None]).nan_to_num()])


def test_tiles_of_dropped_blocks_are_passed_over():
    table = torch.zeros(4, 4, dtype=torch.bool)
    table[1, 2] = True
    q, k, v = (torch.randn(1, 1, 512, 16) for _ in range(3))
    text = str(attn.explain(q, k, v, mask=lambda b, h, i, j: table[i // 128, j // 128]))
    loop = text[text.index("scf.for") :]
    assert loop.index("scf.if") < loop.index("attn.online_attention")
    assert "mask(" not in text


def test_lists_on_a_gpu():
    table = torch.ones(4, 4, dtype=torch.bool)
    text = str(attn.explain("float16", 64, mask=lambda b, h, i, j: table[i // 128, j // 128], device="cuda"))
    assert "attn.list_tiles" in text and "attn.tile_status" not in text
    assert "mask(" not in text
