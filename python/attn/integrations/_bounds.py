"""What rows of sequences that lie one after the other keep: for each row a first and a last key.

Both numbers do not decrease from row to row, so that a mask that compares keys with them has closed
bounds for each tile: blocks of rows read two numbers, and blocks of keys search. Everything is computed
on the device, by operators that torch.compile and CUDA graphs take. Broken offsets give other numbers,
never an index outside.
"""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional

import torch

from ._arguments import Window


class Bounds(NamedTuple):
    """Tensors of int32, (rows,)."""

    first: Any
    last: Any
    # The key at which a row stands, counted from the ends of its sequence; None where nobody asks.
    position: Any
    # 1 and more for sequences; 0 and B + 1 for rows before the first one and after the last one.
    sequence: Any


def make_bounds(
    num_rows: int,
    num_keys: int,
    cu_q: Any,
    cu_k: Any,
    window: Window,
    used_q: Optional[Any] = None,
    used_k: Optional[Any] = None,
    wants_position: bool = False,
    is_open: bool = False,
) -> Bounds:
    """Sequence s has the rows from cu_q[s] to cu_q[s + 1] and the keys from cu_k[s] to cu_k[s + 1], or as
    many of them as `used_q` and `used_k` say. The window counts from the last row and the last key.
    With `is_open`, cu_k is where the keys of each sequence begin, and used_k says how many they are.
    """
    left, right = window
    rows = torch.arange(num_rows, dtype=torch.int32, device=cu_q.device)
    sequence = torch.searchsorted(cu_q.contiguous(), rows, right=True, out_int32=True)
    begins = cu_k if is_open else cu_k[:-1]
    ends = cu_k[1:] if used_k is None else begins + used_k
    ends_q = cu_q[1:] if used_q is None else cu_q[:-1] + used_q
    is_placed = wants_position or left is not None or right is not None
    is_self = cu_q is cu_k and used_q is None and used_k is None
    of_sequences = [begins, ends]
    if is_placed and not is_self:
        of_sequences.append(ends - ends_q)
    if used_q is not None:
        of_sequences.append(ends_q)
    of_rows = _read(of_sequences, sequence, -num_rows, num_keys)
    first = of_rows[0]
    # Sequences without keys end where they begin.
    end = torch.maximum(of_rows[1], first)
    last = end - 1
    position = rows + of_rows[2] if is_placed and not is_self else rows
    if right is not None:
        last = torch.minimum(last, torch.maximum(position + right, first - 1))
    if left is not None:
        first = torch.maximum(first, position - left)
    if used_q is not None:
        first = torch.where(rows < of_rows[-1], first, end)
    return Bounds(first, last, position if wants_position else None, sequence)


def _read(of_sequences: List[Any], sequence: Any, before: int, after: int) -> Any:
    """Numbers of the sequence of each row; `before` and `after` where a row is in none. These keep the
    order: keys from -1 down, and from the last one on."""
    table = torch.stack(of_sequences)
    edge = table.shape[0], 1
    table = torch.cat([table.new_full(edge, before), table, table.new_full(edge, after)], 1)
    return table.index_select(1, sequence)


def find_used_rows(first: Any, last: Any) -> Any:
    """Which rows keep a key."""
    return first <= last


def find_used_keys(first: Any, last: Any, num_keys: int) -> Any:
    """Which keys are kept by some row: the first row whose last key is not before it decides."""
    keys = torch.arange(num_keys, dtype=torch.int32, device=first.device)
    row = torch.searchsorted(last, keys, out_int32=True).clamp_(max=first.shape[0] - 1)
    begin, end = (x.index_select(0, row) for x in (first, last))
    return (begin <= keys) & (keys <= end)
