"""PyTorch's attentions as calls on given tensors, and the check that all of them have to pass."""

from __future__ import annotations

import importlib
import math
from typing import Any, Callable, Dict, List, Sequence, Tuple

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import measure
from variants import Tensor, Variant, reference_rows

Call = Callable[[], Any]
_FLASH_MODULES = {"fa3": "flash_attn_interface", "fa4": "flash_attn.cute"}
_FLEX_BACKENDS = {"flex": "TRITON", "flex-flash": "FLASH"}
NAMES = ("cudnn", "fa3", "fa2", "flex")
# That somebody may ask for, too: FlashAttention-4, and FlexAttention by kernels of it.
MORE_NAMES = ("fa4", "flex-flash")


def make_sdpa(backend: SDPBackend, causal: bool, q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Call:
    how: Dict[str, Any] = dict(is_causal=causal, enable_gqa=q.shape[1] != k.shape[1], dropout_p=dropout)

    def call() -> Any:
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, **how)

    return call


def list_sdpa(backends: Dict[str, SDPBackend], causal: bool, *tensors: Tensor, dropout: float = 0.0) -> Dict[str, Call]:
    """Those of PyTorch's that can do it; what fails at its first call is told and left out."""
    calls: Dict[str, Call] = {}
    for name, backend in backends.items():
        call = make_sdpa(backend, causal, *tensors, dropout=dropout)
        try:
            call()
            calls[name] = call
        except RuntimeError as error:
            print(f"  {name} left out: {str(error).splitlines()[0]}")
    return calls


def _make_flash(name: str, causal: bool, q: Tensor, k: Tensor, v: Tensor) -> Call:
    """FlashAttention-3's own module, or FlashAttention-4's, where it is installed. Both prefer (B, S, H, D) in memory."""
    flash_attn_func = importlib.import_module(_FLASH_MODULES[name]).flash_attn_func
    swap = lambda x: x.transpose(1, 2)
    tensors = [swap(swap(x).contiguous()).detach().requires_grad_(x.requires_grad) for x in (q, k, v)]

    def call() -> Any:
        output = flash_attn_func(*map(swap, tensors), causal=causal)
        return swap(output[0] if isinstance(output, tuple) else output)

    call.tensors = tensors  # type: ignore[attr-defined]  # What its backward differentiates.
    return call


def _make_flex(variant: Variant, q: Tensor, k: Tensor, v: Tensor, backend: str) -> Call:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    # Every problem gets code of its own, as it would in a program that has only one.
    torch._dynamo.reset()
    flex = torch.compile(flex_attention, dynamic=False)
    blocks = None
    if variant.mask:
        # Calling a compiled create_block_mask makes the same mask in less memory.
        make_mask = torch.compile(create_block_mask, dynamic=False)
        batch = q.shape[0] if "ids_q" in variant.captures else None
        blocks = make_mask(variant.mask, batch, None, q.shape[2], k.shape[2], device=q.device.type)
    how: Dict[str, Any] = dict(enable_gqa=q.shape[1] != k.shape[1], kernel_options={"BACKEND": backend})
    return lambda: flex(q, k, v, score_mod=variant.score, block_mask=blocks, **how)


def make_peers(names: Sequence[str], variant: Variant, q: Tensor, k: Tensor, v: Tensor) -> Dict[str, Call]:
    """Those of `names` that can do this attention. What fails at its first call is told and left out."""
    simple = variant.name in ("full", "causal")
    peers: Dict[str, Call] = {}
    for name in names:
        try:
            if name in _FLEX_BACKENDS:
                call = _make_flex(variant, q, k, v, _FLEX_BACKENDS[name])
            elif simple and name in _FLASH_MODULES:
                call = _make_flash(name, variant.name == "causal", q, k, v)
            elif simple:
                backend = SDPBackend.CUDNN_ATTENTION if name == "cudnn" else SDPBackend.FLASH_ATTENTION
                call = make_sdpa(backend, variant.name == "causal", q, k, v)
            else:
                continue
            call()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            peers[name] = call
        except Exception as error:  # PyTorch raises what its back ends raise.
            print(f"  {name} left out: {str(error).splitlines()[0]}")
    return peers


class Checker:
    """The error of an output on 256 random rows of each of four heads; infinite if any of it is not finite."""

    def __init__(self, variant: Variant, q: Tensor, k: Tensor, v: Tensor) -> None:
        b, h, m, _ = q.shape
        self.samples: List[Tuple[int, int, Tensor, Tensor]] = []
        for i, j in sorted({(0, 0), (b - 1, h - 1), (0, h // 2), (b // 2, 1 % h)}):
            rows = torch.randperm(m, device=q.device)[:256].sort().values
            self.samples.append((i, j, rows, reference_rows(variant, q, k, v, i, j, rows)))

    def __call__(self, out: Tensor) -> float:
        if not bool(out.isfinite().all()):
            return math.inf
        return max(measure.max_relative(out[b, h, rows], r) for b, h, rows, r in self.samples)
