"""The names of kernels for people: in ranges of profilers, in lines of a log, and of folders."""

from __future__ import annotations

import functools
import re

_HEAD = re.compile(r"func\.func @(\w+)\((.*)")
# The queries of a call, (B, H, M, D), or (T, H, D) where sequences follow one another.
_QUERIES = re.compile(r"%(?:q|rows_q): tensor<(?:\?x)+(\d+)x(\w+)>")
_VALUES = re.compile(r"%(?:v|rows_v|v_cache): tensor<(?:[?\d]+x)+(\d+)x\w+>")
_VARIANT = re.compile(r"#attn\.(\w+)")
_REGION = re.compile(r"^    (score|mask)\(", re.M)


@functools.lru_cache(maxsize=512)
def name_kernel(source: str) -> str:
    """Such as "attention bf16 D=64 causal score"."""
    head = _HEAD.search(source)
    if head is None:
        return "function"
    words = [head.group(1)]
    queries, values = _QUERIES.search(head.group(2)), _VALUES.search(head.group(2))
    if queries is not None:
        words += [queries.group(2), f"D={queries.group(1)}"]
        if values is not None and values.group(1) != queries.group(1):
            words.append(f"Dv={values.group(1)}")
    words += [word for word in ("paged", "ragged") if f" = attn.{word} " in source]
    variants = re.search(r"variants \[(.*)\]", source)
    words += _VARIANT.findall(variants.group(1)) if variants else []
    words += dict.fromkeys(_REGION.findall(source))
    return " ".join(words)
