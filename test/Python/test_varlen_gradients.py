"""Gradients of attn.serving.varlen_attention against each sequence by itself, in f64."""

import random

import pytest

import attn

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
from attn import serving  # noqa: E402
from ragged_reference import attend_all, offsets, to_int32  # noqa: E402

D, HEADS = 32, 4
BOUNDS = {torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}


def differentiate(of_q, of_k, tensors, d_output, d_lse=None, **how):
    """The gradients of the definition, in f64; 0 in rows of no sequence."""
    tensors = [x.detach().double().requires_grad_() for x in tensors]
    output, lse = attend_all(*tensors, of_q, of_k, **how)
    rows = slice(of_q[0], of_q[-1])
    total = (output[rows] * d_output[rows].double()).sum()
    if d_lse is not None:
        finite = torch.where(lse.isinf(), 0.0, lse).T
        total = total + (finite[rows] * d_lse[rows].double()).sum()
    return torch.autograd.grad(total, tensors)


def check(found, wanted, bound):
    for name, x, y in zip("qkv", found, wanted):
        assert x.isfinite().all(), f"d_{name} has what is no number"
        assert (x.double() - y).abs().max() <= bound * max(1.0, y.abs().max().item()), f"d_{name}"


def draw(seed, lengths_q, lengths_k, dtype, hkv, dv):
    random.seed(seed)
    torch.manual_seed(seed)
    of_q, of_k = offsets(lengths_q), offsets(lengths_k)
    # Rows of no sequence, after the last.
    total_q, total_k = of_q[-1] + 3, of_k[-1] + 2
    shapes = (total_q, HEADS, D), (total_k, hkv, D), (total_k, hkv, dv)
    q, k, v = (torch.randn(shape).to(dtype).requires_grad_() for shape in shapes)
    return of_q, of_k, (q, k, v), torch.randn(total_q, HEADS, dv).to(dtype)


CASES = [
    # lengths of queries and of keys, key heads, Dv, how
    ([5, 0, 13, 1, 40, 0], [5, 0, 13, 1, 40, 0], 2, 32, dict(causal=True)),
    ([7, 3, 0, 70], [9, 64, 5, 70], 4, 48, dict()),
    ([33, 1], [65, 130], 1, 32, dict(causal=True, window=(20, 0))),
    ([2, 90], [100, 30], 2, 32, dict(window=(16, 9), softcap=5.0)),
]


@pytest.mark.parametrize("dtype", list(BOUNDS))
@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("has_lse", [False, True])
def test_gradients(case, dtype, has_lse):
    lengths_q, lengths_k, hkv, dv, how = CASES[case]
    of_q, of_k, tensors, d_output = draw(case, lengths_q, lengths_k, dtype, hkv, dv)
    given = [to_int32(of_q), to_int32(of_k)]
    if case % 2:
        given = [x.long() for x in given]
    most = dict(max_seqlen_q=max(lengths_q), max_seqlen_k=max(lengths_k) + case)
    found = serving.varlen_attention(*tensors, *given, **most, **how, return_lse=True)
    d_lse = torch.randn(found[1].shape) if has_lse else None
    total = (found[0][: of_q[-1]] * d_output[: of_q[-1]]).float().sum()
    if has_lse:
        rows = torch.where(found[1].isinf(), 0.0, found[1])[: of_q[-1]]
        total = total + (rows * d_lse[: of_q[-1]]).sum()
    wanted = differentiate(of_q, of_k, tensors, d_output, d_lse, **how)
    check(torch.autograd.grad(total, tensors), wanted, BOUNDS[dtype])


def test_rows_of_no_sequence():
    """They are NaN in all that is read, and their gradients are 0."""
    of = [4, 9, 9, 20]
    tensors = [torch.randn(25, HEADS, D) for _ in range(4)]
    for x in tensors:
        x[:4], x[20:] = torch.nan, torch.nan
    *tensors, d_output = (x.requires_grad_() for x in tensors)
    cu = to_int32(of)
    output = serving.varlen_attention(*tensors, cu, cu, max_seqlen_q=11, max_seqlen_k=11)
    found = torch.autograd.grad(output, tensors, d_output)
    wanted = differentiate(of, of, tensors, d_output)
    check([x[4:20] for x in found], [x[4:20] for x in wanted], 2e-5)
    for x in found:
        assert not x[:4].any() and not x[20:].any()


def test_rows_that_are_cut():
    """Rows and keys past the most of a sequence have no part in it."""
    of, cu = [0, 30, 42], to_int32([0, 30, 42])
    tensors = [torch.randn(42, HEADS, D, requires_grad=True) for _ in range(3)]
    d_output = torch.randn(42, HEADS, D)
    output = serving.varlen_attention(*tensors, cu, cu, max_seqlen_q=20, max_seqlen_k=10)
    found = torch.autograd.grad(output, tensors, d_output)
    # Sequences that are as long, with what is left between them.
    alone = [0, 20, 30, 42], [0, 10, 30, 40]
    q, k, v = (x.detach().double().requires_grad_() for x in tensors)
    wanted, _ = attend_all(q, k, v, *alone, used_q=[20, 0, 12], used_k=[10, 0, 10])
    check(found, torch.autograd.grad(wanted, (q, k, v), d_output.double()), 2e-5)


def test_some_gradients():
    cu = to_int32([0, 6, 17])
    for wanted in ((True, False, False), (False, True, False), (False, True, True)):
        tensors = [torch.randn(17, 2, D, requires_grad=flag) for flag in wanted]
        output = serving.varlen_attention(
            *tensors, cu, cu, max_seqlen_q=11, max_seqlen_k=11, causal=True
        )
        output.sum().backward()
        assert [x.grad is not None for x in tensors] == list(wanted)


def test_out_and_strides():
    cu = to_int32([0, 6, 17])
    packed = torch.randn(17, 3, 2, D, requires_grad=True)
    most = dict(max_seqlen_q=11, max_seqlen_k=11)
    out = torch.full((17, 2, D), 7.0)
    output = serving.varlen_attention(*packed.unbind(1), cu, cu, **most, out=out)
    apart = [x.detach().clone().requires_grad_() for x in packed.unbind(1)]
    alone = serving.varlen_attention(*apart, cu, cu, **most)
    assert output.data_ptr() == out.data_ptr() and torch.equal(output, alone)
    d_output = torch.randn(D, 2, 17).permute(2, 1, 0)
    (found,) = torch.autograd.grad(output, packed, d_output)
    wanted = torch.autograd.grad(alone, apart, d_output.contiguous())
    assert all(torch.equal(x, y) for x, y in zip(found.unbind(1), wanted))


def test_what_is_read_again_must_stay():
    """Offsets and what functions read, as queries do."""
    cu, slopes = to_int32([0, 6, 17]), torch.ones(2)
    q, k, v = (torch.randn(17, 2, D, requires_grad=True) for _ in range(3))
    most = dict(max_seqlen_q=11, max_seqlen_k=11)
    for changed in (cu, slopes):
        output = serving.varlen_attention(q, k, v, cu, cu, **most, alibi_slopes=slopes)
        changed += 0
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            output.sum().backward()


def test_numpy_captures():
    limits = np.array([5, 3], np.int32)
    cu = to_int32([0, 6, 17])
    q, k, v = (torch.randn(17, 2, D, requires_grad=True) for _ in range(3))
    most = dict(max_seqlen_q=11, max_seqlen_k=11)
    tensor = torch.from_numpy(limits)
    found = [
        torch.autograd.grad(
            serving.varlen_attention(q, k, v, cu, cu, **most, mask=lambda b, h, i, j: j < read[b])
            .square()
            .sum(),
            (q, k, v),
        )
        for read in (limits, tensor)
    ]
    assert all(map(torch.equal, *found))


def test_what_is_refused():
    cu = to_int32([0, 6, 17])
    q, k, v = (torch.randn(17, 2, D, requires_grad=True) for _ in range(3))
    most = dict(max_seqlen_q=11, max_seqlen_k=11)
    with pytest.raises(attn.Error, match="sink: expected no tensor that requires a gradient"):
        serving.varlen_attention(q, k, v, cu, cu, **most, sink=torch.zeros(2, requires_grad=True))
    slopes = torch.ones(2, requires_grad=True)
    with pytest.raises(attn.Error, match="captures: expected no tensor that requires a gradient"):
        serving.varlen_attention(q, k, v, cu, cu, **most, alibi_slopes=slopes)
    # A sink that does not learn is one more weight.
    output = serving.varlen_attention(q, k, v, cu, cu, **most, sink=torch.zeros(2))
    (first,) = torch.autograd.grad(output.sum(), q, create_graph=True)
    with pytest.raises(RuntimeError):
        first.sum().backward()
    with torch.no_grad():
        assert not serving.varlen_attention(q, k, v, cu, cu, **most).requires_grad
