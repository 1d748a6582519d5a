"""docs/Gallery.md: its pictures are those of today, and every line is its mod of attention-gym."""

import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

import attn

torch = pytest.importorskip("torch")
pytest.importorskip("attn_gym")
from torch._dynamo._trace_wrapped_higher_order_op import (  # noqa: E402
    TransformGetItemToIndex,
)
from torch.nn.attention import flex_attention as flex  # noqa: E402

PATH = Path(__file__).parents[2] / "docs" / "gallery"
if not PATH.exists():
    pytest.skip("no documents beside the tests", allow_module_level=True)
_loader = importlib.machinery.SourceFileLoader("gallery", str(PATH))
gallery = importlib.util.module_from_spec(importlib.util.spec_from_loader("gallery", _loader))
_loader.exec_module(gallery)
H, S = gallery.H, gallery.S


def test_the_page_is_of_today():
    assert gallery.DOCUMENT.read_text() == gallery.write_page(), "run docs/gallery"


@pytest.mark.parametrize("entry", list(gallery.list_entries()), ids=lambda entry: entry.title)
def test_lines(entry):
    names = gallery.make_names()
    mod, how = eval(entry.mod, names), eval(f"dict({entry.line})", names)
    if entry.is_mask:
        at = torch.meshgrid(torch.arange(S), torch.arange(S), indexing="ij")
        zero = torch.tensor(0)
        # As flex_attention does it: PyTorch 2.9 has no vmap of indices that are tensors.
        with TransformGetItemToIndex():
            wanted = torch.vmap(lambda i, j: mod(zero, zero, i, j))(*[x.flatten() for x in at])
        kept = attn.visualize_mask(S, tile=(1, 1), **how).tiles == 2
        assert torch.equal(torch.from_numpy(kept), wanted.view(S, S))
        return
    q, k, v = torch.randn(3, 1, H, S, 16)
    try:
        wanted = flex.flex_attention(q, k, v, score_mod=mod)
    except torch._dynamo.exc.UserError as error:
        pytest.skip(f"PyTorch's own refuses it: {error}")
    assert torch.allclose(attn.attention(q, k, v, **how), wanted, atol=2e-5)


def test_no_mod_is_missing():
    """Every generator that attention-gym exports."""
    from attn_gym import masks, mods

    page = gallery.DOCUMENT.read_text()
    for module in (masks, mods):
        for name in dir(module):
            if name.startswith("generate_") or name in ("causal_mask", "batchify_mask_mod"):
                assert f"{module.__name__.rpartition('.')[2]}.{name}" in page, name
