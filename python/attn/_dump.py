"""Calls as files, which `attn-run` replays: $ATTN_DUMP and `attn.dump`."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import itertools
import logging
import math
import os
import re
import shlex
import warnings
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional, Set, Tuple, Union

from . import _memory
from ._kernel_name import name_kernel
from ._library import Error, refuse, version
from ._observe import Call, Named, Watcher, unwatch, watch

logger = logging.getLogger("attn.dump")

# Of a program that fails in each of a million calls, so many are enough.
_MOST_FAILURES = 16

# Options of calls that attn-run has too.
_OPTIONS = "block_m block_n splits fixed_split stay balance slack target way fused threads cpu".split()
# How the library is asked, which is nothing to a kernel.
_SILENT = "device lazy cache cache_dir search entry".split()
# Of a source that no call came to.
_ANY_SHAPE = "B=1,H=1,M=64"
_SWITCHES = {"on": "true", "off": "false"}


class Dump(Watcher):
    """Writes calls into folders of one folder."""

    def __init__(self, folder: Path, chosen: Optional[Set[int]], *, has_all: bool = False) -> None:
        """`chosen` are the numbers of calls; calls that fail are written too."""
        self._folder, self._chosen, self._has_all = folder, chosen or set(), has_all
        self._failures = 0
        self._refused = itertools.count(1)

    def before(self, call: Call) -> None:
        if self._has_all or call.number in self._chosen:
            # A kernel that ends the process leaves these.
            self._write(call, call.arguments)

    def after(self, call: Call, error: Optional[Error]) -> None:
        why = str(error) if error is not None else _find_fault(call)
        if why:
            tensors = call.arguments if error else [*call.arguments, *call.results]
            self._write_failure(f"call {call.number}", why, lambda: self._write(call, tensors, why))
        elif self._has_all or call.number in self._chosen:
            self._write(call, call.results)

    def refused(self, source: str, options: Tuple, error: Error) -> None:
        def write() -> Path:
            name = f"refused-{os.getpid()}-{next(self._refused)}-{_to_file(name_kernel(source))}"
            folder = self._folder / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "kernel.mlir").write_text(source)
            line = [*_begin_line(options), "--shape", _ANY_SHAPE]
            _write_script(folder, line, str(error))
            return folder

        self._write_failure(f"compiling {name_kernel(source)}", str(error), write)

    def _write_failure(self, what: str, why: str, write: Callable[[], Path]) -> None:
        """What failed is told by its own error, whatever becomes of the files."""
        self._failures += 1
        if self._failures > _MOST_FAILURES:
            return
        try:
            logger.warning("attn: %s failed: %s: %s/replay runs it again", what, why, write())
        except OSError as error:
            logger.warning("attn: %s failed: %s: no files of it: %s", what, why, error)

    def _write(self, call: Call, tensors: List[Named], why: str = "") -> Path:
        name = f"call-{os.getpid()}-{call.number}-{_to_file(call.name)}"
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        if not _memory.is_captured():
            numpy: Any = importlib.import_module("numpy")
            for x in tensors:
                if not _is_number(x):
                    numpy.save(folder / f"{x.name}.npy", _memory.copy(x.tensor))
        (folder / "kernel.mlir").write_text(call.kernel.source)
        line = _begin_line(call.kernel.options)
        for x in call.arguments:
            value = repr(_memory.copy(x.tensor).item()) if _is_number(x) else f"{x.name}.npy"
            line += ["--input", f"{x.name}={value}"]
        for x in call.results:
            line += ["--output", f"{x.name}={x.name}.replayed.npy"]
        if _is_rows_first(call):
            line.append("--layout=bshd")
        _write_script(folder, line, why)
        return folder


def _to_file(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name)


def _is_number(x: Named) -> bool:
    return x.shape == ()


def _is_rows_first(call: Call) -> bool:
    """Whether matrices lie in memory as (B, S, H, D), as attn-run then puts all of them."""
    matrices = [x for x in call.arguments if len(x.shape) == 4]
    told = [x for x in matrices if x.shape[1] > 1 and x.shape[2] > 1]
    return bool(told) and all(x.strides[1] < x.strides[2] for x in told)


def _find_fault(call: Call) -> str:
    """NaN in results of finite numbers; empty where all is well."""
    if _memory.is_captured():
        return ""
    numpy: Any = importlib.import_module("numpy")
    wrong = [x.name for x in call.results if _has(numpy.isnan, x)]
    if not wrong or any(_has(lambda y: ~numpy.isfinite(y), x) for x in call.arguments):
        return ""
    return f"NaN in {', '.join(wrong)}, with finite arguments"


def _has(kind: Any, x: Named) -> bool:
    is_float = x.type in ("f16", "bf16", "f32", "f64")
    is_there = is_float and math.prod(x.shape) > 0
    return bool(is_there and kind(_memory.to_f64(_memory.copy(x.tensor), x.type)).any())


def _begin_line(options: Tuple) -> List[str]:
    """The kernel and its options. Those that attn-run has not are told in the script."""
    given = dict(options)
    device = given.get("device", "cpu").partition(":")[0]
    line = ["attn-run", "kernel.mlir", f"--device={device}"]
    for name in _OPTIONS:
        if name in given:
            text = given[name]
            is_switch = name in ("stay", "fused")
            line.append(
                f"--{name.replace('_', '-')}={_SWITCHES.get(text, text) if is_switch else text}"
            )
    left_out = [f"{name}={text}" for name, text in options if name not in (*_OPTIONS, *_SILENT)]
    return line + [f"#{each}" for each in left_out]


def _write_script(folder: Path, line: List[str], why: str) -> None:
    left_out = [word[1:] for word in line if word.startswith("#")]
    words = [word for word in line if not word.startswith("#")]
    notes = [f"# attn {version}"] + [f"# failed: {text}" for text in why.splitlines()[:1]]
    notes += [f"# left out, since attn-run has no such option: {x}" for x in left_out]
    command = " ".join(map(shlex.quote, words))
    script = ["#!/bin/sh", *notes, 'cd "$(dirname "$0")" || exit 1', f'exec {command} "$@"', ""]
    path = folder / "replay"
    path.write_text("\n".join(script))
    path.chmod(0o755)


def _read_numbers(text: str) -> Optional[Set[int]]:
    """Of calls: "3,7-9"; None where the text is none."""
    numbers: Set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.strip().isdigit() or not (last or first).strip().isdigit():
            return None
        if int(last or first) - int(first) > 100_000:
            return None
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def start() -> None:
    """As $ATTN_DUMP and $ATTN_DUMP_CALLS say."""
    folder, calls = os.environ.get("ATTN_DUMP", ""), os.environ.get("ATTN_DUMP_CALLS", "")
    if not folder:
        if calls:
            told = "ATTN_DUMP_CALLS: expected a folder in ATTN_DUMP too, got none"
            warnings.warn(told, RuntimeWarning, stacklevel=3)
        return
    if importlib.util.find_spec("numpy") is None:
        told = "ATTN_DUMP: expected NumPy, which writes the files, got none"
        warnings.warn(told, RuntimeWarning, stacklevel=3)
        return
    chosen = _read_numbers(calls) if calls not in ("", "all") else set()
    if chosen is None:
        told = f"ATTN_DUMP_CALLS: expected all, or numbers such as 3,7-9, got {calls!r}"
        warnings.warn(told, RuntimeWarning, stacklevel=3)
    watch(Dump(Path(folder), chosen, has_all=calls == "all"))


@contextlib.contextmanager
def dump(folder: Union[str, "os.PathLike[str]"]) -> Iterator[Path]:
    """Writes the calls of kernels inside of a `with` block, as files that `attn-run` replays:

        with attn.dump("calls"):
            output = attn.attention(q, k, v, causal=True)

    Each call has a folder of its own, `calls/call-PROCESS-NUMBER-NAME`, with `kernel.mlir`, a `.npy`
    file for each argument and each result, and `replay`, a script of one `attn-run` line. Arguments
    are written before the call, so that they remain where the call ends the process. bfloat16 is
    uint16 in files. `replay --check` compares with the definition in f64.

    The environment variable ATTN_DUMP=FOLDER writes the calls that fail instead: those that raise an
    Error, those whose results have NaN although their arguments are finite, and kernels that do not
    compile. ATTN_DUMP_CALLS=all, or numbers such as 3,7-9, chooses calls, by the numbers of
    ATTN_LOG=calls.

    Args:
        folder: where to write; it is made if it is missing.

    Yields:
        The folder.

    Raises:
        Error: a folder that cannot be made, or no NumPy, which writes the files.

    Inside of the block each call takes some milliseconds more, in all threads of the process. Calls
    that do not reach Python are not written: those of JAX's programs, and those of exported or
    compiled PyTorch programs on the CPU that began without ATTN_DUMP.
    """
    try:
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        importlib.import_module("numpy")
    except (OSError, TypeError) as error:
        refuse("folder", "a folder that can be made", error)
    except ImportError:
        refuse("dump", "NumPy, which writes the files", "none", "pip install numpy")
    watcher = Dump(path, None, has_all=True)
    watch(watcher)
    try:
        yield path
    finally:
        unwatch(watcher)
