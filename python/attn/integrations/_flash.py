"""attn among the flash attentions of torch.nn.attention, beside FA3 and FA4.

Activated, it takes the place of the CUDA kernel of aten::_scaled_dot_product_flash_attention and of its
gradient: whatever PyTorch sends to flash attention, by its own rules, runs on attn. What attn does not
serve goes to the kernel that stood there. Ragged calls (varlen_attn) are another operator (_flash_ragged.py).
"""

from __future__ import annotations

import importlib
from typing import Any, Counter, Dict, Optional

import torch

import attn

from .._library import Error, refuse
from ._flash_ragged import DENSE, NAMES, Ragged
from ._flash_reasons import find_reason
from ._order import lay_out as _lay_out
from ._order import to_dense

_FORWARD = "_scaled_dot_product_flash_attention"
_BACKWARD = "_scaled_dot_product_flash_attention_backward"
# Of the registry; older ones lack some or all.
_FUNCTIONS = (
    "register_flash_attention_impl",
    "list_flash_attention_impls",
    "current_flash_attention_impl",
    "restore_flash_attention_impl",
)


def _is_rows_first(x: Any) -> bool:
    return not x.is_contiguous() and x.transpose(1, 2).is_contiguous()


class Provider:
    """What `register_flash_attention` did: undone by `undo`, or at the end of a with statement."""

    def __init__(self, name: str, registry: Any, fallbacks: Counter[str]) -> None:
        self.name, self._registry, self._fallbacks = name, registry, fallbacks
        registry.register_flash_attention_impl(name, register_fn=self._activate)

    def _activate(self) -> "_Overrides":
        return _Overrides(self._fallbacks)

    def undo(self) -> None:
        if self._registry.current_flash_attention_impl() == self.name:
            self._registry.restore_flash_attention_impl()
        # There is no function that forgets.
        known = self._registry._FLASH_ATTENTION_IMPLS
        if known.get(self.name) == self._activate:
            del known[self.name]

    def __enter__(self) -> "Provider":
        return self

    def __exit__(self, *exception: object) -> None:
        self.undo()


class _Overrides:
    """The kernels while attn is active; PyTorch's registry keeps it and removes it."""

    def __init__(self, fallbacks: Counter[str]) -> None:
        self._fallbacks = fallbacks
        implementations = {_FORWARD: self.forward, _BACKWARD: self.backward}
        ragged = Ragged(self._call_before)
        known = [name for name in NAMES if hasattr(torch.ops.aten, name)]
        implementations.update({name: getattr(ragged, name) for name in known})
        self._before: Dict[str, Any] = {name: _find_kernel(name) for name in implementations}
        self._library: Any = torch.library.Library("aten", "IMPL", "CUDA")
        for name, run in implementations.items():
            self._library.impl(name, run, "CUDA", with_keyset=True)

    def remove(self) -> None:
        if self._library is not None:
            self._library._destroy()
        self._library = None

    def _call_before(self, name: str, reason: str, keys: Any, *args: Any, **how: Any) -> Any:
        kernel = self._before[name]
        if kernel is None:
            message = f"{name.lstrip('_')}: expected a call that attn serves, got {reason}"
            raise Error(
                "invalid argument",
                message,
                "call torch.nn.attention.restore_flash_attention_impl()",
            )
        # A dense call of a kernel that PyTorch's own calls was counted there.
        if reason != DENSE:
            self._fallbacks[reason] += 1
        return kernel.call_boxed(keys, *args, **how)

    def forward(
        self,
        keys: Any,
        query: Any,
        key: Any,
        value: Any,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        return_debug_mask: bool = False,
        *,
        scale: Optional[float] = None,
    ) -> Any:
        if return_debug_mask:
            refuse("return_debug_mask", "False", True, "the weights are never stored")
        reason = find_reason(query, key, value, dropout_p)
        if reason:
            given = query, key, value, dropout_p, is_causal, False
            return self._call_before(_FORWARD, reason, keys, *given, scale=scale)
        is_rows_first = _is_rows_first(query)
        q, k, v = (to_dense(x) for x in (query, key, value))
        if is_rows_first:
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        # Autograd, which stands above, records what is needed.
        with torch.no_grad():
            output, lse = attn.attention(
                q,
                k,
                v,
                scale=scale,
                causal=is_causal,
                layout="bshd" if is_rows_first else "bhsd",
                return_lse=True,
            )
        output = output.transpose(1, 2) if is_rows_first else output
        state = torch.zeros(2, dtype=torch.uint64, device=query.device)
        offset = torch.zeros((), dtype=torch.uint64, device=query.device)
        return (
            _lay_out(output, query),
            lse,
            None,
            None,
            query.shape[2],
            key.shape[2],
            state,
            offset,
            query.new_empty(0),
        )

    def backward(
        self,
        keys: Any,
        grad_out: Any,
        query: Any,
        key: Any,
        value: Any,
        out: Any,
        logsumexp: Any,
        cum_seq_q: Any,
        cum_seq_k: Any,
        max_q: Any,
        max_k: Any,
        dropout_p: float,
        is_causal: bool,
        philox_seed: Any,
        philox_offset: Any,
        *,
        scale: Optional[float] = None,
    ) -> Any:
        reason = find_reason(query, key, value, dropout_p)
        if reason:
            given = grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k
            last = dropout_p, is_causal, philox_seed, philox_offset
            return self._call_before(_BACKWARD, reason, keys, *given, *last, scale=scale)
        tensors = [to_dense(x) for x in (query, key, value, grad_out, out)]
        is_rows_first = _is_rows_first(query)
        if is_rows_first:
            tensors = [x.transpose(1, 2) for x in tensors]
        q, k, v, d_output, output = tensors
        with torch.no_grad():
            found = attn.gradient(
                q,
                k,
                v,
                d_output,
                output=output,
                lse=logsumexp,
                scale=scale,
                causal=is_causal,
                layout="bshd" if is_rows_first else "bhsd",
            )
        gradients = [x.transpose(1, 2) if is_rows_first else x for x in found]
        return tuple(_lay_out(x, like) for x, like in zip(gradients, (query, key, value)))


def _find_kernel(name: str) -> Any:
    """PyTorch's own; None in a build without CUDA, or of a PyTorch that cannot tell."""
    try:
        return torch.library.get_kernel("aten::" + name, "CUDA")
    except (AttributeError, RuntimeError):
        return None


def register(name: str, fallbacks: Counter[str]) -> Provider:
    try:
        registry = importlib.import_module("torch.nn.attention._registry")
    except ImportError:
        registry = None
    if not all(hasattr(registry, function) for function in _FUNCTIONS):
        refuse(
            "register_flash_attention",
            "a PyTorch with torch.nn.attention.register_flash_attention_impl",
            torch.__version__,
            "attn.integrations.torch.patch() serves scaled_dot_product_attention there",
        )
    if name in registry.list_flash_attention_impls():
        refuse("name", "one that no other flash attention has", repr(name))
    return Provider(name, registry, fallbacks)
