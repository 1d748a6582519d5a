"""Attention of several processes, compared with f64 of one; run by test_context_parallel.py as each rank."""

import contextlib
import itertools
import random
import re
import time
import types

import torch
import torch.distributed as dist

import attn
from attn._gradient import GradientPlan
from attn._plan import Plan
from attn.distributed import _explain, _mover, context_parallel_attention, plan

B, D, DV = 2, 16, 24
SHARDINGS = "contiguous", "zigzag", "dealt"
METHODS = "gather", "ring", "ulysses"
LENGTHS = 1, 7, 127, 517, 1024, (300, 517), (517, 130)
# (H, Hkv): of 4 ranks, 2 divide neither.
HEADS = (4, 2), (7, 1), (4, 4)
TYPES = torch.float32, torch.bfloat16
BOUNDS = {torch.float32: 3e-5, torch.bfloat16: 4e-2}


def make_ids(n):
    """Documents, sorted."""
    return torch.stack([torch.arange(n) // 97, torch.arange(n) * 3 // 400]).to(torch.int32)


def list_kinds(m, n):
    """name -> (arguments of attn, arguments of the definition). Functions of the first are traced."""
    longest = max(m, n)
    ids, slopes, shift = make_ids(longest), torch.tensor([0.5, 0.25, 0.125, 0.0625] * 2), n - m
    table = torch.randn(2 * longest + 1)
    documents = attn.assume_sorted(ids)
    both = lambda **how: (how, how)  # noqa: E731
    far = lambda s, b, h, i, j: s - 0.05 * slopes[h] * abs(i - j)  # noqa: E731
    return {
        "full": both(),
        "causal": both(causal=True),
        "top left": both(causal="top_left"),
        "window": both(window=(100, 0)),
        "both sides": both(window=(50, 20)),
        "prefix": both(mask=lambda b, h, i, j: (j <= i + shift) | (j < 70)),
        "documents": (
            dict(mask=lambda b, h, i, j: documents[b, i] == documents[b, j], causal=True),
            dict(mask=lambda b, h, i, j: ids[b, i] == ids[b, j], causal=True),
        ),
        "alibi": both(score=far, window=(90, 0)),
        "softcap": (
            dict(score=lambda s, b, h, i, j: 5.0 * attn.tanh(s / 5.0), causal=True),
            dict(score=lambda s, b, h, i, j: 5.0 * torch.tanh(s / 5.0), causal=True),
        ),
        "lengths": (
            dict(mask=lambda b, h, i, j: j < attn.key_length - i + attn.query_length - 5),
            dict(mask=lambda b, h, i, j: j < n - i + m - 5),
        ),
        "table": both(score=lambda s, b, h, i, j: s + table[i - j + longest]),
        "sink": both(sink=True, window=(60, 0), scale=0.3),
    }


def define(q, k, v, d_output, how):
    """Output, lse and the gradients of q, k, v and the sink, in f64."""
    q, k, v = (x.double().requires_grad_() for x in (q, k, v))
    m, n, heads = q.shape[2], k.shape[2], q.shape[1]
    sink = how.get("sink")
    sink = None if sink is None else sink.double().requires_grad_()
    b, h = torch.arange(B)[:, None, None, None], torch.arange(heads)[:, None, None]
    i, j = torch.arange(m)[:, None], torch.arange(n)
    group = heads // k.shape[1]
    k_, v_ = (x.repeat_interleave(group, 1) for x in (k, v))
    s = q @ k_.mT * how.get("scale", q.shape[3] ** -0.5)
    if how.get("score"):
        s = how["score"](s, b, h, i, j)
    keep = torch.ones(m, n, dtype=torch.bool)
    left, right = how.get("window") or (None, None)
    row = i if how.get("causal") == "top_left" else i + n - m
    keep = keep & (j <= row) if how.get("causal") else keep
    keep = keep if left is None else keep & (j >= i + n - m - left)
    keep = keep if right is None else keep & (j <= i + n - m + right)
    if how.get("mask"):
        keep = keep & how["mask"](b, h, i, j)
    s = s.masked_fill(~keep, -torch.inf)
    logits = s if sink is None else torch.cat([s, sink[:, None, None].expand(B, heads, m, 1)], 3)
    lse = logits.logsumexp(3)
    weights = torch.exp(s - lse.masked_fill(lse == -torch.inf, 0)[..., None])
    output = weights @ v_
    leaves = [q, k, v] if sink is None else [q, k, v, sink]
    found = torch.autograd.grad(output, leaves, d_output.double(), allow_unused=True)
    return [x.detach() for x in (output, lse, *found)]


def compare(kind, method, sharding, length, heads, type_, layout, seed):
    """Of one call; every rank has the same whole."""
    m, n = (length, length) if isinstance(length, int) else length
    torch.manual_seed(seed)
    h, hkv = heads
    how, wanted_how = list_kinds(m, n)[kind]
    whole = [torch.randn(B, x, s, d).to(type_) for x, s, d in ((h, m, D), (hkv, n, D), (hkv, n, DV))]
    d_output = torch.randn(B, h, m, DV).to(type_)
    if how.get("sink"):
        sink = torch.randn(h)
        how, wanted_how = dict(how, sink=sink.requires_grad_()), dict(wanted_how, sink=sink.detach())
    p = plan(
        length,
        sharding=sharding,
        method=method,
        batches=B,
        heads=h,
        steps=(None, 1, 2, 7)[seed % 4],
        **{x: how[x] for x in ("mask", "causal", "window") if x in how},
    )
    of = "rows", "keys", "keys"
    mine = [p.shard(x, 2, of=of_).contiguous() for x, of_ in zip(whole, of)]
    given = mine if layout == "bhsd" else [x.transpose(1, 2).contiguous() for x in mine]
    given = [x.requires_grad_() for x in given]
    output, lse = context_parallel_attention(
        *given, plan=p, layout=layout, return_lse=True, **how
    )
    back = (lambda x: x) if layout == "bhsd" else (lambda x: x.transpose(1, 2))
    output.backward(back(p.shard(d_output, 2)).contiguous())
    exact = define(*whole, d_output, wanted_how)
    got = [back(output), lse, *(back(x.grad) for x in given)]
    of = "rows", "rows", "rows", "keys", "keys"
    for name, x, y, of_ in zip(("output", "lse", "d_q", "d_k", "d_v"), got, exact, of):
        y = p.shard(y, 2, of=of_)
        assert x.shape == y.shape, (name, x.shape, y.shape)
        is_finite = torch.isfinite(y)
        assert torch.equal(torch.isfinite(x), is_finite), (name, repr(p))
        if is_finite.any():
            x, y = x.double()[is_finite], y[is_finite]
            error = float((x - y).abs().max())
            assert error < BOUNDS[type_] * max(1.0, float(y.abs().max())), (name, error, repr(p))
    if how.get("sink") is not None:
        share = how["sink"].grad.clone()
        dist.all_reduce(share)
        assert (share - exact[5]).abs().max() < 5 * BOUNDS[type_] * max(1, exact[5].abs().max())
    return p, output, given


def list_cases(ranks):
    kinds = list(list_kinds(8, 8))
    axes = kinds, METHODS, SHARDINGS, LENGTHS, HEADS, TYPES, ("bhsd", "bshd")
    for case in itertools.product(*axes):
        if case[1] == "ulysses" and case[4][1] % ranks:
            continue
        yield case


def sample(ranks, seed):
    """Cases in which each value of each axis occurs."""
    draw = random.Random(seed)
    cases = list(list_cases(ranks))
    draw.shuffle(cases)
    missing = {(axis, repr(value)) for case in cases for axis, value in enumerate(case)}
    chosen = []
    for case in cases:
        covers = missing & {(axis, repr(value)) for axis, value in enumerate(case)}
        if covers:
            chosen.append(case)
            missing -= covers
    return chosen


def check_bits():
    """A row's bits are those of one process, whoever holds it, in however many steps: output, lse and
    d_query."""
    torch.manual_seed(5)
    q, k, v = (torch.randn(B, x, 517, D) for x in (4, 2, 2))
    # Many intervals for each pair of ranks are one message.
    ranks = dist.get_world_size()
    shuffled = [[(i, min(i + 10, 517)) for i in range(10 * r, 517, 10 * ranks)] for r in range(ranks)]
    for how in ({"causal": True}, {"window": (100, 0)}):
        one = [x.clone().requires_grad_() for x in (q, k, v)]
        wanted, lse = attn.attention(*one, return_lse=True, mask=make_functions(how))
        wanted.sum().backward()
        for sharding, (method, steps) in itertools.product(
            (*SHARDINGS, shuffled), (("gather", 1), ("gather", 2), ("ulysses", 1))
        ):
            if method == "ulysses" and 2 % ranks:
                continue
            p = plan(517, sharding=sharding, method=method, steps=steps, **how)
            mine = [p.shard(x, 2).requires_grad_() for x in (q, k, v)]
            found, rows = context_parallel_attention(*mine, plan=p, return_lse=True, **how)
            found.sum().backward()
            assert torch.equal(found, p.shard(wanted, 2)) and torch.equal(rows, p.shard(lse, 2))
            assert torch.equal(mine[0].grad, p.shard(one[0].grad, 2)), (how, sharding, method)
            for x, y in zip(mine[1:], one[1:]):
                assert (x.grad - p.shard(y.grad, 2)).abs().max() < 1e-4, (how, sharding, method)
            again, _ = context_parallel_attention(*mine, plan=p, return_lse=True, **how)
            assert torch.equal(again, found)


def make_functions(how):
    """The same mask as a function: one process takes the same path."""
    left = how.get("window", (None,))[0]
    if left is None:
        return lambda b, h, i, j: j <= i
    return lambda b, h, i, j: (j >= i - left) & (j <= i)


@contextlib.contextmanager
def log_calls():
    """What this rank starts, waits for and computes, in order: (name, bytes from others, keys)."""
    log = []
    post, finish = _mover.post, _mover.Mover.finish
    run, differentiate = Plan.run_into, GradientPlan.run

    def start(messages, group, *how):
        received = sum(x.numel() * x.element_size() for is_sent, x, _ in messages if not is_sent)
        log.append(("start", received, None))
        return post(messages, group, *how)

    def wait(self, pending):
        log.append(("wait", 0, None))
        return finish(self, pending)

    def compute(self, given, *others, **how):
        log.append(("compute", 0, given.k.data_ptr()))
        return run(self, given, *others, **how)

    def compute_gradients(self, given, *others):
        log.append(("compute", 0, given.k.data_ptr()))
        return differentiate(self, given, *others)

    _mover.post, _mover.Mover.finish = start, wait
    Plan.run_into, GradientPlan.run = compute, compute_gradients
    try:
        yield log
    finally:
        _mover.post, _mover.Mover.finish = post, finish
        Plan.run_into, GradientPlan.run = run, differentiate


def check_bytes():
    """What is sent is what the plan says."""
    p = plan(4096, window=(300, 0), sharding="contiguous", steps=2)
    q, k, v = (p.shard(torch.randn(1, 2, 4096, D), 2) for _ in range(3))
    with log_calls() as log:
        context_parallel_attention(q, k, v, plan=p, window=(300, 0))
    rank = dist.get_rank()
    # 300 keys before the first row, and what is left of 384 keys at both ends.
    foreign = p.count_foreign(rank)
    assert foreign < 300 + 2 * 384 and (foreign >= 300 or rank == 0)
    sent = [bytes_ for name, bytes_, _ in log if name == "start"]
    assert len(sent) == 2 and sum(sent) == foreign * 2 * D * 4 * 2, (sent, foreign)


def exchange_lists(received, sent, group, async_op):
    """What dist.all_to_all is with NCCL, by messages of gloo."""
    messages = [(True, x, peer) for peer, x in enumerate(sent)] + [(False, x, peer) for peer, x in enumerate(received)]
    works = _mover.post([message for message in messages if message[1].numel()], group)
    return types.SimpleNamespace(wait=lambda: [work.wait() for work in works])


def check_collective():
    """GPUs exchange all messages by one collective: the same bits."""
    lengths, ranks = [], dist.get_world_size()

    def find(how, p):
        torch.manual_seed(5)
        leaves = [p.shard(torch.randn(1, 4, 700, D), 2).requires_grad_() for _ in range(3)]
        output = context_parallel_attention(*leaves, plan=p, **how)
        output.sum().backward()
        return [output, *(x.grad for x in leaves)]

    def exchange(received, sent, group, async_op):
        lengths.append(len(sent))
        return exchange_lists(received, sent, group, async_op)

    for how in ({"causal": True}, {"window": (60, 0)}, {}):
        for sharding in ("contiguous", "zigzag", [[(16 * x, min(16 * x + 16, 700)) for x in range(r, 44, ranks)] for r in range(ranks)]):
            p = plan(700, sharding=sharding, **how)
            wanted = find(how, p)
            begin, all_to_all = _mover.Mover.__init__, dist.all_to_all

            def make(self, *given):
                begin(self, *given)
                self.has_collective = True

            _mover.Mover.__init__, dist.all_to_all = make, exchange
            try:
                found = find(how, p)
            finally:
                _mover.Mover.__init__, dist.all_to_all = begin, all_to_all
            assert all(torch.equal(x, y) for x, y in zip(found, wanted)), (how, sharding)
    assert lengths and all(x == ranks for x in lengths)


def check_overlap():
    """While one group of heads is computed the next one is on its way, in two buffers; gradients go home
    while the next ones are computed."""
    p = plan(600, causal=True, steps=4)
    q, k, v = (p.shard(torch.randn(1, 8, 600, D), 2).requires_grad_() for _ in range(3))
    with log_calls() as log:
        output = context_parallel_attention(q, k, v, plan=p, causal=True)
    names = [name for name, _, _ in log]
    assert names == ["start", *["wait", "start", "compute"] * 3, "wait", "compute"], names
    buffers = [address for name, _, address in log if name == "compute"]
    assert buffers[0] == buffers[2] != buffers[1] == buffers[3]
    with log_calls() as log:
        output.sum().backward()
    names = [name for name, _, _ in log]
    # The next keys, the gradients of this group, those of the group before are home, these go.
    first, middle, last = ["wait", "start", "compute", "start"], ["wait", "start", "compute", "wait", "start"], [
        "wait", "compute", "wait", "start", "wait"
    ]
    assert names == ["start", *first, *middle * 2, *last], names


def check_memory():
    """A call takes the memory that the plan says, and not that of all key heads."""
    for steps in (8, 2, 1):
        check_memory_of(steps)


def check_memory_of(steps):
    b, h, hkv, d, n = 1, 8, 8, 64, 2048
    p = plan(n, causal=True, steps=steps)
    q, k, v = (p.shard(torch.randn(b, x, n, d), 2) for x in (h, hkv, hkv))
    attend = lambda *x: context_parallel_attention(*x, plan=p, causal=True)  # noqa: E731
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    d_output = torch.randn_like(q)
    # Tables and kernels are made once.
    attend(*leaves).backward(d_output)
    rank, shape = dist.get_rank(), _explain.Shape(b, h, hkv, d, 4)
    forward, backward = _explain.count_memory(p, rank, shape)

    def differentiate():
        for x in leaves:
            x.grad = None
        output = attend(*leaves)
        return find_peak(lambda: output.backward(d_output)) - 3 * q.numel() * 4

    with torch.no_grad():
        expect_memory(lambda: find_peak(lambda: attend(q, k, v)) - q.numel() * 4, forward)
    expect_memory(differentiate, backward)


def expect_memory(measure, told):
    """Gloo's threads let go of what was sent when they get to run, on a busy machine later: the least of three calls.
    All ranks measure as often, for each call waits for the others."""
    taken = min(measure() for _ in range(3))
    assert abs(taken / told - 1) < 0.1, (taken, told)


def find_peak(call):
    """Bytes that PyTorch allocates for a call at most at a time."""
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    events = [x for x in profile.profiler.kineto_results.events() if x.name() == "[memory]"]
    total = most = 0
    for event in sorted(events, key=lambda x: x.start_ns()):
        total += event.nbytes()
        most = max(most, total)
    return most


def check_errors():
    rank = dist.get_rank()
    p = plan(64, causal=True, sharding="contiguous")
    x = torch.randn(1, 2, 64, D)
    mine = p.shard(x, 2)
    whole = dict(plan=p, causal=True)
    for change, name in (
        ({"scale": 0.5 + rank}, "scale"),
        ({"causal": bool(rank)}, "causal"),
        ({"return_lse": rank == 0}, "return_lse"),
        ({"options": {"threads": 1 + rank}}, "options"),
        ({"sink": torch.zeros(2) if rank else None}, "sink"),
        ({"window": (rank, 0)}, "window"),
        ({"plan": plan(64, causal=True, sharding="contiguous", method=("gather", "ring")[rank % 2])}, "plan"),
    ):
        expect(name + ": expected the same on all ranks", mine, mine, mine, **{**whole, **change})
    wide = mine.bfloat16() if rank % 2 else mine
    expect("q: expected the same on all ranks", wide, wide, wide, **whole)
    expect(f"plan: expected one of {dist.get_world_size()} ranks, got one of 9", mine, mine, mine,
           plan=plan(64, 9), causal=True)
    expect("q: expected a tensor of 4 dimensions, got shape ", mine[0], mine, mine, **whole)
    expect("v: expected a tensor of 4 dimensions, got list", mine, mine, [], **whole)
    expect("causal: expected False, True", mine, mine, mine, plan=p, causal="left")
    expect("window: expected None or ", mine, mine, mine, plan=p, window=(-2, 0))
    expect("k: expected 64 positions|k: expected [0-9]+ positions, as the plan says", mine, x, mine, **whole)
    if dist.get_world_size() > 2:
        heads = plan(64, method="ulysses", sharding="contiguous")
        expect("k: expected key heads that", mine, mine, mine, plan=heads)
    # The group serves the next call.
    assert context_parallel_attention(mine, mine, mine, **whole).shape == mine.shape


def expect(words, *tensors, **how):
    expect_error(words, lambda: context_parallel_attention(*tensors, **how))


def expect_error(words, call):
    try:
        call()
    except attn.Error as error:
        assert re.search(words, str(error)), (words, str(error))
    else:
        raise AssertionError(f"expected an Error: {words}")


def check_lone_errors():
    """An argument that is wrong on the last rank alone: all have an Error that names it, at once."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    is_last = rank == last

    def fail(b, h, i, j):
        raise ValueError("no such mask")

    def keep(b, h, i, j):
        return j <= i + 0

    cases = {
        "k: expected": lambda x, p: dict(k=x[:, :, :-1].contiguous()),
        "v: expected": lambda x, p: dict(v=x.double()),
        "q: expected": lambda x, p: dict(q=x[0]),
        "sink: expected": lambda x, p: dict(sink=torch.zeros(3)),
        "causal: expected": lambda x, p: dict(causal="left"),
        "plan: expected": lambda x, p: dict(plan=plan(p.total[0], last + 2)),
        "score or mask|no such mask": lambda x, p: dict(mask=fail),
    }
    for length, (words, change) in enumerate(cases.items(), 128):
        # A length of its own: nothing is agreed yet.
        p = plan(length, sharding="contiguous")
        x = p.shard(torch.randn(1, 2, length, D), 2)
        given = dict(q=x, k=x, v=x, plan=p, mask=keep)
        if is_last:
            given.update(change(x, p))
        start, tensors = time.monotonic(), [given.pop(name) for name in "qkv"]
        try:
            context_parallel_attention(*tensors, **given)
        except Exception as error:  # noqa: BLE001
            assert re.search(words, str(error)), (words, str(error))
            is_told = isinstance(error, attn.Error) and str(error).startswith(f"on rank {last}: ")
            assert is_told != is_last, (words, error)
        else:
            raise AssertionError(f"expected an Error: {words}")
        assert time.monotonic() - start < 30
    # The group serves the next call.
    assert context_parallel_attention(x, x, x, plan=p, mask=keep).shape == x.shape


def check_captured_gradients():
    """Those of arrays that functions read are a rank's share, and so is that of a sink."""
    torch.manual_seed(3)
    ranks = dist.get_world_size()
    q, k, v = (torch.randn(1, x, 200, D) for x in (2 * ranks, ranks, ranks))
    leaves = torch.randn(2 * ranks, 401), torch.randn(2 * ranks)

    def run(attend, table, sink):
        return attend(score=lambda s, b, h, i, j: s + table[h, i - j + 200], sink=sink).square().sum()

    one = [x.clone().requires_grad_() for x in leaves]
    run(lambda **how: attn.attention(q, k, v, causal=True, **how), *one).backward()
    for method, steps in (("gather", 2), ("ring", 1), ("ulysses", 1)):
        p = plan(200, causal=True, method=method, steps=steps)
        part = [x.clone().requires_grad_() for x in leaves]
        mine = [p.shard(x, 2) for x in (q, k, v)]
        run(lambda **how: context_parallel_attention(*mine, plan=p, causal=True, **how), *part).backward()
        for x, y in zip(part, one):
            dist.all_reduce(x.grad)
            assert (x.grad - y.grad).abs().max() < 1e-4, (method, steps)


def check_dropout():
    """The weights that are dropped are those of one process: output, and gradients."""
    torch.manual_seed(11)
    ranks = dist.get_world_size()
    whole = [torch.randn(2, x, 300, D) for x in (2 * ranks, ranks, ranks)]
    d_output, slopes = torch.randn(2, 2 * ranks, 300, D), torch.rand(2 * ranks)
    far = lambda s, b, h, i, j: s - slopes[h] * abs(i - j)  # noqa: E731
    cases = ({"mask": make_functions({})}, "gather", 1), ({"score": far}, "gather", 2), ({}, "gather", 2)
    cases += ({"score": far}, "ring", 1), ({}, "ulysses", 1), ({"score": far}, "ulysses", 1)
    for number, (how, method, steps) in enumerate(cases):
        dropout = dict(dropout_p=(0.3, 0.9, 1.0, 0.3, 0.3, 0.9)[number], dropout_seed=5 + number)
        one = [x.clone().requires_grad_() for x in whole]
        wanted = attn.attention(*one, **how, **dropout)
        wanted.backward(d_output)
        p = plan(300, sharding="zigzag", method=method, steps=steps)
        mine = [p.shard(x, 2).requires_grad_() for x in whole]
        found = context_parallel_attention(*mine, plan=p, **how, **dropout)
        found.backward(p.shard(d_output, 2))
        for x, y in zip((found, *[x.grad for x in mine]), (wanted, *[x.grad for x in one])):
            assert (x - p.shard(y, 2)).abs().max() < 1e-4 * max(1.0, y.abs().max()), (how, method)
        if method == "gather" and how:
            assert torch.equal(found, p.shard(wanted, 2)), (how, steps)
    x = p.shard(whole[1], 2)
    expect("dropout_seed: expected one that all ranks share, got None", x, x, x, plan=p, dropout_p=0.5)
    expect("dropout_p: expected a probability from 0 to 1, got 2", x, x, x, plan=p, dropout_p=2, dropout_seed=1)
    expect("dropout_p: expected the same on all ranks", x, x, x, plan=p, dropout_p=0.1 + 0.1 * dist.get_rank(),
           dropout_seed=1)


def check_rounding():
    """Steps of a ring add up in f32: output and gradients of bf16 are as exact as those of one process."""
    torch.manual_seed(13)
    whole = [torch.randn(B, 4, 512, d).bfloat16() for d in (D, D, DV, DV)]
    exact = define(*whole, {})
    one = [x.clone().requires_grad_() for x in whole[:3]]
    output = attn.attention(*one)
    output.backward(whole[3])
    p = plan(512, method="ring", sharding="contiguous")
    mine = [p.shard(x, 2).requires_grad_() for x in whole[:3]]
    found = context_parallel_attention(*mine, plan=p)
    found.backward(p.shard(whole[3], 2))
    names = "output", "d_q", "d_k", "d_v"
    for name, x, y, z in zip(names, (found, *[x.grad for x in mine]), (output, *[x.grad for x in one]),
                             (exact[0], *exact[2:])):
        errors = [float((a.double() - p.shard(z, 2)).norm()) for a in (x, p.shard(y, 2))]
        assert errors[0] < 1.05 * errors[1], (name, errors)


def check_unshard():
    p = plan(100, sharding="zigzag", causal=True)
    x = torch.randn(2, 100, 3, generator=torch.Generator().manual_seed(1))
    part = p.shard(x, 1).requires_grad_()
    whole = p.unshard(part, 1)
    assert torch.equal(whole, x)
    (whole * (1 + dist.get_rank())).sum().backward()
    ranks = dist.get_world_size()
    assert torch.equal(part.grad, torch.full_like(part, ranks * (ranks + 1) / 2))


def check_groups():
    """Each half of the ranks has a sequence of its own."""
    ranks = dist.get_world_size()
    if ranks % 2:
        return
    mesh = dist.init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("half", "part"))["part"]
    torch.manual_seed(7 + dist.get_rank() // (ranks // 2))
    x, d_output = torch.randn(2, 1, 2, 300, D)
    one = x.clone().requires_grad_()
    mask = make_functions({})
    wanted = attn.attention(one, one, one, mask=mask)
    wanted.backward(d_output)
    for group in (mesh, mesh.get_group()):
        p = plan(300, group, causal=True)
        assert p.ranks == ranks // 2
        mine = p.shard(x, 2, group=group).requires_grad_()
        found = context_parallel_attention(mine, mine, mine, plan=p, group=group, causal=True)
        assert torch.equal(p.unshard(found.detach(), 2, group), wanted)
        found.backward(p.shard(d_output, 2, group=group))
        assert (p.unshard(mine.grad, 2, group) - one.grad).abs().max() < 1e-5


def main(what, seed):
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    ranks = dist.get_world_size()
    checks = [check_bits, check_bytes, check_collective, check_overlap, check_memory, check_captured_gradients]
    checks += [check_unshard, check_rounding]
    checks += [check_groups, check_errors, check_lone_errors, check_dropout]
    if what == "calls":
        for check in checks:
            check()
    cases = list(list_cases(ranks)) if what == "all" else sample(ranks, int(seed))
    for number, case in enumerate(cases):
        compare(*case, seed=int(seed) + number)
    if dist.get_rank() == 0:
        print(len(cases), "cases")
    print("agreed")
    dist.destroy_process_group()


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
