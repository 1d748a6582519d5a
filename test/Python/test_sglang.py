"""attn.integrations.sglang on stand-ins of SGLang 0.5.23: prompts, decoding, and steps of a graph, against each sequence by
itself in f64."""

import importlib
import sys
from types import SimpleNamespace

import pytest

import attn

torch = pytest.importorskip("torch")
import engine_stand_ins as stand_ins  # noqa: E402
from ragged_reference import attend, check, offsets, seeded, to_int32  # noqa: E402, F401

H, HKV, D, DV = 4, 2, 16, 24


@pytest.fixture
def sglang(monkeypatch):
    stand_ins.install_sglang(monkeypatch)
    yield importlib.import_module("attn.integrations.sglang")
    sys.modules.pop("attn.integrations.sglang", None)


def make_layer(**how):
    given = dict(
        tp_q_head_num=H,
        tp_k_head_num=HKV,
        qk_head_dim=D,
        v_head_dim=DV,
        scaling=D**-0.5,
        layer_id=1,
        logit_cap=0.0,
        logit_capping_method="tanh",
        xai_temperature_len=-1,
        sliding_window_size=-1,
        is_cross_attention=False,
        attn_type=stand_ins.RadixAttentionType.DECODER,
    )
    return SimpleNamespace(**{**given, **how})


class Server:
    def __init__(self, module, requests, **how):
        tokens = torch.full((requests + 2, 64), 2147480000, dtype=torch.int32)
        self.runner = SimpleNamespace(
            device="cpu",
            req_to_token_pool=SimpleNamespace(req_to_token=tokens),
            token_to_kv_pool=stand_ins.TokenPool(400, 2, HKV, D, DV),
        )
        self.backend = module.AttnBackend(self.runner)
        self.layer = make_layer(**how)
        self.places = torch.randperm(400).tolist()
        self.rows = (torch.randperm(requests + 2)[:requests]).tolist()
        self.lengths = [0] * requests
        self.keys = [[torch.zeros(0, HKV, d) for d in (D, DV)] for _ in range(requests)]

    def make_batch(self, counts, is_decode, pad=0):
        """The batch, and its new keys."""
        total, places = sum(counts), []
        q = torch.randn(total + pad, H * D)
        k, v = torch.randn(total + pad, HKV, D), torch.randn(total + pad, HKV, DV)
        at = offsets(counts)
        before = list(self.lengths)
        for b, count in enumerate(counts):
            for i in range(count):
                place = self.places.pop()
                places.append(place)
                self.runner.req_to_token_pool.req_to_token[self.rows[b], before[b] + i] = place
            mine = slice(at[b], at[b + 1])
            self.keys[b] = [torch.cat([x, y[mine]]) for x, y in zip(self.keys[b], (k, v))]
            self.lengths[b] += count
        mode = stand_ins.ForwardMode.DECODE if is_decode else stand_ins.ForwardMode.EXTEND
        fill = [self.backend.get_cuda_graph_seq_len_fill_value()] * pad
        batch = SimpleNamespace(
            forward_mode=mode,
            req_pool_indices=torch.tensor(self.rows + [0] * pad),
            seq_lens=torch.tensor(self.lengths + fill),
            extend_seq_lens=None if is_decode else to_int32(counts),
            extend_seq_lens_cpu=None if is_decode else counts,
            # Place 0 takes what padding writes, as there.
            out_cache_loc=torch.tensor(places + [0] * pad),
            encoder_lens=None,
            spec_info=None,
        )
        return batch, q, k, v

    def step(self, counts, is_decode=False, **kwargs):
        batch, q, k, v = self.make_batch(counts, is_decode)
        self.backend.init_forward_metadata(batch)
        found = self.backend.forward(q, k, v, self.layer, batch, **kwargs)
        return found, q.view(-1, H, D).split(counts)

    def expect(self, rows, **how):
        found = [attend(q, *kv, causal=True, **how)[0] for q, kv in zip(rows, self.keys)]
        return torch.cat(found).flatten(1)


def test_a_server(sglang):
    server = Server(sglang, 3)
    for counts, is_decode in (([17, 5, 1], 0), ([1, 1, 1], 1), ([2, 9, 1], 0), ([1, 1, 1], 1)):
        found, rows = server.step(counts, bool(is_decode))
        check(found, server.expect(rows))


@pytest.mark.parametrize(
    "how, same",
    [
        ({"sliding_window_size": 4}, {"window": (4, 0)}),
        ({"logit_cap": 3.0}, {"softcap": 3.0}),
        ({"scaling": 0.4}, {"scale": 0.4}),
    ],
    ids=str,
)
def test_features(sglang, how, same):
    server = Server(sglang, 2, **how)
    for counts, is_decode in (([17, 5], False), ([1, 1], True)):
        found, rows = server.step(counts, is_decode)
        check(found, server.expect(rows, **same))


def test_sinks(sglang):
    server, sinks = Server(sglang, 2), torch.randn(H)
    for counts, is_decode in (([17, 5], False), ([1, 1], True)):
        found, rows = server.step(counts, is_decode, sinks=sinks)
        check(found, server.expect(rows, sink=sinks))


def test_a_graph(sglang):
    """Tables and lengths of each replay go where the capture read them; padding writes nothing to a sequence."""
    server, pad = Server(sglang, 3), 2
    server.step([17, 5, 1])
    server.backend.init_cuda_graph_state(5, 5)
    places = set()
    for step in range(3):
        batch, q, k, v = server.make_batch([1, 1, 1], True, pad)
        server.backend.init_forward_metadata_out_graph(batch, in_capture=step == 0)
        metadata = server.backend.forward_metadata
        places.add((metadata.table.data_ptr(), metadata.lengths.data_ptr()))
        found = server.backend.forward(q, k, v, server.layer, batch)
        check(found[:3], server.expect(q[:3].view(3, 1, H, D)))
        assert (found[3:] == 0).all()
    assert len(places) == 1


def test_keys_that_are_there(sglang):
    server = Server(sglang, 2)
    batch, q, k, v = server.make_batch([3, 2], False)
    server.backend.init_forward_metadata(batch)
    first = server.backend.forward(q, k, v, server.layer, batch)
    padding = server.backend.forward_metadata.padding
    again = server.backend.forward(q, None, None, server.layer, batch, save_kv_cache=False)
    assert torch.equal(first, again)
    # Another layer finds no places of rows.
    assert padding is not None and padding is server.backend.forward_metadata.padding


def test_registration(sglang):
    assert sglang.register() == sglang.register() == "attn"
    assert stand_ins.SGLANG_CHOICES == ["triton", "attn"]
    assert stand_ins.SGLANG_BACKENDS["attn"] is sglang.AttnBackend
    assert not sglang.AttnBackend.needs_cpu_seq_lens


@pytest.mark.parametrize(
    "how, words",
    [
        ({"is_cross_attention": True}, "layer.is_cross_attention: expected False"),
        ({"attn_type": stand_ins.RadixAttentionType.ENCODER_ONLY}, "layer.attn_type: expected"),
        ({"logit_cap": 2.0, "logit_capping_method": "relu"}, 'layer.logit_capping_method: expected "tanh"'),
        ({"xai_temperature_len": 8}, "layer.xai_temperature_len: expected none"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_layers_that_are_refused(sglang, how, words):
    with pytest.raises(attn.Error, match=words):
        Server(sglang, 1, **how).step([2])


def test_batches_that_are_refused(sglang):
    server = Server(sglang, 1)
    batch, q, k, v = server.make_batch([2], False)
    batch.spec_info = 3
    with pytest.raises(attn.Error, match="spec_info: expected None, got int"):
        server.backend.init_forward_metadata(batch)
    batch.spec_info = None
    with pytest.raises(attn.Error, match="forward_mode: expected decoding in a CUDA graph"):
        server.backend.init_forward_metadata_out_graph(batch)
    server.backend.init_forward_metadata(batch)
    with pytest.raises(attn.Error, match="q_rope: expected None, got Tensor"):
        server.backend.forward(q, k, v, server.layer, batch, q_rope=q)
    server.runner.token_to_kv_pool.translate_loc_from_full_to_swa = None
    with pytest.raises(attn.Error, match="token_to_kv_pool: expected one pool"):
        sglang.AttnBackend(server.runner)
