"""Whether all ranks mean the same call, before anything is sent: where they do not, or one of them cannot make
it, each has an Error."""

from __future__ import annotations

import hashlib
from typing import Any, Dict, List, NoReturn, Optional, Set, Tuple

import torch
import torch.distributed as dist

from .._library import Error
from ._group import find_device

# What ranks compare, by name. The first are known before anything is traced.
_GIVEN = ("q", "k", "v", "sink", "scale", "plan", "causal", "window", "layout", "return_lse", "options", "dropout_p")
_NAMES = (*_GIVEN, "score, mask", "captured arrays", "gradients", "x", "output")
# Which functions are meant, by name: it tells calls of one rank apart, and is not compared.
_FUNCTIONS = "functions"
_BYTES = 16
# Of the message of a rank that cannot make the call; the first byte tells whether it can.
_MESSAGE = 512

_agreed: Set[Tuple] = set()
# The same of what is known before anything is traced.
_begun: Set[Tuple] = set()
# Calls that were found there before, by what makes them: nothing is written for one that repeats. They end
# where `_agreed` ends, which is at the same call of all ranks.
_repeated: Set[Tuple] = set()


def describe(q: Any, k: Any, v: Any, sink: Any, scale: Any, rows_first: bool) -> Dict[str, str]:
    """What tensors are, but for the number of positions, which plans say."""

    def tell(x: Any) -> str:
        if not isinstance(x, torch.Tensor) or x.dim() != 4:
            return type(x).__name__
        batch, first, second, columns = x.shape
        return f"{x.dtype}, {batch} batches, {second if rows_first else first} heads, {columns} columns"

    what = "none" if sink is None else str(getattr(sink, "shape", type(sink)))
    return {"q": tell(q), "k": tell(k), "v": tell(v), "sink": what, "scale": repr(scale)}


def make_facts(
    causal: Any, window: Any, layout: Any, return_lse: Any, options: Any, dropout_p: Any, functions: Tuple = ()
) -> Dict[str, str]:
    """Of arguments that are no tensors."""
    given = dict(causal=causal, window=window, layout=layout, return_lse=return_lse, options=options)
    given["dropout_p"] = dropout_p
    codes = [getattr(x, "__code__", None) for x in functions]
    names = [(getattr(x, "co_name", ""), getattr(x, "co_firstlineno", 0)) for x in codes]
    return {**{name: repr(x) for name, x in given.items()}, _FUNCTIONS: repr(names)}


def is_known(call: Tuple) -> bool:
    """Whether ranks have agreed on a call, by a key of its own."""
    return call in _repeated


def remember(call: Tuple) -> None:
    """That they have."""
    _repeated.add(call)


def agree(group: Any, facts: Dict[str, str], problem: Optional[Exception] = None) -> None:
    """Raises Error on every rank, with the argument's name, where ranks differ, or where one has a problem.
    Once for each combination: later, a rank that alone has a problem leaves the others waiting."""
    key = (group, facts.get(_FUNCTIONS, ""), *[facts.get(name, "") for name in _NAMES])
    begun = key[: 2 + len(_GIVEN)]
    if key in _agreed if problem is None else begun in _begun:
        if problem is not None:
            raise problem
        return
    _compare(group, key[2:], problem)
    if len(_agreed) > 4096:
        _agreed.clear()
        _begun.clear()
        _repeated.clear()
    _agreed.add(key)
    _begun.add(begun)


def _write(texts: Tuple, problem: Optional[Exception]) -> bytes:
    digests = b"".join(hashlib.blake2b(x.encode(), digest_size=_BYTES).digest() for x in texts)
    words = ""
    if problem is not None:
        kind = "" if isinstance(problem, Error) else f"{type(problem).__name__}: "
        words = "!" + kind + (problem.message if isinstance(problem, Error) else str(problem))
    return digests + words.encode(errors="replace")[:_MESSAGE].ljust(_MESSAGE, b"\0")


def _compare(group: Any, texts: Tuple, problem: Optional[Exception]) -> None:
    mine = torch.frombuffer(bytearray(_write(texts, problem)), dtype=torch.uint8).to(find_device(group))
    everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(everyone, mine, group=group)
    if problem is not None:
        raise problem
    each = [bytes(x.cpu().tolist()) for x in everyone]
    for rank, x in enumerate(each):
        words = x[-_MESSAGE:].rstrip(b"\0").decode(errors="replace")
        if words:
            raise Error("invalid argument", f"on rank {rank}: {words[1:]}", "all ranks have this Error")
    for rank, x in enumerate(each):
        if x != each[0]:
            _refuse_difference(texts, each, rank)


def _refuse_difference(texts: Tuple, each: List[bytes], rank: int) -> NoReturn:
    places = range(0, len(texts) * _BYTES, _BYTES)
    differs = [each[rank][i : i + _BYTES] != each[0][i : i + _BYTES] for i in places]
    number = differs.index(True)
    own = texts[number] if len(texts[number]) < 200 else texts[number][:200] + "..."
    raise Error(
        "invalid argument",
        f"{_NAMES[number]}: expected the same on all ranks, got another one on rank {rank} than on rank 0; on "
        f"this rank it is {own}",
        "give every rank the same arguments, but for its parts of q, k and v",
    )
