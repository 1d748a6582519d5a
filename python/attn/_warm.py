"""Compiling before the first call."""

from __future__ import annotations

import os
from typing import Any, Callable, List, Mapping, Sequence, Union

from . import _log
from ._compile import Attention, compile
from ._library import refuse


def _compile_spec(spec: Mapping[str, Any]) -> Attention:
    if not isinstance(spec, Mapping):
        refuse("warm_up", "a dict of arguments of attn.compile", type(spec).__name__)
    options = dict(spec)
    wanted, shapes = options.pop("gradient", False), options.pop("shapes", None)
    kernel = compile(**options)
    if shapes is None:
        kernel.prepare()
    for of_call in shapes or ():
        kernel.prepare(*of_call)
    if wanted:
        names = ("query", "key", "value") + (("sink",) if options.get("sink") else ())
        plan = kernel._plan.recorded()
        for of_call in [None] if shapes is None else shapes:
            plan.prepare(of_call, kernel._rows_first, kernel._arrays)
        plan.gradient(names, False, plan.problem.return_low)
    return kernel


def warm_up(
    what: Union[Sequence[Mapping[str, Any]], Callable[..., Any]], *inputs: Any, **options: Any
) -> int:
    """Compiles what later calls need, so that none of them waits.

    Args:
        what: a list of dicts, or a function or model of PyTorch. Each dict has the arguments of
            `compile`; gradient=True also compiles the gradients of q, k, v and the sink. A GPU has
            several kernels for one attention, of which a call takes one by its shapes. All of them
            are compiled, or those that calls with `shapes` take: a list of shapes of (q, k, v).
            They are compiled in parallel.
        inputs, options: arguments of the function. It is called with tensors of the same shapes
            that hold no data: nothing is computed, and its parameters are not touched. If it wants
            gradients, their kernels are compiled too.

    Returns:
        The number of kernels that were not there before.

    Raises:
        Error: as `compile`.
    """
    before = _log.count_compiled()
    if callable(what):
        from . import _operator

        _operator.warm_up(what, inputs, options)
    else:
        if inputs or options:
            refuse("warm_up", "inputs for a function", "some for a list of kernels")
        import concurrent.futures

        specs: List[Any] = list(what)
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            list(pool.map(_compile_spec, specs))
    return _log.count_compiled() - before
