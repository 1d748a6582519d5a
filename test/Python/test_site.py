"""docs/site: pages, links, pictures, the reference and the list of errors. The site itself is built where MkDocs is installed."""

import importlib.machinery
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "docs" / "site"
if not PATH.exists():
    pytest.skip("no documents beside the tests", allow_module_level=True)
_loader = importlib.machinery.SourceFileLoader("site_of_attn", str(PATH))
site = importlib.util.module_from_spec(importlib.util.spec_from_loader("site_of_attn", _loader))
sys.modules["site_of_attn"] = site
_loader.exec_module(site)

LINES = """See [the guide](Migration.md#from-xformers), [a source](../lib/CAPI/attn.cpp), [`docs/site`](site) and
[the
start](../README.md). Not `[x](y)` in a block:

```python
[x](nowhere.md)
```

[c1] and [other words][c1] are links, [c2] is none.

[c1]: ../dialects/Attn/README.md
"""


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A page of docs/, in another root with the files that it names."""
    monkeypatch.setattr(site, "ROOT", tmp_path)
    monkeypatch.setattr(site, "PAGES", tmp_path / "pages")
    for name in ("lib/CAPI/attn.cpp", "docs/site", "README.md", "docs/Migration.md", "dialects/Attn/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    pages = {"README.md": "index.md", "docs/Migration.md": "Migration.md", "docs/Page.md": "Page.md"}
    pages["dialects/Attn/README.md"] = "dialects/Attn/index.md"

    def turn(text):
        (tmp_path / "docs" / "Page.md").write_text(text)
        return site.turn_page("docs/Page.md", pages)

    return turn


def test_links(page):
    text = page(LINES)
    assert "[the guide](Migration.md#from-xformers)" in text
    assert "a source (`lib/CAPI/attn.cpp`), `docs/site` and" in text
    assert "[the\nstart](index.md)" in text
    assert "[x](nowhere.md)" in text
    assert "[c1](dialects/Attn/index.md) and [other words](dialects/Attn/index.md) are links, [c2] is none" in text
    assert "[c1]: " not in text


def test_dead_links_are_refused(page):
    with pytest.raises(SystemExit, match="docs/Page.md: expected a file, got ../lib/nothing.cpp"):
        page("[text](../lib/nothing.cpp)")


def test_pictures(page):
    text = page("```\n8 x 8, tiles of 4 x 4: 1 full █\n█·\n▒█\n```\n")
    assert text.count("<rect") == 4 and "8 x 8, tiles of 4 x 4: 1 full █</title>" in text
    assert 'x="10" y="0" width="9" height="9" fill-opacity="0.06"' in text and "```" not in text


def test_every_page_is_on_it():
    pages = site.list_pages()
    documents = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} | {"README.md", "CHANGELOG.md", "CONTRIBUTING.md"}
    assert documents <= pages.keys()
    assert {f"docs/decisions/{path.name}" for path in (ROOT / "docs" / "decisions").glob("*.md")} <= pages.keys()
    assert len(set(pages.values())) == len(pages)


def test_every_module_is_on_it():
    modules = {f"attn.integrations.{x.stem}" for x in (ROOT / "python" / "attn" / "integrations").glob("[a-z]*.py")}
    modules |= {f"attn.{x.stem}" for x in (ROOT / "python" / "attn").glob("[a-z]*.py")} | {"attn", "attn.distributed"}
    assert modules == set(site.MODULES)
    for module in modules:
        text = site.write_module(module)
        for name in site.list_names(module):
            assert name in ("typing", "__version__") or f"::: {module}.{name}\n" in text
    assert "::: attn.attention\n\nAn example" in site.write_module("attn")


def test_errors(tmp_path, monkeypatch):
    found = set(site.list_errors())
    assert len(found) > 150
    assert ("layout", '"bhsd" or "bshd"', "", "attn/_problem.py") in found
    text = site.write_errors()
    assert "| scale | a number that f32 holds |" in text
    # Each is said by a test or two, so that all of them are known to be raised.
    tests = "".join(path.read_text() for path in (ROOT / "test" / "Python").glob("test_*.py"))
    told = [x for x in found if "…" not in x.expected and x.expected in tests]
    assert len(told) > 60


def test_dead_links_of_the_site(tmp_path, monkeypatch):
    monkeypatch.setattr(site, "SITE", tmp_path)
    (tmp_path / "a.html").write_text('<h1 id="top"></h1><a href="b.html#here">x</a><a href="#top">x</a><a href="https://x.org">x</a>')
    (tmp_path / "b.html").write_text('<h1 id="here"></h1><a href="a.html#no">x</a><img src="c.svg"><a href="a.html">x</a>')
    dead, count = site.find_dead_links()
    assert sorted(dead) == ["b.html: a.html#no", "b.html: c.svg"] and count == 5


def test_the_site_is_built():
    for name in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(name)
    done = subprocess.run([sys.executable, "-B", str(PATH)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ pages in build/site, \d+ links", done.stdout)
    text = (ROOT / "build" / "site" / "api" / "attn.html").read_text()
    assert 'id="attn.attention"' in text and "ArrayT" in text
