"""Why kernels are compiled: what differs from the nearest one before.

ATTN_LOG=compile writes a line for each to stderr, by the logger "attn.compile". ATTN_LOG=decisions adds
what the compiler decided. A family of kernels that differ in numbers alone is warned of at the third:
each number in a function is a constant of a kernel, and two of them may be two kinds of layers, but
three are a number that changes.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from typing import Any, Dict, Iterable, List, Optional, Tuple

from ._library import Error, explain
from ._operations import PACKAGE

logger = logging.getLogger("attn.compile")
_MANY = 3
_MOST = 512

# Sources and options of kernels that were compiled, the last _MOST of them.
_known: Dict[Tuple[str, Tuple], None] = {}
_compiled = [0]
# Whether what the compiler decided is told too.
has_decisions = [False]
# By the regions of a source: where their functions are.
_places: Dict[str, str] = {}
# By a source without its numbers: the numbers of each kernel.
_families: Dict[Any, Dict[Tuple[str, ...], None]] = {}

_NUMBER = re.compile(r"(?<=arith\.constant )[^:\s]+|(?<=#attn\.window<)-?\d+, -?\d+")
_HEAD = re.compile(
    r"func\.func @(\w+)\(%q: tensor<\?x\?x\?x(\d+)x(\w+)>, %k: [^,]*, %v: tensor<\?x\?x\?x(\d+)x"
)
# Arguments that are not captured.
_GIVEN = "q k v scale sink output lse d_output d_lse".split()


def place(regions: Iterable[str], functions: Dict[str, Any]) -> None:
    """Remembers where functions are that became these regions."""
    names = [
        f"{name} of {os.path.basename(code.co_filename)}:{code.co_firstlineno}"
        for name, function in functions.items()
        for inner in [getattr(function, "__wrapped__", function)]
        for code in [getattr(getattr(inner, "__func__", inner), "__code__", None)]
        if code is not None and not code.co_filename.startswith(PACKAGE)
    ]
    _remember(_places, "\n".join(regions), ", ".join(names))


def _remember(table: Dict, key: Any, value: Any) -> None:
    if len(table) >= _MOST:
        table.pop(next(iter(table)), None)
    table[key] = value


def _find_regions(source: str) -> Dict[str, str]:
    """The text of score and mask."""
    found: Dict[str, str] = {}
    name = ""
    for line in source.splitlines():
        head = re.match(r"    (score|mask)\(", line)
        name = head.group(1) if head else name
        if name:
            found[name] = found[name] + "\n" + line if name in found else line
        if line == "    }":
            name = ""
    return found


def _find_facts(source: str, options: Iterable[Tuple[str, str]]) -> Dict[str, Any]:
    """What kernels differ in, by names that users know."""
    head = _HEAD.match(source)
    facts: Dict[str, Any] = {}
    if head:
        facts.update(zip(("function", "D", "type", "Dv"), head.groups()))
    variants = re.search(r"variants \[(.*)\]", source)
    text = variants.group(1) if variants else ""
    facts["causal"] = "causal" in text and text.partition("causal<")[2].partition(">")[0]
    facts["window"] = "window" in text
    facts["scale"] = " scale(%scale)" in source
    facts["sink"] = " sink(" in source
    facts["lse"] = "%o, %lse = " in source
    regions = _find_regions(source)
    for name in ("score", "mask"):
        facts[name] = _NUMBER.sub("#", regions[name]) if name in regions else None
    arguments = re.findall(r"%(\w+): (tensor<[^>]*>)", source.partition(" -> ")[0])
    facts["captured"] = [type_ for name, type_ in arguments if name not in _GIVEN]
    if facts.get("function") == "gradient":
        results = source.partition(" = attn.")[0].splitlines()[-1]
        facts["gradients"] = re.findall(r"%d_(\w+)", results)
    facts.update((f"option {name}", text) for name, text in options)
    facts["numbers"] = _NUMBER.findall(source)
    return facts


def _describe(name: str, before: Any, now: Any) -> str:
    if name in ("score", "mask"):
        return f"{'a' if before is None else 'no' if now is None else 'another'} {name} function"
    if name == "captured":
        return "captured arrays of other types"
    if name in ("scale", "sink", "lse", "window"):
        return f"{name} {'given' if now else 'not given'}"
    if name == "numbers" and len(before) == len(now):
        return ", ".join(f"{x} -> {y}" for x, y in zip(before, now) if x != y)
    if name == "gradients":
        return f"gradients of {', '.join(now or [])}"
    return f"{name} {before or 'none'} -> {now or 'none'}"


def count_compiled() -> int:
    return _compiled[0]


def find_reason(source: str, options: Tuple) -> str:
    """Why a kernel would be compiled; empty if it was."""
    known = tuple(_known)
    return "" if (source, options) in known else _compare(source, options, known)


def _compare(source: str, options: Tuple, known: Iterable[Tuple[str, Tuple]]) -> str:
    """What differs from the nearest of the known kernels."""
    facts = _find_facts(source, options)
    best: Optional[List[str]] = None
    for other in known:
        before = _find_facts(*other)
        names = [x for x in {**facts, **before} if before.get(x) != facts.get(x)]
        # Numbers and types follow from other functions.
        if "score" in names or "mask" in names:
            names = [x for x in names if x not in ("numbers", "captured")]
        if best is None or len(names) <= len(best):
            best = names
            reason = "; ".join(_describe(x, before.get(x), facts.get(x)) for x in names)
    if best is None:
        return "the first one"
    return reason or "another text of the same"


def note(source: str, options: Tuple, kernel: Any) -> None:
    """Of a kernel that the library was asked for: if for the first time, it was just compiled."""
    if (source, options) in _known:
        return
    known = tuple(_known)
    _remember(_known, (source, options), None)
    _compiled[0] += 1
    where = _places.get("\n".join(_find_regions(source).values()), "")
    _count(source, options, where)
    if logger.isEnabledFor(logging.INFO):
        facts = _find_facts(source, options)
        what = " ".join([facts.get("function", "function"), facts.get("type", "")]).strip()
        shape = f" D={facts['D']} Dv={facts['Dv']}" if "D" in facts else ""
        device = facts.get("option device", "cpu")
        how = (
            f"loaded from disk in {kernel.load_ms:.1f} ms"
            if kernel.is_from_disk
            else f"compiled in {kernel.compile_ms + kernel.load_ms:.0f} ms"
        )
        reason = _compare(source, options, known)
        of = f" ({where})" if where else ""
        logger.info("%s%s on %s %s%s: %s", what, shape, device, how, of, reason)
    if has_decisions[0]:
        for line in _find_decisions(source, options):
            logger.info("  %s", line)


def _find_decisions(source: str, options: Tuple) -> List[str]:
    """The rule that chose the sizes, and the keys that the mask visits."""
    try:
        lines = explain(source, options, "online").splitlines()
    except Error:
        return []
    return [line[3:] for line in lines if line.startswith(("// schedule", "// mask-tiles"))]


def _count(source: str, options: Tuple, where: str) -> None:
    numbers = tuple(_NUMBER.findall(source))
    if not numbers:
        return
    key = (_NUMBER.sub("#", source), options)
    family = _families.get(key)
    if family is None:
        _remember(_families, key, family := {})
    # Those that come later tell nothing new, and a number for each step would fill the memory.
    if len(family) >= _MANY:
        return
    family[numbers] = None
    if len(family) < _MANY:
        return
    # Of the first that is nearest.
    count = {x: sum(a != b for a, b in zip(x, numbers)) for x in family if x != numbers}
    other = min(count, key=lambda x: count[x])
    last = [f"{a} and {b}" for a, b in zip(other, numbers) if a != b]
    warnings.warn(
        f"attn: {_MANY} kernels differ in numbers alone{f', in {where}' if where else ''}, such as "
        f"{', '.join(last)}: each is compiled; let a function read what changes, a window as mask=, from a "
        "0-d array, which is a value of the call",
        RuntimeWarning,
        stacklevel=_find_level(),
    )


def _find_level() -> int:
    """Of the first caller outside of this package, as `warnings` counts it from `_count`."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
