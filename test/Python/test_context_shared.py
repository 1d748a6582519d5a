"""Captured arrays of which each rank has the part of its rows or keys, on processes of this machine (gloo)."""

import time

import processes
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("PyTorch without torch.distributed", allow_module_level=True)

import attn  # noqa: E402
from attn import distributed  # noqa: E402

PROGRAM = '''
import random, sys
import torch, torch.distributed as dist
import attn
from attn.distributed import context_parallel_attention, keys, plan, rows
from distributed_cases import expect

dist.init_process_group("gloo")
torch.set_num_threads(1)
RANKS, RANK = dist.get_world_size(), dist.get_rank()
D, DV = 16, 24
# Of all ranks the same.
torch.manual_seed(RANKS)


def define(q, k, v, d_output, score, mask):
    """Output and gradients in f64, of one process."""
    m, n, group = q.shape[2], k.shape[2], q.shape[1] // k.shape[1]
    b, h = torch.arange(q.shape[0])[:, None, None, None], torch.arange(q.shape[1])[:, None, None]
    i, j = torch.arange(m)[:, None], torch.arange(n)
    k_, v_ = (x.repeat_interleave(group, 1) for x in (k, v))
    s = score(q @ k_.mT * q.shape[3] ** -0.5, b, h, i, j).masked_fill(~mask(b, h, i, j), -torch.inf)
    weights = torch.nan_to_num(torch.softmax(s, 3))
    output = weights @ v_
    output.backward(d_output)
    return output.detach()


def check(method, sharding, length, how, type_=torch.float32, steps=None):
    """A bias of rows and keys, of whose rows a rank has its own; a factor of each key and a weight of each row and
    head; documents of rows and of keys."""
    m, n = length
    whole = [torch.randn(2, h, s, d) for h, s, d in ((2 * RANKS, m, D), (RANKS, n, D), (RANKS, n, DV))]
    d_output = torch.randn(2, 2 * RANKS, m, DV)
    bias, factor, weight = torch.randn(2 * RANKS, m, n), torch.rand(n) + 0.5, torch.randn(m, 2 * RANKS)
    ids = torch.arange(max(m, n), dtype=torch.int32) // 97
    is_kept = torch.rand(2, n) < 0.9
    shift = n - m
    p = plan(length if m != n else n, sharding=sharding, method=method, steps=steps, **how)

    def causal(i, j):
        near = (j <= i + shift) | (not how)
        return near & (j >= i + shift - how["window"][0]) if "window" in how else near

    exact = [x.double().requires_grad_() for x in (*whole, bias, factor, weight)]
    wanted = define(
        *exact[:3], d_output.double(), lambda s, b, h, i, j: s * exact[4][j] + exact[3][h, i, j] + exact[5][i, h],
        lambda b, h, i, j: causal(i, j) & (ids[i] == ids[j]) & is_kept[b, j],
    )
    of = "rows", "keys", "keys", "rows", "keys", "rows"
    dims = 2, 2, 2, 1, 0, 0
    parts = [p.shard(x, dim, of=o).clone() for x, dim, o in zip((*whole, bias, factor, weight), dims, of)]
    parts = [x.to(type_).requires_grad_() for x in parts]
    bias_, factor_, weight_ = rows(parts[3], 1), keys(parts[4]), rows(parts[5], dim=-2)
    of_rows = rows(attn.assume_sorted(p.shard(ids[:m], 0)))
    of_keys = keys(attn.assume_sorted(p.shard(ids[:n], 0, of="keys")))
    kept = keys(p.shard(is_kept, 1, of="keys"), 1)
    output = context_parallel_attention(
        *parts[:3],
        plan=p,
        score=lambda s, b, h, i, j: s * factor_[j] + bias_[h, i, j] + weight_[i, h],
        mask=lambda b, h, i, j: (of_rows[i] == of_keys[j]) & kept[b, j],
        **how,
    )
    output.backward(p.shard(d_output, 2).to(type_))
    bound = 4e-5 if type_ == torch.float32 else 6e-2
    got = [output, *[x.grad for x in parts]]
    names = "output", "d_q", "d_k", "d_v", "d_bias", "d_factor", "d_weight"
    for name, x, y, dim, o in zip(names, got, (wanted, *[x.grad for x in exact]), (2, *dims), ("rows", *of)):
        y = p.shard(y, dim, of=o)
        assert x.shape == y.shape, (name, x.shape, y.shape)
        if y.numel():
            error = float((x.double() - y).abs().max())
            assert error < bound * max(1.0, float(y.abs().max())), (method, sharding, length, how, name, error)


def check_bits():
    """Parts are read where the whole was: gathering has the bits of one process."""
    whole = [torch.randn(1, h, 517, D) for h in (2 * RANKS, RANKS, RANKS)]
    bias, factor = torch.randn(517, 517), torch.rand(517)
    one = attn.attention(*whole, causal=True, score=lambda s, b, h, i, j: s * factor[j] + bias[i, j])
    for sharding in ("contiguous", "zigzag", "dealt"):
        p = plan(517, causal=True, sharding=sharding)
        mine, of_keys = rows(p.shard(bias, 0)), keys(p.shard(factor, 0, of="keys"))
        score = lambda s, b, h, i, j: s * of_keys[j] + mine[i, j]
        found = context_parallel_attention(*[p.shard(x, 2) for x in whole], plan=p, causal=True, score=score)
        assert torch.equal(found, p.shard(one, 2)), sharding


def check_errors():
    p = plan(100, sharding="contiguous")
    x = p.shard(torch.randn(1, 2 * RANKS, 100, D), 2)
    whole, part = torch.randn(100), p.shard(torch.randn(100), 0)

    def call(words, array, **how):
        def score(s, b, h, i, j):
            return s + array[i]

        expect(words, x, x, x, plan=p, **{"score": score, **how})

    call(f"array: expected {len(part)} rows along dimension 0, as the plan says, got 100 .plan.shard.x, 0. is", rows(whole))
    call("array: expected the key of the function as index 0, along which the array is sharded as keys are", keys(part))
    last = RANKS - 1
    # One rank alone, of a length of its own: the others are told.
    p = plan(90, sharding="contiguous")
    x, part = p.shard(torch.randn(1, 2 * RANKS, 90, D), 2), p.shard(torch.randn(90), 0)
    call("array: expected [0-9]+ rows along dimension 0", rows(part[:-1] if RANK == last else part))
    # They mean different things.
    call("score, mask: expected the same on all ranks", rows(part) if RANK else torch.randn(90))
    call("score, mask: expected the same on all ranks", rows(part.double() if RANK == last else part))
    table = rows(part.expand(3 + (RANK == last), -1), 1)
    call("captured arrays: expected the same on all ranks", part, score=lambda s, b, h, i, j: s + table[1, i])


cases = []
for method in ("gather", "ring", "ulysses"):
    for number, sharding in enumerate(("contiguous", "zigzag")):
        cases.append((method, sharding, (300, 300), {"causal": True}, torch.float32, 1 + number))
    # Few of the keys are fetched, and parts are uneven.
    cases.append((method, "zigzag", (900, 900), {"causal": True, "window": (100, 0)}))
    cases.append((method, "contiguous", (130, 517), {"causal": True}, torch.bfloat16))
# Ranks without rows, and without keys.
cases += [("gather", "contiguous", (1, 7), {"causal": True}), ("ring", "contiguous", (7, 1), {})]
what, seed = sys.argv[1], int(sys.argv[2])
for case in cases if what == "all" else random.Random(seed).sample(cases, 3):
    check(*case)
check_bits()
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
    processes.run(tmp_path, PROGRAM, "all" if processes.IS_WHOLE else "some", seed, count=ranks)


COMPILED = '''
import torch, torch.distributed as dist
import attn
from attn.distributed import context_parallel_attention, plan, rows

dist.init_process_group("gloo")
torch.set_num_threads(1)
p = plan(40)
x, bias = p.shard(torch.randn(1, 2, 40, 16), 2), rows(p.shard(torch.randn(40), 0))


def call(x):
    return context_parallel_attention(x, x, x, plan=p, score=lambda s, b, h, i, j: s + bias[i])


wanted = call(x)
try:
    found = torch.compile(call, backend="eager", fullgraph=True)(x)
except Exception as error:
    assert "whole arrays under torch.compile" in str(error), error
else:
    raise AssertionError(f"expected an Error, got {found}")
print("agreed")
dist.destroy_process_group()
'''


def test_compiled_calls_are_refused(tmp_path):
    """Dynamo hands over an array without its mark: nothing else would be right."""
    processes.run(tmp_path, COMPILED)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda x: distributed.rows(x, 2), "dim: expected a dimension of 2, got 2"),
        (lambda x: distributed.rows(x, True), "dim: expected a dimension of 2, got True"),
        (lambda x: distributed.keys([1]), "x: expected a tensor, got list"),
        (lambda x: distributed.keys(distributed.rows(x)), "x: expected an array that is sharded once"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(attn.Error, match=words):
        make(torch.zeros(3, 4))


def test_plans_take_whole_arrays():
    ids = distributed.keys(torch.zeros(9, dtype=torch.int32))
    with pytest.raises(attn.Error, match="ids: expected the whole array, got a part of one"):
        distributed.plan(9, 1, mask=lambda b, h, i, j: ids[j] == 0)


def test_own_positions_of_one_call():
    """Beside positions, marked arrays have the call's own rows, and others those of the whole."""
    q, k = torch.randn(1, 2, 5, 16), torch.randn(1, 2, 40, 16)
    whole, mine = torch.randn(40), torch.randn(5)
    own = distributed.rows(mine)
    where = dict(positions=([(3, 5), (20, 23)], None), total=(40, 40), causal=True)
    found = attn.attention(q, k, k, score=lambda s, b, h, i, j: s + own[i] * whole[i] * j, **where)
    spread = torch.zeros(40)
    spread[[3, 4, 20, 21, 22]] = mine
    wanted = attn.attention(q, k, k, score=lambda s, b, h, i, j: s + spread[i] * whole[i] * j, **where)
    assert torch.equal(found, wanted)
