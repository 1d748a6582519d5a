"""flash_attn_varlen_func: sequences one after the other, compared with a loop over them in f64. Rows and keys
in no sequence hold NaN, and so does memory before it is written."""

import pytest

import attn

torch = pytest.importorskip("torch")
import ragged_reference as reference  # noqa: E402
from attn.integrations import flash_attn  # noqa: E402
from ragged_reference import (  # noqa: E402, F401  (fixtures)
    DV,
    PEER,
    D,
    H,
    check,
    check_gradients,
    make,
    offsets,
    poisoned,
    seeded,
    to_int32,
)


def compare(lengths_q, lengths_k, tail=0, hkv=2, dtype=torch.float32, d=D, **how):
    cu_q, cu_k = offsets(lengths_q), offsets(lengths_k)
    used = {name: how.get(name) for name in ("used_q", "used_k")}
    *tensors, d_output = make(cu_q, cu_k, tail, hkv, dtype, d=d, **used)
    tensors = [x.requires_grad_() for x in tensors]
    sink = how.get("sink")
    wide = [x.detach().double().requires_grad_() for x in tensors]
    leaves = wide
    if sink is not None:
        tensors.append(sink.requires_grad_())
        leaves = [*wide, sink.detach().double().requires_grad_()]
        how["sink"] = leaves[-1]
    wanted, wanted_lse = reference.attend_all(*wide, cu_q, cu_k, **how)

    given = {PEER.get(name, name): x for name, x in how.items()}
    for name in ("seqused_q", "seqused_k"):
        if given.get(name) is not None:
            given[name] = to_int32(given[name])
    if sink is not None:
        given["learnable_sink"] = sink
    device_q = to_int32(cu_q)
    device_k = device_q if lengths_k is lengths_q else to_int32(cu_k)
    most = max(lengths_q, default=0), max(lengths_k, default=0)
    call = (*tensors[:3], device_q, device_k, *most)
    output, lse = flash_attn.flash_attn_varlen_func(*call, return_lse=True, **given)
    assert output.dtype == dtype and lse.dtype == torch.float32
    check(output, wanted, dtype)
    check(lse, wanted_lse, dtype)

    # A row that keeps nothing has no gradient of lse.
    d_lse = torch.randn(lse.shape).masked_fill(lse == -torch.inf, 0)
    if sink is not None:
        d_lse = torch.zeros_like(d_lse)
    finite = lambda x: x.masked_fill(x == -torch.inf, 0)  # noqa: E731
    total = (wanted * d_output.double().nan_to_num(0)).sum() + (finite(wanted_lse) * d_lse).sum()
    # Of no sequence, no gradient.
    total = total + sum(x.nan_to_num(0).sum() * 0 for x in leaves)
    exact = torch.autograd.grad(total, leaves)
    found = torch.autograd.grad((output, lse), tensors, (d_output, d_lse))
    check_gradients(found, exact, dtype)


LENGTHS = [5, 0, 13, 1, 130, 0]
OTHERS = [7, 3, 2, 0, 140, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("others", [LENGTHS, OTHERS])
@pytest.mark.parametrize("causal", [False, True])
def test_numbers(dtype, others, causal):
    compare(LENGTHS, others, dtype=dtype, causal=causal)
    compare(LENGTHS, others, tail=37, dtype=dtype, causal=causal)


FEATURES = [
    {"scale": 0.3},
    {"window": (3, 0)},
    {"window": (0, 2)},
    {"window": (4, -1), "causal": True},
    {"window": (None, 5)},
    {"window": (1 << 31, 1 << 40)},
    {"softcap": 2.0, "causal": True},
    {"slopes": "heads", "causal": True},
    {"slopes": "sequences"},
    {"sink": True},
    {"sink": True, "window": (2, 0), "softcap": 3.0, "slopes": "sequences"},
]


def make_features(features, count):
    made = dict(features)
    if "slopes" in made:
        made["slopes"] = torch.rand((H,) if made["slopes"] == "heads" else (count, H))
    if "sink" in made:
        made["sink"] = torch.randn(H)
    return made


@pytest.mark.parametrize("features", FEATURES, ids=str)
@pytest.mark.parametrize("others", [LENGTHS, OTHERS])
def test_features(features, others):
    compare(LENGTHS, others, tail=3, **make_features(features, len(LENGTHS)))


@pytest.mark.parametrize("hkv", [1, 2, 4])
def test_heads(hkv):
    compare(LENGTHS, OTHERS, tail=2, hkv=hkv, causal=True)


@pytest.mark.parametrize("others", [LENGTHS, OTHERS])
def test_wide_heads(others):
    """Their gradients say the mask by rows, others by keys."""
    for how in ({"causal": True}, {"window": (9, 3)}, {"used_k": [6, 0, 1, 0, 77, 0]}):
        if others is OTHERS or "used_k" not in how:
            compare(LENGTHS, others, tail=5, d=136, **how)


# Of flash-attention's own grid.
GRID = [
    (1, 147),
    (113, 203),
    (128, 217),
    (113, 211),
    (108, 256),
    (256, 512),
    (512, 256),
    (640, 128),
]


def test_a_sample_of_the_grid_of_the_peer(rng):
    for m, n in rng.permutation(GRID)[:3]:
        count = int(rng.integers(1, 5))
        lengths = [
            [int(x) for x in rng.integers(max(1, most - 20), most + 1, count)] for most in (m, n)
        ]
        features = make_features(FEATURES[rng.integers(len(FEATURES))], count)
        dtype = (torch.float16, torch.bfloat16)[rng.integers(2)]
        compare(
            *lengths,
            tail=int(rng.integers(0, 70)),
            dtype=dtype,
            hkv=int(rng.choice([1, 2, 4])),
            **features,
        )


def test_random_lengths(rng):
    for _ in range(6):
        count = int(rng.integers(1, 40))
        lengths = [
            [int(x) for x in rng.integers(0, rng.choice([2, 5, 60]), count)] for _ in range(2)
        ]
        features = make_features(FEATURES[rng.integers(len(FEATURES))], count)
        compare(*lengths, tail=int(rng.integers(0, 9)), **features)


@pytest.mark.parametrize("causal", [False, True])
def test_used_parts(causal):
    """What is beyond the used part of a sequence is in none."""
    compare(
        LENGTHS, OTHERS, 4, used_q=[2, 0, 13, 0, 100, 0], used_k=[6, 0, 1, 0, 77, 0], causal=causal
    )
    compare(LENGTHS, OTHERS, 4, used_k=[0, 3, 2, 0, 130, 0], causal=causal, window=(6, -1))
    compare(LENGTHS, LENGTHS, used_q=[5, 0, 1, 1, 129, 0], causal=causal)


def test_sequences_of_everything_and_of_nothing():
    compare([50], [50], causal=True)
    compare([50], [70], causal=True)
    compare([0, 0], [0, 0], tail=9)
    compare([0, 3], [4, 0], tail=1, causal=True)
    compare([1] * 70, [1] * 70, causal=True)
    compare([], [], tail=3)


@pytest.mark.parametrize("rows, keys", [(0, 5), (5, 0), (0, 0)])
def test_no_rows_and_no_keys(rows, keys):
    sink = torch.randn(H, requires_grad=True)
    tensors = [x.requires_grad_() for x in make([0, rows], [0, keys])[:3]]
    cu = to_int32([0, rows]), to_int32([0, keys])
    output, lse = flash_attn.flash_attn_varlen_func(
        *tensors, *cu, rows, keys, learnable_sink=sink, return_lse=True
    )
    assert output.shape == (rows, H, DV) and (output == 0).all()
    assert torch.allclose(lse, sink[:, None].expand(H, rows))
    for x in torch.autograd.grad(output.sum(), [*tensors, sink]):
        assert (x == 0).all()


def test_rows_before_the_first_sequence():
    """Offsets of some of the sequences are offsets too."""
    cu = offsets(LENGTHS)
    q, k, v, _ = make(cu, cu)
    whole = flash_attn.flash_attn_varlen_func(
        q, k, v, to_int32(cu), to_int32(cu), 130, 130, causal=True
    )
    q[: cu[2]], k[: cu[2]], v[: cu[2]] = torch.nan, torch.nan, torch.nan
    part = to_int32(cu)[2:]
    for others in (part, part.clone()):
        how = dict(causal=True, window_size=(200, -1))
        found = flash_attn.flash_attn_varlen_func(q, k, v, part, others, 130, 130, **how)
        assert (found[: cu[2]] == 0).all()
        check(found[cu[2] :], whole[cu[2] :].double())


@pytest.mark.parametrize(
    "cu",
    [
        [0, 9, 4, 20],
        [0, 5, 30, 20],
        [-7, 3, 8, 20],
        [0, 1 << 30, 1 << 30, 20],
        [0, -(1 << 31), (1 << 31) - 1, 3],
    ],
)
def test_broken_offsets_end(cu):
    q, k, v, d_output = make([0, 20], [0, 20])
    tensors = [x.requires_grad_() for x in (q, k, v)]
    for other in ([0, 5, 9, 20], cu):
        offset = to_int32(cu), to_int32(other)
        for given in (offset, offset[::-1], offset[:1] * 2):
            output = flash_attn.flash_attn_varlen_func(*tensors, *given, 20, 20, causal=True)
            assert output.isfinite().all()
            torch.autograd.grad(output, tensors, d_output)


def test_a_sequence_of_all_is_dense():
    q, k, v, _ = make([0, 33], [0, 40])
    cu = to_int32([0, 33]), to_int32([0, 40])
    output, lse, weights = flash_attn.flash_attn_varlen_func(
        q, k, v, *cu, 33, 40, causal=True, return_attn_probs=True
    )
    dense = flash_attn.flash_attn_func(q[None], k[None], v[None], causal=True, return_lse=True)
    check(output, dense[0][0].double())
    check(lse, dense[1][0].double())
    assert weights is None and lse.shape == (H, 33)


def test_dropout_is_that_of_attention():
    cu = offsets(LENGTHS)
    *tensors, d_output = make(cu, cu)
    tensors = [x.requires_grad_() for x in tensors]
    ids = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS))
    torch.manual_seed(5)
    got = flash_attn.flash_attn_varlen_func(
        *tensors, to_int32(cu), to_int32(cu), 130, 130, dropout_p=0.3
    )
    torch.manual_seed(5)
    matrices = [x[None] for x in tensors]
    mask = lambda b, h, i, j: ids[i] == ids[j]  # noqa: E731
    wanted = attn.attention(*matrices, mask=mask, layout="bshd", dropout_p=0.3)[0]
    check(got, wanted.double())
    check_gradients(
        torch.autograd.grad(got, tensors, d_output),
        [x.double() for x in torch.autograd.grad(wanted, tensors, d_output)],
    )
