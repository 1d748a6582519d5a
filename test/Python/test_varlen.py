"""attn.serving.varlen_attention: sequences of any lengths, against each by itself, in f64."""

import numpy as np
import pytest

import attn
from attn import serving
from reference import attention as define

torch = pytest.importorskip("torch")


def make(
    rows=(5, 0, 70, 3), keys=(9, 4, 31, 150), heads=4, key_heads=2, d=16, dv=24, first=2, last=6, seed=0
):
    """A call with NaN in rows of no sequence."""
    random = np.random.default_rng(seed)
    at_q, at_k = (first + np.concatenate([[0], np.cumsum(x)]) for x in (rows, keys))
    tensors = []
    for at, count, columns in ((at_q, heads, d), (at_k, key_heads, d), (at_k, key_heads, dv)):
        x = np.full((at[-1] + last, count, columns), np.nan)
        x[first : at[-1]] = random.standard_normal((at[-1] - first, count, columns))
        tensors.append(torch.from_numpy(x).float())
    names = ("q", "k", "v")
    call = dict(zip(names, tensors), max_seqlen_q=int(max(rows)), max_seqlen_k=int(max(keys)))
    for name, at in (("cu_seqlens_q", at_q), ("cu_seqlens_k", at_k)):
        call[name] = torch.from_numpy(at.astype("int32"))
    return call


def expect(call, *, causal=False, score=None, mask=None, **how):
    """(output, lse), NaN in rows of no sequence."""
    q, k, v = (call[x].double().numpy() for x in ("q", "k", "v"))
    at_q, at_k = (call[x].tolist() for x in ("cu_seqlens_q", "cu_seqlens_k"))
    output = np.full((*q.shape[:2], v.shape[2]), np.nan)
    lse = np.full(q.shape[:2], np.nan)
    at = lambda function, b: (  # noqa: E731
        None if function is None else lambda *x: function(*x[:-4], b, *x[-3:])
    )
    for b in range(len(at_q) - 1):
        own, of = slice(at_q[b], at_q[b + 1]), slice(at_k[b], at_k[b + 1])
        if own.start == own.stop:
            continue
        o, row = define(
            *(x[None].swapaxes(1, 2) for x in (q[own], k[of], v[of])),
            causal="bottom_right" if causal else None,
            score=at(score, b),
            mask=at(mask, b),
            **how,
        )
        output[own], lse[own] = o[0].swapaxes(0, 1), row[0].swapaxes(0, 1)
    return output, lse


def check(call, how, wanted):
    out = torch.full((*call["q"].shape[:2], call["v"].shape[2]), float("nan"))
    output, lse = serving.varlen_attention(**call, **how, out=out, return_lse=True)
    assert output is out
    is_row = ~np.isnan(wanted[1])
    np.testing.assert_allclose(output.numpy(), wanted[0], rtol=0, atol=2e-5)
    np.testing.assert_allclose(lse.numpy()[is_row], wanted[1][is_row], rtol=0, atol=2e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [((5, 0, 70, 3), (9, 4, 31, 150)), ((7,), (7,)), ((1,) * 50, (3,) * 50)])
def test_lengths(causal, lengths):
    call = make(*lengths)
    check(call, {"causal": causal}, expect(call, causal=causal))


def test_how():
    call = make()
    slopes, sink = torch.tensor([0.5, 0.25, 0.125, 0.0625]), torch.tensor([0.5, -1.0, 2.0, 0.0])
    shift = (call["cu_seqlens_k"].diff() - call["cu_seqlens_q"].diff()).tolist()
    check(call, {"window": (5, 3)}, expect(call, window=(5, 3)))
    check(call, {"sink": sink}, expect(call, sink=sink.numpy()))
    check(call, {"scale": 0.3}, expect(call, scale=0.3))
    check(call, {"softcap": 2.0}, expect(call, score=lambda s, b, h, i, j: 2 * np.tanh(s / 2)))
    check(
        call,
        {"alibi_slopes": slopes},
        expect(call, score=lambda s, b, h, i, j: s - float(slopes[h]) * abs(i + shift[b] - j)),
    )
    check(
        call,
        {"mask": lambda b, h, q, kv: (kv + h) % 3 != 0, "causal": True},
        expect(call, mask=lambda b, h, i, j: (j + h) % 3 != 0, causal=True),
    )


def test_layouts_and_types():
    call = make()
    wanted = serving.varlen_attention(**call)
    is_row = ~wanted.isnan()
    is_row[:2] = is_row[-6:] = False
    wide = {x: call[x].long() for x in ("cu_seqlens_q", "cu_seqlens_k")}
    output = serving.varlen_attention(**{**call, **wide})
    assert torch.equal(output[is_row], wanted[is_row])
    heads_first = {x: call[x].transpose(0, 1).contiguous().transpose(0, 1) for x in "qkv"}
    output = serving.varlen_attention(**{**call, **heads_first})
    assert torch.equal(output[is_row], wanted[is_row])
    arrays = {name: x.numpy() if torch.is_tensor(x) else x for name, x in call.items()}
    output = serving.varlen_attention(**arrays)
    np.testing.assert_array_equal(output[is_row.numpy()], wanted[is_row].numpy())


def test_offsets_are_values_of_a_call():
    for seed, lengths in enumerate([((5, 0, 70, 3), (9, 4, 31, 150)), ((1, 1, 1, 1), (150, 1, 2, 3))]):
        call = {**make(*lengths, seed=seed), "max_seqlen_q": 70, "max_seqlen_k": 150}
        check(call, {"causal": True}, expect(call, causal=True))


def test_a_longer_sequence_is_cut():
    call = {**make(rows=(5, 20), keys=(9, 30)), "max_seqlen_q": 8, "max_seqlen_k": 12}
    out = torch.full((*call["q"].shape[:2], 24), 7.0)
    serving.varlen_attention(**call, out=out)
    assert (out[:2] == 7).all() and (out[2 + 5 + 8 :] == 7).all()
    cut = make(rows=(5, 20), keys=(9, 30))
    whole = expect(cut, mask=lambda b, h, i, j: j < 12)[0]
    np.testing.assert_allclose(out[2:15].numpy(), whole[2:15], rtol=0, atol=2e-5)


def test_broken_offsets_end():
    call = make()
    for broken in ([-5, 9, 3, 2**31 - 1, 0], [1000] * 5, [-(2**31)] * 5):
        broken = torch.tensor(broken, dtype=torch.int32)
        serving.varlen_attention(**{**call, "cu_seqlens_q": broken, "cu_seqlens_k": broken})


@pytest.mark.parametrize(
    "change, name",
    [
        ({"q": torch.zeros(3, 16)}, "q"),
        ({"k": torch.zeros(202, 2, 17)}, "k"),
        ({"k": torch.zeros(202, 3, 16), "v": torch.zeros(202, 3, 24)}, "k"),
        ({"k": torch.zeros(202, 2, 16, dtype=torch.float16)}, "k"),
        ({"v": torch.zeros(3, 2, 24)}, "v"),
        ({"cu_seqlens_q": torch.zeros(5)}, "cu_seqlens_q"),
        ({"cu_seqlens_q": torch.zeros(0, dtype=torch.int32)}, "cu_seqlens_q"),
        ({"cu_seqlens_k": torch.zeros(4, dtype=torch.int32)}, "cu_seqlens_k"),
        ({"max_seqlen_q": -1}, "max_seqlen_q"),
        ({"max_seqlen_k": 3.5}, "max_seqlen_k"),
        ({"causal": "top_left"}, "causal"),
        ({"softcap": -1.0}, "softcap"),
        ({"alibi_slopes": torch.zeros(1, 4, 4)}, "alibi_slopes"),
        ({"out": torch.zeros(3, 4, 24)}, "out"),
    ],
)
def test_errors_name_the_argument(change, name):
    with pytest.raises(attn.Error, match=rf"^{name}:|{name}: expected"):
        serving.varlen_attention(**{**make(), **change})


@pytest.mark.parametrize(
    "name", ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "alibi_slopes", "out"]
)
def test_arrays_of_other_libraries_are_refused(name):
    with pytest.raises(attn.Error, match=rf"^{name}: expected a NumPy array or PyTorch tensor"):
        serving.varlen_attention(**{**make(), name: [[[0.0]]]})
