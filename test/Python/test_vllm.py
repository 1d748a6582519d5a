"""attn.integrations.vllm on stand-ins of vLLM 0.33.0: steps of a batch as the engine makes them, against each sequence
by itself in f64."""

import importlib
import sys
import types

import pytest

import attn

torch = pytest.importorskip("torch")
import engine_stand_ins as stand_ins  # noqa: E402
from ragged_reference import attend, check, offsets, seeded, to_int32  # noqa: E402, F401

H, HKV, D, BLOCK = 4, 2, 16, 16


@pytest.fixture
def vllm(monkeypatch):
    stand_ins.install_vllm(monkeypatch)
    yield importlib.import_module("attn.integrations.vllm")
    sys.modules.pop("attn.integrations.vllm", None)


def make_cache(blocks, order, dtype=torch.float32):
    """(blocks, Hkv, P, 2 D) in an order of memory: the last of each is contiguous."""
    shape = {"L": 3, "B": blocks, "H": HKV, "N": BLOCK}
    memory = torch.full([shape[x] for x in order] + [2 * D], torch.nan, dtype=dtype)
    return memory.permute([order.index(x) for x in "LBHN"] + [4])[1], memory


class Engine:
    """Requests whose keys come step by step."""

    def __init__(self, module, requests, order="LBNH", dtype=torch.float32, **how):
        self.cache, self.memory = make_cache(40, order, dtype)
        self.table = torch.randperm(40)[: requests * 6].view(requests, 6).int()
        self.lengths = [0] * requests
        self.keys = [[torch.zeros(0, HKV, D, dtype=dtype) for _ in "kv"] for _ in range(requests)]
        self.dtype = dtype
        given = dict(num_heads=H, head_size=D, scale=D**-0.5, num_kv_heads=HKV, **how)
        self.impl = module.AttnBackend.get_impl_cls()(**given)
        builder = module.AttnBackend.get_builder_cls()
        self.builder = builder(None, ["layer"], None, torch.device("cpu"))

    def step(self, counts, pad=0, causal=True, is_capture=False):
        """(output, queries of each request). `pad` more tokens and requests stand for nothing."""
        total, most = sum(counts), max(counts)
        q, k, v = (torch.randn(total + pad, x, D).to(self.dtype) for x in (H, HKV, HKV))
        slots, rows = [], offsets(counts)
        for b, count in enumerate(counts):
            for i in range(count):
                n = self.lengths[b] + i
                slots.append(int(self.table[b, n // BLOCK]) * BLOCK + n % BLOCK)
            mine = slice(rows[b], rows[b + 1])
            self.keys[b] = [torch.cat([x, y[mine]]) for x, y in zip(self.keys[b], (k, v))]
            self.lengths[b] += count
        # Padding requests have no rows and no keys, and garbage for a table.
        garbage = torch.full((pad, 6), 2147480000, dtype=torch.int32)
        common = stand_ins.CommonAttentionMetadata(
            query_start_loc=to_int32(rows + [rows[-1]] * pad),
            query_start_loc_cpu=to_int32(rows),
            seq_lens=to_int32(self.lengths + [0] * pad),
            num_reqs=len(counts) + pad,
            num_actual_tokens=total + (pad if is_capture else 0),
            max_query_len=most,
            max_seq_len=10**6,
            block_table_tensor=torch.cat([self.table, garbage]),
            slot_mapping=torch.tensor(slots + [-1] * pad),
            causal=causal,
        )
        self.metadata = metadata = self.builder.build(0, common)
        self.impl.do_kv_cache_update(None, k, v, self.cache, metadata.slot_mapping)
        output = torch.full((total + pad, H * D), 7.0, dtype=self.dtype)
        found = self.impl.forward(None, q, k, v, self.cache, metadata, output)
        assert found is output
        return output, q[:total].split(counts)

    def expect(self, rows, **how):
        found = [attend(q, *kv, **how)[0] for q, kv in zip(rows, self.keys)]
        return torch.cat(found).flatten(1)


ORDERS = ["LBNH", "LBHN", "BLNH", "BHLN", "BLHN", "LBNH"]


@pytest.mark.parametrize("order", ORDERS[:5])
def test_an_engine(vllm, order):
    """A prompt in chunks, decoding, drafts and all of these in one batch, in each order of the cache."""
    engine = Engine(vllm, 3, order)
    for counts in ([17, 5, 1], [1, 1, 1], [1, 30, 1], [3, 3, 3], [0, 2, 1]):
        output, rows = engine.step(counts)
        check(output, engine.expect(rows, causal=True))
    # Other layers of the cache are as they were.
    assert engine.memory.isnan().sum() > 2 * engine.memory.numel() // 3 - 1


@pytest.mark.parametrize("counts", [[1, 1, 1], [4, 1, 9]])
def test_padding(vllm, counts):
    """Rows after the last token are neither read nor written, where requests are padded too."""
    engine = Engine(vllm, 3)
    engine.step([20, 7, 33])
    output, rows = engine.step(counts, pad=2, is_capture=len(set(counts)) == 1)
    total = sum(counts)
    check(output[:total], engine.expect(rows, causal=True))
    if len(set(counts)) > 1:
        assert (output[total:] == 7).all()


def test_memory_of_outputs(vllm, monkeypatch):
    """Kernels write where vLLM wants the output, if all sequences have as many rows."""
    engine, places = Engine(vllm, 2), []

    def attend_pages(*given):
        places.append(given[-1].data_ptr())
        return of_pages(*given)

    of_pages = vllm.attend_pages
    monkeypatch.setattr(vllm, "attend_pages", attend_pages)
    for counts in ([5, 5], [1, 1]):
        output, rows = engine.step(counts)
        check(output, engine.expect(rows, causal=True))
        assert places.pop() == output.data_ptr()


def test_layers_share_a_step(vllm, monkeypatch):
    """The places of rows in mixed batches are found once."""
    engine, totals = Engine(vllm, 2), []

    def make_padding(total, *given):
        totals.append(total)
        return of_pages(total, *given)

    of_pages = vllm.make_padding
    monkeypatch.setattr(vllm, "make_padding", make_padding)
    engine.step([4, 4])
    assert totals == []
    engine.step([2, 3])
    metadata, output = engine.metadata, torch.zeros(5, H * D)
    for _ in range(2):
        engine.impl.forward(None, torch.randn(5, H * D), None, None, engine.cache, metadata, output)
    assert totals == [5] and not output.isnan().any()
    other = engine.builder.update_block_table(metadata, metadata.block_table, metadata.slot_mapping)
    assert other.padding is metadata.padding


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_features(vllm, dtype):
    slopes, sinks = [0.5, 0.25, 0.125, 0.0625], torch.randn(H)
    for how, same in (
        ({"sliding_window": 5}, {"window": (4, 0)}),
        ({"logits_soft_cap": 3.0}, {"softcap": 3.0}),
        ({"alibi_slopes": slopes}, {"slopes": torch.tensor(slopes)}),
        ({"sinks": sinks}, {"sink": sinks}),
    ):
        engine = Engine(vllm, 2, dtype=dtype, **how)
        for counts in ([20, 7], [1, 1], [2, 9]):
            output, rows = engine.step(counts)
            check(output, engine.expect(rows, causal=True, **same), dtype)


@pytest.mark.parametrize("counts", [[2, 2], [3, 1]])
def test_without_a_causal_mask(vllm, counts):
    engine = Engine(vllm, 2)
    engine.step([20, 7])
    output, rows = engine.step(counts, causal=False)
    check(output, engine.expect(rows))
    output, rows = engine.step(counts, causal=torch.tensor([True, False]))
    wanted = [attend(q, *kv, causal=b == 0)[0] for b, (q, kv) in enumerate(zip(rows, engine.keys))]
    check(output, torch.cat(wanted).flatten(1))


def test_other_groups_share_a_step(vllm):
    engine = Engine(vllm, 2)
    metadata = vllm.AttnMetadata(5, 2, 3, *[torch.zeros(2)] * 2, *[torch.zeros(1)] * 2, True)
    table, slots = torch.ones(2, 6), torch.ones(5)
    other = engine.builder.update_block_table(metadata, table, slots)
    assert other.block_table is table and other.slot_mapping is slots
    assert other.seq_lens is metadata.seq_lens and metadata.block_table is not table


def test_a_run_without_a_step(vllm):
    output = torch.full((3, H * D), 7.0)
    engine = Engine(vllm, 1)
    engine.impl.forward(None, output, None, None, engine.cache, None, output)
    assert (output == 0).all()


def test_what_the_engine_asks(vllm):
    backend = vllm.AttnBackend
    assert backend.get_name() == "CUSTOM" and not backend.forward_includes_kv_cache_update
    assert backend.supports_sink() and backend.supports_sliding_window()
    assert backend.supports_batch_invariance() and not backend.is_mla()
    assert [backend.supports_head_size(x) for x in (64, 128, 256, 100, 512)] == [1, 1, 1, 0, 0]
    assert backend.supports_compute_capability((9, 0))
    assert not backend.supports_compute_capability((10, 0))
    support = backend.get_builder_cls()._cudagraph_support
    assert support is stand_ins.AttentionCGSupport.UNIFORM_BATCH


def test_registration(vllm):
    vllm.register()
    custom = stand_ins.AttentionBackendEnum.CUSTOM
    assert stand_ins.OVERRIDES[custom] == "attn.integrations.vllm.AttnBackend"
    stand_ins.OVERRIDES[custom] = "somebody.else"
    vllm.register()
    assert stand_ins.OVERRIDES[custom] == "somebody.else"


@pytest.mark.parametrize(
    "how, words",
    [
        ({"attn_type": "encoder"}, "attn_type: expected that of a decoder"),
        ({"kv_cache_dtype": "fp8"}, "kv_cache_dtype: expected auto or float16 or bfloat16"),
        ({"sinks": torch.zeros(3)}, r"sinks: expected shape \(4,\)"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_layers_that_are_refused(vllm, how, words):
    with pytest.raises(attn.Error, match=words):
        vllm.AttnImpl(H, D, 1.0, HKV, **how)


def test_quantized_outputs_are_refused(vllm):
    engine, x = Engine(vllm, 1), torch.zeros(1, H * D)
    with pytest.raises(attn.Error, match="output_scale: expected None"):
        engine.impl.forward(None, x, None, None, engine.cache, None, x, output_scale=x)


@pytest.mark.parametrize("is_asked", [True, False])
def test_the_same_bits_in_every_batch(vllm, monkeypatch, is_asked):
    """Keys are summed in fixed parts where VLLM_BATCH_INVARIANT is set."""
    envs = types.SimpleNamespace(VLLM_BATCH_INVARIANT=is_asked)
    monkeypatch.setattr(sys.modules["vllm"], "envs", envs, raising=False)
    parts = []
    attend_pages = vllm.attend_pages
    note = lambda *given: (parts.append(given[3].fixed_split), attend_pages(*given))[1]  # noqa: E731
    monkeypatch.setattr(vllm, "attend_pages", note)
    engine = Engine(vllm, 2)
    engine.step([1, 1])
    assert parts == [4096 if is_asked else None]
