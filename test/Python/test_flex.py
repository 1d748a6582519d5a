"""attn.integrations.torch.flex_attention: the functions of attention-gym, and PyTorch's own."""

import pytest

torch = pytest.importorskip("torch")
gym = pytest.importorskip("attn_gym")
from attn.integrations import torch as integration  # noqa: E402
from attn_gym import masks, mods  # noqa: E402
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex  # noqa: E402
from torch.nn.attention import flex_attention as flex  # noqa: E402

# PyTorch before 2.10 gives part of a BlockMask the function of the whole, and cannot run one of the
# functions itself.
is_old = not hasattr(flex, "_sliced_mask_mod_error")

B, H, S, D = 1, 4, 64, 16


def documents():
    return torch.tensor([0, 10, 30, 64])


def graph():
    """The distances and the edges of a ring of nodes."""
    adjacency = torch.zeros(1, S, S, dtype=torch.bool)
    i = torch.arange(S)
    adjacency[0, i, (i + 1) % S] = adjacency[0, (i + 1) % S, i] = True
    return adjacency, torch.randint(0, 5, (1, S, S))


def list_masks():
    lower = torch.ones(S, S, dtype=torch.bool).tril()
    intervals = torch.tensor([[0, 20], [10, 40], [40, 64], [5, 6]])
    return {
        "causal": masks.causal_mask,
        "sliding window": masks.generate_sliding_window(9),
        "dilated": masks.generate_dilated_sliding_window(4, 2),
        "global": masks.generate_global_sliding_window(9, torch.rand(S) < 0.2),
        "prefix": masks.generate_prefix_lm_mask(20),
        "documents": masks.generate_doc_mask_mod(masks.causal_mask, documents()),
        "packed documents": masks.generate_packed_causal_doc_mask_mod(documents()),
        "shared prefix": masks.generate_shared_prefix_mask_mod(
            documents(), torch.tensor([-1, 0, 0])
        ),
        "block diffusion": masks.generate_block_diffusion_mask(S // 2, 8),
        "jetspec training": masks.generate_jetspec_training_mask_mod(16, 8),
        "jetspec tree": masks.generate_jetspec_tree_causal_mask_mod(0, lower),
        "natten": masks.generate_natten(8, 8, 3, 3),
        "morton natten": masks.generate_morton_natten(8, 8, 3, 3),
        "tiled natten": masks.generate_tiled_natten(16, 4, 4, 2, 2, 2),
        "spatial heads": masks.generate_spatial_head_mask_mod(8, 7, 8, 2, False, 8),
        "temporal heads": masks.generate_temporal_head_mask_mod(8, 7, 8, 2),
        "sta 2d": masks.generate_sta_mask_mod_2d((8, 8), (4, 4), (2, 2), 0),
        "sta 3d": masks.generate_sta_mask_mod_3d((4, 4, 4), (2, 2, 2), (2, 2, 2), 0),
        "flamingo": masks.generate_vision_cross_attention_mask_mod(intervals, 16),
        "vsa": masks.generate_vsa_mask_mod(torch.randint(0, 8, (B, H, 8, 3)), 8),
        "batchify": masks.batchify_mask_mod(masks.causal_mask, 32),
        "and": flex.and_masks(masks.causal_mask, masks.generate_sliding_window(9)),
        "or": flex.or_masks(masks.causal_mask, masks.generate_sliding_window(9)),
        "noop": flex.noop_mask,
    }


def list_scores():
    adjacency, edges = graph()
    types, lengths = mods.shortest_path_edge_types(adjacency, edges, 4)
    distances = mods.shortest_path_distances(adjacency, 6)
    return {
        "softcap": mods.generate_tanh_softcap(20),
        "alibi": mods.generate_alibi_bias(H),
        "gelu": mods.generate_activation_score_mod(),
        "relu": mods.generate_activation_score_mod(torch.nn.functional.relu),
        "silu": mods.generate_activation_score_mod(torch.nn.functional.silu),
        "spatial bias": mods.generate_graphormer_spatial_bias(torch.randn(H, 8), distances),
        "edge bias": mods.generate_graphormer_edge_bias(torch.randn(H, 8, 8), types, lengths),
        "latent rope": mods.generate_mla_rope_score_mod(
            torch.randn(B, H, S, 8), torch.randn(B, 1, S, 8), H, 0.1
        ),
        "sandwich": mods.generate_sandwich_bias(H, S),
    }


def make():
    return [torch.randn(B, H, S, D, requires_grad=True) for _ in range(3)]


def compare(score=None, mask=None, **how):
    tensors = make()
    block = None if mask is None else flex.create_block_mask(mask, B, H, S, S, device="cpu")
    wanted = flex.flex_attention(
        *[x.detach() for x in tensors], score_mod=score, block_mask=block, **how
    )
    # The gradients of the definition: PyTorch's function has none on the CPU.
    s = tensors[0] @ tensors[1].mT / D**0.5
    at = torch.meshgrid(*[torch.arange(n) for n in (B, H, S, S)], indexing="ij")
    if score is not None:
        with TransformGetItemToIndex():
            flat = torch.vmap(score)(s.flatten(), *[x.flatten() for x in at])
        s = flat.view(s.shape)
    if mask is not None:
        with TransformGetItemToIndex():
            keep = torch.vmap(mask)(*[x.flatten() for x in at]).view(s.shape)
        s = s.masked_fill(~keep, -torch.inf)
        empty = ~keep.any(-1, keepdim=True)
        s = s.masked_fill(empty, 0)
    weights = torch.softmax(s, -1)
    if mask is not None:
        weights = weights.masked_fill(empty, 0)
    d_output = torch.randn(B, H, S, D)
    gradients = torch.autograd.grad(weights @ tensors[2], tensors, d_output)
    for given in (block, None if mask is None else integration.create_block_mask(mask, B, H, S, S)):
        served = integration.served["flex_attention"]
        output = integration.flex_attention(*tensors, score_mod=score, block_mask=given, **how)
        assert integration.served["flex_attention"] == served + 1
        assert torch.allclose(output, wanted, atol=2e-5)
        for x, y in zip(torch.autograd.grad(output, tensors, d_output), gradients):
            assert torch.allclose(x, y, atol=5e-5)


@pytest.mark.parametrize("name", list_masks())
def test_masks(name):
    compare(mask=list_masks()[name])


@pytest.mark.parametrize("name", list_scores())
def test_scores(name):
    if is_old and name == "edge bias":
        pytest.skip("a loop over captured tensors in flex_attention itself")
    compare(score=list_scores()[name])


def test_lse():
    q, k, v = make()
    wanted = flex.flex_attention(q.detach(), k.detach(), v.detach(), return_lse=True)
    output, lse = integration.flex_attention(q, k, v, return_lse=True)
    assert torch.allclose(lse, wanted[1], atol=2e-5)
    output, aux = integration.flex_attention(q, k, v, return_aux=flex.AuxRequest(lse=True))
    assert torch.allclose(aux.lse, wanted[1], atol=2e-5) and aux.max_scores is None
    # PyTorch's to answer, which has them on GPUs alone.
    inputs, before = [x.detach() for x in make()], integration.fallbacks["maxima of rows"]
    with pytest.raises(NotImplementedError, match="max scores"):
        integration.flex_attention(*inputs, return_aux=flex.AuxRequest(max_scores=True))
    assert integration.fallbacks["maxima of rows"] == before + 1


def test_wrong_calls():
    q, k, v = make()
    block = integration.create_block_mask(masks.causal_mask, None, None, S, S + 1)
    with pytest.raises(ValueError, match="block_mask: expected one of"):
        integration.flex_attention(q, k, v, block_mask=block)
    sliced = flex.create_block_mask(masks.causal_mask, B, H, S, S, device="cpu")[:, :, :1]
    sliced.seq_lengths = (S, S)
    if not is_old:
        with pytest.raises(ValueError, match="block_mask: expected one with a function"):
            integration.flex_attention(q, k, v, block_mask=sliced)
    with pytest.raises(ValueError, match="query: expected 4 dimensions"):
        integration.flex_attention(q[0], k, v)
    with pytest.raises(ValueError, match="enable_gqa"):
        integration.flex_attention(q, k[:, :2], v[:, :2])
    with pytest.raises(ValueError, match="key: expected 3 batches, as the query has, or one beside"):
        integration.flex_attention(*(x.repeat(count, 1, 1, 1) for x, count in zip((q, k, v), (3, 2, 2))))
    assert integration.flex_attention(q, k[:, :2], v[:, :2], enable_gqa=True).shape == q.shape
