"""Every line of docs/Migration.md: the call there, the call here, and the same numbers.

flash_attn and xFormers need a GPU, so that their calls run on what they document.
"""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import attn
from attn import _eager

torch = pytest.importorskip("torch")
from torch.nn.attention import bias as biases  # noqa: E402
from torch.nn.attention import flex_attention as flex  # noqa: E402

DOCUMENT = Path(__file__).parents[2] / "docs" / "Migration.md"
B, H, M, N, D = 2, 4, 13, 18, 16


def list_lines():
    lines, section = [], ""
    for line in DOCUMENT.read_text().splitlines():
        section = line[3:] if line.startswith("## ") else section
        row = re.fullmatch(r"\| `(.*)` \| `(.*)` \|", line)
        if row:
            lines.append((section.removeprefix("From "), *row.groups()))
    return lines


def make():
    torch.manual_seed(0)
    names = {"q": (B, H, M, D), "k": (B, H, N, D), "v": (B, H, N, D)}
    names.update(k2=(B, 2, N, D), v2=(B, 2, N, D), bias=(H, M, N), slopes=(H,), sink=(H,))
    return {name: torch.randn(shape) for name, shape in names.items()}


def define(q, k, v, scale=None, bias=None, keep=None, softcap=0.0, sink=None):
    """(B, S, H, D) in f64."""
    q, k, v = [x.double().transpose(1, 2) for x in (q, k, v)]
    s = q @ k.mT * (D**-0.5 if scale is None else scale)
    s = softcap * torch.tanh(s / softcap) if softcap else s
    s = s if bias is None else s + bias
    s = s if keep is None else s.masked_fill(~keep, -torch.inf)
    if sink is not None:
        s = torch.cat([s, sink.double()[:, None, None].expand(B, H, s.shape[2], 1)], -1)
    weights = torch.softmax(s, -1)[..., : k.shape[2]]
    return (weights @ v).transpose(1, 2)


def flash(
    q, k, v, causal=False, window_size=(-1, -1), softmax_scale=None, softcap=0.0,
    alibi_slopes=None, learnable_sink=None, deterministic=False,
):  # fmt: skip
    m, n = q.shape[1], k.shape[1]
    distance = torch.arange(m)[:, None] + n - m - torch.arange(n)
    left, right = window_size
    keep = torch.ones(m, n, dtype=bool)
    keep = keep if left < 0 else keep & (distance <= left)
    keep = keep if right < 0 else keep & (distance >= -right)
    keep = keep & (distance >= 0) if causal else keep
    bias = None if alibi_slopes is None else -alibi_slopes[:, None, None] * distance.abs()
    return define(q, k, v, softmax_scale, bias, keep, softcap, learnable_sink)


def flash_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal=False):
    cuts = list(zip(cu_seqlens_q[:-1], cu_seqlens_q[1:]))
    return torch.cat([flash(*[x[None, i:j] for x in (q, k, v)], causal)[0] for i, j in cuts])


def flash_cached(q, k_cache, v_cache, cache_seqlens, causal=False):
    def attend(b, length):
        return flash(q[b, None], k_cache[b, None, :length], v_cache[b, None, :length], causal)

    return torch.cat([attend(b, length) for b, length in enumerate(cache_seqlens)])


class Triangle:
    def __init__(self, is_last=False, window=None):
        self.is_last, self.window = is_last, window

    def keep(self, m, n):
        distance = torch.arange(m)[:, None] + (n - m if self.is_last else 0) - torch.arange(n)
        return (distance >= 0) & (distance < (self.window or n + m))


class Blocks:
    def __init__(self, lengths):
        self.of = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))

    def keep(self, m, n):
        return self.of[:, None] == self.of


def xformers(q, k, v, attn_bias=None, scale=None):
    if isinstance(attn_bias, torch.Tensor):
        return define(q, k, v, scale, attn_bias)
    return define(q, k, v, scale, keep=attn_bias and attn_bias.keep(q.shape[1], k.shape[1]))


XOPS = SimpleNamespace(
    memory_efficient_attention=xformers,
    LowerTriangularMask=Triangle,
    LowerTriangularFromBottomRightMask=lambda: Triangle(True),
    LowerTriangularFromBottomRightLocalAttentionMask=lambda window: Triangle(True, window),
    BlockDiagonalMask=SimpleNamespace(from_seqlens=Blocks),
)


def make_names(section):
    names = make()
    if section in ("flash_attn", "xFormers"):
        names.update({x: names[x].transpose(1, 2).contiguous() for x in "qkv"})
    names["seen"] = torch.rand(B, N) < 0.8
    names["seen"][:, 0] = True
    names["keep"] = torch.rand(B, 1, M, N) < 0.8
    names["keep"][..., 0] = True
    bias = names["bias"]
    names.update(
        attn=attn,
        torch=torch,
        **{x: globals()[x] for x in "BHMN"},
        n=N - M,
        document=torch.repeat_interleave(torch.arange(3), torch.tensor([5, 4, 9])),
        lengths=[0, 5, 9, 18],
        filled=torch.tensor([15, 17], dtype=torch.int32),
        sdpa=torch.nn.functional.scaled_dot_product_attention,
        causal_lower_right=biases.causal_lower_right,
        near=lambda s, b, h, i, j: s + bias[h, i, j] - (i - j).abs(),
        local=lambda b, h, i, j: (i - j).abs() < 9,
        early=lambda b, h, i, j: j < 15,
        flash_attn_func=flash,
        flash_attn_kvpacked_func=lambda q, kv: flash(q, *kv.unbind(2)),
        flash_attn_varlen_func=flash_varlen,
        flash_attn_with_kvcache=flash_cached,
        xops=XOPS,
    )
    for name in ("flex_attention", "create_block_mask", "and_masks", "AuxRequest"):
        names[name] = getattr(flex, name)
    return names


@pytest.mark.parametrize("section, there, here", list_lines())
def test_line(section, there, here, monkeypatch):
    names, calls = make_names(section), []
    find = _eager.find_plan
    monkeypatch.setattr(_eager, "find_plan", lambda *x: calls.append(x) or find(*x))
    wanted = eval(there, names)
    assert not calls
    got = eval(here, names)
    assert len(calls) == 1 and got.shape == wanted.shape
    assert torch.allclose(got.double(), wanted.double(), atol=1e-5)


def test_all_are_there():
    assert [x for x, *_ in list_lines()].count("xFormers") >= 7 and len(list_lines()) >= 30
