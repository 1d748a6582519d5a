"""attn for TensorFlow on the CPU, eagerly and inside of tf.function, with gradients:

    from attn.integrations.tensorflow import attention
    output = attention(q, k, v, causal=True)

Tensors of TensorFlow are handed over by DLPack: float32 and float16 are not copied. Results are copied
where NumPy's memory does not begin at a multiple of 64 bytes, as TensorFlow wants it.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy
import tensorflow as tf

import attn

from .._library import refuse
from .._scan import Scan
from ..typing import Causal, Layout, OptionsLike, Score, Window
from ..typing import Mask as MaskFunction
from ._tables import add_table, fit_table, read_table

__all__ = ["attention"]

_TYPES = tf.float32, tf.float16, tf.bfloat16


def _to_numpy(x: Any) -> Any:
    """A view of a tensor that holds values; NumPy has bfloat16 by another package alone."""
    return x.numpy() if x.dtype in (tf.bfloat16, tf.bool) else numpy.from_dlpack(x)


# Of memory that operations of TensorFlow read; they end the process at other addresses.
_ALIGNMENT = 64


def _to_tensor(x: Any) -> Any:
    """A result of attn as a tensor of TensorFlow: in the same memory where TensorFlow may read it."""
    is_aligned = x.__array_interface__["data"][0] % _ALIGNMENT == 0
    if x.dtype.name in ("float32", "float16") and x.size and is_aligned and x.flags.c_contiguous:
        return tf.experimental.dlpack.from_dlpack(x.__dlpack__())
    return tf.convert_to_tensor(x)


def _call(function: Callable[..., Sequence[Any]], tensors: List[Any], like: List[Any]) -> List[Any]:
    """The function of NumPy's arrays, now or when a graph runs. `like` has (dtype, shape) of results."""

    def run(*given: Any) -> List[Any]:
        return [_to_tensor(x) for x in function(*map(_to_numpy, given))]

    if tf.executing_eagerly():
        return run(*tensors)
    found = tf.py_function(run, tensors, [dtype for dtype, _ in like])
    for x, (_, shape) in zip(found, like):
        x.set_shape(shape)
    return list(found)


def _check(q: Any, k: Any, v: Any) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dtype not in _TYPES:
            refuse(name, "float32, float16 or bfloat16", x.dtype.name, "tf.cast(...)")
        if x.shape.rank != 4:
            refuse(name, "4 dimensions", f"shape {x.shape}")
        if "GPU" in getattr(x, "device", ""):
            hint = "with tf.device('CPU'), or PyTorch or JAX on a GPU"
            refuse(name, "a tensor on the CPU", f"one on {x.device}", hint)


def _check_functions(score: Any, mask: Any) -> None:
    """Refuses what a gradient would be lost of."""
    for name, function in (("score", score), ("mask", mask)):
        if function is None:
            continue
        pair = (function, None) if name == "score" else (None, function)
        for x in Scan.of(*pair).arrays:
            if isinstance(x, (tf.Tensor, tf.Variable)):
                hint = "x.numpy(), or bias= for what is added to scores"
                refuse(
                    name,
                    "arrays of NumPy, which are constants",
                    f"a tensor of {x.dtype.name}",
                    hint,
                )


def attention(
    q: tf.Tensor,
    k: tf.Tensor,
    v: tf.Tensor,
    *,
    scale: Optional[float] = None,
    causal: Causal = False,
    window: Optional[Window] = None,
    score: Optional[Score] = None,
    mask: Optional[MaskFunction] = None,
    bias: Optional[tf.Tensor] = None,
    keep: Optional[tf.Tensor] = None,
    sink: Optional[tf.Tensor] = None,
    layout: Layout = "bhsd",
    return_lse: bool = False,
    options: OptionsLike = None,
) -> Any:
    """attn.attention of tensors of TensorFlow, whose gradients a tf.GradientTape finds.

    Args:
        q, k, v, scale, causal, window, sink, layout, return_lse, options: as for `attn.attention`.
        score, mask: as for `attn.attention`. Arrays that they read are of NumPy, and are constants.
        bias: a tensor that broadcasts to (B, H, M, N), added to the scores.
        keep: a tensor of bools that broadcasts to (B, H, M, N): which keys are kept.

    Gradients of q, k, v, the sink and the bias are computed; first derivatives only. Inside of
    tf.function the call is a tf.py_function: graphs that are saved, and jit_compile=True, refuse it.

    Returns:
        The output, or (output, lse).

    Raises:
        Error: an argument that does not fit, a tensor on a GPU, a score that reads tensors of
            TensorFlow, or a second derivative.
    """
    q, k, v = (tf.convert_to_tensor(x) for x in (q, k, v))
    _check(q, k, v)
    _check_functions(score, mask)
    named = {"q": q, "k": k, "v": v}
    for name, x in (("sink", sink), ("bias", bias), ("keep", keep)):
        if x is not None:
            named[name] = x = tf.convert_to_tensor(x)
            # Of a graph, what is known when it is made.
            if name != "sink" and x.shape.rank is not None:
                fit_table(name, x.shape, _find_whole(q, k, layout))
    rows = (q.shape[0], *((q.shape[2], q.shape[1]) if layout == "bshd" else q.shape[1:3]))
    how: Dict[str, Any] = dict(scale=scale, causal=causal, window=window, layout=layout)
    how["options"] = options

    @tf.custom_gradient
    def attend(*tensors: Any) -> Any:
        def forward(*arrays: Any) -> Tuple[Any, Any]:
            given = dict(zip(named, arrays))
            return attn.attention(**_bind(given, score, mask, layout), return_lse=True, **how)

        of_output = (*q.shape[:3], v.shape[3])
        output, lse = _call(forward, [*tensors], [(q.dtype, of_output), (tf.float32, rows)])

        def differentiate(d_output: Any, d_lse: Any) -> List[Any]:
            return _find_gradients([*tensors], output, lse, d_output, d_lse)

        return (output, lse), differentiate

    @tf.custom_gradient
    def _find_gradients_once(*tensors: Any) -> Any:
        def backward(*arrays: Any) -> List[Any]:
            *given, output, lse, d_output, d_lse = arrays
            return _compute(
                dict(zip(named, given)), (output, lse, d_output, d_lse), score, mask, how
            )

        wanted = [x for name, x in named.items() if name != "keep"]
        like = [(x.dtype, x.shape) for x in wanted]

        def refuse_more(*_: Any) -> Any:
            refuse("attention", "first derivatives", "a second one: there is no such kernel")

        return tuple(_call(backward, [*tensors], like)), refuse_more

    def _find_gradients(tensors: List[Any], *of: Any) -> List[Any]:
        found = list(_find_gradients_once(*tensors, *of))
        return found + [None] * ("keep" in named)

    output, lse = attend(*named.values())
    return (output, lse) if return_lse else output


def _find_whole(q: Any, k: Any, layout: str) -> Tuple[Any, ...]:
    """(B, H, M, N)."""
    head_dim, dim = (2, 1) if layout == "bshd" else (1, 2)
    return q.shape[0], q.shape[head_dim], q.shape[dim], k.shape[dim]


def _bind(given: Dict[str, Any], score: Any, mask: Any, layout: str) -> Dict[str, Any]:
    """The arguments of attn.attention, with the tables in its functions."""
    whole = _find_whole(given["q"], given["k"], layout)
    given = dict(given)
    bias, keep = given.pop("bias", None), given.pop("keep", None)
    given["score"] = score if bias is None else add_table(_to_table(bias, "bias", whole), score)
    given["mask"] = mask if keep is None else _keep(mask, _to_table(keep, "keep", whole))
    return given


def _to_table(x: Any, name: str, whole: Tuple[Any, ...]) -> Any:
    return x.reshape(fit_table(name, x.shape, whole))


def _keep(mask: Any, table: Any) -> Any:
    read = read_table(table)
    if mask is None:
        return lambda b, h, i, j: read(b, h, i, j)
    return lambda b, h, i, j: mask(b, h, i, j) & read(b, h, i, j)


def _compute(
    given: Dict[str, Any], of: Tuple[Any, ...], score: Any, mask: Any, how: Dict[str, Any]
) -> List[Any]:
    """Gradients of all but `keep`, in the types of what they are of."""
    output, lse, d_output, d_lse = of
    bias, whole = given.get("bias"), _find_whole(given["q"], given["k"], how["layout"])
    table = None if bias is None else _to_table(bias, "bias", whole)
    arguments = _bind({**given, "bias": table} if bias is not None else given, score, mask, how["layout"])
    wrt = () if table is None else (table,)
    results = dict(output=output, lse=lse, d_lse=numpy.ascontiguousarray(d_lse))
    found = attn.gradient(
        d_output=numpy.ascontiguousarray(d_output), **results, **arguments, **how, wrt=wrt
    )
    named = dict(zip(("q", "k", "v", *(["sink"] if "sink" in given else []), "bias"), found))
    return [named[x].reshape(given[x].shape).astype(given[x].dtype) for x in given if x != "keep"]
