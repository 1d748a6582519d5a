"""The text of PTX as instructions, and where paths that part meet again."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Optional, Tuple


@dataclass(frozen=True)
class Instruction:
    name: str
    operands: Tuple[str, ...]
    # The predicate that guards it, and whether it must be false.
    guard: str = ""
    negated: bool = False
    text: str = ""


@dataclass
class Kernel:
    name: str
    parameters: List[str]
    code: List[Instruction]
    labels: Dict[str, int]
    # Of each branch, the first instruction that all of its paths reach; None where they only end.
    joins: Dict[int, Optional[int]] = field(default_factory=dict)
    # The labels of each list that brx.idx takes one of.
    lists: Dict[str, List[str]] = field(default_factory=dict)


def split_operands(text: str) -> Iterator[str]:
    """At commas outside of brackets."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "{[") - (letter in "}]")
        if letter == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()


def parse_instruction(text: str) -> Instruction:
    guarded = re.match(r"@(!?)(%?\w+)\s+(.*)", text, re.S)
    negated, guard, rest = guarded.groups() if guarded else ("", "", text)
    name, _, operands = rest.partition(" ") if " " in rest.split("\t")[0] else rest.partition("\t")
    return Instruction(name.strip(), tuple(split_operands(operands)), guard, bool(negated), text)


def split_statements(body: str) -> Iterator[str]:
    """Labels, and what semicolons end. Inline assembly stands in braces of its own, which say nothing here."""
    before = ""
    for line in body.splitlines():
        line = before + re.sub(r"//.*", "", line).strip()
        # Operands of matrix products have lines of their own.
        before = line + " " if line and line[-1] not in ";:{}" else ""
        if before:
            continue
        label = re.match(r"(\$\w+):", line)
        if label:
            yield label.group(0)
            line = line[label.end() :].strip()
        for statement in line.split(";"):
            statement = statement.strip()
            if statement.startswith("{"):
                statement = statement[1:].strip()
            if statement and statement != "}" and not statement.startswith("."):
                yield statement


def parse_kernel(name: str, parameters: str, body: str) -> Kernel:
    kernel = Kernel(name, re.findall(r"(\w+)(?:\[\d+\])?\s*(?:,|$)", parameters.strip()), [], {})
    lists = r"(\$\w+): \.branchtargets([^;]*);"
    kernel.lists = {label: re.findall(r"\$\w+", targets) for label, targets in re.findall(lists, body)}
    body = re.sub(lists, "", body)
    for statement in split_statements(body):
        if statement.endswith(":"):
            kernel.labels[statement[:-1]] = len(kernel.code)
        else:
            kernel.code.append(parse_instruction(statement))
    kernel.joins = find_joins(kernel)
    return kernel


def parse(text: str) -> Dict[str, Kernel]:
    """The kernels of a module, by name."""
    entries = re.finditer(r"\.entry (\w+)\((.*?)\n?\)\n(.*?)^\{\n(.*?)^\}", text, re.S | re.M)
    return {e.group(1): parse_kernel(e.group(1), e.group(2), e.group(4)) for e in entries}


def find_successors(kernel: Kernel, block: Tuple[int, int]) -> List[Optional[int]]:
    """Where a block of instructions goes on; None is the end of the thread."""
    last = kernel.code[block[1] - 1]
    after: List[Optional[int]] = [block[1] if block[1] < len(kernel.code) else None]
    if last.name.startswith("bra"):
        target: List[Optional[int]] = [kernel.labels[last.operands[0]]]
        return target + after if last.guard else target
    if last.name == "brx.idx":
        return [kernel.labels[target] for target in kernel.lists[last.operands[1]]]
    if last.name in ("ret", "exit"):
        return [None] + (after if last.guard else [])
    return after


def find_joins(kernel: Kernel) -> Dict[int, Optional[int]]:
    """The closest post-dominators of branches, by iteration over sets."""
    ends = [at + 1 for at, i in enumerate(kernel.code) if i.name.startswith("br") or i.name in ("ret", "exit")]
    starts = sorted({0, *ends, *kernel.labels.values()} - {len(kernel.code)})
    blocks = {start: (start, end) for start, end in zip(starts, [*starts[1:], len(kernel.code)])}
    successors = {start: find_successors(kernel, block) for start, block in blocks.items()}
    everything = {None, *blocks}
    behind: Dict[Optional[int], set] = {start: set(everything) for start in blocks}
    behind[None] = {None}
    changed = True
    while changed:
        changed = False
        for start in reversed(starts):
            reached = set.intersection(*(behind[next_] for next_ in successors[start])) | {start}
            changed |= reached != behind[start]
            behind[start] = reached
    joins: Dict[int, Optional[int]] = {}
    for start, (_, end) in blocks.items():
        # Of those behind, the closest has all the others behind it.
        closest = max(behind[start] - {start}, key=lambda other: len(behind[other]))
        joins[end - 1] = closest
    return joins
