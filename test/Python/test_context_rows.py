"""Few rows that go to the keys of all ranks (gloo), and plans that choose so without any ranks."""

import time

import processes
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("PyTorch without torch.distributed", allow_module_level=True)

import attn  # noqa: E402
from attn import distributed  # noqa: E402
from attn.distributed import _explain  # noqa: E402
from attn.distributed._plan import read_plan  # noqa: E402
from attn.distributed._shardings import count, intersect, join  # noqa: E402

PROGRAM = '''
import random, sys
import torch, torch.distributed as dist
import attn
import attn.serving
from attn import distributed
from attn.distributed import context_parallel_attention, keys, plan, rows
from distributed_cases import define, expect_error, expect_memory, find_peak
from attn.distributed import _explain

dist.init_process_group("gloo")
torch.set_num_threads(1)
RANKS, RANK = dist.get_world_size(), dist.get_rank()
D, DV = 16, 24
# Of all ranks the same.
torch.manual_seed(RANKS)


def cut(p, x, dim=1):
    """This rank's part of the rows of (B, H, M, ..), or its heads."""
    if not p.deals_heads:
        return p.shard(x, dim + 1)
    return x.narrow(dim, RANK * (x.shape[dim] // RANKS), x.shape[dim] // RANKS)


def check(length, how, sharding="contiguous", key_sharding="contiguous", type_=torch.float32):
    m, n = length
    whole = [torch.randn(2, h, s, d).to(type_) for h, s, d in ((2 * RANKS, m, D), (RANKS, n, D), (RANKS, n, DV))]
    d_output = torch.randn(2, 2 * RANKS, m, DV).to(type_)
    sink = torch.randn(2 * RANKS)
    masks = {x: how[x] for x in ("causal", "window") if x in how}
    place = {"sharding": sharding, "key_sharding": key_sharding, "page_size": 16}
    p = plan(length if m != n else n, method="pass rows", **place, **masks)
    exact = define(*whole, d_output, {**how, "sink": sink})
    mine = [cut(p, whole[0]).clone(), *[p.shard(x, 2, of="keys").clone() for x in whole[1:]]]
    own_sink = cut(p, sink, 0) if p.deals_heads else sink
    leaves = [x.requires_grad_() for x in (*mine, own_sink.clone())]
    output, lse = context_parallel_attention(*leaves[:3], plan=p, sink=leaves[3], return_lse=True, **how)
    output.backward(cut(p, d_output).contiguous())
    d_sink = leaves[3].grad.clone()
    if not p.deals_heads:
        dist.all_reduce(d_sink)
    wanted = [*[cut(p, x) for x in exact[:3]], *[p.shard(x, 2, of="keys") for x in exact[3:5]]]
    wanted.append(cut(p, exact[5], 0) if p.deals_heads else exact[5])
    got = [output, lse, *[x.grad for x in leaves[:3]], d_sink]
    bound = 3e-5 if type_ == torch.float32 else 4e-2
    for name, x, y in zip(("output", "lse", "d_q", "d_k", "d_v", "d_sink"), got, wanted, strict=True):
        assert x.shape == y.shape and not x.isnan().any(), (name, x.shape, y.shape)
        if y.numel():
            error = float((x.double() - y).abs().max())
            assert error < bound * max(1.0, float(y.abs().max())), (length, how, place, name, error)


def check_functions():
    """Arrays of rows go with them, and those of keys stay; logsumexp has a gradient; rows that keep nothing."""
    m, n, h = 40, 300, 2 * RANKS
    whole = [torch.randn(1, h, m, D), torch.randn(1, RANKS, n, D), torch.randn(1, RANKS, n, D)]
    whole += [torch.randn(m, n), torch.rand(n) + 0.5]
    d_output, d_lse = torch.randn(1, h, m, D), torch.randn(1, h, m)
    one = [x.clone().requires_grad_() for x in whole]
    mask = lambda b, h, i, j: (j <= i + 200) & (i % 7 != 0)
    score = lambda s, b, h, i, j: s * one[4][j] + one[3][i, j]
    wanted, lse = attn.attention(*one[:3], score=score, mask=mask, return_lse=True)
    is_kept = (torch.arange(m) % 7 != 0).expand(1, h, m)
    torch.autograd.backward([wanted, lse], [d_output, d_lse * is_kept])
    p = plan((m, n), method="pass rows", key_sharding="interleaved", page_size=7, mask=mask)
    of = (2, "rows"), (2, "keys"), (2, "keys"), (0, "rows"), (0, "keys")
    leaves = [p.shard(x, dim, of=o).clone().requires_grad_() for x, (dim, o) in zip(whole, of)]
    bias, factor = rows(leaves[3]), keys(leaves[4])
    score = lambda s, b, h, i, j: s * factor[j] + bias[i, j]
    output, found = context_parallel_attention(*leaves[:3], plan=p, score=score, mask=mask, return_lse=True)
    torch.autograd.backward([output, found], [p.shard(d_output, 2), p.shard(d_lse * is_kept, 2)])
    assert torch.equal(found == -torch.inf, p.shard(lse == -torch.inf, 2))
    for x, y, (dim, o) in zip((output, *[x.grad for x in leaves]), (wanted, *[x.grad for x in one]), (of[0], *of)):
        y = p.shard(y, dim, of=o)
        assert x.shape == y.shape and (not y.numel() or (x - y).abs().max() < 2e-5 * max(1, y.abs().max()))


def check_rounding():
    """Parts add up in f32: outputs of bf16 are as exact as those of one process."""
    whole = [torch.randn(2, 4, s, D).bfloat16() for s in (64, 512, 512)]
    exact = define(*whole, torch.randn(2, 4, 64, D), {})[0]
    p = plan((64, 512), method="pass rows")
    found = context_parallel_attention(*[p.shard(x, 2, of=o) for x, o in zip(whole, ("rows", "keys", "keys"))], plan=p)
    errors = [float((x.double() - p.shard(exact, 2)).norm()) for x in (found, p.shard(attn.attention(*whole), 2))]
    assert errors[0] < 1.05 * errors[1], errors


def check_dropout():
    x = torch.randn(1, 2, 300, D)
    q = torch.randn(1, 4, 20, D)
    how = dict(dropout_p=0.4, dropout_seed=3)
    p = plan((20, 300), method="pass rows", key_sharding="interleaved", page_size=9)
    found = context_parallel_attention(p.shard(q, 2), *[p.shard(x, 2, of="keys")] * 2, plan=p, **how)
    assert not found.numel() or (found - p.shard(attn.attention(q, x, x, **how), 2)).abs().max() < 1e-5


def check_pages():
    """Decoding from pages that are dealt to ranks in turn; each rank has some of the heads."""
    page, pages, h, hkv = 4, 11, 2 * RANKS, 2
    lengths = torch.tensor([43, 2, 17], dtype=torch.int32)
    k, v = torch.randn(2, 3, hkv, page * pages, D)
    q = torch.randn(3, h, D)
    wanted = attn.attention(
        q[:, :, None], k, v, mask=lambda b, h, i, j: j < lengths[b], return_lse=True
    )
    # Page i of a sequence is on rank i % RANKS, with all key heads; caches hold the pages of a rank alone.
    own = list(range(RANK, pages, RANKS))
    cut_pages = lambda x: [x[b, :, i * page : i * page + page].transpose(0, 1) for b in range(3) for i in own]
    caches = [torch.stack(cut_pages(x)) for x in (k, v)]
    table = torch.arange(3 * len(own), dtype=torch.int32).reshape(3, -1)
    held = torch.tensor([sum(max(0, min(page, int(x) - i * page)) for i in own) for x in lengths], dtype=torch.int32)
    mine = q.unflatten(1, (RANKS, -1))[:, RANK].contiguous()
    everyone = distributed.gather(mine)
    assert torch.equal(everyone, q)
    part = attn.serving.paged_attention(everyone, *caches, page_table=table, seqused_k=held, causal=False, return_lse=True)
    output, lse = distributed.merge(*part)
    for x, y in zip((output, lse), (wanted[0][:, :, 0], wanted[1][:, :, 0])):
        y = y.unflatten(1, (RANKS, -1))[:, RANK]
        assert x.shape == y.shape and (x - y).abs().max() < 1e-5


def check_memory():
    """A call takes the memory that the plan says."""
    p = plan((256, 4096), method="pass rows", sharding="contiguous")
    q, k, v = torch.randn(1, 8, 256, 64), torch.randn(1, 2, 4096, 64), torch.randn(1, 2, 4096, 64)
    q, k, v = p.shard(q, 2), p.shard(k, 2, of="keys"), p.shard(v, 2, of="keys")
    attend = lambda: context_parallel_attention(q, k, v, plan=p)
    attend()
    told = _explain.count_memory(p, RANK, _explain.Shape(1, 8, 2, 64, 4))[0]
    with torch.no_grad():
        expect_memory(lambda: find_peak(attend) - q.numel() * 4, told)


def check_errors():
    x, lse = torch.zeros(2, RANKS, D), torch.zeros(2, RANKS)
    expect_error("lse: expected float32 of shape", lambda: distributed.merge(x, x))
    expect_error("output: expected a number along dimension 0 that", lambda: distributed.merge(x[:1], lse[:1], 0))
    expect_error("dim: expected a dimension of 2, got 2", lambda: distributed.merge(x, lse, 2))
    expect_error("output: expected one that needs no gradient", lambda: distributed.merge(x.clone().requires_grad_(), lse))
    expect_error("x: expected a tensor, got list", lambda: distributed.gather([1]))
    expect_error("x: expected the same on all ranks", lambda: distributed.gather(x[: 1 + RANK % 2]))
    expect_error("output: expected the same on all ranks", lambda: distributed.merge(x[: 1 + RANK % 2], lse[: 1 + RANK % 2]))
    p = plan((3, 50), method="pass rows", sharding="heads")
    bias = rows(torch.zeros(3))
    q, k = torch.zeros(1, 1, 3, D), p.shard(torch.zeros(1, 1, 50, D), 2, of="keys")
    call = lambda: context_parallel_attention(q, k, k, plan=p, score=lambda s, b, h, i, j: s + bias[i])
    expect_error("bias: expected the whole array where each rank has all rows, got a part of rows", call)


far = lambda s, b, h, i, j: s - 0.02 * abs(i - j)
cases = [
    ((50, 700), {"causal": True}),
    # Ranks without rows.
    ((1, 517), {"causal": True, "score": far}, "contiguous", "interleaved"),
    # Not all ranks have keys that a row keeps.
    ((300, 400), {"causal": True, "window": (60, 0)}, "zigzag"),
    ((3, 300), {"causal": True}, "heads", "interleaved", torch.bfloat16),
    ((1, 200), {"window": (90, 0)}, "heads"),
    # Of one sequence: rows and keys lie alike.
    ((200, 200), {"causal": True}, "zigzag", "auto"),
    # Rows that keep nothing, and ranks without keys.
    ((40, 20), {"causal": True}),
    ((5, 2), {}),
]
what, seed = sys.argv[1], int(sys.argv[2])
for case in cases if what == "all" else random.Random(seed).sample(cases, 3):
    check(*case)
check_functions()
check_rounding()
check_dropout()
check_pages()
check_memory()
check_errors()
print("agreed")
dist.destroy_process_group()
'''


@pytest.mark.long
@pytest.mark.parametrize("ranks", processes.sample(2, 3, 4))
def test_ranks(ranks, tmp_path):
    """A sample of the cases with a fresh seed; all of them by `make test-distributed`."""
    seed = str(int(time.time()) + ranks)
    print("seed", seed)
    processes.run(tmp_path, PROGRAM, "all" if processes.IS_WHOLE else "some", seed, count=ranks, timeout=600)


COMPILED = '''
import torch, torch.distributed as dist
from attn.distributed import context_parallel_attention, plan

dist.init_process_group("gloo")
torch.set_num_threads(1)
p = plan((30, 200), causal=True, method="pass rows")
q, k = p.shard(torch.randn(1, 4, 30, 16), 2), p.shard(torch.randn(1, 2, 200, 16), 2, of="keys")


def run(call):
    leaves = [x.clone().requires_grad_() for x in (q, k)]
    output = call(*leaves)
    output.square().sum().backward()
    return [output, *[x.grad for x in leaves]]


def call(q, k):
    return context_parallel_attention(q, k, k, plan=p, causal=True, score=lambda s, b, h, i, j: s - 0.1 * abs(i - j))


for x, y in zip(run(torch.compile(call, backend="aot_eager", fullgraph=True)), run(call), strict=True):
    assert torch.equal(x, y)
print("agreed")
dist.destroy_process_group()
'''


def test_compiled(tmp_path):
    processes.run(tmp_path, COMPILED)


@pytest.mark.parametrize("length, ranks", [((1, 131072), 8), ((64, 131072), 2), ((4096, 131072), 8)])
def test_few_rows_go(length, ranks):
    """Where keys are many and rows are few, they are the ones that move."""
    plan = distributed.plan(length, ranks, causal=True)
    assert plan.method == "pass rows" and plan.balance > 0.9
    assert plan.fetched == plan.keys and not any(map(plan.count_foreign, range(ranks)))


@pytest.mark.parametrize("length, ranks", [(131072, 8), ((16384, 131072), 8), ((300, 900), 4), ((1, 131072), 1)])
def test_other_rows_stay(length, ranks):
    assert distributed.plan(length, ranks, causal=True).method == "gather"


@pytest.mark.parametrize("keys", ["contiguous", "interleaved"])
@pytest.mark.parametrize("how", [{"causal": True}, {"window": (100, 0)}, {}])
def test_each_kept_pair_is_computed_once(how, keys):
    """By the rank that has the key, to which the row goes."""
    m, n = 300, 900
    plan = distributed.plan((m, n), 4, method="pass rows", key_sharding=keys, page_size=50, **how)
    assert join([x for mine in plan.keys for x in mine]) == ((0, n),) and sum(map(count, plan.keys)) == n
    i, j = torch.arange(m)[:, None] + n - m, torch.arange(n)
    keep = torch.ones(m, n, dtype=torch.bool)
    keep = keep & (j <= i) if how.get("causal") else keep
    keep = keep & (j >= i - 100) & (j <= i) if "window" in how else keep
    for rank, (passed, held, work) in enumerate(zip(plan.passed, plan.keys, plan.work)):
        mine = keep[:, plan.positions(rank, "keys")]
        is_passed = torch.zeros(m, dtype=torch.bool)
        for begin, end in passed:
            is_passed[begin:end] = True
        assert is_passed[mine.any(1)].all() and int(mine.sum()) <= work
        for first in range(0, m, 128):
            # No tile goes where nothing of it is kept.
            assert not is_passed[first] or mine[first : first + 128].any()
    assert read_plan(plan.text).passed == plan.passed


def test_bytes():
    """Rows come, and parts of a rank's own rows."""
    plan = distributed.plan((64, 4096), 4, method="pass rows")
    assert plan.rows[1] == ((16, 32),) and plan.passed[1] == ((0, 64),)
    assert plan.count_passed(1, 4) == (48, 0, 48, 0) and plan.count_passed(1, 2) == (16, 32, 16, 32)
    heads = distributed.plan((64, 4096), 4, sharding="heads")
    assert heads.deals_heads and heads.count_passed(1, 4) == (48, 0, 48, 0)
    text = distributed.explain(plan, heads=64, key_heads=8, head_dim=128)
    shape = _explain.Shape(1, 64, 8, 128, 2)
    # 48 rows of bf16 come, and of f32 go home.
    assert _explain._count_bytes(plan, 1, shape, 8) == [48 * 64 * (128 * 2 + 129 * 4), 0]
    assert "pass rows" in text and "bound by transfers" in text


@pytest.mark.parametrize(
    "how, words",
    [
        (dict(key_sharding="zigzag"), "key_sharding: expected one of auto, contiguous, interleaved, or intervals"),
        (dict(key_sharding=[[(0, 5)], [(4, 9)]]), "key_sharding: expected each of 9 positions once"),
        (dict(key_sharding="interleaved", page_size=0), "page_size: expected a number of keys, got 0"),
        (dict(sharding="heads", method="ring"), 'sharding: expected positions of each rank with method="ring"'),
    ],
    ids=str,
)
def test_what_is_refused(how, words):
    with pytest.raises(attn.Error, match=words):
        distributed.plan(**{"length": (4, 9), "group": 2, **how})


def test_keys_of_others():
    """The other methods take keys as they are dealt, too."""
    plan = distributed.plan((100, 1000), 3, method="gather", key_sharding="interleaved", page_size=10)
    assert plan.keys[1][:2] == ((10, 20), (40, 50)) and intersect(plan.keys[0], plan.keys[1]) == ()
    assert plan.fetched[0] == ((0, 1000),) and plan.count_foreign(0) == 1000 - count(plan.keys[0])
