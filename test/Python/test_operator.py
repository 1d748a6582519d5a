"""attn::forward, attn::record and attn::backward: what PyTorch's compilers and transforms make of them."""

import os
import subprocess
import sys

import pytest

import attn

torch = pytest.importorskip("torch")
from attn import _operator, _traced, _written  # noqa: E402  They import PyTorch.


def inputs(b=2, h=4, hkv=2, m=37, n=41, d=32, dv=16, dtype=torch.float32):
    shapes = (b, h, m, d), (b, hkv, n, d), (b, hkv, n, dv)
    return [torch.randn(shape).to(dtype) for shape in shapes]


def sdpa(q, k, v, **how):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True, **how)


def causal(q, k, v):
    return attn.attention(q, k, v, causal="top_left")


def is_close(x, y):
    return torch.allclose(x, y, atol=2e-5)


def source(**how):
    spec = dict(dtype=torch.float32, head_dim=32, value_dim=16, device="cpu")
    return _traced.make_source(None, **spec, **how)


def test_opcheck():
    q, k, v = inputs()
    given = (q, k, v, None, [], source(), None, False)
    for operator in (torch.ops.attn.forward.default, torch.ops.attn.record.default):
        torch.library.opcheck(operator, given)
    # Of dropout, the seed is a captured tensor.
    dropped = (q, k, v, None, [torch.tensor([3])], source(dropout=0.25), None, False)
    torch.library.opcheck(torch.ops.attn.forward.default, dropped)
    output, lse, low = torch.ops.attn.record(*given)
    for d_lse, rest in ((None, []), (torch.randn_like(lse), []), (None, [low])):
        arguments = (
            torch.randn_like(output),
            d_lse,
            q,
            k,
            v,
            None,
            [],
            output,
            lse,
            source(),
            None,
        )
        torch.library.opcheck(
            torch.ops.attn.backward.default, (*arguments, False, [True, False, True, False], *rest)
        )


def test_dynamic_shapes():
    """Heads have as many columns as the kernel is compiled for; all else may change."""
    torch._dynamo.reset()
    whole = torch.compile(
        lambda q, k, v: attn.attention(q, k, v, causal=True, window=(5, 0)),
        backend="eager",
        fullgraph=True,
        dynamic=True,
    )
    for m, n in ((10, 12), (3, 30)):
        q, k, v = inputs(m=m, n=n)
        assert torch.equal(whole(q, k, v), attn.attention(q, k, v, causal=True, window=(5, 0)))


def test_opcheck_of_results_that_are_given():
    q, k, v = inputs()
    results = {"output": torch.zeros(2, 4, 37, 16), "lse": torch.zeros(2, 4, 37)}
    arguments = (q, k, v, None, None, source(), None, False)
    torch.library.opcheck(torch.ops.attn.forward_out.default, arguments, results)
    wanted = torch.ops.attn.forward(*arguments)
    torch.ops.attn.forward_out(*arguments, **results)
    assert torch.equal(results["output"], wanted[0]) and torch.equal(results["lse"], wanted[1])
    compiled = torch.compile(
        lambda q, output, lse: torch.ops.attn.forward_out(
            q * 2, k, v, None, None, source(), None, False, output=output[1:], lse=lse
        ),
        fullgraph=True,
        backend="aot_eager",
    )
    many = torch.zeros(3, 4, 37, 16)
    compiled(q, many, results["lse"])
    assert torch.equal(many[1:], attn.attention(q * 2, k, v)) and not many[0].any()


@pytest.mark.parametrize("rows_first", [False, True])
def test_native_calls_are_those_of_python(rows_first):
    q, k, v = inputs(dtype=torch.bfloat16)
    tensors = [x.transpose(1, 2).contiguous() if rows_first else x for x in (q, k, v)]
    sink = torch.randn(4)
    table, seen = torch.randn(41, 3, 37)[:, 1].T, torch.rand(2, 41) < 0.8
    few = torch.randn(5)
    kernel = attn.compile(
        torch.bfloat16,
        32,
        16,
        scale=True,
        sink=True,
        score=lambda s, b, h, i, j: s + table[i, j] + few[4],
        mask=lambda b, h, i, j: seen[b, j],
        options={"block_m": 32},
    )
    text = _written.write_source(kernel._plan)
    arguments = (*tensors, sink, [table, few, seen], text, 0.2, rows_first)
    for got, wanted in zip(torch.ops.attn.forward(*arguments), _operator._forward(*arguments)):
        assert torch.equal(got, wanted) and got.stride() == wanted.stride()
    results = [torch.empty_like(x) for x in _operator._forward(*arguments)]
    torch.ops.attn.forward_out(*arguments, output=results[0], lse=results[1])
    for got, wanted in zip(results, _operator._forward(*arguments)):
        assert torch.equal(got, wanted)
    # What is read at a constant must be there.
    shorter = (*tensors, sink, [table, few[:4], seen], text, 0.2, rows_first)
    for call in (torch.ops.attn.forward, _operator._forward):
        with pytest.raises((attn.Error, RuntimeError), match="expected a shape of at least"):
            call(*shorter)


def test_python_registers_what_is_not_there():
    program = (
        "import torch; from attn import _operator, _traced; q = torch.ones(1, 1, 2, 16); "
        "s = _traced.make_source(None, dtype=q.dtype, head_dim=16, value_dim=16, device='cpu'); "
        "o, _ = torch.ops.attn.forward(q, q, q, None, None, s, None, False); "
        "print(_operator.is_native, torch.equal(o, q))"
    )
    package = os.path.dirname(os.path.dirname(attn.__file__))
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],
        env={**os.environ, "PYTHONPATH": package, "ATTN_NATIVE_OPERATORS": "0"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.split() == ["False", "True"], done.stderr[-2000:]


def test_errors_of_native_calls():
    q, k, v = inputs()
    with pytest.raises(attn.Error, match="k: expected") as error:
        attn.attention(q.requires_grad_(), k[..., :3], v)
    assert error.value.code == "invalid argument"


def test_opcheck_of_captures_and_sinks():
    q, k, v = inputs()
    bias, sink = torch.randn(4, 37, 41), torch.randn(4)
    kernel = attn.compile(
        "float32", 32, 16, scale=True, sink=True, score=lambda s, b, h, i, j: s + bias[h, i, j]
    )
    text = _written.write_source(kernel._plan)
    arguments = (q, k, v, sink, [bias], text, 0.2, False)
    torch.library.opcheck(torch.ops.attn.forward.default, arguments)
    assert torch.equal(torch.ops.attn.forward(*arguments)[0], kernel(q, k, v, scale=0.2, sink=sink))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_one_graph(backend):
    if backend == "inductor":
        pytest.importorskip("torch._inductor")
    compiled = torch.compile(
        lambda q, k, v: causal(q * 2, k, v) + 1, fullgraph=True, backend=backend
    )
    q, k, v = inputs()
    for n in (41, 60, 43):
        _, k, v = inputs(n=n)
        assert is_close(compiled(q, k, v), sdpa(q * 2, k, v, is_causal=True) + 1)


def test_one_graph_with_its_gradient():
    def loss(q, k, v, sink):
        output, lse = attn.attention(
            q, k, v, causal=True, window=(9, 0), scale=0.3, sink=sink, return_lse=True
        )
        return output.square().sum() + lse.sum()

    tensors = [x.requires_grad_() for x in (*inputs(), torch.randn(4))]
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    got = torch.autograd.grad(compiled(*tensors), tensors)
    for x, y in zip(got, torch.autograd.grad(loss(*tensors), tensors)):
        assert is_close(x, y)


def test_layouts_in_one_graph():
    rows = [x.transpose(1, 2) for x in inputs()]
    compiled = torch.compile(
        lambda q, k, v: attn.attention(q, k, v, layout="bshd"), fullgraph=True, backend="aot_eager"
    )
    assert torch.equal(compiled(*rows), attn.attention(*rows, layout="bshd"))


def test_export():
    class Model(torch.nn.Module):
        def forward(self, q, k, v):
            return causal(q, k, v)

    q, k, v = inputs()
    n = torch.export.Dim("n", min=2, max=4096)
    program = torch.export.export(Model(), (q, k, v), dynamic_shapes=({}, {2: n}, {2: n}))
    assert "attn.forward.default" in str(program.graph)
    _, k, v = inputs(n=77)
    assert is_close(program.module()(q, k, v), sdpa(q, k, v, is_causal=True))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["scaled_dot_product_attention", "flex_attention"])
def test_drop_ins_are_exported_as_the_operator(name, strict):
    from attn.integrations import torch as integration

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.randn(200))

        def forward(self, q, k, v):
            how = {}
            if name == "flex_attention":
                how["score_mod"] = lambda s, b, h, i, j: s + self.table[j]
            return getattr(integration, name)(q, k, v, enable_gqa=True, **how)

    q, k, v = inputs()
    model = Model()
    program = torch.export.export(model, (q, k, v), strict=strict).run_decompositions({})
    assert "attn.forward.default" in [str(node.target) for node in program.graph.nodes]
    assert is_close(program.module()(q, k, v), model(q, k, v))


@pytest.mark.parametrize("is_compiled", [False, True])
def test_exported_programs_learn(is_compiled):
    """They call the operator itself, which autograd records."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(16, 16))
            self.bias = torch.nn.Parameter(torch.randn(12))
            self.sink = torch.nn.Parameter(torch.randn(2))

        def forward(self, x):
            x = x @ self.weight
            score = lambda s, b, h, i, j: s + self.bias[j]  # noqa: E731
            return attn.attention(x, x, x, score=score, sink=self.sink)

    model, x = Model(), torch.randn(2, 2, 12, 16)
    program = torch.export.export(model, (x,)).module()
    call = torch.compile(program, backend="aot_eager", fullgraph=True) if is_compiled else program
    call(x).square().sum().backward()
    model(x).square().sum().backward()
    for name, parameter in program.named_parameters():
        assert is_close(parameter.grad, model.get_parameter(name).grad), name


def test_exported_programs_load_elsewhere(tmp_path):
    class Model(torch.nn.Module):
        def forward(self, q, k, v):
            return causal(q, k, v)

    q, k, v = inputs()
    torch.export.save(torch.export.export(Model(), (q, k, v)), tmp_path / "model.pt2")
    torch.save((q, k, v, Model()(q, k, v)), tmp_path / "tensors")
    program = (
        "import sys; folder = sys.argv[1]\n"
        "assert 'torch._dynamo' not in sys.modules\n"
        "*inputs, wanted = torch.load(folder + '/tensors')\n"
        "got = torch.export.load(folder + '/model.pt2').module()(*inputs)\n"
        "print(torch.equal(got, wanted))\n"
    )
    # Programs look for modules before they import them.
    later = "import attn, importlib.util as u; u.find_spec('torch'); import torch\n"
    started = [
        subprocess.Popen(
            [sys.executable, "-B", "-W", "ignore", "-c", modules + program, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(attn.__file__))},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for modules in ("import torch, attn\n", later)
    ]
    for process in started:
        output, errors = process.communicate(timeout=300)
        assert output.split() == ["True"], errors[-2000:]


def test_gradients_by_transforms():
    q, k, v = inputs()
    for i in range(3):
        got = torch.func.grad(lambda *x: causal(*x).square().sum(), argnums=i)(q, k, v)
        wanted = torch.func.grad(lambda *x: sdpa(*x, is_causal=True).square().sum(), argnums=i)(
            q, k, v
        )
        assert is_close(got, wanted)


@pytest.mark.parametrize("dims", [(0, None, None), (1, 0, 0), (0, 2, 1)])
def test_vmap(dims):
    one = inputs()
    mapped = [
        x if dim is None else torch.stack([x + i for i in range(3)], dim)
        for x, dim in zip(one, dims)
    ]
    got = torch.vmap(causal, dims)(*mapped)
    for i in range(3):
        each = [x if dim is None else x.select(dim, i) for x, dim in zip(mapped, dims)]
        assert is_close(got[i], causal(*each))


def test_vmap_of_functions_that_read_the_batch():
    q, k, v = inputs()
    lengths = torch.tensor([7, 30])
    many = torch.stack([q, q + 1, q - 1])

    def call(q):
        return attn.attention(q, k, v, mask=lambda b, h, i, j: (j < lengths[b]) & (j <= i + 9 * b))

    def gradient(q):
        return torch.func.grad(lambda q: call(q).square().sum())(q)

    for function in (call, gradient):
        wanted = torch.stack([function(x) for x in many])
        assert torch.equal(torch.vmap(function)(many), wanted)


def test_gradients_of_each_sample():
    q, k, v = inputs()
    sink = torch.randn(4)
    many = torch.stack([q, q + 1, q - 1])

    def loss(q, sink):
        return attn.attention(q, k, v, sink=sink).square().sum()

    found = torch.vmap(torch.func.grad(loss, argnums=(0, 1)), (0, None))(many, sink)
    for i in range(3):
        each = torch.func.grad(loss, argnums=(0, 1))(many[i], sink)
        assert is_close(found[0][i], each[0]) and torch.allclose(found[1][i], each[1], atol=1e-4)


@pytest.mark.parametrize("dim", [0, 1])
def test_vmap_of_nothing(dim):
    q, k, v = [x.unsqueeze(dim).narrow(dim, 0, 0) for x in inputs()]
    sink, bias = torch.zeros(4), torch.zeros(41)
    score = lambda s, b, h, i, j: s + bias[j] + b  # noqa: E731

    def loss(q, k, v, sink, how):
        return attn.attention(q, k, v, sink=sink, **how).sum()

    for how in ({}, {"score": score}):
        output = torch.vmap(lambda *x: attn.attention(*x, **how), dim)(q, k, v)
        assert output.shape == (0, 2, 4, 37, 16)
        gradient = torch.func.grad(loss, argnums=(0, 1, 2, 3))
        found = torch.vmap(gradient, (dim, dim, dim, None, None))(q, k, v, sink, how)
        assert [x.shape[0] for x in found] == [0] * 4 and found[3].shape == (0, 4)


def test_no_gradient_that_is_wanted():
    q, k, v = inputs()
    output, lse = torch.ops.attn.forward(q, k, v, None, None, source(), None, False)
    last = output, lse, source(), None, False, [False] * 4
    assert torch.ops.attn.backward(output, None, q, k, v, None, None, *last) == []


def test_mapped_sinks_are_refused():
    q, k, v = inputs()
    with pytest.raises(attn.Error, match="torch.vmap: expected the same sink"):
        torch.vmap(lambda sink: attn.attention(q, k, v, sink=sink))(torch.randn(3, 4))


def test_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        q, k, v = inputs()
        output, lse = attn.attention(q, k, v, return_lse=True)
    assert output.shape == (2, 4, 37, 16) and lse.shape == (2, 4, 37) and lse.dtype == torch.float32


def test_flops_and_profiles():
    from torch.utils.flop_counter import FlopCounterMode

    q, k, v = [x.requires_grad_() for x in inputs()]
    with FlopCounterMode(display=False) as counter:
        causal(q, k, v).sum().backward()
    pairs = 2 * 4 * 37 * 41
    assert counter.get_total_flops() == 2 * pairs * (32 + 16) + 2 * pairs * (3 * 32 + 2 * 16)
    with torch.profiler.profile() as profile:
        causal(q.detach(), k.detach(), v.detach())
    assert "attn::forward" in {event.key for event in profile.key_averages()}


def test_what_the_operator_refuses():
    q, k, v = inputs()

    def check(message, *arguments):
        # Behind the dispatcher both say the same; exceptions of C++ are RuntimeErrors there.
        with pytest.raises(attn.Error, match=message):
            _operator._forward(*arguments)
        with pytest.raises((attn.Error, RuntimeError), match=message):
            torch.ops.attn.forward(*arguments)

    message = "source: expected what attn wrote"
    check(message, q, k, v, None, [], "func.func @f() { return }", None, False)
    other = source().replace('"head_dim"', '"depth"')
    with pytest.raises(attn.Error, match=message):
        _operator._forward(q, k, v, None, [], other, None, False)
    check("q: expected", q.half(), k.half(), v.half(), None, [], source(), None, False)
    check("q: expected 4 dimensions", q[0], k, v, None, [], source(), None, False)
    check("expected", q, k[:, :, :3], v, None, [], source(), None, False)
    check("scale: expected none, as the source says", q, k, v, None, [], source(), 3.0, False)
    sink = torch.zeros(4)
    check("sink: expected none, as the source says", q, k, v, sink, [], source(), None, False)
    check("captures: expected 0|got 6 values", q, k, v, None, [sink], source(), None, False)
    q.requires_grad_()
    results = {"output": torch.zeros(2, 4, 37, 16), "lse": torch.zeros(2, 4, 37)}
    with pytest.raises(attn.Error, match="got one of the operator itself"):
        torch.ops.attn.forward_out(q, k, v, None, [], source(), None, False, **results)


@pytest.mark.parametrize("how", ["layout", "window", "dropout"])
def test_functions_in_one_graph(how):
    """attn.attention itself, with all that flex_attention has not."""
    q, k, v = [x.requires_grad_() for x in inputs()]
    bias = torch.randn(4, 41, requires_grad=True)
    options = {
        "layout": dict(layout="bshd", causal=True, sink=torch.randn(4)),
        "window": dict(window=(9, 3), scale=0.3, return_lse=True),
        "dropout": dict(dropout_p=0.3, dropout_seed=5, options={"block_n": 32}),
    }[how]

    def call(q, k, v):
        if how == "layout":
            q, k, v = [x.transpose(1, 2) for x in (q, k, v)]
        score = lambda s, b, h, i, j: s + bias[h, j]
        found = attn.attention(q, k, v, score=score, mask=lambda b, h, i, j: j <= i + 2, **options)
        return found[0] * 2 if how == "window" else found * 2

    torch._dynamo.reset()
    found, wanted = torch.compile(call, backend="aot_eager", fullgraph=True)(q, k, v), call(q, k, v)
    assert torch.equal(found, wanted)
    for x, y in zip(
        *[torch.autograd.grad(z.sin().sum(), (q, k, v, bias)) for z in (found, wanted)]
    ):
        assert torch.allclose(x, y, atol=1e-5)


def test_functions_that_dynamo_does_not_know():
    """It breaks the graph around the call, which is what it is without torch.compile."""
    q, k, v = [x.requires_grad_() for x in inputs()]

    def call(q, k, v):
        score = lambda s, b, h, i, j: attn.where(i >= j, s, s / attn.key_length)
        return attn.attention(q.sin(), k, v, score=score).cos()

    torch._dynamo.reset()
    found, wanted = torch.compile(call, backend="aot_eager")(q, k, v), call(q, k, v)
    assert torch.equal(found, wanted)
    for x, y in zip(*[torch.autograd.grad(z.sum(), (q, k, v)) for z in (found, wanted)]):
        assert torch.allclose(x, y, atol=1e-5)


def test_compiled_kernels_break_the_graph():
    q, k, v = inputs()
    kernel = attn.compile("float32", 32, 16)
    with pytest.raises(Exception, match="traces Python functions itself"):
        torch.compile(lambda q: kernel(q, k, v), backend="eager", fullgraph=True)(q)
