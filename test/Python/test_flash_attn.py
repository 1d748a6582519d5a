"""attn.integrations.flash_attn: meanings of its parameters, by a definition in f64."""

import inspect
import math

import pytest

import attn

torch = pytest.importorskip("torch")
from attn.integrations import flash_attn  # noqa: E402


def inputs(b=2, m=7, n=19, h=4, hkv=2, d=16, dv=24):
    return torch.randn(b, m, h, d), torch.randn(b, n, hkv, d), torch.randn(b, n, hkv, dv)


def define(
    q, k, v, *, scale=None, causal=False, window=(-1, -1), softcap=0.0, slopes=None, sink=None
):
    q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    m, n = s.shape[2:]
    row, column = torch.arange(m)[:, None] + n - m, torch.arange(n)[None]
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    if slopes is not None:
        s = s - slopes.double().view(-1, s.shape[1], 1, 1) * (row - column).abs()
    keep = torch.ones(m, n, dtype=torch.bool)
    if causal:
        keep &= column <= row
    if window[0] >= 0:
        keep &= column >= row - window[0]
    if window[1] >= 0:
        keep &= column <= row + window[1]
    s = s.masked_fill(~keep, -math.inf)
    if sink is not None:
        s = torch.cat([s, sink.double().view(1, -1, 1, 1).expand(*s.shape[:3], 1)], 3)
    weights = torch.softmax(s, 3).nan_to_num(0)[..., :n]
    return (weights @ v).transpose(1, 2), torch.logsumexp(s, 3)


@pytest.mark.parametrize(
    "given, how",
    [
        ({}, {}),
        ({"softmax_scale": 0.3}, {"scale": 0.3}),
        ({"causal": True}, {"causal": True}),
        ({"window_size": (5, 2)}, {"window": (5, 2)}),
        ({"window_size": (3, None), "causal": True}, {"window": (3, -1), "causal": True}),
        ({"softcap": 2.0}, {"softcap": 2.0}),
        ({"deterministic": True}, {}),
    ],
)
def test_meanings(given, how):
    for shape in ({}, {"m": 19, "n": 7}):
        q, k, v = inputs(**shape)
        wanted, lse = define(q, k, v, **how)
        assert torch.allclose(
            flash_attn.flash_attn_func(q, k, v, **given).double(), wanted, atol=2e-5
        )
        got = flash_attn.flash_attn_func(q, k, v, **given, return_lse=True)
        assert torch.allclose(got[1].double(), lse, atol=2e-5)


def test_slopes_and_sinks():
    q, k, v = inputs()
    for slopes in (torch.rand(4), torch.rand(2, 4)):
        wanted, _ = define(q, k, v, slopes=slopes, softcap=3.0, causal=True)
        got = flash_attn.flash_attn_func(q, k, v, softcap=3.0, causal=True, alibi_slopes=slopes)
        assert torch.allclose(got.double(), wanted, atol=2e-5)
    sink = torch.randn(4, requires_grad=True)
    got = flash_attn.flash_attn_func(q, k, v, learnable_sink=sink)
    assert torch.allclose(got.double(), define(q, k, v, sink=sink)[0], atol=2e-5)
    (wanted,) = torch.autograd.grad(define(q, k, v, sink=sink)[0].sum(), sink)
    assert torch.allclose(torch.autograd.grad(got.sum(), sink)[0], wanted, atol=1e-4)


def test_packed():
    qkv = torch.randn(2, 9, 3, 4, 16, requires_grad=True)
    wanted, _ = define(*qkv.unbind(2), causal=True)
    got = flash_attn.flash_attn_qkvpacked_func(qkv, causal=True)
    assert torch.allclose(got.double(), wanted, atol=2e-5)
    (gradient,) = torch.autograd.grad(got.sum(), qkv, retain_graph=True)
    assert torch.allclose(
        gradient.double(), torch.autograd.grad(wanted.sum(), qkv)[0].double(), atol=1e-4
    )
    q, kv = inputs()[0], torch.randn(2, 19, 2, 2, 16)
    got = flash_attn.flash_attn_kvpacked_func(q, kv)
    assert torch.allclose(got.double(), define(q, *kv.unbind(2))[0], atol=2e-5)


def test_names():
    """Transformers passes what the signature has."""
    names = list(inspect.signature(flash_attn.flash_attn_func).parameters)
    first = "q k v dropout_p softmax_scale causal window_size softcap alibi_slopes deterministic".split()
    assert names[:10] == first and {"learnable_sink", "return_attn_probs"} <= set(names)


def test_what_is_refused():
    q, k, v = inputs()
    for how, words in (
        ({"dropout_p": 1.1}, "dropout_p: expected a probability"),
        ({"return_attn_probs": True, "dropout_p": 0.5}, "return_attn_probs: expected False"),
    ):
        with pytest.raises(attn.Error, match=words):
            flash_attn.flash_attn_func(q, k, v, **how)
    with pytest.raises(attn.Error, match=r"qkv: expected \(B, S, 3, H, D\)"):
        flash_attn.flash_attn_qkvpacked_func(q)
    with pytest.raises(TypeError):
        flash_attn.flash_attn_func(q, k, v, block_table=None)


def test_margins(monkeypatch):
    """Multiprocessors that are left to others are an option."""
    given = inputs()
    told = []
    attend = attn.attention
    monkeypatch.setattr(attn, "attention", lambda *x, **how: told.append(how["options"]) or attend(*x, **how))
    for deterministic, expected in ((False, {"reserve": 8}), (True, {"reserve": 8, "fused": "off"})):
        got = flash_attn.flash_attn_func(*given, sm_margin=8, deterministic=deterministic)
        assert torch.equal(got, flash_attn.flash_attn_func(*given))
        assert told[-2:] == [expected, None]
    q, k, v = given[0], given[1], given[2]
    flash_attn.flash_attn_with_kvcache(q, k, v, sm_margin=4)
    assert told[-1] == {"reserve": 4}
    for margin in (-1, 1.5, True):
        with pytest.raises(attn.Error, match="sm_margin: expected a number of multiprocessors, got"):
            flash_attn.flash_attn_func(*given, sm_margin=margin)


def test_the_triple_of_who_asks_for_weights():
    q, k, v = inputs()
    output, lse, weights = flash_attn.flash_attn_func(q, k, v, return_attn_probs=True)
    wanted, wanted_lse = flash_attn.flash_attn_func(q, k, v, return_lse=True)
    assert torch.equal(output, wanted) and torch.equal(lse, wanted_lse) and weights is None
