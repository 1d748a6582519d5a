"""context_parallel_attention of DTensors whose positions a dimension of their mesh shards."""

import processes
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("PyTorch without torch.distributed", allow_module_level=True)

PROGRAM = """
import torch, torch.distributed as dist
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
import attn
from attn.distributed import context_parallel_attention, plan
from attn.distributed._dtensor import cut_as_chunks
from distributed_cases import define

torch.set_num_threads(1)
dist.init_process_group("gloo")
ranks = dist.get_world_size()
torch.manual_seed(0)
N = 101
whole = [torch.randn(2, h, N, d) for h, d in ((4, 16), (2, 16), (2, 24))]
d_output, sink, slopes = torch.randn(2, 4, N, 24), torch.randn(4), torch.rand(4)
far = lambda s, b, h, i, j: s - 0.1 * (1 + b) * slopes[h] * abs(i - j)
CASES = [
    (("cp",), [Shard(2)], (ranks,)),
    (("tp", "cp"), [Shard(1), Shard(2)], (2, ranks // 2)),
    (("cp", "tp"), [Shard(2), Shard(1)], (ranks // 2, 2)),
    (("dp", "cp"), [Shard(0), Shard(2)], (2, ranks // 2)),
    (("hsdp", "cp"), [Replicate(), Shard(2)], (2, ranks // 2)),
]


def compare(names, places, shape, how, wanted_how, rows_first=False):
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    turn = (lambda x: x.transpose(1, 2)) if rows_first else (lambda x: x)
    dims = {0: 0, 1: 2, 2: 1} if rows_first else {0: 0, 1: 1, 2: 2}
    places = [Shard(dims[x.dim]) if x.is_shard() else x for x in places]
    given = [distribute_tensor(turn(x).contiguous(), mesh, places).requires_grad_() for x in whole]
    layout = {"layout": "bshd"} if rows_first else {}
    output, lse = context_parallel_attention(*given, return_lse=True, **how, **layout)
    assert output.placements == given[0].placements and output.shape == turn(d_output).shape
    output.backward(distribute_tensor(turn(d_output).contiguous(), mesh, places))
    exact = define(*whole, d_output, wanted_how)
    found = [turn(output.full_tensor()), lse.full_tensor(), *[turn(x.grad.full_tensor()) for x in given]]
    for name, x, y in zip(("output", "lse", "d_q", "d_k", "d_v"), found, exact):
        assert (x.double() - y).abs().max() < 1e-4, (names, name, (x - y).abs().max())
    return mesh, exact


for number, case in enumerate(CASES):
    compare(*case, dict(causal=True), dict(causal=True), rows_first=number % 2 == 1)
    compare(*case, dict(window=(20, 0), score=far), dict(window=(20, 0), score=far))
    learned = sink.clone().requires_grad_()
    _, exact = compare(*case, dict(sink=learned), dict(sink=sink))
    share = learned.grad.clone()
    dist.all_reduce(share)
    # All ranks of a dimension that replicates have the same share.
    copies = 2 if case[0][0] == "hsdp" else 1
    assert (share / copies - exact[5]).abs().max() < 1e-4, case[0]

mesh = init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("tp", "cp"))
places = [Shard(1), Shard(2)]
# A sink that is a DTensor: its gradient is one too.
for of_sink in ([Shard(0), Replicate()], [Replicate(), Replicate()]):
    learned = distribute_tensor(sink, mesh, of_sink).requires_grad_()
    given = [distribute_tensor(x, mesh, places).requires_grad_() for x in whole]
    output = context_parallel_attention(*given, sink=learned)
    output.backward(distribute_tensor(d_output, mesh, places))
    exact = define(*whole, d_output, dict(sink=sink))
    assert (learned.grad.full_tensor() - exact[5]).abs().max() < 1e-4

# A plan of one's own, here that of PyTorch's chunks with the mask.
keep = lambda b, h, i, j: (j <= i) & (i - j < 30)
p = plan(N, mesh=mesh["cp"], mask=keep, sharding=[list(x) for x in cut_as_chunks(N, ranks // 2)])
given = [distribute_tensor(x, mesh, places).requires_grad_() for x in whole]
found = context_parallel_attention(*given, plan=p, mask=keep, mesh=mesh["cp"])
found.backward(distribute_tensor(d_output, mesh, places))
wanted, _, *gradients = define(*whole, d_output, dict(mask=keep))
for x, y in zip((found, *[x.grad for x in given]), (wanted, *gradients)):
    assert (x.full_tensor() - y).abs().max() < 1e-4
given = [x.detach() for x in given]


def expect(words, *tensors, **how):
    try:
        context_parallel_attention(*tensors, **how)
    except attn.Error as error:
        assert words in str(error), (words, str(error))
    else:
        raise AssertionError(words)


q, k, v = given
expect("k: expected a DTensor, as the others are, got Tensor", q, whole[1], v)
expect("v: expected the mesh and placements of q", q, k, v.redistribute(mesh, [Replicate(), Shard(2)]))
rows = [distribute_tensor(x, mesh, [Shard(1), Replicate()]) for x in whole]
expect("q: expected one dimension of the mesh that shards dimension 2, positions", *rows)
odd = [distribute_tensor(torch.randn(2, 3, N, 16), mesh, places) for _ in range(3)]
expect("q: expected a number of heads that 2 ranks divide, got 3", *odd)
expect("mesh: expected a DeviceMesh of one dimension, got one of 2 (take one of them, mesh['cp'])",
       *[x.to_local() for x in given], plan=p, mesh=mesh)
expect("mesh: expected one of group and mesh, got both", q, k, v, mesh=mesh["cp"], group=mesh["cp"].get_group())
expect("mesh: expected a DeviceMesh of one dimension, got str", q, k, v, mesh="cp")
expect("plan: expected one of attn.distributed.plan, got NoneType", *[x.to_local() for x in given], mesh=mesh["cp"])
try:
    torch.compile(lambda *x: context_parallel_attention(*x), backend="aot_eager", fullgraph=True)(q, k, v)
except Exception as error:
    assert "q: expected a tensor of this rank under torch.compile, got a DTensor" in str(error), error
else:
    raise AssertionError("DTensors under torch.compile")
if ranks > 2:
    expect("group: expected dimension 1 of the mesh of q, which shards its positions, got another one",
           q, k, v, mesh=mesh["tp"])
print("agreed")
dist.destroy_process_group()
"""


@pytest.mark.long
@pytest.mark.parametrize("ranks", processes.sample(2, 4))
def test_dtensors(ranks, tmp_path):
    processes.run(tmp_path, PROGRAM, count=ranks)
