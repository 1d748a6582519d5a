"""Plans of attn.distributed by numbers alone: no process, no attention."""

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("PyTorch without torch.distributed", allow_module_level=True)

import attn  # noqa: E402
from attn import distributed  # noqa: E402
from attn.distributed._shardings import count, cut, deal_near  # noqa: E402


def make_documents(length, most, seed=0):
    """Ids of packed documents with a heavy tail, 4000 positions in the mean."""
    rng, ends = np.random.default_rng(seed), [0]
    while ends[-1] < length:
        ends.append(min(length, ends[-1] + int(np.clip(rng.lognormal(7.3, 1.4), 16, most))))
    return np.repeat(np.arange(len(ends) - 1, dtype="int32"), np.diff(ends))


def draw_mask(draw):
    """(rows, keys), the arguments of a plan, and for each row its first kept key and the end of those."""
    m = draw.randint(1, 300)
    n = m if draw.random() < 0.6 else draw.randint(1, 300)
    kind = draw.choice(["full", "causal", "top left", "window", "documents"])
    row, last = np.arange(m), np.arange(m) + n - m
    begin, end = np.zeros(m, int), np.full(m, n)
    how = {}
    if kind == "causal":
        how, end = dict(causal=True), last + 1
    elif kind == "top left":
        how, end = dict(causal="top_left"), row + 1
    elif kind == "window":
        left, right = draw.randint(0, 80), draw.randint(0, 80)
        how, begin, end = dict(window=(left, right)), last - left, last + right + 1
    elif kind == "documents" and m == n:
        ids = np.sort(np.array([draw.randint(0, 6) for _ in range(m)], dtype="int32"))
        table = attn.assume_sorted(ids)
        how = dict(mask=lambda b, h, i, j: table[i] == table[j], causal=True)
        begin, end = np.searchsorted(ids, ids), row + 1
    begin, end = np.clip(begin, 0, n), np.clip(end, 0, n)
    return (m, n), how, begin, np.maximum(begin, end)


@pytest.mark.long
def test_kept_pairs_of_random_masks():
    """10,000 masks: over all ranks each pair that is kept is computed once, and no other pair is kept there. Counted by
    integers, from what each rank holds and fetches."""
    for seed in range(10_000):
        draw = random.Random(seed)
        length, how, begin, end = draw_mask(draw)
        ranks = draw.randint(1, 9)
        sharding = draw.choice(["auto", "contiguous", "zigzag", "dealt"])
        plan = distributed.plan(length, ranks, sharding=sharding, **how)
        seen = 0
        # Few rows go to all keys.
        held = (plan.passed, plan.keys) if plan.method == "pass rows" else (plan.rows, plan.fetched)
        for rows, fetched in zip(*held):
            for first, after in rows:
                for a, b in fetched:
                    overlap = np.minimum(end[first:after], b) - np.maximum(begin[first:after], a)
                    seen += int(np.maximum(0, overlap).sum())
        assert seen == int((end - begin).sum()), (seed, length, ranks, sharding, how)
        assert sum(map(count, plan.rows)) == length[0]


@pytest.mark.parametrize("length, ranks, most", [(131072, 4, 32768), (131072, 8, 32768), (524288, 64, 131072)])
def test_documents_of_many_ranks(length, ranks, most):
    """At least 0.97 of the balance, with at most a tenth of the keys fetched, in the mean of ranks."""
    ids = attn.assume_sorted(make_documents(length, most))
    plan = distributed.plan(length, ranks, mask=lambda b, h, i, j: ids[i] == ids[j], causal=True)
    fetched = sum(plan.count_foreign(rank) for rank in range(ranks)) / ranks
    assert plan.balance >= 0.97 and fetched <= 0.1 * length, (plan, fetched / length)


def test_exchanges():
    """Ranks have as many chunks, even work, and neighbours where work is even from the beginning."""
    chunks = cut(64, 16)
    even = deal_near(chunks, [1] * 16, chunks, 4)
    assert even == [((0, 16),), ((16, 32),), ((32, 48),), ((48, 64),)]
    work = [9 if i in (0, 1, 2, 3) else 1 for i in range(16)]
    dealt = deal_near(chunks, work, chunks, 4)
    assert [count(x) for x in dealt] == [16] * 4
    loads = [sum(sum(work[a // 4 : b // 4]) for a, b in x) for x in dealt]
    assert loads == [12] * 4


def test_windows_fetch_neighbours():
    """Where a window is short beside a rank's rows, a rank fetches what its neighbour holds of it."""
    plan = distributed.plan(131072, 8, window=(4096, 0))
    assert plan.sharding == "contiguous"
    two = distributed.plan(32768, 2, window=(4096, 0))
    assert two.most_moved <= 4096 + 384 and two.balance > 0.98
