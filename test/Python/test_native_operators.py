"""attn::record and attn::backward of libattn_torch.so: the same bits as those of Python, from the same text,
and no Python between the code of Inductor and the kernel."""

import ctypes
import os
import subprocess
import sys

import pytest

import attn
from attn import _library

torch = pytest.importorskip("torch")
from attn import _operator, _watched, _written  # noqa: E402  They import PyTorch.
from same_bits import check_same  # noqa: E402

B, H, HKV, M, N, D, DV = 2, 4, 2, 37, 41, 32, 16
needs_native = pytest.mark.skipif(not _operator.is_native, reason="no libattn_torch.so")


def make(dtype=torch.float32, rows_first=False):
    """The arguments of a call with everything: a sink, and captured tensors of three ranks."""
    shapes = (B, H, M, D), (B, HKV, N, D), (B, HKV, N, DV)
    tensors = [torch.randn(shape).to(dtype) for shape in shapes]
    if rows_first:
        tensors = [x.transpose(1, 2).contiguous() for x in tensors]
    table, few, seen = torch.randn(H, N).to(dtype), torch.randn(()), torch.rand(B, N) < 0.8
    kernel = attn.compile(
        dtype,
        D,
        DV,
        causal="bottom_right",
        window=(30, 9),
        scale=True,
        sink=True,
        score=lambda s, b, h, i, j: s + table[h, j] * few * few,
        mask=lambda b, h, i, j: seen[b, j],
        options={"block_m": 32},
    )
    text = _written.write_source(kernel._plan)
    return (*tensors, torch.randn(H), [table, few, seen], text, 0.2, rows_first)


def make_plain(**how):
    q, k, v = torch.randn(B, H, M, D), torch.randn(B, HKV, N, D), torch.randn(B, HKV, N, DV)
    kernel = attn.compile(torch.float32, D, DV, **how)
    return q, k, v, None, None, _written.write_source(kernel._plan), None, False


def make_backward(call, wanted, d_lse=None, low=None):
    q, k, v, sink, captures, *last = call
    output, lse, _ = _operator._record(*call)
    given = q, k, v, sink, captures, output, lse
    return (torch.randn_like(output), d_lse, *given, *last, wanted, low)


ALL, NONE = [True] * 6 + [False], [False] * 7
SOME = [ALL, [False, True, False, True, False, True, False], [*NONE[:4], True, *NONE[5:]]]


@pytest.mark.parametrize("rows_first", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("end", ["", "_plain"])
def test_the_same_bits_as_python(dtype, rows_first, end):
    call = make(dtype, rows_first)
    recorded = getattr(torch.ops.attn, f"record{end}")(*call)
    check_same(recorded, _operator._record(*call))
    for wanted in SOME if dtype == torch.float32 else [ALL]:
        for d_lse in (None, torch.randn(B, H, M)):
            for low in (None, recorded[2]):
                given = make_backward(call, wanted, d_lse, low)
                found = getattr(torch.ops.attn, f"backward{end}")(*given)
                assert len(found) == sum(wanted)
                check_same(found, _operator.backward(*given))
    assert torch.ops.attn.backward(*make_backward(call, NONE)) == []


def test_gradients_of_any_strides():
    """Kernels do not read all that autograd hands over."""
    call = make_plain()
    first, *rest = make_backward(call, [True] * 4)
    rest[rest.index([True] * 4)] = [True] * 3 + [False]
    for d_output in (
        first[:, :, :1].expand(first.shape),
        first.transpose(1, 2).contiguous().transpose(1, 2),
        torch.cat([first, first], -1)[..., ::2],
        torch.randn(first.numel() + 1)[1:].view(first.shape),
        torch.randn(()).expand(first.shape),
    ):
        d_lse = torch.randn(B, H, 1).expand(B, H, M)
        arguments = (d_output, d_lse, *rest[1:])
        check_same(torch.ops.attn.backward(*arguments), _operator.backward(*arguments))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_sinks_of_other_floats(dtype):
    call = make()
    other = (*call[:3], call[3].to(dtype), *call[4:])
    check_same(torch.ops.attn.record(*other), _operator._record(*other))


def test_empty_batches():
    q, k, v, *rest = make_plain()
    call = (q[:0], k[:0], v[:0], *rest)
    check_same(torch.ops.attn.record(*call), _operator._record(*call))
    given = make_backward(call, [True] * 3 + [False])
    check_same(torch.ops.attn.backward(*given), _operator.backward(*given))


def refused(message, operator, python, *arguments):
    """Exceptions of C++ are RuntimeErrors until attn.attention translates them."""
    with pytest.raises(attn.Error) as wanted:
        python(*arguments)
    with pytest.raises((attn.Error, RuntimeError)) as got:
        operator(*arguments)
    with pytest.raises(attn.Error) as translated, _watched._as_errors():
        raise got.value
    assert message in str(wanted.value) and str(translated.value) == str(wanted.value)
    assert translated.value.code == wanted.value.code


def test_the_same_errors_as_python():
    q, k, v, sink, captures, text, scale, rows_first = make()
    last = text, scale, rows_first

    def check(message, *arguments):
        refused(message, torch.ops.attn.record, _operator._record, *arguments)

    half = [x.half() for x in (q, k, v)]
    check("got torch.float16", *half, sink, captures, *last)
    check("scale: expected one", q, k, v, sink, captures, text, None, rows_first)
    check("f32 holds, got 1e+300", q, k, v, sink, captures, text, 1e300, rows_first)
    check("sink: expected one", q, k, v, None, captures, *last)
    check("captures: expected 3, as the source says, got 2", q, k, v, sink, captures[:2], *last)
    got = "q: expected 4 dimensions, (B, H, S, D), got shape (4, 37, 32)"
    check(got, q[0], k, v, sink, captures, *last)
    given = list(make_backward(make(), ALL))
    # The scale, after the source.
    given[10] = None
    refused("scale: expected one", torch.ops.attn.backward, _operator.backward, *given)


@needs_native
@pytest.mark.parametrize("damage", ["{", '{"problem": {}}', '{"problem": "\\u12', "[" * 5000])
def test_damaged_sources(damage):
    q, k, v, _, _, text, *_ = make_plain()
    broken = text.rpartition("// pieces ")[0] + "// pieces " + damage
    with pytest.raises(RuntimeError, match="source: expected what attn wrote"):
        torch.ops.attn.record(q, k, v, None, None, broken, None, False)


@needs_native
def test_sources_are_kept_up_to_a_bound():
    """A mask per call must not fill the memory."""
    q, k, v, _, _, text, *_ = make_plain()
    library = ctypes.CDLL(str(_library.library_path.parent / "libattn_torch.so"))
    library.attn_torch_count_programs.restype = ctypes.c_size_t
    for i in range(600):
        with pytest.raises(RuntimeError, match="scale: expected none"):
            torch.ops.attn.record_plain(q, k, v, None, None, f"// {i} {text}", 1.0, False)
    assert library.attn_torch_count_programs() == 512
    # One that was dropped is read again.
    call = q, k, v, None, None, f"// 0 {text}", None, False
    check_same(torch.ops.attn.record_plain(*call), _operator._record(*call))


PROGRAM = """
import sys, torch
from attn import _operator
calls = torch.load(sys.argv[1])
assert _operator.is_native == (sys.argv[2] == "native")
for call in calls["record"]:
    torch.ops.attn.record(*call)
for call in calls["backward"]:
    torch.ops.attn.backward(*call)
"""


@needs_native
def test_the_same_text_as_python(tmp_path):
    """What one compiled the other finds on disk, by its text."""
    dropped = make_plain(dropout_p=0.25)
    dropped = (*dropped[:4], [torch.tensor([3])], *dropped[5:])
    calls = {"record": [make(torch.bfloat16), make_plain(), dropped], "backward": []}
    for call in calls["record"]:
        low = _operator._record(*call)[2]
        for d_lse in (None, torch.randn(B, H, M)):
            for wanted in SOME if call[4] and len(call[4]) == 3 else ([True] * 3,):
                calls["backward"].append(make_backward(call, wanted, d_lse, low))
    torch.save(calls, tmp_path / "calls")
    counts = []
    for native in ("python", "native"):
        subprocess.run(
            [sys.executable, "-B", "-c", PROGRAM, str(tmp_path / "calls"), native],
            env={
                **os.environ,
                "PYTHONPATH": os.path.dirname(os.path.dirname(attn.__file__)),
                "ATTN_CACHE": "1",
                "ATTN_CACHE_DIR": str(tmp_path / "cache"),
                "ATTN_NATIVE_OPERATORS": "0" if native == "python" else "1",
            },
            check=True,
            timeout=600,
        )
        counts.append(sorted(str(x) for x in (tmp_path / "cache").rglob("*.kernel")))
    assert len(counts[0]) == 3 + 10 and counts[0] == counts[1]


def test_code_of_inductor_calls_the_plain_operators():
    pytest.importorskip("torch._inductor")
    from torch._inductor.utils import run_fw_bw_and_get_code

    q, k, v = [x.requires_grad_() for x in make_plain()[:3]]

    def call(q, k, v):
        return attn.attention(q * 2, k, v, causal=True) + 1

    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=True):
        found, code = run_fw_bw_and_get_code(lambda: torch.compile(call, fullgraph=True)(q, k, v))
    text = "\n".join(code)
    assert "torch.ops.attn.record_plain.default(" in text
    assert "torch.ops.attn.backward_plain.default(" in text
    assert "torch.ops.attn.record.default(" not in text
    got = [x.grad for x in (q, k, v)]
    wanted = torch.autograd.grad(call(q, k, v).sum(), (q, k, v))
    assert torch.allclose(found, call(q, k, v), atol=1e-5)
    for x, y in zip(got, wanted):
        assert torch.allclose(x, y, atol=1e-5)


def test_code_on_disk_is_found_by_its_number(monkeypatch, tmp_path):
    """Another version of attn may have other operators (`CODE`)."""
    pytest.importorskip("torch._inductor")
    from torch._dynamo.utils import counters

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    q, k, v = make_plain()[:3]

    def count_missed(code):
        monkeypatch.setattr(_written, "CODE", code)
        torch._dynamo.reset()
        counters.clear()
        torch.compile(lambda *x: attn.attention(*x, causal=True), fullgraph=True)(q, k, v)
        found = counters["aot_autograd"] + counters["inductor"]
        return found["autograd_cache_miss"] + found["fxgraph_cache_miss"]

    assert count_missed("// code 1") > 0
    assert count_missed("// code 1") == 0
    assert count_missed("// code 2") > 0


@needs_native
def test_compiled_calls_enter_no_python_of_attn():
    pytest.importorskip("torch._inductor")
    q, k, v = [x.requires_grad_() for x in make_plain()[:3]]
    torch._dynamo.reset()
    compiled = torch.compile(lambda q, k, v: attn.attention(q * 2, k, v), fullgraph=True)
    for _ in range(2):
        compiled(q, k, v).sum().backward()
    folder, entered = os.path.dirname(attn.__file__), []

    def watch(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(folder):
            entered.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")

    sys.setprofile(watch)
    try:
        output = compiled(q, k, v)
        # On the CPU autograd runs backward in this thread.
        output.backward(torch.ones_like(output))
    finally:
        sys.setprofile(None)
    assert not entered


def test_exported_programs_that_record_learn_elsewhere(tmp_path):
    """A graph that autograd was decomposed in holds attn::record, which learns again."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.eye(16))

        def forward(self, x):
            text = self.text
            x = x @ self.weight
            return torch.ops.attn.record(x, x, x, None, None, text, None, False)[0]

    model = Model()
    model.text = _written.write_source(attn.compile(torch.float32, 16, 16)._plan)
    x = torch.randn(2, 2, 12, 16)
    program = torch.export.export(model, (x,))
    model(x).square().sum().backward()
    torch.export.save(program, tmp_path / "model.pt2")
    torch.save((x, model.weight.grad), tmp_path / "tensors")
    text = (
        "import sys, torch, attn.integrations.torch\n"
        "x, wanted = torch.load(sys.argv[1] + '/tensors')\n"
        "model = torch.export.load(sys.argv[1] + '/model.pt2').module()\n"
        "model(x).square().sum().backward()\n"
        "[weight] = model.parameters()\n"
        "print(torch.allclose(weight.grad, wanted, atol=1e-5))\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-W", "ignore", "-c", text, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(attn.__file__))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.split() == ["True"], done.stderr[-2000:]
