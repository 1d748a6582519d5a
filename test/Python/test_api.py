"""Kernels, caches, threads, texts."""

import gc
import inspect
import threading
import sys
import types

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
    monkeypatch.setattr(_log, "_MOST", 4)
    inputs = make()
    for limit in range(8):
        attn.attention(*inputs, mask=lambda b, h, q, kv: kv <= limit)
    assert len(_eager._plans) <= 4 and len(_log._known) <= 4
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

    assert keywords(attn.explain, "until", "gradient") == keywords(attn.compile)
    # A call has the scale and the sink that compile() only announces.
    # Dropout, which has a seed for each call, is the call's alone, and so are hints at other names.
    its_own = "q", "k", "v", "scale", "sink", "dropout_p", "dropout_seed", "others"
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


@pytest.mark.parametrize(
    "heads, rows, d, slots",
    [
        ((32, 8), 1, 128, 4),
        ((6, 2), 16, 64, 4),
        ((32, 8), 17, 128, 0),
        ((8, 8), 1, 128, 0),
        ((8, 0), 1, 128, 0),
        ((32, 8), 1, 96, 4),
        ((32, 8), 1, 256, 4),
        ((32, 8), 1, 264, 0),
        ((32, 1), 2, 64, 32),
        ((32, 1), 3, 64, 0),
    ],
)
def test_heads_of_few_rows_share_tiles(heads, rows, d, slots):
    from attn._choose import choose_options

    q, k = np.empty((2, heads[0], rows, d)), np.empty((2, heads[1], 9, d))
    expected = {"pack": slots, "way": "long"} if slots else None
    assert choose_options(q, k, k, False, True) == expected
    q, k = q.swapaxes(1, 2), k.swapaxes(1, 2)
    assert choose_options(q, k, k, True, False) == expected


@pytest.mark.parametrize(
    "heads, rows, keys, d, dv, is_few",
    [
        ((8, 8), 33, 2049, 64, 64, True),
        ((8, 8), 128, 16384, 128, 128, True),
        ((8, 2), 128, 16384, 128, 128, True),
        ((8, 8), 70, 4096, 40, 96, True),
        ((8, 8), 0, 16384, 64, 64, False),
        ((8, 8), 129, 16384, 64, 64, False),
        ((8, 8), 128, 2048, 64, 64, False),
        ((8, 8), 128, 16384, 136, 64, False),
        ((8, 8), 128, 16384, 64, 136, False),
    ],
)
def test_few_rows_of_many_keys_have_a_kernel(heads, rows, keys, d, dv, is_few):
    from attn._choose import choose_options

    q = np.broadcast_to(np.float16(0), (2, heads[0], rows, d))
    k, v = (np.broadcast_to(np.float16(0), (2, heads[1], keys, columns)) for columns in (d, dv))
    expected = {"way": "few"} if is_few else None
    assert choose_options(q, k, v, False, True) == expected
    assert choose_options(q, k, v, False, False) is None
    q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    assert choose_options(q, k, v, True, True) == expected


@pytest.mark.parametrize(
    "rows, keys, d, is_packed",
    [
        (1, 1024, 64, True),
        (32, 4096, 128, True),
        (7, 4096, 256, True),
        (33, 4096, 128, False),
        (1, 1023, 64, False),
        (1, 4096, 264, False),
    ],
)
def test_heads_with_keys_of_their_own_are_decoded_in_parts(rows, keys, d, is_packed):
    from attn._choose import choose_options

    q, k = (np.broadcast_to(np.float16(0), (2, 8, n, d)) for n in (rows, keys))
    for is_plain in (False, True):
        assert (choose_options(q, k, k, False, is_plain) == {"pack": 2, "way": "long"}) == is_packed


@pytest.mark.parametrize(
    "rows, keys, d, dv, is_narrow",
    [
        (4096, 77, 128, 128, True),
        (257, 1, 64, 64, True),
        (257, 80, 40, 256, True),
        (4096, 129, 128, 128, True),
        (4096, 160, 256, 256, True),
        (256, 77, 128, 128, False),
        (128, 77, 128, 128, False),
        (4096, 0, 128, 128, False),
        (4096, 81, 128, 128, False),
        (4096, 128, 128, 128, False),
        (4096, 161, 128, 128, False),
        (4096, 77, 264, 128, False),
    ],
)
def test_few_keys_have_a_kernel(monkeypatch, rows, keys, d, dv, is_narrow):
    from attn import _choose

    def choose(is_rows_first, is_plain, is_fast=True):
        shapes = (8, rows, d), (2, keys, d), (2, keys, dv)
        order = (1, 0, 2) if is_rows_first else (0, 1, 2)
        given = [
            types.SimpleNamespace(shape=(2, *(shape[i] for i in order)), get_device=lambda: 3)
            for shape in shapes
        ]
        monkeypatch.setattr(_choose, "_reads_fast", lambda device: is_fast and device == 3)
        return _choose.choose_options(*given, is_rows_first, is_plain)

    expected = {"way": "narrow"} if is_narrow else None
    assert choose(False, True) == choose(True, True) == expected
    assert choose(False, False) is None
    # Where memory is slow.
    assert choose(False, True, is_fast=False) is None


@pytest.mark.parametrize(
    "clock, width, memory, is_fast",
    [
        (3201000, 6144, 141 << 30, True),
        (2619000, 5120, 80 << 30, False),
        (2619000, 6016, 94 << 30, False),
        (0, 0, 141 << 30, True),
        (0, 0, 80 << 30, False),
    ],
)
def test_devices_that_read_fast(monkeypatch, clock, width, memory, is_fast):
    from attn._choose import _reads_fast

    properties = types.SimpleNamespace(
        memory_clock_rate=clock, memory_bus_width=width, total_memory=memory
    )
    cuda = types.SimpleNamespace(get_device_properties=lambda device: properties)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    assert _reads_fast.__wrapped__(0) == is_fast


@pytest.mark.parametrize(
    "how, options, chosen",
    [
        ({}, {}, (True, True)),
        ({"causal": "bottom_right"}, {}, (True, False)),
        ({"window": (300, 0)}, {}, (True, False)),
        ({"mask": lambda b, h, q, kv: kv != 3}, {}, (True, False)),
        ({"score": lambda s, b, h, q, kv: s * 2}, {}, (False, False)),
        ({"has_sink": True}, {}, (False, False)),
        ({}, {"slack": 8}, (False, False)),
    ],
)
@pytest.mark.parametrize("device", ["cuda:0", "cpu"])
def test_a_plan_chooses_options_by_the_shapes_of_a_call(monkeypatch, how, options, chosen, device):
    # What an operator of a graph has, which was traced for any shapes.
    from attn import _choose
    from attn._library import option_texts
    from attn._plan import Plan
    from attn._problem import Spec
    from attn._source import Source

    source = Source(Spec("bfloat16", 64, 64, device, return_lse=True, **how))
    plan = Plan(source.text, [], (*option_texts(options), ("device", device)))

    def choose(heads, rows, keys):
        q, k = (
            types.SimpleNamespace(shape=(2, h, n, 64), get_device=lambda: 0)
            for h, n in ((heads, rows), (2, keys))
        )
        return plan.choose(q, k, k, False)

    monkeypatch.setattr(_choose, "_reads_fast", lambda device: True)

    packs, is_plain = chosen if device != "cpu" else (False, False)
    packed = (("pack", "4"), ("way", "long"), ("device", device))
    assert choose(8, 1, 4096).options == (packed if packs else plan.options)
    narrow = (("way", "narrow"), ("device", device))
    assert choose(2, 4096, 77).options == (narrow if is_plain else plan.options)
    assert choose(2, 4096, 77) is choose(2, 1000, 80)
    assert choose(2, 4096, 4096) is plan


def test_heads_that_share_a_tile_are_packed_whatever_their_keys():
    from attn._choose import choose_options

    q, k = (np.broadcast_to(np.float16(0), (2, h, n, 64)) for h, n in ((8, 1), (2, 4096)))
    assert choose_options(q, k, k, False, True) == {"pack": 4, "way": "long"}
    # What is none of a call's arrays is told by the call.
    assert choose_options(q, None, k, False, True) is None


@pytest.mark.parametrize(
    "how, is_few",
    [
        ({}, True),
        ({"scale": 0.5, "return_lse": True}, True),
        ({"causal": True}, False),
        ({"causal": "top_left"}, False),
        ({"window": (300, 0)}, False),
        ({"mask": lambda b, h, q, kv: kv <= q}, False),
        ({"score": lambda s, b, h, q, kv: s * 2}, False),
        ({"sink": object()}, False),
        ({"dropout_p": 0.1}, False),
        # What tune returns where the rule is the fastest.
        ({"options": {}}, True),
        ({"options": {"way": "long"}}, False),
    ],
)
@pytest.mark.parametrize("device", [0, -1])
def test_calls_on_gpus_choose_what_is_for_few_rows(monkeypatch, how, is_few, device):
    found = []

    def find_plan(*arguments):
        found.append(arguments[5])
        return types.SimpleNamespace(direct=lambda *call: call), []

    monkeypatch.setattr(_eager, "find_plan", find_plan)
    monkeypatch.setattr(_eager, "make_seed", lambda *arguments: None)
    q, k = (
        types.SimpleNamespace(get_device=lambda: device, shape=(2, 8, n, 64)) for n in (100, 4096)
    )
    attn.attention(q, k, k, **how)
    assert found == [{"way": "few"} if is_few and device == 0 else how.get("options") or None]
