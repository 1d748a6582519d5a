"""What is to be done when somebody imports a module that attn does not import by itself."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any, Callable, Optional

Action = Callable[[], Any]


class _Loader:
    """The module's own, which acts once behind it."""

    def __init__(self, loader: Any, action: Action) -> None:
        self._loader, self._action = loader, action

    def exec_module(self, module: Any) -> None:
        # What asks the module for its source or its files asks its own loader.
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._action()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Watch:
    """Stays among the finders when it is done: a thread that goes through them meanwhile would pass
    over the one behind it."""

    def __init__(self, name: str, action: Action, is_before: bool) -> None:
        self._name: Optional[str] = name
        self._action, self._is_before = action, is_before

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name:
            return None
        self._name = None
        if self._is_before:
            self._action()
            return None
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._action)  # type: ignore[assignment]
        return spec


def before(name: str, action: Action) -> None:
    """Acts when the module is about to be imported, or now if it is there."""
    _watch(name, action, True)


def after(name: str, action: Action) -> None:
    """Acts when the module has been imported, or now if it is there."""
    _watch(name, action, False)


def _watch(name: str, action: Action, is_before: bool) -> None:
    if name in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Watch(name, action, is_before))  # type: ignore[arg-type]
