"""The loop of an engine in docs/examples: greedy tokens of mixed requests are those of dense attention."""

import importlib.util
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
PATH = Path(__file__).parents[2] / "docs" / "examples" / "engine.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("engine_example", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["engine_example"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["engine_example"]


def check(example, engine, requests):
    engine.serve(requests)
    for request in requests:
        assert request.tokens == example.generate_dense(engine.model, request)
    pages = engine.pages
    assert sorted(pages.free) == list(range(len(pages.users))) and not any(pages.users)


@pytest.mark.parametrize("page, chunk", [(16, 32), (5, 7), (1, 64)])
def test_tokens(example, page, chunk):
    """Prompts in chunks, shared beginnings, requests that come and go, at several sizes of pages."""
    columns = 160 // page
    config = example.Config(page=page, chunk=chunk, columns=columns, pages=4096 // page, batch=5)
    engine = example.Engine(example.Model(config))
    requests = example.make_requests(config, 14, 60, 9)
    check(example, engine, requests)
    assert sum(x.shared for x in requests) > 0
    assert len({len(x.prompt) for x in requests}) > 7


def test_pages_that_are_used_again(example):
    """A pool so small that every page holds other keys later."""
    config = example.Config(page=8, columns=12, pages=26, batch=2, chunk=16)
    engine = example.Engine(example.Model(config))
    for seed in range(3):
        check(example, engine, example.make_requests(config, 8, 50, 8, seed))
    assert set(engine.pages.known.values()) == set(engine.pages.names)


def test_a_prefix_is_computed_once(example):
    config = example.Config(page=8, batch=1)
    engine = example.Engine(example.Model(config))
    prompt = list(range(40))
    requests = [example.Request(prompt + [i], 2) for i in range(3)]
    rows, run = [], engine._run
    engine._run = lambda tokens, step: rows.append(len(tokens)) or run(tokens, step)
    check(example, engine, requests)
    # A prompt whole, then what is left of each: the decoding steps are rows of a whole batch.
    assert [x for x in rows if x != config.batch or x > 1][:1] == [41]
    assert [x.shared for x in requests] == [0, 5, 5]


def test_the_program(example, monkeypatch, capsys):
    sizes = ["--requests", "3", "--longest", "20", "--tokens", "3"]
    monkeypatch.setattr(sys, "argv", ["engine.py", *sizes])
    assert example.main() == 0
    assert "all are those of dense attention" in capsys.readouterr().out
