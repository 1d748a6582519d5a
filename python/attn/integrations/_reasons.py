"""Why a call of PyTorch's attention functions is PyTorch's; empty for one that attn serves. Calls that
are wrong are PyTorch's too: its errors are the ones that callers know."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.autograd import forward_ad
from torch.nn.attention.bias import CausalBias

from .. import _dynamo
from .._operator import PLAIN

_TYPES = (torch.float16, torch.bfloat16, torch.float32)
# Of sequences.
NO_SEQUENCE = "keys that are no sequence of rows"
SAME_BITS = "num_splits=1, which promises the same bits in every batch"
# What torch.export traces with.
_TRACED = (FakeTensor, FunctionalTensor)


def are_plain(*tensors: Any) -> bool:
    return all(type(x) in PLAIN for x in tensors)


@_dynamo.assume_constant
def _count_wide_columns(device: torch.device) -> int:
    return 192 if torch.cuda.get_device_capability(device) >= (9, 0) else 128


def _find_wide_reason(q: Any, k: Any, v: Any) -> str:
    """Shared memory holds three parts of each element of float32 in gradients of so many columns."""
    if not q.is_cuda or q.dtype != torch.float32:
        return ""
    is_recorded = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
    columns = _count_wide_columns(q.device)
    if is_recorded and max(q.shape[-1], v.shape[-1]) > columns:
        return f"gradients of torch.float32 of more than {columns} columns on this GPU"
    return ""


def find_tensor_reason(q: Any, k: Any, v: Any) -> str:
    """Of what every attention function takes."""
    known = (*PLAIN, *_TRACED) if torch.compiler.is_exporting() else PLAIN
    if not all(type(x) in known for x in (q, k, v)):
        return "tensors of another class"
    if torch.jit.is_tracing():
        return "torch.jit.trace"
    if forward_ad._current_level >= 0:
        return "forward-mode derivatives"
    if q.dtype not in _TYPES or not q.dtype == k.dtype == v.dtype:
        return f"elements of {q.dtype}"
    if not q.device == k.device == v.device or q.device.type not in ("cpu", "cuda"):
        return f"tensors on {q.device.type}"
    return _find_wide_reason(q, k, v)


def find_sdpa_reason(q: Any, k: Any, v: Any, mask: Any, dropout: float, is_causal: bool) -> str:
    if dropout and not 0 < dropout <= 1:
        return "a dropout_p that is no probability"
    reason = find_tensor_reason(q, k, v)
    if reason:
        return reason
    if _wants_math():
        return "sdpa_kernel(SDPBackend.MATH)"
    if min(q.dim(), k.dim(), v.dim()) < 2 or 0 in (q.shape[-1], v.shape[-1]):
        return "no columns"
    if 0 in (*q.shape[:-2], *k.shape[:-2]):
        return "an empty batch"
    return _find_mask_reason(mask, is_causal)


@_dynamo.assume_constant
def _wants_math() -> bool:
    """The one of PyTorch's kernels that has tangents and second derivatives is the only one allowed."""
    # Dynamo traces none of these, and enters sdpa_kernel while it traces.
    now = torch.backends.cuda
    return not (now.flash_sdp_enabled() or now.mem_efficient_sdp_enabled() or now.cudnn_sdp_enabled())


def _find_mask_reason(mask: Any, is_causal: bool) -> str:
    if mask is None:
        return ""
    if is_causal:
        return "a mask beside is_causal"
    if isinstance(mask, CausalBias):
        return ""
    if not are_plain(mask):
        return "a mask of another class"
    if _is_mapped(mask):
        return "a mask that torch.vmap maps"
    is_summed = mask.requires_grad and torch.is_grad_enabled() and not mask.is_cpu
    if is_summed and torch.are_deterministic_algorithms_enabled():
        return "a mask with a gradient on a GPU, by deterministic algorithms"
    return "" if mask.dtype in (torch.bool, *_TYPES) else f"a mask of {mask.dtype}"


def _is_mapped(x: Any) -> bool:
    if torch.compiler.is_dynamo_compiling():
        return False
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(x):
        if functorch.is_batchedtensor(x):
            return True
        x = functorch.get_unwrapped(x)
    return False
