"""Hugging Face's models, of few layers and random weights, on attn and on their own eager attention."""

import logging
import os
import subprocess
import sys

import pytest

import attn

torch = pytest.importorskip("torch")
T = pytest.importorskip("transformers")
from attn.integrations import transformers as integration  # noqa: E402
from families import DECODERS, SMALL, make, make_batch  # noqa: E402


@pytest.fixture(autouse=True)
def name():
    yield integration.register()
    integration.unregister()


@pytest.fixture
def calls(monkeypatch):
    """Counts what attn computes."""
    count = []
    whole = attn.attention
    monkeypatch.setattr(attn, "attention", lambda *x, **how: count.append(1) or whole(*x, **how))
    return count


def run(model, implementation, **inputs):
    model.set_attn_implementation(implementation)
    with torch.no_grad():
        return model(**inputs)


def is_close(x, y, tolerance=2e-4):
    return (x - y).abs().max() <= tolerance * max(1, y.abs().max())


def compare_outputs(calls, kind, padding, layers):
    """Of eager attention and of attn, which is called once for each layer."""
    model, (inputs, read) = make(kind), make_batch(kind, padding)
    wanted = read(run(model, "eager", **inputs))
    before = len(calls)
    got = read(run(model, "attn", **inputs))
    assert len(calls) >= before + layers
    for x, y in zip(got, wanted):
        assert is_close(x, y), (kind, padding)


@pytest.mark.parametrize("kind", DECODERS)
def test_decoders(kind, calls):
    model = make(kind)
    ids = torch.randint(3, 97, (2, 23))
    for padding in (None, "left", "right"):
        seen = torch.ones(2, 23, dtype=torch.long)
        if padding:
            seen[0, slice(0, 5) if padding == "left" else slice(18, 23)] = 0
        inputs = dict(input_ids=ids, use_cache=False)
        if padding:
            inputs["attention_mask"] = seen
        wanted = run(model, "eager", **inputs).logits
        before = len(calls)
        got = run(model, "attn", **inputs).logits
        assert len(calls) == before + 2
        # Rows of padding are means in one and zeros in the other.
        rows = seen.bool()
        assert is_close(got[rows], wanted[rows]), padding


@pytest.mark.parametrize("kind", DECODERS)
def test_generation(kind, calls):
    model = make(kind)
    ids = torch.randint(3, 97, (2, 11))
    seen = torch.ones_like(ids)
    seen[0, :3] = 0
    how = dict(max_new_tokens=6, min_new_tokens=6, do_sample=False)
    how.update(output_logits=True, return_dict_in_generate=True, attention_mask=seen)
    model.set_attn_implementation("eager")
    wanted = model.generate(ids, **how)
    model.set_attn_implementation("attn")
    got = model.generate(ids, **how)
    assert torch.equal(got.sequences, wanted.sequences) and len(calls) == 12
    for x, y in zip(got.logits, wanted.logits):
        assert is_close(x, y)


@pytest.mark.parametrize("kind", DECODERS)
def test_static_caches(kind):
    model = make(kind)
    ids = torch.randint(3, 97, (2, 11))
    how = dict(
        max_new_tokens=5, do_sample=False, cache_implementation="static", disable_compile=True
    )
    model.set_attn_implementation("eager")
    try:
        wanted = model.generate(ids, **how)
    except TypeError as error:
        pytest.skip(f"this version of Transformers fails by itself: {error}")
    model.set_attn_implementation("attn")
    assert torch.equal(model.generate(ids, **how), wanted)


GENERATE = {
    "beams": dict(num_beams=3),
    "beams that are drawn": dict(num_beams=2, do_sample=True),
    "beams of a static cache": dict(num_beams=3, cache_implementation="static"),
    "no cache": dict(use_cache=False),
    "words of the prompt": dict(prompt_lookup_num_tokens=3),
}


@pytest.mark.parametrize("kind", ["gpt_oss", "gemma2", "bart", "whisper"])
def test_ways_of_generation(kind):
    """Of sequences that are padded left, cache by cache."""
    model = make(kind)
    inputs, _ = make_batch(kind, "left")
    inputs = {
        name: x for name, x in inputs.items() if "decoder" not in name and name != "use_cache"
    }
    common = dict(max_new_tokens=8, min_new_tokens=8, do_sample=False, disable_compile=True)
    common.update(output_logits=True, return_dict_in_generate=True, pad_token_id=0)
    for way, how in GENERATE.items():
        one = slice(1, 2) if "prompt_lookup_num_tokens" in how else slice(None)
        found = []
        for implementation in ("eager", "attn"):
            model.set_attn_implementation(implementation)
            torch.manual_seed(1)
            given = {name: x[one] for name, x in inputs.items()}
            found.append(model.generate(**given, **{**common, **how}))
        wanted, got = found
        assert torch.equal(got.sequences, wanted.sequences), way
        for x, y in zip(got.logits, wanted.logits):
            assert is_close(x, y), way


@pytest.mark.parametrize("kind", ["llama", "gemma2"])
def test_masks_that_were_made_before(kind):
    """`generate` of Transformers 5.17 makes a static cache's mask before it calls the model."""
    from transformers.masking_utils import create_masks_for_generate

    model, ids = make(kind), torch.randint(3, 97, (2, 11))
    seen = torch.ones_like(ids)
    seen[0, :4] = 0
    model.set_attn_implementation("attn")
    wanted = model(ids, attention_mask=seen).logits
    embeddings = model.get_input_embeddings()(ids)
    mask = create_masks_for_generate(model.config, embeddings, seen, None)
    assert is_close(model(ids, attention_mask=mask).logits, wanted)


def test_steps_that_generate_compiles():
    torch._dynamo.reset()
    model, ids, nodes = make("llama"), torch.randint(3, 97, (2, 11)), Nodes()
    seen = torch.ones_like(ids)
    seen[0, :4] = 0
    # A configuration is copied, and a function's copy is itself.
    compiling = T.CompileConfig(backend=lambda *graph: nodes(*graph), mode=None)
    compiling._compile_all_devices = True
    how = dict(max_new_tokens=5, do_sample=False, attention_mask=seen)
    how.update(cache_implementation="static", compile_config=compiling)
    model.set_attn_implementation("eager")
    wanted = model.generate(ids, **how, disable_compile=True)
    model.set_attn_implementation("attn")
    assert torch.equal(model.generate(ids, **how), wanted)
    # Two layers, and one graph for all steps.
    assert nodes.count == 2


def test_decoding_compiles_nothing_anew():
    from attn import _log

    model = make("llama")
    model.set_attn_implementation("attn")
    ids = torch.randint(3, 97, (1, 5))
    model.generate(ids, max_new_tokens=3, do_sample=False)
    kernels = _log.count_compiled()
    model.generate(ids, max_new_tokens=9, do_sample=False)
    assert _log.count_compiled() == kernels


def test_packed_sequences():
    model = make("llama")
    ids = torch.randint(3, 97, (1, 20))
    positions = torch.cat([torch.arange(8), torch.arange(12)])[None]
    inputs = dict(input_ids=ids, position_ids=positions, use_cache=False)
    assert is_close(run(model, "attn", **inputs).logits, run(model, "eager", **inputs).logits)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2", "gpt_oss", "deepseek_v3", "llama4"])
def test_training(kind):
    model = make(kind).train()
    ids = torch.randint(3, 97, (2, 23))
    gradients = []
    for implementation in ("eager", "attn"):
        model.set_attn_implementation(implementation)
        model.zero_grad()
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        gradients.append(
            {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
        )
    assert gradients[0].keys() == gradients[1].keys()
    for parameter_name, wanted in gradients[0].items():
        assert is_close(gradients[1][parameter_name], wanted), parameter_name


def train(model, ids, seed=3):
    """The loss and the gradients of a step."""
    torch.manual_seed(seed)
    model.zero_grad()
    loss = model(input_ids=ids, labels=ids, use_cache=False).loss
    loss.backward()
    found = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    return loss.detach(), found


def test_dropout(monkeypatch):
    """Of a model in training: replayed by torch.manual_seed, the same again in checkpoints, and what
    attn.attention computes."""
    given = []
    whole = attn.attention
    monkeypatch.setattr(
        attn, "attention", lambda *x, **how: given.append(how["dropout_p"]) or whole(*x, **how)
    )
    model = T.LlamaForCausalLM(T.LlamaConfig(**SMALL, attention_dropout=0.25)).train()
    model.set_attn_implementation("attn")
    ids = torch.randint(3, 97, (2, 23))
    loss, wanted = train(model, ids)
    assert given == [0.25] * 2
    again, found = train(model, ids)
    assert torch.equal(again, loss) and not torch.equal(train(model, ids, 4)[0], loss)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    checked, computed_again = train(model, ids)
    assert torch.equal(checked, loss)
    for parameter_name, x in wanted.items():
        assert torch.equal(found[parameter_name], x), parameter_name
        assert is_close(computed_again[parameter_name], x), parameter_name
    given.clear()
    run(model.eval(), "attn", input_ids=ids)
    assert given == [0.0] * 2


def test_dropout_of_one_layer():
    q, k, v = torch.randn(3, 2, 4, 9, 16)
    module = torch.nn.Module()
    torch.manual_seed(3)
    got, _ = integration.attention(module, q, k, v, None, dropout=0.25, is_causal=True)
    torch.manual_seed(3)
    wanted = attn.attention(q, k, v, causal=True, dropout_p=0.25)
    assert torch.equal(got.transpose(1, 2), wanted)
    # Whisper and others give it also where nothing is trained.
    got, _ = integration.attention(module.eval(), q, k, v, None, dropout=0.25, is_causal=True)
    assert torch.equal(got.transpose(1, 2), attn.attention(q, k, v, causal=True))


@pytest.mark.parametrize("kind", DECODERS)
def test_bf16(kind):
    """As near to f32 as eager attention in bf16 is, which differs by its own roundings."""
    model = make(kind)
    inputs = dict(input_ids=torch.randint(3, 97, (2, 23)), use_cache=False)
    exact = run(model, "eager", **inputs).logits
    model = model.to(torch.bfloat16)
    off = [(run(model, x, **inputs).logits - exact).abs().max() for x in ("attn", "eager")]
    assert off[0] <= 2 * off[1] + 0.02


def test_encoders(calls):
    for kind in ("bert", "modernbert"):
        for padding in (None, "left", "right"):
            compare_outputs(calls, kind, padding, 2)


def test_images(calls):
    compare_outputs(calls, "vit", None, 2)


def test_images_beside_texts(calls):
    for padding in (None, "right"):
        compare_outputs(calls, "clip", padding, 4)


def test_images_inside_of_texts(calls):
    compare_outputs(calls, "qwen2_vl", None, 4)
    # Two images of 4 x 4 and 8 x 4 patches in one text, 4 of which are one token.
    ids = torch.randint(3, 90, (1, 25))
    ids[0, 3:7] = ids[0, 10:18] = 95
    ids[0, [2, 9]] = 94
    grid = torch.tensor([[1, 4, 4], [1, 8, 4]])
    inputs = dict(input_ids=ids, mm_token_type_ids=(ids == 95).int(), image_grid_thw=grid)
    inputs.update(pixel_values=torch.randn(48, 3 * 2 * 8 * 8), use_cache=False)
    model = make("qwen2_vl")
    wanted, got = run(model, "eager", **inputs).logits, run(model, "attn", **inputs).logits
    assert is_close(got, wanted)


def test_sounds(calls):
    for padding in (None, "right"):
        compare_outputs(calls, "whisper", padding, 6)


def test_encoders_with_decoders(calls):
    for padding in (None, "left", "right"):
        compare_outputs(calls, "bart", padding, 6)
        # T5 of Transformers 5.17 has an attention of its own.
        compare_outputs(calls, "t5", padding, 0)


def test_no_tensor_of_all_pairs(monkeypatch):
    made = []
    whole = integration.Mask.to_tensor
    monkeypatch.setattr(integration.Mask, "to_tensor", lambda self: made.append(1) or whole(self))
    ids = torch.randint(3, 97, (2, 23))
    seen = torch.ones_like(ids)
    seen[0, :4] = 0
    for kind in DECODERS:
        run(make(kind), "attn", input_ids=ids, attention_mask=seen, use_cache=False)
    assert not made


def test_masks_that_models_touch():
    mask = integration.make_mask(
        batch_size=2, q_length=5, kv_length=5, mask_function=lambda b, h, q, kv: kv <= q
    )
    wanted = torch.ones(5, 5, dtype=torch.bool).tril().expand(2, 1, 5, 5)
    assert torch.equal(mask[:, 0], wanted[:, 0]) and mask.dtype == torch.bool
    assert torch.equal(mask.logical_not(), ~wanted)
    chosen = torch.where(mask, torch.ones(()), torch.zeros(5, 5))
    assert torch.equal(chosen, wanted.float()) and torch.equal(wanted & mask, wanted)


def test_given_masks():
    model = make("llama")
    ids = torch.randint(3, 97, (2, 9))
    keep = torch.rand(2, 1, 9, 9) < 0.6
    keep |= torch.eye(9, dtype=torch.bool)
    added = torch.zeros(2, 1, 9, 9).masked_fill(~keep, torch.finfo(torch.float32).min)
    wanted = run(model, "eager", input_ids=ids, attention_mask=added, use_cache=False).logits
    for mask in (added, keep):
        got = run(model, "attn", input_ids=ids, attention_mask=mask, use_cache=False).logits
        assert is_close(got, wanted)


def test_what_is_refused():
    module = torch.nn.Module().train()
    q = torch.randn(1, 4, 5, 16)
    for how, words in (
        (dict(indices=torch.zeros(1)), "indices: expected an attention that attn knows"),
        (dict(cache=object()), "cache: expected none"),
        (dict(sliding_window=3, is_causal=False), "sliding_window: expected a mask beside it"),
    ):
        with pytest.raises(attn.Error, match=words):
            integration.attention(module, q, q, q, None, **how)
    for bad in ("flash_attn", "my/attn", "sdpa2"):
        with pytest.raises(attn.Error, match="name: expected one without"):
            integration.register(bad)


def test_registration_can_be_undone():
    assert integration.register() == integration.register() == "attn"
    integration.unregister()
    integration.unregister()
    with pytest.raises(ValueError):
        make("llama").set_attn_implementation("attn")


class Nodes:
    """A backend that counts the calls of attn in what it compiles."""

    def __init__(self):
        self.count = 0

    def __call__(self, module, inputs):
        self.count += sum("attn_flex" in str(node.target) for node in module.graph.nodes)
        return module


@pytest.mark.parametrize("kind", ["gemma2", "gpt_oss"])
def test_compiled_whole(kind):
    torch._dynamo.reset()
    model, ids, seen = make(kind), torch.randint(3, 97, (2, 23)), torch.ones(2, 23, dtype=int)
    seen[0, :5] = 0
    inputs = dict(input_ids=ids, attention_mask=seen, use_cache=False, labels=ids)
    wanted = run(model, "attn", **inputs)
    nodes = Nodes()
    compiled = torch.compile(model.forward, backend=nodes, fullgraph=True)
    got = compiled(**inputs)
    assert nodes.count == 2
    assert is_close(got.logits, wanted.logits)
    of = list(model.parameters())
    found = torch.autograd.grad(got.loss, of, allow_unused=True)
    for x, y in zip(found, torch.autograd.grad(model(**inputs).loss, of, allow_unused=True)):
        assert (x is None) == (y is None) and (x is None or is_close(x, y))


def test_compiled_dropout():
    torch._dynamo.reset()
    config = T.Gemma2Config(
        **SMALL, head_dim=16, sliding_window=7, query_pre_attn_scalar=20, attention_dropout=0.25
    )
    model, ids = T.Gemma2ForCausalLM(config).train(), torch.randint(3, 97, (2, 23))
    model.set_attn_implementation("attn")
    wanted, gradients = train(model, ids)
    nodes = Nodes()
    model.forward = torch.compile(model.forward, backend=nodes, fullgraph=True)
    got, found = train(model, ids)
    assert nodes.count == 2 and is_close(got, wanted)
    for parameter_name, x in gradients.items():
        assert is_close(found[parameter_name], x), parameter_name


def test_compiled_steps_of_a_static_cache():
    torch._dynamo.reset()
    model, ids = make("mistral"), torch.randint(3, 97, (1, 12))
    wanted = run(model, "attn", input_ids=ids, use_cache=False).logits
    cache = T.StaticCache(config=model.config, max_cache_len=16)
    nodes = Nodes()
    compiled = torch.compile(model.forward, backend=nodes)
    with torch.no_grad():
        first = model(input_ids=ids[:, :8], past_key_values=cache).logits
        steps = [
            compiled(input_ids=ids[:, i : i + 1], past_key_values=cache).logits
            for i in range(8, 12)
        ]
    assert is_close(torch.cat([first, *steps], 1), wanted)
    # Two layers; the first step may be compiled for itself.
    assert nodes.count in (2, 4)


def test_weights_that_nobody_stores_are_told_of(name):
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    integration._logger.addHandler(handler)
    integration._logger.warning_once.cache_clear()
    try:
        model, ids = make("llama"), torch.randint(3, 97, (2, 9))
        model.set_attn_implementation(name)
        model(ids)
        assert not messages
        model(ids, output_attentions=True)
    finally:
        integration._logger.removeHandler(handler)
    assert len(messages) == 1 and 'attn_implementation="eager"' in messages[0]


@pytest.mark.long
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kind", ["gemma2", "bart"])
def test_exported_models_load_elsewhere(kind, strict, tmp_path):
    """In a process that knows torch and attn alone."""

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = make(kind)

        def forward(self, **inputs):
            return self.model(**inputs).logits

    module = Logits()
    module.model.set_attn_implementation("attn")
    inputs, _ = make_batch(kind, "left")
    program = torch.export.export(module, (), inputs, strict=strict)
    calls = [str(node.target) for node in program.graph.nodes]
    assert sum("attn.forward" in call or "attn.record" in call for call in calls) >= 2
    torch.export.save(program, tmp_path / "model.pt2")
    with torch.no_grad():
        torch.save((inputs, module(**inputs)), tmp_path / "tensors")
    command = (
        "import sys, torch, attn; folder = sys.argv[1]\n"
        "inputs, wanted = torch.load(folder + '/tensors')\n"
        "got = torch.export.load(folder + '/model.pt2').module()(**inputs)\n"
        "print('transformers' in sys.modules, torch.equal(got, wanted))\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-W", "ignore", "-c", command, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(attn.__file__))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.split() == ["False", "True"], done.stderr[-2000:]
