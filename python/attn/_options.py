"""Options of the compiler, by name."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Dict, Iterator, Literal, Optional, Union

Switch = Union[bool, Literal["on", "off"]]


@dataclass(frozen=True, eq=False)
class Options(Mapping[str, Any]):
    """Options of the compiler, for options= of `attention`, `compile` and the others:

        output = attn.attention(q, k, v, options=attn.Options(block_m=64, threads=4))

    A mapping of the names to the values, such as {"block_m": 64}, says the same. An option that is
    None is the compiler's to choose.

    Attributes:
        block_m: query rows of a block. Default: the rule of the device chooses.
        block_n: keys of a step. Default: the rule of the device chooses.
        splits: parts that the keys are split into; 1. More than 1 costs a second kernel and memory
            for the parts during a call.
        fixed_split: keys of a part, counted from the first key: a multiple of block_n, which follows
            it if it is not given. The bits of a row then depend on the row, its keys, its mask and its scale,
            and not on the batch, on other sequences, or on the room of a cache. Costs a second kernel, and
            memory for all parts that there is room for. Gradients do not know it.
        cache: "on" or "off": whether code is kept on disk for other processes; "on".
        cache_dir: the folder of that code. Default: $ATTN_CACHE_DIR, or ~/.cache/attn.
        threads: CPU only. The most threads that a call uses; 0: all.
        cpu: CPU only. The processor in LLVM's spelling. Default: the processor of this machine.
        target: GPU only. The kind of GPU to compile for. Default: the kind of the device.
        fused: GPU only. "on" or "off": whether blocks add gradients of queries in any order, where
            that takes fewer products; "on". Off under torch.use_deterministic_algorithms.
        pack: GPU only. Slots for the query heads that share a key head, for calls with few rows: 2,
            4, 8, 16, 32 or 64; 0: by each call.
        way: GPU only. The kernels between which calls choose; "auto": all that `attention` lists.
            "lengths": one for short and one for other sequences. "short", "long", "few",
            "narrow" and "groups": one for all calls.
        stay: GPU only. "auto", "on" or "off": whether blocks stay, one for each multiprocessor, and
            take one tile of rows after the other. "auto": where it was measured to be faster; "on"
            and "off" make one kernel for all calls.
        reserve: GPU only. Multiprocessors that blocks that stay leave to other kernels,
            such as NCCL's, which otherwise wait for all of these blocks; 0. The results are the same
            bits. The number of parts of split keys does not change. FlashAttention-3 calls it
            sm_margin.
        balance: GPU only. "on" or "off": whether parts of keys go to sequences by their lengths,
            where calls with few rows split keys and a mask bounds the keys of each sequence, as
            `attn.serving` does; "off". For batches of long sequences among short ones. It costs a
            call two small kernels.
        slack: GPU only. The maximum of a row may lag by a factor of 2^slack before sums are scaled;
            0 to 16. -1 and 0: it never lags. 8 is 1 % faster, and 3 % at D = 256, for 1.04 times
            the rounding error (1.2 times where few weights are most of the sum).

    Values that do not fit are refused where the options are used, with an `attn.Error`.
    """

    block_m: Optional[int] = None
    block_n: Optional[int] = None
    splits: Optional[int] = None
    fixed_split: Optional[int] = None
    cache: Optional[Switch] = None
    cache_dir: Union[str, "os.PathLike[str]", None] = None
    threads: Optional[int] = None
    cpu: Optional[str] = None
    target: Optional[str] = None
    fused: Optional[Switch] = None
    pack: Optional[Literal[0, 2, 4, 8, 16, 32, 64]] = None
    way: Optional[Literal["auto", "lengths", "short", "long", "few", "narrow", "groups"]] = None
    stay: Union[Switch, Literal["auto"], None] = None
    reserve: Optional[int] = None
    balance: Optional[Switch] = None
    slack: Optional[int] = None

    @functools.cached_property
    def _given(self) -> Dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def __getitem__(self, name: str) -> Any:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        """Of the options that are given."""
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)
