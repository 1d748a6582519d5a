"""attn.distributed on processes of this machine (gloo), and plans without any."""

import pickle
import time

import processes
import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("PyTorch without torch.distributed", allow_module_level=True)

import attn  # noqa: E402
from attn import distributed  # noqa: E402
from attn._written import add_options, read_source  # noqa: E402
from attn.distributed._call import Parts, pin_schedule, read_parts  # noqa: E402
from attn.distributed._exchange import find_steps  # noqa: E402
from attn.distributed._mover import COPIES, _find_lanes, find_parts  # noqa: E402
from attn.distributed._plan import read_plan  # noqa: E402
from attn.distributed._rates import Rates, choose_steps, find_exposed  # noqa: E402
from attn.distributed._shardings import count, intersect, join  # noqa: E402
from attn.distributed._sources import Asked, Dropout, find_source  # noqa: E402

PROGRAM = """
import sys
import distributed_cases

distributed_cases.main(*sys.argv[1:])
"""


@pytest.mark.long
@pytest.mark.parametrize("ranks", processes.sample(2, 3, 4))
def test_ranks(ranks, tmp_path):
    """A sample of the grid with a fresh seed; all of it by `make test-distributed`."""
    what = "all" if processes.IS_WHOLE else "calls"
    seed = str(int(time.time()) + ranks)
    print("seed", seed)
    processes.run(tmp_path, PROGRAM, what, seed, count=ranks, timeout=3600 if what == "all" else 600)


SHARDINGS = ["auto", "contiguous", "zigzag", "dealt"]


@pytest.mark.parametrize("sharding", SHARDINGS)
@pytest.mark.parametrize("length", [1, 7, 517, 4096, (300, 517), 131072])
@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 64])
def test_every_position_has_one_rank(ranks, length, sharding):
    plan = distributed.plan(length, ranks, causal=True, sharding=sharding)
    for of, extent in zip(("rows", "keys"), plan.total):
        held = getattr(plan, of)
        assert sum(map(count, held)) == extent and join([x for mine in held for x in mine]) == ((0, extent),)
    positions = plan.positions(ranks - 1)
    assert (positions[1:] > positions[:-1]).all() and len(positions) == count(plan.rows[-1])
    assert pickle.loads(pickle.dumps(plan)) == plan and hash(plan) == hash(pickle.loads(pickle.dumps(plan)))


@pytest.mark.parametrize("how", [{"causal": True}, {"window": (100, 0)}, {"window": (30, 200)}, {}])
@pytest.mark.parametrize("length", [(517, 517), (300, 900), (900, 300)])
def test_each_kept_pair_is_computed_once(how, length):
    """A row is on one rank, whose keys have all that it keeps."""
    m, n = length
    plan = distributed.plan(length, 4, sharding="zigzag", **how)
    i, j = torch.arange(m)[:, None] + n - m, torch.arange(n)
    keep = torch.ones(m, n, dtype=torch.bool)
    keep = keep & (j <= i) if how.get("causal") else keep
    if "window" in how:
        keep = keep & (j >= i - how["window"][0]) & (j <= i + how["window"][1])
    for rows, fetched in zip(plan.rows, plan.fetched):
        has = torch.zeros(n, dtype=torch.bool)
        for begin, end in fetched:
            assert begin % 384 == 0 and (end % 384 == 0 or end == n)
            has[begin:end] = True
        for begin, end in rows:
            assert has[keep[begin:end].any(0)].all()


def test_balance_and_bytes():
    """Of a long causal sequence, and of a window."""
    plan = lambda sharding, **how: distributed.plan(131072, 8, sharding=sharding, **how)  # noqa: E731
    assert plan("contiguous", causal=True).balance == pytest.approx(0.534, abs=0.002)
    assert plan("zigzag", causal=True).balance == pytest.approx(1.0, abs=0.001)
    assert plan("auto", causal=True).balance > 0.999
    window = plan("auto", window=(4096, 0))
    assert window.sharding == "contiguous" and window.balance > 0.97
    assert max(window.count_foreign(rank) for rank in range(8)) <= 4096 + 384
    assert "balance" in repr(window)


def test_documents_are_dealt():
    """Packed documents with a heavy tail, where zigzag has a third of the balance on many ranks."""
    rng = np.random.default_rng(0)
    length, ends = 131072, [0]
    while ends[-1] < length:
        ends.append(min(length, ends[-1] + int(np.clip(rng.lognormal(7.3, 1.4), 16, 32768))))
    ids = np.repeat(np.arange(len(ends) - 1, dtype="int32"), np.diff(ends))
    documents = attn.assume_sorted(ids)
    mask = lambda b, h, i, j: documents[i] == documents[j]  # noqa: E731
    plan = lambda sharding: distributed.plan(  # noqa: E731
        length, 8, sharding=sharding, mask=mask, causal=True
    )
    for sharding in ("contiguous", "zigzag"):
        assert plan(sharding).balance < 0.9
    best = plan("auto")
    assert best.sharding.startswith("dealt") and best.balance > 0.97
    # All fetch 7 / 8 where keys are gathered whole.
    assert sum(best.count_foreign(rank) for rank in range(8)) / 8 < 0.4 * length
    for rows, fetched in zip(best.rows, best.fetched):
        has = np.zeros(length, bool)
        for begin, end in fetched:
            has[begin:end] = True
        for begin, end in rows:
            for document in np.unique(ids[begin:end]):
                first = ends[document]
                last = min(end, ends[document + 1])
                assert has[first:last].all()


def test_explain():
    plan = distributed.plan(131072, 8, causal=True)
    text = distributed.explain(plan, heads=64, key_heads=8, head_dim=128)
    assert len(text.splitlines()) == 11 and "bound by computing; 0.98" in text
    many = distributed.plan(1 << 20, 1024, window=(4096, 0))
    lines = distributed.explain(many, heads=64, key_heads=8, head_dim=128).splitlines()
    assert 4 <= len(lines) <= 7
    slow = distributed.Rates(link=1e9)
    text = distributed.explain(plan, heads=64, key_heads=8, head_dim=128, rates=slow)
    assert "bound by transfers" in text


def test_steps_hide_transfers():
    """All but the first group of heads moves while others are computed; memory is that of two groups."""
    _costs = distributed._explain
    shape, rates = _costs.Shape(1, 64, 8, 128, 2), _costs.Rates(link=1e11)
    make = lambda steps: distributed.plan(131072, 8, causal=True, steps=steps)  # noqa: E731
    one, eight = (_costs._estimate(make(steps), 3, shape, rates) for steps in (1, 8))
    assert one.exposed > 7 * eight.exposed and eight.total < one.total
    assert eight.memory < 0.3 * one.memory
    assert make(3).count_steps(1, 64, 8) == 3
    # Another step takes longer than it hides of what a node moves, and less than of what comes from other nodes.
    assert distributed.plan(32768, 2, causal=True).count_steps(1, 64, 8) == 1
    far = distributed.plan(524288, 64, causal=True)
    assert far.count_steps(1, 64, 8) == 8
    # A call has the plan as text, and takes as many.
    assert read_plan(far.text).count_steps(1, 64, 8) == 8
    assert read_plan(far.text).is_split(1, 64, 8)
    # Too few rows for kernels of one key head each.
    assert distributed.plan(8192, 64).count_steps(1, 64, 8) == 1


def test_choice_of_steps():
    """One step, unless others save more than a tenth of computing: over links, rates, times and numbers of groups."""
    rates = Rates()
    times = [10.0**x for x in np.arange(-5, 3, 0.25)]
    chosen = set()
    for computed in times:
        for moved in times:
            for most in (1, 2, 3, 8, 16, 64):
                steps = choose_steps(most, moved, computed, rates)
                saved = [find_exposed(1, moved, computed) - find_exposed(x, moved, computed) for x in range(1, most + 1)]
                saved = [x - i * rates.step for i, x in enumerate(saved)]
                assert 1 <= steps <= most
                if moved <= rates.risk * computed:
                    assert steps == 1
                if steps > 1:
                    assert saved[steps - 1] > rates.risk * computed and saved[steps - 1] == max(saved)
                else:
                    assert max(saved) <= rates.risk * computed
                chosen.add(steps)
    assert {1, 2, 3, 8} <= chosen


@pytest.mark.parametrize("heads", [(64, 8), (16, 16)])
@pytest.mark.parametrize("how", [{}, {"causal": True}, {"window": (4096, 0)}])
@pytest.mark.parametrize("length", [32768, 131072])
def test_one_step_within_a_node(length, how, heads):
    """Two H200s took up to 1.43 times as long in two steps."""
    for ranks in (2, 4):
        plan = distributed.plan(length, ranks, **how)
        assert plan.count_steps(1, *heads) == 1
        # Kernels of fewer heads are faster backward, where they are long enough.
        back = plan.count_steps(1, *heads, True)
        computed = 10 * 128 * heads[0] * max(plan.work) / Rates().backward
        assert back == max(1, min(4, int(computed / 8e-3)))
        assert plan.is_split(1, *heads) == (back > 1)


def test_messages_of_both():
    """Keys and values of an interval are one message, unless values would begin between multiples of 16 bytes."""
    make = lambda columns, type_: torch.empty(1, 2, 6, columns, dtype=type_)  # noqa: E731
    half, whole = torch.bfloat16, torch.float32
    assert len(_find_lanes([make(192, half), make(128, half)])) == 1
    assert len(_find_lanes([make(20, half), make(128, half)])) == 2
    assert len(_find_lanes([make(4, whole), make(8, whole)])) == 1
    assert len(_find_lanes([make(8, whole), make(8, half)])) == 2


@pytest.mark.parametrize("sharding", ["zigzag", "dealt"])
def test_order_of_what_comes(sharding):
    """One index sorts the keys that come from other ranks, and another one takes their gradients back."""
    plan = distributed.plan(1000, 3, sharding=sharding)
    for rank in range(3):
        steps = find_steps(plan.route, rank, torch.device("cpu"))
        come = torch.cat([plan.positions(peer, "keys") for peer in range(3)])
        assert torch.equal(come[steps.place], torch.arange(1000))
        assert torch.equal(torch.arange(1000)[steps.back], come)
        assert steps is find_steps(plan.route, rank, torch.device("cpu"))


def test_texts_of_repeated_calls():
    """A call with dropout writes no text that a call before it has written."""
    x = torch.randn(1, 2, 8, 16)

    def find(p, seed):
        whole, how = Asked("bottom_right", None, None, None), (None, None, None)
        return find_source((x, x, x), whole, plan, False, how, Dropout(p, torch.tensor([seed])))

    plan = distributed.plan(9, 2)
    first, again, other, none = find(0.3, 1), find(0.3, 2), find(0.4, 1), find(0.0, 1)
    assert first.text is again.text and first.order == again.order
    assert int(first.captures[-1]) == 1 and int(again.captures[-1]) == 2
    assert first.text not in (other.text, none.text) and not none.captures
    parts = [Parts("a", plan.text, first.order, (0, 0), (("causal", "True"),)) for _ in range(2)]
    assert parts[0].write() is parts[1].write() and read_parts(parts[0].write()) == parts[0]
    assert parts[0]._replace(first=(0, 1)).write() != parts[0].write()


@pytest.mark.parametrize("sharding", ["contiguous", "zigzag", "dealt"])
def test_messages(sharding):
    """What one rank sends to another one is what that one expects, in places and in order."""
    plan = distributed.plan(9000, 3, causal=True, sharding=sharding)
    device = torch.device("cpu")
    parts = [find_parts(plan.route, rank, device) for rank in range(3)]
    for sender in range(3):
        for receiver in range(3):
            to, of = parts[sender].to[receiver], parts[receiver].of[sender]
            assert to.held == of.held and to.wanted == of.wanted and to.is_indexed == (len(to.held) > COPIES)
            held, wanted = plan.positions(sender, "keys"), plan.fetched[receiver]
            there = torch.cat([torch.arange(a, b) for a, b in wanted])
            sent = torch.cat([held[a:b] for a, b in to.held]) if to.held else held[:0]
            found = torch.cat([there[a:b] for a, b in of.wanted]) if of.wanted else held[:0]
            assert torch.equal(sent, found) and len(sent) == count(intersect(plan.keys[sender], wanted))


def test_schedule_of_causal_parts():
    """Parts of causal attention take the schedule of the whole on a GPU, unless the caller chose one."""
    x = torch.randn(1, 2, 8, 128)

    def find(options):
        whole, plan = Asked("bottom_right", None, None, None), distributed.plan(8, 2)
        return find_source((x, x, x), whole, plan, False, (None, None, options), Dropout(0.0, None)).text

    pinned = read_source(pin_schedule(find(None)), "cuda:0").options
    assert ("stay", "on") in pinned and ("slack", "0") in pinned
    reserving = read_source(pin_schedule(find({"reserve": 8})), "cuda:0").options
    assert ("stay", "on") in reserving and ("reserve", "8") in reserving
    own = find({"block_m": 64})
    assert pin_schedule(own) == own
    assert ("block_m", "64") in read_source(add_options(own, (("block_m", "32"),)), "cpu").options
    assert pin_schedule(find(None)) is pin_schedule(find(None))


@pytest.mark.parametrize("sharding", ["contiguous", "zigzag", "dealt"])
@pytest.mark.parametrize("how", [{"causal": True}, {"window": (300, 0)}])
@pytest.mark.parametrize("gradient", [False, True])
def test_tiles_of_parts_are_decided(sharding, how, gradient):
    """Whichever way kernels are told where their rows and keys stand, they skip what the mask drops."""
    plan = distributed.plan(8192, 4, sharding=sharding, **how)
    where = tuple(None if kind == "own" else kind for kind in plan.kinds)
    text = attn.explain(dtype="bfloat16", head_dim=128, device="cuda", positions=where, gradient=gradient, **how)
    assert "mask-tiles" in str(text) and "cannot be decided" not in str(text), plan.kinds


def test_own_intervals():
    plan = distributed.plan(100, 2, sharding=[[(0, 10), (60, 100)], [(10, 60)]])
    assert plan.sharding == "own" and plan.rows == (((0, 10), (60, 100)), ((10, 60),))
    assert intersect(plan.rows[0], plan.rows[1]) == ()
    x = torch.arange(100.0)
    assert torch.equal(plan.shard(x, 0, rank=1), x[10:60])


@pytest.mark.parametrize(
    "call, words",
    [
        (dict(length=0), "length: expected lengths from 1"),
        (dict(length=(5, True)), "length: expected lengths from 1"),
        (dict(group=0), "group: expected at least one rank, got 0"),
        (dict(sharding="ring"), "sharding: expected one of auto"),
        (dict(sharding=[[(0, 9)]]), "sharding: expected intervals for each of 2 ranks"),
        (dict(sharding=[[(0, 5)], [(4, 9)]]), "sharding: expected each of 9 positions once"),
        (dict(causal="left"), "causal: expected False, True"),
        (dict(window=(1,)), "window: expected None or"),
        (dict(steps=0), "steps: expected a number of groups of key heads"),
        (dict(method="p2p"), "method: expected one of auto, gather, pass rows, ring, ulysses"),
    ],
    ids=str,
)
def test_what_is_refused(call, words):
    with pytest.raises(attn.Error, match=words):
        distributed.plan(**{"length": 9, "group": 2, **call})
    plan = distributed.plan(9, 2)
    with pytest.raises(attn.Error, match="x: expected 9 positions along dimension 1, got 8"):
        plan.shard(torch.zeros(2, 8), 1, rank=0)


TRAINING = '''
import torch, torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard
import attn
from attn.distributed import context_parallel_attention, plan

S, WIDTH, WORDS = 100, 32, 50


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mlp_norm = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, 64)
        self.out = torch.nn.Linear(WIDTH, WIDTH)
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, 64), torch.nn.GELU(), torch.nn.Linear(64, WIDTH)
        )
        self.sink = torch.nn.Parameter(torch.randn(4))

    def forward(self, x, attend):
        q, k, v = self.qkv(self.norm(x)).unflatten(2, (8, 8)).transpose(1, 2).split([4, 2, 2], 1)
        y = attend(q, k, v, sink=self.sink)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.mlp_norm(x))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.places = torch.nn.Embedding(S, WIDTH)
        self.layers = torch.nn.ModuleList([Layer(), Layer()])
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, words, places, attend):
        x = self.words(words) + self.places(places)
        for layer in self.layers:
            x = layer(x, attend)
        return self.head(x)


def train(model, attend, words, targets, places, share):
    """`share` makes a rank's sum of losses its part of a mean over ranks."""
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    losses = []
    for step in range(20):
        logits = model(words[step], places, attend)
        loss = F.cross_entropy(logits.flatten(0, 1), targets[step].flatten(), reduction="sum") * share
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


dist.init_process_group("gloo")
torch.set_num_threads(1)
mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "context"))
torch.manual_seed(0)
words = torch.randint(0, WORDS, (20, 2, S))
targets = torch.randint(0, WORDS, (20, 2, S))
model = Model()
parallel = Model()
parallel.load_state_dict(model.state_dict())
one = lambda *x, **how: attn.attention(*x, causal=True, **how)
wanted = train(model, one, words, targets, torch.arange(S), 1 / (2 * S))

for layer in parallel.layers:
    fully_shard(layer, mesh=dist.init_device_mesh("cpu", (4,)))
fully_shard(parallel, mesh=dist.init_device_mesh("cpu", (4,)))
context = mesh["context"]
p = plan(S, context, causal=True)
places = p.positions(context.get_local_rank())
batch = mesh["data"].get_local_rank()
mine = [x[:, batch : batch + 1, places] for x in (words, targets)]
attend = lambda *x, **how: context_parallel_attention(*x, plan=p, group=context, causal=True, **how)
# FSDP takes the mean of four.
got = train(parallel, attend, *mine, places, 4 / (2 * S))
dist.all_reduce(got)
got = got / 4
assert ((got - wanted).abs() / wanted).max() < 1e-5, (got, wanted)
assert wanted[-1] != wanted[0]
print("agreed")
dist.destroy_process_group()
'''


@pytest.mark.long
def test_losses_with_sharded_parameters(tmp_path):
    """20 steps of a model with FSDP over four ranks, two of which share each sequence."""
    processes.run(tmp_path, TRAINING, count=4)


LOST = """
import datetime, os, sys, time

import torch
import torch.distributed as dist

import attn
from attn.distributed import context_parallel_attention, plan

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=8))
rank, how = dist.get_rank(), sys.argv[1]
p = plan(300, causal=True)
q, k, v = (p.shard(torch.randn(1, 2, 300, 16), 2).requires_grad_() for _ in range(3))
output = context_parallel_attention(q, k, v, plan=p, causal=True)
dist.barrier()
if rank == 1:
    # It is gone, or it is there and does not call.
    print("agreed", flush=True)
    if how == "waits":
        time.sleep(25)
    os._exit(0)
begin = time.monotonic()
calls = {
    "forward": lambda: context_parallel_attention(q, k, v, plan=p, causal=True),
    "new": lambda: context_parallel_attention(q, k, v, plan=p, causal=True, return_lse=True),
    "backward": lambda: output.sum().backward(),
    "unshard": lambda: p.unshard(output, 2),
}
try:
    calls[sys.argv[2]]()
except attn.Error as error:
    assert error.code == "driver failure" and "group: expected an answer of every rank" in error.message, error
else:
    raise AssertionError("expected an Error")
assert time.monotonic() - begin < 20
print("agreed")
sys.stdout.flush()
# The group is broken.
os._exit(0)
"""


@pytest.mark.parametrize("how", ["ends", "waits"])
@pytest.mark.parametrize("call", processes.sample("forward", "new", "backward", "unshard"))
def test_a_rank_that_is_lost(call, how, tmp_path):
    """The others have an Error, in the time of the group."""
    processes.run(tmp_path, LOST, how, call, count=3, timeout=120)
