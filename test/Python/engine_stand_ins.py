"""The modules of vLLM 0.33.0 and SGLang 0.5.23 that the adapters import, as far as they do: names, signatures and fields
as there, without what needs a GPU. The real packages are compared with them by hand at each new version."""

import dataclasses
import enum
import sys
import types
from typing import Any, Optional

import torch


def _add(monkeypatch, name, **members):
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        if path not in sys.modules:
            monkeypatch.setitem(sys.modules, path, types.ModuleType(path))
    for member, value in members.items():
        setattr(sys.modules[name], member, value)


# ===- vLLM ------------------------------------------------------------------------------------===#


class AttentionType(str, enum.Enum):
    DECODER = "decoder"
    ENCODER = "encoder"
    ENCODER_ONLY = "encoder_only"
    ENCODER_DECODER = "encoder_decoder"


@dataclasses.dataclass(frozen=True)
class MultipleOf:
    base: int


class AttentionBackend:
    supported_dtypes = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes = ["auto", "float16", "bfloat16"]
    forward_includes_kv_cache_update = True
    supports_kv_cache_update_bypass = False

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None):
        return [MultipleOf(1)]

    @classmethod
    def supports_head_size(cls, head_size):
        return True

    @classmethod
    def supports_sink(cls):
        return False

    @classmethod
    def supports_sliding_window(cls):
        return False

    @classmethod
    def supports_non_causal(cls):
        return False

    @classmethod
    def supports_batch_invariance(cls):
        return False

    @classmethod
    def supports_compute_capability(cls, capability):
        return True

    @classmethod
    def supports_attn_type(cls, attn_type):
        return attn_type == AttentionType.DECODER

    @classmethod
    def is_mla(cls):
        return False


class AttentionMetadata:
    pass


class AttentionCGSupport(enum.Enum):
    ALWAYS = 3
    UNIFORM_BATCH = 2
    UNIFORM_SINGLE_TOKEN_DECODE = 1
    NEVER = 0


class AttentionMetadataBuilder:
    _cudagraph_support = AttentionCGSupport.NEVER
    reorder_batch_threshold: Optional[int] = None
    supports_update_block_table = False

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        self.kv_cache_spec, self.layer_names = kv_cache_spec, layer_names
        self.vllm_config, self.device = vllm_config, device

    def build_for_cudagraph_capture(self, common_attn_metadata):
        return self.build(common_prefix_len=0, common_attn_metadata=common_attn_metadata)


class AttentionImpl:
    pass


@dataclasses.dataclass
class CommonAttentionMetadata:
    """The fields that a decoder's backend reads."""

    query_start_loc: torch.Tensor
    query_start_loc_cpu: torch.Tensor
    seq_lens: torch.Tensor
    num_reqs: int
    num_actual_tokens: int
    max_query_len: int
    max_seq_len: int
    block_table_tensor: torch.Tensor
    slot_mapping: torch.Tensor
    causal: Any = True


class AttentionBackendEnum(enum.Enum):
    FLASH_ATTN = "vllm.v1.attention.backends.flash_attn.FlashAttentionBackend"
    CUSTOM = None

    def is_overridden(self):
        return self in OVERRIDES


OVERRIDES = {}


def register_backend(backend, class_path=None, is_mamba=False):
    OVERRIDES[backend] = class_path
    return lambda x: x


def install_vllm(monkeypatch):
    OVERRIDES.clear()
    names = (
        "AttentionBackend AttentionCGSupport AttentionImpl AttentionMetadata AttentionMetadataBuilder "
        "AttentionType CommonAttentionMetadata MultipleOf"
    )
    members = {name: globals()[name] for name in names.split()}
    _add(monkeypatch, "vllm.v1.attention.backend", **members)
    registry = dict(AttentionBackendEnum=AttentionBackendEnum, register_backend=register_backend)
    _add(monkeypatch, "vllm.v1.attention.backends.registry", **registry)


# ===- SGLang ----------------------------------------------------------------------------------===#


class ForwardMode(enum.IntEnum):
    EXTEND = 1
    DECODE = 2
    IDLE = 4

    def is_decode(self):
        return self == ForwardMode.DECODE

    def is_idle(self):
        return self == ForwardMode.IDLE

    def is_decode_or_idle(self):
        return self in (ForwardMode.DECODE, ForwardMode.IDLE)


class SGLangBackend:
    """sglang.srt.layers.attention.base_attn_backend.AttentionBackend."""

    needs_cpu_seq_lens = True

    def init_forward_metadata(self, forward_batch):
        self.init_forward_metadata_out_graph(forward_batch)
        self.init_forward_metadata_in_graph(forward_batch)

    def init_forward_metadata_out_graph(self, forward_batch, in_capture=False):
        pass

    def init_forward_metadata_in_graph(self, forward_batch):
        pass

    def forward(self, q, k, v, layer, forward_batch, save_kv_cache=True, **kwargs):
        if forward_batch.forward_mode.is_idle():
            return q.new_empty(q.shape[0], layer.tp_q_head_num * layer.v_head_dim)
        is_decode = forward_batch.forward_mode.is_decode()
        run = self.forward_decode if is_decode else self.forward_extend
        return run(q, k, v, layer, forward_batch, save_kv_cache=save_kv_cache, **kwargs)


class RadixAttentionType(enum.Enum):
    DECODER = "decoder"
    DECODER_BIDIRECTIONAL = "decoder_bidirectional"
    ENCODER_ONLY = "encoder_only"


@dataclasses.dataclass
class KVWriteLoc:
    loc: torch.Tensor
    swa_loc: Optional[torch.Tensor]


class TokenPool:
    """MHATokenToKVPool: a row of each token, in one tensor of each layer."""

    def __init__(self, size, layers, heads, d, dv):
        self.keys = [torch.full((size, heads, d), torch.nan) for _ in range(layers)]
        self.values = [torch.full((size, heads, dv), torch.nan) for _ in range(layers)]

    def get_key_buffer(self, layer_id):
        return self.keys[layer_id]

    def get_value_buffer(self, layer_id):
        return self.values[layer_id]

    def set_kv_buffer(self, layer, loc_info, cache_k, cache_v, k_scale=None, v_scale=None):
        keys, values = self.keys[layer.layer_id], self.values[layer.layer_id]
        keys[loc_info.loc] = cache_k.view(-1, *keys.shape[1:])
        values[loc_info.loc] = cache_v.view(-1, *values.shape[1:])


SGLANG_BACKENDS = {}
SGLANG_CHOICES = ["triton"]


def _register_attention_backend(name):
    def decorate(make):
        SGLANG_BACKENDS[name] = make
        return make

    return decorate


def install_sglang(monkeypatch):
    SGLANG_BACKENDS.clear()
    SGLANG_CHOICES[:] = ["triton"]
    choices = dict(ATTENTION_BACKEND_CHOICES=SGLANG_CHOICES)
    choices["add_attention_backend_choices"] = SGLANG_CHOICES.extend
    _add(monkeypatch, "sglang.srt.arg_groups.choices", **choices)
    at = "sglang.srt.layers.attention"
    _add(monkeypatch, f"{at}.base_attn_backend", AttentionBackend=SGLangBackend)
    registry = dict(register_attention_backend=_register_attention_backend)
    _add(monkeypatch, f"{at}.attention_registry", **registry)
    _add(monkeypatch, "sglang.srt.mem_cache.memory_pool", KVWriteLoc=KVWriteLoc)
