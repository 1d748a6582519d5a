"""Sequences whose keys lie in pages, in any batch, for tests of fixed_split: what a row gives is its own."""

import torch

H, HKV, D = 4, 2, 32

MASKS = {
    "causal": {},
    "full": {"causal": False},
    "window": {"window": (90, None)},
    "softcap": {"softcap": 5.0},
    "sink": {"sink": torch.linspace(-1, 2, H)},
    "slopes": {"alibi_slopes": torch.linspace(0.01, 0.2, H)},
    "window, sink and softcap": {"window": (70, 0), "sink": torch.zeros(H), "softcap": 20.0},
    "score": {"score": lambda s, b, h, q, kv: s * 1.25 - 0.01 * kv},
}


class Sequences:
    """Of so many keys each. The queries are rows of their ends."""

    def __init__(self, lengths, rows, dtype, device="cpu", shape=(H, HKV, D)):
        heads, key_heads, d = shape
        draw = lambda *x: torch.randn(*x, device=device).to(dtype)  # noqa: E731
        self.q = draw(len(lengths), rows, heads, d)
        self.k = [draw(n, key_heads, d) for n in lengths]
        self.v = [draw(n, key_heads, d) for n in lengths]

    def lay(self, picked, page, columns):
        """(k_cache, v_cache, page_table, seqused_k) of some of them, in any pages: NaN where no key is, and
        garbage where no page is needed."""
        like, lengths = self.k[0], [self.k[i].shape[0] for i in picked]
        counts = [-(-n // page) for n in lengths]
        pools = [like.new_full((sum(counts) + 3, page, *like.shape[1:]), torch.nan) for _ in "kv"]
        order = torch.randperm(sum(counts) + 3)[: sum(counts)]
        garbage = torch.tensor([-1, 2147480000, -(2**31)], dtype=torch.int32)
        table = garbage.repeat(len(picked), columns)[:, :columns].clone()
        for b, i in enumerate(picked):
            mine, order = order[: counts[b]], order[counts[b] :]
            table[b, : counts[b]] = mine
            places = mine.to(like.device).repeat_interleave(page)[: lengths[b]]
            within = torch.arange(lengths[b], device=like.device) % page
            for pool, x in zip(pools, (self.k[i], self.v[i])):
                pool[places, within] = x
        used = torch.tensor(lengths, dtype=torch.int32, device=like.device)
        return pools[0], pools[1], table.to(like.device), used


def are_same(x, y):
    """To the bit, and 0 is not -0."""
    kinds = {2: torch.int16, 4: torch.int32}
    return torch.equal(*(z.contiguous().view(kinds[z.element_size()]) for z in (x, y)))
