"""Block masks of flex_attention, attn's and PyTorch's, as functions of b, h, q and kv."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Optional, Tuple

import torch
from torch.nn.attention import flex_attention as _flex

from .._scan import Scan
from ._tables import read_table

# How many elements of a mask are looked at at once.
_CHUNK = 1 << 24
# What was found of a block mask of PyTorch, by what it was found of.
_known: Any = weakref.WeakKeyDictionary()


class BlockMask:
    """The function of a mask and the lengths that it is for: attn derives the tiles by itself."""

    def __init__(
        self,
        mask_mod: Callable,
        seq_lengths: Tuple[int, int],
        batch: Optional[int] = None,
        heads: Optional[int] = None,
    ) -> None:
        self.mask_mod, self.seq_lengths = mask_mod, seq_lengths
        self.batch, self.heads = batch, heads

    def __repr__(self) -> str:
        return (
            f"BlockMask({getattr(self.mask_mod, '__name__', '?')}, seq_lengths={self.seq_lengths})"
        )

    def to_pytorch(self, device: Any) -> Any:
        """The same of PyTorch's class."""
        how = self.batch, self.heads, *self.seq_lengths
        return _flex.create_block_mask(self.mask_mod, *how, device=device)


def is_for_any_length(block_mask: Any) -> bool:
    """One block as large as can be, which stands for no mask."""
    size = getattr(block_mask, "BLOCK_SIZE", (0, 0))
    return min(size) >= _flex._LARGE_SPARSE_BLOCK_SIZE


def find_mask(block_mask: Any, lengths: Tuple[int, int]) -> Optional[Callable]:
    """The function that keeps a key; None if all keys are kept."""
    if block_mask is None:
        return None
    function = block_mask.mask_mod
    function = None if getattr(function, "__name__", "") == "noop_mask" else function
    if isinstance(block_mask, BlockMask) or is_for_any_length(block_mask):
        return function
    # Dynamo knows no elements. Where it traces, lists are read.
    if not torch.compiler.is_dynamo_compiling() and _is_implied(block_mask, function, lengths):
        return function
    return _read_blocks(block_mask, function, lengths)


def _to_dense(counts: Any, indices: Any, columns: int) -> Any:
    """1 for the listed blocks of (B, H, blocks of rows, blocks of keys), 0 for the others."""
    is_listed = torch.arange(indices.shape[-1], device=indices.device) < counts[..., None]
    # A page that is not there is block -1.
    is_listed = is_listed & (indices >= 0) & (indices < columns)
    # One column more for what is not listed.
    places = torch.where(is_listed, indices, columns).long()
    dense = torch.zeros((*indices.shape[:-1], columns + 1), dtype=torch.int8, device=indices.device)
    dense = dense.scatter(-1, places, 1)[..., :columns]
    return dense.reshape((1,) * (4 - dense.dim()) + tuple(dense.shape))


def _make_states(block_mask: Any, lengths: Tuple[int, int]) -> Any:
    """0 for blocks that are dropped, 1 for those in which the function tells, 2 for those kept whole."""
    columns = -(-lengths[1] // block_mask.BLOCK_SIZE[1])
    states = _to_dense(block_mask.kv_num_blocks, block_mask.kv_indices, columns)
    if block_mask.full_kv_num_blocks is None:
        return states
    full = _to_dense(block_mask.full_kv_num_blocks, block_mask.full_kv_indices, columns)
    return torch.maximum(states, full * 2)


def _read_blocks(
    block_mask: Any, function: Optional[Callable], lengths: Tuple[int, int]
) -> Callable:
    rows, columns = block_mask.BLOCK_SIZE
    read = read_table(_make_states(block_mask, lengths))
    has_full = block_mask.full_kv_num_blocks is not None

    def keep(b: Any, h: Any, q: Any, kv: Any) -> Any:
        state = read(b, h, q // rows, kv // columns)
        if function is None:
            return state > 0
        listed = (state > 0) & function(b, h, q, kv)
        return listed | (state > 1) if has_full else listed

    return keep


# ===- Lists that say what the function says ----------------------------------------------------===#


def _is_implied(block_mask: Any, function: Optional[Callable], lengths: Tuple[int, int]) -> bool:
    """Whether the function alone keeps what the lists and it keep: then nothing need be read. What
    create_block_mask makes is so. Looked at once for each block mask and its contents."""
    try:
        contents = _find_contents(block_mask, function)
    except RuntimeError:
        # Tensors without a version, those of inference mode.
        return False
    if contents is None:
        return False
    known = _known.get(block_mask)
    if known is None or known[0] != contents:
        known = contents, _compare(block_mask, function, lengths)
        _known[block_mask] = known
    return known[1]


def _find_contents(block_mask: Any, function: Optional[Callable]) -> Any:
    """What the answer depends on; None where that cannot be known."""
    tensors = [getattr(block_mask, name) for name in ("kv_num_blocks", "kv_indices")]
    if block_mask.full_kv_num_blocks is not None:
        tensors += [block_mask.full_kv_num_blocks, block_mask.full_kv_indices]
    key: Any = ()
    if function is not None:
        scan = Scan(function)
        if scan.is_volatile or not all(isinstance(x, torch.Tensor) for x in scan.arrays):
            return None
        tensors += scan.arrays
        key = scan.key
    return key, [(id(x), x._version) for x in tensors]


def _compare(block_mask: Any, function: Optional[Callable], lengths: Tuple[int, int]) -> bool:
    states = _make_states(block_mask, lengths)
    if function is None:
        return bool((states > 0).all())
    (batch, heads), (m, n) = states.shape[:2], lengths
    rows, columns = block_mask.BLOCK_SIZE
    of_keys = torch.arange(n, device=states.device) // columns
    step = max(1, _CHUNK // max(1, batch * heads * n))
    for begin in range(0, m, step):
        count = min(step, m - begin)

        def shifted(b: Any, h: Any, q: Any, kv: Any, begin: int = begin) -> Any:
            return function(b, h, q + begin, kv)

        wanted = _flex.create_mask(shifted, batch, heads, count, n, device=states.device)
        of_rows = torch.arange(begin, begin + count, device=states.device) // rows
        state = states[:, :, of_rows][..., of_keys]
        if bool((wanted & (state == 0)).any() | (~wanted & (state == 2)).any()):
            return False
    return True
