"""docs/site: pages, links, pictures, the reference and versions. The site itself is built where MkDocs is installed."""

import functools
import http.server
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
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


def test_versions(tmp_path, monkeypatch):
    monkeypatch.setattr(site, "SITE", tmp_path)
    for name in ("0.1.0", "0.10.0", "0.9.0", "dev", "images"):
        (tmp_path / name).mkdir()
    for name in ("0.10.0", "0.9.0", "0.1.0", "dev"):
        (tmp_path / name / "index.html").write_text("x")
    listed = site.list_versions("0.11.0")
    assert [x["version"] for x in listed] == ["0.11.0", "0.10.0", "0.9.0", "0.1.0", "dev"]
    assert [x["aliases"] for x in listed] == [["latest"], [], [], [], []]
    site.write_versions("dev")
    assert 'url=0.10.0/index.html"' in (tmp_path / "index.html").read_text()
    assert [x["version"] for x in json.loads((tmp_path / "versions.json").read_text())] == ["0.10.0", "0.9.0", "0.1.0", "dev"]


def test_the_version_of_a_tag(tmp_path, monkeypatch):
    monkeypatch.setattr(site, "ROOT", tmp_path)
    (tmp_path / "CMakeLists.txt").write_text("project(attn VERSION 1.2.3 LANGUAGES C)\n")
    assert site.find_version() == "dev"
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init"], ["commit", "--allow-empty", "-m", "x"], ["tag", "v1.2.2"]):
        subprocess.run(["git", *who, *command], cwd=tmp_path, check=True, capture_output=True)
    assert site.find_version() == "dev"
    subprocess.run(["git", "tag", "v1.2.3"], cwd=tmp_path, check=True)
    assert site.find_version() == "1.2.3"


def test_dead_links_of_the_site(tmp_path, monkeypatch):
    monkeypatch.setattr(site, "SITE", tmp_path)
    (tmp_path / "a.html").write_text('<h1 id="top"></h1><a href="b.html#here">x</a><a href="#top">x</a><a href="https://x.org">x</a>')
    (tmp_path / "b.html").write_text('<h1 id="here"></h1><a href="a.html#no">x</a><img src="c.svg"><a href="a.html">x</a>')
    dead, count = site.find_dead_links()
    assert sorted(dead) == ["b.html: a.html#no", "b.html: c.svg"] and count == 5


@pytest.fixture(scope="module")
def built():
    """The site, where what builds it is installed."""
    for name in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(name)
    done = subprocess.run([sys.executable, "-B", str(PATH)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    place = re.search(r"\d+ pages in (build/site/\S+), \d+ links", done.stdout).group(1)
    return ROOT / place


def test_the_site_is_built(built):
    text = (built / "api" / "attn.html").read_text()
    assert 'id="attn.attention"' in text and "ArrayT" in text
    assert "expected None or (left, right) of distances" in (built / "errors.html").read_text()
    assert built.name in [x["version"] for x in json.loads((built.parent / "versions.json").read_text())]


@pytest.fixture
def served(built, tmp_path):
    """A server of the site with an older version."""
    for name in (built.name, "0.0.1"):
        shutil.copytree(built, tmp_path / name)
    (tmp_path / "versions.json").write_text(
        json.dumps([{"version": x, "title": x, "aliases": []} for x in (built.name, "0.0.1")])
    )

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=tmp_path)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{built.name}"
        server.shutdown()


def test_the_site_in_a_browser(served, monkeypatch):
    """The switcher leads to the same page of the other version; pages are no wider than a phone."""
    if not shutil.which("chromedriver"):
        pytest.skip("no chromedriver")
    monkeypatch.syspath_prepend(str(ROOT / "test" / "Tools" / "Inputs"))
    from browser import Browser

    # A folder, for whoever wants to look.
    with Browser(os.environ.get("ATTN_SCREENSHOTS")) as browser:
        browser.size(1400, 900)
        browser.open(f"{served}/Guides.html")
        browser.wait("return document.querySelector('.md-version__list')")
        versions = browser.run("return [...document.querySelectorAll('.md-version__link')].map(x => x.textContent.trim())")
        assert versions == [served.rpartition("/")[2], "0.0.1"]
        browser.keep("site.png")
        browser.run("document.querySelectorAll('.md-version__link')[1].click()")
        browser.wait("return location.pathname.startsWith('/0.0.1/')")
        for name in ("index", "errors", "api/attn", "Gallery"):
            browser.size(1400, 900)
            browser.open(f"{served}/{name}.html")
            browser.wait("return document.querySelector('.md-version__list')")
            browser.keep(f"site-{name.replace('/', '-')}.png")
            browser.size(400, 800)
            assert browser.run("return document.documentElement.scrollWidth") <= 400, name
            browser.keep(f"site-{name.replace('/', '-')}-phone.png")
        assert not [x for x in browser.complaints() if x["level"] == "SEVERE"]
