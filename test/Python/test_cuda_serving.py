"""Keys and values in pages on a GPU. Skipped without one, as test_cuda.py is."""

import pytest

from attn import serving

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
if torch.cuda.get_device_capability() != (9, 0):
    pytest.skip("no device of compute capability 9.0", allow_module_level=True)


def reference(q, k, v, table, used, window=None, softcap=None):
    """In f64, sequence by sequence; rows are the last ones."""
    batch, rows, heads, d = q.shape
    outputs = []
    for i in range(batch):
        n, page = int(used[i]), k.shape[1]
        pages = table[i, : -(-n // page)].long()
        mine = [x[pages].flatten(0, 1)[:n].double() for x in (k, v)]
        mine = [x.repeat_interleave(heads // x.shape[1], 1) for x in mine]
        s = torch.einsum("mhd,nhd->hmn", q[i].double(), mine[0]) / d**0.5
        if softcap:
            s = softcap * torch.tanh(s / softcap)
        row = torch.arange(rows, device=q.device)[:, None] + n - rows
        key = torch.arange(n, device=q.device)[None]
        keep = (key <= row) & (key >= row - window[0] if window else key >= 0)
        w = torch.nan_to_num(torch.softmax(s.masked_fill(~keep, -torch.inf), -1))
        outputs.append(torch.einsum("hmn,nhd->mhd", w, mine[1]))
    return torch.stack(outputs)


def make(page, d, heads, key_heads, rows):
    """Three sequences of other lengths: entries that nobody needs are garbage, and so are rows."""
    columns = max(1, 1000 // page)
    count = 3 * columns + 5
    k, v = (torch.randn(count, page, key_heads, d, device="cuda").bfloat16() for _ in range(2))
    used = [columns * page, max(1, columns * page // 3 + 7), min(columns * page, rows + 1)]
    table = torch.randperm(count, device="cuda")[: 3 * columns].reshape(3, columns).int()
    for i, n in enumerate(used):
        if n % page:
            for x in (k, v):
                x[table[i, n // page].long(), n % page :] = torch.nan
        garbage = torch.tensor([-1, count, 2147480000, -(2**31)], device="cuda").int()
        table[i, -(-n // page) :] = garbage.repeat(columns)[: columns - -(-n // page)]
    q = torch.randn(3, rows, heads, d, device="cuda").bfloat16()
    return q, k, v, table, torch.tensor(used, device="cuda", dtype=torch.int32)


@pytest.mark.parametrize("how", [{}, {"window": (100, None)}, {"softcap": 20.0}])
@pytest.mark.parametrize("heads, key_heads, rows", [(32, 8, 1), (8, 8, 1), (8, 2, 5), (8, 2, 130)])
@pytest.mark.parametrize("d", [64, 128, 256])
@pytest.mark.parametrize("page", [1, 2, 3, 8, 16, 17, 48, 64, 256])
def test_pages(page, d, heads, key_heads, rows, how):
    torch.manual_seed(page + d + rows)
    q, k, v, table, used = make(page, d, heads, key_heads, rows)
    got = serving.paged_attention(q, k, v, page_table=table, seqused_k=used, **how)
    wanted = reference(q, k, v, table, used, **how)
    torch.testing.assert_close(got.double(), wanted, atol=2e-2, rtol=2e-2)


def test_a_graph_is_replayed_for_other_lengths_and_tables():
    torch.manual_seed(3)
    q, k, v, table, used = make(64, 128, 32, 8, 1)
    call = dict(page_table=table, seqused_k=used)
    out = serving.paged_attention(q, k, v, **call)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        serving.paged_attention(q, k, v, out=out, **call)
    for _ in range(20):
        fresh = make(64, 128, 32, 8, 1)
        for x, y in zip((q, k, v, table, used), fresh):
            x.copy_(y)
        used.copy_(torch.randint(1, int(used[1]), (3,), device="cuda"))
        for i in range(3):
            table[i] = torch.randperm(k.shape[0], device="cuda")[: table.shape[1]].int()
        k.nan_to_num_(), v.nan_to_num_()
        graph.replay()
        assert torch.equal(out, serving.paged_attention(q, k, v, **call))
