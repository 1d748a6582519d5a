"""docs/Papers.md: its pictures are those of today, and every entry is its definition, gradients included."""

import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

import attn

torch = pytest.importorskip("torch")

PATH = Path(__file__).parents[2] / "docs" / "papers"
if not PATH.exists():
    pytest.skip("no documents beside the tests", allow_module_level=True)
_loader = importlib.machinery.SourceFileLoader("papers", str(PATH))
papers = importlib.util.module_from_spec(importlib.util.spec_from_loader("papers", _loader))
_loader.exec_module(papers)
H, S, D = papers.H, papers.S, papers.D


@pytest.mark.made_of("docs/papers", "docs/Papers.md", "python/attn/_picture.py", "python/attn/_ranges.py")
def test_the_page_is_of_today():
    assert papers.DOCUMENT.read_text() == papers.write_page(), "run docs/papers"


def softmax(s):
    weights = (s - s.amax(-1, keepdim=True).clamp(min=-1e30)).exp()
    return weights / weights.sum(-1, keepdim=True)


I, J = torch.arange(S)[:, None], torch.arange(S)
PAST = torch.where(J <= I, 0.0, -torch.inf).double()
X = (I - J).double() / S
# What each entry means, of scores (1, H, S, S), values and what is learned, in f64 and without its function.
DEFINITIONS = {
    "Forgetting attention": lambda s, v, gates: softmax(
        s
        + PAST
        + torch.stack([_sum_gates(gates, row) for row in range(S)], 2)
    ) @ v,
    "Sigmoid attention": lambda s, v, bias: torch.sigmoid(s + bias) @ v,
    "Learned temperature": lambda s, v, temperature: softmax(s * temperature[:, None, None]) @ v,
    "Polynomial of the distance": lambda s, v, powers: softmax(
        s + PAST + torch.einsum("hp,pij->hij", powers, torch.stack([X, X**2, X**3]))
    ) @ v,
    "Gates of keys": lambda s, v, wanted: softmax(s + 2 * torch.tanh(wanted)[:, None, None]) @ v,
    "A small network as a bias": lambda s, v, into, of, out: softmax(
        s + (torch.tanh(X[..., None] * into + of) * out).sum(-1)
    ) @ v,
    "Softmax off by one": lambda s, v, sink: softmax(
        torch.cat([s + PAST, sink[None, :, None, None].expand(1, H, S, 1)], -1)
    )[..., :S] @ v,
    "Sliding tiles": lambda s, v: softmax(s.masked_fill(~_see_tiles(), -torch.inf)) @ v,
    "Selected blocks and a window": lambda s, v: softmax(s.masked_fill(~_see_blocks(), -torch.inf)) @ v,
}


def _sum_gates(gates, i):
    """Logarithms of the gates after each key, up to row i; keys after the row are dropped elsewhere."""
    logs = torch.nn.functional.logsigmoid(gates)
    after = [logs[..., j + 1 : i + 1].sum(-1) for j in range(S)]
    return torch.stack(after, -1)


def _see_tiles():
    """Of a canvas of 4 x 4 tiles, whose 4 positions follow one another."""
    keep = torch.zeros(S, S, dtype=torch.bool)
    for row in range(S):
        for key in range(S):
            (y, x), (v, u) = divmod(row // 4, 4), divmod(key // 4, 4)
            keep[row, key] = max(abs(y - v), abs(x - u)) <= 1
    return keep


def _see_blocks():
    keep = torch.zeros(S, S, dtype=torch.bool)
    for row in range(S):
        for key in range(row + 1):
            keep[row, key] = row - key < 6 or (row // 8 * 3 + key // 8) % 5 == 0
    return keep


# Three are of each run: a learned tensor that scores gather, one that a network reads, and a mask.
SAMPLE = ["Forgetting attention", "A small network as a bias", "Selected blocks and a window"]
OTHERS = [f"python/attn/_{name}.py" for name in ("autograd", "gradient", "operations", "scan", "source", "symbols", "trace")]
OF_OTHERS = pytest.mark.made_of("docs/papers", "dialects/Attn", "lib/Transforms/Attn", *OTHERS)


def list_entries():
    for one in papers.ENTRIES:
        yield pytest.param(one, id=one.title, marks=[] if one.title in SAMPLE else [OF_OTHERS])


@pytest.mark.parametrize("one", [*list_entries()])
def test_entries(one):
    """The output, and gradients of queries, keys, values and of all that is learned."""
    names = papers.set_up(one)
    learned = [names[name] for name in one.learned]
    torch.manual_seed(0)
    tensors = [torch.randn(1, H, S, D, requires_grad=True) for _ in range(3)]
    names.update(zip("qkv", tensors))
    exec(f"found = attn.attention(q, k, v, {one.line})\n{one.after}", names)
    output = names["output"]
    q, k, v, *more = [x.detach().double().requires_grad_() for x in (*tensors, *learned)]
    wanted = DEFINITIONS[one.title](q @ k.mT * D**-0.5, v, *more)
    assert (output - wanted).detach().abs().max() < 1e-5 * max(1.0, float(wanted.detach().abs().max()))
    d_output = torch.randn_like(output)
    got = torch.autograd.grad(output, [*tensors, *learned], d_output)
    theirs = torch.autograd.grad(wanted, [q, k, v, *more], d_output.double())
    for name, x, y in zip(["q", "k", "v", *one.learned], got, theirs):
        assert (x - y).abs().max() < 3e-5 * max(1.0, float(y.abs().max())), name


def test_every_entry_has_a_definition():
    assert [one.title for one in papers.ENTRIES] == list(DEFINITIONS) and set(SAMPLE) <= set(DEFINITIONS)
    # A learned tensor that no gradient reached would not be learned.
    assert sum(len(one.learned) for one in papers.ENTRIES) == 9
