"""fixed_split on a GPU: the bits of a row are its own. Skipped without one, as test_cuda.py is."""

import pytest

from attn import serving

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
if torch.cuda.get_device_capability() != (9, 0):
    pytest.skip("no device of compute capability 9.0", allow_module_level=True)
from own_bits import MASKS, Sequences, are_same  # noqa: E402
from ragged_reference import attend, check  # noqa: E402

F = 512
SHAPES = {"D128": (32, 8, 128), "D64": (8, 8, 64), "D256": (8, 2, 256)}
LENGTHS = [1, 64, 511, 512, 513, 1000, 2048, 3333]


def make(shape, rows, dtype, lengths=LENGTHS):
    torch.manual_seed(11)
    return Sequences(lengths, rows, dtype, "cuda", SHAPES[shape])


def read_mask(name, shape):
    heads = SHAPES[shape][0]
    grow = lambda x: x.repeat(-(-heads // len(x)))[:heads].cuda() if isinstance(x, torch.Tensor) else x  # noqa: E731
    return {key: grow(x) for key, x in MASKS[name].items()}


def call(sequences, picked, page, columns, rows=slice(None), fixed_split=F, **how):
    k, v, table, used = sequences.lay(picked, page, columns)
    given = dict(page_table=table, seqused_k=used, fixed_split=fixed_split, return_lse=True)
    return serving.paged_attention(sequences.q[picked][:, rows], k, v, **given, **how)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_batches(shape, name, dtype):
    sequences, how = make(shape, 1, dtype), read_mask(name, shape)
    alone = [torch.cat(x) for x in zip(*(call(sequences, [i], 64, 60, **how) for i in range(8)))]
    for batch, page, columns in ((1, 16, 240), (3, 64, 100), (17, 128, 30), (64, 64, 53), (256, 64, 60)):
        picked = torch.randint(8, (batch,)).tolist()
        found = call(sequences, picked, page, columns, **how)
        assert all(are_same(x, y[picked]) for x, y in zip(found, alone)), batch


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_of_chunks(shape, name):
    """As a step of decoding, in a few rows that are packed, and in a chunk of a prompt."""
    sequences, how = make(shape, 300, torch.bfloat16, [300, 512, 1000, 2049]), read_mask(name, shape)
    output, lse = call(sequences, [0, 1, 2, 3], 64, 40, **how)
    for count in (1, 2, 5, 40, 130):
        found = call(sequences, [0, 1, 2, 3], 64, 40, slice(300 - count, 300), **how)
        assert are_same(found[0], output[:, 300 - count :]), count
        assert are_same(found[1], lse[..., 300 - count :]), count


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["causal", "window", "softcap", "sink", "slopes"])
def test_numbers(shape, name):
    sequences, how = make(shape, 2, torch.bfloat16, [64, 700, 1025]), read_mask(name, shape)
    output, lse = call(sequences, [0, 1, 2], 64, 40, **how)
    how["slopes"] = how.pop("alibi_slopes", None)
    how["window"] = tuple(-1 if x is None else x for x in how.get("window", (-1, -1)))
    for i in range(3):
        wanted, wanted_lse = attend(sequences.q[i], sequences.k[i], sequences.v[i], causal=True, **how)
        check(output[i], wanted, torch.bfloat16)
        check(lse[i], wanted_lse, torch.bfloat16)


def test_a_graph_of_a_batch():
    """Replayed for other lengths and tables, it gives the bits of calls of one sequence."""
    sequences = make("D128", 1, torch.bfloat16)
    k, v, table, used = sequences.lay(list(range(8)), 64, 60)
    q, how = sequences.q.clone(), dict(fixed_split=F)
    out = serving.paged_attention(q, k, v, page_table=table, seqused_k=used, **how)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        serving.paged_attention(q, k, v, page_table=table, seqused_k=used, out=out, **how)
    for _ in range(10):
        order = torch.randperm(8).tolist()
        for x, y in zip((q, k, v, table, used), (sequences.q[order], *sequences.lay(order, 64, 60))):
            x.copy_(y)
        graph.replay()
        for b in range(8):
            one = dict(page_table=table[b : b + 1, :54], seqused_k=used[b : b + 1])
            assert are_same(out[b : b + 1], serving.paged_attention(q[b : b + 1], k, v, **one, **how))


def test_sequences():
    sequences = make("D128", 40, torch.bfloat16, [40, 700, 1300])

    def run(picked, most):
        k, v = (torch.cat([x[i] for i in picked]) for x in (sequences.k, sequences.v))
        rows = torch.arange(len(picked) + 1, device="cuda").int() * 40
        keys = torch.tensor([0, *(sequences.k[i].shape[0] for i in picked)]).cumsum(0).int().cuda()
        most = dict(max_seqlen_q=40, max_seqlen_k=most)
        q = sequences.q[picked].flatten(0, 1)
        return serving.varlen_attention(q, k, v, rows, keys, causal=True, fixed_split=F, **most)

    alone = [run([i], n) for i, n in enumerate([40, 700, 1300])]
    for picked in ([2, 0, 1], [1, 1, 0, 2, 2] * 20):
        assert are_same(run(picked, 4000), torch.cat([alone[i] for i in picked]))
