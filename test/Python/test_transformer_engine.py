"""attn.integrations.transformer_engine against softmax written out in f64."""

import math

import pytest

import attn

torch = pytest.importorskip("torch")
from attn.integrations.transformer_engine import DotProductAttention  # noqa: E402
from ragged_reference import attend, attend_all  # noqa: E402

pytestmark = pytest.mark.made_of(":(glob)python/attn/integrations/*.py")
H, HKV, D, DV = 4, 2, 16, 24


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


def make_module(**how):
    return DotProductAttention(H, (D, DV), HKV, **how)


def make(*lengths):
    return [torch.randn(*lengths, heads, columns, requires_grad=True) for heads, columns in ((H, D), (HKV, D), (HKV, DV))]


def close(got, wanted):
    torch.testing.assert_close(got.double(), wanted.detach().double(), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "kind, window, softmax", [("padding", (5, 3), "vanilla"), ("padding,causal", None, "learnable"), ("padding_causal_bottom_right", None, "off-by-one")]
)
def test_sequences(kind, window, softmax):
    starts = torch.tensor([0, 5, 5, 17, 29], dtype=torch.int32)
    q, k, v = make(29)
    module = make_module(qkv_format="thd", attn_mask_type=kind, window_size=window, softmax_type=softmax)
    if softmax == "learnable":
        torch.nn.init.normal_(module.softmax_offset)
    got = module(q, k, v, cu_seqlens_q=starts, cu_seqlens_kv=starts, max_seqlen_q=12, max_seqlen_kv=12)
    sink = {"vanilla": None, "off-by-one": torch.zeros(H), "learnable": module.softmax_offset}[softmax]
    how = dict(causal="causal" in kind, window=window or (-1, -1), sink=sink)
    wanted, _ = attend_all(q, k, v, starts, starts, **how)
    assert got.shape == (29, H * DV)
    close(got, wanted.flatten(1))
    weight = torch.randn_like(got)
    learned = [q, k, v] + ([sink] if softmax == "learnable" else [])
    gradients = torch.autograd.grad((got * weight).sum(), learned)
    for one, other in zip(gradients, torch.autograd.grad((wanted.flatten(1) * weight).sum(), learned)):
        close(one, other)


def test_sequences_with_padding_between():
    """Each is 4 rows apart from where it would begin, and slopes are of sequences."""
    lengths = torch.tensor([0, 5, 12], dtype=torch.int32)
    padded = torch.tensor([0, 9, 20], dtype=torch.int32)
    q, k, v = make(20)
    slopes = torch.rand(2, H)
    module = make_module(qkv_format="thd", attn_mask_type="padding_causal")
    got = module(
        q, k, v, cu_seqlens_q=lengths, cu_seqlens_kv=lengths, cu_seqlens_q_padded=padded, cu_seqlens_kv_padded=padded,
        core_attention_bias_type="alibi", alibi_slopes=slopes,
    )  # fmt: skip
    for s, (first, count) in enumerate(((0, 5), (9, 7))):
        rows = slice(first, first + count)
        wanted, _ = attend(q[rows], k[rows], v[rows], causal=True, slopes=slopes[s])
        close(got[rows], wanted.flatten(1))
    assert not got[5:9].any() and not got[16:].any()


@pytest.mark.parametrize("format_", ["sbhd", "bshd"])
@pytest.mark.parametrize("kind, n", [("no_mask", 13), ("causal", 9), ("causal", 13), ("causal_bottom_right", 13)])
def test_batches(format_, kind, n):
    q, k, v = (x[:, :m] for x, m in zip(make(2, 13), (9, n, n)))
    module = make_module(qkv_format=format_, attn_mask_type=kind, softmax_scale=0.3)
    given = [x.transpose(0, 1) if format_ == "sbhd" else x for x in (q, k, v)]
    got = module(*given)
    got = got.transpose(0, 1) if format_ == "sbhd" else got
    for b in range(2):
        last = 9 if kind == "causal" else n  # A mask from the first key on drops all after the last row.
        wanted, _ = attend(q[b], k[b, :last], v[b, :last], scale=0.3, causal=kind != "no_mask")
        close(got[b], wanted.flatten(1))


def test_dropout_is_of_training():
    q, k, v = make(2, 8)
    module = make_module(qkv_format="bshd", attn_mask_type="no_mask", attention_dropout=0.5)
    assert not torch.equal(module(q, k, v), module(q, k, v))
    module.eval()
    assert torch.equal(module(q, k, v), module(q, k, v)) and math.isclose(module.softmax_scale, 0.25)


@pytest.mark.parametrize(
    "how, message",
    [
        (dict(cp_group=object()), "cp_group: expected None"),
        (dict(return_max_logit=True), "return_max_logit: expected None"),
        (dict(bottom_right_diagonal=True), "bottom_right_diagonal: expected None"),
        (dict(attention_dropout=0.1, get_rng_state_tracker=print), "get_rng_state_tracker: expected None"),
        (dict(qkv_format="bhsd"), "qkv_format: expected sbhd or bshd or thd, got 'bhsd'"),
        (dict(softmax_type="max"), "softmax_type: expected vanilla"),
        (dict(attention_type="both"), "attention_type: expected self or cross"),
    ],
)
def test_refused_modules(how, message):
    with pytest.raises(attn.Error, match=message):
        make_module(**how)


STARTS = torch.tensor([0, 8], dtype=torch.int32)
THD = dict(qkv_format="thd", attn_mask_type="padding", cu_seqlens_q=STARTS, cu_seqlens_kv=STARTS)


@pytest.mark.parametrize(
    "how, message",
    [
        (dict(attention_mask=torch.ones(1)), "attention_mask: expected None"),
        (dict(core_attention_bias=torch.ones(1)), "core_attention_bias: expected None"),
        (dict(checkpoint_core_attention=True), "checkpoint_core_attention: expected None"),
        (dict(inference_params=object()), "inference_params: expected None"),
        (dict(fp8_output=True), "fp8_output: expected None"),
        (dict(core_attention_bias_type="pre_scale_bias"), "core_attention_bias_type: expected no_bias or alibi"),
        (dict(core_attention_bias_type="alibi"), "alibi_slopes: expected a tensor"),
        (dict(alibi_slopes=torch.ones(H)), "alibi_slopes: expected .* None without"),
        (dict(qkv_format="hd"), "qkv_format: expected sbhd"),
        (dict(attn_mask_type="padding"), "attn_mask_type: expected no_mask or causal .*"),
        (dict(attn_mask_type="arbitrary"), "attn_mask_type: expected no_mask"),
        (dict(THD, attn_mask_type="causal"), "attn_mask_type: expected padding or"),
        (dict(THD, cu_seqlens_kv=None), "cu_seqlens_q: expected starts"),
        (dict(THD, attn_mask_type="padding_causal"), "attn_mask_type: expected padding_causal_bottom_right in cross attention"),
    ],
)
def test_refused_calls(how, message):
    tensors = make(8) if how.get("qkv_format") == "thd" else make(2, 8)
    with pytest.raises(attn.Error, match=message):
        make_module(qkv_format="bshd", attention_type="cross")(*tensors, **how)


def test_refused_tensors():
    q, k, v = make(2, 8)
    module = make_module(qkv_format="bshd")
    with pytest.raises(attn.Error, match="key_layer: expected 2 heads, got 4"):
        module(q, q, v)
    with pytest.raises(attn.Error, match="query_layer: expected a tensor .B, S, H, D."):
        module(q[0], k, v)
    with pytest.raises(attn.Error, match="causal_bottom_right with a window or slopes, got causal of 5 rows and 8 keys"):
        module(q[:, :5], k, v, window_size=(3, 0))
