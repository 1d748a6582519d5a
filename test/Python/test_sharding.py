"""DTensors of two processes."""

import processes
import pytest

torch = pytest.importorskip("torch")

PROGRAM = """
import os, sys
import torch, torch.distributed as dist
import torch.multiprocessing
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode
import attn

torch.set_num_threads(1)
mesh = init_device_mesh("cpu", (2,))
torch.manual_seed(0)
B, H, M, N, D = 2, 4, 12, 10, 16


def inputs(heads_of_k=2, rows_first=False):
    shapes = (B, H, M, D), (B, heads_of_k, N, D), (B, heads_of_k, N, 8)
    tensors = [torch.randn(shape) for shape in shapes]
    tensors = [x.transpose(1, 2).contiguous() if rows_first else x for x in tensors]
    for x in tensors:
        dist.broadcast(x, 0)
    return tensors


def compare(name, how, places, local, count, heads_of_k=2, rows_first=False, sink=None):
    # Output, lse and gradients as of one process; `count` collectives of forward.
    tensors = [x.requires_grad_() for x in inputs(heads_of_k, rows_first)]
    others = [] if sink is None else [sink.requires_grad_()]
    layout = {"layout": "bshd"} if rows_first else {}

    def call(q, k, v, *sink):
        given = {"sink": sink[0]} if sink else {}
        return attn.attention(q, k, v, return_lse=True, **how, **given, **layout)

    wanted = call(*tensors, *others)
    weights = [torch.randn(x.shape) for x in wanted]
    for x in weights:
        dist.broadcast(x, 0)
    loss = lambda found: sum((x * w).sum() for x, w in zip(found, weights))
    wanted_gradients = torch.autograd.grad(loss(wanted), [*tensors, *others])
    given = [distribute_tensor(x.detach(), mesh, [p]).requires_grad_() for x, p in zip(tensors, places)]
    given += [distribute_tensor(x.detach(), mesh, [Replicate()]).requires_grad_() for x in others]
    with CommDebugMode() as communication:
        with torch.profiler.profile(record_shapes=True) as profile:
            found = call(*given)
    # DTensors stand for the whole; below them is what this process computes.
    calls = [event for event in profile.events() if event.name == "attn::record"]
    last = max(calls, key=lambda event: event.time_range.start)
    assert tuple(last.input_shapes[0]) == local, (name, last.input_shapes)
    assert communication.get_total_counts() == count, (name, communication.get_comm_counts())
    weights = [distribute_tensor(w, mesh, x.placements) for w, x in zip(weights, found)]
    gradients = torch.autograd.grad([*found], given, weights)
    for x, y in zip((*found, *gradients), (*wanted, *wanted_gradients)):
        assert torch.allclose(x.full_tensor(), y, atol=1e-5), (name, (x.full_tensor() - y).abs().max())


BATCH, HEADS, ROWS, KEYS, WHOLE = Shard(0), Shard(1), Shard(2), Shard(2), Replicate()
BIAS = torch.arange(N) / 10.0
SLOPES = torch.arange(H) / 10.0
sink = torch.linspace(-1, 1, H)
by_keys = {"score": lambda s, b, h, i, j: s + BIAS[j]}
by_heads = {"score": lambda s, b, h, i, j: s + SLOPES[h] * j}
compare("batch", {"causal": True}, [BATCH] * 3, (1, 4, 12, 16), 0)
compare("heads", {"causal": True, **by_keys}, [HEADS] * 3, (2, 2, 12, 16), 0, sink=sink.clone())
compare("one head of k", by_keys, [HEADS, WHOLE, WHOLE], (2, 2, 12, 16), 0, heads_of_k=1)
compare("rows", by_keys, [ROWS, WHOLE, WHOLE], (2, 4, 6, 16), 0, sink=sink.clone())
compare("rows first", {}, [ROWS] * 3, (2, 12, 2, 16), 0, rows_first=True)
compare("all", {}, [WHOLE] * 3, (2, 4, 12, 16), 0)
# Functions that read the head are served where the batch is split, and where heads are gathered.
compare("slopes", by_heads, [BATCH] * 3, (1, 4, 12, 16), 0)
compare("slopes of heads", by_heads, [HEADS] * 3, (2, 4, 12, 16), 3)
# Dropout draws by positions in the whole.
compare("dropout", {"dropout_p": 0.3, "dropout_seed": 5}, [BATCH] * 3, (2, 4, 12, 16), 3)
try:
    attn.attention(*[distribute_tensor(x, mesh, [BATCH]) for x in inputs()], dropout_p=0.3)
except attn.Error as error:
    assert "dropout_seed: expected one that all processes share" in str(error), error
else:
    assert False, "a seed of each process"
# Keys come together: all processes have all.
compare("keys", {"causal": True}, [WHOLE, KEYS, KEYS], (2, 4, 12, 16), 2)
# A captured tensor that learns: each process has a part of the sum, and gets all of it.
tensors, learned = inputs(), BIAS.clone().requires_grad_()
call = lambda *x: attn.attention(*x, score=lambda s, b, h, i, j: s + learned[j])
(wanted,) = torch.autograd.grad(call(*tensors).square().sum(), learned)
for place in (BATCH, HEADS):
    found = call(*[distribute_tensor(x, mesh, [place]) for x in tensors])
    (got,) = torch.autograd.grad(found.square().sum(), learned)
    assert torch.allclose(got, wanted, atol=1e-5), (place, got, wanted)
print("agreed")
dist.destroy_process_group()
"""


@pytest.mark.long
def test_two_processes(tmp_path):
    if not torch.distributed.is_available():
        pytest.skip("PyTorch without torch.distributed")
    processes.run(tmp_path, PROGRAM)
