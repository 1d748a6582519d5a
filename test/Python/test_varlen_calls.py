"""flash_attn_varlen_func: packed forms, strides, torch.compile, and what is refused."""

import inspect

import pytest

import attn

torch = pytest.importorskip("torch")
from attn.integrations import flash_attn  # noqa: E402
from ragged_reference import (  # noqa: E402, F401  (fixtures)
    D,
    H,
    check,
    make,
    offsets,
    poisoned,
    seeded,
    to_int32,
)

LENGTHS = [5, 0, 13, 1, 130, 0]


def test_packed():
    cu = to_int32(offsets(LENGTHS))
    qkv = torch.randn(int(cu[-1]), 3, H, D, requires_grad=True)
    given = cu, cu, 130, 130
    wanted = flash_attn.flash_attn_varlen_func(*qkv.unbind(1), *given, causal=True)
    got = flash_attn.flash_attn_varlen_qkvpacked_func(qkv, cu, 130, causal=True)
    assert torch.equal(got, wanted)
    d_output = torch.randn_like(wanted)
    check(
        *(
            torch.autograd.grad(x, qkv, d_output, retain_graph=True)[0].double()
            for x in (got, wanted)
        )
    )
    q, kv = qkv[:, 0], qkv[:, 1:]
    assert torch.equal(
        flash_attn.flash_attn_varlen_kvpacked_func(q, kv, *given, 0.0, None, True), wanted
    )


def test_strides():
    cu = to_int32([0, 11, 30])
    q, k, v, d_output = make([0, 11, 30], [0, 11, 30], dv=D, hkv=H)
    wanted = flash_attn.flash_attn_varlen_func(q, k, v, cu, cu, 19, 19)
    apart = [torch.stack([x, x], -1)[..., 0] for x in (q, k, v)]
    heads_first = [x.transpose(0, 1).contiguous().transpose(0, 1) for x in (q, k, v)]
    for views in (apart, heads_first):
        tensors = [x.requires_grad_() for x in views]
        got = flash_attn.flash_attn_varlen_func(*tensors, cu, cu, 19, 19)
        assert torch.equal(got, wanted)
        found = torch.autograd.grad(got.sum(), tensors)
        assert all(x.isfinite().all() for x in found)
    one = k[:, :1].expand(-1, H, -1)
    assert torch.equal(
        flash_attn.flash_attn_varlen_func(q, one, one, cu, cu, 19, 19),
        flash_attn.flash_attn_varlen_func(q, k[:, :1], k[:, :1], cu, cu, 19, 19),
    )
    wide = torch.zeros(2, 3, dtype=torch.int32)
    wide[0] = cu
    given = wide.T.contiguous().T[0]
    assert torch.equal(flash_attn.flash_attn_varlen_func(q, k, v, given, given, 19, 19), wanted)


def test_autocast():
    cu = to_int32([0, 11, 30])
    tensors = [x.requires_grad_() for x in make([0, 11, 30], [0, 11, 30])[:3]]
    with torch.autocast("cpu", torch.bfloat16):
        got = flash_attn.flash_attn_varlen_func(*tensors, cu, cu, 19, 19)
    assert got.dtype == torch.bfloat16
    assert all(x.dtype == torch.float32 for x in torch.autograd.grad(got.sum(), tensors))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(dynamic):
    """One graph, in which nothing is read on the host."""
    slopes = torch.rand(H)

    def layers(q, k, v, cu, sink):
        how = dict(causal=True, softcap=5.0, alibi_slopes=slopes, learnable_sink=sink)
        for _ in range(2):
            q = flash_attn.flash_attn_varlen_func(q, k, v, cu, cu, 130, 130, **how)
        return q

    cu = offsets(LENGTHS)
    *tensors, d_output = make(cu, cu, tail=4, dv=D)
    tensors = [x.requires_grad_() for x in (*tensors, torch.randn(H))]
    tensors.insert(3, to_int32(cu))
    leaves = [x for x in tensors if x.requires_grad]
    torch._dynamo.reset()
    compiled = torch.compile(layers, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    got, wanted = compiled(*tensors), layers(*tensors)
    assert torch.equal(got, wanted)
    for x, y in zip(*(torch.autograd.grad(x, leaves, d_output) for x in (got, wanted))):
        assert torch.equal(x, y)


def test_names():
    names = list(inspect.signature(flash_attn.flash_attn_varlen_func).parameters)
    first = (
        "q k v cu_seqlens_q cu_seqlens_k max_seqlen_q max_seqlen_k dropout_p softmax_scale causal window_size "
        "softcap alibi_slopes deterministic return_attn_probs block_table"
    )
    assert names[:16] == first.split() and {"seqused_q", "seqused_k", "learnable_sink"} <= set(
        names
    )


def test_operators():
    cu = to_int32([0, 3, 9])
    tensors = [x.requires_grad_() for x in make([0, 3, 9], [0, 3, 9])[:3]]
    from attn.integrations._bounds import Sequences, make_bounds

    bounds = make_bounds(9, 9, Sequences(cu, cu), (None, 0))
    given = (*tensors, bounds.first, bounds.last, None, None, None, None, None, 0.0, 0.0, False)
    checks = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(torch.ops.attn.attend_rows.default, given, test_utils=checks)


ONE = torch.zeros(4, 2, 16)
CU = torch.tensor([0, 4], dtype=torch.int32)


@pytest.mark.parametrize(
    "how, words",
    [
        (
            {"q": ONE[None]},
            r"q: expected a tensor \(T, H, D\), got torch.float32 of shape \(1, 4, 2, 16\)",
        ),
        ({"k": None}, r"k: expected a tensor \(T, H, D\), got NoneType"),
        ({"k": ONE.half()}, "k: expected elements of torch.float32, as q has, got torch.float16"),
        (
            {"q": ONE.double()},
            "q: expected elements of float16, bfloat16 or float32, got torch.float64",
        ),
        ({"v": ONE.to("meta")}, "v: expected a tensor on cpu, as q is, got meta"),
        ({"k": ONE[..., :8]}, "k: expected 16 columns, as q has, got 8"),
        (
            {"v": ONE[:3]},
            r"v: expected shape \(4, 2\) before its columns, as k has, got shape \(3, 2, 16\)",
        ),
        (
            {"k": torch.zeros(4, 3, 16), "v": torch.zeros(4, 3, 16)},
            "k: expected a number of heads that divides 2",
        ),
        ({"k": ONE[:, :0], "v": ONE[:, :0]}, "k: expected one head and one column at least"),
        (
            {"cu_seqlens_q": CU.long()},
            r"cu_seqlens_q: expected int32 of shape \(B \+ 1,\), got torch.int64",
        ),
        ({"cu_seqlens_q": CU[None]}, r"cu_seqlens_q: expected int32 of shape \(B \+ 1,\)"),
        ({"cu_seqlens_q": [0, 4]}, r"cu_seqlens_q: expected int32 of shape \(B \+ 1,\), got list"),
        (
            {"cu_seqlens_q": CU[:0]},
            r"cu_seqlens_q: expected int32 of shape \(B \+ 1,\), got torch.int32 of shape \(0",
        ),
        (
            {"cu_seqlens_k": CU[1:]},
            r"cu_seqlens_k: expected int32 of shape \(2,\), got torch.int32 of shape \(1,\)",
        ),
        (
            {"cu_seqlens_k": CU.to("meta")},
            "cu_seqlens_k: expected a tensor on cpu, as q is, got meta",
        ),
        ({"seqused_k": CU}, r"seqused_k: expected int32 of shape \(1,\)"),
        ({"seqused_q": 3}, r"seqused_q: expected int32 of shape \(1,\), got int"),
        ({"window_size": 4}, "window_size: expected a pair of integers, got 4"),
        ({"softcap": -1.0}, "softcap: expected 0 or a bound"),
        ({"softcap": "5"}, "softcap: expected 0 or a bound"),
        (
            {"alibi_slopes": torch.rand(3)},
            r"alibi_slopes: expected floats of shape \(2,\) or \(1, 2\)",
        ),
        (
            {"alibi_slopes": torch.rand(2).requires_grad_()},
            "alibi_slopes: expected a tensor without gradient",
        ),
        ({"learnable_sink": torch.rand(3)}, r"learnable_sink: expected floats of shape \(2,\)"),
        ({"dropout_p": 1.1}, "dropout_p: expected a probability"),
        ({"dropout_p": 0.1, "return_attn_probs": True}, "return_attn_probs: expected False"),
        (
            {"block_table": CU[None]},
            r"k: expected a tensor \(Np, P, Hkv, D\), got torch.float32 of shape \(4, 2, 16\)",
        ),
        ({"qv": ONE}, "qv: expected None"),
        ({"q_descale": ONE}, "q_descale: expected None"),
        ({"k_descale": ONE}, "k_descale: expected None"),
        ({"v_descale": ONE}, "v_descale: expected None"),
        ({"attention_chunk": 64}, "attention_chunk: expected 0, got 64"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_what_is_refused(how, words):
    given = dict(
        q=ONE, k=ONE, v=ONE, cu_seqlens_q=CU, cu_seqlens_k=CU, max_seqlen_q=4, max_seqlen_k=4
    )
    with pytest.raises(attn.Error, match=f"(?s){words}"):
        flash_attn.flash_attn_varlen_func(**{**given, **how})


def test_packed_is_refused():
    with pytest.raises(attn.Error, match=r"qkv: expected \(T, 3, H, D\)"):
        flash_attn.flash_attn_varlen_qkvpacked_func(ONE, CU, 4)
    with pytest.raises(attn.Error, match=r"cu_seqlens: expected int32 of shape \(B \+ 1,\)"):
        flash_attn.flash_attn_varlen_qkvpacked_func(torch.zeros(4, 3, 2, 16), CU.long(), 4)
    with pytest.raises(attn.Error, match=r"kv: expected \(T, 2, H, D\)"):
        flash_attn.flash_attn_varlen_kvpacked_func(ONE, ONE, CU, CU, 4, 4)


def test_what_changes_nothing():
    q, k, v, _ = make([0, 9], [0, 9])
    cu = to_int32([0, 9])
    wanted = flash_attn.flash_attn_varlen_func(q, k, v, cu, cu, 9, 9)
    how = dict(num_splits=3, pack_gqa=True, sm_margin=4, deterministic=True, attention_chunk=0)
    assert torch.equal(flash_attn.flash_attn_varlen_func(q, k, v, cu, cu, 1, 1, **how), wanted)


def test_second_derivatives_are_refused():
    cu = to_int32([0, 3, 9])
    tensors = [x.requires_grad_() for x in make([0, 3, 9], [0, 3, 9])[:3]]
    output = flash_attn.flash_attn_varlen_func(*tensors, cu, cu, 6, 6)
    found = torch.autograd.grad(output.square().sum(), tensors, create_graph=True)
    with pytest.raises(attn.Error, match="expected first derivatives of sequences, got a second"):
        torch.autograd.grad(sum(x.sum() for x in found), tensors)


def test_gradients_by_functions():
    cu = to_int32([0, 3, 9])
    tensors = make([0, 3, 9], [0, 3, 9])[:3]
    call = (
        lambda *x: flash_attn.flash_attn_varlen_func(*x, cu, cu, 6, 6).square().sum()
    )  # noqa: E731
    found = torch.func.grad(call, argnums=(0, 1, 2))(*tensors)
    leaves = [x.clone().requires_grad_() for x in tensors]
    for x, y in zip(found, torch.autograd.grad(call(*leaves), leaves)):
        assert torch.equal(x, y)


def test_a_call_without_lse_has_the_same_bits():
    q, k, v = (torch.randn(40, h, 16) for h in (4, 2, 2))
    starts = torch.tensor([3, 3, 20, 33], dtype=torch.int32)
    for causal, sink in ((False, None), (True, torch.randn(4))):
        how = dict(causal=causal, learnable_sink=sink)
        output = flash_attn.flash_attn_varlen_func(q, k, v, starts, starts, 17, 17, **how)
        both = flash_attn.flash_attn_varlen_func(q, k, v, starts, starts, 17, 17, return_lse=True, **how)
        assert torch.equal(output, both[0]) and not output[:3].any() and not output[33:].any()


def test_calls_like_one_that_was_right_are_checked():
    q, k, v = (torch.randn(8, 2, 16) for _ in range(3))
    starts = torch.tensor([0, 1, 8], dtype=torch.int32)
    call = attn.serving.varlen_attention
    call(q, k, v, starts, starts, max_seqlen_q=1, max_seqlen_k=8)
    for most in (True, 1.0, -1):
        with pytest.raises(attn.Error, match="max_seqlen_q: expected a number of rows"):
            call(q, k, v, starts, starts, max_seqlen_q=most, max_seqlen_k=8)
    with pytest.raises(attn.Error, match="k: expected the type of q"):
        call(q, k.half(), v, starts, starts, max_seqlen_q=1, max_seqlen_k=8)
    with pytest.raises(attn.Error, match="cu_seqlens_k: expected as many offsets"):
        call(q, k, v, starts, starts[:2], max_seqlen_q=1, max_seqlen_k=8)
