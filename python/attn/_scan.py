"""What decides the trace of a function, found without tracing it.

A plan is found again by a key of all that a trace of its functions would read: code, numbers, and
types of captured arrays, in closures, defaults, globals and functions that are called. Of modules,
classes and objects it is what the bytecode reads by name, `config.window` or `self.bias`: their
values now are in the key, whoever set them. A function that does anything else with such an object,
or whose reads run code of their own (properties, dicts, calls), is volatile: it is traced for each
call, which is slower and always right.
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
import types
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from . import _arrays, _dynamo, _functions, _symbols
from ._library import Error, refuse

# Names that are read of an object, one after the other.
Path = Tuple[str, ...]
# The paths that a code reads of what a name holds; None where it does something else with it.
Paths = Optional[Tuple[Path, ...]]

# A dimension of an array and the letter of the position that it belongs to, "m" or "n".
Own = Tuple[int, str]

PLAIN = (int, float, bool, str, bytes, complex, type(None))
LIBRARIES = (__name__.partition(".")[0], "numpy", "torch", "jax", "math", "ml_dtypes")
# Classes and functions of these compute from their arguments alone, apart from those below.
_PURE = (*LIBRARIES, "builtins", "functools", "operator", "_operator", "_functools", "itertools")
_IMPURE = frozenset(
    "globals locals vars dir eval exec compile open input __import__ breakpoint super".split()
)
UNSEEN: Any = object()
_NOBODY: Any = object()
# What builtins are now, and what they were.
_NOW = vars(builtins)
_BUILTINS = {name: value for name, value in _NOW.items() if name not in _IMPURE}


class Captured:
    """An array marked by `attn.tensor` or `attn.assume_sorted`, or one of positions: no element of
    it is below 0, so that none of them counts from the end where it is an index."""

    def __init__(
        self, array: Any, is_sorted: bool = False, is_natural: bool = False, own: Optional[Own] = None
    ) -> None:
        """`own` where one dimension is read at the positions of the call, whatever the whole is."""
        if not _arrays.is_array(array):
            raise Error(
                "invalid argument",
                "expected a NumPy array or PyTorch tensor, got " + _arrays.describe_type(array),
            )
        self.array, self.is_sorted, self.is_natural, self.own = array, is_sorted, is_natural, own

    @property
    def shape(self) -> Tuple[int, ...]:
        return tuple(self.array.shape)

    def __getitem__(self, index: Any) -> Any:
        if self.own is not None and _dynamo.is_compiling():
            refuse_parts()
        trace = getattr(_symbols.active, "trace", None)
        return self.array[index] if trace is None else trace.proxy(self, "captured", None)[index]


@_dynamo.assume_constant
def refuse_parts() -> None:
    """Dynamo hands an array over without what is said of it."""
    refuse(
        "mask or score",
        "whole arrays under torch.compile",
        "one of attn.distributed.rows or keys",
        "call context_parallel_attention outside of what is compiled, or give the whole array",
    )


# ===- What a code reads -----------------------------------------------------------------------===#


class Uses(NamedTuple):
    """Names of a code and of the functions inside it, with the paths that are read of them."""

    globals: Dict[str, Paths]
    locals: Dict[str, Paths]
    # It reads what no name tells of.
    is_unseen: bool


class _Reader:
    """Collects the uses of one code."""

    def __init__(self) -> None:
        self.globals: Dict[str, Optional[set]] = {}
        self.locals: Dict[str, Optional[set]] = {}
        self.is_unseen = False
        # The name on top of the stack, and what is read of it so far.
        self._table: Optional[Dict[str, Optional[set]]] = None
        self._name, self._path = "", ()  # type: Tuple[str, Path]

    def read(self, code: types.CodeType) -> None:
        for instruction in dis.get_instructions(code):
            self._step(code, instruction.opname, instruction.opcode, instruction.argval)
        self._flush()
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                inner = uses_of(constant)
                self.is_unseen |= inner.is_unseen
                _merge(self.globals, inner.globals)
                free = constant.co_freevars
                _merge(self.locals, {x: inner.locals[x] for x in free if x in inner.locals})

    def _step(self, code: types.CodeType, name: str, opcode: int, value: Any) -> None:
        if name in ("CACHE", "EXTENDED_ARG", "NOP"):
            return
        if self._table is not None and name in ("LOAD_ATTR", "LOAD_METHOD"):
            self._path += (value,)
            return
        self._flush()
        if name in ("LOAD_GLOBAL", "LOAD_NAME"):
            self._table, self._name, self._path = self.globals, value, ()
        elif opcode in dis.haslocal or opcode in dis.hasfree:
            if name.startswith(("STORE_", "DELETE_", "MAKE_CELL", "LOAD_CLOSURE", "COPY_FREE")):
                return
            if isinstance(value, tuple):
                # Several in one instruction: nothing is read of any by name.
                for each in value:
                    self.locals[each] = None
            elif name == "LOAD_FAST" and value in code.co_cellvars + code.co_freevars:
                # A cell for a function inside, which is read on its own.
                return
            else:
                self._table, self._name, self._path = self.locals, value, ()
        elif name == "IMPORT_NAME" and value.partition(".")[0] not in LIBRARIES:
            self.is_unseen = True

    def _flush(self) -> None:
        if self._table is not None:
            _merge(self._table, {self._name: (self._path,) if self._path else None})
        self._table = None


def _merge(into: Dict[str, Optional[set]], more: Dict[str, Paths]) -> None:
    for name, paths in more.items():
        known = into.setdefault(name, set())
        if paths is None or known is None:
            into[name] = None
        else:
            known.update(paths)


@functools.lru_cache(maxsize=4096)
def uses_of(code: types.CodeType) -> Uses:
    reader = _Reader()
    reader.read(code)

    def in_order(table: Dict[str, Optional[set]]) -> Dict[str, Paths]:
        return {
            name: None if table[name] is None else tuple(sorted(table[name] or ()))
            for name in sorted(table)
        }

    return Uses(in_order(reader.globals), in_order(reader.locals), reader.is_unseen)


# ===- What an object gives --------------------------------------------------------------------===#


def is_of_library(x: Any) -> bool:
    """Of a function, a class or an object with a class: whether it is of one of the libraries."""
    if type(x) is types.FunctionType:
        # What a decorator copies into __module__ is no proof.
        module = x.__globals__.get("__name__")
    else:
        module = x.__name__ if type(x) is types.ModuleType else getattr(x, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] in LIBRARIES


def is_fixed(value: Any) -> bool:
    """A class or a function whose meaning does not change."""
    if is_of_jax(value):
        return True
    if isinstance(value, type):
        return (value.__module__ or "").partition(".")[0] in _PURE
    if isinstance(value, types.BuiltinFunctionType):
        root = (value.__module__ or "").partition(".")[0]
        if root in ("numpy", "torch"):
            return value.__name__ in _functions.BY_NAME
        # Not a method of an object.
        is_function = isinstance(value.__self__, types.ModuleType)
        return is_function and root in _PURE and value.__name__ not in _IMPURE
    # numpy.tanh, numpy.where.
    kind = type(value)
    is_numpy = is_of_library(kind) and kind.__name__ in ("ufunc", "_ArrayFunctionDispatcher")
    return is_numpy and value.__name__ in _functions.BY_NAME


# Functions of PyTorch whose answers are drawn.
_DRAWN = frozenset(
    "rand rand_like randn randn_like randint randint_like randperm normal bernoulli".split()
)
_GENERATORS = ("Random", "SystemRandom", "RandomState", "Generator")


def _is_random(function: Any) -> bool:
    """Of a function in C or a method: whether it draws from a generator."""
    owner = getattr(function, "__self__", None)
    if type(owner).__name__ in _GENERATORS:
        return (type(owner).__module__ or "").partition(".")[0] in ("random", "numpy")
    return getattr(function, "__module__", None) == "torch" and function.__name__ in _DRAWN


# Functions of torch.nn.attention.flex_attention that read nothing but what they close over.
_OF_FLEX = frozenset(("and_mask", "or_mask", "noop_mask", "_identity"))


def _is_pure_of_library(function: types.FunctionType) -> bool:
    """Of a library's function in Python: whether it computes from its arguments and its closure alone.
    Others may read the state of their library."""
    name = function.__name__
    is_own = (function.__globals__.get("__name__") or "").partition(".")[0] == LIBRARIES[0]
    return is_own or name in _functions.BY_NAME or name in _OF_FLEX


def is_of_jax(value: Any) -> bool:
    """A function of JAX that attn has too: JAX's own take no symbols."""
    module = getattr(value, "__module__", None)
    is_jax = isinstance(module, str) and module.partition(".")[0] == "jax"
    return is_jax and callable(value) and getattr(value, "__name__", "") in _functions.BY_NAME


def as_function(value: Any) -> Any:
    """A function or a method that does what calling the object does, where its class has one."""
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial, type)):
        return value
    for name in ("__call__", "forward"):
        function = getattr(type(value), name, None)
        if type(function) is types.FunctionType and not is_of_library(function):
            return types.MethodType(function, value)
    return value


def is_holder(value: Any) -> bool:
    """An object that is seen through what is read of it by name."""
    kind = type(value)
    if isinstance(value, (*PLAIN, tuple, list, dict, set, frozenset, Captured, _symbols.Operand)):
        return False
    if kind in (types.FunctionType, types.MethodType, functools.partial):
        return False
    if isinstance(value, types.BuiltinFunctionType) or _arrays.is_array(value):
        return False
    return not (is_of_library(kind) and hasattr(kind, "item"))


def _look_up_class(owner: type, name: str) -> Any:
    for meta in type(owner).__mro__[:-2]:
        if name in vars(meta) or "__getattribute__" in vars(meta):
            return UNSEEN
    for base in owner.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return UNSEEN


_PLAIN_GETATTRIBUTE = (object.__getattribute__, types.SimpleNamespace.__getattribute__)


def _look_up_object(owner: Any, name: str) -> Any:
    kind = type(owner)
    if kind.__getattribute__ not in _PLAIN_GETATTRIBUTE:
        return UNSEEN
    found = UNSEEN
    for base in kind.__mro__:
        if name in vars(base):
            found = vars(base)[name]
            break
    if type(found) is types.MemberDescriptorType:
        return getattr(owner, name, UNSEEN)
    values = getattr(owner, "__dict__", {})
    if hasattr(type(found), "__set__") or hasattr(type(found), "__delete__"):
        return UNSEEN
    if name in values:
        return values[name]
    if found is UNSEEN:
        # Parameters, buffers and modules of a torch.nn.Module.
        torch = sys.modules.get("torch")
        module = torch.nn.Module if torch is not None else None
        if module is not None and getattr(kind, "__getattr__", None) is module.__getattr__:
            for store in ("_parameters", "_buffers", "_modules"):
                if name in values.get(store, ()):
                    return values[store][name]
    return types.MethodType(found, owner) if type(found) is types.FunctionType else found


def look_up(owner: Any, name: str) -> Any:
    """owner.name, or UNSEEN where reading it may run code."""
    kind = type(owner)
    if name.startswith("__") and name.endswith("__"):
        return UNSEEN
    if kind is types.ModuleType:
        value = vars(owner).get(name, UNSEEN)
        if value is UNSEEN and is_of_library(owner):
            value = getattr(owner, name, UNSEEN)
        return value
    is_class = isinstance(owner, type)
    found = _look_up_class(owner, name) if is_class else _look_up_object(owner, name)
    if type(found) is staticmethod:
        return found.__func__
    if type(found) is classmethod:
        return types.MethodType(found.__func__, owner if is_class else kind)
    if type(found) in (types.FunctionType, types.MethodType) or found is UNSEEN:
        return found
    return UNSEEN if hasattr(type(found), "__get__") else found


def reads(root: Any, paths: Tuple[Path, ...]) -> Iterator[Tuple[Path, Any]]:
    """(path, value) of what is read of an object, as far as objects are seen through."""
    done = set()
    for path in paths:
        value, depth = root, 0
        while depth < len(path) and value is not UNSEEN and (depth == 0 or is_holder(value)):
            value = look_up(value, path[depth])
            depth += 1
        if path[:depth] not in done:
            done.add(path[:depth])
            yield path[:depth], value


def children(
    function: types.FunctionType, owner: Any = _NOBODY
) -> Iterator[Tuple[str, str, Any, Paths]]:
    """(place, name, value, paths) of everything that a function refers to, in a fixed order."""
    is_library = is_of_library(function)
    if is_library and not function.__closure__:
        return
    yield from _children(function, owner, uses_of(function.__code__), is_library)


def _children(
    function: types.FunctionType, owner: Any, uses: Uses, is_library: bool
) -> Iterator[Tuple[str, str, Any, Paths]]:
    code = function.__code__
    if owner is not _NOBODY:
        first = code.co_varnames[0] if code.co_argcount else ""
        yield "owner", first, owner, uses.locals.get(first, ()) if first else None
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        # super() takes __class__ without a word in the bytecode.
        yield "cell", name, value, None if name == "__class__" else uses.locals.get(name, ())
    defaults = function.__defaults__
    if defaults:
        for name, value in zip(code.co_varnames[: code.co_argcount][-len(defaults) :], defaults):
            yield "default", name, value, uses.locals.get(name, ())
    if function.__kwdefaults__:
        for name, value in function.__kwdefaults__.items():
            yield "kwdefault", name, value, uses.locals.get(name, ())
    for name, value in function.__dict__.items():
        yield "attribute", name, value, None
    if not is_library:
        values = function.__globals__
        for name, paths in uses.globals.items():
            if name in values:
                yield "global", name, values[name], paths
            elif _NOW.get(name) is not _BUILTINS.get(name):
                yield "builtin", name, _NOW[name], paths


# ===- Keys ------------------------------------------------------------------------------------===#


class Scan:
    """The facts that decide the trace of a function, without tracing it: where `key` is equal, so
    is the trace.

    `arrays` are the captured arrays, in the order of their slots. `is_volatile` when the function
    refers to objects whose contents may change unseen; then only a new trace tells.
    """

    def __init__(self, *functions: Any) -> None:
        self.key: List[Any] = []
        self.arrays: List[Any] = []
        # What the key names by its address.
        self.keep: List[Any] = []
        self.is_volatile = False
        # Some array is of a library that attn does not know.
        self.is_foreign = False
        # Functions and lists, by the order in which they were met.
        self._seen: Dict[Any, int] = {}
        for function in functions:
            is_plain = type(function) is types.FunctionType
            self._visit(function if is_plain else as_function(function), None)

    @staticmethod
    def of(*functions: Any) -> "Scan":
        """Of score and mask, each of which may be None."""
        return Scan(*[function for function in functions if function is not None])

    def _visit(self, value: Any, paths: Paths) -> None:
        kind = type(value)
        if kind in (types.BuiltinFunctionType, types.MethodType) and _is_random(value):
            raise Error(
                "invalid kernel",
                "score or mask: expected a function without random numbers, got one that calls "
                f"{value.__name__}: it is traced once, and every element would have the same number",
                "use dropout_p, or let it read an array of random numbers",
            )
        if kind in PLAIN:
            # -0.0 == 0.0 and nan != nan: a float is its text.
            self.key.append((kind, repr(value) if kind in (float, complex) else value))
        elif kind is types.FunctionType and not is_of_jax(value):
            self._visit_function(value)
        elif _arrays.is_array(value):
            self.is_foreign |= _arrays.is_foreign(value)
            self.arrays.append(value)
            self.key.append((value.dtype, len(value.shape)))
        elif kind is Captured:
            self.is_foreign |= _arrays.is_foreign(value.array)
            self.arrays.append(value.array)
            facts = (value.is_sorted, value.is_natural, value.own)
            self.key.append((value.array.dtype, len(value.array.shape), facts))
        elif kind in (tuple, list):
            self.key.append((kind, len(value)))
            if self._is_first(id(value)):
                for element in value:
                    self._visit(element, None)
        elif kind is functools.partial:
            self.key.append(functools.partial)
            self.is_volatile |= bool(vars(value))
            for element in (value.func, *value.args):
                self._visit(element, None)
            for name, element in value.keywords.items():
                self.key.append(name)
                self._visit(element, None)
        elif kind is types.MethodType:
            self._visit_function(value.__func__, value.__self__)
        elif is_fixed(value) or isinstance(value, _symbols.Operand):
            self.key.append(id(value))
            self.keep.append(value)
        elif is_of_library(kind) and hasattr(kind, "item"):
            self.key.append((kind, repr(value.item())))
        elif is_of_library(kind) and kind.__name__ in ("dtype", "device", "layout", "Size"):
            self.key.append((kind, str(value)))
        elif kind is types.ModuleType and is_of_library(value) and not paths:
            self.is_volatile |= paths is None
        elif paths is not None and is_holder(value):
            self._visit_reads(value, paths)
        else:
            self.is_volatile = True

    def _visit_reads(self, value: Any, paths: Tuple[Path, ...]) -> None:
        # Its arrays are not substituted: it may be the only one that knows the module.
        is_library = type(value) is types.ModuleType and is_of_library(value)
        for path, found in reads(value, paths):
            if found is UNSEEN or (is_library and _arrays.is_array(found)):
                self.is_volatile = True
                return
            self.key.append(len(path))
            self._visit(found, None)

    def _is_first(self, identity: Any) -> bool:
        """Whether it was not met before; if it was, the key says which it is."""
        known = self._seen.get(identity)
        if known is None:
            self._seen[identity] = len(self._seen)
            return True
        self.key.append(known)
        return False

    def _visit_function(self, function: Any, owner: Any = _NOBODY) -> None:
        is_library = is_of_library(function)
        if type(function) is not types.FunctionType or (is_library and owner is not _NOBODY):
            self.is_volatile = True
            return
        self.key.append(function.__code__)
        self.is_volatile |= is_library and not _is_pure_of_library(function)
        identity = id(function) if owner is _NOBODY else (id(function), id(owner))
        if not self._is_first(identity):
            return
        if is_library and not function.__closure__:
            return
        # Once: it takes the hash of the code.
        uses = uses_of(function.__code__)
        self.is_volatile |= uses.is_unseen and not is_library
        for _, name, value, paths in _children(function, owner, uses, is_library):
            self.key.append(name)
            self._visit(value, paths)
