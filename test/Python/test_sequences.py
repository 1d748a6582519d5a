"""Sequences as views and as documents: flash_attn_varlen_func and varlen_attn on both ways, and the operator of views in
graphs of torch.compile, against each sequence by itself in f64."""

import itertools
from types import SimpleNamespace

import pytest

import attn

torch = pytest.importorskip("torch")
from attn import _varlen_operator, serving  # noqa: E402
from attn.integrations import _sequences, flash_attn  # noqa: E402
from attn.integrations import torch as ours  # noqa: E402
from ragged_reference import (  # noqa: E402, F401  (fixtures)
    PEER,
    H,
    attend_all,
    check,
    check_gradients,
    make,
    offsets,
    poisoned,
    seeded,
    to_int32,
)

ROWS, KEYS = [5, 0, 13, 1, 70, 0], [9, 3, 13, 0, 100, 2]
FEATURES = [
    {},
    {"causal": True},
    {"window": (3, 0)},
    {"window": (6, 5), "scale": 0.3},
    {"softcap": 2.0, "causal": True},
    {"slopes": "heads", "causal": True},
    {"slopes": "sequences"},
    {"sink": True, "causal": True},
]


@pytest.fixture(params=["views", "documents"])
def way(request, monkeypatch):
    """All calls on one way; counts those of views."""
    keys = itertools.product(("cpu", "cuda"), (False, True))
    takes = {key: request.param == "views" for key in keys}
    monkeypatch.setattr(_sequences, "TAKES_VIEWS", takes)
    calls, attend = [], _sequences._varlen_operator.attend
    monkeypatch.setattr(
        _sequences._varlen_operator, "attend", lambda *x: calls.append(x) or attend(*x)
    )
    yield request.param
    assert bool(calls) == (request.param == "views")


def make_features(features):
    made = dict(features)
    if "slopes" in made:
        made["slopes"] = torch.rand((H,) if made["slopes"] == "heads" else (len(ROWS), H))
    if "sink" in made:
        made["sink"] = torch.randn(H)
    return made


@pytest.mark.parametrize("features", FEATURES, ids=str)
def test_flash_attn(features, way):
    """Rows of no sequence are NaN; they give 0 and -inf, or the sink, and have gradients of 0."""
    of_q, of_k, features = offsets(ROWS), offsets(KEYS), make_features(features)
    q, k, v, d_output = make(of_q, of_k, tail=3)
    tensors = [x.clone().requires_grad_() for x in (q, k, v)]
    given = {PEER.get(name, name): x for name, x in features.items()}
    lengths = to_int32(of_q), to_int32(of_k), max(ROWS), max(KEYS)
    output, lse = flash_attn.flash_attn_varlen_func(*tensors, *lengths, **given, return_lse=True)
    finals = [x.double().requires_grad_() for x in (q, k, v)]
    wanted, wanted_lse = attend_all(*finals, of_q, of_k, **features)
    check(output, wanted)
    check(lse, wanted_lse)
    rows = slice(0, of_q[-1])
    found = torch.autograd.grad((output[rows] * d_output[rows]).sum(), tensors)
    expected = torch.autograd.grad((wanted[rows] * d_output[rows].double()).sum(), finals)
    check_gradients(found, [torch.nan_to_num(x) for x in expected])
    with torch.no_grad():
        again = flash_attn.flash_attn_varlen_func(q, k, v, *lengths, **given)
    check(again, wanted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_pytorch(dtype, way):
    of = offsets([5, 13, 1, 70])
    q, k, v, _ = make(of, of, dtype=dtype, d=32, dv=32, hkv=H)
    wanted, _ = attend_all(q, k, v, of, of, causal=True)
    given = to_int32(of), to_int32(of), 70, 70
    check(ours.varlen_attn(q, k, v, *given, window_size=(-1, 0)), wanted, dtype)


def test_compiled(way):
    of = offsets([5, 0, 13])

    def run(q, k, v, lengths):
        given = lengths, lengths, 13, 13
        return flash_attn.flash_attn_varlen_func(q * 1.0, k, v, *given, causal=True).sin()

    q, k, v, d_output = make(of, of)
    tensors = [x.requires_grad_() for x in (q, k, v)]
    torch._dynamo.reset()
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    for x, y in zip(*(_differentiate(f, tensors, to_int32(of), d_output) for f in (compiled, run))):
        torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5)


def _differentiate(run, tensors, lengths, d_output):
    output = run(*tensors, lengths)
    return [output, *torch.autograd.grad(output, tensors, d_output)]


# ===- The operator of views ------------------------------------------------------------------===#


@pytest.mark.parametrize("dynamic", [False, True])
def test_varlen_attention_in_a_graph(dynamic):
    of = [0, 5, 5, 18]
    slopes, sink = torch.rand(H), torch.randn(H)

    def run(q, k, v, lengths):
        how = dict(causal=True, softcap=3.0, alibi_slopes=slopes, sink=sink, window=(9, None))
        most = dict(max_seqlen_q=13, max_seqlen_k=13)
        output, lse = serving.varlen_attention(
            q * 1.0, k, v, lengths, lengths, **most, **how, return_lse=True
        )
        return (output[:18] * 2).sin().sum() + lse[:18].cos().sum()

    tensors = [x.requires_grad_() for x in make(of, of, tail=2)[:3]]
    torch._dynamo.reset()
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    lengths = to_int32(of)
    wanted = torch.autograd.grad(run(*tensors, lengths), tensors)
    for x, y in zip(torch.autograd.grad(compiled(*tensors, lengths), tensors), wanted):
        assert torch.equal(x, y)
    with torch.no_grad():
        assert torch.equal(compiled(*tensors, lengths), run(*tensors, lengths))


def test_functions_end_a_graph():
    of = to_int32([0, 7])
    q = torch.randn(7, H, 16)
    how = dict(max_seqlen_q=7, max_seqlen_k=7, mask=lambda b, h, i, j: j <= i)
    run = lambda x: serving.varlen_attention(x, x, x, of, of, **how) + 1  # noqa: E731
    torch._dynamo.reset()
    compiled = torch.compile(run, backend="eager")
    assert torch.equal(compiled(q), run(q))


@pytest.mark.parametrize("is_recorded", [False, True])
def test_the_operator(is_recorded):
    of = to_int32([0, 5, 5, 18])
    q, k, v = (torch.randn(20, h, 16, requires_grad=is_recorded) for h in (4, 2, 2))
    given = q, k, v, of, of, None, None, 13, 13, None, True, -1, -1, 0.0, is_recorded
    tests = "test_schema", "test_faketensor", "test_autograd_registration"
    torch.library.opcheck(torch.ops.attn.varlen.default, given, test_utils=tests)


def test_plain_tensors_take_no_operator(monkeypatch):
    """Where only autograd watches. A profiler, which names operators, is told of one."""
    monkeypatch.setattr(_sequences, "TAKES_VIEWS", {("cpu", x): True for x in (False, True)})
    called, forward = [], _varlen_operator._Recorded.forward
    monkeypatch.setattr(
        _varlen_operator._Recorded, "forward", staticmethod(lambda *x: called.append(x) or forward(*x))
    )
    of = offsets(ROWS)
    tensors = [x.requires_grad_() for x in make(of, of)[:3]]
    lengths = to_int32(of), to_int32(of), max(ROWS), max(ROWS)
    outputs = [flash_attn.flash_attn_varlen_func(*tensors, *lengths, causal=True)]
    assert not called
    with torch.profiler.profile():
        outputs.append(flash_attn.flash_attn_varlen_func(*tensors, *lengths, causal=True))
    assert len(called) == 1
    first, second = [torch.autograd.grad(x.sum(), tensors) for x in outputs]
    assert torch.equal(*outputs) and all(map(torch.equal, first, second))


def test_second_derivatives_are_refused():
    of = to_int32([0, 7])
    q = torch.randn(7, H, 16, requires_grad=True)
    given = of, of, None, None, 7, 7, None, True, -1, -1, 0.0, True
    output, _, _ = torch.ops.attn.varlen(q, q.detach(), q.detach(), *given)
    (first,) = torch.autograd.grad(output.sum(), q, create_graph=True)
    with pytest.raises(attn.Error, match="expected first derivatives of sequences"):
        torch.autograd.grad(first.sum(), q)


def test_the_default():
    """On a CPU by whether autograd records; on a GPU where no sequence is much longer than the others."""
    takes = _sequences.TAKES_VIEWS
    assert takes["cpu", False] and takes["cuda", False] and takes["cuda", True]
    assert not takes["cpu", True]
    rows = torch.empty(64, 1, 16)
    of = lambda count: SimpleNamespace(cu_q=torch.empty(count + 1))  # noqa: E731
    assert _sequences._are_alike(rows, of(4), (64, 64))
    assert not _sequences._are_alike(rows, of(5), (64, 64))
    assert not _sequences._are_alike(rows, of(1), (None, 64))
