"""Wrap onnxruntime as soon as an application imports it, and single methods of its classes."""

from __future__ import annotations

import contextlib
import functools
import importlib.machinery
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


class Finder:
    """Wraps onnxruntime when it is imported."""

    def __init__(self, wrap: Callable[[ModuleType], None]) -> None:
        self._wrap = wrap

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        """Return a loader that wraps onnxruntime after loading it; nothing for other modules."""
        if name != "onnxruntime":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._wrap)  # type: ignore[assignment]
        return spec


class _Loader:
    """Loads a module with its own loader, and then wraps it."""

    def __init__(self, loader: Any, wrap: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._wrap = wrap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        with contextlib.suppress(Exception):  # an unknown onnxruntime: not recorded
            self._wrap(module)


def replace(kind: type, name: str, wrapper: Callable[..., Any]) -> None:
    """Replace a method where it is defined; a class of an older onnxruntime may lack it."""
    owner = next((one for one in kind.__mro__ if name in vars(one)), None)
    if owner is None or owner is object:
        return
    original = vars(owner)[name]

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return wrapper(original, self, args, kwargs)

    setattr(owner, name, method)
