"""PyTorch's context_parallel on attn, in processes of this machine (gloo), and the example that trains by it."""

import re
from pathlib import Path

import processes
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("PyTorch without torch.distributed", allow_module_level=True)

PROGRAM = """
import torch, torch.distributed as dist
import torch.nn.functional as F
import torch.nn.attention.flex_attention as flex
import attn
from attn.integrations import _context, torch as integration
from distributed_cases import define

torch.set_num_threads(1)
dist.init_process_group("gloo")
ranks, rank = dist.get_world_size(), dist.get_rank()
mesh = dist.init_device_mesh("cpu", (ranks,))
pytorch_sdpa, pytorch_flex = F.scaled_dot_product_attention, flex.flex_attention
N, D = 16 * ranks * 2, 16
torch.manual_seed(0)
ids = (torch.arange(N) * 3 // N).to(torch.int32)
slopes = torch.rand(4)


def documents(b, h, q, kv):
    return (ids[q] == ids[kv]) & (q >= kv)


def alibi(s, b, h, q, kv):
    return s - 0.1 * slopes[h] * abs(q - kv)


def make(n):
    return [torch.randn(2, h, n, D) for h in (4, 2, 2)]


def list_calls(n):
    # What is called inside, and what it is by definition.
    block = lambda f: flex.create_block_mask(f, None, None, n, n, device="cpu")
    mine = lambda f: integration.create_block_mask(f, None, None, n, n)
    gqa = dict(enable_gqa=True)
    calls = {
        "full": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **gqa), {}),
        "causal": (
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.2, **gqa),
            dict(causal=True, scale=0.2),
        ),
        "score": (lambda q, k, v: flex.flex_attention(q, k, v, score_mod=alibi, **gqa), dict(score=alibi)),
    }
    if n == N:
        of = dict(mask=documents)
        calls["documents"] = lambda q, k, v: flex.flex_attention(q, k, v, block_mask=block(documents), **gqa), of
        calls["attn's own"] = (
            lambda q, k, v: integration.flex_attention(q, k, v, block_mask=mine(documents), **gqa),
            of,
        )
    return calls


def check(name, call, how, whole, method="gather"):
    # Output and gradients of one sequence, compared with those of one process in f64.
    n = whole[0].shape[2]
    d_output, places = torch.randn(2, 4, n, D), torch.arange(n)
    parts, d_part = [x.clone() for x in whole], d_output.clone()
    wanted, _, *gradients = define(*whole, d_output, how)
    buffers, dims = [*parts, d_part, places], [2, 2, 2, 2, 0]
    with integration.context_parallel(mesh, buffers=buffers, buffer_seq_dims=dims, method=method):
        leaves = [x.clone().requires_grad_() for x in parts]
        where = places.clone()
        output = call(*leaves)
        output.backward(d_part)
    assert F.scaled_dot_product_attention is pytorch_sdpa and flex.flex_attention is pytorch_flex
    assert all(torch.equal(x, y) for x, y in zip(parts, whole)) and torch.equal(places, torch.arange(n))
    for x, y in zip((output, *[x.grad for x in leaves]), (wanted, *gradients)):
        error = (x - y[:, :, where]).abs().max()
        assert error < 2e-5 * max(1.0, y.abs().max()), (n, name, method, error)
    (found,) = integration.context_parallel_unshard(mesh, [output.detach()], [2])
    assert (found - wanted).abs().max() < 2e-5
    return where


def compare(n, method):
    whole = make(n)
    return [check(name, *case, whole, method) for name, case in list_calls(n).items()][0]


where = compare(N, "gather")
# The order of PyTorch's head-tail balancer.
chunk = N // (2 * ranks)
last = 2 * ranks - 1 - rank
assert where.tolist() == [*range(rank * chunk, (rank + 1) * chunk), *range(last * chunk, (last + 1) * chunk)]
compare(N, "ring")
# PyTorch refuses what 2 * ranks do not divide.
compare(N + 3, "gather")

# What is not restored stays.
x, y = torch.arange(N), torch.arange(N)
with integration.context_parallel(mesh, buffers=[x, y], buffer_seq_dims=[0, 0], no_restore_buffers={y}):
    pass
assert torch.equal(x, torch.arange(N)) and torch.equal(y, where)

# A plan of a block mask is found again for as long as it reads the same: ids that change are seen.
whole = make(N)
mask = integration.create_block_mask(documents, None, None, N, N)
for change in (0, 0, 1):
    ids += change * (torch.arange(N) % 2).to(torch.int32)
    check(change, lambda *x: flex.flex_attention(*x, block_mask=mask, enable_gqa=True), dict(mask=documents), whole)
ids.copy_(torch.arange(N) * 3 // N)


# A second entry with the same arguments makes no plan, and one with another method takes none of the first.
def find_context(method):
    with integration.context_parallel(mesh, buffers=[torch.arange(N)], buffer_seq_dims=[0], method=method):
        return _context.find()


first, again, ring = (find_context(x) for x in ("gather", "gather", "ring"))
assert first.full is again.full and first.causal is again.causal
plans = [x._find_plan(mask, documents) for x in (first, again, ring)]
assert plans[0] is plans[1] and plans[0].method == "gather" and plans[2].method == "ring"


# A compiled function is taken into a full graph, forward and backward.
def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def attend_flex(q, k, v):
    return flex.flex_attention(q, k, v, score_mod=alibi, block_mask=mask, enable_gqa=True)


for call, how in ((attend, dict(causal=True)), (attend_flex, dict(score=alibi, mask=documents))):
    torch._dynamo.reset()
    check(call.__name__, torch.compile(call, backend="aot_eager", fullgraph=True), how, whole)


def expect(words, call, **how):
    given = dict(buffers=[torch.arange(N)], buffer_seq_dims=[0])
    mine = [torch.randn(1, 2, N // ranks, D) for _ in range(3)]
    try:
        with integration.context_parallel(mesh, **{**given, **how}):
            call(*mine)
    except attn.Error as error:
        assert words in str(error), (words, str(error))
    else:
        raise AssertionError(words)
    assert F.scaled_dot_product_attention is pytorch_sdpa


sdpa = lambda *x, **how: F.scaled_dot_product_attention(*x, **how)
nothing = lambda *x: None
expect("attn_mask: expected none under context_parallel", lambda *x: sdpa(*x, attn_mask=torch.zeros(1)))
expect("dropout_p: expected 0 under context_parallel, got 0.5", lambda *x: sdpa(*x, dropout_p=0.5))
expect(f"query: expected {N // ranks} positions, this rank's part of {N}", lambda q, k, v: sdpa(q[:, :, 1:], k, v))
expect("value: expected 4 dimensions under context_parallel", lambda q, k, v: sdpa(q, k, v[0]))
expect("key: expected 2 heads, as the query has, got 1", lambda q, k, v: sdpa(q, k[:, :1], v[:, :1]))
expect("key: expected 2 heads, as the query has, got 1", lambda q, k, v: flex.flex_attention(q, k[:, :1], v[:, :1]))
expect(f"block_mask: expected one of (M, N) = ({N}, {N})", lambda q, k, v: flex.flex_attention(
    q, k, v, block_mask=integration.create_block_mask(documents, None, None, 7, 7)))
expect("return_aux: expected no max_scores under context_parallel", lambda *x: flex.flex_attention(
    *x, return_aux=flex.AuxRequest(max_scores=True)))
expect("load_balancer: expected None", lambda *x: integration.context_parallel_unshard(mesh, [], [], object()))
expect("context_parallel: expected one at a time", lambda *x: integration.context_parallel(
    mesh, buffers=[torch.arange(N)], buffer_seq_dims=[0]).__enter__())
expect("buffers: expected tensors of the sequence, to know its length, got none", nothing, buffers=[], buffer_seq_dims=[])
expect("buffer_seq_dims: expected one for each of 1 buffers, got 2", nothing, buffer_seq_dims=[0, 0])
expect("no_restore_buffers: expected some of buffers", nothing, no_restore_buffers={torch.zeros(1)})
expect(f"buffers: expected {N} positions, as the first one has", nothing,
       buffers=[torch.arange(N), torch.arange(5)], buffer_seq_dims=[0, 0])
expect("buffers: expected tensors without gradients", nothing, buffers=[torch.zeros(N, requires_grad=True)])
print("agreed")
dist.destroy_process_group()
"""


@pytest.mark.long
@pytest.mark.parametrize("ranks", processes.sample(2, 3))
def test_calls(ranks, tmp_path):
    processes.run(tmp_path, PROGRAM, count=ranks)


def run_example(ranks, *arguments):
    """The losses that it prints."""
    path = Path(__file__).parents[2] / "docs/examples/context_parallel.py"
    texts = processes.run_file(path, *arguments, count=ranks, CUDA_VISIBLE_DEVICES="")
    return [float(x) for x in re.findall(r"loss ([\d.]+)", texts[0])]


@pytest.mark.long
def test_example():
    """Two processes of one sequence, and four of two, have the losses of processes with whole sequences."""
    one = run_example(1, "--length", "101")
    two = run_example(2, "--length", "101")
    assert len(one) == 5 and one[-1] < one[0]
    assert two == pytest.approx(one, rel=1e-5)
    few = "--length", "100", "--shards", "2", "--steps", "2"
    whole, parts = run_example(2, *few), run_example(4, *few)
    assert parts == pytest.approx(whole, rel=1e-5)
