"""memory_efficient_attention of xFormers: every bias that attn serves beside its definition, and what it refuses.

xFormers need not be installed: a bias is known by its class and fields, which stand here as xFormers has them. Four classes
are compared in each run, and all of them by make test-neighbours.
"""

import os
from types import SimpleNamespace

import pytest

import attn

torch = pytest.importorskip("torch")
from attn.integrations.xformers import _BIASES, memory_efficient_attention  # noqa: E402

pytestmark = pytest.mark.made_of("python/attn/integrations/xformers.py", "python/attn/integrations/_tables.py")

B, H, M, N, D = 2, 4, 13, 18, 16
ROWS, KEYS, WINDOW = (5, 4, 9), (6, 7, 10), 3
PADDING = 11
SAMPLE = [
    "BlockDiagonalCausalLocalAttentionFromBottomRightMask",
    "BlockDiagonalLocalAttentionPaddedKeysMask",
    "LowerTriangularFromBottomRightLocalAttentionMask",
    "LowerTriangularMaskWithTensorBias",
]
TESTED = sorted(_BIASES) if os.environ.get("ATTN_NEIGHBOURS") == "all" else SAMPLE


def lengths(sizes, padding=None):
    """_SeqLenInfo and _PaddedSeqLenInfo of xFormers."""
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + (padding or size))
    found = SimpleNamespace(seqstart=torch.tensor(starts, dtype=torch.int32), seqstart_py=starts)
    if padding:
        found.seqlen, found.seqlen_py, found.padding = torch.tensor(sizes), list(sizes), padding
    return found


def make(name):
    """The bias, as an object of a class of that name."""
    fields = {}
    if "BlockDiagonal" in name:
        fields["q_seqinfo"] = lengths(ROWS)
        fields["k_seqinfo"] = lengths(KEYS, PADDING if "Padded" in name else None)
    if "window" in name.lower() or "Local" in name:
        fields.update(_window_size=WINDOW, window_left=2, window_right=1)
    if "TensorBias" in name:
        fields["_bias"] = torch.linspace(-1, 1, B * H * M * N).view(B, H, M, N)
    return type(name, (), fields)()


def keep_near(m, n, name):
    """One block: what the class keeps of it."""
    i, j = torch.arange(m)[:, None], torch.arange(n)
    # Classes of padded keys with a window or an offset count from the end too.
    if "BottomRight" in name or "WithOffset" in name or ("Local" in name and "Padded" in name):
        i = i + n - m
    keep = torch.ones(m, n, dtype=torch.bool)
    if "Causal" in name or "Triangular" in name:
        keep &= j <= i
        if "Local" in name:
            keep &= j > i - WINDOW
    elif "Local" in name:
        keep &= (j >= i - 2) & (j <= i + 1)
    return keep


def keep_whole(name, m, n):
    if "BlockDiagonal" not in name:
        return keep_near(m, n, name)
    keep = torch.zeros(m, n, dtype=torch.bool)
    row = key = 0
    for rows, keys in zip(ROWS, KEYS):
        keep[row : row + rows, key : key + keys] = keep_near(rows, keys, name)
        row, key = row + rows, key + (PADDING if "Padded" in name else keys)
    return keep


def define(q, k, v, bias, keep):
    q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
    s = q @ k.mT * D**-0.5
    s = s if bias is None else s + bias
    weights = torch.softmax(s.masked_fill(~keep, -torch.inf), -1).nan_to_num()
    return (weights @ v).transpose(1, 2)


def make_tensors(name):
    torch.manual_seed(1)
    is_blocks = "BlockDiagonal" in name
    m, n = (sum(ROWS), sum(KEYS)) if is_blocks else (M, N)
    if "Padded" in name:
        n = PADDING * len(KEYS)
    b = 1 if is_blocks else B
    return tuple(torch.randn(b, x, H, D, requires_grad=True) for x in (m, n, n))


@pytest.mark.parametrize("name", TESTED)
def test_biases(name):
    """Forward and gradients."""
    q, k, v = tensors = make_tensors(name)
    bias = make(name)
    got = memory_efficient_attention(q, k, v, bias)
    wanted = define(q, k, v, getattr(bias, "_bias", None), keep_whole(name, q.shape[1], k.shape[1]))
    assert torch.allclose(got.double(), wanted, atol=2e-5)
    d_output = torch.randn_like(got)
    mine = torch.autograd.grad(got, tensors, d_output)
    theirs = torch.autograd.grad(wanted, tensors, d_output.double())
    for x, y in zip(mine, theirs):
        assert torch.allclose(x, y.float(), atol=1e-4)


@pytest.mark.parametrize("name", sorted(_BIASES))
def test_definitions_are_those_of_xformers(name):
    """Where it, or mslk, is installed."""
    theirs = None
    for module in ("xformers.ops.fmha.attn_bias", "mslk.attention.fmha.attn_bias"):
        try:
            theirs = __import__(module, fromlist=["x"])
        except ImportError:
            continue
    if theirs is None:
        pytest.skip("neither xformers nor mslk is installed")
    kind = getattr(theirs, name)
    blocks = {}
    if "BlockDiagonal" in name:
        blocks["q_seqinfo"] = theirs._SeqLenInfo.from_seqlens(ROWS)
        blocks["k_seqinfo"] = (
            theirs._PaddedSeqLenInfo.from_seqlens_padded(KEYS, PADDING)
            if "Padded" in name
            else theirs._SeqLenInfo.from_seqlens(KEYS)
        )
    if name in ("LocalAttentionFromBottomRightMask", "BlockDiagonalLocalAttentionPaddedKeysMask"):
        blocks.update(window_left=2, window_right=1)
    elif "Local" in name:
        blocks["_window_size"] = WINDOW
    bias = kind(make(name)._bias) if "TensorBias" in name else kind(**blocks)
    q, k, _ = make_tensors(name)
    whole = (q.shape[0], H, q.shape[1], k.shape[1])
    dense = bias.materialize(whole)
    assert torch.equal(dense > -torch.inf, keep_whole(name, *whole[2:]).expand(whole))
    got, wanted = (memory_efficient_attention(*make_tensors(name), x) for x in (bias, make(name)))
    assert torch.equal(got, wanted)


@pytest.mark.parametrize("shape", [(B, H, M, N), (1, 1, M, N), (M, N), (H, 1, N), (B, 1, 1, N)])
def test_tensors(shape):
    q, k, v = make_tensors("")
    bias = torch.randn(shape, requires_grad=True)
    got = memory_efficient_attention(q, k, v, bias, scale=0.1)
    wanted = define(q * (0.1 * D**0.5), k, v, bias, torch.ones(M, N, dtype=torch.bool))
    assert torch.allclose(got.double(), wanted, atol=2e-5)
    mine, theirs = (torch.autograd.grad(x.sum() + (x * x).sum(), bias)[0] for x in (got, wanted))
    assert torch.allclose(mine, theirs.float(), atol=1e-4)


def test_one_head():
    q, k, v = (x[:, :, 0] for x in make_tensors(""))
    got = memory_efficient_attention(q, k, v, make("LowerTriangularMask"))
    whole = memory_efficient_attention(*make_tensors(""), make("LowerTriangularMask"))
    assert torch.equal(got, whole[:, :, 0])


def test_dropout():
    q, k, v = make_tensors("")
    torch.manual_seed(3)
    one = memory_efficient_attention(q, k, v, p=0.5)
    torch.manual_seed(3)
    assert torch.equal(one, memory_efficient_attention(q, k, v, p=0.5))
    assert not torch.allclose(one, memory_efficient_attention(q, k, v))


@pytest.mark.parametrize(
    "how, message",
    [
        ({"op": "cutlass"}, "^op: expected None, got 'cutlass'"),
        ({"output_dtype": torch.float16}, "^output_dtype: expected torch.float32, got torch.float16"),
        ({"attn_bias": torch.zeros(3, N)}, r"^attn_bias: expected a shape that broadcasts to \(2, 4, 13, 18\), got \(3, 18\)"),
        ({"attn_bias": type("PagedBlockDiagonalPaddedKeysMask", (), {})()}, "got a PagedBlockDiagonalPaddedKeysMask .*paged_attention"),
        ({"attn_bias": type("BlockDiagonalGappyKeysMask", (), {})()}, "got a BlockDiagonalGappyKeysMask .*flash_attn_varlen_func"),
        ({"attn_bias": type("MyMask", (), {})()}, "got a MyMask .give what it keeps by mask="),
        ({"attn_bias": make("BlockDiagonalMask")}, "^query and key: expected one batch of 18 rows and 23 keys, as the bias says, got 2 of 13"),
    ],
)
def test_refusals(how, message):
    with pytest.raises(attn.Error, match=message):
        memory_efficient_attention(*make_tensors(""), **how)


def test_groups_are_refused():
    x = torch.zeros(1, 3, 2, 4, 8)
    with pytest.raises(attn.Error, match="^query: expected 3 or 4 dimensions, got shape"):
        memory_efficient_attention(x, x, x)
