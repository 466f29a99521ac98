"""An ``InferenceSession`` that raises where an input has an extent among those of ``REFUSED_EXTENTS``."""

import importlib.abc
import importlib.util
import os
import sys
from typing import Any

REFUSED = {int(one) for one in os.environ.get("REFUSED_EXTENTS", "").split()}


class Planting(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, *_: Any) -> Any:
        if name != "onnxruntime":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def plant(module: Any) -> None:
            execute(module)
            module.InferenceSession = planted(module.InferenceSession)

        spec.loader.exec_module = plant  # type: ignore[method-assign]
        return spec


def planted(session_class: Any) -> Any:
    class Planted(session_class):  # type: ignore[misc]
        def run(self, names: Any, feeds: Any, *more: Any) -> Any:
            extents = {extent for value in feeds.values() for extent in getattr(value, "shape", ())}
            if refused := extents & REFUSED:
                raise RuntimeError(f"no kernel for an extent of {min(refused)}")
            return super().run(names, feeds, *more)

    return Planted


sys.meta_path.insert(0, Planting())
