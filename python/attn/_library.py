"""libattn.so by ctypes: loading, errors, handles."""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import threading
import warnings
from pathlib import Path
from typing import Any, Callable, List, Mapping, NoReturn, Optional, Tuple

from . import _progress
from ._kernel_name import name_kernel

ABI_VERSION = 1


class Error(Exception):
    """A call that attn refused or could not carry out.

    Attributes:
        code: "invalid argument", "invalid kernel" (a source or a traced function that does not
            compile), "no device", or another code of include/attn-c/attn.h.
        message: one line, "where: expected X, got Y".
        hint: the nearest change that would be accepted; may be empty.
        where: "file.py:12" for a mistake in a traced function; otherwise empty.
    """

    def __init__(self, code: str, message: str, hint: str = "", where: str = "") -> None:
        self.code, self.message, self.hint, self.where = code, message, hint, where
        text = f"{where}: {message}" if where else message
        super().__init__(f"{text} ({hint})" if hint else text)

    def __reduce__(self) -> Tuple:
        return Error, (self.code, self.message, self.hint, self.where)


def refuse(name: str, expected: str, got: Any, hint: str = "") -> NoReturn:
    """Of an argument."""
    raise Error("invalid argument", f"{name}: expected {expected}, got {got}", hint)


class Value(ctypes.Structure):
    """attn_value."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("is_scalar", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    ]


_PROTOTYPES = {
    "attn_version": (ctypes.c_char_p, []),
    "attn_abi_version": (ctypes.c_int32, []),
    "attn_code_name": (ctypes.c_char_p, [ctypes.c_int]),
    "attn_last_message": (ctypes.c_char_p, []),
    "attn_last_hint": (ctypes.c_char_p, []),
    "attn_options_create": (ctypes.c_int, [ctypes.POINTER(ctypes.c_void_p)]),
    "attn_options_set": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]),
    "attn_options_free": (None, [ctypes.c_void_p]),
    "attn_compile": (
        ctypes.c_int,
        [ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)],
    ),
    "attn_kernel_free": (None, [ctypes.c_void_p]),
    "attn_kernel_num_arguments": (ctypes.c_size_t, [ctypes.c_void_p]),
    "attn_kernel_num_results": (ctypes.c_size_t, [ctypes.c_void_p]),
    "attn_kernel_value": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(Value)]),
    "attn_kernel_compile_ms": (ctypes.c_double, [ctypes.c_void_p]),
    "attn_kernel_load_ms": (ctypes.c_double, [ctypes.c_void_p]),
    "attn_kernel_is_from_disk": (ctypes.c_int32, [ctypes.c_void_p]),
    "attn_kernel_ordinal": (ctypes.c_int32, [ctypes.c_void_p]),
    "attn_kernel_remark": (ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_size_t]),
    "attn_run": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    ),
    "attn_run_in": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        + [ctypes.c_void_p, ctypes.c_size_t],
    ),
    "attn_run_planned": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        + [ctypes.c_void_p, ctypes.c_size_t],
    ),
    "attn_workspace_size": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)],
    ),
    "attn_prepare": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]),
    "attn_choose_way": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)],
    ),
    "attn_set_log": (None, [ctypes.c_void_p, ctypes.c_void_p]),
    "attn_set_num_threads": (ctypes.c_int, [ctypes.c_int32]),
    "attn_get_num_threads": (ctypes.c_int32, []),
    "attn_explain_way": (
        ctypes.c_int,
        [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
        + [ctypes.POINTER(ctypes.c_void_p)],
    ),
    "attn_string_free": (None, [ctypes.c_void_p]),
    "attn_mask_ranges": (
        ctypes.c_int,
        [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, ctypes.c_int64]
        + [ctypes.c_void_p, ctypes.c_size_t],
    ),
    "attn_cache_create": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    "attn_cache_free": (None, [ctypes.c_void_p]),
    "attn_cache_grow": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]),
    "attn_cache_share": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64]
        + [ctypes.POINTER(ctypes.c_int64)],
    ),
    "attn_cache_release": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]),
    "attn_cache_trim": (ctypes.c_int, [ctypes.c_void_p]),
    "attn_cache_tensor": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p],
    ),
    "attn_cache_export": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)],
    ),
    "attn_cache_tokens": (ctypes.c_int64, [ctypes.c_void_p, ctypes.c_int64]),
    "attn_cache_bytes": (ctypes.c_int64, [ctypes.c_void_p]),
    "attn_cache_piece_tokens": (ctypes.c_int64, [ctypes.c_void_p]),
}


# $ATTN_LIBRARY is for the library of a build folder.
library_path = Path(os.environ.get("ATTN_LIBRARY") or Path(__file__).parent / "lib" / "libattn.so")


def _load() -> ctypes.CDLL:
    path, mode = str(library_path), ctypes.DEFAULT_MODE
    if "tensorflow" in sys.modules:
        # Its own LLVM, of another version, stands in front of the one of a build that links LLVM.
        mode |= os.RTLD_DEEPBIND
    try:
        library = ctypes.CDLL(path, mode)
    except OSError as error:
        raise ImportError(f"attn: expected to load {path}, got: {error}") from None
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    if library.attn_abi_version() != ABI_VERSION:
        raise ImportError(
            f"attn: expected ABI {ABI_VERSION} of {path}, got {library.attn_abi_version()}"
        )
    return library


library = _load()
version: str = library.attn_version().decode()


def check(code: int) -> None:
    """Raises the Error behind a code other than 0."""
    if code:
        raise Error(
            library.attn_code_name(code).decode(),
            library.attn_last_message().decode(errors="replace"),
            library.attn_last_hint().decode(errors="replace"),
        )


# Options of the compiler as it is told them: names and values are text.
OptionTexts = Tuple[Tuple[str, str], ...]


def option_texts(options: Any) -> OptionTexts:
    """The options that a user gives, in an order of their own."""
    if not options and (options is None or isinstance(options, Mapping)):
        return ()
    if not isinstance(options, Mapping):
        raise Error(
            "invalid argument",
            f"options: expected a dict, got {type(options).__name__}",
            'such as {"block_m": 64}',
        )
    texts = []
    for name, value in options.items():
        if not isinstance(name, str):
            raise Error("invalid argument", f"options: expected names, got {name!r}")
        if isinstance(value, bool):
            text = "on" if value else "off"
        elif isinstance(value, (str, int, float, os.PathLike)) or hasattr(value, "__index__"):
            text = str(value)
        else:
            raise Error(
                "invalid argument",
                f"options: expected a number, text or bool for {name}, got {type(value).__name__}",
            )
        texts.append((name, text))
    return tuple(sorted(texts))


class Options:
    """attn_options, made for one call of the library."""

    def __init__(self, options: OptionTexts) -> None:
        self.texts = options
        self.handle = ctypes.c_void_p()
        check(library.attn_options_create(ctypes.byref(self.handle)))
        try:
            for name, text in options:
                key = name.replace("_", "-").encode(errors="replace")
                check(library.attn_options_set(self.handle, key, text.encode(errors="replace")))
        except Error:
            self.close()
            raise

    def __reduce__(self) -> Tuple:
        return Options, (self.texts,)

    def close(self) -> None:
        library.attn_options_free(self.handle)

    def __enter__(self) -> "Options":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _run_apart(function: Callable[[], Any], what: str) -> Any:
    """Calls the function, from Python's main thread in another one: Python handles signals in its main
    thread alone, where Ctrl-C would wait until the compiler returns. The other thread ends what it
    began. A terminal is told `what` takes seconds."""
    if threading.current_thread() is not threading.main_thread():
        return function()
    results: List[Any] = []
    errors: List[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    try:
        threading.Thread(target=work, name="attn").start()
    except RuntimeError:
        # The interpreter is shutting down.
        return function()
    _progress.wait(done, what)
    if errors:
        raise errors[0]
    return results[0]


def _compile(source: str, options: OptionTexts) -> int:
    handle = ctypes.c_void_p()
    with Options(options) as native:
        # In the same thread, which the message is of.
        check(library.attn_compile(source.encode(), native.handle, ctypes.byref(handle)))
    assert handle.value is not None
    return handle.value


class Kernel:
    """attn_kernel: compiled code, freed with this object. A copy is the same kernel; one that comes
    out of a pickle is compiled anew."""

    def __init__(self, source: str, options: OptionTexts) -> None:
        self.source, self.options = source, options
        self.handle: Optional[int] = None
        what = f"compiling {name_kernel(source)}"
        self.handle = handle = _run_apart(lambda: _compile(source, options), what)
        self.compile_ms: float = library.attn_kernel_compile_ms(handle)
        self.load_ms: float = library.attn_kernel_load_ms(handle)
        self.is_from_disk = bool(library.attn_kernel_is_from_disk(handle))
        # The GPU's number, or -1 for the CPU.
        self.device: int = library.attn_kernel_ordinal(handle)
        for index in itertools.count():
            remark = library.attn_kernel_remark(handle, index)
            if remark is None:
                break
            warnings.warn(f"attn: {remark.decode(errors='replace')}", RuntimeWarning, stacklevel=2)

    def __copy__(self) -> "Kernel":
        return self

    def __deepcopy__(self, memo: Any) -> "Kernel":
        return self

    def __reduce__(self) -> Tuple:
        return Kernel, (self.source, self.options)

    def __del__(self) -> None:
        # The interpreter may be half gone, and construction may have failed.
        handle = getattr(self, "handle", None)
        if handle and library is not None:
            library.attn_kernel_free(handle)

    def prepare(self, tensors: Tuple = (None, 0)) -> None:
        """Compiles what calls with such tensors take, or what any call may take."""
        what = f"compiling {name_kernel(self.source)}"
        _run_apart(lambda: check(library.attn_prepare(self.handle, *tensors)), what)

    def choose_way(self, tensors: Tuple) -> str:
        """The name of the kernel that calls with such tensors take."""
        name = ctypes.c_void_p()
        check(library.attn_choose_way(self.handle, *tensors, ctypes.byref(name)))
        return _take(name)

    def count_workspace(self, tensors: Tuple) -> int:
        """The bytes of workspace of such a call."""
        count = ctypes.c_size_t()
        check(library.attn_workspace_size(self.handle, *tensors, ctypes.byref(count)))
        return count.value

    def count_arguments(self) -> int:
        return int(library.attn_kernel_num_arguments(self.handle))

    def describe(self) -> Tuple[Tuple[str, str, Tuple[int, ...]], ...]:
        """(name, type, shape) of every argument and result."""
        count = self.count_arguments() + library.attn_kernel_num_results(self.handle)
        values = []
        for index in range(count):
            value = Value()
            check(library.attn_kernel_value(self.handle, index, ctypes.byref(value)))
            values.append(
                (value.name.decode(), value.type.decode(), tuple(value.shape[: value.ndim]))
            )
        return tuple(values)


def _take(text: ctypes.c_void_p) -> str:
    """A text that the library gives away."""
    try:
        return ctypes.string_at(text).decode()
    finally:
        library.attn_string_free(text)


def explain(source: str, options: OptionTexts, until: str, way: str = "") -> str:
    """attn_explain_way."""
    text = ctypes.c_void_p()
    with Options(options) as native:
        what = source.encode(), native.handle, until.encode(), way.encode()
        check(library.attn_explain_way(*what, ctypes.byref(text)))
    return _take(text)


# Kept as long as the library may call it.
_log: List[Any] = []


def set_log(log: Callable[[str], None]) -> None:
    """Is told of each kernel that a call makes the library compile, or load from disk."""
    type_ = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
    _log[:] = [type_(lambda line, _: log(line.decode(errors="replace")))]
    library.attn_set_log(_log[0], None)
