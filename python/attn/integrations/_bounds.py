"""What rows of sequences that lie one after the other keep: for each row a first and a last key.

Both numbers do not decrease from row to row, so that a mask that compares keys with them has closed
bounds for each tile: blocks of rows read two numbers, and blocks of keys search. Everything is computed
on the device, by operators that torch.compile and CUDA graphs take. Broken offsets give other numbers,
never an index outside.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Tuple

import torch

from ._arguments import Window


class Sequences(NamedTuple):
    """Sequence s has the rows from cu_q[s] to cu_q[s + 1] and the keys from cu_k[s] to cu_k[s + 1], or as
    many of them as `used_q` and `used_k` say."""

    cu_q: Any
    cu_k: Any
    used_q: Any = None
    used_k: Any = None


class Bounds(NamedTuple):
    """Tensors of int32, (rows,)."""

    first: Any
    # None: the row's own place, where rows and keys have the same offsets.
    last: Any
    # The key at which a row stands, counted from the ends of its sequence; None: the row's own place.
    position: Any
    # 1 and more for sequences; 0 and B + 1 for rows before the first one and after the last one.
    sequence: Any


def make_bounds(
    num_rows: int,
    num_keys: int,
    sequences: Sequences,
    window: Window,
    wants_position: bool = False,
) -> Bounds:
    """The window counts from the last row and the last key of each sequence."""
    cu_q, cu_k, used_q, used_k = sequences
    left, right = window
    rows = torch.arange(num_rows, dtype=torch.int32, device=cu_q.device)
    sequence = torch.searchsorted(cu_q.contiguous(), rows, right=True, out_int32=True)
    # Rows before the first sequence and after the last one keep nothing, in the order of the others.
    before, after = cu_k[:1], cu_k.new_full((1,), num_keys)

    def read(of_sequences: Any, at_first: Any = before) -> Any:
        return torch.cat([at_first, of_sequences, after]).index_select(0, sequence)

    first = read(cu_k[:-1])
    is_self = cu_q is cu_k and used_q is None and used_k is None
    position = rows
    if is_self and right == 0:
        if left is not None:
            first = torch.maximum(first, rows - left)
        return Bounds(first, None, None, sequence)
    ends = cu_k[1:] if used_k is None else cu_k[:-1] + used_k
    ends_q = cu_q[1:] if used_q is None else cu_q[:-1] + used_q
    # Sequences without keys end where they begin.
    end = torch.maximum(read(ends), first)
    last = end - 1
    if not is_self and (wants_position or left is not None or right is not None):
        position = rows + read(ends - ends_q, cu_k.new_full((1,), -num_rows))
    if right is not None:
        last = torch.minimum(last, torch.maximum(position + right, first - 1))
    if left is not None:
        first = torch.maximum(first, position - left)
    if used_q is not None:
        first = torch.where(rows < read(ends_q), first, end)
    return Bounds(first, last, position if wants_position and not is_self else None, sequence)


def find_rows(first: Any, last: Any, num_keys: int) -> Tuple[Any, Any]:
    """The same for each key: the first and the last row that keep it."""
    keys = torch.arange(num_keys, dtype=torch.int32, device=first.device)
    last_row = torch.searchsorted(first, keys, right=True, out_int32=True) - 1
    return keys if last is None else torch.searchsorted(last, keys, out_int32=True), last_row
