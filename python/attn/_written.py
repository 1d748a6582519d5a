"""The text that PyTorch's operators take: the IR of one attention and, after it in comments, what a
plan of it and of its gradients is made of. It is one line: PyTorch prints arguments of nodes into
comments of the files that it generates."""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import Any, Dict, List, Tuple
from urllib.parse import quote

from ._library import Error, OptionTexts
from ._plan import Plan
from ._problem import Problem
from ._source import Text


def write_source(plan: Plan) -> str:
    """What makes the plan again, with lse, and without the device; calls give the captured tensors
    in the order of its captures."""
    if plan.source is None:
        problem = dataclasses.replace(plan.problem, return_lse=True)
        text = dataclasses.replace(plan.text, problem=problem)
        plan.source = write_given(text, plan.given, plan.options)
    return plan.source


def write_text(text: Text, captures: List[Any], options: OptionTexts) -> str:
    """The same of a text whose plan was not made, and its captures."""
    return write_given(text, list_given(captures), options)


def list_given(captures: List[Any]) -> List[Tuple]:
    """Captures of a source as a plan has them."""
    return [(c.name, c.type, c.element, c.rank, i, c.least) for i, c in enumerate(captures)]


# Comments after the IR; python/torch_operators/operators.cpp reads them too.
_OPTION, _LEAST, _PIECES = "// option ", "// least ", "// pieces "
# The operators that Inductor's code calls (_inductor.py) have this number. Inductor keeps code on disk by
# what is in a graph, which does not name them: with another number the code is not found. It goes up with each
# change of these operators; texts of any number read alike.
CODE = "// code 1"


def write_given(text: Text, given: List[Tuple], options: OptionTexts) -> str:
    """Of a text and the captures of its plan. One line, whatever is in the text: blanks stand where the
    IR has line ends, options are quoted as in URLs, and JSON escapes by itself."""
    texts = [option for option in options if option[0] != "device"]
    parts = [line.strip() for line in text.forward.splitlines()]
    parts += [f"{_OPTION}{quote(name.replace('_', '-'))}={quote(value)}" for name, value in texts]
    for i, fields in enumerate(given):
        if any(fields[5]):
            parts.append(f"{_LEAST}{i} {' '.join(map(str, fields[5]))}")
    parts.append(CODE)
    pieces = json.dumps({**dataclasses.asdict(text), "given": given, "options": texts})
    return " ".join([*parts, f"{_PIECES}{pieces}"])


def add_options(source: str, options: OptionTexts) -> str:
    """The same attention, with options besides those that it has."""
    before, mark, _ = source.rpartition(_PIECES)
    pieces = read_pieces(source)
    known = {name for name, _ in pieces["options"]}
    pieces["options"] += [[name, value] for name, value in options if name not in known]
    return f"{before}{mark}{json.dumps(pieces)}"


def read_pieces(source: str) -> Dict[str, Any]:
    return json.loads(source.rpartition(_PIECES)[2])


@functools.lru_cache(maxsize=512)
def has_wide_output(source: str) -> bool:
    """Whether the output is of float32, whatever q is."""
    return bool(read_pieces(source)["problem"].get("output"))


def read_source(source: str, device: str) -> Plan:
    try:
        pieces = read_pieces(source)
        problem = pieces.pop("problem")
        window = problem["window"]
        problem["window"] = None if window is None else tuple(window)
        positions = problem.get("positions")
        problem["positions"] = None if positions is None else tuple(positions)
        given = [(*fields[:4], i, tuple(fields[5])) for i, fields in enumerate(pieces.pop("given"))]
        options = tuple([tuple(option) for option in pieces.pop("options")])
        lines = {name: tuple(lines) for name, lines in pieces.items()}
        text = Text(Problem(**problem), **lines)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Error(
            "invalid argument",
            f"source: expected what attn wrote, got text that does not read ({error})",
        ) from None
    return Plan(text, given, (*options, ("device", device)))
