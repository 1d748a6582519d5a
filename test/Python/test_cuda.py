"""PyTorch tensors on a GPU. Skipped without one; needs this package and libattn.so, no build tree."""

import itertools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import attn
from attn import _direct, _plan

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
if torch.cuda.get_device_capability() != (9, 0):
    pytest.skip("no device of compute capability 9.0", allow_module_level=True)

import attn.integrations.torch as ours  # noqa: E402
from cuda_reference import (  # noqa: E402  (needs PyTorch)
    DEVICE,
    check,
    check_gradients,
    gradients,
    inputs,
    recorded,
    reference,
)


# ===- Numbers --------------------------------------------------------------------------------===#


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("d", [64, 80, 96, 128, 192, 256])
@pytest.mark.parametrize("causal", [False, True])
def test_head_dims(dtype, d, causal):
    q, k, v = inputs(d=d, dtype=dtype)
    output, lse = attn.attention(q, k, v, causal=causal, return_lse=True)
    assert output.dtype == dtype and output.device == q.device and lse.dtype == torch.float32
    wanted = reference(q, k, v, causal="bottom_right" if causal else None)
    check(output, wanted[0], dtype)
    check(lse, wanted[1], torch.float32)


@pytest.mark.parametrize("d", [64, 128, 256])
@pytest.mark.parametrize("causal", [False, True])
def test_float32(d, causal):
    q, k, v = inputs(d=d, dtype=torch.float32)
    wanted = reference(q, k, v, causal="bottom_right" if causal else None)
    output, lse = attn.attention(q, k, v, causal=causal, return_lse=True)
    check(output, wanted[0], torch.float32)
    check(lse, wanted[1], torch.float32)


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("causal", [False, "bottom_right"])
def test_gradients_of_float32(d, causal):
    tensors = recorded(d=d, dtype=torch.float32)
    output = attn.attention(*tensors, causal=causal)
    d_output = torch.randn_like(output)
    got = torch.autograd.grad(output, tensors, d_output)
    for x, y in zip(got, gradients(tensors, d_output, causal=causal or None)):
        assert (x.double() - y).norm() <= 1e-5 * y.norm()


@pytest.mark.parametrize("n", [300, 5000])
def test_long_sums_of_float32(n):
    """Tensor cores drop the last bits of sums instead of rounding them: that must not add up."""
    tensors = recorded(m=300, n=n, d=64, dtype=torch.float32)
    output = attn.attention(*tensors)
    d_output = torch.randn_like(output)
    wanted = reference(*tensors)[0]
    assert (output.double() - wanted).norm() <= 1e-6 * wanted.norm()
    got = torch.autograd.grad(output, tensors, d_output)
    for x, y in zip(got, gradients(tensors, d_output)):
        assert (x.double() - y).norm() <= 2e-6 * y.norm()


@pytest.mark.parametrize("d, is_served", [(64, True), (256, False)])
def test_float32_of_pytorch(d, is_served):
    """Gradients of 256 columns are PyTorch's."""
    tensors = recorded(d=d, dtype=torch.float32)
    served, fallbacks = ours.served.total(), ours.fallbacks.total()
    output = ours.scaled_dot_product_attention(*tensors, enable_gqa=True)
    assert ours.served.total() - served == is_served
    assert ours.fallbacks.total() - fallbacks == (not is_served)
    check(output, reference(*tensors)[0], torch.float32)
    d_output = torch.randn_like(output)
    got = torch.autograd.grad(output, tensors, d_output)
    for x, y in zip(got, gradients(tensors, d_output)):
        assert (x.double() - y).norm() <= 1e-5 * y.norm()


@pytest.mark.parametrize("m,n", [(1, 1), (1, 1000), (127, 129), (128, 128), (129, 127), (513, 64)])
@pytest.mark.parametrize("causal", [False, "top_left", "bottom_right"])
def test_lengths(m, n, causal):
    q, k, v = inputs(m=m, n=n, d=128)
    check(attn.attention(q, k, v, causal=causal), reference(q, k, v, causal=causal)[0])


@pytest.mark.parametrize("h,hkv", [(1, 1), (8, 8), (8, 2), (6, 1)])
def test_head_groups(h, hkv):
    q, k, v = inputs(h=h, hkv=hkv)
    check(attn.attention(q, k, v), reference(q, k, v)[0])


def test_value_columns():
    q, k, v = inputs(d=128, dv=64)
    output = attn.attention(q, k, v)
    assert output.shape[-1] == 64
    check(output, reference(q, k, v)[0])


@pytest.mark.parametrize("window", [(16, 0), (100, 50), (-1, 0), (0, 0), (None, 3)])
def test_windows(window):
    q, k, v = inputs(m=300, n=300)
    sides = tuple(-1 if side is None else side for side in window)
    check(attn.attention(q, k, v, window=window), reference(q, k, v, window=sides)[0])


def test_rows_without_keys():
    q, k, v = inputs(m=300, n=100)
    output, lse = attn.attention(q, k, v, causal=True, return_lse=True)
    assert (output[:, :, :200] == 0).all() and (lse[:, :, :200] == -torch.inf).all()
    check(output, reference(q, k, v, causal="bottom_right")[0])


def test_no_keys():
    q, k, v = inputs(n=0)
    output, lse = attn.attention(q, k, v, return_lse=True)
    assert (output == 0).all() and (lse == -torch.inf).all()


def test_no_rows():
    q, k, v = inputs(m=0)
    assert attn.attention(q, k, v).shape == (2, 4, 0, 64)


def test_scale_and_sink():
    q, k, v = inputs()
    sink = torch.randn(4, device=DEVICE)
    output, lse = attn.attention(q, k, v, scale=0.3, sink=sink, return_lse=True)
    wanted = reference(q, k, v, scale=0.3, sink=sink)
    check(output, wanted[0])
    check(lse, wanted[1], torch.float32)
    check(
        attn.attention(q, k, v, sink=sink.bfloat16()), reference(q, k, v, sink=sink.bfloat16())[0]
    )


def test_large_scores():
    q, k, v = (x * 30 for x in inputs(d=128))
    check(attn.attention(q, k, v / 30), reference(q, k, v / 30)[0])


# ===- Layouts --------------------------------------------------------------------------------===#


def test_transposed_views():
    q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs())
    assert not q.is_contiguous()
    check(attn.attention(q, k, v), reference(q, k, v)[0])


@pytest.mark.parametrize("d,dv", [(64, 64), (128, 64)])
def test_rows_first(d, dv):
    q, k, v = (x.transpose(1, 2).contiguous() for x in inputs(d=d, dv=dv))
    output = attn.attention(q, k, v, layout="bshd", causal=True)
    assert output.is_contiguous() and output.shape == (2, 200, 4, dv)
    wanted = reference(*(x.transpose(1, 2) for x in (q, k, v)), causal="bottom_right")[0]
    check(output.transpose(1, 2), wanted)


def test_packed_projection():
    packed = torch.randn(2, 150, 3, 4, 64, device=DEVICE).bfloat16()
    q, k, v = packed.unbind(2)
    wanted = reference(*(x.transpose(1, 2) for x in (q, k, v)))[0]
    check(attn.attention(q, k, v, layout="bshd").transpose(1, 2), wanted)


def test_padded_and_sliced():
    wide = [torch.randn(2, 4, 400, 96, device=DEVICE).bfloat16() for _ in range(3)]
    q, k, v = wide[0][:, :, 50:250, 16:80], wide[1][:, :2, 3:, :64], wide[2][:, 2:, 3:, 32:]
    check(attn.attention(q, k, v), reference(q, k, v)[0])


def test_broadcast_batch():
    q, _, _ = inputs(b=3)
    k, v = (torch.randn(1, 2, 99, 64, device=DEVICE).bfloat16().expand(3, -1, -1, -1) for _ in "kv")
    check(attn.attention(q, k, v), reference(q, k, v)[0])


# ===- Functions ------------------------------------------------------------------------------===#


def test_score_with_captured_tensor():
    q, k, v = inputs()
    slopes = torch.rand(4, device=DEVICE)
    score = lambda s, b, h, i, j: s - slopes[h] * abs(i - j)
    check(attn.attention(q, k, v, score=score), reference(q, k, v, score=score)[0])


def test_gradients_of_captured_tensors():
    q, k, v = [x.requires_grad_() for x in inputs()]
    slopes = torch.rand(4, device=DEVICE, requires_grad=True)
    bias = torch.randn(k.shape[2], device=DEVICE).bfloat16().requires_grad_()
    score = lambda s, b, h, i, j: s - slopes[h] * abs(i - j) + bias[j]
    output = attn.attention(q, k, v, score=score)
    wide = [x.detach().double().requires_grad_() for x in (q, k, v, slopes, bias)]

    def define(s, b, h, i, j):
        return s - wide[3][h] * abs(i - j) + wide[4][j]

    expected = torch.autograd.grad(reference(*wide[:3], score=define)[0].sum(), wide)
    got = torch.autograd.grad(output.sum(), (q, k, v, slopes, bias))
    for x, y in zip(got, expected):
        assert (x.double() - y).norm() <= 2e-2 * y.norm()


def test_gradients_of_captured_numbers():
    q, k, v = inputs()
    heat = torch.tensor(1.5, device=DEVICE, requires_grad=True)
    got = attn.attention(q, k, v, score=lambda s, b, h, i, j: s * heat)
    wide = heat.detach().double().requires_grad_()
    expected = reference(q, k, v, score=lambda s, b, h, i, j: s * wide)[0]
    weights = torch.randn_like(got)
    (mine,) = torch.autograd.grad(got, heat, weights)
    (other,) = torch.autograd.grad(expected, wide, weights.double())
    assert (mine.double() - other).abs() <= 2e-2 * other.abs()


def test_relative_bias():
    q, k, v = inputs(m=70, n=70)
    bias = torch.randn(4, 139, device=DEVICE)
    score = lambda s, b, h, i, j: s + bias[h, i - j + 69]
    check(attn.attention(q, k, v, score=score), reference(q, k, v, score=score)[0])


def test_captures_of_any_strides():
    q, k, v = inputs(m=70, n=90)
    bias = torch.randn(70, 90, 4, device=DEVICE)
    rows = bias.permute(2, 0, 1).contiguous()
    for x in (
        rows,
        bias.permute(2, 0, 1),
        rows[..., :1].expand(4, 70, 90),
        rows.mT.contiguous().mT,
    ):
        score = lambda s, b, h, i, j: s + x[h, i, j]
        mask = lambda b, h, i, j: (x[h, i, j] > -1) | (j == 0)
        check(attn.attention(q, k, v, score=score), reference(q, k, v, score=score)[0])
        kernel = attn.compile("bfloat16", 64, mask=mask, device="cuda")
        check(kernel(q, k, v), reference(q, k, v, mask=mask)[0])


def test_softcap():
    q, k, v = inputs()
    capped = attn.attention(q, k, v, score=lambda s, b, h, i, j: attn.tanh(s / 5.0) * 5.0)
    wanted = reference(q, k, v, score=lambda s, b, h, i, j: torch.tanh(s / 5.0) * 5.0)[0]
    check(capped, wanted)


def test_mask_of_documents():
    q, k, v = inputs(m=333, n=333)
    ids = torch.randint(0, 4, (2, 333), device=DEVICE, dtype=torch.int32).sort(1).values
    mask = lambda b, h, i, j: (ids[b, i] == ids[b, j]) & (j <= i)
    check(attn.attention(q, k, v, mask=mask), reference(q, k, v, mask=mask)[0])


def test_key_lengths():
    q, k, v = inputs()
    lengths = torch.tensor([100, 0], device=DEVICE, dtype=torch.int32)
    mask = lambda b, h, i, j: j < lengths[b]
    output, lse = attn.attention(q, k, v, mask=mask, return_lse=True)
    wanted = reference(q, k, v, mask=mask)
    check(output, wanted[0])
    check(lse, wanted[1], torch.float32)


@pytest.mark.parametrize("number", [2**63 - 1, 2**62, 2**31, 2**31 - 1, 3, -(2**31), -(2**63)])
def test_numbers_beyond_all_positions(number):
    """An index has 32 bits here."""
    q, k, v = inputs(m=200, n=333)
    limits = torch.tensor([number, 3], device=DEVICE)
    limit = torch.tensor(number, device=DEVICE)
    rows = limits.repeat(100)
    for mask in (
        lambda b, h, i, j: j - i <= limits[b],
        lambda b, h, i, j: (j - i >= limits[b]) | (j < 2),
        lambda b, h, i, j: j < limits[b],
        lambda b, h, i, j: i - j < limit,
        lambda b, h, i, j: j <= rows[i],
        lambda b, h, i, j: (i - j <= 10**12) & (j <= i),
        lambda b, h, i, j: (i * 100000007 + j) % 7 != 0,
        lambda b, h, i, j: (limits[b] // 3 + i - j) % 5 != 0,
    ):
        check(attn.attention(q, k, v, mask=mask), reference(q, k, v, mask=mask)[0])


def test_sums_with_the_largest_number_of_32_bits():
    q, k, v = inputs(m=200, n=333)
    limits = torch.tensor([2**31 - 1, 3], device=DEVICE, dtype=torch.int32)
    got = attn.attention(q, k, v, mask=lambda b, h, i, j: j <= i + limits[b])
    wanted = reference(q, k, v, mask=lambda b, h, i, j: j - i <= limits[b])[0]
    check(got, wanted)


def test_differences_of_large_numbers():
    """As of times in nanoseconds."""
    q, k, v = inputs(m=333, n=333)
    times = 10**18 + torch.randint(0, 9, (333,), device=DEVICE).cumsum(0)
    mask = lambda b, h, i, j: times[i] - times[j] <= 40
    check(attn.attention(q, k, v, mask=mask), reference(q, k, v, mask=mask)[0])


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_documents_with_the_largest_number(dtype):
    """The last document is padding, with a number that no other has."""
    q, k, v = inputs(m=333, n=333)
    ids = torch.randint(0, 4, (333,), device=DEVICE).sort().values.to(dtype)
    ids[300:] = torch.iinfo(dtype).max
    ordered = attn.assume_sorted(ids)
    got = attn.attention(q, k, v, mask=lambda b, h, i, j: ordered[i] == ordered[j])
    wanted = reference(q, k, v, mask=lambda b, h, i, j: ids[i] == ids[j])[0]
    check(got, wanted)


def test_captured_number():
    q, k, v = inputs()
    factor = torch.tensor(0.5, device=DEVICE)
    for value in (0.5, 2.0):
        factor.fill_(value)
        score = lambda s, b, h, i, j: s * factor
        check(attn.attention(q, k, v, score=score), reference(q, k, v, score=score)[0])


# ===- Kernels, streams, graphs ---------------------------------------------------------------===#


def test_compiled_kernel():
    kernel = attn.compile("bfloat16", 64, causal=True, device="cuda", return_lse=True)
    assert kernel.device == "cuda:0" and kernel.load_ms > 0
    for m, n in ((1, 500), (77, 77)):
        q, k, v = inputs(m=m, n=n)
        check(kernel(q, k, v)[0], reference(q, k, v, causal="bottom_right")[0])


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_calls_take_the_short_way(monkeypatch, layout):
    if _direct.extension is None or not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("calls of plain tensors take the general way")
    kernel = attn.compile("bfloat16", 64, device="cuda", layout=layout)
    monkeypatch.setattr(_plan, "Tensors", None)
    q, k, v = inputs()
    rows = [x.transpose(1, 2) for x in (q, k, v)]
    output = kernel(q, k, v) if layout == "bhsd" else kernel(*rows).transpose(1, 2)
    check(output, reference(q, k, v)[0])


def test_explain():
    text = attn.explain("bfloat16", 128, causal=True, device="cuda", until="ptx")
    for part in ("// schedule", "// mask-tiles", "// floors", " wgmma", " registers", ".version"):
        assert part in text


def test_current_stream():
    q, k, v = inputs()
    attn.attention(q, k, v)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    wanted = reference(q, k, v)[0]
    before = q.clone()
    q.zero_()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        q.copy_(before)
        output = attn.attention(q, k, v)
        # Queued behind the sleep, and only queued.
        assert not stream.query()
    stream.synchronize()
    check(output, wanted)


def test_graph():
    q, k, v = inputs(d=128)
    attn.attention(q, k, v, causal=True)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = attn.attention(q, k, v, causal=True)
    for _ in range(3):
        for x in (q, k, v):
            x.copy_(torch.randn_like(x))
        output.zero_()
        graph.replay()
        torch.cuda.synchronize()
        check(output, reference(q, k, v, causal="bottom_right")[0])


def test_allocates_only_the_output():
    q, k, v = inputs(m=1024, n=1024)
    attn.attention(q, k, v)
    before = torch.cuda.memory_allocated()
    output = attn.attention(q, k, v)
    assert torch.cuda.memory_allocated() - before == output.numel() * output.element_size()


def test_threads():
    q, k, v = inputs()
    wanted = reference(q, k, v)[0]
    outputs = [None] * 8

    def work(index):
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(50):
                outputs[index] = attn.attention(q, k, v)
            torch.cuda.current_stream().synchronize()

    torch.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for output in outputs:
        check(output, wanted)


# ===- Mistakes -------------------------------------------------------------------------------===#


def raises(message, *arguments, code="invalid argument", call=attn.attention, **options):
    with pytest.raises(attn.Error) as error:
        call(*arguments, **options)
    assert message in str(error.value)
    assert error.value.code == code
    torch.cuda.synchronize()


def test_mistakes():
    q, k, v = inputs()
    raises("k: expected a tensor on cuda:0, got one on cpu", q, k.cpu(), v)
    raises(
        "v: expected a tensor on the CPU, as the others are, got one on cuda:0", q.cpu(), k.cpu(), v
    )
    raises(
        "k: expected a tensor on cuda:0, got a NumPy array",
        q,
        np.zeros((2, 2, 333, 64), "float32"),
        v,
    )
    raises("k: expected the type of q", q, k.half(), v)
    raises("sink: expected a tensor on cuda:0, got one on cpu", q, k, v, sink=torch.zeros(4))
    raises("expected no device", q, k, v, options={"device": "cuda"})
    slopes = torch.rand(4)
    raises(
        "slopes: expected a tensor on cuda:0, got one on cpu",
        q,
        k,
        v,
        score=lambda s, b, h, i, j: s * slopes[h],
    )


def test_misalignment():
    q, k, v = inputs()
    room = torch.zeros(q.numel() + 8, device=DEVICE, dtype=q.dtype)
    shifted = room[1 : 1 + q.numel()].view(q.shape)
    raises("q: expected data aligned to 16 bytes", shifted, k, v)
    odd = torch.zeros(2, 4, 200, 66, device=DEVICE, dtype=q.dtype)[..., :64]
    raises(
        "q: expected strides of a multiple of 8 elements (16 bytes), got 66 in dimension 2",
        odd,
        k,
        v,
    )
    across = q.transpose(2, 3).contiguous().transpose(2, 3)
    raises("q: expected a contiguous last dimension, got a stride of 200", across, k, v)
    check(attn.attention(odd.contiguous(), k, v), reference(odd, k, v)[0])


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_two_devices():
    q, k, v = inputs()
    raises("k: expected a tensor on cuda:0, got one on cuda:1", q, k.to("cuda:1"), v)
    there = [x.to("cuda:1") for x in (q, k, v)]
    output = attn.attention(*there)
    assert output.device == there[0].device
    check(output.to("cuda:0"), reference(q, k, v)[0])


def run_alone(code, **environment):
    """Another process; its standard output."""
    done = subprocess.run(
        [sys.executable, "-c", "import warnings, torch, attn\n" + code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_compiling_in_a_capture_is_refused():
    # A process of its own: the driver gives up the capture.
    message = run_alone(
        "x = torch.zeros(1, 1, 64, 64, device='cuda', dtype=torch.bfloat16)\n"
        "attn.attention(x, x, x)\n"
        "try:\n"
        "    with torch.cuda.graph(torch.cuda.CUDAGraph()):\n"
        "        try:\n"
        "            attn.attention(x, x, x, causal=True)\n"
        "        except attn.Error as error:\n"
        "            print(error.code)\n"
        "except RuntimeError:\n"
        "    pass\n"
    )
    assert message in ("capture in progress", ""), message


def test_disk(tmp_path):
    code = (
        "kernel = attn.compile('bfloat16', 64, window=(7, 7), device='cuda')\n"
        "print(kernel.is_from_disk, kernel.compile_ms > 0)\n"
    )
    where = {"ATTN_CACHE": "1", "ATTN_CACHE_DIR": str(tmp_path / "cache")}
    assert run_alone(code, **where) == "False True"
    assert run_alone(code, **where) == "True False"
    assert run_alone(code, **{**where, "ATTN_CACHE": "0"}) == "False True"
    # The list of kernels, and the kernel of most calls.
    entries = sorted((tmp_path / "cache").glob("*.kernel"))
    assert len(entries) == 2
    for entry, cut in itertools.product(entries, (False, True)):
        damaged = bytearray(entry.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        entry.write_bytes(damaged[: len(damaged) // 3] if cut else damaged)
        warned = run_alone(
            "with warnings.catch_warnings(record=True) as caught:\n"
            "    warnings.simplefilter('always')\n    "
            + code.replace("\n", "\n    ")
            + "\nprint(caught[0].message)",
            **where,
        )
        assert warned.startswith("False True") and "damaged" in warned
        assert run_alone(code, **where) == "True False"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("d, dv", [(64, 64), (128, 128), (80, 40)])
@pytest.mark.parametrize("m, n", [(200, 333), (1, 7), (129, 127), (333, 64)])
def test_gradients(dtype, d, dv, m, n):
    tensors = recorded(m=m, n=n, d=d, dv=dv, dtype=dtype)
    for how in ({}, {"causal": "top_left"}):
        output = attn.attention(*tensors, **how)
        d_output = torch.randn_like(output)
        got = torch.autograd.grad(output, tensors, d_output)
        check_gradients(got, gradients(tensors, d_output, **how))


def test_gradients_of_variants():
    tensors = recorded()
    slopes = torch.rand(4, device=DEVICE)
    for how in (
        {"window": (50, 0), "causal": "bottom_right"},
        {"scale": 0.2},
        {"score": lambda s, b, h, i, j: s - slopes[h] * abs(i - j)},
        {"mask": lambda b, h, i, j: (i + j) % 3 == 0},
    ):
        output, lse = attn.attention(*tensors, return_lse=True, **how)
        d_output, d_lse = torch.randn_like(output), torch.randn_like(lse)
        got = torch.autograd.grad((output, lse), tensors, (d_output, d_lse))
        if "score" in how:
            how["score"] = lambda s, b, h, i, j: s - slopes.double()[h] * (i - j).abs()
        check_gradients(got, gradients(tensors, d_output, d_lse, **how))


def test_gradients_of_rows_first_and_strange_outputs():
    rows = [x.detach().transpose(1, 2).contiguous().requires_grad_() for x in inputs()]
    output = attn.attention(*rows, layout="bshd")
    whole = [x.transpose(1, 2) for x in rows]
    b, m, h, dv = output.shape
    for d_output in (
        torch.ones_like(output),
        torch.randn(b, 1, h, dv, device=DEVICE, dtype=output.dtype).expand(output.shape),
        torch.randn(b, h, m, dv, device=DEVICE, dtype=output.dtype).transpose(1, 2),
        torch.randn(output.numel() + 1, device=DEVICE, dtype=output.dtype)[1:].view(output.shape),
    ):
        got = torch.autograd.grad(output, rows, d_output, retain_graph=True)
        wanted = gradients(whole, d_output.transpose(1, 2))
        check_gradients([x.transpose(1, 2) for x in got], wanted)


def test_gradients_of_two_passes_are_the_same_bits():
    tensors = recorded(b=3)
    d_output = torch.randn(3, 4, 200, 64, device=DEVICE, dtype=torch.bfloat16)
    how = dict(causal=True, options={"fused": "off"})
    first = torch.autograd.grad(attn.attention(*tensors, **how), tensors, d_output)
    for _ in range(5):
        again = torch.autograd.grad(attn.attention(*tensors, **how), tensors, d_output)
        assert all(torch.equal(x, y) for x, y in zip(first, again))
    one = [x[1:2].detach().requires_grad_() for x in tensors]
    alone = torch.autograd.grad(attn.attention(*one, **how), one, d_output[1:2])
    assert all(torch.equal(x[1:2], y) for x, y in zip(first, alone))


def test_gradients_on_another_stream():
    tensors = recorded()
    attn.attention(*tensors).sum().backward()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(int(1e7))
        fresh = [(x.detach() * 2).requires_grad_() for x in tensors]
        output = attn.attention(*fresh)
        got = torch.autograd.grad(output, fresh, torch.ones_like(output))
    stream.synchronize()
    check_gradients(got, gradients(fresh, torch.ones_like(output)))


# ===- Dropout ---------------------------------------------------------------------------------===#


def test_dropout():
    """The weights that NumPy's Philox keeps, forward and backward."""
    from test_dropout import draw

    tensors = recorded()
    wide = [x.detach().double().requires_grad_() for x in tensors]
    factors = torch.from_numpy(draw(7, 0.3, 2, 4, 200, 333)).to(DEVICE)
    s = wide[0] @ wide[1].repeat_interleave(2, 1).mT / 8
    expected = (torch.softmax(s, 3) * factors) @ wide[2].repeat_interleave(2, 1)
    got = attn.attention(*tensors, dropout_p=0.3, dropout_seed=7)
    check(got, expected.detach())
    d_output = torch.randn_like(got)
    found = torch.autograd.grad(got, tensors, d_output)
    check_gradients(found, torch.autograd.grad(expected, wide, d_output.double()))


def test_drawn_seeds():
    """By torch.manual_seed; a seed in memory changes replays of a graph, and so does a generator."""
    q, k, v = inputs()
    kernel = attn.compile("bfloat16", 64, dropout_p=0.3, device="cuda")
    call = lambda seed=None: attn.attention(q, k, v, dropout_p=0.3, dropout_seed=seed)
    torch.manual_seed(1)
    first, second = call(), kernel(q, k, v)
    torch.manual_seed(1)
    assert torch.equal(first, kernel(q, k, v)) and not torch.equal(first, second)
    seed = torch.tensor([5], device=DEVICE)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        given, drawn = call(seed), call()
    results = []
    for number in (5, 6, 5):
        seed.fill_(number)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(given, call(number))
        results.append(drawn.clone())
    assert not torch.equal(results[0], results[2])


def test_compiled_dropout():
    pytest.importorskip("torch._inductor")
    q, k, v = recorded()
    whole = torch.compile(
        lambda *x: attn.attention(*x, dropout_p=0.3), backend="aot_eager", fullgraph=True
    )
    torch.manual_seed(1)
    expected = attn.attention(q, k, v, dropout_p=0.3)
    torch.manual_seed(1)
    got = whole(q, k, v)
    assert torch.equal(got, expected)
    weights = torch.randn_like(got)
    for mine, other in zip(
        torch.autograd.grad(got, (q, k, v), weights),
        torch.autograd.grad(expected, (q, k, v), weights),
    ):
        assert torch.equal(mine, other)
