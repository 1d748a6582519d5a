"""conftest.py: which tests a run of all leaves out."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import attn

pytestmark = pytest.mark.made_of("test/Python/conftest.py", "pyproject.toml")

TESTS = """import pytest

def test_all(): pass

@pytest.mark.made_of("docs/Page.md", "docs/*.txt")
def test_page(): pass
"""

SHARED = """import pytest

@pytest.mark.parametrize("x", range(7))
def test_some(x): pass

@pytest.mark.parametrize("x", range(2))
def test_few(x): pass

def test_all(): pass

@pytest.mark.long
def test_model(): pass

@pytest.mark.long
@pytest.mark.parametrize("x", range(2))
def test_ranks(x): pass
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """run(*arguments) of pytest, in a checkout of a page and its tests: what passed, and what was skipped."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder = tmp_path / "test" / "Python"
    folder.mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (folder / "conftest.py").write_bytes((Path(__file__).parent / "conftest.py").read_bytes())
    (folder / "test_page.py").write_text(TESTS)
    (tmp_path / "docs" / "Page.md").write_text("x")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "x")
    paths = Path(attn.__file__).parents[1], Path(__file__).parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, paths)))
    monkeypatch.setenv("ATTN_SINCE", git(tmp_path, "rev-parse", "HEAD").strip())
    monkeypatch.delenv("ATTN_SHARE", raising=False)

    def count(*arguments):
        command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()[-1].partition(" in ")[0]

    return count


def git(folder, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_what_has_not_changed_is_left_out(run):
    assert run("test/Python") == "1 passed, 1 skipped"


def test_by_name_it_runs(run):
    assert run("test/Python/test_page.py::test_page") == "1 passed"


@pytest.mark.parametrize("name", ["docs/Page.md", "test/Python/test_page.py"])
def test_what_has_changed_runs(run, tmp_path, name):
    path = tmp_path / name
    path.write_text(path.read_text() + "\n")
    assert run("test/Python") == "2 passed"


def test_a_name_of_nothing_runs(run, tmp_path):
    (tmp_path / "test" / "Python" / "test_page.py").write_text(TESTS.replace("Page.md", "Pgae.md"))
    git(tmp_path, "commit", "-am", "x")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTN_SINCE", git(tmp_path, "rev-parse", "HEAD").strip())
        assert run("test/Python") == "2 passed"


@pytest.mark.parametrize("since", ["", "0" * 40])
def test_without_a_commit_all_run(run, monkeypatch, since):
    monkeypatch.setenv("ATTN_SINCE", since)
    assert run("test/Python") == "2 passed"


def test_shares_are_all(run, tmp_path, monkeypatch):
    (tmp_path / "test" / "Python" / "test_page.py").write_text(SHARED)
    assert run("test/Python") == "13 passed"
    counts = []
    for share in range(3):
        monkeypatch.setenv("ATTN_SHARE", f"{share}/3")
        counts.append(int(run("test/Python").split()[0]))
        assert run("test/Python/test_page.py") == "13 passed"
    # Three tests are in each share, with one long test, and two or three of seven.
    assert sorted(counts) == [6, 6, 7]
