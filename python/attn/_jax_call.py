"""A kernel as a custom call of XLA, and what jit, vmap and shardings make of it."""

from __future__ import annotations

import functools
import itertools
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from ._library import OptionTexts, library, refuse

TARGET = "attn_run"
_HANDLERS = {"cpu": library.attn_xla_run, "CUDA": library.attn_xla_run_cuda}
for _platform, _handler in _HANDLERS.items():
    jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(_handler), platform=_platform)

# ===- One custom call --------------------------------------------------------------------------===#

# Dimensions by letters: batch, heads, rows, keys, D of q and k, Dv of v, heads of k; those of captured
# arrays have others, each its own. Matrices are (B, S, H, D), as JAX has them.
Q, K, V, O, LSE, SINK = "bmhd", "bngd", "bnge", "bmhe", "bhm", "h"
# Of pages: how many, and the rows of one. Heads first is how kernels do not take them.
POOL_K, POOL_V, POOL_K_HEADS_FIRST, POOL_V_HEADS_FIRST = "wpgd", "wpge", "wgpd", "wgpe"
_SWAPPED = Q, K, V, O, POOL_K_HEADS_FIRST, POOL_V_HEADS_FIRST

BATCH, HEAD = -1, -2


def name_captured(ranks: Iterable[int]) -> List[str]:
    """Dimensions of captured arrays of these ranks."""
    letters = (letter for letter in map(chr, itertools.count(ord("A"))) if letter.isupper())
    return ["".join(itertools.islice(letters, rank)) for rank in ranks]


class Part(NamedTuple):
    source: str
    order: Tuple[int, ...]


class Call(NamedTuple):
    """A kernel, and the dimensions of what it takes and gives."""

    source: str
    options: OptionTexts
    arguments: Tuple[str, ...]
    # With the type, or None for that of q.
    results: Tuple[Tuple[str, Optional[str]], ...]
    # Its functions read the batch or the head: a part of these has other indices.
    reads_batch: bool
    reads_head: bool
    # The kernel for a part, which adds where it begins, and the position of each of its arguments
    # here, or BATCH or HEAD.
    part: Optional["Part"]

    def shapes(self, arrays: Tuple) -> List[Any]:
        extents: Dict[str, int] = {}
        for dims, x in zip(self.arguments, arrays):
            extents.update(zip(dims, x.shape))
        return [
            jax.ShapeDtypeStruct([extents[x] for x in dims], type_ or arrays[0].dtype)
            for dims, type_ in self.results
        ]

    def run(self, *arrays: Any) -> Tuple:
        dims = [*self.arguments, *[dims for dims, _ in self.results]]
        lines = "\n".join(f"{name.replace('_', '-')}={text}" for name, text in self.options)
        call = jax.ffi.ffi_call(TARGET, self.shapes(arrays))
        swapped = "".join("s" if x in _SWAPPED else "." for x in dims)
        return tuple(call(*arrays, source=self.source, options=lines, swapped=swapped))

    def run_part(self, batch: Any, head: Any, arrays: Tuple) -> Tuple:
        """On the part of batch and heads that begins there."""
        if self.part is None:
            return self.run(*arrays)
        begins = {BATCH: jnp.asarray(batch, jnp.int32), HEAD: jnp.asarray(head, jnp.int32)}
        order = self.part.order
        dims = tuple("" if i < 0 else self.arguments[i] for i in order)
        call = self._replace(source=self.part.source, arguments=dims, part=None)
        return call.run(*[begins[i] if i < 0 else arrays[i] for i in order])


# ===- Transforms -------------------------------------------------------------------------------===#


def _find_rule(call: Call, heads_of_k: int, group: int) -> Tuple[str, Dict[str, int]]:
    """Shardy's rule of a call, and sizes: heads of q are (heads of k, group)."""
    split = group > 1 and heads_of_k > 1
    heads = "(g x)" if split else "h" if group > 1 else "g"

    def write(dims: str) -> str:
        return " ".join(heads if x == "h" else f"y{ord(x)}" if x.isupper() else x for x in dims)

    arguments = ", ".join(write(dims) for dims in call.arguments)
    results = ", ".join(write(dims) for dims, _ in call.results)
    return f"{arguments} -> {results}", {"x": group} if split else {}


@functools.lru_cache(maxsize=512)
def _partition(call: Call, heads_of_k: int, group: int) -> Callable:
    """The call on parts of the batch and the heads, where its functions allow it."""

    @custom_partitioning
    def run(*arrays: Any) -> Tuple:
        return call.run(*arrays)

    def split(mesh: Any, arguments: Any, results: Any) -> Tuple:
        # q's sharding decides; a dimension of it that cannot be split is gathered.
        spec = (*arguments[0].sharding.spec, None, None, None, None)
        places = {"b": spec[0], "h": spec[2], "g": spec[2]}
        if call.part is None and call.reads_batch:
            places["b"] = None
        if heads_of_k == 1:
            # All heads share it.
            places["g"] = None
        elif not _divides(mesh, spec[2], heads_of_k):
            places["h"] = places["g"] = None
        if call.part is None and call.reads_head:
            places["h"] = places["g"] = None

        def place(dims: str) -> NamedSharding:
            return NamedSharding(mesh, PartitionSpec(*[places.get(x) for x in dims]))

        def run_part(*arrays: Any) -> Tuple:
            extents = arrays[0].shape
            begins = [_find_begin(places[x], extents[i]) for x, i in (("b", 0), ("h", 2))]
            results = []
            for x, (dims, _) in zip(call.run_part(*begins, arrays), call.results):
                # What has no batch is a sum over it; what heads share is one over them.
                x = x if "b" in dims or places["b"] is None else jax.lax.psum(x, places["b"])
                is_whole = "h" in dims or ("g" in dims and places["g"] == places["h"])
                is_whole = is_whole or places["h"] is None
                results.append(x if is_whole else jax.lax.psum(x, places["h"]))
            return tuple(results)

        wanted = tuple(place(dims) for dims in call.arguments)
        return mesh, run_part, tuple(place(dims) for dims, _ in call.results), wanted

    rule, sizes = _find_rule(call, heads_of_k, group)
    run.def_partition(partition=split, sharding_rule=rule, **sizes)
    return run


def _find_begin(axes: Any, extent: int) -> Any:
    """Of this device's part of a dimension, in which it has `extent`."""
    return 0 if axes is None else jax.lax.axis_index(axes) * extent


def _divides(mesh: Any, axes: Any, extent: int) -> bool:
    names = axes if isinstance(axes, tuple) else () if axes is None else (axes,)
    count = 1
    for name in names:
        count *= mesh.shape[name]
    return extent % count == 0


@functools.lru_cache(maxsize=512)
def bind(call: Call) -> Callable:
    """The call as vmap takes it: a mapped dimension is a part of the batch."""

    @custom_vmap
    def run(*arrays: Any) -> Tuple:
        heads, heads_of_k = arrays[0].shape[2], arrays[1].shape[call.arguments[1].index("g")]
        return _partition(call, heads_of_k, heads // heads_of_k)(*arrays)

    @run.def_vmap
    def fold(size: int, is_mapped: List[bool], *arrays: Any) -> Tuple:
        has_batch = ["b" in dims for dims in call.arguments]
        is_mapped = [bool(x) for x in is_mapped]
        of_batch = all(has for has, mapped in zip(has_batch, is_mapped) if mapped)
        if call.reads_batch or not of_batch or not all("b" in x for x, _ in call.results):
            # One after the other: each has a captured array, or a gradient, of its own.
            def run_one(mapped: List[Any]) -> Tuple:
                each = iter(mapped)
                return run(*[next(each) if m else x for x, m in zip(arrays, is_mapped)])

            found = jax.lax.map(run_one, [x for x, m in zip(arrays, is_mapped) if m])
            return found, (True,) * len(found)
        folded = []
        for x, has, mapped in zip(arrays, has_batch, is_mapped):
            if has:
                whole = x if mapped else jnp.broadcast_to(x, (size, *x.shape))
                x = whole.reshape(size * whole.shape[1], *whole.shape[2:])
            folded.append(x)
        # The batch of each, which the whole does not tell where there are none.
        batch = arrays[0].shape[1 if is_mapped[0] else 0]
        found = [x.reshape(size, batch, *x.shape[1:]) for x in run(*folded)]
        return tuple(found), (True,) * len(found)

    return run


# ===- Arguments --------------------------------------------------------------------------------===#


def is_on_gpu() -> bool:
    return jax.default_backend() in ("gpu", "cuda")


def to_jax(x: Any) -> Any:
    """A captured array of any library, in the type that the kernel is compiled for."""
    try:
        array = jnp.asarray(x)
        is_same = array.dtype.name == str(x.dtype).rpartition(".")[2]
        hint = f"capture jax.numpy.asarray of it, which is {array.dtype}, or set jax_enable_x64"
    except (RuntimeError, TypeError, ValueError) as error:
        # bfloat16 of PyTorch, tensors with gradients.
        is_same, hint = False, str(error).partition("\n")[0]
    if not is_same:
        refuse("score and mask", "captured arrays of types that JAX holds", x.dtype, hint)
    return array


def scale_score(score: Optional[Callable], scale: Any, columns: int) -> Callable:
    """The score with a scale of its own: kernels for GPUs take numbers from host memory, where XLA has
    none, and captured arrays from the GPU's."""
    factor = jnp.asarray(scale, jnp.float32) * columns**0.5

    def scaled(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        return s * factor if score is None else score(s * factor, b, h, q, kv)

    return scaled
