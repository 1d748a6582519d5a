"""Ulysses within nodes and gathering between them: four processes of this machine (gloo) as two nodes of two."""

import processes
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("PyTorch without torch.distributed", allow_module_level=True)

import attn  # noqa: E402
from attn import distributed  # noqa: E402
from attn.distributed import _explain  # noqa: E402
from attn.distributed._nodes import cut_nodes  # noqa: E402
from attn.distributed._plan import read_plan  # noqa: E402

PROGRAM = '''
import torch, torch.distributed as dist
import attn
from attn.distributed import context_parallel_attention, keys, plan, rows
from distributed_cases import define, expect_error

dist.init_process_group("gloo")
torch.set_num_threads(1)
RANK = dist.get_rank()
D = 16
torch.manual_seed(3)


def check(how, sharding, length=400, layout="bhsd", **of_plan):
    """Output, logsumexp and d_q have the bits of one process; the others are within f64's bounds."""
    whole = [torch.randn(2, h, length, D) for h in (4, 2, 2)]
    d_output, sink = torch.randn(2, 4, length, D), torch.randn(4)
    p = plan(length, method="ulysses", node=2, sharding=sharding, **of_plan, **{x: how[x] for x in ("causal", "window") if x in how})
    exact = define(*whole, d_output, {**how, "sink": sink})
    one = attn.attention(*whole, sink=sink, return_lse=True, **how)
    turn = lambda x: x.transpose(1, 2).contiguous() if layout == "bshd" else x
    leaves = [*[turn(p.shard(x, 2)).requires_grad_() for x in whole], sink.clone().requires_grad_()]
    output, lse = context_parallel_attention(*leaves[:3], plan=p, sink=leaves[3], return_lse=True, layout=layout, **how)
    output.backward(turn(p.shard(d_output, 2)))
    assert torch.equal(turn(output), p.shard(one[0], 2)) and torch.equal(lse, p.shard(one[1], 2)), (how, sharding)
    dist.all_reduce(leaves[3].grad)
    got, wanted = [*[turn(x.grad) for x in leaves[:3]], leaves[3].grad], [*[p.shard(x, 2) for x in exact[2:5]], exact[5]]
    for name, x, y in zip(("d_q", "d_k", "d_v", "d_sink"), got, wanted, strict=True):
        assert x.shape == y.shape and (x.double() - y).abs().max() < 3e-5 * max(1.0, float(y.abs().max())), (how, name)


def check_arrays():
    """Functions read the head and arrays of which ranks have parts; dropout drops the weights of one process."""
    n = 300
    whole = [torch.randn(1, h, n, D) for h in (4, 2, 2)]
    bias, factor, is_kept = torch.randn(4, n, n), torch.rand(n), torch.rand(n) < 0.9
    p = plan(n, causal=True, method="ulysses", node=2, sharding="zigzag")
    one = [bias.clone().requires_grad_(), factor.clone().requires_grad_()]
    how = dict(causal=True, dropout_p=0.2, dropout_seed=5)
    wanted = attn.attention(*whole, score=lambda s, b, h, i, j: s * one[1][j] + one[0][h, i, j],
                            mask=lambda b, h, i, j: is_kept[j] | (i == j), **how)
    wanted.sum().backward()
    parts = [p.shard(bias, 1).clone().requires_grad_(), p.shard(factor, 0, of="keys").clone().requires_grad_()]
    of_rows, of_keys, kept = rows(parts[0], 1), keys(parts[1]), keys(p.shard(is_kept, 0, of="keys"))
    found = context_parallel_attention(
        *[p.shard(x, 2) for x in whole], plan=p, score=lambda s, b, h, i, j: s * of_keys[j] + of_rows[h, i, j],
        mask=lambda b, h, i, j: kept[j] | (i == j), **how)
    found.sum().backward()
    assert torch.equal(found, p.shard(wanted, 2))
    for x, y in zip((x.grad for x in parts), (p.shard(one[0].grad, 1), p.shard(one[1].grad, 0))):
        assert (x - y).abs().max() < 1e-5 * max(1.0, float(y.abs().max()))


def check_errors():
    def expect(words, **change):
        tensors = [change.pop(x, mine) for x in "qkv"]
        expect_error(words, lambda: context_parallel_attention(*tensors, **{"plan": p, "causal": True, **change}))

    p = plan(77, causal=True, method="ulysses", node=2)
    mine = p.shard(torch.randn(1, 2, 77, D), 2)
    # On one rank alone, before any group of nodes was made.
    expect("k: expected [0-9]+ positions", k=mine[:, :, :-1] if RANK == 3 else mine)
    expect("scale: expected the same on all ranks", scale=0.5 + RANK)
    one = mine[:, :1]
    expect("k: expected key heads that 2 ranks divide, got 1", q=one, k=one, v=one)
    compiled = torch.compile(lambda q: context_parallel_attention(q, q, q, plan=p, causal=True), backend="eager", fullgraph=True)
    try:
        compiled(mine)
    except Exception as error:
        assert "one node under torch.compile" in str(error), error
    else:
        raise AssertionError("expected an Error")


check_errors()
for sharding in ("contiguous", "zigzag"):
    check({"causal": True}, sharding)
check({"window": (50, 0)}, "contiguous", 1100, "bshd")
check({}, [[(0, 30)], [(30, 41)], [(41, 100)], [(100, 130)]], 130, steps=1)
check_arrays()
print("agreed")
dist.destroy_process_group()
'''


@pytest.mark.long
def test_two_nodes(tmp_path):
    processes.run(tmp_path, PROGRAM, count=4, timeout=600)


def test_plan():
    """Nodes keep what their rows keep, and ranks share the work of a node."""
    plan = distributed.plan(131072, 16, window=(4096, 0), method="ulysses", node=8)
    nodes = cut_nodes(plan)
    assert nodes.ranks == 2 and nodes.rows[1] == ((65536, 131072),) and nodes.method == "gather"
    assert plan.fetched[0] == ((0, 65664),) and plan.fetched[15] == plan.fetched[8] == nodes.fetched[1]
    assert nodes.count_foreign(1) <= 4096 + 384 and plan.work[0] == plan.work[7]
    assert read_plan(plan.text).node == 8 and "ulysses in nodes of 8" in repr(plan)
    # All heads of 8192 rows come to a rank of its own node, and of 4096 keys of other nodes an eighth of the heads.
    shape = _explain.Shape(1, 64, 64, 128, 2)
    near, far = _explain._count_bytes(plan, 15, shape, 8)
    assert near == 8192 * 256 * 128 * 2 // 8 * 7 and far == 2 * 64 * 128 * 2 * nodes.count_foreign(1) // 8
    assert distributed.plan(64, 4, method="ulysses", node=4).node == 0


@pytest.mark.parametrize(
    "how, words",
    [
        (dict(method="ulysses", node=3), "node: expected a number of ranks that divides 4, got 3"),
        (dict(method="ulysses", node=True), "node: expected a number of ranks that divides 4, got True"),
        (dict(node=2), 'node: expected None without method="ulysses", got 2'),
    ],
    ids=str,
)
def test_what_is_refused(how, words):
    with pytest.raises(attn.Error, match=words):
        distributed.plan(64, 4, **how)
