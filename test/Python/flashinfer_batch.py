"""What tests of attn.integrations.flashinfer are given."""

import torch
from ragged_reference import offsets, to_int32

WORKSPACE = torch.empty(1, dtype=torch.uint8)


class Batch:
    """Sequences whose keys lie in pages, three times as many as needed, in any order."""

    def __init__(self, lengths, page, hkv=2, d=16, dtype=torch.float32, layout="NHD", form="one"):
        counts = [-(-length // page) for length in lengths]
        total = 3 * sum(counts) + 1
        order = torch.randperm(total)[: sum(counts)]
        self.indptr, self.indices = to_int32(offsets(counts)), order.int()
        self.last = to_int32([(n - 1) % page + 1 if n else 0 for n in lengths])
        self.page, self.layout = page, layout
        pools = torch.randn(total, 2, page, hkv, d).to(dtype)
        self.keys = []
        for b, length in enumerate(lengths):
            mine = order[self.indptr[b] : self.indptr[b + 1]].long()
            rows = [pools[mine, i].flatten(0, 1)[:length] for i in (0, 1)]
            self.keys.append(rows)
        # A key that no sequence has is NaN.
        seen = torch.zeros(total, page, dtype=torch.bool)
        for b, length in enumerate(lengths):
            for n in range(length):
                seen[order[self.indptr[b] + n // page], n % page] = True
        pools = torch.where(seen[:, None, :, None, None], pools, torch.nan)
        if layout == "HND":
            pools = pools.transpose(2, 3).contiguous()
        self.cache = pools if form == "one" else (pools[:, 0].clone(), pools[:, 1].clone())

    @property
    def lists(self):
        return self.indptr, self.indices, self.last
