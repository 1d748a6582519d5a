"""attention, compile and explain."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from . import _arrays, _dynamo, _foreign, _library
from ._choose import choose_options
from ._given import Given
from ._library import Error, OptionTexts, option_texts
from ._log import find_reason
from ._plan import Plan, remember
from ._run import run, run_into
from ._scan import Scan
from ._seed import Seed, make_seed, make_traced_seed
from ._source import Source, check_causal, check_dropout, check_window, make_problem
from ._words import fail_unexpected

_NOTHING: List[Any] = []
_plans: Dict[Any, Tuple[Plan, List[Any]]] = {}


def _make_plan(source: Source, options: OptionTexts, by_slot: bool = False) -> Plan:
    """Its calls give the arrays of the source, or, by slot, those of their own Scan."""
    captures = [
        (c.name, c.type, c.element, c.rank, c.slot if by_slot else i, c.least)
        for i, c in enumerate(source.captures)
    ]
    return Plan(source.text, captures, options)


def _is_rows_first(layout: str) -> bool:
    if layout == "bhsd":
        return False
    if layout == "bshd":
        return True
    raise Error("invalid argument", f'layout: expected "bhsd" or "bshd", got {layout!r}')


def _check_options(options: Optional[Mapping[str, object]], device: str) -> OptionTexts:
    """The options, as the compiler takes them."""
    texts = option_texts(options)
    for name, text in texts:
        if name == "device":
            raise Error(
                "invalid argument",
                f"options: expected no device, got {text!r}",
                "attention runs where its tensors are; compile and explain take device=",
            )
    return (*texts, ("device", device))


def _scan(score: Any, mask: Any) -> Scan:
    return Scan(*[function for function in (score, mask) if function is not None])


def _check_query(q: Any, k: Any, v: Any, device: int, sink: Any) -> None:
    is_watched = _arrays.is_watched(q, k, v, sink)
    for name, x in (("q", q), ("k", k), ("v", v)):
        # Who watches may give tensors that stand for others: the operator knows them.
        shape = x.shape if is_watched else _arrays.view(x, name, device)[1]
        if len(shape) != 4:
            raise Error(
                "invalid argument", f"{name}: expected 4 dimensions, got shape {tuple(shape)}"
            )


def _find_plan(
    q: Any,
    k: Any,
    v: Any,
    device: int,
    scale: Any,
    causal: Any,
    window: Any,
    score: Optional[Callable],
    mask: Optional[Callable],
    sink: Any,
    return_lse: bool,
    options: Optional[Mapping[str, object]],
    dropout: float = 0.0,
    seed: Any = None,
) -> Tuple[Plan, List[Any]]:
    """The plan that a call runs, and the arrays that its functions captured, with the seed of
    dropout after them."""
    # True == 1, and only one of them is an alignment.
    if causal is not False and causal is not True:
        causal = check_causal(causal) or False
    if window is not None:
        window = check_window(window)
    try:
        key: Any = (
            q.dtype,
            q.shape[-1],
            v.shape[-1],
            device,
            causal,
            window,
            scale is None,
            sink is None,
            return_lse,
            options and option_texts(options),
            dropout,
        )
        if score is None and mask is None:
            scan, arrays = None, _NOTHING
            found = _plans.get(key)
        else:
            scan = _scan(score, mask)
            arrays = scan.arrays
            key = (*key, score is None, *scan.key)
            if device >= 0:
                # There the text says which arrays have any strides.
                key += tuple([_foreign.is_strided(x) for x in arrays])
            found = None if scan.is_volatile else _plans.get(key)
    except (AttributeError, IndexError, TypeError):
        # An argument of another type. Say which, or go on without the cache.
        _check_query(q, k, v, device, sink)
        scan, key, found = _scan(score, mask), None, None
        arrays = scan.arrays
    if scan is not None and scan.is_foreign:
        arrays = _foreign.import_all(arrays)
    if dropout:
        arrays = [*arrays, seed]
    if found is not None:
        plan = found[0]
    else:
        _check_query(q, k, v, device, sink)
        scan = scan or _scan(score, mask)
        name = "cpu" if device < 0 else f"cuda:{device}"
        problem = make_problem(
            q.dtype,
            int(q.shape[-1]),
            int(v.shape[-1]),
            causal,
            window,
            scale is not None,
            sink is not None,
            return_lse,
            name,
            dropout,
        )
        source = Source(problem, score, mask, scan, name, seed)
        plan = _make_plan(source, _check_options(options, name), not source.is_volatile)
        if source.is_volatile:
            arrays = _foreign.import_all(source.arrays)
        elif key is not None and _scan(score, mask).key == scan.key:
            # Nothing changed while it was traced. `keep` holds what the key names by its address.
            remember(_plans, key, (plan, scan.keep))
    return plan, arrays


@_dynamo.disable
def _call(
    q: Any,
    k: Any,
    v: Any,
    scale: Any,
    causal: Any,
    window: Any,
    score: Optional[Callable],
    mask: Optional[Callable],
    sink: Any,
    layout: str,
    return_lse: bool,
    options: Optional[Mapping[str, object]],
    dropout_p: Any = 0.0,
    dropout_seed: Any = None,
) -> Any:
    dropout = check_dropout(dropout_p) if dropout_p != 0 else 0.0
    get_device = getattr(q, "get_device", None)
    if get_device is None and _arrays.is_foreign(q):
        mine = _foreign.import_named(q=q, k=k, v=v, sink=sink, dropout_seed=dropout_seed)
        *mine, sink, seed = mine
        how = scale, causal, window, score, mask, sink, layout, return_lse, options, dropout, seed
        return _foreign.export(_call(*mine, *how), q)
    device = -1 if get_device is None else get_device()
    if get_device is not None and _arrays.is_autocast():
        q, k, v = _arrays.cast(q, k, v)
    rows_first = layout != "bhsd" and _is_rows_first(layout)
    seed = make_seed(dropout_seed, q, device) if dropout else None
    # What `attn.tune` finds where nothing is faster than the rule's sizes.
    if options == {}:
        options = None
    if options is None and device >= 0 and score is None and sink is None and not dropout:
        is_plain = mask is None and window is None and not causal
        options = choose_options(q, k, v, rows_first, is_plain)
    # Without tuples of arguments, which cost a tenth of a small call.
    plan, arrays = _find_plan(
        q,
        k,
        v,
        device,
        scale,
        causal,
        window,
        score,
        mask,
        sink,
        return_lse,
        options,
        dropout,
        seed,
    )
    output = plan.direct(q, k, v, scale, sink, arrays, rows_first, False, None)
    if output is not None:
        return output
    return run(plan, q, k, v, scale, sink, rows_first, arrays)


def _call_traced(
    q: Any,
    k: Any,
    v: Any,
    scale: Any,
    causal: Any,
    window: Any,
    sink: Any,
    layout: str,
    return_lse: bool,
    options: Optional[Mapping[str, object]],
    dropout_p: Any,
    dropout_seed: Any,
) -> Any:
    """The same as torch.compile traces it: an operator of the graph."""
    from torch.fx.experimental.symbolic_shapes import guard_scalar

    from . import _operator

    dropout, seed = make_traced_seed(dropout_p, dropout_seed, q) if dropout_p else (0.0, None)
    if window is not None:
        window = tuple([side if side is None else guard_scalar(side) for side in window])
    # Kernels are compiled for these; where shapes are symbols, they are constants from here on.
    source = _operator.make_source(
        q.dtype,
        guard_scalar(q.shape[-1]),
        guard_scalar(v.shape[-1]),
        causal,
        window,
        scale is not None,
        sink is not None,
        str(q.device),
        options,
        dropout,
    )
    given = Given(q, k, v, scale, sink, layout != "bhsd" and _is_rows_first(layout), [])
    return _operator.apply(source, given, [] if seed is None else [seed], return_lse)


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    scale: Optional[float] = None,
    causal: Union[bool, str] = False,
    window: Optional[Tuple[Optional[int], Optional[int]]] = None,
    score: Optional[Callable] = None,
    mask: Optional[Callable] = None,
    sink: Any = None,
    layout: str = "bhsd",
    return_lse: bool = False,
    options: Optional[Mapping[str, object]] = None,
    dropout_p: float = 0.0,
    dropout_seed: Any = None,
    **others: Any,
) -> Any:
    """softmax(score(scale * q k^T)) v over the keys that the mask keeps.

    Args:
        q: queries, (B, H, M, D). float32, float16 or bfloat16 in NumPy and in PyTorch on the CPU;
            float16 or bfloat16 in PyTorch on a GPU. All other arrays are where q is. Arrays of
            other libraries (JAX, CuPy...) are taken by DLPack, and results are arrays of q's
            library.
        k: keys, (B, Hkv, N, D). H is a multiple of Hkv; head h reads h // (H // Hkv).
        v: values, (B, Hkv, N, Dv).
        scale: factor of the products; 1 / sqrt(D) if None.
        causal: True or "bottom_right" keeps the keys up to the row's own position, counted from the
            last row and the last key. "top_left" counts from the first row and the first key. The
            two agree when M == N.
        window: (left, right), the numbers of keys that are kept before and after the row's
            position, which is counted from the bottom-right. None or -1 is no bound.
        score: score(s, b, h, q, kv), traced once; s is a float, the others are integers.
        mask: mask(b, h, q, kv), traced once: whether to keep the key.
        sink: (H,), one more logit for each head. The logit has no value.
        layout: "bhsd" as above, or "bshd": q, k, v and the result are (B, S, H, D). Strides are
            free, except that the last dimension is contiguous. Nothing is copied.
        return_lse: also return the logsumexp, the natural logarithm of the sum of exponentials.
        options: options of the compiler, by name (type, default):
            CPU and GPU:
                block_m (int): query rows of a block. Default: the rule of the device chooses.
                block_n (int): keys of a step. Default: the rule of the device chooses.
                splits (int, 1): parts that the keys are split into. More than 1 costs a second
                    kernel and memory for the parts during a call.
                cache ("on" or "off", "on"): whether code is kept on disk for other processes.
                cache_dir (str): the folder of that code. Default: $ATTN_CACHE_DIR, or
                    ~/.cache/attn.
            CPU only:
                threads (int, 0): the most threads that a call uses; 0: all.
                cpu (str): the processor in LLVM's spelling. Default: the processor of this
                    machine.
            GPU only:
                fused ("on" or "off", "on"): whether blocks add gradients of queries in any order,
                    where that takes fewer products. Off under torch.use_deterministic_algorithms.
                pack (int, 0): slots for the query heads that share a key head, for calls with few
                    rows: 2, 4, 8, 16, 32 or 64; 0: none.
                way (str, "auto"): the lengths that the kernel is for. "auto" makes one kernel for
                    short sequences and one for long ones where two are faster, and each call takes
                    one of them. "short", "long", "few" (at most 128 rows with many keys) and
                    "narrow" (many rows with at most 80 keys, or 129 to 160) make one kernel for
                    all calls, which takes half as long to assemble.
                stay ("auto", "on" or "off", "auto"): whether blocks stay, one for each
                    multiprocessor, and take one tile of rows after the other. "auto": where it was
                    measured to be faster; "on" and "off" make one kernel for all calls.
                slack (int, -1): the maximum of a row may lag by a factor of 2^slack before sums
                    are scaled; 0 to 16. -1 and 0: it never lags. 8 is 1 % faster, and 3 % at D =
                    256, for 1.04 times the rounding error (1.2 times where few weights are most of
                    the sum).
        dropout_p: the probability that a weight is dropped after it is normalized, met to 2^-17.
            The other weights are divided by 1 minus that probability. The logsumexp does not know
            it. The dropped weights are a function of the seed and of (b, h, q, kv) alone (s16 of
            dialects/Attn/README.md).
        dropout_seed: an integer, or an array of one integer where q is. It may change between calls
            and between replays of a CUDA graph. If None, it is drawn from PyTorch's generator of
            the device, or from NumPy's numpy.random. Gradients use the seed of their call.

    Returns:
        The output, in the type, library, device and layout of q, with Dv columns; or (output, lse)
        with lse float32 of shape (B, H, M) in every layout. A row that keeps no key gives 0 and
        -inf.

    Raises:
        Error: an argument that does not fit, or a function that cannot be traced.

    Without options, a call on a GPU that has neither score, sink nor dropout chooses by its shapes:
        pack: all rows of a group of heads fit a tile of 64, and D and Dv are at most 256. Where each
            query head has keys of its own, it also needs 1024 keys or more.
        way="few": at most 128 rows, more than 2048 keys, no mask, and D and Dv at most 128.
        way="narrow": more than 256 rows, at most 80 keys or 129 to 160, no mask, and D and Dv at most
            256, on a GPU that reads more than 4 TB/s, as an H200 does.
    Graphs of torch.compile choose in the same way.

    PyTorch's autograd records the call. Kernels compute the gradients of q, k, v, the sink, and the
    captured tensors that the score reads. First derivatives are supported; tangents are refused. A
    GPU sums two kinds of gradients in any order, so that their last bits differ from run to run.
    Gradients of queries are one kind, except under torch.use_deterministic_algorithms. Gradients of
    captured tensors are the other kind, and are refused under torch.use_deterministic_algorithms.
    All other gradients are the same bits each time.

    PyTorch's transforms: torch.func.grad and torch.vmap work. Under torch.autocast tensors are cast
    as for PyTorch's own attention. torch.compile sees an operator, attn::forward. Dynamo traces
    score and mask like the functions of PyTorch's flex_attention. It breaks its graph around a
    call whose functions it does not know, such as functions of attn itself. On the CPU,
    torch.set_num_threads sets the number of threads.

    A function may read values of modules, classes and objects; it reads them at each call. Values
    that it spells by name, such as config.window, are compared with those of the last call.
    Anything else, such as a property or table["window"], makes attn trace the function again,
    which takes some hundred microseconds.

    On a GPU the work is queued on the current stream of q's device. A CUDA graph can capture the
    call if the same attention was called once before: compiling cannot be captured.

    Captured arrays have any strides. A kernel reads them also for keys that are masked, so indices
    must be inside for every row and key. Arrays that are read at b, h, q or kv, or at a constant
    distance from one of these, are checked. At the distance q - kv, or that plus a constant, a
    kernel reads the nearest element if the index is outside. Other indices below 0 count from the
    end, as in Python. Integers are 64 bits wide, on GPUs too.
    """
    if others:
        fail_unexpected("attention", others)
    if _dynamo.is_compiling():
        if score is None and mask is None:
            how = scale, causal, window, sink, layout, return_lse, options
            return _call_traced(q, k, v, *how, dropout_p, dropout_seed)
        from . import _flex_node

        first = q, k, v, score, mask, scale, causal, sink, _is_rows_first(layout)
        found = _flex_node.attend(*first, dropout_p, dropout_seed, window, options)
        return found if return_lse else found[0]
    return _call(
        q,
        k,
        v,
        scale,
        causal,
        window,
        score,
        mask,
        sink,
        layout,
        return_lse,
        options,
        dropout_p,
        dropout_seed,
    )


class Attention:
    """A compiled attention: call it as `kernel(q, k, v)`, for any lengths, batches and heads.

    Attributes:
        source: its IR, as a user would write it.
        compile_ms: milliseconds that compiling took; 0 when the kernel was on disk.
        load_ms: milliseconds that the linker took, or the driver of a GPU.
        is_from_disk: whether the kernel was found on disk.
        device: "cpu", or "cuda:0".

        A copy shares the kernel. A deep copy also copies the captured arrays. An attention that is
    pickled is compiled again where it is loaded.
    """

    def __init__(self, plan: Plan, layout: str, arrays: List[Any]) -> None:
        self._plan, self._layout, self._arrays = plan, layout, arrays
        self._rows_first = _is_rows_first(layout)
        self.source: str = plan.text.forward
        self.compile_ms: float = plan.kernel.compile_ms
        self.load_ms: float = plan.kernel.load_ms
        self.is_from_disk: bool = plan.kernel.is_from_disk
        self.device = "cpu" if plan.device < 0 else f"cuda:{plan.device}"

    def __reduce__(self) -> Tuple:
        return Attention, (self._plan, self._layout, self._arrays)

    @_dynamo.disable
    def __call__(
        self,
        q: Any,
        k: Any,
        v: Any,
        *,
        scale: Optional[float] = None,
        sink: Any = None,
        out: Any = None,
        dropout_seed: Any = None,
    ) -> Any:
        """As `attention`. `scale` and `sink` are given if and only if the kernel was compiled with
        them; `dropout_seed` may be given if it was compiled with dropout.

        Args:
            out: an array of the shape and type of the output, or (output, lse) if the kernel
                returns both. The last dimension is contiguous; other strides are free. The array
                is filled and returned, and nothing is allocated. Gradients are refused.

        Raises:
            Error: an argument that does not fit.
        """
        plan, arrays = self._plan, self._arrays
        if dropout_seed is None:
            output = plan.direct(q, k, v, scale, sink, arrays, self._rows_first, False, out)
            if output is not None:
                return output
        problem = plan.problem
        if (scale is not None) != problem.has_scale or (sink is not None) != problem.has_sink:
            self._fail_optional("scale", scale, problem.has_scale)
            self._fail_optional("sink", sink, problem.has_sink)
        if hasattr(q, "get_device") and _arrays.is_autocast():
            q, k, v = _arrays.cast(q, k, v, type_=problem.type)
        if _arrays.is_foreign(q):
            if out is not None:
                got = _arrays.describe_type(q)
                _library.refuse("out", "q, k and v of NumPy or PyTorch beside it", got)
            mine = _foreign.import_named(q=q, k=k, v=v, sink=sink, dropout_seed=dropout_seed)
            how = dict(scale=scale, sink=mine[3], dropout_seed=mine[4])
            return _foreign.export(self(*mine[:3], **how), q)
        if _arrays.type_name(getattr(q, "dtype", None)) != problem.type:
            raise Error(
                "invalid argument",
                f"q: expected elements of {problem.type}, got " + _arrays.describe_type(q),
            )
        if problem.dropout:
            arrays = [*arrays, make_seed(dropout_seed, q, plan.device)]
        elif dropout_seed is not None:
            self._fail_optional("dropout_seed", dropout_seed, False, "dropout_p=0.1")
        if out is not None:
            return self._run_into(Given(q, k, v, scale, sink, self._rows_first, arrays), out)
        return run(plan, q, k, v, scale, sink, self._rows_first, arrays)

    def _run_into(self, given: Given, out: Any) -> Any:
        plan = self._plan
        is_pair = isinstance(out, (tuple, list)) and len(out) == 2
        if is_pair != plan.problem.return_lse or (not is_pair and isinstance(out, (tuple, list))):
            expected = "(output, lse)" if plan.problem.return_lse else "an array"
            raise Error("invalid argument", f"out: expected {expected}, got {type(out).__name__}")
        output, lse = out if is_pair else (out, None)
        run_into(plan, given, output, lse)
        return out

    @staticmethod
    def _fail_optional(name: str, x: Any, wanted: bool, how: str = "") -> None:
        if (x is not None) != wanted:
            got = "none" if wanted else "one"
            raise Error(
                "invalid argument",
                f"{name}: expected {'one' if wanted else 'none'}, got {got}",
                f"compile with {how or f'{name}={not wanted}'}",
            )

    def explain(self, until: str = "online") -> "Explanation":
        """As `attn.explain`."""
        return Explanation(_library.explain(self.source, self._plan.options, until))

    def __repr__(self) -> str:
        p = self._plan.problem
        return (
            f"<attn.Attention {p.type} D={p.head_dim} Dv={p.value_dim} layout={self._layout} "
            f"device={self.device}>"
        )


class Explanation(str):
    """Text that a prompt shows as it is."""

    def __repr__(self) -> str:
        return str(self)


@_dynamo.disable
def compile(
    dtype: Any,
    head_dim: int,
    value_dim: Optional[int] = None,
    *,
    scale: bool = False,
    causal: Union[bool, str] = False,
    window: Optional[Tuple[Optional[int], Optional[int]]] = None,
    score: Optional[Callable] = None,
    mask: Optional[Callable] = None,
    sink: bool = False,
    layout: str = "bhsd",
    return_lse: bool = False,
    device: Any = "cpu",
    options: Optional[Mapping[str, object]] = None,
    dropout_p: float = 0.0,
) -> Attention:
    """Compiles an attention for later calls with any lengths, batches and heads.

    Args:
        dtype: of q, k and v: a dtype of NumPy or PyTorch, or its name.
        head_dim: D, columns of q and k.
        value_dim: Dv, columns of v; D if None.
        scale: whether calls give a scale.
        sink: whether calls give a sink.
        device: "cpu", "cuda" (PyTorch's current device), "cuda:1", or a torch.device.
        causal, window, score, mask, layout, return_lse, options, dropout_p: as for `attention`.
                        Arrays are captured now; a call reads their elements of that time. Seeds of
                        dropout are
            given to calls, or drawn by them.

    Raises:
        Error: an argument that does not fit, or a function that cannot be traced.
    """
    _is_rows_first(layout)
    name = _arrays.device_name(device)
    problem = make_problem(
        dtype, head_dim, value_dim, causal, window, scale, sink, return_lse, name, dropout_p
    )
    source = Source(problem, score, mask, _scan(score, mask), name, Seed())
    plan = _make_plan(source, _check_options(options, name))
    arrays = source.arrays[:-1] if problem.dropout else source.arrays
    return Attention(plan, layout, _foreign.import_all(arrays))


def _check_call(arrays: List[Any]) -> None:
    for name, x in zip("qkv", arrays):
        if not _arrays.is_array(x) or len(x.shape) != 4:
            got = f"shape {tuple(x.shape)}" if hasattr(x, "shape") else type(x).__name__
            raise Error("invalid argument", f"{name}: expected an array of 4 dimensions, got {got}")


def explain(
    dtype: Any,
    head_dim: int,
    value_dim: Optional[int] = None,
    *,
    until: str = "online",
    gradient: bool = False,
    scale: bool = False,
    causal: Union[bool, str] = False,
    window: Optional[Tuple[Optional[int], Optional[int]]] = None,
    score: Optional[Callable] = None,
    mask: Optional[Callable] = None,
    sink: bool = False,
    layout: str = "bhsd",
    return_lse: bool = False,
    device: Any = "cpu",
    options: Optional[Mapping[str, object]] = None,
    dropout_p: float = 0.0,
) -> Explanation:
    """Explains how an attention is compiled.

    The text has the schedule and the rule that chose it, the key tiles that each mask visits, the
    times of compiling, and the IR after a room. For a GPU it also has the instructions of the PTX,
    floors of the time, and registers where a driver or ptxas can tell them. The GPU need not be
    there.

    q, k and v of a call may replace dtype, head_dim and value_dim, with its scale and sink. The
    text then also tells which way the call takes and whether its kernel is there, and on the CPU
    which tiles the mask keeps for batch 0 and head 0. No attention is computed.


    Args:
        until: "problem", "grid" or "online"; for a GPU also "tile", "placed", "async", "thread"
            and "ptx".
        gradient: explain the function of the gradients of q, k, v and the sink.
        dtype, head_dim, value_dim, and the others: as for `compile`.

    Returns:
        A text that a prompt shows as it is.

    Raises:
        Error: as `compile`.
    """
    call: List[Any] = []
    if _arrays.is_array(dtype):
        call = [dtype, head_dim, value_dim]
        _check_call(call)
        scale, sink = (x is not None and x is not False for x in (scale, sink))
        device = getattr(dtype, "device", "cpu") if _arrays.is_torch(dtype) else "cpu"
        dtype, head_dim, value_dim = (dtype.dtype, dtype.shape[-1], value_dim.shape[-1])
    rows_first = _is_rows_first(layout)
    name = _arrays.device_name(device)
    problem = make_problem(
        dtype, head_dim, value_dim, causal, window, scale, sink, return_lse, name, dropout_p
    )
    source = Source(problem, score, mask, _scan(score, mask), name, Seed())
    text = source.text.forward
    lines = ""
    if call:
        from ._call import describe

        how = {"causal": causal, "window": window, "mask": mask}
        reason = find_reason(text, _check_options(options, name))
        lines = describe(call, rows_first, reason, how)
    if gradient:
        wanted = ("query", "key", "value") + (("sink",) if sink else ())
        has_low = source.text.reads_low(name == "cpu")
        text = source.text.gradient(wanted, has_lse_gradient=False, has_low=has_low)
    return Explanation(lines + _library.explain(text, _check_options(options, name), until))
