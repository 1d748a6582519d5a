"""Calls of some rows and keys of a whole: positions= and total=, forward and backward, against the whole."""

import itertools
import re

import numpy as np
import pytest

import attn
from attn import _log

M, N = 70, 90
# Of rows and of keys: what a call says, and the numbers that it means.
ROWS = {
    "own": (None, range(0, 24)),
    "origin": (17, range(17, 49)),
    "interval": ([(5, 5), (40, 70)], range(40, 70)),
    "intervals": ([(2, 9), (30, 41), (69, 70)], [*range(2, 9), *range(30, 41), 69]),
    "table": (np.arange(3, M, 4), range(3, M, 4)),
    "one": ([(33, 34)], [33]),
}
KEYS = {
    "own": (None, range(0, N)),
    "origin": (11, range(11, N)),
    "intervals": ([(0, 20), (20, 31), (50, 90)], [*range(0, 31), *range(50, 90)]),
    "table": (np.arange(1, N, 2, dtype=np.int32), range(1, N, 2)),
}


def list_kinds(rng):
    """Arguments of a call, whose arrays are of the whole."""
    ids_q = np.sort(rng.integers(0, 4, M)).astype(np.int32)
    ids_k = np.sort(rng.integers(0, 4, N)).astype(np.int32)
    bias = rng.standard_normal((4, M, N)).astype(np.float32)
    near = rng.standard_normal(2 * N).astype(np.float32)
    slopes = (2.0 ** -np.arange(4)).astype(np.float32)
    q_ids, k_ids = attn.assume_sorted(ids_q), attn.assume_sorted(ids_k)

    def alibi(s, b, h, q, kv):
        return s - slopes[h] * abs(q + attn.key_length - attn.query_length - kv)

    return {
        "full": {},
        "causal": dict(causal=True),
        "top left": dict(causal="top_left"),
        "window": dict(window=(12, 5), sink=rng.standard_normal(4).astype(np.float32)),
        "documents": dict(mask=lambda b, h, q, kv: q_ids[q] == k_ids[kv]),
        "strided": dict(mask=lambda b, h, q, kv: (kv - q) % 3 == 0, causal=True),
        "bias": dict(score=lambda s, b, h, q, kv: s + bias[h, q, kv], causal=True),
        "distance": dict(score=lambda s, b, h, q, kv: s + near[q - kv + N]),
        "alibi": dict(score=alibi, causal=True, scale=0.2),
    }


NAMES = list(list_kinds(np.random.default_rng(0)))


def only(keys, how):
    """The same attention of the whole with no keys but these."""
    is_here, mask = np.zeros(N, np.int32), how.get("mask")
    is_here[list(keys)] = 1

    def keep(b, h, q, kv):
        here = is_here[kv] != 0
        return here if mask is None else here & mask(b, h, q, kv)

    return {**how, "mask": keep}


PAIRS = list(itertools.product(ROWS, KEYS))


@pytest.mark.parametrize("rows, keys", PAIRS)
def test_rows_of_the_whole(rows, keys, rng, make):
    """A third of the kinds for each pair, another for its neighbours."""
    q, k, v = make(2, 4, 2, M, N, 16, 24)
    (of_rows, i), (of_keys, j) = ROWS[rows], KEYS[keys]
    i, j = list(i), list(j)
    for name, how in list(list_kinds(rng).items())[PAIRS.index((rows, keys)) % 3 :: 3]:
        wanted = attn.attention(q, k, v, **only(j, how), return_lse=True)
        part = np.ascontiguousarray(q[:, :, i]), k[:, :, j], v[:, :, j]
        where = dict(positions=(of_rows, of_keys), total=(M, N))
        output, lse = attn.attention(*part, **how, **where, return_lse=True)
        for x, y in ((output, wanted[0][:, :, i]), (lse, wanted[1][:, :, i])):
            np.testing.assert_allclose(x, y, atol=2e-5, rtol=2e-5, err_msg=name)


def to_torch(x):
    torch = pytest.importorskip("torch")
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x)
    return x


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows, keys", [("intervals", "own"), ("table", "intervals"), ("origin", "table")])
def test_gradients_are_those_of_these_rows(name, rows, keys, rng, make):
    torch = pytest.importorskip("torch")
    (of_rows, i), (of_keys, j) = ROWS[rows], KEYS[keys]
    i, j = list(i), list(j)
    how = list_kinds(rng)[name]
    whole = [torch.from_numpy(x).requires_grad_() for x in make(2, 4, 2, M, N, 16, 24)]
    d_output, d_lse = torch.randn(2, 4, len(i), 24), torch.randn(2, 4, len(i))
    arrays = {x: to_torch(y) for x, y in how.items()}
    output, lse = attn.attention(*whole, **{**only(j, how), **{"sink": arrays.get("sink")}}, return_lse=True)
    ((output[:, :, i] * d_output).sum() + (lse[:, :, i] * d_lse).sum()).backward()
    wanted = [whole[0].grad[:, :, i], whole[1].grad[:, :, j], whole[2].grad[:, :, j]]
    mine = [x.detach()[:, :, of].contiguous().requires_grad_() for x, of in zip(whole, (i, j, j))]
    where = dict(positions=(to_torch(of_rows), to_torch(of_keys)), total=(M, N))
    found, found_lse = attn.attention(*mine, **arrays, **where, return_lse=True)
    ((found * d_output).sum() + (found_lse * d_lse).sum()).backward()
    for x, y in zip(mine, wanted):
        torch.testing.assert_close(x.grad, y, atol=5e-5, rtol=5e-5)
    # Without autograd too.
    given = [x.detach().numpy() for x in (*mine, d_output)]
    where = dict(positions=(of_rows, of_keys), total=(M, N))
    direct = attn.gradient(*given, d_lse=d_lse.numpy(), **how, **where)
    for x, y in zip(direct, wanted):
        np.testing.assert_allclose(x, y.numpy(), atol=5e-5, rtol=5e-5)


def test_gradient_of_an_array_that_is_read_in_the_whole(rng, make):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x) for x in make(2, 4, 2, M, N, 16))
    (of_rows, i), (of_keys, j) = ROWS["intervals"], KEYS["table"]
    i, j = list(i), list(j)
    bias, slopes = torch.randn(4, M, N), torch.rand(4)

    def run(call, where):
        leaves = [x.clone().requires_grad_() for x in (bias, slopes)]

        def score(s, b, h, q, kv):
            return s + leaves[0][h, q, kv] - leaves[1][h] * abs(q - kv)

        call(score, where).pow(2).sum().backward()
        return [x.grad for x in leaves]

    here = torch.zeros(N, dtype=torch.int32)
    here[j] = 1
    keep = lambda b, h, q, kv: here[kv] != 0
    wanted = run(lambda score, _: attn.attention(q, k, v, score=score, mask=keep)[:, :, i], {})
    part = q[:, :, i].contiguous(), k[:, :, j], v[:, :, j]
    where = dict(positions=(of_rows, torch.from_numpy(of_keys)), total=(M, N))
    found = run(lambda score, where: attn.attention(*part, score=score, **where), where)
    for x, y in zip(found, wanted):
        torch.testing.assert_close(x, y, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("rows, keys", PAIRS)
def test_dropout_drops_what_the_whole_drops(rows, keys, make):
    """Values are unit vectors: the output has the weights, of which those that are dropped are 0."""
    m, n = M, N
    q, k, _ = make(2, 4, 4, m, n, 16)
    v = np.broadcast_to(np.eye(n, dtype=np.float32), (2, 4, n, n)).copy()
    how = dict(dropout_p=0.4, dropout_seed=3)
    whole = attn.attention(q, k, v, **how)
    (of_rows, i), (of_keys, j) = ROWS[rows], KEYS[keys]
    i, j = list(i), list(j)
    where = dict(positions=(of_rows, of_keys), total=(m, n))
    part = attn.attention(np.ascontiguousarray(q[:, :, i]), k[:, :, j], v[:, :, j][..., j].copy(), **where, **how)
    assert np.array_equal(part == 0, whole[:, :, i][..., j] == 0)
    assert 0.3 < (part == 0).mean() < 0.5


def test_dropout_of_gradients(make):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x) for x in make(2, 4, 2, M, N, 16))
    how = dict(dropout_p=0.3, dropout_seed=11, causal=True)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    d_output = torch.randn(2, 4, M, 16)
    attn.attention(*leaves, **how).backward(d_output)
    found = [torch.zeros_like(x) for x in leaves]
    for intervals in ([(0, 9), (60, 70)], [(9, 60)]):
        i = torch.cat([torch.arange(a, b) for a, b in intervals])
        mine = [q[:, :, i].contiguous().requires_grad_(), *(x.clone().requires_grad_() for x in (k, v))]
        attn.attention(*mine, positions=(intervals, None), total=(M, N), **how).backward(d_output[:, :, i])
        found[0][:, :, i] = mine[0].grad
        found[1] += mine[1].grad
        found[2] += mine[2].grad
    for x, y in zip(found, leaves):
        torch.testing.assert_close(x, y.grad, atol=5e-5, rtol=5e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_bits_of_rows_are_those_of_the_whole(dtype):
    """Tiles of keys are those of the whole where all keys are there."""
    torch = pytest.importorskip("torch")
    q, k, v = (torch.randn(1, h, 517, 64, dtype=getattr(torch, dtype)) for h in (4, 2, 2))
    for how in (dict(causal=True), dict(window=(100, 0))):
        whole = attn.attention(q, k, v, **how, return_lse=True)
        for intervals in ([(0, 64), (453, 517)], [(64, 300)]):
            i = torch.cat([torch.arange(a, b) for a, b in intervals])
            where = dict(positions=(intervals, None), total=(517, 517))
            part = attn.attention(q[:, :, i].contiguous(), k, v, **how, **where, return_lse=True)
            for x, y in zip(part, whole):
                assert torch.equal(x, y[:, :, i])


def test_rows_first_and_strides(make):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x) for x in make(2, 4, 2, M, N, 16))
    i = [*range(3, 9), *range(60, 64)]
    where = dict(positions=([(3, 9), (60, 64)], None), total=(M, N), causal=True)
    wanted = attn.attention(q, k, v, causal=True)[:, :, i]
    swapped = [x.transpose(1, 2).contiguous() for x in (q[:, :, i], k, v)]
    found = attn.attention(*swapped, layout="bshd", **where)
    torch.testing.assert_close(found.transpose(1, 2), wanted, atol=2e-5, rtol=2e-5)
    # A table of 64 bits that steps over elements.
    table = torch.tensor(i, dtype=torch.int64).repeat_interleave(2)[::2]
    where["positions"] = table, None
    assert torch.equal(attn.attention(*swapped, layout="bshd", **where), found)
    # An origin that is a tensor.
    where["positions"] = torch.tensor(3), None
    part = swapped[0][:, :6]
    torch.testing.assert_close(attn.attention(part, *swapped[1:], layout="bshd", **where), found[:, :6])


def test_nothing_to_attend_to(make):
    q, k, v = make(2, 4, 2, 0, N, 16)
    where = dict(positions=([], None), total=(M, N))
    assert attn.attention(q, k, v, **where).shape == (2, 4, 0, 16)
    q, k, v = make(2, 4, 2, 5, 0, 16)
    where = dict(positions=([(7, 12)], [(4, 4)]), total=(M, N))
    output, lse = attn.attention(q, k, v, **where, return_lse=True)
    assert not output.any() and np.isneginf(lse).all()


def test_kernels_do_not_depend_on_numbers(make):
    q, k, v = make(2, 4, 2, 20, N, 16)
    for places in (lambda a: a, lambda a: [(a, a + 10), (a + 20, a + 30)], lambda a: np.arange(a, a + 40, 2)):
        attn.attention(q, k, v, causal=True, positions=(places(0), None), total=(M, N))
        before = _log.count_compiled()
        for a in range(1, 8):
            attn.attention(q, k, v, causal=True, positions=(places(a), None), total=(M + a, N + a))
        assert _log.count_compiled() == before


def test_a_part_of_a_whole_that_counts_from_zero(make):
    """total= alone: the first rows of more."""
    q, k, v = make(2, 4, 2, M, N, 16)
    wanted = attn.attention(q, k, v, causal=True)[:, :, :9]
    part = np.ascontiguousarray(q[:, :, :9])
    np.testing.assert_allclose(attn.attention(part, k, v, causal=True, total=(M, N)), wanted, atol=1e-5)
    assert not np.allclose(attn.attention(part, k, v, causal=True), wanted)


def test_compiled_once(make):
    q, k, v = make(2, 4, 2, M, N, 16)
    how = dict(causal=True, window=(30, None))
    wanted = attn.attention(q, k, v, **how)
    kernel = attn.compile("float32", 16, **how, positions=("table", "origin"), dropout_p=0.0)
    assert "#attn.positions<own, own, table, origin>" in kernel.source
    kernel.prepare(q, k, v)
    for rows in (None, 12, [(0, 3), (60, 70)], np.arange(5, 30, 3)):
        i = np.arange(M) if rows is None else rows
        i = np.arange(12, 40) if isinstance(rows, int) else i
        i = np.concatenate([np.arange(a, b) for a, b in rows]) if isinstance(rows, list) else i
        part = np.ascontiguousarray(q[:, :, i])
        output = kernel(part, k, v, positions=(rows, 0), total=(M, N))
        np.testing.assert_allclose(output, wanted[:, :, i], atol=1e-5)
        out = np.empty_like(output)
        assert kernel(part, k, v, positions=(rows, None), total=(M, N), out=out) is out
        assert np.array_equal(out, output)
    with pytest.raises(attn.Error, match="positions: expected an origin or one interval for keys"):
        kernel(q, k, v, positions=(None, np.arange(N)), total=(M, N))
    with pytest.raises(attn.Error, match="positions: expected one, got none"):
        kernel(q, k, v)
    plain = attn.compile("float32", 16)
    with pytest.raises(attn.Error, match="positions: expected none, got one"):
        plain(q, k, v, positions=(0, 0), total=(M, N))
    with pytest.raises(attn.Error, match='positions: expected None, "origin" or "table"'):
        attn.compile("float32", 16, positions=("tabel", None))


def test_compiled_with_dropout(make):
    q, k, v = make(2, 4, 2, M, N, 16)
    kernel = attn.compile("float32", 16, dropout_p=0.25, positions=("origin", None))
    how = dict(positions=(8, None), total=(M, N))
    part = np.ascontiguousarray(q[:, :, 8:30])
    found = kernel(part, k, v, dropout_seed=5, **how)
    wanted = attn.attention(q, k, v, dropout_p=0.25, dropout_seed=5)[:, :, 8:30]
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_explained(make):
    q, k, v = make(1, 2, 2, 20, N, 16)
    text = attn.explain(q, k, v, causal=True, positions=([(0, 10), (40, 50)], None), total=(M, N), until="problem")
    assert "attn.assume nondecreasing" in text and "compiled" in text
    text = attn.explain("bfloat16", 64, causal=True, positions=("origin", None), device="cuda")
    assert "blocks stay" in text


def test_arrays_of_jax(make):
    jnp = pytest.importorskip("jax.numpy")
    q, k, v = make(2, 4, 2, M, N, 16)
    wanted = attn.attention(q, k, v, causal=True)
    i = jnp.arange(3, M, 4)
    part = jnp.asarray(q)[:, :, i], jnp.asarray(k), jnp.asarray(v)
    found = attn.attention(*part, causal=True, positions=(i, None), total=(M, N))
    np.testing.assert_allclose(found, wanted[:, :, 3::4], atol=1e-5)


@pytest.mark.parametrize("name", ["causal", "bias"])
def test_full_graph(name, rng, make):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x) for x in make(2, 4, 2, 30, N, 16))
    bias = torch.randn(4, M, N)
    how = dict(causal=True)
    if name == "bias":
        how["score"] = lambda s, b, h, q, kv: s + bias[h, q, kv]
    table = torch.arange(10, 70, 2)
    for places in (10, [(0, 10), (40, 60)], [(4, 34)], table):

        def call(q, k, v):
            return attn.attention(q * 1.0, k, v, positions=(places, None), total=(M, N), **how)

        torch._dynamo.reset()
        compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
        leaves = [[x.clone().requires_grad_() for x in (q, k, v)] for _ in range(2)]
        outputs = [run(*x) for run, x in zip((call, compiled), leaves)]
        torch.testing.assert_close(outputs[1], outputs[0])
        for x in outputs:
            x.sum().backward()
        for x, y in zip(*leaves):
            torch.testing.assert_close(x.grad, y.grad)


ERRORS = [
    (dict(positions=(0, 0)), "total: expected (M, N), the rows and keys of the whole, beside positions, got None"),
    (dict(positions=3, total=(M, N)), "positions: expected (rows, keys), got 3"),
    (dict(positions=(0, 0, 0), total=(M, N)), "positions: expected (rows, keys), got (0, 0, 0)"),
    (dict(positions=(0, None), total=M), "total: expected (M, N), the rows and keys of the whole"),
    (dict(positions=(0, None), total=(M, -1)), "total: expected (M, N), the rows and keys of the whole"),
    (dict(positions=(0, None), total=(M, 89)), "total: expected 90 keys or more, as the call has, got 89"),
    (dict(total=(19, N)), "total: expected 20 rows or more, as the call has, got 19"),
    (dict(positions=(51, None), total=(M, N)), "positions: expected an origin from 0 to 50 for 20 of 70 rows, got 51"),
    (dict(positions=(-1, None), total=(M, N)), "positions: expected an origin from 0 to 50 for 20 of 70 rows, got -1"),
    (dict(positions=(True, None), total=(M, N)), "positions: expected None, an origin, intervals"),
    (dict(positions=("table", None), total=(M, N)), "positions: expected None, an origin, intervals"),
    (dict(positions=(1.5, None), total=(M, N)), "positions: expected None, an origin, intervals"),
    (
        dict(positions=([(10, 20), (0, 10)], None), total=(M, N)),
        "positions: expected intervals in ascending order, none of which overlap, got (0, 10) after (10, 20)",
    ),
    (
        dict(positions=([(0, 11), (10, 19)], None), total=(M, N)),
        "positions: expected intervals in ascending order, none of which overlap, got (10, 19) after (0, 11)",
    ),
    (
        dict(positions=([(10, 0)], None), total=(M, N)),
        "positions: expected intervals (begin, end) that do not end before they begin, got (10, 0)",
    ),
    (
        dict(positions=([(0, 10), (61, 71)], None), total=(M, N)),
        "positions: expected intervals of rows from 0 to 70, as total says, got [(0, 10), (61, 71)]",
    ),
    (
        dict(positions=([(-1, 19)], None), total=(M, N)),
        "positions: expected intervals of rows from 0 to 70, as total says",
    ),
    (
        dict(positions=(None, [(0, 10)]), total=(M, N)),
        "positions: expected intervals of 90 keys, as the call has, got 10",
    ),
    (dict(positions=([1, 2, 3], None), total=(M, N)), "positions: expected intervals [(begin, end), ...] of integers"),
    (
        dict(positions=(np.arange(19), None), total=(M, N)),
        "positions: expected a table of 20 rows, as the call has, got shape (19,)",
    ),
    (
        dict(positions=(np.arange(20.0), None), total=(M, N)),
        "positions: expected integers of 8, 32 or 64 bits for rows, got ndarray of float64",
    ),
    (
        dict(positions=(np.arange(20)[::-1], None), total=(M, N)),
        "positions: expected a table of rows that does not decrease, got one that does",
    ),
    (
        dict(positions=(np.arange(60, 80), None), total=(M, N)),
        "positions: expected a table of rows from 0 to 69, as total says, got one from 60 to 79",
    ),
]


@pytest.mark.parametrize("how, message", ERRORS)
def test_errors_name_the_argument(how, message, make):
    q, k, v = make(2, 4, 2, 20, N, 16)
    with pytest.raises(attn.Error, match=re.escape(message)):
        attn.attention(q, k, v, **how)
    with pytest.raises(attn.Error, match=re.escape(message)):
        attn.gradient(q, k, v, q, **how)


def test_tables_are_where_queries_are(make):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x) for x in make(2, 4, 2, 20, N, 16))
    with pytest.raises(attn.Error, match="positions: expected a tensor on cpu for rows, as q is, got a NumPy array"):
        attn.attention(q, k, v, positions=(np.arange(20), None), total=(M, N))
    with pytest.raises(attn.Error, match="positions: expected a NumPy array for keys, as q is, got a tensor on cpu"):
        attn.attention(*(x.numpy() for x in (q, k, v)), positions=(None, torch.arange(N)), total=(M, N))
    meta = torch.arange(20, device="meta")
    with pytest.raises(attn.Error, match="positions: expected a tensor on cpu for rows, as q is, got a tensor on meta"):
        attn.attention(q, k, v, positions=(meta, None), total=(M, N))
