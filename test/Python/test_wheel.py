"""docs/debian-root and test/Wheel: what is unpacked and mended, and what is refused. The machines themselves are `make test-wheel`."""

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "docs" / "debian-root").exists():
    pytest.skip("no checkout beside the tests", allow_module_level=True)


def load(name, path):
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


debian_root = load("debian_root", "docs/debian-root")
roots = load("wheel_roots", "test/Wheel/roots")
check = roots.check


@pytest.fixture
def package(tmp_path):
    """A package as Debian 12 has them: files in /lib, and links from the root."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("no dpkg-deb")
    content, archives = tmp_path / "content", tmp_path / "archives"
    for name in ("DEBIAN", "lib/here", "usr/lib/here/blas", "usr/share/ca-certificates", "usr/lib/llvm-22/lib/cmake/llvm"):
        (content / name).mkdir(parents=True)
    archives.mkdir()
    (content / "DEBIAN/control").write_text("Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x.org>\nDescription: x\n")
    (content / "lib/here/libx.so.1").write_text("library")
    (content / "usr/lib/here/libx.so").symlink_to("/lib/here/libx.so.1")
    (content / "usr/lib/here/blas/libblas.so.3").write_text("library")
    (content / "usr/share/ca-certificates/a.crt").write_text("one\n")
    (content / "usr/share/ca-certificates/b.crt").write_text("two\n")
    (content / "usr/lib/llvm-22/lib/cmake/llvm/LLVMExports.cmake").write_text('"rt;/usr/lib/here/libz3.so"')
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", content, archives / "x.deb"], check=True, capture_output=True)
    return archives


def test_packages_are_mended(package, tmp_path):
    folder = tmp_path / "root"
    assert debian_root.unpack(package, folder) == 1
    debian_root.mend(folder)
    assert os.readlink(folder / "lib") == "usr/lib" and (folder / "lib/here/libx.so.1").read_text() == "library"
    assert os.readlink(folder / "usr/lib/here/libx.so") == "../../../lib/here/libx.so.1"
    assert (folder / "usr/lib/here/libx.so").read_text() == "library"
    assert (folder / "usr/lib/here/libblas.so.3").read_text() == "library"
    assert (folder / "etc/ssl/certs/ca-certificates.crt").read_text() == "one\ntwo\n"
    assert "rt;${_IMPORT_PREFIX}/../here/libz3.so" in (folder / "usr/lib/llvm-22/lib/cmake/llvm/LLVMExports.cmake").read_text()


def call(*arguments):
    command = [sys.executable, "-B", str(ROOT / "docs" / "debian-root"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_folders_of_others_stay(tmp_path):
    (tmp_path / "mine").write_text("x")
    done = call(tmp_path, "amd64", "bookworm", "python3")
    assert done.returncode and f"expected a folder that is empty or was made here, got {tmp_path}" in done.stderr
    assert (tmp_path / "mine").exists()
    (tmp_path / "made-of").write_text("amd64 bookworm python3\n")
    assert call(tmp_path, "amd64", "bookworm", "python3").returncode == 0 and (tmp_path / "mine").exists()
    assert "docs/debian-root FOLDER" in call(tmp_path).stderr


def test_a_command_that_fails_is_told():
    with pytest.raises(SystemExit, match="debian-root: cat /nowhere: .*No such file"):
        debian_root.run("cat", "/nowhere")


def test_other_platforms(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["roots", str(tmp_path / "attn-1-py3-none-win_amd64.whl")])
    with pytest.raises(SystemExit, match="expected a wheel for manylinux_2_34_x86_64 or .*, got attn-1-py3-none-win_amd64.whl"):
        roots.main()


def test_no_emulator(tmp_path, monkeypatch):
    monkeypatch.setattr(roots.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="expected qemu-aarch64-static, got none"):
        roots.Machine(tmp_path, "qemu-aarch64-static")


@pytest.mark.parametrize(
    "told, message",
    [
        ("151 100 20", "expected at most 150 ms, got 151 .NumPy takes 100."),
        ("100 100 61", "expected at most 60 MB beside NumPy's, got 61"),
        ("290 200 20", None),
    ],
)
def test_imports_are_judged(monkeypatch, told, message):
    monkeypatch.setattr(check, "run", lambda *command: told)
    if message is None:
        assert "import takes 290 ms" in check.check_import("python")
    else:
        with pytest.raises(SystemExit, match=message):
            check.check_import("python")
