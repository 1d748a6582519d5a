"""attn.merge: parts of the keys joined, compared with attention to all of them and with its formula in f64."""

import math

import numpy as np
import pytest

import attn
from attn import _merge
import reference

TOLERANCE = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2}


def define(outputs, lses, rows_first=False):
    """s7 of the dialect's contract. A part of -inf is not read."""
    lses = np.asarray(lses, np.float64)
    outputs = np.asarray(outputs, np.float64)
    top = lses.max(0)
    safe = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        weights = np.where(lses == top, np.exp(top - safe), np.exp(lses - safe))
        weights = np.where(lses == -np.inf, 0, weights)
        weights = np.where(np.isposinf(top), lses == top, weights)
        total = weights.sum(0)
        lse = np.where(np.isfinite(top), safe + np.log(total), top)
        weights = np.where(total > 0, weights / total, 0)
    is_read = lses != -np.inf
    if rows_first:
        weights, is_read = weights.swapaxes(-1, -2), is_read.swapaxes(-1, -2)
    return (weights[..., None] * np.where(is_read[..., None], outputs, 0)).sum(0), lse


def make_parts(rng, shape=(2, 3, 5, 8), count=3, rows_first=False):
    """(S, ..., Dv) and (S, ...), some parts of which kept nothing and hold NaN."""
    outputs = rng.standard_normal((count, *shape)).astype("float32")
    rows = shape[:-1]
    lses = (rng.standard_normal((count, *rows)) * 3).astype("float32")
    empty = rng.random(lses.shape) < 0.3
    lses[empty], outputs[empty] = -np.inf, np.nan
    # A row that no part kept a key for.
    lses.reshape(count, -1)[:, 0] = -np.inf
    outputs.reshape(count, -1, shape[-1])[:, 0] = np.nan
    return outputs, lses.swapaxes(-1, -2).copy() if rows_first else lses


def check(found, wanted, bound=2e-6):
    for x, y in zip(found, wanted):
        x = np.asarray(x, np.float64)
        assert x.shape == y.shape
        np.testing.assert_array_equal(np.isfinite(x), np.isfinite(y))
        np.testing.assert_allclose(x, y, rtol=bound, atol=bound)


@pytest.mark.parametrize("shape", [(2, 3, 5, 8), (7, 2, 16), (9, 33), (1, 1, 1, 1)])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_numpy(rng, shape, count):
    outputs, lses = make_parts(rng, shape, count)
    wanted = define(outputs, lses)
    check(attn.merge(outputs, lses), wanted)
    check(attn.merge(list(outputs), tuple(lses)), wanted)


@pytest.mark.parametrize("shape", [(2, 3, 5, 8), (7, 2, 16)])
def test_rows_first(rng, shape):
    outputs, lses = make_parts(rng, shape, rows_first=True)
    check(attn.merge(outputs, lses, layout="bshd"), define(outputs, lses, rows_first=True))


def test_parts_of_keys_are_all_keys(make):
    q, k, v = make(n=23)
    sink = np.float32([0.5, -1.0, 2.0, 0.0])
    whole = attn.attention(q, k, v, sink=sink, return_lse=True)
    cuts = [(0, 7), (7, 8), (8, 23)]
    parts = [
        attn.attention(
            q, k[:, :, a:b], v[:, :, a:b], sink=sink if a == 0 else None, return_lse=True
        )
        for a, b in cuts
    ]
    for x, y in zip(attn.merge(*zip(*parts)), whole):
        reference.check(x, np.asarray(y, np.float64))


def test_infinite_sinks(rng):
    outputs, lses = make_parts(rng, (4, 8))
    lses[1, 2] = np.inf
    check(attn.merge(outputs, lses), define(outputs, lses))


def test_no_rows():
    output, lse = attn.merge(np.zeros((2, 0, 3, 8), "f4"), np.zeros((2, 0, 3), "f4"))
    assert output.shape == (0, 3, 8) and lse.shape == (0, 3)


@pytest.mark.parametrize(
    "outputs, lses, layout, name",
    [
        ([], [], "bhsd", "outputs"),
        (3, [], "bhsd", "outputs"),
        ([3], [3], "bhsd", "outputs"),
        ([np.zeros((3, 8), "f4")], [], "bhsd", "lses"),
        ([np.zeros((3, 8), "f4")], [np.zeros((8,), "f4")], "bhsd", "lses"),
        ([np.zeros((3, 8), "f4")], [np.zeros((3,), "f8")], "bhsd", "lses"),
        ([np.zeros((3, 8), "f8")], [np.zeros((3,), "f4")], "bhsd", "outputs"),
        ([np.zeros((3, 0), "f4")], [np.zeros((3,), "f4")], "bhsd", "outputs"),
        ([np.zeros((3, 8), "f4")], [np.zeros((3,), "f4")], "bshd", "outputs"),
        ([np.zeros((3, 2, 8), "f4")], [np.zeros((3, 2), "f4")], "bshd", "lses"),
        ([np.zeros((1, 1, 1, 3, 8), "f4")], [np.zeros((1, 1, 1, 3), "f4")], "bhsd", "outputs"),
        (
            [np.zeros((3, 8), "f4"), np.zeros((4, 8), "f4")],
            [np.zeros(3, "f4")] * 2,
            "bhsd",
            "outputs",
        ),
        ([np.zeros((3, 8), "f4")], [np.zeros(3, "f4")], "sbhd", "layout"),
    ],
)
def test_errors_name_the_argument(outputs, lses, layout, name):
    with pytest.raises(attn.Error, match=f"^{name}"):
        attn.merge(outputs, lses, layout=layout)


# ===- PyTorch --------------------------------------------------------------------------------===#


def to_torch(*arrays):
    torch = pytest.importorskip("torch")
    return [torch.from_numpy(x) for x in arrays]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("rows_first", [False, True])
def test_torch(rng, dtype, rows_first):
    """A kernel where nobody looks, and PyTorch's operations under autograd."""
    torch = pytest.importorskip("torch")
    outputs, lses = to_torch(*make_parts(rng, rows_first=rows_first))
    outputs = outputs.to(getattr(torch, dtype))
    wanted = define(outputs.float().numpy(), lses.numpy(), rows_first)
    layout = "bshd" if rows_first else "bhsd"
    for is_recorded in (False, True):
        given = outputs.clone().requires_grad_(is_recorded)
        output, lse = attn.merge(given, lses, layout=layout)
        assert output.dtype == outputs.dtype and lse.dtype == torch.float32
        assert output.requires_grad == is_recorded
        found = output.detach().float().numpy(), lse.detach().numpy()
        check(found, wanted, TOLERANCE[dtype])


@pytest.mark.parametrize("rows_first", [False, True])
def test_gradients(rng, rows_first):
    """d_partial[s] = w_s d_output and d_lse[s] = w_s (sum_d d_output (partial[s] - output) + d_lse)."""
    torch = pytest.importorskip("torch")
    outputs, lses = to_torch(*make_parts(rng, rows_first=rows_first))
    outputs, lses = outputs.requires_grad_(), lses.requires_grad_()
    output, lse = attn.merge(outputs, lses, layout="bshd" if rows_first else "bhsd")
    d_output = torch.randn(output.shape)
    d_lse = torch.where(lse.detach() == -math.inf, 0, torch.randn(lse.shape))
    torch.autograd.backward([output, lse], [d_output, d_lse])
    swap = (lambda x: x.transpose(-1, -2)) if rows_first else (lambda x: x)
    o, l = (x.detach().double() for x in (output, lse))
    weights = torch.where(lses == -math.inf, 0.0, (lses.detach().double() - l).exp())
    of_rows = swap(weights)[..., None]
    read = torch.where(of_rows == 0, 0.0, outputs.detach().double())
    torch.testing.assert_close(
        outputs.grad.double(), of_rows * d_output.double(), rtol=1e-5, atol=1e-6
    )
    inner = (d_output * torch.where(of_rows == 0, 0.0, read - o)).sum(-1)
    wanted = weights * (swap(inner) + d_lse.double())
    torch.testing.assert_close(lses.grad.double(), wanted, rtol=1e-4, atol=1e-5)


def test_gradients_of_attention(make):
    """Through parts, q, k and v have the gradients of the whole."""
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x).requires_grad_() for x in make(n=19))
    whole = attn.attention(q, k, v)
    d_output = torch.randn(whole.shape)
    wanted = torch.autograd.grad(whole, (q, k, v), d_output)
    cuts = [(0, 6), (6, 19)]
    parts = [
        attn.attention(q, k[:, :, a:b], v[:, :, a:b], return_lse=True) for a, b in cuts
    ]
    found = torch.autograd.grad(attn.merge(*zip(*parts))[0], (q, k, v), d_output)
    for x, y in zip(found, wanted):
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-5)


def test_compiled_and_mapped(rng):
    torch = pytest.importorskip("torch")
    outputs, lses = to_torch(*make_parts(rng))
    wanted = attn.merge(outputs, lses)
    compiled = torch.compile(lambda o, l: attn.merge(list(o), list(l)), fullgraph=True, backend="eager")
    mapped = torch.vmap(attn.merge, in_dims=(1, 1))(outputs, lses)
    for found in (compiled(outputs, lses), mapped):
        for x, y in zip(found, wanted):
            torch.testing.assert_close(x, y)


def test_parts_on_several_devices():
    torch = pytest.importorskip("torch")
    parts = [torch.zeros(3, 8), torch.zeros(3, 8, device="meta")]
    with pytest.raises(attn.Error, match="^outputs: expected tensors on cpu"):
        attn.merge(parts, [torch.zeros(3)] * 2)


@pytest.mark.parametrize(
    "shape, rows_first, fits",
    [
        ((2, 8, 70000, 64), False, True),
        ((70000, 8, 2, 64), False, False),
        ((2, 70000, 2, 64), False, False),
        ((2, 70000, 8, 64), True, True),
        ((2, 8, 70000, 64), True, False),
        ((70000, 8, 64), True, True),
        ((70000, 8, 64), False, False),
        ((70000, 64), False, True),
        ((2, 3, 4, 12), False, False),
    ],
)
def test_what_a_grid_holds(shape, rows_first, fits):
    """What does not fit one stays with PyTorch's operations."""
    assert _merge._fits_gpu(shape, rows_first) is fits


def test_turned_parts():
    """Arrays that are views of turned ones, all alike."""
    rng = np.random.default_rng(3)
    outputs, lses = rng.standard_normal((2, 3, 5, 4, 8), "float32"), rng.standard_normal((2, 3, 5, 4), "float32")
    wanted = attn.merge(list(outputs), list(lses))
    turned = [np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) for x in lses]
    for x, y in zip(attn.merge(list(outputs), turned), wanted):
        assert np.array_equal(x, y)
