"""What attn says about compiling: why, what it costs, what a mask looks like."""

import base64
import html
import json
import logging
import os
import re
import subprocess
import sys
import warnings
import xml.dom.minidom
import zlib

import numpy as np
import pytest

import attn
from attn import _log, _plan


@pytest.fixture
def log(caplog, monkeypatch):
    """Reasons beside the kernels of this test alone."""
    monkeypatch.setattr(_log, "_known", {})
    monkeypatch.setattr(_log, "_families", {})
    monkeypatch.setattr(attn._eager, "_plans", {})
    caplog.set_level(logging.INFO, "attn.compile")
    return lambda: [record.getMessage() for record in caplog.records]


def test_reasons(log, make):
    q, k, v = make()
    attn.attention(q, k, v)
    attn.attention(q, k, v)
    attn.attention(q, k, v, causal=True)
    for width in (3, 4):
        attn.attention(q, k, v, mask=lambda b, h, i, j: i - j < width)
    lines = log()
    assert len(lines) == 4
    assert lines[0].startswith("attention f32 D=16 Dv=16 on cpu compiled in ")
    assert lines[0].endswith(" ms: the first one")
    assert lines[1].endswith(" ms: causal none -> bottom_right")
    assert f" (mask of {os.path.basename(__file__)}:" in lines[2]
    assert lines[2].endswith(": a mask function")
    assert lines[3].endswith("): 3 -> 4")


def test_other_reasons(log, make):
    q, k, v = make()
    attn.attention(q, k, v, causal=True)
    attn.attention(q, k, v, causal=True, options={"block_n": 32})
    attn.attention(q, k, v, causal=True, scale=2.0, return_lse=True)
    attn.attention(q[..., :8].copy(), k[..., :8].copy(), v, causal=True)
    attn.gradient(q, k, v, np.zeros_like(q), causal=True)
    reasons = [line.partition(" ms: ")[2] for line in log()]
    assert reasons[1:4] == [
        "option block_n none -> 32",
        "scale given; lse given",
        "D 16 -> 8",
    ]
    assert reasons[-1].startswith("function attention -> gradient")
    assert reasons[-1].endswith("gradients of query, key, value")


def run_fresh(code, **variables):
    """The code in a process of its own, with these variables of its environment."""
    path = os.path.dirname(os.path.dirname(attn.__file__))
    environment = {**os.environ, "PYTHONPATH": path, **variables}
    return subprocess.run(
        [sys.executable, "-B", "-c", code], env=environment, capture_output=True, text=True
    )


def test_nothing_is_said_unasked():
    code = "import attn; attn.compile('float32', 8)"
    for wanted, expected in (("", ""), ("compile", "attn: attention f32 D=8"), ("x", "ATTN_LOG: ")):
        done = run_fresh(code, ATTN_LOG=wanted)
        assert done.returncode == 0 and done.stdout == ""
        assert expected in done.stderr and bool(expected) == bool(done.stderr)


def test_first_gradients_import_no_compiler():
    pytest.importorskip("torch")
    code = (
        "import sys, torch, attn\n"
        "x = torch.ones(1, 1, 8, 8, requires_grad=True)\n"
        "attn.attention(x, x, x).sum().backward()\n"
        "print('torch._dynamo' in sys.modules)\n"
    )
    done = run_fresh(code)
    # It takes a second, more than all else of the first call.
    assert done.stdout == "False\n", done.stderr


def test_operations_are_counted_by_who_imports_their_counter_later():
    pytest.importorskip("torch")
    code = (
        "import sys, torch, torch.library\n"
        "name = 'torch.utils.flop_counter'\n"
        "is_there = name in sys.modules\n"
        "import attn\n"
        "x = torch.ones(1, 1, 8, 8, requires_grad=True)\n"
        "attn.attention(x, x, x).sum().backward()\n"
        "print(name in sys.modules and not is_there)\n"
        "from torch.utils.flop_counter import FlopCounterMode\n"
        "import inspect, torch.utils.flop_counter as module\n"
        "with FlopCounterMode(display=False) as counter:\n"
        "    attn.attention(x, x, x).sum().backward()\n"
        "print(counter.get_total_flops(), 'flop_registry' in inspect.getsource(module))\n"
        "print(type(module.__spec__.loader) is type(torch.__spec__.loader))\n"
    )
    done = run_fresh(code)
    # The counter imports Triton where that is.
    assert done.stdout == f"False\n{2 * 64 * 16 + 2 * 64 * 40} True\nTrue\n", done.stderr


def test_the_third_number_is_warned_of(log, make, monkeypatch):
    q, k, v = make()

    class Nothing:
        is_from_disk, load_ms, compile_ms = False, 0, 0

    # Texts are enough.
    texts = []
    monkeypatch.setattr(_plan, "Kernel", lambda text, options: texts.append(text) or Nothing)
    monkeypatch.setattr(_plan, "Plan", lambda text, *_: _plan._compile(text.forward, ()))

    def call(width, **how):
        mask = lambda b, h, i, j: i - j < width
        with pytest.raises(AttributeError):
            attn.attention(q, k, v, mask=mask, **how)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for width in (3, 4, 3):
            call(width)
        call(3, causal=True)
    with pytest.warns(
        RuntimeWarning, match="3 kernels differ in numbers alone, in mask of"
    ) as seen:
        call(5)
    assert "such as 3 and 5" in str(seen[0].message)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(6)
    assert len(texts) == 5


def test_windows_that_change_are_warned_of(log, make):
    q, k, v = make(b=1, h=1, hkv=1, m=3, n=4, d=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attn.attention(q, k, v, window=(1, 0))
        attn.gradient(q, k, v, q, window=(1, 0))
        attn.attention(q, k, v, window=(2, 0))
    with pytest.warns(RuntimeWarning, match="such as 1, 0 and 3, 0: .* a window as mask="):
        attn.attention(q, k, v, window=(3, 0))


# ===- Pictures ---------------------------------------------------------------------------------===#


def count_tiles(keep, tile):
    rows, columns = keep.shape
    found = []
    for i in range(0, rows, tile[0]):
        parts = [keep[i : i + tile[0], j : j + tile[1]] for j in range(0, columns, tile[1])]
        found.append([2 if x.all() else 1 if x.any() else 0 for x in parts])
    return np.array(found)


LENGTHS = np.int32([[30, 70], [90, 110]])
PICTURES = {
    "all": (dict(), lambda i, j: i == i),
    "causal": (dict(causal=True), lambda i, j: j <= i + 20),
    "window": (dict(window=(30, 5)), lambda i, j: (j >= i - 10) & (j <= i + 25)),
    "function": (
        dict(mask=lambda b, h, i, j: (i // 7) % 2 == (j // 50) % 2),
        lambda i, j: (i // 7) % 2 == (j // 50) % 2,
    ),
    "of a head": (
        dict(mask=lambda b, h, i, j: j < LENGTHS[b, h], batch=1, head=1),
        lambda i, j: j < 110,
    ),
    "nothing": (dict(mask=lambda b, h, i, j: j < 0), lambda i, j: j < 0),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(name):
    how, keep = PICTURES[name]
    i, j = np.mgrid[:100, :120]
    kept, tile = keep(i, j), (16, 50)
    picture = attn.visualize_mask(100, 120, tile=tile, **how)
    wanted = count_tiles(kept, tile)
    assert np.array_equal(picture.tiles, wanted)
    assert picture.density == pytest.approx(kept.mean())
    head, *lines = picture.splitlines()
    assert head.startswith("100 x 120, tiles of 16 x 50: ")
    assert lines == ["".join("·▒█"[x] for x in row) for row in wanted]
    assert sum(picture.count(x) for x in ("full", "partial", "empty")) == wanted.size


def test_svg(tmp_path):
    picture = attn.visualize_mask(100, causal=True, tile=(20, 20))
    picture.save(tmp_path / "mask.svg")
    drawn = xml.dom.minidom.parse(str(tmp_path / "mask.svg"))
    paths = {
        x.getElementsByTagName("title")[0].firstChild.data: x.getAttribute("d")
        for x in (drawn.getElementsByTagName("path"))
    }
    for status in ("full", "partial", "empty"):
        assert paths[status].count("M") == picture.count(status)
    assert picture._repr_svg_() == picture.svg and repr(picture) == str(picture)


def test_wrong_pictures():
    for how, message in (
        (dict(query_length=0), "query_length: expected a number from 1"),
        (dict(query_length=9, tile=(0, 4)), "tile: expected a number from 1"),
        (dict(query_length=1 << 20, tile=(1, 1)), "tile: expected at most"),
    ):
        with pytest.raises(attn.Error, match=message):
            attn.visualize_mask(**how)


# ===- Ahead of calls ----------------------------------------------------------------------------===#


def test_warm_up(log, make):
    specs = [dict(dtype="float32", head_dim=16, causal=True), dict(dtype="float16", head_dim=8)]
    assert attn.warm_up(specs) == 2
    assert attn.warm_up(specs) == 0
    q, k, v = make()
    attn.attention(q, k, v, causal=True)
    assert len(log()) == 2
    assert attn.warm_up([dict(dtype="float32", head_dim=16, causal=True, gradient=True)]) == 2
    attn.gradient(q, k, v, np.zeros_like(q), causal=True)
    assert len(log()) == 4
    for wrong in ([3], [dict(dtype="float64", head_dim=8)]):
        with pytest.raises(attn.Error):
            attn.warm_up(wrong)
    with pytest.raises(attn.Error, match="warm_up: expected inputs for a function"):
        attn.warm_up(specs, q)


def test_warm_up_of_a_model(log):
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(16, 16)
            self.bias = torch.nn.Buffer(torch.randn(40))

        def forward(self, x):
            y = self.linear(x)[:, None]
            return attn.attention(y, y, y, score=lambda s, b, h, i, j: s + self.bias[j])

    model, x = Model(), torch.randn(2, 40, 16)
    assert attn.warm_up(model, x) == 2
    assert model.linear.weight.grad is None
    count = len(log())
    model(x).sum().backward()
    assert len(log()) == count and bool(model.linear.weight.grad.isfinite().all())
    with torch.no_grad():
        assert attn.warm_up(model, x) == 1
        count = len(log())
        model(x)
    assert len(log()) == count


# ===- Explanations of calls -----------------------------------------------------------------------===#


def test_explain_of_a_call(log, make):
    q, k, v = make(m=100, n=100)
    how = dict(mask=lambda b, h, i, j: j <= i, scale=0.5)
    text = attn.explain(q, k, v, **how)
    for part in (
        "// call        q (2, 4, 100, 16), k (2, 2, 100, 16), v (2, 2, 100, 16) of float32",
        "// path        straight to the kernel",
        "// kernel      not compiled yet: the first one",
        "// tiles       100 x 100, tiles of 64 x 64: 1 full █, 2 partial ▒, 1 empty ·",
        "// schedule    rule",
        "scf.forall",
    ):
        assert part in text
    attn.attention(q, k, v, **how)
    assert "// kernel      compiled before" in attn.explain(q, k, v, **how)
    for arrays, message in (
        ((q, k), "v: expected an array of 4"),
        ((q, k[0], v), "k: expected an"),
    ):
        with pytest.raises(attn.Error, match=message):
            attn.explain(*arrays)
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(x) for x in (q, k, v)]
    assert "straight to the kernel" in attn.explain(*tensors, **how)
    tensors[1].requires_grad_()
    assert "attn::forward of PyTorch, some 25 us more: autograd records it" in attn.explain(
        *tensors, **how, gradient=True
    )


def read_page(shown):
    """What the page in a notebook is made of."""
    assert shown.startswith("<iframe") and shown.endswith("</iframe>")
    page = html.unescape(re.search('srcdoc="([^"]*)"', shown).group(1))
    data = re.search('id="data" data-form="deflate">([^<]*)<', page).group(1)
    return json.loads(zlib.decompress(base64.b64decode(data)))


@pytest.fixture
def translate():
    if not attn._tools.find_tool("attn-translate") and os.environ.get("CI") != "true":
        pytest.skip("attn-translate was not built")


def test_notebooks_show_the_rooms(translate):
    how = dict(causal=True, options={"block_m": 128, "block_n": 64, "stay": False})
    found = read_page(attn.explain("bfloat16", 64, device="cuda", **how)._repr_html_())
    assert [room["name"] for room in found["rooms"]][-1] == "ptx" and not found["stopped"]
    # The options of the call.
    assert "block_m = 128, block_n = 64" in found["rooms"][1]["text"]
    # Mask and timeline in these sizes, and what the model predicts.
    pictures = found["pictures"]
    assert pictures["shape"] == "B=4 H=16 M=2048 D=64" and pictures["mask"]["tile"] == [128, 64]
    assert pictures["timeline"].startswith("<svg") and not pictures["notes"]
    assert re.search(r"TFLOP/s of work, .* executed", dict(pictures["predicted"])["predicted"])
    kernel = attn.compile("float32", 16, window=(3, 0))
    assert read_page(kernel.explain()._repr_html_())["pictures"]["mask"]["lines"]


def test_notebooks_show_masks(make, translate):
    """Of a call: its extents, and tiles that hang on its tensors."""
    q, k, v = make(2, 4, 2, 40, 50, 16)
    ids = np.arange(50) // 16
    how = dict(mask=lambda b, h, i, j: ids[i] == ids[j])
    found = attn.explain(q, k, v, **how)
    pictures = read_page(found._repr_html_())["pictures"]
    drawn = attn.visualize_mask(40, 50, **how)
    mask = pictures["mask"]
    assert (mask["rows"], mask["keys"], mask["tile"]) == (40, 50, [64, 64]) == (*drawn.extents, list(drawn.tile))
    assert mask["lines"] == ["".join(map(str, line)) for line in drawn.tiles] and mask["density"] == drawn.density
    pictures = read_page(attn.explain(q, k, v, causal=True)._repr_html_())["pictures"]
    assert pictures["shape"] == "B=2 H=4 Hkv=2 M=40 N=50 D=16" and not pictures["notes"]
    assert "mask" not in read_page(attn.explain(q, k, v)._repr_html_())["pictures"]
    rows_first = attn.explain(*(x.swapaxes(1, 2) for x in (q, k, v)), layout="bshd", causal=True)
    assert read_page(rows_first._repr_html_())["pictures"]["shape"] == pictures["shape"]


def test_programs_that_no_model_runs(translate):
    """Extents that the shape does not tell: the page has its rooms, and says so."""
    source = "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {\n  return %x : tensor<?xf32>\n}\n"
    page = attn._tools.make_page(source, (("device", "cpu"),), "", None)
    assert "none for x.0" in read_page(attn._tools.frame(page))["pictures"]["notes"][0]


def test_notebooks_without_the_tool(monkeypatch):
    monkeypatch.setattr(attn._tools, "find_tool", lambda name: "")
    shown = attn.explain("float32", 16)._repr_html_()
    assert shown.startswith("<pre>") and "tensor&lt;?x?x?x16xf32&gt;" in shown
