import collections
import functools
import importlib
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

# What is tested is compiled, here and in the processes that tests start.
os.environ.setdefault("ATTN_CACHE", "0")


ROOT = Path(__file__).resolve().parents[2]


@functools.lru_cache(None)
def has_changed(since, paths):
    """Whether a file there differs from the commit. Where nobody can tell, it does: so does a name of nothing."""
    if not all(any(mark in x for mark in "*?[:") or (ROOT / x).exists() for x in paths):
        return True
    command = ["git", "diff", "--quiet", since, "--", *paths]
    try:
        return bool(subprocess.run(command, cwd=ROOT, capture_output=True).returncode)
    except OSError:
        return True


def pytest_collection_modifyitems(config, items):
    """A run of all leaves out what has not changed, and what is of another share."""
    named = {Path(x.partition("::")[0]).resolve() for x in config.args}
    items = [item for item in items if item.path not in named]
    if since := os.environ.get("ATTN_SINCE"):
        leave_out_unchanged(items, since)
    share, shares = map(int, os.environ.get("ATTN_SHARE", "0/1").split("/"))
    leave_out_other_shares(items, share, shares)


def leave_out_unchanged(items, since):
    """Of tests that say what they are made of, those of which nothing differs from the commit."""
    for item in items:
        mark = item.get_closest_marker("made_of")
        if mark is None:
            continue
        paths = (f"test/Python/{item.path.name}", *mark.args)
        if not has_changed(since, paths):
            item.add_marker(pytest.mark.skip(reason=f"nothing that it is made of differs from {since[:8]}"))


def leave_out_other_shares(items, share, shares):
    """Of a test's parameters, and of all tests marked long, each N-th stays (ATTN_SHARE=K/N, as in test/share)."""
    families = collections.defaultdict(list)
    for item in items:
        if item.get_closest_marker("long"):
            families["long"].append(item)
        elif hasattr(item, "callspec"):
            families[f"{item.path.name}::{item.originalname}"].append(item)
    for name, family in families.items():
        if len(family) < shares:
            continue
        # Families begin at different shares, or the first would have most.
        begin = zlib.crc32(name.encode())
        for at, item in enumerate(family, begin):
            if at % shares != share:
                item.add_marker(pytest.mark.skip(reason=f"of a share other than {share}/{shares}"))


GUARD, PATTERN = 1024, 0xA5


@pytest.fixture(autouse=True)
def guarded(monkeypatch):
    """Arrays of NumPy for results stand between words that no kernel may write, and hold NaN before."""
    from attn import _arrays

    make, made = _arrays.empty_like, []

    def empty_like(x, type_, shape):
        array = make(x, type_, shape)
        if not isinstance(array, np.ndarray):
            return array
        memory = np.full(array.nbytes + 2 * GUARD, PATTERN, np.uint8)
        inside = memory[GUARD : GUARD + array.nbytes]
        inside[:] = 0xFF
        made.append((memory, array.nbytes))
        return inside.view(array.dtype).reshape(array.shape)

    monkeypatch.setattr(_arrays, "empty_like", empty_like)
    yield
    for memory, size in made:
        assert (memory[:GUARD] == PATTERN).all() and (memory[GUARD + size :] == PATTERN).all()


@pytest.fixture(autouse=True)
def guarded_torch():
    """All memory of PyTorch on the CPU stands between such words, from the first test that finds PyTorch
    imported: outputs and gradients, whoever allocates them."""
    import guarded_memory

    guarded_memory.find()
    yield
    library = guarded_memory.find()
    assert library is None or library.guard_check() == 0, "written around a tensor's memory"


@pytest.fixture
def rng():
    # Fresh inputs each time: a failure prints its seed.
    seed = int(np.random.SeedSequence().entropy % (1 << 32))
    print(f"seed {seed}")
    return np.random.default_rng(seed)


@pytest.fixture
def make(rng):
    """make(B, H, Hkv, M, N, D, Dv, dtype) -> q, k, v."""

    def inputs(b=2, h=4, hkv=2, m=7, n=9, d=16, dv=None, dtype="float32"):
        dv = d if dv is None else dv
        shapes = (b, h, m, d), (b, hkv, n, d), (b, hkv, n, dv)
        return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)

    return inputs


@pytest.fixture
def import_bench(monkeypatch):
    """Imports a module of bench/gpu, whose folder is no package; forgets those that came with it."""
    folder = ROOT / "bench" / "gpu"
    if not folder.exists():
        pytest.skip("no benches beside the tests")
    monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module
    for path in folder.glob("*.py"):
        sys.modules.pop(path.stem, None)
