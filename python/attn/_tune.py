"""A search of the sizes that one attention runs fastest with, on the machine at hand."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union, overload

from . import _arrays, _library
from ._attention import attention
from ._cache_folder import find_cache_folder
from ._eager import find_plan
from ._library import Error, option_texts, refuse
from ._places import get_ordinal
from ._positions import find_placed
from ._problem import check_dropout
from ._progress import Bar
from ._seed import make_seed
from ._tuned_block import Tunings
from ._tuning import Options, Tuning, describe
from .typing import Array, OptionsLike

# The milliseconds of a call in each round, by the name of the options.
Rounds = Dict[str, List[float]]
# Rows and keys of a tile. What a machine has no room for is refused by the compiler, and so is what
# its models of registers and memory rule out.
_GPU_SIZES = (64, 128, 192), tuple(range(16, 177, 16))
_CPU_SIZES = (16, 32, 48, 64, 96, 128), (16, 32, 48, 64, 96, 128)
_SPLITS = (2, 4, 8, 16)
# Who is slower than this by the best of the first round is not timed again.
_HOPELESS = 1.3
# Of so many of the fastest sizes, blocks that stay are tried too.
_STAYING = 3
# What noise may look like: who gains less than this over the rule's choice does not replace it.
_NOISE = 0.01


def _list_candidates(q: Any, k: Any, is_gpu: bool, layout: str) -> List[Options]:
    """Tiles of all sizes, split keys where the rows of all heads are few, and, on a GPU, the kernels
    that the rule has for other lengths."""
    rows, keys = _GPU_SIZES if is_gpu else _CPU_SIZES
    found: List[Options] = [{"block_m": m, "block_n": n} for m in rows for n in keys]
    heads, length = (2, 1) if layout == "bshd" else (1, 2)
    blocks = q.shape[0] * q.shape[heads] * -(-q.shape[length] // 128)
    if blocks < 256:
        found += [{"splits": splits} for splits in _SPLITS if k.shape[length] >= 128 * splits]
    if is_gpu:
        found += [{"way": way} for way in ("short", "long", "few", "narrow")]
    return found


def _let_stay(options: Mapping[str, Any]) -> Optional[Options]:
    """The same where blocks stay; None where that is said already, or is no choice."""
    return None if {"stay", "splits", "fixed_split", "pack", "way"} & options.keys() else {**options, "stay": "on"}


def _check_candidates(candidates: Sequence[Mapping[str, Any]]) -> List[Options]:
    if isinstance(candidates, (str, bytes, Mapping)) or not isinstance(candidates, Sequence):
        refuse("candidates", "a list of options", type(candidates).__name__)
    for candidate in candidates:
        option_texts(candidate)
    return [dict(candidate) for candidate in candidates]


def _time_batch(call: Callable[[], Any], count: int, is_gpu: bool) -> float:
    """Milliseconds of a call, of `count` in a row."""
    if is_gpu:
        import torch

        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / count
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return 1000 * (time.perf_counter() - begin) / count


def _compile_all(
    make_call: Callable[[Options], Callable[[], Any]], candidates: List[Options], bar: Bar
) -> Tuple[Dict[str, Tuple[Options, Callable[[], Any]]], Dict[str, str]]:
    """The calls of those that compile, by name, and why others do not. Each ran once."""
    calls: Dict[str, Tuple[Options, Callable[[], Any]]] = {}
    refused: Dict[str, str] = {}
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        made = [(options, make_call(options)) for options in candidates]
        futures = [pool.submit(call) for _, call in made]
        for done, ((options, call), future) in enumerate(zip(made, futures)):
            bar.show("compiling", done, len(made))
            try:
                future.result()
                calls[describe(options)] = (options, call)
            except Error as error:
                refused[describe(options)] = error.message
    return calls, refused


def _time_all(
    calls: Dict[str, Tuple[Options, Callable[[], Any]]],
    rounds: int,
    seconds: float,
    is_gpu: bool,
    bar: Bar,
) -> Rounds:
    """Of rounds in turns. Who is hopeless has one round."""
    times: Dict[str, List[float]] = {}
    for i in range(rounds):
        best = min((min(t) for t in times.values()), default=0.0)
        racing = [name for name in calls if not i or min(times[name]) <= _HOPELESS * best]
        for done, name in enumerate(racing):
            bar.show(f"round {i + 1}", done, len(racing))
            call = calls[name][1]
            estimate = max(_time_batch(call, 1, is_gpu), 1e-3)
            count = max(1, min(1000, int(1000 * seconds / estimate)))
            times.setdefault(name, []).append(_time_batch(call, count, is_gpu))
    return times


def _find_median(rounds: Sequence[float]) -> float:
    return statistics.median(rounds)


def _find_spread(rounds: Sequence[float]) -> float:
    return (max(rounds) - min(rounds)) / _find_median(rounds)


def _choose(times: Rounds, rule: str) -> Tuple[str, float]:
    """The name of the fastest, and the noise. The rule's own choice stays where another one is faster by
    less than 1 %, or not in all rounds: rounds are in turns, so that what slows the machine slows both."""
    most = max(map(len, times.values()))
    # One round of who was slow says nothing about who was fast.
    racing = {name: rounds for name, rounds in times.items() if len(rounds) == most}
    best = min(racing, key=lambda name: _find_median(racing[name]))
    noise = max(_find_spread(times[name]) for name in (best, rule))
    is_faster = _find_median(times[best]) <= (1 - _NOISE) * _find_median(times[rule])
    is_always = all(x < y for x, y in zip(times[best], times[rule]))
    return (best if is_faster and is_always else rule), noise


# ------------------------------------------------------------------------------------------------
# On disk
# ------------------------------------------------------------------------------------------------


# Of a Tuning.
_KEPT = "options", "milliseconds", "refused", "noise", "chosen"


def _describe_machine(device: int) -> str:
    if device >= 0:
        import torch

        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    model = next((line for line in lines if line.startswith("model name")), "cpu")
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else os.environ.get("OMP_NUM_THREADS", "")
    return f"{model} x {os.cpu_count()}, {threads} threads"


def _read(path: Path, names: Sequence[str]) -> Optional[Tuning]:
    """What an earlier search of these candidates found, if nobody else could have written it."""
    try:
        with open(path, encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.getuid() or status.st_mode & 0o022:
                return None
            found = json.load(file)
        tuning = Tuning(**{name: found[name] for name in _KEPT}, is_from_disk=True)
        known = all(isinstance(ms, float) for ms in tuning.milliseconds.values())
        return tuning if known and describe(tuning.options) in names else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, Error):
        return None


def _write(path: Path, tuning: Tuning) -> None:
    """Whole or not at all. A search that cannot be kept is still one."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            found = dataclasses.asdict(tuning)
            json.dump({key: found[key] for key in _KEPT}, file)
        os.replace(name, path)
    except OSError:
        pass


# ------------------------------------------------------------------------------------------------
# The search
# ------------------------------------------------------------------------------------------------


@overload
def tune(
    *,
    candidates: Optional[Sequence[Mapping[str, Any]]] = None,
    rounds: int = 3,
    seconds: float = 0.05,
    again: bool = False,
) -> Tunings: ...


@overload
def tune(
    q: Array,
    k: Array,
    v: Array,
    *,
    candidates: Optional[Sequence[Mapping[str, Any]]] = None,
    rounds: int = 3,
    seconds: float = 0.05,
    again: bool = False,
    options: OptionsLike = None,
    **arguments: Any,
) -> Tuning: ...


def tune(
    q: Optional[Array] = None,
    k: Optional[Array] = None,
    v: Optional[Array] = None,
    *,
    candidates: Optional[Sequence[Mapping[str, Any]]] = None,
    rounds: int = 3,
    seconds: float = 0.05,
    again: bool = False,
    options: OptionsLike = None,
    **arguments: Any,
) -> Union[Tuning, Tunings]:
    """Searches the options with which `attention` is fastest on these arrays:

        best = attn.tune(q, k, v, causal=True)
        output = attn.attention(q, k, v, causal=True, options=best.options)

    Without arrays, what a block calls is searched for when the block ends, and later calls of the same
    attention take what was found, whatever their lengths:

        with attn.tune() as found:
            model(tokens)
        print(found)  # found.undo() takes it back

    Calls that were given options, calls of `compile` and of compiled graphs keep theirs.

    Kernels are compiled in parallel and timed in turns. On a terminal a bar shows the progress. The
    answer is kept with the kernels on disk, by program, extents, machine and version.

    On a GPU, models of the compiler leave out sizes that would spill registers or wait for memory.
    The fastest sizes are also tried with blocks that stay.

    Args:
        q, k, v, arguments: of `attention`: NumPy arrays, PyTorch's tensors on a CPU or a GPU.
        candidates: options to try in addition to the rule's own choice. If None: tiles of all
            sizes, split keys where rows are few, and on a GPU the sizes of the rule for other
            lengths.
        rounds, seconds: how often and for how long each candidate is timed. A candidate that is
            slower than the best by 30 % is timed once.
        again: search even if the answer is on disk.
        options: of all candidates.

    Returns:
        A Tuning, or without arrays a context manager, a list of a Tuning for each attention and shape.
        Its options are the given options if nothing is faster than the rule's choice by 1 %
        and in every round.

    Raises:
        Error: as `attention`; options that the compiler refuses are listed in the result.
    """
    if not isinstance(rounds, int) or rounds < 1:
        refuse("rounds", "an integer above 0", rounds)
    if not isinstance(seconds, (int, float)) or not seconds > 0:
        refuse("seconds", "a number above 0", seconds)
    if q is None:
        if options is not None or arguments or k is not None or v is not None:
            refuse("q", "an array beside other arguments of a call", "none")
        how: Dict[str, Any] = dict(
            candidates=candidates, rounds=rounds, seconds=seconds, again=again
        )
        search: Any = functools.partial(tune, **how)
        return Tunings(search)
    if _arrays.is_foreign(q):
        refuse("q", "a NumPy array or a PyTorch tensor", type(q).__name__)
    device = get_ordinal(q)
    # Nothing is recorded.
    q, k, v = (_detach(x) for x in (q, k, v))
    given: Options = dict(options or {})
    if candidates is None:
        chosen = _list_candidates(q, k, device >= 0, arguments.get("layout", "bhsd"))
    else:
        chosen = _check_candidates(candidates)
    tried = [given, *({**given, **candidate} for candidate in chosen)]
    names = [describe(each) for each in tried]
    is_searched = device >= 0 and candidates is None
    staying = [more for more in map(_let_stay, tried) if more and is_searched]
    path = _find_path(q, k, v, device, options, names, arguments)
    found = None if again or path is None else _read(path, [*names, *map(describe, staying)])
    if found is not None:
        return found
    # What is wrong with the call itself is said here; later errors are those of sizes.
    attention(q, k, v, options=options, **arguments)

    rows = int(q.shape[1 if arguments.get("layout") == "bshd" else 2])

    def make_call(each: Options) -> Callable[[], Any]:
        # Candidates that somebody names are timed, whatever models say.
        asks_models = is_searched and "block_m" in each and each is not given
        how = {**each, "search": rows} if asks_models else each
        return lambda: attention(q, k, v, options=how or None, **arguments)

    bar = Bar(sys.stderr.isatty())
    calls, refused = _compile_all(make_call, tried, bar)
    last = times = _time_all(calls, rounds, seconds, device >= 0, bar)
    if is_searched:
        names_by_time = sorted(
            times, key=lambda name: (-len(times[name]), _find_median(times[name]))
        )
        fastest_name = names_by_time[0]
        fastest = [calls[name][0] for name in names_by_time[:_STAYING]]
        more, why = _compile_all(make_call, [each for each in map(_let_stay, fastest) if each], bar)
        refused.update(why)
        calls.update(more)
        # Who ran first ran on a cooler device: the best and the rule run again, beside these.
        racing = {name: calls[name] for name in [names[0], fastest_name, *more]}
        last = _time_all(racing, rounds, seconds, device >= 0, bar)
        times.update(last)
    bar.end()
    best, noise = _choose(last, names[0])
    medians = {name: _find_median(each) for name, each in times.items()}
    ordered = dict(sorted(medians.items(), key=lambda item: item[1]))
    tuning = Tuning(calls[best][0], ordered, refused, noise=noise, chosen=best)
    if path is not None:
        _write(path, tuning)
    return tuning


def _detach(x: Any) -> Any:
    return x.detach() if hasattr(x, "detach") else x


def _find_path(
    q: Any,
    k: Any,
    v: Any,
    device: int,
    options: Optional[Mapping[str, object]],
    names: Sequence[str],
    arguments: Mapping[str, Any],
) -> Optional[Path]:
    """The file of this search: of the program that is compiled, its extents and its machine."""
    folder = find_cache_folder()
    if folder is None:
        return None
    get = arguments.get
    dropout = check_dropout(get("dropout_p", 0.0))
    seed = make_seed(get("dropout_seed"), q, device) if dropout else None
    variants = get("causal", False), get("window"), get("score"), get("mask")
    placed = get("positions"), get("total")
    is_part = any(x is not None for x in placed)
    where = find_placed(placed, q, k, get("layout") == "bshd") if is_part else None
    asked = get("scale"), *variants, get("sink"), get("return_lse", False), get("out_dtype"), where
    plan, _ = find_plan(q, k, v, device, asked, options, dropout, seed)
    shapes = [tuple(x.shape) for x in (q, k, v)]
    facts = [_library.version, plan.text.forward, shapes, get("layout", "bhsd"), list(names)]
    text = json.dumps([*facts, _describe_machine(device)], default=str)
    return folder / "tuned" / (hashlib.sha256(text.encode()).hexdigest()[:32] + ".json")
