"""Gradients of every parameter of Hugging Face's families on attn, beside those of their own eager
attention. Each change runs all of them eagerly and some compiled; `make test-training` runs all of
them compiled by Inductor too, 15 minutes, and prints how far each is off."""

import os

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from attn.integrations import transformers as integration  # noqa: E402
from families import FAMILIES, make, make_batch  # noqa: E402

IS_WHOLE = os.environ.get("ATTN_TRAINING") == "all"
COMPILED = FAMILIES if IS_WHOLE else ("gpt_oss", "t5", "bert")
# Sizes that depend on data, which no full graph has.
BREAKS = ("qwen2_vl",)


@pytest.fixture(autouse=True)
def registered():
    integration.register()
    yield
    integration.unregister()
    torch._dynamo.reset()


def differentiate(model, batch, implementation, compiler=None):
    """The gradients of a loss, zeros where there are none."""
    inputs, read = batch
    model.set_attn_implementation(implementation)
    model.zero_grad()
    call = model if compiler is None else torch.compile(model, **compiler)
    generator = torch.Generator().manual_seed(7)
    loss = torch.zeros(())
    for x in read(call(**inputs)):
        loss = loss + (x * torch.randn(x.shape, generator=generator)).mean()
    loss.backward()
    return {
        name: torch.zeros_like(p) if p.grad is None else p.grad.clone().float()
        for name, p in model.named_parameters()
    }


def find_error(found, wanted):
    """The largest distance of a parameter's gradient by its norm, and whose it is. Gradients that are
    sums to zero, as those of biases of keys, are measured by all of the model's."""
    whole = torch.stack([x.norm() for x in wanted.values()]).norm()
    return max(
        (float((found[name] - x).norm() / (x.norm() + 1e-4 * whole)), name)
        for name, x in wanted.items()
    )


def tell(kind, padding, way, error):
    if IS_WHOLE:
        print(f"\n{kind:12} {padding or 'none':6} {way:9} {error[0]:.1e} {error[1]}", end="")


def find_paddings(kind):
    return (None,) if kind == "vit" else (None, "left", "right")


def make_case(kind, padding):
    torch.manual_seed(5)
    return make(kind).train(), make_batch(kind, padding)


@pytest.mark.parametrize("kind", FAMILIES)
def test_gradients(kind):
    for padding in find_paddings(kind):
        model, batch = make_case(kind, padding)
        wanted = differentiate(model, batch, "eager")
        error = find_error(differentiate(model, batch, "attn"), wanted)
        tell(kind, padding, "eager", error)
        assert error[0] < 2e-4, (padding, error)


def check_that_eager_compiles(model, batch, compiler):
    torch._dynamo.reset()
    try:
        differentiate(model, batch, "eager", compiler)
    except Exception as error:
        pytest.skip(f"these versions fail by themselves: {type(error).__name__}")


@pytest.mark.parametrize("kind", COMPILED)
def test_compiled_gradients(kind):
    compiler = dict(backend="inductor" if IS_WHOLE else "aot_eager", fullgraph=kind not in BREAKS)
    for padding in find_paddings(kind) if IS_WHOLE else ("left",):
        torch._dynamo.reset()
        model, batch = make_case(kind, padding)
        wanted = differentiate(model, batch, "eager")
        try:
            found = differentiate(model, batch, "attn", compiler)
        except Exception:
            check_that_eager_compiles(model, batch, compiler)
            raise
        error = find_error(found, wanted)
        tell(kind, padding, "compiled", error)
        assert error[0] < 2e-4, (padding, error)


@pytest.mark.parametrize("kind", FAMILIES)
def test_gradients_in_bf16(kind):
    """As near to f32 as those of PyTorch are, eager or by its kernel, which differ by their own
    roundings: outputs are rounded before the backward pass reads them."""
    model, (inputs, read) = make_case(kind, None)
    exact = differentiate(model, (inputs, read), "eager")
    model = model.to(torch.bfloat16)
    inputs = {
        name: x.bfloat16() if torch.is_tensor(x) and x.is_floating_point() else x
        for name, x in inputs.items()
    }
    batch = inputs, lambda found: [x.float() for x in read(found)]
    pytorch = ["eager"] + ["sdpa"] * (model._supports_sdpa and kind != "gemma2")
    off, name = find_error(differentiate(model, batch, "attn"), exact)
    worst, _ = max(find_error(differentiate(model, batch, x), exact) for x in pytorch)
    tell(kind, None, "bf16", (off, f"(PyTorch {worst:.1e}) {name}"))
    assert off <= 2 * worst + 0.02, name
