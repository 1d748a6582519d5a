"""Score and mask functions in Python -> regions of IR.

A traced function is called once, with symbols. It runs as a copy whose captured arrays (those in
its closure, its defaults and the globals that it names, and likewise in the functions that it calls)
are replaced by proxies, so that plain `slopes[h]` is seen, whichever library the array is of.
"""

from __future__ import annotations

import builtins
import enum
import functools
import operator
import re
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _arrays, _foreign, _functions, _operations
from ._indexing import Indexing, Steps, find_indexing, place
from ._library import Error
from ._operations import fail, resolve
from ._positions import TOTAL
from ._rows import ROW_OPERATORS, Row, call_by_name
from ._scan import (
    PLAIN,
    UNSEEN,
    Captured,
    Own,
    Path,
    Paths,
    Scan,
    as_function,
    children,
    is_fixed,
    is_holder,
    is_of_jax,
    is_of_library,
    reads,
    uses_of,
)
from ._symbols import MAX_EXTENT, Operand, Symbol, active
from ._trace_errors import explain_call, find_place


class Length(Operand):
    """`attn.query_length` or `attn.key_length`: the M or N of a call."""

    def __init__(self, name: str, argument: str) -> None:
        self.name, self.argument = name, argument

    def _attn_symbol(self) -> Symbol:
        trace = getattr(active, "trace", None)
        if trace is None:
            fail(f"expected attn.{self.name} inside a score or mask function, got it outside")
        return trace.length(self.name, self.argument)

    def __repr__(self) -> str:
        return f"attn.{self.name}"


class Capture:
    """An array that a trace reads: an argument of the kernel. Plans outlive the array itself."""

    def __init__(
        self,
        name: str,
        array: Any,
        slot: Optional[int],
        is_sorted: bool,
        is_natural: bool = False,
        own: Optional[Own] = None,
    ) -> None:
        self.name, self.slot, self.own = name, slot, own
        self.is_sorted, self.is_natural = is_sorted, is_natural
        self.element = _arrays.type_name(array.dtype) or ""
        # Any byte but 0 is true, where views make bools of bytes: they are read as bytes.
        self.type = "i8" if self.element == "i1" else self.element
        self.rank = len(array.shape)
        self.is_strided = _foreign.is_strided(array)
        self.last = int(array.shape[-1]) if self.rank else 0
        # PyTorch's is a method, NumPy's and JAX's a number.
        self.has_size = callable(getattr(array, "size", None))
        # The extents that constant indices need.
        self.least = [0] * self.rank

    @property
    def ir_type(self) -> str:
        return f"tensor<{'?x' * self.rank}{self.type}>"


class Proxy:
    """A captured array in a traced function, indexed as far as `prefix`."""

    def __init__(self, trace: "Trace", capture: Capture, prefix: Tuple[Any, ...] = ()) -> None:
        self._trace, self._capture, self._prefix = trace, capture, prefix

    def __getitem__(self, index: Any) -> Any:
        indices = self._prefix + (index if isinstance(index, tuple) else (index,))
        capture = self._capture
        if len(indices) > capture.rank:
            fail(f"{capture.name}: expected {capture.rank} indices, got {len(indices)}")
        if len(indices) < capture.rank:
            return Proxy(self._trace, capture, indices)
        return self._trace.read(capture, indices)

    @property
    def shape(self) -> Tuple[Symbol, ...]:
        """Extents, as values of the call."""
        dims = range(len(self._prefix), self._capture.rank)
        return tuple(self._trace.extent(self._capture, dim) for dim in dims)

    def __len__(self) -> int:
        fail(
            f"{self._capture.name}: expected no len() of an array whose length is a value of the call",
            f"use {self._capture.name}.shape[0]",
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if name == "size" and self._capture.has_size:
            return self._find_size
        if self._capture.rank - len(self._prefix) == 1:
            return getattr(self._attn_row(), name)
        fail(
            f"{self._capture.name}: expected an index of a captured array, got .{name}",
            "compute it before the call, outside of the function",
        )

    def _find_size(self, dim: Optional[int] = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def _refuse(self, *others: Any) -> Any:
        missing = self._capture.rank - len(self._prefix)
        fail(
            f"{self._capture.name}: expected one element, got an array that lacks {missing} indices",
            "index captured arrays down to one element",
        )

    __bool__ = __float__ = __int__ = __index__ = _attn_symbol = _refuse  # type: ignore
    __hash__ = object.__hash__

    def _attn_row(self) -> Row:
        """Its elements, where one index is missing. The text then tells of this call's array only."""
        capture = self._capture
        if capture.rank - len(self._prefix) != 1:
            self._refuse()
        self._trace.is_volatile = True
        read = self._trace.read
        return Row([read(capture, (*self._prefix, i)) for i in range(capture.last)])

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, inputs: Any = (), options: Any = None
    ) -> Any:
        return call_by_name(function.__name__, inputs, options or {})


def _delegate_to_row(name: str) -> None:
    setattr(Proxy, name, lambda self, *others: getattr(self._attn_row(), name)(*others))


for _name in ROW_OPERATORS:
    _delegate_to_row(_name)


class ObjectProxy:
    """An object, a class or a module whose captured arrays are proxies.

    `known` are the values of what Scan has seen to be read of it, by path; it answers to the names
    in `path`. Operators are those of the object.
    """

    def __init__(
        self,
        trace: "Trace",
        target: Any,
        known: Optional[Dict[Path, Any]] = None,
        path: Path = (),
    ) -> None:
        self._attn_trace, self._attn_target = trace, target
        self._attn_known, self._attn_path = known or {}, path

    @property
    def __class__(self) -> Any:
        return type(self._attn_target)

    def __getattr__(self, name: str) -> Any:
        trace, known, path = self._attn_trace, self._attn_known, (*self._attn_path, name)
        if path in known:
            return known[path]
        value = getattr(self._attn_target, name)
        if any(x[: len(path)] == path for x in known):
            return ObjectProxy(trace, value, known, path)
        if name.startswith("__") and name.endswith("__"):
            return value
        trace.is_volatile = True
        return trace.substitute(value, name, Slots(None))

    def __getitem__(self, index: Any) -> Any:
        return self._attn_trace.substitute(self._attn_target[index], "captured", Slots(None))

    def __iter__(self) -> Any:
        for value in self._attn_target:
            yield self._attn_trace.substitute(value, "captured", Slots(None))

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        function = as_function(self._attn_target)
        if function is not self._attn_target:
            function = self._attn_trace.substitute(function, "captured", Slots(None))
        return function(*arguments, **options)


def _delegate(name: str) -> None:
    special = f"__{name.rstrip('_')}__"
    function = getattr(operator, special, None) or getattr(builtins, name)

    def plain(x: Any) -> Any:
        return x._attn_target if type(x) is ObjectProxy else x

    def call(self: Any, *others: Any) -> Any:
        return function(self._attn_target, *(plain(x) for x in others))

    def reflected(self: Any, other: Any) -> Any:
        return function(plain(other), self._attn_target)

    setattr(ObjectProxy, special, call)
    if name in _BINARY:
        setattr(ObjectProxy, f"__r{special[2:]}", reflected)


_BINARY = "add sub mul truediv floordiv mod pow and_ or_ xor".split()
for _name in (
    *_BINARY,
    *"eq ne lt le gt ge neg abs invert contains index bool int float len hash str repr".split(),
):
    _delegate(_name)


class Slots:
    """Counts captured arrays in the order of `scan`; without an order, every slot is None."""

    def __init__(self, first: Optional[int]) -> None:
        self.next = first

    @staticmethod
    def of(scan: Scan) -> "Slots":
        return Slots(None if scan.is_volatile else 0)

    def take(self) -> Optional[int]:
        if self.next is None:
            return None
        self.next += 1
        return self.next - 1


# ===- Tracing --------------------------------------------------------------------------------===#

_SYMBOLIC_BUILTINS = {
    "min": lambda *values: functools.reduce(_operations.minimum, values),
    "max": lambda *values: functools.reduce(_operations.maximum, values),
}

# What a tensor in the place of a function was to do.
_WAYS_TO_READ = {
    "mask": "read it in one: mask=lambda b, h, q, kv: keep[b, h, q, kv]",
    "score": "read it in one: score=lambda s, b, h, q, kv: s + bias[b, h, q, kv]",
}

_CALLS = {"mask": "mask(b, h, q, kv)", "score": "score(s, b, h, q, kv)"}

_POSITION = (0, MAX_EXTENT - 1)


class Trace:
    """The regions of one kernel, its captures, and what is computed in front of it."""

    def __init__(self, query_type: str, key_type: str, taken: List[str]) -> None:
        """`taken` are names of what variants capture; `total` among them has M and N."""
        self._types = {"q": query_type, "k": key_type}
        self._has_total = TOTAL in taken
        self.captures: List[Capture] = []
        # Of the captures, in their order.
        self.arrays: List[Any] = []
        self._lazy: List[Any] = []
        self.before: List[str] = []
        self.lines: List[str] = []
        self._names = {"q", "k", "v", "o", "lse", "scale", "sink", "s", "b", "h", "m", "n"}
        self._names.update(taken)
        self._count = 0
        self._before_values: Dict[Any, Symbol] = {}
        self._by_array: Dict[Any, Capture] = {}
        self._constants: Dict[Tuple[str, str], Symbol] = {}
        # By the identities of functions, of functions and their owners, and of lists.
        self._copies: Dict[Any, Any] = {}
        # It read what Scan had not seen.
        self.is_volatile = False
        # Of the function that runs.
        self.indexing, self.steps = Indexing.NEAREST, Steps(self.lines)

    # Emission.

    def emit(self, text: str, type_: str, bounds: Optional[Tuple[int, int]] = None) -> Symbol:
        # Names that are numbers would have to be in order.
        name = f"%t{self._count}"
        self._count += 1
        self.lines.append(f"{name} = {text}")
        return Symbol(self, name, type_, bounds)

    def constant(self, text: str, type_: str, bounds: Optional[Tuple[int, int]] = None) -> Symbol:
        known = self._constants.get((text, type_))
        if known is None:
            suffix = "" if type_ == "i1" else f" : {type_}"
            known = self.emit(f"arith.constant {text}{suffix}", type_, bounds)
            self._constants[text, type_] = known
        return known

    def _emit_before(
        self, key: Any, text: str, type_: str, bounds: Optional[Tuple[int, int]] = None
    ) -> Symbol:
        if key not in self._before_values:
            name = f"%u{len(self._before_values)}"
            self.before.append(f"{name} = {text}")
            self._before_values[key] = Symbol(self, name, type_, bounds)
        return self._before_values[key]

    def _dim(self, argument: str, type_: str, dim: int) -> Symbol:
        index = self._emit_before(("c", dim), f"arith.constant {dim} : index", "index")
        text = f"tensor.dim %{argument}, {index.name} : {type_}"
        return self._emit_before((argument, dim), text, "index", _POSITION)

    def length(self, name: str, argument: str) -> Symbol:
        if not self._has_total:
            return self._dim(argument, self._types[argument], 2)
        number = 0 if argument == "q" else 1
        index = self._emit_before(("c", number), f"arith.constant {number} : index", "index")
        text = f"tensor.extract %{TOTAL}[{index.name}] : tensor<?xi32>"
        word = self._emit_before((TOTAL, number), text, "i32")
        text = f"arith.index_cast {word.name} : i32 to index"
        return self._emit_before(("length", number), text, "index", _POSITION)

    def extent(self, capture: Capture, dim: int) -> Symbol:
        return self._dim(capture.name, capture.ir_type, dim)

    # Captures.

    def capture(self, captured: Captured, name: str, slot: Optional[int]) -> Capture:
        # The same array under two names may be two arrays in the next call.
        key: Any = (id(captured.array), captured.own) if slot is None else slot
        known = self._by_array.get(key)
        if known is not None:
            return known
        type_ = _arrays.type_name(captured.array.dtype)
        if type_ is None or type_.startswith("f8"):
            fail(
                f"{name}: expected elements of float16, bfloat16, float32, float64, bool, int8, int32 or "
                f"int64, got {captured.array.dtype}",
                "convert the array",
            )
        if captured.is_sorted and type_ not in ("i8", "i32", "i64"):
            fail(f"{name}: expected sorted integers, got {captured.array.dtype}")
        stem = re.sub(r"\W", "_", name, flags=re.ASCII) or "captured"
        stem = stem if stem[0].isalpha() else "x" + stem
        unique, count = stem, 1
        while unique in self._names or re.fullmatch(r"[tu]\d+", unique):
            unique, count = f"{stem}_{count}", count + 1
        self._names.add(unique)
        capture = Capture(
            unique, captured.array, slot, captured.is_sorted, captured.is_natural, captured.own
        )
        self.captures.append(capture)
        self.arrays.append(captured.array)
        self._by_array[key] = capture
        return capture

    def proxy(self, captured: Captured, name: str, slot: Optional[int]) -> Any:
        kind = _LazyProxy if len(captured.array.shape) else _LazyScalar
        proxy = kind(self, captured, name, slot)
        self._lazy.append(proxy)
        return proxy

    def close(self) -> None:
        """Lets go of arrays: copies of functions are cycles, which live until they are collected."""
        for proxy in self._lazy:
            proxy._lazy = None
        self._lazy, self.arrays = [], []
        self._copies, self._by_array = {}, {}

    def read(self, capture: Capture, indices: Tuple[Any, ...]) -> Symbol:
        names = []
        for dim, index in enumerate(indices):
            if isinstance(index, slice) or index is None or index is Ellipsis:
                fail(
                    f"{capture.name}: expected an integer index, got {index!r}",
                    "index captured arrays down to one element",
                )
            index = resolve(index)
            if _operations.kind(index) != "int":
                fail(
                    f"{capture.name}: expected an integer index in dimension {dim}, got a "
                    f"{_operations.kind(index)}",
                    "convert it by attn.to_int(x), x.to(int) or x.long()",
                )
            if capture.own is not None and capture.own[0] == dim:
                _check_own(capture, index)
            index = place(self, capture, dim, index)
            names.append(_operations.to_type(self, index, "index").name)
        source, type_ = "%" + capture.name, capture.type
        if capture.is_sorted:
            text = f"attn.assume nondecreasing {source} : {capture.ir_type}"
            source = self._emit_before(("sorted", capture.name), text, "").name
        mark = "" if capture.own is None else f" {{attn.own = array<i64: {capture.own[0]}>}}"
        text = f"tensor.extract {source}[{', '.join(names)}]{mark} : {capture.ir_type}"
        value = self.emit(text, type_)
        if capture.is_natural:
            value.low = 0
        if capture.element == "i1":
            return _operations.compare("ne", value, 0)
        return self._widen(value)

    def _widen(self, value: Symbol) -> Symbol:
        if value.type in ("f16", "bf16"):
            return self.emit(f"arith.extf {value.name} : {value.type} to f32", "f32")
        if value.type == "f64":
            return self.emit(f"arith.truncf {value.name} : f64 to f32", "f32")
        return value

    def scalar(self, capture: Capture) -> Symbol:
        """The element of a 0-d array, read in front of the kernel."""
        text = f"tensor.extract %{capture.name}[] : {capture.ir_type}"
        value = self._emit_before(("scalar", capture.name), text, capture.type)
        if capture.element == "i1":
            zero = self._emit_before(("zero",), "arith.constant 0 : i8", "i8")
            text = f"arith.cmpi ne, {value.name}, {zero.name} : i8"
            return self._emit_before(("bool", capture.name), text, "i1")
        if value.type in ("f16", "bf16", "f64"):
            op = "truncf" if value.type == "f64" else "extf"
            text = f"arith.{op} {value.name} : {value.type} to f32"
            return self._emit_before(("f32", capture.name), text, "f32")
        if value.type in ("i8", "i32", "i64"):
            text = f"arith.index_cast {value.name} : {value.type} to index"
            return self._emit_before(
                ("index", capture.name), text, "index", (value.low, value.high)
            )
        return value

    # Copies of functions.

    def substitute(self, value: Any, name: str, slots: Slots, paths: Paths = None) -> Any:
        """The value with proxies for arrays. Visits in the order of Scan."""
        kind = type(value)
        if kind in PLAIN:
            return value
        if is_of_jax(value):
            return _of_jax_or_symbols(value)
        if kind is types.FunctionType:
            return self._copy(value, slots)
        if _arrays.is_array(value):
            return self.proxy(Captured(value), name, slots.take())
        if kind is Captured:
            return self.proxy(value, name, slots.take())
        if kind in (tuple, list):
            if id(value) not in self._copies:
                # Known before it is filled: a list may hold itself.
                elements: List[Any] = []
                self._copies[id(value)] = elements
                elements += [self.substitute(x, f"{name}_{i}", slots) for i, x in enumerate(value)]
                self._copies[id(value)] = elements if kind is list else tuple(elements)
            return self._copies[id(value)]
        if kind is functools.partial:
            function = self.substitute(value.func, name, slots)
            arguments = [self.substitute(x, f"{name}_{i}", slots) for i, x in enumerate(value.args)]
            options = {key: self.substitute(x, key, slots) for key, x in value.keywords.items()}
            return functools.partial(function, *arguments, **options)
        if kind is types.MethodType:
            return self._copy_method(value, slots)
        if is_fixed(value) or isinstance(value, enum.Enum) or not is_holder(value):
            return value
        if kind is types.ModuleType and is_of_library(value):
            return _JaxModule(value) if value.__name__.partition(".")[0] == "jax" else value
        if paths is not None:
            seen = [(path, x) for path, x in reads(value, paths) if x is not UNSEEN]
            known = {path: self.substitute(x, path[-1], slots) for path, x in seen}
            return ObjectProxy(self, value, known)
        if hasattr(value, "__dict__") and not isinstance(value, type):
            return ObjectProxy(self, value)
        return value

    def _copy_method(self, method: types.MethodType, slots: Slots) -> Any:
        function, owner = method.__func__, method.__self__
        if type(function) is not types.FunctionType or is_of_library(function):
            return method
        copy = self._copy(function, slots, owner)
        return types.MethodType(copy, self._copies[id(function), id(owner), "owner"])

    def _copy(self, function: types.FunctionType, slots: Slots, *owner: Any) -> Any:
        if is_of_library(function) and not function.__closure__:
            return function
        key = (id(function), *map(id, owner))
        known = self._copies.get(key)
        if known is not None:
            return known
        cells = {name: types.CellType() for name in function.__code__.co_freevars}
        values = _copy_globals(function)
        copy = types.FunctionType(
            function.__code__,
            values,
            function.__name__,
            None,
            tuple(cells.values()) if function.__closure__ else None,
        )
        # Known before its captures are visited: functions may call themselves.
        self._copies[key] = copy
        defaults: List[Any] = []
        keyword_defaults: Dict[str, Any] = {}
        for place, name, value, paths in children(function, *owner):
            value = self.substitute(value, name, slots, paths)
            if place == "cell":
                cells[name].cell_contents = value
            elif place == "default":
                defaults.append(value)
            elif place == "kwdefault":
                keyword_defaults[name] = value
            elif place == "attribute":
                setattr(copy, name, value)
            elif place == "owner":
                self._copies[(*key, "owner")] = value
            else:
                values[name] = value
        copy.__defaults__ = tuple(defaults) or None
        copy.__kwdefaults__ = keyword_defaults or None
        return copy

    # Calls.

    def run(self, function: Callable, what: str, slots: Slots) -> List[str]:
        """The lines of a region: calls the function on symbols."""
        if not callable(function):
            raise Error(
                "invalid argument",
                f"{what}: expected a function, got {_arrays.describe_type(function)}",
                _WAYS_TO_READ[what] if _arrays.is_array(function) else "",
            )
        function = as_function(function)
        self.lines, self._constants = [], {}
        self.indexing, self.steps = find_indexing(function), Steps(self.lines)
        arguments = [Symbol(self, "%s", "f32")] if what == "score" else []
        arguments += [Symbol(self, f"%{letter}", "index", _POSITION) for letter in "bhmn"]
        outer = getattr(active, "trace", None)
        active.trace = self
        try:
            copy = self.substitute(function, what, slots)
            result = copy(*arguments)
            return self._finish(function, what, result)
        except (
            TypeError,
            ValueError,
            LookupError,
            NameError,
            AttributeError,
            ArithmeticError,
            RuntimeError,
        ) as error:
            raise Error(
                "invalid kernel",
                f"{what}: {type(error).__name__}: " + str(error).partition("\n")[0],
                explain_call(error, _CALLS[what]),
                find_place(error, function),
            ) from error
        finally:
            active.trace = outer

    def _finish(self, function: Callable, what: str, result: Any) -> List[str]:
        place = find_place(None, function)
        if result is None:
            raise Error(
                "invalid kernel", f"{what}: expected a value, got None", "return one", place
            )
        result = resolve(result)
        if what == "mask" and _operations.kind(result) != "bool":
            raise Error(
                "invalid kernel",
                f"mask: expected a bool, got a {_operations.kind(result)}",
                "compare it, or pass the function as score=",
                place,
            )
        if what == "score" and _operations.kind(result) == "bool":
            raise Error(
                "invalid kernel",
                "score: expected a float, got a bool",
                "pass the function as mask=",
                place,
            )
        type_ = "f32" if what == "score" else "i1"
        value = _operations.to_type(self, result, type_)
        return [*self.lines, f"attn.yield {value.name} : {type_}"]


def _check_own(capture: Capture, index: Any) -> None:
    """Of a dimension of which there is a part alone."""
    dim, letter = capture.own or (0, "m")
    if getattr(index, "name", None) != f"%{letter}":
        what = "row" if letter == "m" else "key"
        fail(
            f"{capture.name}: expected the {what} of the function as index {dim}, along which the array is "
            f"sharded as {what}s are, got another one",
            "give the whole array where it is read elsewhere",
        )


def _copy_globals(function: types.FunctionType) -> Dict[str, Any]:
    """Its globals, with min and max that take symbols."""
    values = dict(function.__globals__)
    if is_of_library(function):
        return values
    given = values.get("__builtins__", builtins)
    for name, replacement in _SYMBOLIC_BUILTINS.items():
        if name in uses_of(function.__code__).globals and name not in values:
            original = given.get(name) if isinstance(given, dict) else getattr(given, name, None)
            values[name] = _either(original, replacement)
    return values


class _LazyProxy(Proxy):
    """Becomes a capture when it is first used: not every array that a function names is read."""

    def __init__(self, trace: Trace, captured: Captured, name: str, slot: Optional[int]) -> None:
        self._trace, self._lazy, self._prefix = trace, (captured, name, slot), ()

    @property
    def _capture(self) -> Capture:  # type: ignore[override]
        return self._trace.capture(*self._lazy)


class _LazyScalar(Operand):
    """A captured 0-d array: a number of the call."""

    def __init__(self, trace: Trace, captured: Captured, name: str, slot: Optional[int]) -> None:
        self._trace, self._lazy = trace, (captured, name, slot)

    def _attn_symbol(self) -> Symbol:
        return self._trace.scalar(self._trace.capture(*self._lazy))

    def __getitem__(self, index: Any) -> Symbol:
        if index != () and index is not Ellipsis:
            fail(f"{self._lazy[1]}: expected no index of a 0-d array, got {index!r}")
        return self._attn_symbol()

    def item(self) -> Symbol:
        return self._attn_symbol()


class _JaxModule:
    """jax.numpy, jax.nn or jax.lax, whose functions also take symbols."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, types.ModuleType):
            return _JaxModule(value)
        return _of_jax_or_symbols(value) if is_of_jax(value) else value


def _of_jax_or_symbols(function: Any) -> Callable:
    replacement = _functions.BY_NAME[function.__name__]

    def call(*values: Any, **options: Any) -> Any:
        if any(isinstance(x, (Operand, Proxy)) for x in (*values, *options.values())):
            return replacement(*values, **options)
        return function(*values, **options)

    return call


def _either(original: Any, replacement: Callable) -> Callable:
    """min and max that also take symbols."""

    def call(*values: Any, **options: Any) -> Any:
        if not options and len(values) > 1 and any(isinstance(x, Operand) for x in values):
            return replacement(*values)
        return original(*values, **options)

    return call
