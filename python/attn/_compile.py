"""compile, and the attention that it returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, Tuple, Union, overload

from . import _arrays, _dynamo, _foreign, _library
from ._explain import ExplainedSource, Explanation
from ._given import Given
from ._library import Error
from ._places import name_device
from ._plan import Plan, make_plan
from ._positions import check_kinds, find_placed, list_names, match_kinds
from ._problem import check_options, is_rows_first, make_spec
from ._run import run, run_into
from ._seed import Seed, make_seed
from ._source import Source
from .typing import (
    Array,
    ArrayT,
    Causal,
    Device,
    DropoutSeed,
    DType,
    Layout,
    Mask,
    OptionsLike,
    PositionKinds,
    Positions,
    Room,
    Score,
    Window,
)

# Of a call: arrays, or their shapes.
ArrayOrShape = Union[Array, Tuple[int, ...]]


def _get_shapes(q: Any, k: Any, v: Any) -> Any:
    """Of arrays, or shapes."""
    return tuple([tuple(getattr(x, "shape", None) or x or ()) for x in (q, k, v)])


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
        self._rows_first = is_rows_first(layout)
        self.source: str = plan.text.forward
        self.compile_ms: float = plan.kernel.compile_ms
        self.load_ms: float = plan.kernel.load_ms
        self.is_from_disk: bool = plan.kernel.is_from_disk
        self.device = name_device(plan.device)

    def __reduce__(self) -> Tuple:
        return Attention, (self._plan, self._layout, self._arrays)

    @_dynamo.disable
    def __call__(
        self,
        q: ArrayT,
        k: ArrayT,
        v: ArrayT,
        *,
        scale: Optional[float] = None,
        sink: Optional[Array] = None,
        out: Any = None,
        workspace: Optional[Array] = None,
        dropout_seed: DropoutSeed = None,
        positions: Optional[Positions] = None,
        total: Optional[Tuple[int, int]] = None,
    ) -> ArrayT:
        """As `attention`. `scale` and `sink` are given if and only if the kernel was compiled with
        them, and so are `positions`, with `total`; `dropout_seed` may be given if it was compiled with
        dropout.

        Args:
            out: an array of the shape and type of the output, or (output, lse) if the kernel
                returns both. The last dimension is contiguous; other strides are free. The array
                is filled and returned, and nothing is allocated. Gradients are refused.
            workspace: with `out`, an array of one dimension on the GPU, of `workspace_size` bytes, for
                what kernels of a call leave for each other. Its values may be anything. A call
                with few rows and many keys would otherwise allocate that memory in the order of
                the stream. A CPU takes none.

        Raises:
            Error: an argument that does not fit.
        """
        plan, arrays = self._plan, self._arrays
        if workspace is not None and out is None:
            _library.refuse("workspace", "one with out=", "none")
        if dropout_seed is None and workspace is None and positions is None and total is None:
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
            how.update(positions=positions, total=total)
            return _foreign.export(self(*mine[:3], **how), q)
        if _arrays.type_name(getattr(q, "dtype", None)) != problem.type:
            raise Error(
                "invalid argument",
                f"q: expected elements of {problem.type}, got " + _arrays.describe_type(q),
            )
        if problem.positions is not None or positions is not None or total is not None:
            arrays = [*arrays, *self._find_placed(q, k, positions, total)]
        if problem.dropout:
            arrays = [*arrays, make_seed(dropout_seed, q, plan.device)]
        elif dropout_seed is not None:
            self._fail_optional("dropout_seed", dropout_seed, False, "dropout_p=0.1")
        if out is not None:
            given = Given(q, k, v, scale, sink, self._rows_first, arrays)
            return self._run_into(given, out, workspace)
        return run(plan, q, k, v, scale, sink, self._rows_first, arrays)

    def _find_placed(self, q: Any, k: Any, positions: Any, total: Any) -> List[Any]:
        """The arrays that say positions of a call."""
        kinds = self._plan.problem.positions
        is_given = positions is not None or total is not None
        self._fail_optional(
            "positions", True if is_given else None, kinds is not None, 'positions=("origin", None)'
        )
        assert kinds is not None
        dim = 1 if self._rows_first else 2
        placed = find_placed((positions, total), q, k, self._rows_first)
        return match_kinds(placed, kinds, (q.shape[dim], k.shape[dim])).arrays

    def _run_into(self, given: Given, out: Any, workspace: Any) -> Any:
        plan = self._plan
        is_pair = isinstance(out, (tuple, list)) and len(out) == 2
        if is_pair != plan.problem.return_lse or (not is_pair and isinstance(out, (tuple, list))):
            expected = "(output, lse)" if plan.problem.return_lse else "an array"
            raise Error("invalid argument", f"out: expected {expected}, got {type(out).__name__}")
        output, lse = out if is_pair else (out, None)
        run_into(plan, given, output, lse, workspace)
        return out

    def prepare(
        self,
        q: Optional[ArrayOrShape] = None,
        k: Optional[ArrayOrShape] = None,
        v: Optional[ArrayOrShape] = None,
    ) -> None:
        """Compiles what calls with q, k and v of these shapes take, or, without them, what any call may
        take. Later calls then wait for nothing, and a CUDA graph can capture them. On the CPU there
        is one kernel for all calls, which is there.

        Args:
            q, k, v: arrays, or their shapes.

        Raises:
            Error: shapes that do not fit, or a kernel that does not compile.
        """
        shapes = None if q is None and k is None and v is None else _get_shapes(q, k, v)
        self._plan.prepare(shapes, self._rows_first, self._arrays)

    def way(self, q: ArrayOrShape, k: ArrayOrShape, v: ArrayOrShape) -> str:
        """The name of the kernel that calls with q, k and v of these shapes take, as `explain` lists
        them; empty for the one of most calls, and on the CPU."""
        return self._plan.choose_way(_get_shapes(q, k, v), self._rows_first, self._arrays)

    def workspace_size(self, q: ArrayOrShape, k: ArrayOrShape, v: ArrayOrShape) -> int:
        """The bytes of `workspace` of a call with q, k and v of these shapes; 0 for most, and on the
        CPU. Compiles what such calls take."""
        return self._plan.count_workspace(_get_shapes(q, k, v), self._rows_first, self._arrays)

    @staticmethod
    def _fail_optional(name: str, x: Any, wanted: bool, how: str = "") -> None:
        if (x is not None) != wanted:
            got = "none" if wanted else "one"
            raise Error(
                "invalid argument",
                f"{name}: expected {'one' if wanted else 'none'}, got {got}",
                f"compile with {how or f'{name}={not wanted}'}",
            )

    def explain(self, until: Room = "online") -> Explanation:
        """As `attn.explain`."""
        options = tuple(x for x in self._plan.options if x[0] != "lazy")
        return ExplainedSource(
            _library.explain(self.source, options, until), self.source, options
        )

    def __repr__(self) -> str:
        p = self._plan.problem
        return (
            f"<attn.Attention {p.type} D={p.head_dim} Dv={p.value_dim} layout={self._layout} "
            f"device={self.device}>"
        )


if TYPE_CHECKING:

    class AttentionWithLse(Attention):
        """An Attention whose calls return (output, lse)."""

        def __call__(  # type: ignore[override]
            self,
            q: ArrayT,
            k: ArrayT,
            v: ArrayT,
            *,
            scale: Optional[float] = None,
            sink: Optional[Array] = None,
            out: Any = None,
            workspace: Optional[Array] = None,
            dropout_seed: DropoutSeed = None,
            positions: Optional[Positions] = None,
            total: Optional[Tuple[int, int]] = None,
        ) -> Tuple[ArrayT, ArrayT]: ...

else:
    AttentionWithLse = Attention


@overload
def compile(
    dtype: DType,
    head_dim: int,
    value_dim: Optional[int] = None,
    *,
    scale: bool = False,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: bool = False,
    layout: Layout = "bhsd",
    return_lse: Literal[False] = False,
    device: Device = "cpu",
    options: OptionsLike = None,
    dropout_p: float = 0.0,
    out_dtype: Optional[DType] = None,
    positions: Optional[PositionKinds] = None,
) -> Attention: ...


@overload
def compile(
    dtype: DType,
    head_dim: int,
    value_dim: Optional[int] = None,
    *,
    scale: bool = False,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: bool = False,
    layout: Layout = "bhsd",
    return_lse: Literal[True],
    device: Device = "cpu",
    options: OptionsLike = None,
    dropout_p: float = 0.0,
    out_dtype: Optional[DType] = None,
    positions: Optional[PositionKinds] = None,
) -> AttentionWithLse: ...


@overload
def compile(
    dtype: DType,
    head_dim: int,
    value_dim: Optional[int] = None,
    *,
    scale: bool = False,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: bool = False,
    layout: Layout = "bhsd",
    return_lse: bool,
    device: Device = "cpu",
    options: OptionsLike = None,
    dropout_p: float = 0.0,
    out_dtype: Optional[DType] = None,
    positions: Optional[PositionKinds] = None,
) -> Union[Attention, AttentionWithLse]: ...


@_dynamo.disable
def compile(
    dtype: DType,
    head_dim: int,
    value_dim: Optional[int] = None,
    *,
    scale: bool = False,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[Mask] = None,
    sink: bool = False,
    layout: Layout = "bhsd",
    return_lse: bool = False,
    device: Device = "cpu",
    options: OptionsLike = None,
    dropout_p: float = 0.0,
    out_dtype: Optional[DType] = None,
    positions: Optional[PositionKinds] = None,
) -> Attention:
    """Compiles an attention for later calls with any lengths, batches and heads.

    Args:
        dtype: of q, k and v: a dtype of NumPy or PyTorch, or its name.
        head_dim: D, columns of q and k.
        value_dim: Dv, columns of v; D if None.
        scale: whether calls give a scale.
        sink: whether calls give a sink.
        positions: (rows, keys) where calls are parts of a whole, and give `positions` and `total` as
            for `attention`: None, "origin" or "table" for each. A table serves calls with any
            positions, an origin those with one interval.
        device: "cpu", "cuda" (PyTorch's current device), "cuda:1", or a torch.device.
        causal, window, score, mask, layout, return_lse, options, dropout_p, out_dtype: as for
            `attention`. Arrays are captured now; a call reads their elements of that time. Seeds of dropout are
            given to calls, or drawn by them.

    Raises:
        Error: an argument that does not fit, or a function that cannot be traced.
    """
    is_rows_first(layout)
    how: Dict[str, Any] = dict(
        scale=scale, sink=sink, causal=causal, window=window, score=score, mask=mask
    )
    how.update(return_lse=return_lse, dropout_p=dropout_p, out_dtype=out_dtype, positions=check_kinds(positions))
    spec = make_spec(dtype, head_dim, value_dim, device, **how)
    source = Source(spec, seed=Seed())
    texts = check_options(options, spec.device)
    # The kernel of most calls is compiled now, the others when calls take them.
    is_said = any(name == "lazy" for name, _ in texts)
    plan = make_plan(source, texts if is_said else (*texts, ("lazy", "off")))
    later = len(list_names(spec.positions)) if spec.positions else 0
    later += bool(source.problem.dropout)
    arrays = source.arrays[: len(source.arrays) - later]
    return Attention(plan, layout, _foreign.import_all(arrays))
