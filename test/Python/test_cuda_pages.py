"""Callers of flash_attn and of varlen_attn with keys in pages, on a GPU. Skipped without one, as test_cuda.py is."""

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
if torch.cuda.get_device_capability() != (9, 0):
    pytest.skip("no device of compute capability 9.0", allow_module_level=True)

from attn.integrations import flash_attn  # noqa: E402
from attn.integrations import torch as ours  # noqa: E402
from ragged_reference import attend  # noqa: E402

D, H, HKV, PAGE, COLUMNS, B = 64, 8, 2, 32, 12, 3


def to_int32(x):
    return torch.tensor(x, device="cuda", dtype=torch.int32)


def make(lengths, new=0):
    """Pools, a table with holes where no key is, and the keys of each sequence."""
    pools = [torch.full((4 * B * COLUMNS, PAGE, HKV, D), torch.nan, device="cuda").bfloat16() for _ in range(2)]
    table = torch.randperm(len(pools[0]), device="cuda")[: B * COLUMNS].reshape(B, COLUMNS).int()
    rows = []
    for b, length in enumerate(lengths):
        rows.append([torch.randn(length, HKV, D, device="cuda").bfloat16() for _ in pools])
        for pool, x in zip(pools, rows[b]):
            at = torch.arange(length, device="cuda")
            pool[table[b, at // PAGE].long(), at % PAGE] = x
        table[b, -(-(length + new) // PAGE) :] = to_int32([-1, 2147480000, -(2**31)]).repeat(COLUMNS)[
            : COLUMNS - -(-(length + new) // PAGE)
        ]
    return pools, table, rows


def check(got, wanted):
    torch.testing.assert_close(got.double(), wanted, atol=3e-2, rtol=3e-2)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("new", [0, 3])
@pytest.mark.parametrize("how", [{}, {"causal": True}, {"window": (50, 0)}, {"softcap": 10.0, "causal": True}])
def test_kvcache(how, new, ragged):
    torch.manual_seed(new)
    lengths, counts = [0, 130, 333], [3, 1, 5] if ragged else [4, 4, 4]
    pools, table, rows = make(lengths, new)
    q = torch.randn(sum(counts), H, D, device="cuda").bfloat16()
    news = [torch.randn(B, new, HKV, D, device="cuda").bfloat16() for _ in pools] if new else []
    given = {"cache_seqlens": to_int32(lengths), "block_table": table}
    if ragged:
        cu = [0, *torch.tensor(counts).cumsum(0).tolist()]
        given.update(cu_seqlens_q=to_int32(cu), max_seqlen_q=5)
    names = {"window": "window_size"}
    given.update({names.get(name, name): x for name, x in how.items()})
    packed = q if ragged else q.unflatten(0, (B, 4))
    output = flash_attn.flash_attn_with_kvcache(packed, *pools, *news, **given)
    output = output if ragged else output.flatten(0, 1)
    first = 0
    for b, count in enumerate(counts):
        keys = [torch.cat([x, y[b]]) for x, y in zip(rows[b], news)] if new else rows[b]
        check(output[first : first + count], attend(q[first : first + count], *keys, **how)[0])
        first += count


def test_varlen():
    torch.manual_seed(0)
    lengths, counts = [70, 130, 333], [70, 1, 40]
    pools, table, rows = make(lengths)
    q, cu = torch.randn(sum(counts), H, D, device="cuda").bfloat16(), to_int32([0, 70, 71, 111])
    used = to_int32(lengths)
    one = flash_attn.flash_attn_varlen_func(
        q, *pools, cu, None, 70, causal=True, block_table=table, seqused_k=used
    )
    two = ours.varlen_attn(
        q, *pools, cu, None, 70, 333, window_size=(-1, 0), seqused_k=used, block_table=table, enable_gqa=True
    )
    assert torch.equal(one, two)
    for b, count in enumerate(counts):
        mine = slice(sum(counts[:b]), sum(counts[: b + 1]))
        check(one[mine], attend(q[mine], *rows[b], causal=True)[0])


@pytest.mark.parametrize("ragged", [False, True])
def test_a_graph_is_replayed_for_other_steps(ragged):
    """New keys, lengths, tables and offsets change in place; nothing is read on the host."""
    torch.manual_seed(1)
    pools, table, _ = make([40, 130, 300], 2)
    [pool.nan_to_num_() for pool in pools]
    q = torch.randn(2 * B, H, D, device="cuda").bfloat16()
    news = [torch.randn(B, 2, HKV, D, device="cuda").bfloat16() for _ in pools]
    lengths, cu = to_int32([40, 130, 300]), to_int32([0, 2, 4, 6])

    def step(pools):
        given = dict(cache_seqlens=lengths, block_table=table, causal=True)
        if ragged:
            return flash_attn.flash_attn_with_kvcache(
                q, *pools, *news, **given, cu_seqlens_q=cu, max_seqlen_q=3
            )
        return flash_attn.flash_attn_with_kvcache(q.unflatten(0, (B, 2)), *pools, *news, **given)

    step([pool.clone() for pool in pools])
    graph, mine = torch.cuda.CUDAGraph(), [pool.clone() for pool in pools]
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.cuda.graph(graph):
            out = step(mine)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for replay in range(20):
        lengths.copy_(torch.randint(1, COLUMNS * PAGE - 2, (B,)))
        table.copy_(torch.randperm(len(pools[0]))[: B * COLUMNS].reshape(B, COLUMNS))
        cu.copy_(torch.tensor([[0, 2, 4, 6], [0, 3, 3, 6], [0, 1, 2, 5]][replay % 3]))
        q.normal_()
        for pool, x in zip(pools, mine):
            x.copy_(pool)
        graph.replay()
        theirs = [pool.clone() for pool in pools]
        assert torch.equal(out, step(theirs)) and all(map(torch.equal, mine, theirs))
