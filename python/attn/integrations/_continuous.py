"""attn for Transformers' continuous batching, which takes flash attentions alone: those whose names say flash, and
which one function of Transformers imports. That function is put aside while a name is registered."""

from __future__ import annotations

import functools
import importlib
from typing import Any, Callable, Dict

import torch
from transformers import AttentionInterface, AttentionMaskInterface

from .._library import refuse
from . import flash_attn

_PAGED = "paged|"
_LOADER = "_lazy_imports"
# Names, and the function of Transformers that stood there before the first.
_names: Dict[str, Callable] = {}


def _with_sinks(function: Callable) -> Callable:
    """Versions before 5.20 call sinks s_aux without asking for the parameters."""

    @functools.wraps(function)
    def call(*arguments: Any, s_aux: Any = None, **options: Any) -> Any:
        if s_aux is not None:
            options["learnable_sink"] = s_aux
        for name, x in options.items():
            # int32 is asked for, and offsets may be wider.
            is_offsets = name.startswith("cu_seqlens") or name == "cache_seqlens"
            if is_offsets and isinstance(x, torch.Tensor):
                options[name] = x.to(torch.int32)
        return function(*arguments, **options)

    return call


_functions = [
    _with_sinks(getattr(flash_attn, name))
    for name in ("flash_attn_func", "flash_attn_varlen_func", "flash_attn_with_kvcache")
]


def _find_module() -> Any:
    return importlib.import_module("transformers.modeling_flash_attention_utils")


def _load(before: Callable, implementation: Any, *given: Any, **how: Any) -> Any:
    """Of Transformers: the functions of an implementation, and those that pad."""
    if str(implementation).replace(_PAGED, "", 1) not in _names:
        return before(implementation, *given, **how)
    module = _find_module()
    return (*_functions, module._pad_input, module._unpad_input)


def register(name: str) -> str:
    """Makes `name` a flash attention of Transformers.

    Raises:
        Error: a name that Transformers does not take for a flash attention, or a version of it that loads
            them in another way.
    """
    if "flash" not in name or any(part in name for part in ("/", "|", "flash_attention_")):
        refuse("name", "one with 'flash', and without '/', '|' and 'flash_attention_'", repr(name))
    module, known = _find_module(), AttentionInterface._global_mapping
    parts = _LOADER, "_pad_input", "_unpad_input"
    if not all(hasattr(module, part) for part in parts) or "flash_attention_2" not in known:
        import transformers

        hint = "use a version from 5.17 to 5.24"
        refuse("register_continuous", "a Transformers that it knows", transformers.__version__, hint)
    if not _names:
        before = getattr(module, _LOADER)
        _names[name] = before
        setattr(module, _LOADER, functools.partial(_load, before))
    _names[name] = next(iter(_names.values()))
    # Versions before 5.20 have a name of their own for batches with pages.
    for prefix in ("", _PAGED):
        for interface in (AttentionInterface, AttentionMaskInterface):
            like = interface._global_mapping.get(f"{prefix}flash_attention_2")
            if like is not None:
                interface.register(prefix + name, like)
    return name


def unregister(name: str) -> None:
    """Undoes `register`."""
    if name not in _names:
        return
    before = _names.pop(name)
    module = _find_module()
    if module._loaded_implementation in (name, _PAGED + name):
        module._loaded_implementation = None
    if not _names:
        setattr(module, _LOADER, before)
    for prefix in ("", _PAGED):
        for interface in (AttentionInterface, AttentionMaskInterface):
            interface._global_mapping.pop(prefix + name, None)
