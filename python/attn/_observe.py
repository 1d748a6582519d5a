"""Calls of kernels, for who asks to see them: $ATTN_LOG, $ATTN_DUMP and `attn.dump`.

The calls that take 10 us go past all objects of Python (python/direct), and nothing is added to them.
Who begins to watch closes that way. Then all calls of this process reach `Tensors.run`, which is
replaced as long as somebody watches. Programs of XLA and PyTorch's operators in C++ do not reach it.
"""

from __future__ import annotations

import functools
import itertools
import re
import threading
from typing import Any, List, NamedTuple, Optional, Tuple

from . import _direct, _memory
from ._kernel_name import name_kernel
from ._library import Error, Kernel
from ._places import name_device
from ._tensors import Tensors


class Named(NamedTuple):
    """A tensor by its name in the IR."""

    name: str
    # As `Tensors` has it.
    tensor: Tuple

    @property
    def type(self) -> str:
        return _memory.get_type(self.tensor)

    @property
    def shape(self) -> Tuple[int, ...]:
        return tuple(self.tensor[5])

    @property
    def strides(self) -> Tuple[int, ...]:
        return tuple(self.tensor[6])


_RETURN = re.compile(r"^  return (.*) : ", re.M)


def _find_results(source: str) -> List[str]:
    """The names of results, as attn-run has them."""
    found = _RETURN.search(source)
    return [name.strip().lstrip("%") for name in found.group(1).split(",")] if found else []


class Call:
    """One call of a kernel. Its memory may be read as long as the call lasts."""

    def __init__(self, number: int, tensors: Tensors) -> None:
        self.number, self._tensors = number, tensors
        self.kernel: Kernel = tensors.kernel
        count = self.kernel.count_arguments()
        names = [name for name, _, _ in self.kernel.describe()[:count]]
        names += _find_results(self.kernel.source)
        named = [Named(name, tensor) for name, tensor in zip(names, tensors.tensors)]
        self.arguments, self.results = named[:count], named[count:]

    @property
    def name(self) -> str:
        return name_kernel(self.kernel.source)

    @property
    def device(self) -> str:
        return name_device(self.kernel.device)

    @functools.cached_property
    def way(self) -> str:
        """The kernel that it takes where there are several; empty for the one of most calls."""
        try:
            return self._tensors.choose_way()
        except Error:
            # The call will say what is wrong.
            return ""


class Watcher:
    """Is told of each call before and after it, and of sources that do not compile."""

    def before(self, call: Call) -> None:
        pass

    def after(self, call: Call, error: Optional[Error]) -> None:
        pass

    def refused(self, source: str, options: Tuple, error: Error) -> None:
        pass


_watchers: List[Watcher] = []
_plain: List[Any] = []
_numbers = itertools.count(1)
_lock = threading.Lock()


def watch(watcher: Watcher) -> None:
    with _lock:
        if not _watchers:
            _plain[:] = [Tensors.run]
            Tensors.run = _run  # type: ignore[method-assign,assignment]
            _direct.close()
        _watchers.append(watcher)


def unwatch(watcher: Watcher) -> None:
    with _lock:
        _watchers.remove(watcher)
        if not _watchers:
            Tensors.run = _plain[0]  # type: ignore[method-assign]
            _direct.open_again()


def _run(tensors: Tensors, workspace: Any = None, is_planned: bool = False) -> None:
    call = Call(next(_numbers), tensors)
    told = [*_watchers]
    for watcher in told:
        watcher.before(call)
    try:
        _plain[0](tensors, workspace, is_planned)
    except Error as error:
        for watcher in told:
            watcher.after(call, error)
        raise
    for watcher in told:
        watcher.after(call, None)


def tell_refused(source: str, options: Tuple, error: Error) -> None:
    """Of a source that does not compile."""
    for watcher in [*_watchers]:
        watcher.refused(source, options, error)
