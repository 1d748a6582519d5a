"""The search of sizes: what it tries, what it keeps, and what it tells."""

import json
import os
import types

import numpy as np
import pytest

import attn
from attn import _eager, _tune, _tuning


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
        return {name: [milliseconds[name]] for name in given}

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
    first, second = (_tuning.describe(x) for x in SIZES)
    pretend(monkeypatch, {"rule": 1.0, first: 0.9, second: 1.1})
    assert attn.tune(q, k, v, candidates=SIZES, again=True).options == SIZES[0]
    pretend(monkeypatch, {"rule": 1.0, first: 0.995, second: 1.1})
    assert attn.tune(q, k, v, candidates=SIZES, again=True).options == {}
    both = {"threads": 1, **SIZES[0]}
    pretend(monkeypatch, {"threads=1": 1.0, _tuning.describe(both): 0.5})
    found = attn.tune(q, k, v, candidates=SIZES[:1], options={"threads": 1}, again=True)
    assert found.options == both


@pytest.mark.parametrize(
    "times, wanted",
    [
        ({"rule": [1.0, 1.0, 1.0], "a": [0.9, 0.9, 0.9], "b": [0.95, 0.8, 0.96]}, ("a", 0.0)),
        # Faster in the median, and not in every round: noise.
        ({"rule": [1.0, 1.0, 1.0], "a": [0.9, 0.9, 1.1]}, ("rule", 0.2 / 0.9)),
        ({"rule": [1.0, 1.3, 1.0], "a": [0.9, 1.2, 0.9]}, ("a", 0.3 / 0.9)),
        ({"rule": [1.0, 1.0, 1.0], "a": [0.995, 0.995, 0.995]}, ("rule", 0.0)),
        # One round that was lucky does not win against three.
        ({"rule": [1.0, 1.0, 1.0], "a": [0.9, 0.9, 0.9], "c": [0.5]}, ("a", 0.0)),
        ({"rule": [2.0], "a": [0.9, 0.9, 0.9]}, ("a", 0.0)),
    ],
)
def test_the_winner_beats_the_noise(times, wanted):
    name, noise = _tune._choose(times, "rule")
    assert (name, pytest.approx(noise)) == (wanted[0], wanted[1])


def test_the_list_is_sorted_and_marked(monkeypatch):
    times = {"rule": [1.0, 1.04, 1.0], "block_m=16 block_n=32": [1.02, 0.99, 1.02], "block_m=32 block_n=16": [3.0]}
    monkeypatch.setattr(_tune, "_time_all", lambda *_: times)
    found = attn.tune(*make(), candidates=SIZES, again=True)
    assert list(found.milliseconds.values()) == sorted(found.milliseconds.values()) == [1.0, 1.02, 3.0]
    assert (found.options, found.chosen, found.noise) == ({}, "rule", pytest.approx(0.04))
    assert str(found).splitlines() == [
        "    1.0000 ms * rule",
        "    1.0200 ms ~ block_m=16 block_n=32",
        "    3.0000 ms   block_m=32 block_n=16",
        "noise 4.0%: * is chosen, and ~ may be as fast",
        "0 refused",
    ]


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
    assert found == {"fast": [1.0, 1.0, 1.0], "slow": [5.0]}
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
        assert _tuning.LEFT_OUT in error.value.message
        assert "tile.mma" in attn.explain(
            "bfloat16", 128, device="cuda", until="tile", options=options
        )
    found = attn.Tuning(
        {}, {"rule": 1.0}, {"block_m=64": f"{_tuning.LEFT_OUT}: x", "block_m=1": "y"}
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
    names = [_tuning.describe(x) for x in sizes]
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


def test_a_block_is_tuned(monkeypatch):
    """Calls after the block take what it found, of the same attention with other lengths too."""
    q, k, v = make()
    wanted = attn.attention(q, k, v, causal=True)
    pretend(monkeypatch, {"rule": 1.0, _tuning.describe(SIZES[0]): 0.5, _tuning.describe(SIZES[1]): 2.0})
    with attn.tune(candidates=SIZES) as found:
        inside = attn.attention(q, k, v, causal=True)
        attn.attention(q, k, v, causal=True)
        attn.attention(q, k, v, options={"threads": 1})
    assert len(found) == 1 and found[0].options == SIZES[0]
    assert found.names == ["q (1, 2, 70, 16) of float32, causal=True, layout=bhsd"]
    assert str(found).startswith(found.names[0] + "\n")
    asked = None, True, None, None, None, None, False, None, None

    def options_of(*arrays):
        return dict(_eager.find_plan(*arrays, -1, asked, None)[0].options)

    assert options_of(q, k, v)["block_m"] == "16" and options_of(*make(33, 40))["block_m"] == "16"
    for got in (inside, attn.attention(q, k, v, causal=True)):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    assert "block_m" not in dict(_eager.find_plan(q, k, v, -1, (None, False, *asked[2:]), None)[0].options)
    found.undo()
    assert "block_m" not in options_of(q, k, v)
    np.testing.assert_array_equal(attn.attention(q, k, v, causal=True), wanted)


def test_a_block_weighs_its_shapes(monkeypatch):
    """Options that are best for one shape and slow for the other ones are not taken."""
    small, large = make(), make(200, 200)
    first, second = map(_tuning.describe, SIZES)
    rounds = {
        70: {"rule": [1.0], first: [0.5], second: [0.8]},
        200: {"rule": [10.0], first: [12.0], second: [8.0]},
    }
    monkeypatch.setattr(
        attn._tuned_block.Tunings,
        "__init__",
        lambda self, search: _init(self, lambda q, k, v, **how: _pretend_found(rounds[q.shape[2]])),
    )
    with attn.tune() as found:
        attn.attention(*small, window=(5, 0))
        attn.attention(*large, window=(5, 0))
    assert len(found) == 2
    asked = None, False, (5, 0), None, None, None, False, None, None
    assert dict(_eager.find_plan(*small, -1, asked, None)[0].options)["block_m"] == "32"
    found.undo()


_init = attn._tuned_block.Tunings.__init__


def _pretend_found(rounds):
    name, noise = _tune._choose(rounds, "rule")
    options = dict(zip(["rule", *map(_tuning.describe, SIZES)], [{}, *SIZES]))[name]
    return attn.Tuning(options, {x: y[0] for x, y in rounds.items()}, {}, noise=noise, chosen=name)


def test_a_block_that_fails_is_not_tuned():
    before = attn._attention.call
    with pytest.raises(ZeroDivisionError):
        with attn.tune() as found:
            attn.attention(*make(), window=(4, 4))
            1 / 0
    assert attn._attention.call is before and not found


def test_a_block_under_autocast(monkeypatch):
    """What it times and replaces is the attention that is called, of the type that autocast has."""
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x) for x in make())
    pretend(monkeypatch, {"rule": 1.0, _tuning.describe(SIZES[0]): 0.5})
    with torch.autocast("cpu", torch.bfloat16):
        with attn.tune(candidates=SIZES[:1]) as found:
            attn.attention(q, k, v, window=(11, 0))
    (name,) = found.names
    assert "of torch.bfloat16" in name
    asked, low = (None, False, (11, 0), None, None, None, False, None, None), [x.bfloat16() for x in (q, k, v)]
    assert dict(_eager.find_plan(*low, -1, asked, None)[0].options)["block_m"] == "16"
    found.undo()


def test_gradients_after_a_block(monkeypatch):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x).requires_grad_() for x in make())
    attn.attention(q, k, v, window=(9, 0)).sum().backward()
    wanted = [x.grad.clone() for x in (q, k, v)]
    pretend(monkeypatch, {"rule": 1.0, _tuning.describe(SIZES[0]): 0.5})
    with attn.tune(candidates=SIZES[:1]) as found:
        attn.attention(q, k, v, window=(9, 0))
    for x in (q, k, v):
        x.grad = None
    attn.attention(q, k, v, window=(9, 0)).sum().backward()
    for x, y in zip((q, k, v), wanted):
        torch.testing.assert_close(x.grad, y, rtol=1e-5, atol=1e-6)
    found.undo()


def test_a_block_takes_no_arguments_of_calls():
    for how in ({"causal": True}, {"options": {"threads": 1}}):
        with pytest.raises(attn.Error, match="^q: expected an array beside other arguments of a call, got none"):
            attn.tune(**how)
