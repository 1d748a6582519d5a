"""One version everywhere, and docs/release, which checks it before anything is published."""

import ast
import hashlib
import re
import runpy
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import attn

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "docs" / "release").exists():
    pytest.skip("no checkout beside the tests", allow_module_level=True)
OF_RELEASES = pytest.mark.made_of("docs/release")
VERSION = re.search(r"project\(attn VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def test_the_version_is_one():
    assert attn.__version__ == VERSION
    metadata = (ROOT / "pyproject.toml").read_text()
    assert 'dynamic = ["version"]' in metadata and 'input = "CMakeLists.txt"' in metadata


def test_it_stands_in_one_place():
    """Nobody else spells it, but for documents that show output, tests and the changelog."""
    done = subprocess.run(["git", "grep", "-lwF", VERSION], cwd=ROOT, capture_output=True, text=True)
    if done.returncode > 1:
        pytest.skip("no checkout of git")
    texts = [x for x in done.stdout.split() if not x.startswith(("test/", "docs/", "bench/", "CHANGELOG.md", ".ci/"))]
    # The headers say how it looks.
    assert sorted(texts) == ["CMakeLists.txt", "include/attn-c/attn.h", "include/attn/Compiler.h"]
    for header in texts[1:]:
        assert f'"{VERSION}"' in (ROOT / header).read_text()


def test_the_oldest_python_reads_the_package():
    """No machine of ours runs it."""
    metadata = (ROOT / "pyproject.toml").read_text()
    oldest = re.search(r'requires-python = ">=(\d+)\.(\d+)"', metadata).groups()
    files = [*(ROOT / "python" / "attn").rglob("*.py")]
    assert len(files) > 100
    for path in files:
        ast.parse(path.read_text(), path.name, feature_version=tuple(map(int, oldest)))


FILES = {
    "CMakeLists.txt": "project(attn VERSION 1.2.3 LANGUAGES C)\n",
    "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 1.2.3 (2026-12-01)\n\n* It is faster.\n\n## 1.2.2 (2026-11-01)\n\n* Begun.\n",
    ".gitignore": "/dist/\n",
    **dict.fromkeys(["LICENSE", "README.md", "include/attn-c/attn.h", "lib/CMakeLists.txt", "python/attn/__init__.py"], "x\n"),
    "pyproject.toml": """[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
""",
    # Of an sdist what docs/release looks at: all files of git, and the metadata.
    "backend.py": """
import io, subprocess, tarfile
def build_sdist(folder, settings=None):
    with tarfile.open(f"{folder}/attn-1.2.3.tar.gz", "w:gz") as archive:
        for name in subprocess.check_output(["git", "ls-files"], text=True).split():
            archive.add(name, f"attn-1.2.3/{name}")
        text = b"Metadata-Version: 2.1\\nName: attn\\nVersion: 1.2.3\\n"
        entry = tarfile.TarInfo("attn-1.2.3/PKG-INFO")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    return "attn-1.2.3.tar.gz"
""",
}


@pytest.fixture
def checkout(tmp_path):
    """A small project of the same shape, and what runs docs/release in it."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "release").write_bytes((ROOT / "docs" / "release").read_bytes())

    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def release(*arguments):
        command = [sys.executable, "-B", "docs/release", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "x")
    return tmp_path, git, release


@OF_RELEASES
def test_a_checkout_that_can_be_released(checkout):
    _, git, release = checkout
    done = release("--check")
    assert done.stdout == "attn 1.2.3 can be released\n", done.stderr
    git("tag", "v1.2.3")
    assert release("--check").returncode == 0


def change(folder, name, old, new):
    path = folder / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@OF_RELEASES
@pytest.mark.parametrize(
    "name, old, new, message",
    [
        ("CHANGELOG.md", "## Unreleased\n", "## Unreleased\n\n* More.\n", 'got lines under "## Unreleased"'),
        ("CHANGELOG.md", "## 1.2.3 (2026-12-01)", "## 1.2.3", 'expected a section "## 1.2.3 (YYYY-MM-DD)"'),
        ("CHANGELOG.md", "* It is faster.\n", "", 'expected a section "## 1.2.3 (YYYY-MM-DD)" with lines'),
        ("CMakeLists.txt", "VERSION", "version", "expected project(attn VERSION X.Y.Z, got none"),
        ("README.md", "x", "y", "expected a checkout without changes, got M README.md"),
    ],
)
def test_refusals(checkout, name, old, new, message):
    folder, _, release = checkout
    change(folder, name, old, new)
    done = release("--check")
    assert done.returncode == 1 and message in done.stderr and done.stderr.startswith("release: ")


@OF_RELEASES
def test_versions_that_are_not_new(checkout):
    folder, git, release = checkout
    git("tag", "v1.2.3")
    git("commit", "--allow-empty", "-m", "y")
    assert "expected a new version, got 1.2.3, whose tag is of another commit" in release("--check").stderr
    git("tag", "-d", "v1.2.3")
    git("tag", "v1.10.0")
    assert "expected a version after v1.10.0, got 1.2.3" in release("--check").stderr


@OF_RELEASES
def test_a_tag(checkout):
    folder, git, release = checkout
    # Who makes the tag.
    git("config", "user.name", "a")
    git("config", "user.email", "a@b")
    change(folder, "README.md", "x", "y")
    assert "expected a checkout without changes" in release("--tag").stderr
    git("commit", "-am", "y")
    done = release("--tag")
    assert "v1.2.3 is the tag of" in done.stdout and "git push origin v1.2.3" in done.stdout, done.stderr
    told = subprocess.run(["git", "cat-file", "tag", "v1.2.3"], cwd=folder, capture_output=True, text=True).stdout
    assert told.endswith("attn 1.2.3\n\n* It is faster.\n")
    assert "expected no tag v1.2.3, got one of this commit" in release("--tag").stderr
    assert release("--check").returncode == 0


@OF_RELEASES
def test_the_section_of_a_version(checkout):
    folder, git, release = checkout
    assert "expected no section of 1.2.3, got one" in release("--date", "2026-12-24").stderr
    change(folder, "CMakeLists.txt", "1.2.3", "1.3.0")
    assert "expected YYYY-MM-DD, got today" in release("--date", "today").stderr
    assert 'expected lines under "## Unreleased", got none' in release("--date", "2026-12-24").stderr
    change(folder, "CHANGELOG.md", "## Unreleased\n", "## Unreleased\n\n* More.\n")
    assert "commit it" in release("--date", "2026-12-24").stdout
    assert "## Unreleased\n\n## 1.3.0 (2026-12-24)\n\n* More.\n\n## 1.2.3" in (folder / "CHANGELOG.md").read_text()
    git("commit", "-am", "y")
    assert release("--check").stdout == "attn 1.3.0 can be released\n"


@OF_RELEASES
def test_no_wheel(checkout):
    assert "expected dist/attn-1.2.3-*.whl, got none (make wheel)" in checkout[2]().stderr


@OF_RELEASES
def test_what_is_published(checkout):
    pytest.importorskip("build")
    folder, _, release = checkout
    (folder / "dist").mkdir()
    (folder / "dist" / "attn-1.2.3-py3-none-any.whl").write_text("wheel")
    done = release()
    assert done.returncode == 0, done.stderr
    assert "docs/release --tag && git push origin v1.2.3" in done.stdout and "twine upload" in done.stdout
    made = folder / "dist" / "1.2.3"
    sums = dict(reversed(line.split("  ")) for line in (made / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {"attn-1.2.3.tar.gz", "attn-1.2.3-py3-none-any.whl", "notes.md"}
    for name, told in sums.items():
        assert hashlib.sha256((made / name).read_bytes()).hexdigest() == told
    assert (made / "notes.md").read_text() == "* It is faster.\n"


@OF_RELEASES
def test_sdists_with_other_files(checkout):
    tmp_path, _, _ = checkout
    names = runpy.run_path(str(tmp_path / "docs" / "release"), run_name="release")
    path = tmp_path / "attn-1.2.3.tar.gz"

    def pack(*contents, version="1.2.3"):
        (tmp_path / "PKG-INFO").write_text(f"Name: attn\nVersion: {version}\n")
        with tarfile.open(path, "w:gz") as archive:
            archive.add(tmp_path / "PKG-INFO", "attn-1.2.3/PKG-INFO")
            for name in contents:
                archive.add(tmp_path / "PKG-INFO", f"attn-1.2.3/{name}")

    needed = sorted(names["NEEDED"])
    pack(*needed)
    names["check_sdist"](path, "1.2.3")
    pack(*needed[1:])
    with pytest.raises(SystemExit, match=f"expected {needed[0]} in it"):
        names["check_sdist"](path, "1.2.3")
    pack(*needed, version="1.2.2")
    with pytest.raises(SystemExit, match="expected version 1.2.3"):
        names["check_sdist"](path, "1.2.3")
    pack(*needed, "secret.txt")
    with pytest.raises(SystemExit, match="expected files of git alone, got secret.txt"):
        names["check_sdist"](path, "1.2.3")
