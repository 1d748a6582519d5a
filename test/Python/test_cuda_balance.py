"""Parts of keys that sequences get by their lengths (the option `balance`), on a GPU. Skipped without one."""

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
if torch.cuda.get_device_capability() != (9, 0):
    pytest.skip("no device of compute capability 9.0", allow_module_level=True)

import attn  # noqa: E402
from attn import serving  # noqa: E402
from ragged_reference import attend  # noqa: E402

D, H, HKV, PAGE = 128, 8, 2, 64
ON = {"balance": "on"}


def make(batch, columns, rows=1):
    """A query, and pools whose pages are in any order."""
    pools = [torch.randn(batch * columns + 3, PAGE, HKV, D, device="cuda").bfloat16() for _ in range(2)]
    table = torch.randperm(len(pools[0]), device="cuda")[: batch * columns].reshape(batch, columns).int()
    return torch.randn(batch, rows, H, D, device="cuda").bfloat16(), pools, table


def gather(pool, table, b, count):
    return pool[table[b].long()].flatten(0, 1)[:count]


def make_lengths(kind, batch, most):
    lengths = torch.randint(1, most + 1, (batch,))
    if kind == "long":
        lengths = torch.full((batch,), 100)
        lengths[batch // 2] = most
    if kind == "equal":
        lengths[:] = most // 2
    if kind == "empty":
        lengths[::2] = 0
    return lengths.to(device="cuda", dtype=torch.int32)


@pytest.mark.parametrize("kind", ["any", "long", "equal", "empty"])
@pytest.mark.parametrize("batch, columns", [(1, 300), (7, 100), (65, 20), (300, 5)])
@pytest.mark.parametrize("how", [{}, {"window": (150, 0)}, {"softcap": 10.0}, {"sink": True}])
def test_rows_of_sequences(kind, batch, columns, how):
    torch.manual_seed(batch)
    q, pools, table = make(batch, columns, rows=2)
    lengths = make_lengths(kind, batch, columns * PAGE)
    how = {**how, "sink": torch.randn(H, device="cuda")} if "sink" in how else how
    out, lse = serving.paged_attention(
        q, *pools, page_table=table, seqused_k=lengths, return_lse=True, options=ON, **how
    )
    plain, plain_lse = serving.paged_attention(
        q, *pools, page_table=table, seqused_k=lengths, return_lse=True, **how
    )
    torch.testing.assert_close(lse, plain_lse, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(out, plain, atol=2e-2, rtol=2e-2)
    for b in range(0, batch, max(1, batch // 8)):
        n = int(lengths[b])
        if n >= 2:
            keys = [gather(pool, table, b, n) for pool in pools]
            wanted = attend(q[b], *keys, causal=True, **how)[0]
            torch.testing.assert_close(out[b].double(), wanted, atol=3e-2, rtol=3e-2)


def test_hostile_lengths_and_tables():
    q, pools, table = make(9, 40)
    lengths = torch.tensor([-5, 2**31 - 1, -(2**31), 0, 1, 40 * PAGE, 40 * PAGE + 1, 700, 64], device="cuda").int()
    good = serving.paged_attention(q, *pools, page_table=table, seqused_k=lengths, options=ON)
    table[:, 30:] = torch.tensor([-1, 2147480000, -(2**31), 10**9] * 2 + [-7, 2**30], device="cuda").int()
    out = serving.paged_attention(q, *pools, page_table=table, seqused_k=lengths, options=ON)
    torch.cuda.synchronize()
    for b in (4, 7, 8):
        assert torch.equal(out[b], good[b])


def test_dense_caches():
    torch.manual_seed(0)
    k, v = (torch.randn(5, HKV, 5000, D, device="cuda").bfloat16() for _ in range(2))
    q = torch.randn(5, H, 1, D, device="cuda").bfloat16()
    lengths = torch.tensor([5000, 1, 300, 4000, 80], device="cuda").int()
    for b, n in enumerate(lengths.tolist()):
        k[b, :, n:], v[b, :, n:] = torch.nan, torch.nan
    out = attn.attention(q, k, v, mask=lambda b, h, m, n: n < lengths[b], options=ON)
    for b, n in enumerate(lengths.tolist()):
        wanted = attend(q[b].transpose(0, 1), *(x[b, :, :n].transpose(0, 1) for x in (k, v)))[0]
        torch.testing.assert_close(out[b].transpose(0, 1).double(), wanted, atol=3e-2, rtol=3e-2)


def test_a_graph_is_replayed_for_other_lengths():
    torch.manual_seed(1)
    batch, columns = 33, 30
    q, pools, table = make(batch, columns)
    lengths = make_lengths("any", batch, columns * PAGE)

    def step():
        return serving.paged_attention(q, *pools, page_table=table, seqused_k=lengths, options=ON)

    step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step()
    for replay in range(50):
        kind = ["any", "long", "equal", "empty"][replay % 4]
        lengths.copy_(make_lengths(kind, batch, columns * PAGE))
        table.copy_(torch.randperm(len(pools[0]))[: batch * columns].reshape(batch, columns))
        q.normal_()
        graph.replay()
        assert torch.equal(out, step())


def test_layers_share_a_plan():
    """Eager, and in a graph: each replay plans anew."""
    torch.manual_seed(2)
    batch, columns, layers = 21, 30, 3
    q, _, table = make(batch, columns)
    pools = [make(batch, columns)[1] for _ in range(layers)]
    lengths = make_lengths("any", batch, columns * PAGE)
    plan = serving.Plan()

    def step(plan=None):
        if plan is not None:
            plan.update()
        given = dict(page_table=table, seqused_k=lengths, options=ON, plan=plan)
        return [serving.paged_attention(q, *pools[layer], **given) for layer in range(layers)]

    assert all(map(torch.equal, step(plan), step()))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step(plan)
    for replay in range(20):
        lengths.copy_(make_lengths(["any", "long", "equal", "empty"][replay % 4], batch, columns * PAGE))
        table.copy_(torch.randperm(len(pools[0][0]))[: batch * columns].reshape(batch, columns))
        graph.replay()
        assert all(map(torch.equal, out, step()))
    # Of other lengths: wrong numbers, and no access outside.
    lengths.fill_(columns * PAGE)
    plan.update()
    serving.paged_attention(q, *pools[0], page_table=table, seqused_k=lengths, options=ON, plan=plan)
    lengths.fill_(1)
    serving.paged_attention(q, *pools[1], page_table=table, seqused_k=lengths, options=ON, plan=plan)
    torch.cuda.synchronize()
