"""attn as an attention backend of diffusers: a transformer of images and one attention, beside the native backend."""

import pytest

import attn

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")
from diffusers import FluxTransformer2DModel  # noqa: E402
from diffusers.models.attention_dispatch import (  # noqa: E402
    AttentionBackendName,
    attention_backend,
    dispatch_attention_fn,
)

from attn.integrations import diffusers  # noqa: E402
from attn.integrations.torch import served  # noqa: E402


@pytest.fixture
def backend():
    yield diffusers.register()
    diffusers.unregister()


def test_a_model(backend):
    """Forward and gradients of all parameters."""
    torch.manual_seed(0)
    model = FluxTransformer2DModel(
        patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16,
        num_attention_heads=2, joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 4, 8),
    )  # fmt: skip
    inputs = dict(
        hidden_states=torch.randn(1, 16, 4), encoder_hidden_states=torch.randn(1, 7, 32),
        pooled_projections=torch.randn(1, 32), timestep=torch.tensor([0.5]), img_ids=torch.randn(16, 3),
        txt_ids=torch.randn(7, 3), return_dict=False,
    )  # fmt: skip
    found = []
    for name in ("native", backend):
        model.set_attention_backend(name)
        model.zero_grad()
        before = served["scaled_dot_product_attention"]
        (output,) = model(**inputs)
        output.square().sum().backward()
        gradients = {x: p.grad.clone() for x, p in model.named_parameters() if p.grad is not None}
        found.append((output.detach(), gradients, served["scaled_dot_product_attention"] - before))
    (wanted, theirs, none), (got, mine, count) = found
    assert none == 0 and count == 2
    assert torch.allclose(got, wanted, atol=1e-4)
    assert mine.keys() == theirs.keys()
    for name, x in mine.items():
        assert torch.allclose(x, theirs[name], atol=1e-4 * max(1.0, float(theirs[name].abs().max()))), name


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"is_causal": True},
        {"scale": 0.3},
        {"attn_mask": torch.arange(9) < torch.tensor([[5], [9]])},
        {"attn_mask": torch.randn(2, 1, 9, 9)},
        {"attn_mask": torch.randn(9, 9) > 0.5},
        {"enable_gqa": True},
    ],
    ids=lambda how: " ".join(how) or "plain",
)
def test_calls(backend, how):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 9, 4, 16)
    if "enable_gqa" in how:
        k, v = k[:, :, :2], v[:, :, :2]
    with attention_backend(backend):
        got = dispatch_attention_fn(q, k, v, **how)
    wanted = dispatch_attention_fn(q, k, v, backend=AttentionBackendName.NATIVE, **how)
    assert torch.allclose(got, wanted, atol=2e-5, equal_nan=False) or "attn_mask" in how
    rows = ~wanted.isnan().any(-1)
    assert torch.allclose(got[rows], wanted[rows], atol=2e-5)


def test_names(backend):
    assert diffusers.register() == "attn" and AttentionBackendName("attn").name == "ATTN"
    for name in ("native", "flash"):
        with pytest.raises(attn.Error, match=f"^name: expected one that is no backend of diffusers, got '{name}'"):
            diffusers.register(name)
    with pytest.raises(attn.Error, match="^name: expected a word of small letters, got 'Attn 2'"):
        diffusers.register("Attn 2")
    diffusers.unregister("native")
    assert "native" in {x.value for x in AttentionBackendName}


def test_it_can_be_undone():
    names = [*AttentionBackendName]
    diffusers.register("attn_twice")
    diffusers.unregister("attn_twice")
    diffusers.unregister("attn_twice")
    assert [*AttentionBackendName] == names
    with pytest.raises(ValueError):
        AttentionBackendName("attn_twice")


def test_refusals(backend):
    q = torch.zeros(1, 3, 2, 8)
    with pytest.raises(attn.Error, match="^return_lse: expected False, got True"):
        dispatch_attention_fn(q, q, q, backend=backend, attention_kwargs={"return_lse": True})
    with pytest.raises(attn.Error, match="^_parallel_config: expected None, got context parallelism"):
        dispatch_attention_fn(q, q, q, backend=backend, parallel_config=object())
