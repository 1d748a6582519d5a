"""What torch.compile makes of calls of attn: an operator. What Dynamo cannot trace, it runs as it is
and breaks its graph around it.

PyTorch need not be imported for that. What torch.compiler.disable would set is set here without its
wrapper, which costs more than a call of a small kernel takes: an attribute that keeps Dynamo from
inlining a function, and, once PyTorch's C++ is there, a mark on its code that keeps Dynamo out of
it and of all that it calls.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, TypeVar

from . import _imports

Function = TypeVar("Function", bound=Callable[..., Any])

_codes: list = []
# What tells whether torch.compile traces, once it may; Dynamo knows PyTorch's own function as true.
is_compiling: Any = bool


def assume_constant(function: Any) -> Any:
    """torch.compiler.assume_constant_result, which imports all of Dynamo to set the same."""
    function._dynamo_marked_constant = True
    return function


def disable(function: Function) -> Function:
    marked: Any = function
    marked._torchdynamo_disable = True
    marked._torchdynamo_disable_msg = (
        "attn traces Python functions itself: kernels of attn.compile and calls of attn.gradient stay "
        "outside of fullgraph=True"
    )
    _codes.append(function.__code__)
    return function


def _mark() -> None:
    global is_compiling
    is_compiling = sys.modules["torch"].compiler.is_dynamo_compiling
    try:
        from torch._C._dynamo import eval_frame

        skip = eval_frame._FrameExecStrategy(
            eval_frame._FrameAction.SKIP, eval_frame._FrameAction.SKIP
        )
        for code in _codes:
            eval_frame.set_code_exec_strategy(code, skip)
    except (ImportError, AttributeError):
        # A PyTorch that has it not: the attribute alone serves all but captured tensors.
        pass


def install() -> None:
    _imports.before("torch._dynamo", _mark)
