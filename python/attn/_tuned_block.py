"""attn.tune() in a with statement: what runs inside is searched for, and calls after it are faster."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _arrays, _attention, _eager
from ._arrays import is_foreign
from ._library import Error
from ._places import get_ordinal
from ._plan import Plan
from ._positions import find_placed
from ._problem import is_rows_first
from ._seed import make_seed
from ._tuning import Options, Tuning

# What an eager call is asked for, in its order.
_ASKED = ("scale", "causal", "window", "score", "mask", "sink", "return_lse", "out_dtype")


class _Seen:
    """The first call of one attention with arrays of one shape, and how many there were."""

    def __init__(self, arrays: Tuple[Any, ...], how: Dict[str, Any]) -> None:
        self.arrays, self.how, self.count = arrays, how, 1


class Tunings(List[Tuning]):
    """A list of what a block of `attn.tune()` found: one Tuning for each attention and shape that it
    called, in order.

    Attributes:
        names: what each is of, such as "q (1, 8, 512, 64) of float32, causal=True".
    """

    def __init__(self, search: Callable[..., Tuning]) -> None:
        """`search` takes q, k, v and the arguments of `attention`."""
        super().__init__()
        self.names: List[str] = []
        self._search_one = search
        self._seen: Dict[Any, _Seen] = {}
        self._before: Optional[Any] = None
        self._replaced: List[Tuple[Plan, Plan]] = []

    def __enter__(self) -> "Tunings":
        self._before = _attention.call
        _attention.call = self._call  # type: ignore[assignment]
        return self

    def __exit__(self, kind: Any, *exception: object) -> None:
        _attention.call = self._before  # type: ignore[assignment]
        if kind is None:
            self._search()
        self._seen.clear()

    def undo(self) -> None:
        """Later calls take the rule's choice again."""
        for of, by in self._replaced:
            _eager.replace(by, of)
        self._replaced.clear()

    def __str__(self) -> str:
        return "\n".join(f"{name}\n{found}" for name, found in zip(self.names, self))

    def _call(self, q: Any, k: Any, v: Any, asked: Any, layout: Any, *others: Any) -> Any:
        options, dropout_p, dropout_seed = others
        assert self._before is not None
        output = self._before(q, k, v, asked, layout, *others)
        # Arrays of other libraries are not timed, and whoever gives options has chosen.
        if not options and not is_foreign(q):
            if hasattr(q, "get_device") and _arrays.is_autocast():
                q, k, v = _arrays.cast(q, k, v)
            key = self._find_key(q, k, v, asked, layout, dropout_p)
            if key in self._seen:
                self._seen[key].count += 1
            else:
                how = dict(zip(_ASKED, asked), layout=layout)
                if asked[8] is not None:
                    how.update(zip(("positions", "total"), asked[8]))
                how.update(dropout_p=dropout_p, dropout_seed=dropout_seed)
                arrays = [x.detach() if hasattr(x, "detach") else x for x in (q, k, v)]
                self._seen[key] = _Seen(tuple(arrays), how)
        return output

    def _find_key(self, q: Any, k: Any, v: Any, asked: Any, layout: Any, dropout_p: Any) -> Any:
        rows_first = is_rows_first(layout)
        plan = self._find_plan((q, k, v), asked, rows_first, dropout_p, None)
        return id(plan), tuple(tuple(x.shape) for x in (q, k, v)), rows_first

    @staticmethod
    def _find_plan(
        tensors: Tuple, asked: Any, rows_first: bool, dropout_p: Any, options: Optional[Options]
    ) -> Plan:
        q, k, v = tensors
        device = get_ordinal(q)
        if asked[8] is not None:
            asked = (*asked[:8], find_placed(asked[8], q, k, rows_first))
        seed = make_seed(0, q, device) if dropout_p else None
        return _eager.find_plan(q, k, v, device, asked, options or None, dropout_p, seed)[0]

    def _search(self) -> None:
        """Of each attention; of one that was called with several shapes the options with the least time
        of all its calls."""
        groups: Dict[int, List[_Seen]] = {}
        for (plan, *_), seen in self._seen.items():
            groups.setdefault(plan, []).append(seen)
        for group in groups.values():
            found = []
            for seen in group:
                tuning = self._search_one(*seen.arrays, **seen.how)
                found.append(tuning)
                self.append(tuning)
                self.names.append(_describe(seen))
            self._replace(group, _choose(group, found))

    def _replace(self, group: List[_Seen], options: Options) -> None:
        if not options:
            return
        first = group[0]
        places = first.how.get("positions"), first.how.get("total")
        asked = (*[first.how[x] for x in _ASKED], None if places == (None, None) else places)
        how = is_rows_first(first.how["layout"]), first.how["dropout_p"]
        try:
            of = self._find_plan(first.arrays, asked, *how, None)
            by = self._find_plan(first.arrays, asked, *how, options)
        except Error:
            return
        if _eager.replace(of, by):
            self._replaced.append((of, by))


def _choose(group: List[_Seen], found: List[Tuning]) -> Options:
    """The options that all shapes were timed with, with the least sum; none where the rule is as good."""
    if len(found) == 1:
        return found[0].options
    common = set.intersection(*(set(x.milliseconds) for x in found))
    totals = {
        name: sum(seen.count * x.milliseconds[name] for seen, x in zip(group, found))
        for name in common
    }
    by_name = {x.chosen: x.options for x in found if x.chosen in totals}
    best = min(by_name, key=lambda name: totals[name], default="")
    if not best or "rule" not in totals or totals[best] > 0.99 * totals["rule"]:
        return {}
    return by_name[best]


def _describe(seen: _Seen) -> str:
    q, how = seen.arrays[0], seen.how
    given = [
        f"{name}={x}"
        for name, x in how.items()
        if name in ("causal", "window", "layout", "dropout_p") and x
    ]
    given += [name for name in ("score", "mask", "sink") if how[name] is not None]
    return ", ".join([f"q {tuple(q.shape)} of {q.dtype}", *given])
