"""The factor of dropout (s16 of dialects/Attn/README.md) at positions in the whole, as lines of a score region.

`#attn.dropout` draws by positions in a call. The rows and keys of a rank stand elsewhere in the whole, so the same
Philox4x32-7 is written out here, with positions that it reads from the tables of the call: the weights that are
dropped are those of one process.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Iterator, List, Tuple

from .._source import Text

_ROUNDS, _FAR, _VALUES = 7, 8, 1 << 16
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_INCREMENTS = 0x9E3779B9, 0xBB67AE85
# Of captured arrays that are not i32.
_TYPES = {"seed": "i64"}


class _Lines:
    """Operations on i32, written down; each returns the name of its result."""

    def __init__(self) -> None:
        self.lines: List[str] = []

    def add(self, text: str) -> str:
        name = f"%dropout{len(self.lines)}"
        self.lines.append(f"      {name} = {text}")
        return name

    def constant(self, value: Any, type_: str = "i32") -> str:
        if type_ == "i32" and value >= 1 << 31:
            value -= 1 << 32
        return self.add(f"arith.constant {value} : {type_}")

    def binary(self, name: str, a: str, b: str, type_: str = "i32") -> str:
        return self.add(f"arith.{name} {a}, {b} : {type_}")

    def bits(self, word: str, bits: int) -> str:
        return self.binary("andi", word, self.constant(bits & 0xFFFFFFFF))

    def is_far(self, word: str) -> str:
        return self.add(f"arith.cmpi ne, {self.bits(word, _FAR)}, {self.constant(0)} : i32")

    def select(self, condition: str, a: str, b: str, type_: str = "i32") -> str:
        return self.add(f"arith.select {condition}, {a}, {b} : {type_}")

    def to_i32(self, index: str) -> str:
        return self.add(f"arith.index_cast {index} : index to i32")

    def extract(self, tensor: str, index: str, type_: str = "i32") -> str:
        return self.add(f"tensor.extract {tensor}[{index}] : tensor<?x{type_}>")

    def halves(self, wide: str) -> Tuple[str, str]:
        """The high and the low word."""
        high = self.binary("shrui", wide, self.constant(32, "i64"), "i64")
        return self.add(f"arith.trunci {high} : i64 to i32"), self.add(f"arith.trunci {wide} : i64 to i32")

    def multiply(self, word: str, multiplier: int) -> Tuple[str, str]:
        wide = self.add(f"arith.extui {word} : i32 to i64")
        return self.halves(self.binary("muli", wide, self.constant(multiplier, "i64"), "i64"))

    def philox(self, counter: List[str], key: List[str]) -> List[str]:
        for _ in range(_ROUNDS):
            high0, low0 = self.multiply(counter[0], _MULTIPLIERS[0])
            high1, low1 = self.multiply(counter[2], _MULTIPLIERS[1])
            first = self.binary("xori", self.binary("xori", high1, counter[1]), key[0])
            third = self.binary("xori", self.binary("xori", high0, counter[3]), key[1])
            counter = [first, low1, third, low0]
            key = [self.binary("addi", x, self.constant(y)) for x, y in zip(key, _INCREMENTS)]
        return counter

    def draw(self, p: float, places: List[str], seed: str) -> str:
        """The factor, at (b, h, m, n) as i32."""
        if p in (0.0, 1.0):
            return self.constant(1.0 - p, "f32")
        b, h, m, n = places
        least = min(math.floor(p * _VALUES + 0.5), _VALUES - 1)
        high, low = self.halves(self.extract(seed, self.add("arith.constant 0 : index"), "i64"))
        words = self.philox([self.bits(n, ~(_FAR | 1)), self.bits(m, ~_FAR), h, b], [low, high])
        is_far_key = self.is_far(n)
        pairs = [self.select(is_far_key, words[i + 1], words[i]) for i in (0, 2)]
        word = self.select(self.is_far(m), pairs[1], pairs[0])
        half = self.binary("muli", self.bits(n, 1), self.constant(16))
        drawn = self.bits(self.binary("shrui", word, half), _VALUES - 1)
        is_dropped = self.add(f"arith.cmpi ult, {drawn}, {self.constant(least)} : i32")
        kept = self.constant(f"{1 / (1 - least / _VALUES):.17e}", "f32")
        return self.select(is_dropped, self.constant("0.0", "f32"), kept, "f32")


def add_dropout(text: Text, given: List[Tuple], order: List[Any], p: float, tables: Tuple) -> Tuple:
    """The text, captures and order of an attention, with dropout. `tables` names those of "rows", "keys", "head" and
    "batch" that the call has; the seed is the last of the caller's arrays."""
    given, order = list(given), list(order)
    captures, names = list(text.captures), {}

    def find(name: str) -> str:
        """The captured array, which is added where functions do not read it."""
        key = len([x for x in order if not isinstance(x, str)]) if name == "seed" else name
        if name == "seed" or name not in order:
            type_ = _TYPES.get(name, "i32")
            given.append((f"dropout_{name}", type_, type_, 1, len(order), (0 if name in ("rows", "keys") else 1,)))
            captures.append(f"%dropout_{name}: tensor<?x{type_}>")
            order.append(key)
        return "%" + given[order.index(key)][0]

    names = {name: find(name) for name in (*tables, "seed")}
    lines = _Lines()

    def place() -> Iterator[str]:
        for letter, first in (("b", "batch"), ("h", "head")):
            here = lines.to_i32(f"%{letter}")
            if first in names:
                zero = lines.add("arith.constant 0 : index")
                here = lines.binary("addi", here, lines.extract(names[first], zero))
            yield here
        for letter, table in (("m", "rows"), ("n", "keys")):
            yield lines.extract(names[table], f"%{letter}") if table in names else lines.to_i32(f"%{letter}")

    factor = lines.draw(p, list(place()), names["seed"])
    regions = _extend(text.regions, lines.lines, factor)
    return dataclasses.replace(text, captures=tuple(captures), regions=regions), given, tuple(order)


def _extend(regions: Tuple[str, ...], lines: List[str], factor: str) -> Tuple[str, ...]:
    """The score region, which is the first, yields the factor too."""
    if not regions or "score(" not in regions[0]:
        last = f"      attn.yield %s, {factor} : f32, f32"
        return ("    score(%s, %b, %h, %m, %n) {", *lines, last, "    }", *regions)
    at = next(i for i, line in enumerate(regions) if "attn.yield" in line)
    value = regions[at].split()[1]
    return (*regions[:at], *lines, f"      attn.yield {value}, {factor} : f32, f32", *regions[at + 1 :])
