"""What calls of attn.serving share: checks by the names of arguments, the score, and plans that are remembered."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from . import _arrays, _foreign, _operations, _plan
from ._library import refuse
from ._problem import Spec, check_options
from ._scan import Scan
from ._source import Source, Text


def check_library(**arrays: Any) -> None:
    for name, x in arrays.items():
        if not _arrays.is_numpy(x) and not _arrays.is_torch(x):
            refuse(name, "a NumPy array or PyTorch tensor", _arrays.describe_type(x))


def check_array(name: str, x: Any, ranks: Tuple[int, ...], dims: str) -> None:
    if len(x.shape) not in ranks:
        refuse(name, dims, f"shape {tuple(x.shape)}")


def check_integers(name: str, x: Any, rank: int, dims: str) -> None:
    check_array(name, x, (rank,), dims)
    if _arrays.type_name(x.dtype) not in ("i32", "i64"):
        refuse(name, "int32 or int64", x.dtype)


def check_layout(kv_layout: str) -> bool:
    """Whether the rows of a page come before its heads."""
    if kv_layout not in ("NHD", "HND"):
        refuse("kv_layout", '"NHD" or "HND"', repr(kv_layout))
    return kv_layout == "NHD"


def check_how(causal: bool, softcap: Optional[float], alibi_slopes: Any) -> None:
    if not isinstance(causal, bool):
        refuse("causal", "a bool", repr(causal))
    if softcap is not None and not float(softcap) >= 0:
        refuse("softcap", "a number above 0, or None", repr(softcap))
    if alibi_slopes is not None:
        check_array("alibi_slopes", alibi_slopes, (1, 2), "(H,) or (B, H)")


def check_out(out: Any, q: Any, v: Any) -> None:
    """It has the type and dimensions of q, and the columns of v."""
    check_library(out=out)
    wanted = (*q.shape[:-1], v.shape[-1])
    if tuple(out.shape) != wanted or out.dtype != q.dtype:
        refuse("out", f"{q.dtype} of shape {wanted}", f"{out.dtype} of shape {tuple(out.shape)}")


def add_fixed_split(options: Any, fixed_split: Optional[int]) -> Any:
    """The options of the compiler, with the keys of a part if they are given."""
    if fixed_split is None:
        return options
    if isinstance(fixed_split, bool) or not isinstance(fixed_split, int) or fixed_split < 1:
        refuse("fixed_split", "a number of keys from 1 on, or None", repr(fixed_split))
    said = dict(options) if isinstance(options, Mapping) else {}
    if options is not None and not isinstance(options, Mapping):
        # Whoever reads options says what is wrong with them.
        return options
    if said.get("fixed_split", fixed_split) != fixed_split:
        refuse("fixed_split", f"that of options, {said['fixed_split']}", fixed_split)
    return {**said, "fixed_split": fixed_split}


def make_score(
    shift: Callable, softcap: Optional[float], alibi_slopes: Any, score: Optional[Callable]
) -> Optional[Callable]:
    """The score that softcap, then the bias, and then the caller make of a product. Row q of sequence b is
    at key q + shift(b)."""
    if not softcap and alibi_slopes is None:
        return score
    is_of_batches = alibi_slopes is not None and len(alibi_slopes.shape) == 2

    def change(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        if softcap:
            s = softcap * _operations.tanh(s / softcap, False)
        if alibi_slopes is not None:
            slope = alibi_slopes[b, h] if is_of_batches else alibi_slopes[h]
            s = s - slope * abs(q + shift(b) - kv)
        return s if score is None else score(s, b, h, q, kv)

    return change


def find_plan(
    plans: Dict, spec: Spec, said: Tuple, options: Any, make: Callable[[Source, Any, Any], Any]
) -> Tuple[Any, List[Any]]:
    """The plan of a call, and the arrays that its functions captured. `said` is what else decides."""
    scan = Scan.of(spec.score, spec.mask)
    texts = check_options(options, spec.device)
    is_on_gpu = spec.device != "cpu"
    strided = tuple([_foreign.is_strided(x) for x in scan.arrays]) if is_on_gpu else ()
    has = spec.score is None, spec.has_scale, spec.has_sink, spec.return_lse
    columns = spec.head_dim, spec.value_dim, spec.causal, spec.window
    key = (spec.dtype, spec.device, *columns, *said, *has, texts, strided, *scan.key)
    found = None if scan.is_volatile else plans.get(key)
    if found is not None:
        return found[0], scan.arrays
    source = Source(spec, scan)
    captures = _plan.list_captures(source, by_slot=not source.is_volatile)
    plan = make(source, captures, texts)
    if source.is_volatile:
        return plan, source.arrays
    if Scan.of(spec.score, spec.mask).key == scan.key:
        # Nothing changed while it was traced. `keep` holds what the key names by its address.
        _plan.remember(plans, key, (plan, scan.keep))
    return plan, scan.arrays


def read_fields(text: Text) -> Dict[str, Any]:
    return {x.name: getattr(text, x.name) for x in fields(Text)}
