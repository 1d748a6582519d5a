"""That tests of Transformers' models see mistakes: each mutant of what the integration asks for makes
logits differ from those of eager attention, by far more than a right one does."""

import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import attn  # noqa: E402
from attn.integrations import transformers as integration  # noqa: E402
from families import make  # noqa: E402
from test_transformers import is_close, name, run  # noqa: E402, F401

N = 23


def drop(*names):
    """Calls without some of their arguments."""

    def change(how):
        return {**how, **{x: False if x == "causal" else None for x in names}}

    return change


def change_mask(change):
    """A mask that reads other indices than it is given."""

    def wrap(how):
        mask = how["mask"]
        return how if mask is None else {**how, "mask": lambda *at: mask(*change(*at))}

    return wrap


def make_sinks():
    return make("gpt_oss")


def make_biased():
    return make("t5")


def make_windowed():
    return make("mistral")


def pad(ids):
    seen = torch.ones_like(ids)
    seen[0, :5] = 0
    return dict(input_ids=ids, attention_mask=seen, use_cache=False)


def pack(ids):
    positions = torch.cat([torch.arange(8), torch.arange(N - 8)])[None]
    return dict(input_ids=ids[:1], position_ids=positions, use_cache=False)


def encode(ids):
    return dict(input_ids=ids, decoder_input_ids=ids[:, :9], use_cache=False)


# Model, inputs, and what becomes of the arguments of attn.attention.
MUTANTS = {
    "no mask": (make_windowed, pad, drop("mask", "causal")),
    "no sink": (make_sinks, pad, drop("sink")),
    "no bias": (make_biased, encode, drop("score")),
    "no softcap": (lambda: make("gemma2"), pad, drop("score")),
    "no scale": (lambda: make("gemma2"), pad, drop("scale")),
    "padding of another sequence": (
        make_windowed,
        pad,
        change_mask(lambda b, h, q, kv: (1 - b, h, q, kv)),
    ),
    "keys one later": (
        make_windowed,
        pad,
        change_mask(lambda b, h, q, kv: (b, h, q, attn.maximum(kv - 1, 0))),
    ),
    "rows one later": (make_windowed, pad, change_mask(lambda b, h, q, kv: (b, h, q + 1, kv))),
    "positions of a pack ignored": (
        lambda: make("llama"),
        pack,
        lambda how: {**how, "mask": None, "causal": True},
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_seen(monkeypatch, mutant):
    make_model, make_inputs, change = MUTANTS[mutant]
    model = make_model()
    inputs = make_inputs(torch.randint(3, 97, (2, N)))
    rows = inputs.get("attention_mask", torch.ones(1, 1)).bool().expand(2, -1)

    def find(implementation):
        logits = run(model, implementation, **inputs).logits
        return logits[rows] if rows.shape[1] == logits.shape[1] else logits

    wanted = find("eager")
    assert is_close(find("attn"), wanted)
    whole = attn.attention
    monkeypatch.setattr(attn, "attention", lambda *x, **how: whole(*x, **change(how)))
    assert not is_close(find("attn"), wanted, 2e-3)


@pytest.mark.parametrize("causal", ["top_left", "bottom_right"])
def test_the_wrong_alignment_is_seen(monkeypatch, causal):
    """Of rows that come behind keys of a cache, and of rows that fill a static one."""
    model, ids = make("llama"), torch.randint(3, 97, (1, N))
    how = dict(max_new_tokens=4, do_sample=False, disable_compile=True)
    how.update(output_logits=True, return_dict_in_generate=True)
    # Filling a static cache, keys outnumber rows.
    how.update(cache_implementation="static")

    def find(implementation):
        model.set_attn_implementation(implementation)
        return torch.stack(model.generate(ids, **how).logits)

    wanted = find("eager")
    assert is_close(find("attn"), wanted)
    whole = attn.attention

    def align(*x, **given):
        return whole(*x, **{**given, "mask": None, "causal": causal})

    monkeypatch.setattr(attn, "attention", align)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not is_close(find("attn"), wanted, 2e-3)
