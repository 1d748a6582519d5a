"""What is to be done when somebody imports a module that attn does not import by itself."""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional

Action = Callable[[], Any]


class _Loader:
    """The module's own, which acts once after it."""

    def __init__(self, loader: Any, watch: "_Watch") -> None:
        self._loader, self._watch = loader, watch

    def exec_module(self, module: Any) -> None:
        # What asks the module for its source or its files asks its own loader.
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._watch.act()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Watch:
    """Stays among the finders when it is done: a thread that goes through them meanwhile would pass
    over the one after it."""

    def __init__(self, name: str, action: Action, is_before: bool) -> None:
        self._name: Optional[str] = name
        self._action, self._is_before = action, is_before

    def act(self) -> None:
        if self._name is not None:
            self._name = None
            self._action()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name:
            return None
        if self._is_before:
            self.act()
            return None
        # Somebody may only ask whether the module is there, so what acts is its loader.
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find and find(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self)
                return spec
        return None


def before(name: str, action: Action) -> None:
    """Acts when the module is about to be imported, or now if it is there."""
    _watch(name, action, True)


def after(name: str, action: Action) -> None:
    """Acts when the module has been imported, or now if it is there; not for one that another thread
    is importing, whose end nothing tells."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if not getattr(spec, "_initializing", False):
        _watch(name, action, False)


def _watch(name: str, action: Action, is_before: bool) -> None:
    if name in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Watch(name, action, is_before))  # type: ignore[arg-type]
