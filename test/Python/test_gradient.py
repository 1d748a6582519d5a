"""Gradients: PyTorch's autograd on the CPU, and attn.gradient."""

import dataclasses
import math
import types

import numpy as np
import pytest

import attn
from attn import _plan

torch = pytest.importorskip("torch")

from attn._watched import check_has_gradient  # noqa: E402

TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def inputs(dtype=torch.float32, b=2, h=4, hkv=2, m=37, n=41, d=32, dv=None):
    shapes = (b, h, m, d), (b, hkv, n, d), (b, hkv, n, dv or d)
    return [torch.randn(shape).to(dtype).requires_grad_() for shape in shapes]


def define(q, k, v, scale=None, keep=None, score=None, sink=None):
    """(output, lse) by PyTorch's own operators in f64, whose gradients are the definition."""
    group = q.shape[1] // max(k.shape[1], 1)
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = q @ k.transpose(2, 3) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    m, n = s.shape[2:]
    i, j = torch.arange(m)[:, None], torch.arange(n)[None, :]
    if score is not None:
        s = score(s, i, j)
    if keep is not None:
        s = s.masked_fill(~keep(i, j, m, n), -math.inf)
    columns = s
    if sink is not None:
        columns = torch.cat([s, sink[None, :, None, None].expand(*s.shape[:3], 1)], 3)
    empty = (columns == -math.inf).all(3, keepdim=True)
    # A row without keys has no gradient; softmax would make NaN of it.
    safe = torch.where(empty, torch.zeros((), dtype=s.dtype), columns)
    weights = torch.where(empty, torch.zeros((), dtype=s.dtype), torch.softmax(safe, 3))
    return weights[..., :n] @ v, torch.logsumexp(safe, 3)


def wanted(tensors, d_output, d_lse=None, **how):
    """The definition's gradients of the tensors, q, k, v and maybe a sink."""
    wide = [x.detach().double().requires_grad_() for x in tensors]
    if len(wide) > 3:
        how["sink"] = wide[3]
    output, lse = define(*wide[:3], **how)
    total = (output * d_output.double()).sum()
    if d_lse is not None:
        total = total + (lse * d_lse.double()).sum()
    return torch.autograd.grad(total, wide)


def check(got, expected, dtype=torch.float32, least=1.0):
    """`least` is the size of what a sum of both signs has as terms, by which it errs."""
    assert len(got) == len(expected)
    for x, y in zip(got, expected):
        assert x.shape == y.shape
        scale = max(least, y.abs().max().item() if y.numel() else 0)
        assert ((x.double() - y).abs() <= TOLERANCE[dtype] * scale).all()


def causal(i, j, m, n):
    return j <= i + n - m


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_types(dtype):
    tensors = inputs(dtype, dv=24)
    output = attn.attention(*tensors, causal=True)
    d_output = torch.randn(output.shape).to(dtype)
    output.backward(d_output)
    for x in tensors:
        assert x.grad.dtype == dtype
    check([x.grad for x in tensors], wanted(tensors, d_output, keep=causal), dtype)


@pytest.mark.parametrize("m, n", [(1, 1), (1, 7), (7, 1), (127, 129), (129, 5), (0, 3), (3, 0)])
def test_lengths(m, n):
    tensors = inputs(m=m, n=n, d=8)
    output = attn.attention(*tensors, causal=True)
    d_output = torch.randn(output.shape)
    output.backward(d_output)
    check([x.grad for x in tensors], wanted(tensors, d_output, keep=causal))


def test_variants():
    tensors = inputs()
    slopes = torch.rand(4)
    cases = [
        (dict(scale=0.3), dict(scale=0.3)),
        (
            dict(window=(5, 3)),
            dict(keep=lambda i, j, m, n: (j >= i + n - m - 5) & (j <= i + n - m + 3)),
        ),
        (
            dict(mask=lambda b, h, q, kv: (q + kv) % 3 == 0),
            dict(keep=lambda i, j, m, n: (i + j) % 3 == 0),
        ),
        (
            dict(score=lambda s, b, h, q, kv: 5 * attn.tanh(s / 5) - slopes[h] * abs(q - kv)),
            dict(
                score=lambda s, i, j: 5 * torch.tanh(s / 5) - slopes[:, None, None] * (i - j).abs()
            ),
        ),
    ]
    for given, how in cases:
        output = attn.attention(*tensors, **given)
        d_output = torch.randn_like(output)
        check(torch.autograd.grad(output, tensors, d_output), wanted(tensors, d_output, **how))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sink(dtype):
    tensors = [*inputs(), torch.randn(4).to(dtype).requires_grad_()]
    output = attn.attention(*tensors[:3], sink=tensors[3], causal=True)
    d_output = torch.randn_like(output)
    got = torch.autograd.grad(output, tensors, d_output)
    assert got[3].dtype == dtype
    check(got[:3], wanted(tensors, d_output, keep=causal)[:3])
    check(got[3:], wanted(tensors, d_output, keep=causal)[3:], dtype)


def test_lse_has_a_gradient():
    tensors = inputs()
    output, lse = attn.attention(*tensors, return_lse=True)
    d_output, d_lse = torch.randn_like(output), torch.randn_like(lse)
    expected = wanted(tensors, d_output, d_lse)
    check(
        torch.autograd.grad((output, lse), tensors, (d_output, d_lse), retain_graph=True), expected
    )
    check(
        torch.autograd.grad(lse, tensors, d_lse),
        wanted(tensors, torch.zeros_like(output), d_lse),
    )


def test_rows_first():
    rows = [x.detach().transpose(1, 2).contiguous().requires_grad_() for x in inputs()]
    output = attn.attention(*rows, layout="bshd")
    d_output = torch.randn_like(output)
    got = torch.autograd.grad(output, rows, d_output)
    expected = wanted([x.transpose(1, 2) for x in rows], d_output.transpose(1, 2))
    check([x.transpose(1, 2) for x in got], expected)


def test_any_gradient_of_the_output():
    tensors = inputs()
    output = attn.attention(*tensors)
    shape = output.shape
    check(
        torch.autograd.grad(output.sum(), tensors, retain_graph=True),
        wanted(tensors, torch.ones(shape)),
    )
    for d_output in (
        torch.randn(2, 4, 1, 32).expand(shape),
        torch.randn(shape[::-1]).permute(3, 2, 1, 0),
        torch.randn(2, 37, 4, 32).transpose(1, 2),
        torch.randn(2 * 4 * 37 * 32 + 1)[1:].view(shape),
        torch.randn(2, 4, 37, 64)[..., ::2],
    ):
        got = torch.autograd.grad(output, tensors, d_output, retain_graph=True)
        check(got, wanted(tensors, d_output))


def test_only_what_is_wanted_is_compiled(monkeypatch):
    texts = []
    make = _plan.GradientPlan
    monkeypatch.setattr(
        _plan, "GradientPlan", lambda text, *rest: texts.append(rest[2]) or make(text, *rest)
    )
    q, k, v = inputs(d=40)
    k.requires_grad_(False)
    output = attn.attention(q, k, v)
    got = torch.autograd.grad(output.sum(), (q, v))
    assert texts == [(("query", "value"), False, True, False)]
    expected = wanted((q, k, v), torch.ones_like(output))
    check(got, (expected[0], expected[2]))


def test_only_what_runs_is_compiled(monkeypatch):
    texts = []
    make = _plan._compile
    monkeypatch.setattr(
        _plan, "_compile", lambda text, options: texts.append(text) or make(text, options)
    )
    q, k, v = inputs(d=56)
    attn.attention(q, k, v).sum().backward()
    assert texts and all("lse" in text for text in texts)
    with torch.no_grad():
        attn.attention(q, k, v)
    assert "lse" not in texts[-1]


def test_nothing_is_recorded_without_need():
    tensors = inputs()
    with torch.no_grad():
        assert not attn.attention(*tensors).requires_grad
    assert not attn.attention(*[x.detach() for x in tensors]).requires_grad


def test_same_bits_whatever_else_is_in_the_batch():
    tensors = inputs(b=3, m=129, n=200)
    d_output = torch.randn(3, 4, 129, 32)
    got = torch.autograd.grad(attn.attention(*tensors, causal=True), tensors, d_output)
    again = torch.autograd.grad(attn.attention(*tensors, causal=True), tensors, d_output)
    one = [x[1:2].detach().requires_grad_() for x in tensors]
    alone = torch.autograd.grad(attn.attention(*one, causal=True), one, d_output[1:2])
    for x, y, z in zip(got, again, alone):
        assert torch.equal(x, y) and torch.equal(x[1:2], z)


def test_compiled():
    kernel = attn.compile("float32", 32, causal=True)
    tensors = inputs()
    output = kernel(*tensors)
    assert torch.equal(output, kernel(*[x.detach() for x in tensors]))
    got = torch.autograd.grad(output.sum(), tensors)
    check(got, wanted(tensors, torch.ones_like(output), keep=causal))


def test_checkpoints():
    from torch.utils.checkpoint import checkpoint

    tensors = inputs()
    plain = torch.autograd.grad(attn.attention(*tensors, causal=True).sum(), tensors)
    output = checkpoint(lambda *x: attn.attention(*x, causal=True), *tensors, use_reentrant=False)
    for x, y in zip(torch.autograd.grad(output.sum(), tensors), plain):
        assert torch.equal(x, y)


def test_autocast():
    tensors = inputs()
    with torch.autocast("cpu", torch.bfloat16):
        output = attn.attention(*tensors, causal=True)
    assert output.dtype == torch.bfloat16
    got = torch.autograd.grad(output.float().sum(), tensors)
    assert all(x.dtype == torch.float32 for x in got)
    check(got, wanted(tensors, torch.ones(output.shape), keep=causal), torch.bfloat16)


def test_scaled_losses():
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    x = torch.nn.Parameter(torch.randn(2, 4, 37, 32))
    optimizer = torch.optim.SGD([x], lr=1.0)
    before = x.detach().clone()
    q, k, v = inputs(torch.float16)
    output = attn.attention(x.half(), k, v)
    scaler.scale(output.float().sum()).backward()
    scaler.step(optimizer)
    expected = wanted((before.half(), k, v), torch.ones(output.shape))[0]
    check([before - x.detach()], [expected], torch.float16)


def test_inside_torch_compile():
    tensors = inputs()

    def loss(q, k, v):
        return (attn.attention(q * 2, k, v, causal=True) ** 2).sum()

    got = torch.autograd.grad(torch.compile(loss, backend="eager")(*tensors), tensors)
    for x, y in zip(got, torch.autograd.grad(loss(*tensors), tensors)):
        assert torch.equal(x, y)


def test_what_is_kept_must_not_change():
    bias = torch.randn(41)
    tensors = inputs()
    output = attn.attention(*tensors, score=lambda s, b, h, q, kv: s + bias[kv])
    bias.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


def test_second_derivatives_are_refused():
    tensors = inputs()
    output = attn.attention(*tensors)
    (d_q,) = torch.autograd.grad(output.sum(), tensors[:1], create_graph=True)
    check([d_q.detach()], wanted(tensors, torch.ones_like(output))[:1])
    with pytest.raises(attn.Error, match="attention: expected first derivatives"):
        d_q.sum().backward()


M, N = 37, 41
TRAINED = {
    "one": ((), lambda x, b, h, q, kv: x[()], lambda x, i, j: x),
    "head": ((4,), lambda x, b, h, q, kv: x[h], lambda x, i, j: x[:, None, None]),
    "row": ((4, M), lambda x, b, h, q, kv: x[h, q], lambda x, i, j: x[:, :, None]),
    "key": ((2, N), lambda x, b, h, q, kv: x[b, kv], lambda x, i, j: x[:, None, None]),
    "element": ((2, 4, M, N), lambda x, b, h, q, kv: x[b, h, q, kv], lambda x, i, j: x),
    "element of all": ((M, N), lambda x, b, h, q, kv: x[q, kv], lambda x, i, j: x),
    "distance": (
        (4, M + N),
        lambda x, b, h, q, kv: x[h, q - kv + 40],
        lambda x, i, j: x[:, i - j + 40],
    ),
    "bucket": (
        (4, 5),
        lambda x, b, h, q, kv: x[h, BUCKETS[q, kv]],
        lambda x, i, j: x[:, torch.from_numpy(BUCKETS).long()],
    ),
}
BUCKETS = np.random.default_rng(1).integers(0, 5, (M, N)).astype(np.int32)


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_captured_tensors(name, dtype):
    shape, read, expand = TRAINED[name]
    tensors = inputs(m=M, n=N)
    x = torch.randn(shape).to(dtype).requires_grad_()
    wide = [y.detach().double().requires_grad_() for y in (*tensors, x)]
    output, _ = define(*wide[:3], keep=causal, score=lambda s, i, j: s + expand(wide[3], i, j))
    d_output = torch.randn(output.shape)
    expected = torch.autograd.grad((output * d_output.double()).sum(), wide)

    def run(*given):
        return attn.attention(*given, causal=True, score=lambda s, *at: s + read(x, *at))

    got = torch.autograd.grad(run(*tensors), (*tensors, x), d_output)
    assert got[3].dtype == dtype
    check(got[:3], expected[:3])
    check(got[3:], expected[3:], dtype)
    # Alone, and the same bits whatever the number of threads.
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        (alone,) = torch.autograd.grad(run(*[y.detach() for y in tensors]), x, d_output)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(alone, got[3])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_captured_distances(dtype):
    """Distances that a row's keys nearly share multiply the sum of its dT: twice eager's error."""
    m, n = 799, 3
    tensors = [torch.randn(1, 4, x, 64).to(dtype) for x in (m, n, n)]
    slopes, d_output = torch.rand(4), torch.randn(1, 4, m, 64).to(dtype)
    distance = (torch.arange(m)[:, None] + n - m - torch.arange(n)).abs()

    def differentiate(function, wide):
        x = slopes.to(wide).requires_grad_()
        output = function(*[y.to(wide) if wide == torch.float64 else y for y in tensors], x)
        return torch.autograd.grad(output, x, d_output.to(output.dtype))[0].double()

    def eager(q, k, v, x):
        s = (q @ k.mT / math.sqrt(64)).to(x.dtype) - x[None, :, None, None] * distance
        return torch.softmax(s, -1).to(v.dtype) @ v

    def ours(q, k, v, x):
        def alibi(s, b, h, i, j):
            return s - x[h] * attn.abs(i + (n - m) - j)

        return attn.attention(q, k, v, score=alibi)

    expected = differentiate(eager, torch.float64)
    errors = [(differentiate(f, torch.float32) - expected).norm() for f in (ours, eager)]
    assert errors[0] <= 2 * max(errors[1], 2e-5 * expected.norm())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_captured_numbers(dtype):
    """0-d tensors, which kernels read in front of all; one is read by the mask too."""
    tensors = inputs(m=M, n=N)
    x, y = (torch.tensor(value).to(dtype).requires_grad_() for value in (1.5, 0.25))
    most = torch.tensor(30)
    wide = [z.detach().double().requires_grad_() for z in (*tensors, x, y)]

    def keep(i, j, m, n):
        return (j <= most) & (j >= 8 * y.double())

    def score(s, i, j):
        return s * wide[3] - wide[4] * (i - j).abs()

    output, _ = define(*wide[:3], keep=keep, score=score)
    d_output = torch.randn(output.shape)
    expected = torch.autograd.grad((output * d_output.double()).sum(), wide)
    got = attn.attention(
        *tensors,
        score=lambda s, b, h, i, j: s * x - y * abs(i - j),
        mask=lambda b, h, i, j: (j <= most) & (j >= 8 * y),
    )
    found = torch.autograd.grad(got, (*tensors, x, y), d_output)
    check(found[:3], expected[:3])
    check(found[3:], expected[3:], dtype, least=50.0 if dtype == torch.float32 else 1.0)
    assert found[3] != 0 and found[4] != 0


def test_captured_tensors_of_numpy():
    tensors = inputs(m=M, n=N)
    q, k, v, do = [y.detach().numpy() for y in (*tensors, torch.randn(2, 4, M, 32))]
    slopes, bias = np.random.rand(4).astype(np.float32), np.random.rand(N).astype(np.float16)
    sink = np.random.rand(4).astype(np.float32)

    def score(s, b, h, q, kv):
        return s - slopes[h] * abs(q - kv) + bias[kv]

    got = attn.gradient(q, k, v, do, score=score, sink=sink, wrt=(bias, slopes))
    wide = [torch.from_numpy(y).double().requires_grad_() for y in (q, k, v, sink, bias, slopes)]
    output, _ = define(
        *wide[:3],
        sink=wide[3],
        score=lambda s, i, j: s - wide[5][:, None, None] * (i - j).abs() + wide[4],
    )
    expected = torch.autograd.grad((output * torch.from_numpy(do).double()).sum(), wide)
    assert [y.dtype for y in got[4:]] == [np.float32] * 2
    check([torch.from_numpy(y) for y in got], expected, torch.float16)
    with pytest.raises(attn.Error, match="wrt: expected arrays of float16, bfloat16 or float32"):
        attn.gradient(q, k, v, do, score=score, wrt=(slopes.copy(),))


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_a_captured_array_of_several_names(library):
    """Its gradient is the sum, however often and under however many names it is read and wanted."""
    q, k, v, do = [x.detach().numpy() for x in (*inputs(m=M, n=N), torch.randn(2, 4, M, 32))]
    table = np.random.rand(N).astype(np.float32)
    if library == "jax":
        table = pytest.importorskip("jax").numpy.asarray(table)
    first = second = table
    found = attn.gradient(
        q, k, v, do, score=lambda s, b, h, i, j: s * first[j] + second[j], wrt=(table, table)
    )
    wide = [torch.from_numpy(np.array(x)).double().requires_grad_() for x in (q, k, v, table)]
    output, _ = define(*wide[:3], score=lambda s, i, j: s * wide[3] + wide[3])
    expected = torch.autograd.grad((output * torch.from_numpy(do).double()).sum(), wide)
    check([torch.from_numpy(np.array(x)) for x in found], [*expected, expected[3]])


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_sinks_of_other_types(dtype):
    """As `attention` takes them; the gradient is f32."""
    q, k, v, do = [x.detach().numpy() for x in (*inputs(m=M, n=N), torch.randn(2, 4, M, 32))]
    sink = np.random.rand(4).astype(dtype)
    found = attn.gradient(q, k, v, do, sink=sink)
    wanted = attn.gradient(q, k, v, do, sink=sink.astype("float32"))
    assert found[3].dtype == np.float32 and all(map(np.array_equal, found, wanted))


def test_gradients_check_what_they_read():
    """They are given outputs, so that nobody has checked the captured arrays before."""
    q, k, v, do = [x.detach().numpy() for x in (*inputs(m=M, n=N), torch.randn(2, 4, M, 32))]
    table = np.random.rand(8).astype("float32")
    score = lambda s, b, h, i, j: s + table[5]  # noqa: E731
    output, lse = attn.attention(q, k, v, score=score, return_lse=True)
    table = table[:4]
    with pytest.raises(attn.Error, match=r"table: expected a shape of at least \(6,\)"):
        attn.gradient(q, k, v, do, output=output, lse=lse, score=score, wrt=(table,))


def test_captured_tensors_under_transforms():
    tensors = [x.detach() for x in inputs(m=M, n=N)]
    bias = torch.randn(N)

    def loss(bias, q):
        how = dict(score=lambda s, b, h, i, j: s + bias[j])
        return (attn.attention(q, *tensors[1:], **how) ** 2).sum()

    x = bias.clone().requires_grad_()
    (expected,) = torch.autograd.grad(loss(x, tensors[0]), x)
    x.grad = None
    loss(x, tensors[0]).backward()
    assert torch.equal(x.grad, expected)


def test_captured_tensors_in_any_order():
    bias = torch.empty(N, device="meta", requires_grad=True)
    check_has_gradient("bias", bias)
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(attn.Error, match="bias: expected a captured tensor without gradient"):
            check_has_gradient("bias", bias)
        # On the CPU they have an order.
        check_has_gradient("bias", torch.empty(N, requires_grad=True))
        torch.use_deterministic_algorithms(True, warn_only=True)
        with pytest.warns(UserWarning, match="kernels for GPUs sum it in any order"):
            check_has_gradient("bias", bias)
    finally:
        torch.use_deterministic_algorithms(False)


def test_the_same_bits_where_pytorch_asks_for_them(monkeypatch):
    """By two passes, on a GPU, where blocks would add to gradients of queries in any order."""
    compiled = []
    monkeypatch.setattr(_plan, "_compile", lambda text, options: compiled.append(dict(options)))
    monkeypatch.setattr(_plan, "GradientPlan", lambda *arguments: object())
    text = _plan.Text(*[()] * len(dataclasses.fields(_plan.Text)))
    monkeypatch.setattr(type(text), "gradient", lambda *arguments: "")

    def compile_for(device):
        problem = types.SimpleNamespace(return_lse=True)
        plan = _plan.Plan(dataclasses.replace(text, problem=problem), [], (("device", device),))
        for in_order in (False, True, False):
            torch.use_deterministic_algorithms(in_order)
            try:
                plan.gradient(("query",), False, False)
            finally:
                torch.use_deterministic_algorithms(False)
        return [compiled.pop(0).get("fused") for _ in list(compiled)]

    assert compile_for("cuda:0") == [None, "off"]
    assert compile_for("cpu") == [None]


def test_captured_tensors_that_have_no_gradient():
    tensors = inputs(m=M, n=N)
    bias = torch.randn(N, dtype=torch.float64, requires_grad=True)
    with pytest.raises(attn.Error, match="bias: expected a captured tensor of float16, bfloat16"):
        attn.attention(*tensors, score=lambda s, b, h, q, kv: s + bias[kv])
    # A mask moves nothing.
    level = torch.zeros(N, requires_grad=True)
    output = attn.attention(*tensors, mask=lambda b, h, q, kv: level[kv] < 1)
    assert (torch.autograd.grad(output.sum(), level)[0] == 0).all()


def test_what_has_no_derivative():
    table = np.zeros((37, 41), dtype=np.int32)
    tensors = inputs()
    with pytest.raises(attn.Error, match="scale: expected a tensor without gradient"):
        attn.attention(*tensors, scale=torch.ones((), requires_grad=True))
    # Integers and conditions move nothing.
    output = attn.attention(
        *tensors, score=lambda s, b, h, q, kv: attn.where(table[q, kv] > 0, 0.0, s)
    )
    check(torch.autograd.grad(output.sum(), tensors), wanted(tensors, torch.ones_like(output)))


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_numpy(layout):
    tensors = inputs()
    sink = torch.randn(4)
    d_output, d_lse = torch.randn(2, 4, 37, 32), torch.randn(2, 4, 37)
    expected = wanted([*tensors, sink], d_output, d_lse, keep=causal)
    swap = layout == "bshd"
    arrays = [x.detach().numpy() for x in (*tensors, d_output)]
    q, k, v, do = [np.ascontiguousarray(x.swapaxes(1, 2)) if swap else x for x in arrays]
    how = dict(causal=True, sink=sink.numpy(), layout=layout)
    output, lse = attn.attention(q, k, v, return_lse=True, **how)
    for kept in ({}, {"output": output, "lse": lse}):
        got = attn.gradient(q, k, v, do, d_lse=d_lse.numpy(), **kept, **how)
        got = [torch.from_numpy(x.swapaxes(1, 2) if swap and x.ndim == 4 else x) for x in got]
        check(got, expected)


def test_wrong_arguments_of_gradient():
    q, k, v = [x.detach().numpy() for x in inputs()]
    for d_output, words in (
        (q[0], "d_output: expected 4 dimensions of f32"),
        (q.astype("float16"), "d_output: expected 4 dimensions of f32"),
        (q[:, :, :5], "d_output"),
    ):
        with pytest.raises(attn.Error, match=words):
            attn.gradient(q, k, v, d_output)
    with pytest.raises(attn.Error, match="lse: expected 3 dimensions of f32"):
        attn.gradient(q, k, v, q, output=q, lse=q)
    with pytest.raises(attn.Error, match="d_lse"):
        attn.gradient(q, k, v, q, d_lse=q[..., 0][:, :2])


def test_a_block_learns():
    """Eighty steps of a small model, beside the same with PyTorch's attention."""

    def train(attention):
        torch.manual_seed(3)
        model = torch.nn.ModuleDict(
            dict(
                embed=torch.nn.Embedding(11, 32),
                qkv=torch.nn.Linear(32, 96),
                out=torch.nn.Linear(32, 11),
            )
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        losses = []
        for _ in range(80):
            # The token of three places before.
            text = torch.randint(11, (8, 24))
            x = model["embed"](text) + position
            q, k, v = model["qkv"](x).view(8, 24, 3, 2, 16).permute(2, 0, 3, 1, 4)
            y = attention(q, k, v).transpose(1, 2).reshape(8, 24, 32)
            logits = model["out"](x + y)[:, 3:]
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), text[:, :-3].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    torch.manual_seed(2)
    position = torch.randn(24, 32)
    ours = train(lambda q, k, v: attn.attention(q, k, v, causal=True))
    theirs = train(
        lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    )
    assert ours[-1] < 0.9 * ours[0]
    assert max(abs(x - y) for x, y in zip(ours, theirs)) < 0.05


@pytest.mark.parametrize("offset", [-9, 0, 9, 10**6])
def test_indices_outside_write_nothing_outside(offset):
    """`guarded` looks at the memory around each gradient; the reference takes the nearest element."""
    q, k, v = [np.random.randn(1, 2, n, 8).astype(np.float32) for n in (17, 23, 23)]
    table, d_output = np.random.randn(7).astype(np.float32), np.random.randn(1, 2, 17, 8)
    index = np.clip(np.arange(17)[:, None] - np.arange(23) + offset, 0, 6)
    *_, got = attn.gradient(
        q, k, v, d_output.astype(np.float32), wrt=[table],
        score=lambda s, b, h, i, j: s + table[i - j + offset],
    )
    tensors = [torch.tensor(x, dtype=torch.float64) for x in (q, k, v)]
    wanted = torch.tensor(table, dtype=torch.float64, requires_grad=True)
    scores = tensors[0] @ tensors[1].transpose(2, 3) / 8**0.5 + wanted[torch.tensor(index)]
    (torch.softmax(scores, -1) @ tensors[2] * torch.tensor(d_output)).sum().backward()
    np.testing.assert_allclose(got, wanted.grad.numpy(), rtol=1e-3, atol=1e-4)


def _softmax_gradients(scores, q, k, v, d_output, scale):
    """In f64, of the scores that f32 computed, which kernels have in base 2."""
    log2e = torch.tensor(math.log2(math.e), dtype=torch.float32)
    weights = torch.softmax((scores * log2e).double() * math.log(2), -1)
    q, k, v, d_output = (x.double() for x in (q, k, v, d_output))
    output = weights @ v
    of_weights = d_output @ v.transpose(-1, -2)
    of_scores = weights * (of_weights - (d_output * output).sum(-1, keepdim=True)) * scale
    transposed = weights.transpose(-1, -2)
    return of_scores @ k, of_scores.transpose(-1, -2) @ q, transposed @ d_output


def _expect_near(got, expected, bound):
    for name, x, y in zip(("q", "k", "v"), got, expected):
        assert (x.double() - y).norm() <= bound * y.norm() + 1e-12, name


LARGE = {
    "padding": lambda shape: torch.full(shape, -1e9),
    # The lowest number of bf16 stays a number in base 2.
    "lowest": lambda shape: torch.full(shape, -2e38),
    "high": lambda shape: torch.full(shape, 1e9),
    "million": lambda shape: torch.full(shape, -1e6),
    "neighbours": lambda shape: torch.where(torch.rand(shape) < 0.5, -1e9, -1e9 - 64),
    "rows": lambda shape: torch.where(torch.rand(shape[:3])[..., None] < 0.5, -1e9, torch.zeros(shape)),
}


@pytest.mark.parametrize("options", [{}, {"splits": 3}], ids=["whole", "parts"])
@pytest.mark.parametrize("type_", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", LARGE)
def test_rows_whose_scores_are_all_large(name, type_, options):
    """Equal keys weigh 1 / n, whatever their scores: forward and backward round alike."""
    q, k, v = (x.detach().to(type_).requires_grad_() for x in inputs())
    shape = (*q.shape[:3], k.shape[2])
    bias, scale = LARGE[name](shape), 0.25
    output = attn.attention(
        q, k, v, score=lambda s, b, h, i, j: s + bias[b, h, i, j], scale=scale, options=options
    )
    d_output = torch.randn_like(output)
    got = torch.autograd.grad(output, (q, k, v), d_output)
    group = q.shape[1] // k.shape[1]
    wide = [x.detach().float() for x in (q, k, v, d_output)]
    for i in (1, 2):
        wide[i] = wide[i].repeat_interleave(group, 1)
    products = wide[0] @ wide[1].transpose(-1, -2) * scale
    d_q, d_k, d_v = _softmax_gradients(products + bias, *wide, scale)
    sums = [x.unflatten(1, (-1, group)).sum(2) for x in (d_k, d_v)]
    _expect_near(got, (d_q, *sums), 1e-5 if type_ is torch.float32 else 1e-2)


@pytest.mark.parametrize("type_", [torch.float32, torch.bfloat16])
def test_large_products_round_as_the_forward_pass_did(type_):
    """Without a score function log2(e) is a part of the scale; pairs of bf16 are summed alike."""
    for size in (1e3, 1e5):
        q, k, v = (torch.randn(1, 2, n, 24) for n in (37, 53, 53))
        # Few different keys, so that most rows have several of the greatest score.
        q, k = q.mul(size).round(), k[:, :, torch.randint(3, (53,))].mul(size).round()
        tensors = [x.to(type_).requires_grad_() for x in (q, k, v)]
        output = attn.attention(*tensors, scale=0.125)
        d_output = torch.randn_like(output)
        got = torch.autograd.grad(output, tensors, d_output)
        q, k, v = (x.detach() for x in tensors)
        scores = (q.double() @ k.double().transpose(-1, -2) * 0.125).float()
        expected = _softmax_gradients(scores, q, k, v, d_output, 0.125)
        _expect_near(got[2:], expected[2:], 1e-4 if type_ is torch.float32 else 1e-2)


def test_a_mask_of_padding_trains_as_eager_does():
    """A 4-d mask of -1e9 over padding at the left, rows of padding alone among it."""
    q, k, v = inputs()
    keep = torch.arange(k.shape[2]) >= 20
    causal = torch.arange(q.shape[2])[:, None] >= torch.arange(k.shape[2])
    bias = torch.where(keep & causal, 0.0, -1e9)
    got = torch.autograd.grad(
        attn.attention(q, k, v, score=lambda s, b, h, i, j: s + bias[i, j]).square().sum(), (q, k, v)
    )
    group = q.shape[1] // k.shape[1]
    keys, values = (x.repeat_interleave(group, 1) for x in (k, v))
    scores = q @ keys.transpose(-1, -2) / q.shape[-1] ** 0.5 + bias
    expected = torch.autograd.grad((scores.softmax(-1) @ values).square().sum(), (q, k, v))
    _expect_near(got, [x.double() for x in expected], 1e-5)
