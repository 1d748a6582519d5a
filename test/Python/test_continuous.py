"""Continuous batching of Transformers on attn: the tokens of dense attention, one request after the other."""

import importlib
from collections import Counter

import pytest

import attn

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from attn.integrations import _continuous  # noqa: E402
from attn.integrations import transformers as ours  # noqa: E402


@pytest.fixture
def counted(monkeypatch):
    """How often each of flash attention's functions is called."""
    calls = Counter()

    def count(function):
        def call(*arguments, **options):
            calls[function.__name__] += 1
            return function(*arguments, **options)

        call.__wrapped__ = function
        return call

    functions = [count(x) for x in _continuous._functions]
    monkeypatch.setattr(_continuous, "_functions", functions)
    yield calls


@pytest.fixture
def name():
    names = []

    def register(*given):
        names.append(ours.register_continuous(*given))
        return names[-1]

    yield register
    for each in names:
        ours.unregister_continuous(each)


def make_model(kind="llama", **how):
    torch.manual_seed(0)
    given = dict(
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=101,
        max_position_embeddings=256,
        **how,
    )
    if kind == "llama":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**given)).eval()
    config = transformers.MistralConfig(**given, head_dim=16)
    return transformers.MistralForCausalLM(config).eval()


# Versions that have a name of its own for batches with pages.
IS_OLD = "paged|sdpa" in transformers.AttentionInterface._global_mapping
PROMPTS = [[(7 * i + j * j) % 98 + 3 for j in range(n)] for i, n in enumerate((5, 40, 17, 1))]
GREEDY = dict(max_new_tokens=6, do_sample=False, pad_token_id=0)


def generate(model, implementation, **how):
    """Greedy tokens of each request, in the order of requests."""
    if IS_OLD:
        # Without it, these versions take a CPU's memory for 0.
        pytest.importorskip("psutil")
    generation = importlib.import_module("transformers.generation")
    config = transformers.GenerationConfig(**GREEDY, eos_token_id=-1)
    small = dict(num_blocks=64, max_batch_tokens=64, use_cuda_graph=False)
    batching = generation.ContinuousBatchingConfig(**small, **how)
    model.set_attn_implementation(implementation)
    with torch.no_grad():
        found = model.generate_batch(
            PROMPTS, generation_config=config, continuous_batching_config=batching
        )
    by_number = sorted(found.items(), key=lambda x: int(x[0].rpartition("_")[2]))
    return [x.generated_tokens for _, x in by_number]


def generate_dense(model):
    """The same, of one request after the other, without pages."""
    model.set_attn_implementation("eager")
    model.generation_config.eos_token_id = None
    found = [model.generate(torch.tensor([x]), **GREEDY)[0, len(x) :] for x in PROMPTS]
    return [x.tolist() for x in found]


@pytest.mark.parametrize("kind, how", [("llama", {}), ("mistral", {"sliding_window": 9})])
def test_tokens(kind, how, name, counted):
    if how and IS_OLD:
        pytest.skip("a plain definition gets the same wrong tokens of this version's windows")
    model = make_model(kind, **how)
    wanted = generate_dense(model)
    assert all(len(x) == 6 for x in wanted)
    assert generate(model, name()) == wanted
    assert counted["flash_attn_varlen_func"] > 0 and len(counted) == 1


def test_pages_in_place(name, counted, monkeypatch):
    """As on a GPU, where decoding reads and writes pages."""
    at = importlib.import_module("transformers.generation.continuous_batching.initialization")
    model = make_model()
    wanted = generate_dense(model)
    monkeypatch.setattr(at, "is_torch_xpu_available", lambda *x, **y: True)
    assert generate(model, name("attn_flash_2"), max_blocks_per_request=4) == wanted
    assert counted["flash_attn_with_kvcache"] > 0


def test_padded_batches_without_pages(name):
    """The same name serves generate()."""
    model = make_model()
    tokens = torch.tensor([[0, 0, 5, 9, 4], [3, 8, 7, 6, 5]])
    how = dict(attention_mask=(tokens > 0).long(), max_new_tokens=5, do_sample=False, pad_token_id=0)
    model.set_attn_implementation("sdpa")
    wanted = model.generate(tokens, **how)
    model.set_attn_implementation(name())
    assert torch.equal(model.generate(tokens, **how), wanted)


def test_undone():
    module = importlib.import_module("transformers.modeling_flash_attention_utils")
    before = module._lazy_imports
    known = dict(transformers.AttentionInterface._global_mapping)
    ours.register_continuous()
    ours.register_continuous("my_flash_2")
    ours.register_continuous()
    assert module._lazy_imports is not before
    ours.unregister_continuous("my_flash_2")
    assert module._lazy_imports is not before
    ours.unregister_continuous()
    ours.unregister_continuous()
    assert module._lazy_imports is before
    assert transformers.AttentionInterface._global_mapping == known


@pytest.mark.parametrize("name", ["attn", "flash_attention_2", "a/flash", "paged|flash"])
def test_names_that_are_refused(name):
    with pytest.raises(attn.Error, match="^name: expected one with 'flash'"):
        ours.register_continuous(name)


def test_a_version_that_is_refused(monkeypatch):
    module = importlib.import_module("transformers.modeling_flash_attention_utils")
    monkeypatch.delattr(module, "_lazy_imports")
    with pytest.raises(attn.Error, match="register_continuous: expected a Transformers"):
        ours.register_continuous()
