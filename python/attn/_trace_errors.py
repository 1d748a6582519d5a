"""Where a function that is traced went wrong, and how it is called."""

from __future__ import annotations

import functools
from typing import Any, Optional

from . import _operations


def explain_call(error: BaseException, call: str) -> str:
    """Of an error in the call itself, not in what the function does: how it is called."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    is_inside = traceback is None or not traceback.tb_frame.f_code.co_filename.startswith(
        _operations.PACKAGE
    )
    if is_inside or not isinstance(error, TypeError):
        return ""
    return f"it is called as {call}"


def find_place(error: Optional[BaseException], function: Any) -> str:
    """Where the user's code raised it, or where the function is defined."""
    place, traceback = "", error.__traceback__ if error is not None else None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith(_operations.PACKAGE):
            place = f"{file}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    if place:
        return place
    while isinstance(function, functools.partial) or hasattr(function, "__wrapped__"):
        function = getattr(function, "__wrapped__", None) or function.func
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
