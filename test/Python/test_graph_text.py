"""PyTorch prints the nodes of its graphs into comments of the files that it generates, strings as they
are. On a CPU it writes no such comments, so what it would write is looked at here."""

import ast

import numpy as np
import pytest

import attn

torch = pytest.importorskip("torch")
from functorch.compile import make_boxed_func  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402

from attn import _arrays, _operator, _written  # noqa: E402
from attn.integrations import torch as integration  # noqa: E402

# Where Python ends a line.
ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
B, H, D = 2, 4, 16
TABLE, SLOPES, SEEN = torch.randn(H, 200), torch.randn(H), torch.rand(B, 200) < 0.8
SINK = torch.randn(H)


def call(q, k, v, **how):
    return attn.attention(q, k, v, **how)


def flex(q, k, v, score=None, mask=None):
    size = B, H, q.shape[2], k.shape[2]
    block = None if mask is None else integration.create_block_mask(mask, *size)
    return integration.flex_attention(q, k, v, score_mod=score, block_mask=block)


KINDS = {
    "plain": (call, ()),
    "causal": (lambda q, k, v: call(q, k, v, causal=True, window=(9, 0), scale=0.3), ()),
    "options": (lambda q, k, v: call(q, k, v, options={"block_m": 32, "cache_dir": "/a\n/ü"}), ()),
    "dropout": (lambda q, k, v: call(q, k, v, dropout_p=0.25, dropout_seed=3), ()),
    "sink": (lambda q, k, v, sink: call(q, k, v, sink=sink), (SINK,)),
    "lse": (lambda q, k, v: sum(x.sum() for x in call(q, k, v, return_lse=True)), ()),
    "layout": (lambda q, k, v: call(q, k, v, layout="bshd"), ()),
    "score": (lambda q, k, v: flex(q, k, v, lambda s, b, h, i, j: torch.tanh(s / 9) * 9), ()),
    "mask": (lambda q, k, v: flex(q, k, v, None, lambda b, h, i, j: SEEN[b, j] & (j <= i)), ()),
    "captured": (
        lambda q, k, v, table, slopes: flex(
            q, k, v, lambda s, b, h, i, j: s + table[h, (i - j).abs()] * slopes[h]
        ),
        (TABLE, SLOPES),
    ),
    "patched": (
        lambda q, k, v: integration.scaled_dot_product_attention(q, k, v, is_causal=True),
        (),
    ),
}


def check_one_line(graphs):
    text = []
    for graph in graphs:
        for node in graph.graph.nodes:
            texts = [x for x in torch.utils._pytree.tree_leaves((node.args, node.kwargs))]
            for x in texts:
                assert not isinstance(x, str) or not set(x) & set(ENDS)
            line = node.format_node() or ""
            assert len(line.splitlines()) <= 1
            text.append(f"# {line}\n")
    ast.parse("if True:\n    x = 1\n    " + "    ".join(text))
    return "".join(text)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_nodes_are_lines(kind, dynamic):
    torch._dynamo.reset()
    function, others = KINDS[kind]
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    compiled = torch.compile(
        function, backend=aot_autograd(fw_compiler=keep), fullgraph=True, dynamic=dynamic
    )
    given = [torch.randn(B, H, 40, D, requires_grad=True) for _ in range(3)]
    given += [x.clone().requires_grad_() for x in others]
    compiled(*given).square().sum().backward()
    assert all(x.grad is not None for x in given)
    printed = check_one_line(graphs)
    assert "attn.record" in printed and "attn.backward" in printed


def test_text_of_exported_programs_before(monkeypatch):
    """They have lines, and their options as they are."""
    q, k, v = [torch.randn(B, H, 9, D) for _ in range(3)]
    few = torch.randn(5)
    kernel = attn.compile(
        "float32", D, score=lambda s, b, h, i, j: s + few[4], options={"block_m": 32}
    )
    text = _written.write_source(kernel._plan)
    head, mark, pieces = text.partition("// option ")
    least, pieces = pieces.partition(_written._LEAST)[2].split(_written._PIECES)
    least = least.replace(_written.CODE, "")
    plan = _written.read_source(text, "cpu")
    before = f"{plan.text.forward}// option block-m=32\n// least {least.strip()}\n// pieces {pieces}\n"
    assert head.split() == plan.text.forward.split() and "\n" in before
    wanted = torch.ops.attn.forward(q, k, v, None, [few], text, None, False)
    for call in (torch.ops.attn.forward, _operator._forward):
        for got, x in zip(call(q, k, v, None, [few], before, None, False), wanted):
            assert torch.equal(got, x)
        with pytest.raises((attn.Error, RuntimeError), match="expected a shape of at least"):
            call(q, k, v, None, [few[:4]], before, None, False)


def test_graphs_after_calls_of_numpy():
    """PyTorch 2.11 traces no dictionary that has a type of NumPy's for a key."""
    ids = np.zeros(9, np.int32)
    x = np.zeros((1, H, 9, D), np.float32)
    attn.attention(x, x, x, mask=lambda b, h, m, n: ids[m] == ids[n])
    # Classes are types too.
    assert _arrays.type_name(np.float32) == "f32" and _arrays.type_name(np.dtype(">f4")) is None
    assert not [key for key in _arrays._names_by_dtype if "numpy" in type(key).__module__ or isinstance(key, type)]
    q, k, v = (torch.randn(1, H, 9, D) for _ in range(3))
    compiled = torch.compile(integration.scaled_dot_product_attention, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(q, k, v), integration.scaled_dot_product_attention(q, k, v))
