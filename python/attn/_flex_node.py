"""What torch.compile makes of flex_attention with functions: one node of the graph, in whose place
attn::forward stands as soon as the graph is run on anything.

Dynamo knows PyTorch's own flex_attention: it traces score and mask into graphs of scalars and lifts what
they capture into lists of tensors. It is told that this node is of the same kind. The graphs are
then run on attn's symbols, the lifted tensors being captured arrays.
"""

from __future__ import annotations

from typing import Any, List, Tuple

import torch
from torch._higher_order_ops.flex_attention import flex_attention as _pytorch_node
from torch._ops import HigherOrderOperator

from . import _dynamo, _eager, _watched
from ._given import Given
from ._indexing import index_as
from ._library import option_texts
from ._operations import fail
from ._positions import Placed
from ._problem import Spec
from ._scan import Captured, Scan
from ._seed import make_traced_seed
from ._source import Source
from ._symbols import active
from ._written import write_text

_NAME = "attn_flex_attention"


class _Interpreter(torch.fx.Interpreter):
    """Runs a graph on symbols, which answer to functions of PyTorch themselves."""

    def call_function(self, target: Any, args: Tuple, kwargs: Any) -> Any:
        name = getattr(target, "__name__", "")
        if name == "mod_index":
            table, indices = args
            return table[tuple(indices)]
        return target(*args, **kwargs)

    def call_method(self, target: str, args: Tuple, kwargs: Any) -> Any:
        receiver, *others = args
        function = getattr(receiver, target, None)
        if function is None:
            fail(f"expected a method that attn can compile, got .{target}()")
        return function(*others, **kwargs)


class _Function:
    """One graph and what was lifted out of it."""

    def __init__(self, graph: Any, lifted: Tuple, q: Any) -> None:
        self.graph = graph
        # Numbers that vary from call to call are captured like 0-d arrays.
        self.lifted = [
            x if isinstance(x, torch.Tensor) else q.new_full((), x, dtype=torch.int64)
            for x in lifted
        ]

    def run(self, *symbols: Any) -> Any:
        trace = active.trace
        captured = [trace.proxy(Captured(x), f"c{i}", None) for i, x in enumerate(self.lifted)]
        return _Interpreter(self.graph).run(*symbols, *captured)

    def is_trivial(self) -> bool:
        """Of a mask: whether it keeps everything; of a score: whether it is what it was given."""
        output = next(node for node in self.graph.graph.nodes if node.op == "output").args[0]
        node = output[0] if isinstance(output, (tuple, list)) else output
        if getattr(node, "op", "") == "placeholder":
            return node is next(iter(self.graph.graph.nodes))
        return getattr(node, "target", "") == "new_ones"


def check_gradients(source: Source) -> None:
    for capture, x in zip(source.captures, source.arrays):
        # What says positions may come with calls alone.
        if getattr(x, "requires_grad", False) and torch.is_grad_enabled():
            _watched.check_has_gradient(capture.name, x)


class Node(HigherOrderOperator):
    def __init__(self, name: str) -> None:
        super().__init__(name)

    def __call__(
        self,
        query: Any,
        key: Any,
        value: Any,
        score: Any,
        block_mask: Tuple,
        scale: Any,
        options: Any,
        of_score: Tuple = (),
        of_mask: Tuple = (),
    ) -> Any:
        """As Dynamo writes it down; `options` has causal, window, sink, rows_first, what the compiler
        is told, what indices outside mean, the type of the output, positions, and dropout with its seed.
        Returns (output, lse)."""
        tensors, indexing = (query, key, value), options["indexing"]
        if not isinstance(score, torch.nn.Module):
            functions = score, block_mask[-1]
            known = [None if x in (_keep_score, _keep_all) else index_as(x, indexing) for x in functions]
            return self.run_eagerly(tensors, known, scale, options)
        graphs = [_Function(score, of_score, query), _Function(block_mask[-1], of_mask, query)]
        known = [None if x.is_trivial() else index_as(x.run, indexing) for x in graphs]
        return self.run_traced(tensors, known, scale, options)

    def run_eagerly(self, tensors: Tuple, functions: List[Any], scale: Any, options: Any) -> Any:
        """A call whose functions Dynamo did not trace, around which it broke its graph."""
        said = scale, options["causal"], options["window"], *functions, options["sink"]
        kinds = options["kinds"]
        placed = None if kinds is None else Placed(kinds, options["arrays"])
        asked = *said, True, options["output"], placed
        layout = "bshd" if options["rows_first"] else "bhsd"
        last = dict(options["texts"]), options["dropout"], options["seed"]
        return _eager.call(*tensors, asked, layout, *last)

    def run_traced(self, tensors: Tuple, functions: List[Any], scale: Any, options: Any) -> Any:
        """A call of functions that run on symbols."""
        text, source = write(tensors, functions, (scale, options["sink"]), options)
        given = Given(*tensors, scale, options["sink"], options["rows_first"], [])
        return _watched.apply(text, given, source.arrays, True)


def write(tensors: Tuple, functions: List[Any], optional: Tuple, options: Any) -> Tuple[str, Source]:
    """The text of an attention, and where it is from. `optional` are the scale and the sink."""
    query, _, value = tensors
    score, mask = functions
    spec = Spec(
        query.dtype,
        int(query.shape[-1]),
        int(value.shape[-1]),
        str(query.device),
        causal=options["causal"],
        window=options["window"],
        score=score,
        mask=mask,
        has_scale=optional[0] is not None,
        has_sink=optional[1] is not None,
        return_lse=True,
        dropout=options["dropout"],
        out_dtype=options["output"],
        positions=options["kinds"],
    )
    source = Source(spec, Scan(), options["seed"], options["arrays"])
    check_gradients(source)
    return write_text(source.text, source.captures, options["texts"]), source


_node = Node(_NAME)


@_dynamo.assume_constant
def make_known(name: str) -> bool:
    """Runs while Dynamo traces, which is imported by then."""
    from torch._dynamo.variables import higher_order_ops as known

    classes = known._hop_name_to_variable_class
    classes[name] = classes[_pytorch_node.__name__]
    return True


def _keep_score(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
    return score


def _keep_all(b: Any, h: Any, q: Any, kv: Any) -> Any:
    # Dynamo of PyTorch 2.9 looks for its own function of this kind where it is not.
    return b.new_ones((), dtype=torch.bool)


def attend(
    query: Any, key: Any, value: Any, score: Any, mask: Any, *, from_end: bool = False, **how: Any
) -> Any:
    """(output, lse) of attention with functions of PyTorch, while Dynamo traces. Functions may be None.
    At distances too, indices below 0 count from the end if `from_end`. `how` may have scale, causal,
    window, sink, rows_first, options, dropout_p, dropout_seed, out_dtype and placed."""
    make_known(_NAME)
    options = make_options(query, from_end, how)
    return call(_node, (query, key, value), score, mask, how.get("scale"), options)


def make_options(query: Any, from_end: bool, how: Any) -> Any:
    """What a node is told; `how` as for `attend`."""
    get = how.get
    # A default of 0.0 would be a symbol where dynamic=True, and its value another trace.
    dropout, seed = (0.0, None)
    if get("dropout_p"):
        dropout, seed = make_traced_seed(get("dropout_p"), get("dropout_seed"), query)
    placed = get("placed")
    return {
        "kinds": None if placed is None else placed.kinds,
        "arrays": None if placed is None else placed.arrays,
        "causal": get("causal", False),
        "window": get("window"),
        "sink": get("sink"),
        "rows_first": get("rows_first", False),
        "dropout": dropout,
        "seed": seed,
        "output": get("out_dtype"),
        "texts": option_texts(get("options")),
        "indexing": "from the end" if from_end else "nearest",
    }


def call(node: Node, tensors: Tuple, score: Any, mask: Any, scale: Any, options: Any) -> Any:
    """While Dynamo traces, to which the node is known."""
    score = _keep_score if score is None else score
    mask = _keep_all if mask is None else mask
    return node(*tensors, score, (mask,), scale, options)
