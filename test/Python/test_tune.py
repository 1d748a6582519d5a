"""The search of sizes: what it tries, what it keeps, and what it tells."""

import json
import os
import types

import numpy as np
import pytest

import attn
from attn import _eager, _tune


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTN_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("ATTN_CACHE", raising=False)
    return tmp_path / "tuned"


def make(m=70, n=90, d=16):
    rng = np.random.default_rng(m)
    return [rng.standard_normal((1, 2, x, d), dtype=np.float32) for x in (m, n, n)]


def pretend(monkeypatch, milliseconds):
    """A clock: of each candidate, by the order of the rounds."""
    calls = []

    def time_all(given, *_):
        calls.append(list(given))
        found = {name: milliseconds[name] for name in given}
        return dict(sorted(found.items(), key=lambda item: item[1]))

    monkeypatch.setattr(_tune, "_time_all", time_all)
    return calls


SIZES = [{"block_m": 16, "block_n": 32}, {"block_m": 32, "block_n": 16}]


def test_it_finds_options_that_attention_takes():
    q, k, v = make()
    # In one round, for who was slow in the first of several is timed no more, and comes last.
    best = attn.tune(q, k, v, causal=True, candidates=SIZES, rounds=1, seconds=0.001)
    assert set(best.milliseconds) == {"rule", "block_m=16 block_n=32", "block_m=32 block_n=16"}
    assert (
        list(best.milliseconds.values()) == sorted(best.milliseconds.values()) and not best.refused
    )
    tuned = attn.attention(q, k, v, causal=True, options=best.options)
    np.testing.assert_allclose(tuned, attn.attention(q, k, v, causal=True), rtol=1e-5, atol=1e-6)
    assert "rule" in str(best)


def test_the_fastest_wins_but_for_noise(monkeypatch):
    q, k, v = make()
    first, second = (_tune._describe(x) for x in SIZES)
    pretend(monkeypatch, {"rule": 1.0, first: 0.9, second: 1.1})
    assert attn.tune(q, k, v, candidates=SIZES, again=True).options == SIZES[0]
    pretend(monkeypatch, {"rule": 1.0, first: 0.995, second: 1.1})
    assert attn.tune(q, k, v, candidates=SIZES, again=True).options == {}
    both = {"threads": 1, **SIZES[0]}
    pretend(monkeypatch, {"threads=1": 1.0, _tune._describe(both): 0.5})
    found = attn.tune(q, k, v, candidates=SIZES[:1], options={"threads": 1}, again=True)
    assert found.options == both


def test_options_that_are_none_are_the_rule(monkeypatch):
    q, k, v = make()
    expected = attn.attention(q, k, v)

    def make_plan(*_):
        raise AssertionError("expected the plan of the call without options")

    monkeypatch.setattr(_eager, "make_plan", make_plan)
    assert (attn.attention(q, k, v, options={}) == expected).all()


def test_hopeless_ones_have_one_round(monkeypatch):
    rounds = []

    def time_batch(call, count, is_gpu):
        rounds.append(call)
        return 1.0 if call == "fast" else 5.0

    monkeypatch.setattr(_tune, "_time_batch", time_batch)
    calls = {"fast": ({}, "fast"), "slow": ({}, "slow")}
    found = _tune._time_all(calls, 3, 0.01, False, _tune.Bar(False))
    assert found == {"fast": 1.0, "slow": 5.0}
    assert rounds.count("fast") == 6 and rounds.count("slow") == 2


def test_what_is_refused_is_told():
    q, k, v = make()
    bad = {"block_m": -1}
    found = attn.tune(q, k, v, candidates=[bad, SIZES[0]], seconds=0.001)
    assert list(found.refused) == ["block_m=-1"] and "block" in found.refused["block_m=-1"]
    assert "block_m=-1" not in found.milliseconds and "1 refused" in str(found)


def test_what_models_leave_out_is_counted():
    # No GPU is needed to be told.
    for options, why in (
        ({"block_m": 192, "block_n": 96}, "about 168 registers of the 160"),
        ({"block_m": 64, "block_n": 64}, "4.0 times the fewest"),
    ):
        with pytest.raises(attn.Error, match=why) as error:
            attn.explain("bfloat16", 128, device="cuda", options={**options, "search": 8192})
        assert _tune._LEFT_OUT in error.value.message
        assert "tile.mma" in attn.explain(
            "bfloat16", 128, device="cuda", until="tile", options=options
        )
    found = attn.Tuning(
        {}, {"rule": 1.0}, {"block_m=64": f"{_tune._LEFT_OUT}: x", "block_m=1": "y"}
    )
    assert str(found).endswith("2 refused, 1 of them by models")
    assert str(attn.Tuning({}, {}, {"block_m=1": "y"})) == "1 refused"


def test_the_answer_is_kept(directory, monkeypatch):
    q, k, v = make()
    first = attn.tune(q, k, v, candidates=SIZES, seconds=0.001)
    (file,) = directory.iterdir()
    assert not first.is_from_disk and not file.stat().st_mode & 0o077
    again = attn.tune(q, k, v, candidates=SIZES, seconds=0.001)
    assert again.is_from_disk and (again.options, again.milliseconds) == (
        first.options,
        first.milliseconds,
    )
    assert not attn.tune(q, k, v, candidates=SIZES, seconds=0.001, again=True).is_from_disk
    # Other programs, extents and candidates are other searches.
    for other in (
        lambda: attn.tune(q, k, v, causal=True, candidates=SIZES, seconds=0.001),
        lambda: attn.tune(q[:, :, :40], k, v, candidates=SIZES, seconds=0.001),
        lambda: attn.tune(
            q, k, v, score=lambda s, b, h, i, j: s - i, candidates=SIZES, seconds=0.001
        ),
        lambda: attn.tune(q, k, v, candidates=SIZES[:1], seconds=0.001),
    ):
        assert not other().is_from_disk and other().is_from_disk
    monkeypatch.setenv("ATTN_CACHE", "0")
    assert not attn.tune(q, k, v, candidates=SIZES, seconds=0.001).is_from_disk


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"options": 3, "milliseconds": {}, "refused": {}}',
        '{"options": {"block_m": 999}, "milliseconds": {}, "refused": {}}',
        '{"options": {}, "milliseconds": {"rule": "fast"}, "refused": {}}',
    ],
)
def test_a_broken_answer_is_none(directory, text):
    q, k, v = make()
    attn.tune(q, k, v, candidates=SIZES, seconds=0.001)
    (file,) = directory.iterdir()
    file.write_text(text)
    assert not attn.tune(q, k, v, candidates=SIZES, seconds=0.001).is_from_disk
    assert json.loads(file.read_text())["milliseconds"]


def test_what_others_could_have_written_is_none(directory):
    q, k, v = make()
    attn.tune(q, k, v, candidates=SIZES, seconds=0.001)
    (file,) = directory.iterdir()
    os.chmod(file, 0o666)
    assert not attn.tune(q, k, v, candidates=SIZES, seconds=0.001).is_from_disk


def test_candidates_of_its_own():
    q, k, _ = make(100, 3000)
    found = _tune._list_candidates(q, k, True, "bhsd")
    assert {"block_m": 192, "block_n": 80} in found and {"splits": 16} in found
    assert {"splits": 2} not in _tune._list_candidates(q, q, False, "bhsd")
    assert {"splits": 8} in _tune._list_candidates(q.swapaxes(1, 2), k.swapaxes(1, 2), True, "bshd")
    assert {"way": "narrow"} in found and {"way": "few"} in found
    assert all("way" not in each for each in _tune._list_candidates(q, k, False, "bhsd"))
    assert _tune._let_stay({"way": "narrow"}) is None
    wide = np.broadcast_to(np.float32(0), (300, 4, 128, 16))
    assert all("splits" not in each for each in _tune._list_candidates(wide, wide, True, "bhsd"))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"rounds": 0}, "rounds: expected an integer above 0, got 0"),
        ({"seconds": 0}, "seconds: expected a number above 0, got 0"),
        ({"candidates": {"block_m": 16}}, "candidates: expected a list of options, got dict"),
        ({"candidates": [3]}, "options: expected a dict, got int"),
        ({"causal": "middle"}, "causal"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(attn.Error, match=message):
        attn.tune(*make(), **arguments)


def test_tensors_that_want_gradients():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x).requires_grad_() for x in make())
    found = attn.tune(q, k, v, causal=True, dropout_p=0.1, candidates=SIZES, seconds=0.001)
    assert len(found.milliseconds) == 3


def test_a_terminal_sees_a_bar(capsys):
    bar = _tune.Bar(True)
    bar.show("compiling", 5, 10)
    bar.end()
    assert "[###############               ] 5/10" in capsys.readouterr().err


def test_the_fastest_sizes_are_tried_with_blocks_that_stay(monkeypatch):
    """On a GPU, which is pretended: the best and the rule run again beside them."""
    q, k, v = make(m=64, n=64, d=64)
    sizes = [{"block_m": m, "block_n": 64} for m in (64, 128, 192)]
    names = [_tune._describe(x) for x in sizes]
    stays = [f"{name} stay=on" for name in names]
    monkeypatch.setattr(_tune, "_list_candidates", lambda *_: sizes)
    monkeypatch.setattr(_tune, "_find_path", lambda *_: None)
    monkeypatch.setattr(_tune, "attention", lambda *_, **__: None)
    on_gpu = [types.SimpleNamespace(shape=x.shape, get_device=lambda: 0) for x in (q, k, v)]
    clock = {"rule": 1.0, "stay=on": 0.99, **dict(zip(names, (0.97, 0.9, 2.0))), **dict(zip(stays, (1.2, 0.8, 2.0)))}
    races = pretend(monkeypatch, clock)
    found = attn.tune(*on_gpu)
    assert found.options == {**sizes[1], "stay": "on"}
    assert list(found.milliseconds)[0] == stays[1]
    first, second = races
    assert set(first) == {"rule", *names}
    assert set(second) == {"rule", names[1], "stay=on", stays[0], stays[1]}
    # Candidates that somebody names are all there are.
    races.clear()
    attn.tune(*on_gpu, candidates=sizes)
    assert races == [["rule", *names]]
    assert _tune._let_stay({"splits": 2}) is None and _tune._let_stay({"stay": "off"}) is None
