"""PyTorch's context parallel in the job of context_parallel.py: its times, and what it refuses."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch
import torch.distributed as dist
import torch.nn.functional as F

import attn
import measure
from attn.distributed import context_parallel_attention, plan

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def synchronize() -> None:
    if DEVICE != "cpu":
        torch.cuda.synchronize()


def start(rank: int, ranks: int) -> None:
    if DEVICE == "cpu":
        torch.set_num_threads(1)
        dist.init_process_group("gloo", rank=rank, world_size=ranks)
        return
    torch.cuda.set_device(rank)
    # Transfers begin before blocks of a kernel that was queued earlier.
    options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
    dist.init_process_group("nccl", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank), pg_options=options)


# ===- Times ------------------------------------------------------------------------------------===#


def _make_sdpa(is_causal: bool, backend: Any, rotate: str, whole: List[Any], ranks: int) -> Callable[[], Any]:
    """SDPA of this rank's parts under PyTorch's context parallel. Its manager wants a buffer to shard: a small one."""
    from torch.distributed.tensor.experimental import context_parallel
    from torch.distributed.tensor.experimental._attention import set_rotate_method
    from torch.nn.attention import sdpa_kernel

    mesh = dist.init_device_mesh(DEVICE, (ranks,))
    q, k, v = (x[:, :, : x.shape[2] // ranks].contiguous() for x in whole)

    places = torch.zeros(2 * ranks, device=DEVICE)

    def run() -> Any:
        set_rotate_method(rotate)
        with sdpa_kernel(backend), context_parallel(mesh, buffers=[places], buffer_seq_dims=[0]):
            return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=q.shape[1] != k.shape[1])

    return run


def _make_flex(name: str, how: Dict[str, Any], whole: List[Any], rank: int, ranks: int) -> Callable[[], Any]:
    """FlexAttention of this rank's rows to the keys of all, which are gathered first, as PyTorch's plan for it does;
    contiguous, with a block mask of these rows."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    length = whole[0].shape[2]
    rows = length // ranks
    first, ids, slopes = rank * rows, how.get("ids"), how.get("slopes")

    def window(b: Any, h: Any, i: Any, j: Any) -> Any:
        return (j <= i + first) & (j >= i + first - 4096)

    def documents(b: Any, h: Any, i: Any, j: Any) -> Any:
        return (j <= i + first) & (ids[i + first] == ids[j])

    def causal(b: Any, h: Any, i: Any, j: Any) -> Any:
        return j <= i + first

    def alibi(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return s - slopes[h] * (i + first - j).abs()

    mask = {"window": window, "documents": documents}.get(name, causal)
    score = alibi if name == "alibi" else None
    block = create_block_mask(mask, None, None, rows, length, device=DEVICE)
    q, k, v = (x[:, :, first : first + rows].contiguous() for x in whole)
    flex = torch.compile(flex_attention) if DEVICE != "cpu" else flex_attention

    def gather(x: Any) -> Any:
        everyone = x.new_empty((ranks * x.shape[0], *x.shape[1:]))
        dist.all_gather_into_tensor(everyone, x)
        return torch.cat(everyone.chunk(ranks), 2)

    return lambda: flex(q, gather(k), gather(v), score_mod=score, block_mask=block, enable_gqa=q.shape[1] != k.shape[1])


def add_calls(
    calls: Dict[str, Callable[[], Any]], is_asked: bool, name: str, how: Dict[str, Any], whole: List[Any], rank: int, ranks: int
) -> Dict[str, str]:
    """Adds those of PyTorch that run here. Returns the words of those that fail, by name."""
    failed: Dict[str, str] = {}
    if not is_asked:
        return failed
    made: Dict[str, Callable[[], Callable[[], Any]]] = {}
    if name in ("causal", "full"):
        from torch.nn.attention import SDPBackend

        for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
            for rotate in ("allgather", "alltoall"):
                how_ = name == "causal", backend, rotate, whole, ranks
                made[f"pytorch {backend.name.split('_')[0].lower()} {rotate}"] = lambda how_=how_: _make_sdpa(*how_)
    else:
        made["pytorch flex"] = lambda: _make_flex(name, how, whole, rank, ranks)
    for key, make in made.items():
        words = ""
        try:
            with torch.no_grad():
                call = make()
                call()
                synchronize()
        except Exception as error:  # noqa: BLE001
            words = f"{type(error).__name__}: {error}"[:300]
        if _is_fine_everywhere(not words):
            calls[key] = _without_gradients(call)
        else:
            failed[key] = words
    return failed


def _without_gradients(call: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        with torch.no_grad():
            return call()

    return run


def _is_fine_everywhere(is_fine: bool) -> bool:
    each = torch.tensor([int(is_fine)], device=DEVICE)
    dist.all_reduce(each, op=dist.ReduceOp.MIN)
    return bool(each)


# ===- Refusals ---------------------------------------------------------------------------------===#


def _list_requests(length: int) -> Iterator[Tuple[str, int, Tuple[int, int], Dict[str, Any], Dict[str, Any]]]:
    """(name, length, heads, arguments of SDPA, those of attn)."""
    keep = torch.ones(length, length, dtype=torch.bool, device=DEVICE).tril()
    window = keep & ~torch.ones_like(keep).tril(-101)
    bias = torch.randn(1, 1, length, length, device=DEVICE, dtype=torch.bfloat16)
    yield "causal", length, (4, 4), dict(is_causal=True), dict(causal=True)
    yield "heads 8:2, causal", length, (8, 2), dict(is_causal=True, enable_gqa=True), dict(causal=True)
    yield "an odd length, causal", length - 3, (4, 4), dict(is_causal=True), dict(causal=True)
    yield "window of 100 as attn_mask", length, (4, 4), dict(attn_mask=window), dict(window=(100, 0))
    yield "a bias of all pairs", length, (4, 4), dict(attn_mask=bias), dict(score=lambda s, b, h, i, j: s + bias[0, 0, i, j])
    yield "dropout 0.1", length, (4, 4), dict(dropout_p=0.1), dict(dropout_p=0.1, dropout_seed=3)


def find_refusals(rank: int, ranks: int) -> Iterator[Dict[str, Any]]:
    """For each request what PyTorch's context parallel says or how far its output is off, and how far attn's is."""
    from torch.distributed.tensor.experimental import context_parallel
    from torch.distributed.tensor.experimental._attention import context_parallel_unshard

    mesh = dist.init_device_mesh(DEVICE, (ranks,))
    for name, length, (h, hkv), theirs, ours in _list_requests(1024):
        began, generator = time.time(), torch.Generator(DEVICE).manual_seed(1)
        make = lambda count: torch.randn(  # noqa: E731
            1, count, length, 64, device=DEVICE, dtype=torch.bfloat16, generator=generator)
        q, k, v = make(h), make(hkv), make(hkv)
        exact = attn.attention(q, k, v, **ours)
        said = ""
        try:
            parts = [x.clone() for x in (q, k, v)]
            with torch.no_grad(), context_parallel(mesh, buffers=parts, buffer_seq_dims=[2, 2, 2]):
                found = F.scaled_dot_product_attention(*parts, **theirs)
            (found,) = context_parallel_unshard(mesh, [found], [2])
            if "dropout_p" not in theirs:
                off = measure.max_relative(found, exact)
                said = f"served, off by {off:.1e}"
            else:
                said = "served"
        except Exception as error:  # noqa: BLE001
            said = f"{type(error).__name__}: {error}".strip()[:300]
        _is_fine_everywhere(True)
        p = plan(length, **{x: ours[x] for x in ("causal", "window") if x in ours})
        found = context_parallel_attention(*[p.shard(x, 2).contiguous() for x in (q, k, v)], plan=p, **ours)
        error = measure.max_relative(found, p.shard(exact, 2))
        yield {"asked": name, "pytorch": said, "attn_off_by": error, "seconds": round(time.time() - began, 1)}
