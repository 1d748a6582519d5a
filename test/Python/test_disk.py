"""Kernels for the CPU between processes."""

import os
import shutil
import subprocess
import sys

import attn
import pytest

ROOT = os.path.dirname(os.path.dirname(attn.__file__))

# Sums of results, and on stderr what was compiled.
CALL = """
import numpy as np, attn
q, k, v = np.random.default_rng(0).standard_normal((3, 1, 2, 40, 16), dtype=np.float32)
print(attn.attention(q, k, v, causal=True, return_lse=True)[1].sum())
print([x.sum() for x in attn.gradient(q, k, v, q, causal=True)])
"""

COMPILE = "import attn; print(attn.compile('float32', 8).is_from_disk)"


def start(code, where, **environment):
    environment = {"ATTN_CACHE": "1", "ATTN_LOG": "compile", "PYTHONPATH": ROOT, **environment}
    return subprocess.Popen(
        [sys.executable, "-B", "-c", code],
        env={**os.environ, "ATTN_CACHE_DIR": str(where), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """What it printed, and what it said of compilations and files."""
    output, said = process.communicate(timeout=100)
    assert process.returncode == 0, said
    return output, said


def run(code, where, **environment):
    return finish(start(code, where, **environment))


def test_processes_find_what_others_compiled(tmp_path):
    where = tmp_path / "cache"
    wanted, said = run(CALL, where)
    count = said.count("\n")
    assert count >= 2 and said.count(" compiled in ") == count
    entries = list(where.glob("*.kernel"))
    assert len(entries) == count
    assert all(x.stat().st_mode & 0o777 == 0o600 for x in (*entries, where / "locks"))

    output, said = run(CALL, where)
    assert output == wanted and said.count(" loaded from disk in ") == count
    # A process that may not write is one that reads.
    where.chmod(0o500)
    output, said = run(CALL, where)
    assert output == wanted and said.count(" loaded from disk in ") == count
    where.chmod(0o700)
    for off in ({"ATTN_CACHE": "0"}, {"ATTN_CACHE_DIR": str(tmp_path / "other")}):
        output, said = run(CALL, where, **off)
        assert output == wanted and said.count(" compiled in ") == count
    assert len(list(where.glob("*.kernel"))) == count


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A directory with two entries, that of COMPILE first."""
    where, entries = tmp_path_factory.mktemp("kept"), []
    for code in (COMPILE, COMPILE.replace("8", "16")):
        assert run(code, where)[0] == "False\n"
        entries += [x.name for x in where.glob("*.kernel") if x.name not in entries]
    return where, *entries


@pytest.mark.parametrize("attack", ["flip", "swap", "mode", "link"])
def test_entries_that_are_not_trusted(kept, tmp_path, attack):
    source, first, second = kept
    where = shutil.copytree(source, tmp_path / "cache")
    entry, whole = where / first, (source / first).read_bytes()
    if attack == "flip":
        middle = len(whole) // 2
        entry.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    elif attack == "swap":
        entry.write_bytes((where / second).read_bytes())
    elif attack == "mode":
        entry.chmod(0o606)
    else:
        entry.rename(tmp_path / "aside")
        entry.symlink_to(tmp_path / "aside")
    output, said = run(COMPILE, where)
    assert output == "False\n" and "RuntimeWarning: attn: expected a" in said
    # It is repaired.
    assert entry.read_bytes() == whole and not entry.is_symlink()
    assert entry.stat().st_mode & 0o777 == 0o600


def test_processes_that_start_together_compile_once(tmp_path):
    code = "import attn; print(attn.compile('float32', 64, causal=True).is_from_disk)"
    several = [start(code, tmp_path / "cache") for _ in range(4)]
    assert sorted(finish(x)[0] for x in several) == ["False\n"] + 3 * ["True\n"]
