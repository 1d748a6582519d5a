"""Kernels, caches, threads, texts."""

import gc
import inspect
import threading
import weakref

import numpy as np
import pytest

import attn
import reference
from attn import _eager, _log, _plan
from attn._trace import Trace


def test_version():
    assert attn.__version__.count(".") == 2


def test_a_kernel_serves_all_lengths(make):
    kernel = attn.compile("float32", 16, 8, causal=True, scale=True, sink=True, return_lse=True)
    assert kernel.compile_ms > 0 and "attn.causal<bottom_right>" in kernel.source
    for b, h, m, n in [(1, 2, 1, 1), (2, 4, 127, 129), (1, 6, 3, 200)]:
        q, k, v = make(b=b, h=h, hkv=2, m=m, n=n, dv=8)
        sink = np.linspace(-1, 1, h).astype("float32")
        output, lse = kernel(q, k, v, scale=0.5, sink=sink)
        wanted, wanted_lse = reference.attention(
            q, k, v, causal="bottom_right", scale=0.5, sink=sink
        )
        reference.check(output, wanted)
        reference.check(lse, wanted_lse)


def test_a_kernel_keeps_its_captured_arrays(make):
    q, k, v = make()
    slopes = np.float32([1, 2, 3, 4])
    kernel = attn.compile("float32", 16, score=lambda s, b, h, q, kv: s * slopes[h], layout="bshd")
    kept, slopes = slopes, None
    gc.collect()
    wanted = reference.attention(q, k, v, score=lambda s, b, h, q, kv: s * kept[h])[0]
    reference.check(kernel(*(x.swapaxes(1, 2) for x in (q, k, v))).swapaxes(1, 2), wanted)


def test_warm_calls_neither_trace_nor_compile(make, monkeypatch):
    inputs, traced = make(), []
    run = Trace.run
    monkeypatch.setattr(
        Trace,
        "run",
        lambda self, function, *rest: traced.append(function) or run(self, function, *rest),
    )

    def make_score(factor, slopes):
        return lambda s, b, h, q, kv: s * slopes[h] * factor

    def call(factor, slopes):
        score = make_score(factor, slopes)
        reference.check(
            attn.attention(*inputs, score=score), reference.attention(*inputs, score=score)[0]
        )

    call(2.5, np.float32([1, 2, 3, 4]))
    call(2.5, np.float32([4, 3, 2, 1]))
    assert len(traced) == 1
    kernels = _log.count_compiled()
    call(3.5, np.float32([4, 3, 2, 1]))
    assert len(traced) == 2 and _log.count_compiled() == kernels + 1
    call(2.5, np.float64([4, 3, 2, 1]))
    assert len(traced) == 3


def test_caches_are_bounded(make, monkeypatch):
    monkeypatch.setattr(_plan, "_LIMIT", 4)
    monkeypatch.setattr(_eager, "_plans", {})
    monkeypatch.setattr(_log, "_known", {})
    monkeypatch.setattr(_log, "_families", {})
    monkeypatch.setattr(_log, "_MOST", 4)
    inputs = make()
    kernels = []
    for limit in range(8):
        attn.attention(*inputs, mask=lambda b, h, q, kv: kv <= limit)
        kernels.append(weakref.ref([*_eager._plans.values()][-1][0].kernel))
    assert len(_eager._plans) <= 4 and len(_log._known) <= 4
    # Numbers of one mask: of each step, where nobody looks.
    assert sum(map(len, _log._families.values())) <= _log._MANY
    gc.collect()
    assert [x() is not None for x in kernels] == [False] * 4 + [True] * 4
    attn.attention(*inputs, mask=lambda b, h, q, kv: kv <= 0)


def test_threads(make):
    slopes = np.float32([1, 2, 3, 4])
    problems = [make(m=m) for m in (3, 20, 65)]
    wanted = [
        reference.attention(*p, causal="bottom_right", score=lambda s, b, h, q, kv: s * slopes[h])[
            0
        ]
        for p in problems
    ]
    failed = []

    def work(i):
        try:
            for _ in range(20):
                output = attn.attention(
                    *problems[i % 3], causal=True, score=lambda s, b, h, q, kv: s * slopes[h]
                )
                reference.check(output, wanted[i % 3])
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_keywords_agree():
    def keywords(function, *without):
        parameters = inspect.signature(function).parameters
        return {name: str(parameters[name]) for name in parameters if name not in without}

    # Arrays of a call may stand in the place of what they are.
    of_call = "dtype", "head_dim", "value_dim", "scale", "sink", "positions"
    assert keywords(attn.explain, "until", "gradient", "total", *of_call) == keywords(attn.compile, *of_call)
    theirs, ours = (inspect.signature(x).parameters for x in (attn.compile, attn.explain))
    assert [theirs[x].default for x in of_call] == [ours[x].default for x in of_call]
    # A call has the scale and the sink that compile() only announces.
    # Dropout, which has a seed for each call, is the call's alone, and so are hints at other names.
    # Elements of 8 bits are the call's too.
    narrow = "q_descale", "k_descale", "v_descale", "descale_block"
    its_own = "q", "k", "v", "scale", "sink", "dropout_p", "dropout_seed", "others", *narrow, "state"
    its_own = *its_own, "positions", "total"
    common = keywords(attn.attention, *its_own)
    assert common.items() < keywords(attn.compile).items()


def test_explain():
    text = attn.explain("float32", 64, causal=True)
    assert repr(text) == str(text)
    for part in (
        "// device      cpu",
        "// schedule    rule",
        "// mask-tiles  keeps n < m1",
        "// compile",
        "scf.forall",
    ):
        assert part in text
    assert "scf.forall" not in attn.explain("bfloat16", 64, causal=True, until="problem")
    kernel = attn.compile("float16", 32, window=(64, 0), options={"block_n": 48})
    assert "block_n = 48" in kernel.explain()


def test_explain_of_gradients():
    text = attn.explain("float32", 64, causal=True, gradient=True)
    for part in ("func.func @gradient", "attn.grad_query_step", "drops m < n1", "// compile"):
        assert part in text
    for fused, rule in (("on", "fused"), ("off", "keys")):
        how = {"device": "cuda", "until": "async", "options": {"fused": fused}}
        text = attn.explain("bfloat16", 64, causal=True, gradient=True, **how)
        for part in (
            "kernel      gradient_query for sm_90a",
            f"rule cuda-grad-{rule} chose",
            "// scratch",
        ):
            assert part in text


def test_explain_float32_for_a_gpu():
    """Elements of three parts, and six products of them; pages are refused."""
    text = attn.explain("float32", 64, device="cuda", until="async")
    assert "// work        1536 FLOPs and 1 exp" in text and "; 768 bytes for each row" in text
    assert "attention_parts for sm_90a" in text and "// scratch     3 tensors" in text
    assert "64x64xf32, #tile.place" not in text and "tile.mma_async" in text
    text = attn.explain("float32", 64, device="cuda", until="ptx", options={"target": "sm_80"})
    assert ".target sm_80" in text and "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16" in text


def test_explain_for_a_gpu():
    # No GPU is needed up to PTX.
    text = attn.explain("bfloat16", 128, causal=True, device="cuda", until="async")
    for part in (
        "// device      cuda",
        "// schedule    rule cuda-",
        "// mask-tiles  keeps n < m1",
        "// floors      a tile of",
        "// kernel      attention for sm_90a",
        " wgmma",
        "// assembled   ",
        "tile.mma_async",
    ):
        assert part in text
    assert ".target sm_90a" in attn.explain("float16", 64, device="cuda:0", until="ptx")
    for approximate in (False, True):
        score = lambda s, b, h, q, kv: 30 * attn.tanh(s / 30, approximate=approximate)
        text = attn.explain("float16", 64, score=score, device="cuda", until="ptx")
        assert ("tanh.approx.f32" in text) == approximate
    text = attn.explain("float16", 64, device="cuda", until="tile", options={"splits": 4})
    for part in ("attention_split for sm_90a", "// scratch     2 tensors", "@attention_merge"):
        assert part in text
    for reserve in (0, 8):
        how = dict(causal=True, device="cuda", until="problem", options={"reserve": reserve})
        text = attn.explain("bfloat16", 128, **how)
        line = f"// reserve     {reserve} multiprocessors that blocks of attention leave to other kernels"
        assert (line in text) == (reserve > 0) and "blocks stay" in text
    with pytest.raises(attn.Error, match="reserve: expected a number from 0 to 2\\^20, got -1"):
        attn.explain("bfloat16", 128, device="cuda", options={"reserve": -1})
    for slack in (0, 8):
        text = attn.explain("float16", 128, causal=True, device="cuda", until="problem", options={"slack": slack})
        assert f"slack = {slack}" in text
    for stay in (True, False):
        text = attn.explain("float16", 256, device="cuda", until="problem", options={"stay": stay})
        assert ("stay = true" in text) == ("recompute = true" in text) == stay
    for way in ("few", "narrow"):
        options = {"way": way}
        assert f"rule cuda-d128-{way}" in attn.explain("float16", 96, device="cuda", options=options)
        # Gradients of its calls are those of others.
        text = attn.explain("float16", 96, device="cuda", options=options, gradient=True)
        assert "rule cuda-grad-" in text and f"-{way}" not in text


def test_a_kernel_for_a_gpu():
    try:
        kernel = attn.compile("bfloat16", 64, device="cuda", options={"cache": False})
    except attn.Error as error:
        assert error.code in ("no driver", "no device", "unsupported device")
        assert error.message.startswith("expected a") and "cpu" in error.hint
    else:
        assert kernel.device == "cuda:0" and not kernel.is_from_disk


def test_an_error_leaves_no_trace(make):
    inputs = make()
    try:
        attn.attention(*inputs, score=lambda s, b, h, q, kv: bool(s))
    except attn.Error:
        pass
    reference.check(attn.attention(*inputs), reference.attention(*inputs)[0])


def test_memory_of_calls_is_shared(make):
    inputs = make()
    for _ in range(50):
        attn.attention(*inputs)
        try:
            attn.attention(inputs[0], inputs[1][:1], inputs[2])
        except attn.Error:
            pass
