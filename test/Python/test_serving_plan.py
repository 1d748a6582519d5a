"""attn.serving.Plan on a CPU, where calls compute nothing before an attention."""

import pytest

import attn
from attn import serving

torch = pytest.importorskip("torch")


def make():
    torch.manual_seed(0)
    caches = [torch.randn(2, 9, 16, 2, 32) for _ in range(2)]
    table = torch.randperm(9)[:8].reshape(2, 4).int()
    return torch.randn(2, 2, 4, 32), caches, table, torch.tensor([50, 7]).int()


def test_calls_are_those_without():
    q, (k, v), table, lengths = make()
    plan = serving.Plan()
    for _ in range(3):
        plan.update()
        for layer in range(2):
            given = dict(page_table=table, seqused_k=lengths, options={"balance": "on"})
            wanted = serving.paged_attention(q, k[layer], v[layer], page_table=table, seqused_k=lengths)
            assert torch.equal(serving.paged_attention(q, k[layer], v[layer], **given, plan=plan), wanted)
        lengths += 3


def test_options():
    q, (k, v), table, lengths = make()
    with pytest.raises(attn.Error, match="balance: expected on or off, got 'yes'"):
        serving.paged_attention(q, k[0], v[0], page_table=table, seqused_k=lengths, options={"balance": "yes"})
    assert attn.Options(balance="on")["balance"] == "on"
