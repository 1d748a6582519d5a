"""torch.compile(fullgraph=True) of context_parallel_attention, forward and backward, in two processes (gloo)."""

import processes
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("PyTorch without torch.distributed", allow_module_level=True)

PROGRAM = """
import sys
import torch, torch.distributed as dist
import attn
from attn.distributed import context_parallel_attention, plan

torch.set_num_threads(1)
dist.init_process_group("gloo")
backend = sys.argv[1]
N, D, DV = 300, 16, 24
torch.manual_seed(0)
whole = [torch.randn(2, h, N, d) for h, d in ((4, D), (2, D), (2, DV))]
d_output, d_lse = torch.randn(2, 4, N, DV), torch.randn(2, 4, N)
ids = attn.assume_sorted(torch.arange(N, dtype=torch.int32) // 97)
table, sink = torch.randn(4, 2 * N), torch.randn(4)
mesh = dist.init_device_mesh("cpu", (2,))


def documents(b, h, i, j):
    return ids[i] == ids[j]


# name -> arguments, and what of them learns.
def list_kinds(table, sink):
    bias = lambda s, b, h, i, j: s + table[h, i - j + N]
    return {
        "causal": dict(causal=True),
        "window and sink": dict(window=(50, 0), sink=sink, scale=0.3),
        "documents": dict(mask=documents, causal=True),
        "bias": dict(score=bias, causal=True, sink=sink),
        "dropout": dict(causal=True, dropout_p=0.3, dropout_seed=7),
        "dropped bias": dict(score=bias, dropout_p=0.3, dropout_seed=torch.tensor([7])),
    }


def run(call, p, rows_first):
    leaves = [table.clone().requires_grad_(), sink.clone().requires_grad_()]
    mine = [p.shard(x, 2) for x in whole]
    mine = [x.transpose(1, 2).contiguous() if rows_first else x for x in mine]
    mine = [x.requires_grad_() for x in mine]
    output, lse = call(*mine, *leaves)
    back = p.shard(d_output, 2)
    loss = (output * (back.transpose(1, 2) if rows_first else back)).sum() + (lse * p.shard(d_lse, 2)).sum()
    loss.backward()
    return [output, lse, *[x.grad for x in mine], *[x.grad for x in leaves if x.grad is not None]]


def check(kind, method, rows_first):
    how = list_kinds(table, sink)[kind]
    masks = {x: how[x] for x in ("mask", "causal", "window") if x in how}
    p = plan(N, method=method, steps=2, **masks)
    # A group, a mesh, and none.
    group = {"group": mesh.get_group()} if method == "ring" else {"mesh": mesh} if rows_first else {}
    layout = {"layout": "bshd"} if rows_first else {}

    def call(q, k, v, table, sink):
        how = list_kinds(table, sink)[kind]
        q = q * 1.0
        output, lse = context_parallel_attention(q, k, v, plan=p, return_lse=True, **how, **group, **layout)
        return output * 1.0, lse

    wanted = run(call, p, rows_first)
    torch._dynamo.reset()
    compiled = torch.compile(call, backend=backend, fullgraph=True)
    for x, y in zip(run(compiled, p, rows_first), wanted, strict=True):
        assert torch.equal(x, y), (kind, method, (x - y).abs().max())
    with torch.no_grad():
        mine = [p.shard(x, 2) for x in whole]
        mine = [x.transpose(1, 2).contiguous() if rows_first else x for x in mine]
        output, lse = compiled(*mine, table, sink)
        assert torch.equal(output, wanted[0]) and torch.equal(lse, wanted[1])


for number, (kind, method) in enumerate(
    [("causal", "gather"), ("window and sink", "ring"), ("documents", "gather"), ("bias", "ulysses"),
     ("bias", "gather"), ("causal", "ulysses"), ("dropout", "ulysses"), ("dropped bias", "gather")]
):
    if backend == "inductor" and number % 2:
        continue
    check(kind, method, rows_first=number % 3 == 2)


# Another plan is another graph, and not the one of before.
def call(x, p):
    return context_parallel_attention(x, x, x, plan=p, causal=True)


torch._dynamo.reset()
compiled = torch.compile(call, backend=backend, fullgraph=True)
for sharding in ("zigzag", "contiguous", "zigzag"):
    p = plan(N, causal=True, sharding=sharding)
    x = p.shard(whole[0], 2)
    assert torch.equal(compiled(x, p), call(x, p)), sharding
try:
    compiled(whole[0][:, :, :150], plan(N, 3, causal=True))
except Exception as error:
    assert "plan: expected one of 2 ranks, got one of 3" in str(error), error
else:
    raise AssertionError("a plan of another group")
print("agreed")
dist.destroy_process_group()
"""


@pytest.mark.long
@pytest.mark.parametrize("backend", processes.sample("aot_eager", "inductor"))
def test_full_graph(backend, tmp_path):
    processes.run(tmp_path, PROGRAM, backend, timeout=600)
