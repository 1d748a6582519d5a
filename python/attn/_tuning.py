"""What a search of sizes found."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, Mapping

from ._library import option_texts

Options = Dict[str, Any]
# How the compiler begins to say that its models rule sizes out.
LEFT_OUT = "left out of the search"


@dataclasses.dataclass(frozen=True)
class Tuning:
    """The result of a search.

    Attributes:
        options: the fastest options, for options= of `attention` and `compile`. If the rule's own
            choice is as good, the options that the search was given.
        milliseconds: the median time of a call for each of the options that were tried, fastest
            first; "rule" is the rule's own choice.
        refused: options that are no candidates, and why.
        is_from_disk: whether an earlier search is the answer.
        noise: how far rounds of the same options were apart, the part of their median, for the
            chosen options or the rule's, whichever is more; 0 after one round.
        chosen: the name in `milliseconds` of the chosen options.

    Printed, the chosen options have the mark "*", and options that differ from them by less than
    the noise have the mark "~".
    """

    options: Options
    milliseconds: Dict[str, float]
    refused: Dict[str, str]
    is_from_disk: bool = False
    noise: float = 0.0
    chosen: str = ""

    def __str__(self) -> str:
        lines = [
            f"{ms:10.4f} ms {self._mark(name)} {name}" for name, ms in self.milliseconds.items()
        ]
        if self.noise:
            lines.append(f"noise {self.noise:.1%}: * is chosen, and ~ may be as fast")
        by_models = sum(LEFT_OUT in why for why in self.refused.values())
        text = f"{len(self.refused)} refused"
        return "\n".join([*lines, text + f", {by_models} of them by models" * (by_models > 0)])

    def _mark(self, name: str) -> str:
        if name == self.chosen:
            return "*"
        best = self.milliseconds.get(self.chosen)
        is_near = best is not None and abs(self.milliseconds[name] - best) <= self.noise * best
        return "~" if is_near else " "


def describe(options: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={text}" for name, text in option_texts(options)) or "rule"
