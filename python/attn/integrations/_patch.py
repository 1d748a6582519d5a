"""The place of torch.nn.functional.scaled_dot_product_attention, and who stands in it."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Iterator, Optional

import torch

pytorch_sdpa = torch.nn.functional.scaled_dot_product_attention

_lock = threading.Lock()
# How many calls hide who stands there, and who comes back after the last of them.
_hiding = 0
_hidden: Optional[Callable] = None


def find_public() -> Callable:
    """The function that callers of PyTorch get."""
    return torch.nn.functional.scaled_dot_product_attention


def _replace(function: Callable) -> Callable:
    """Puts the function there, and returns the one before."""
    global _hidden
    with _lock:
        before, _hidden = (_hidden, function) if _hiding else (find_public(), None)
        if not _hiding:
            torch.nn.functional.scaled_dot_product_attention = function
    return before


@contextlib.contextmanager
def hide() -> Iterator[None]:
    """PyTorch's own function stands there. Classes of tensors compare what they are asked for with
    it, some with the one that they find there, some with the one that they found when they were made."""
    global _hiding, _hidden
    with _lock:
        _hiding += 1
        if _hiding == 1:
            _hidden = find_public()
            torch.nn.functional.scaled_dot_product_attention = pytorch_sdpa
    try:
        yield
    finally:
        with _lock:
            _hiding -= 1
            if _hiding == 0:
                torch.nn.functional.scaled_dot_product_attention, _hidden = _hidden, None


class Patch:
    """The effect of `patch`: `undo`, or the end of a with statement, takes it back."""

    def __init__(self, function: Callable) -> None:
        self.before = _replace(function)

    def undo(self) -> None:
        _replace(self.before)

    def __enter__(self) -> "Patch":
        return self

    def __exit__(self, *exception: object) -> None:
        self.undo()


def register_for_scripts(function: Any) -> None:
    """Makes TorchScript, which would compile the Python of the function, take PyTorch's operator."""
    torch.jit._builtins._register_builtin(function, "aten::scaled_dot_product_attention")
