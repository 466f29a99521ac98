"""Another ``InferenceSession`` in the processes of a target: a stand-in for an EP with planted faults.

A ``sitecustomize.py`` on the module path of these processes calls ``plant``. Nothing is imported before
onnxruntime is: the processes of other targets, and tools that start Python, stay as they are.
"""

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

MakeClass = Callable[[Any], type]
"""Takes the module ``onnxruntime``, and returns the class in the place of its ``InferenceSession``."""


def plant(made: MakeClass) -> None:
    """Have onnxruntime, when it is imported, offer another class of sessions."""
    sys.meta_path.insert(0, _Planting(made))


class _Planting(importlib.abc.MetaPathFinder):
    def __init__(self, made: MakeClass) -> None:
        self.made = made

    def find_spec(self, name: str, *_: Any) -> Any:
        if name != "onnxruntime":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader: Any = spec.loader if spec is not None else None
        execute = loader.exec_module

        def execute_and_plant(module: Any) -> None:
            execute(module)
            module.InferenceSession = self.made(module)

        loader.exec_module = execute_and_plant
        return spec
