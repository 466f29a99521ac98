"""Start recording in every Python process of an application; `ep-harness record` puts this on its path.

Python imports a module of this name at its start. The environment's own module of this name is imported after
it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def _begin() -> None:
    """Import the recorder, and remove its name: the application may have its own ``harness``."""
    import importlib
    from types import ModuleType

    here = os.path.dirname(os.path.abspath(__file__))
    # The application must see the path that it would see without this.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    package = os.path.dirname(here)
    kept = _taken_out()
    try:
        for name, folder in (("harness", os.path.dirname(package)), ("harness.record", package)):
            module = ModuleType(name)
            module.__path__ = [folder]
            sys.modules[name] = module
        importlib.import_module("harness.record.recorder").start_by_environment()
    finally:
        _taken_out()
        sys.modules.update(kept)


def _taken_out() -> dict[str, ModuleType]:
    """Remove the harness's modules from the imported ones; return them."""
    names = [name for name in sys.modules if name.partition(".")[0] == "harness"]
    return {name: sys.modules.pop(name) for name in names}


def _import_their_own() -> None:
    this = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if this is not None:
            sys.modules.setdefault("sitecustomize", this)


if __name__ == "sitecustomize" and "EP_HARNESS_RECORD" in os.environ:
    try:
        _begin()
    except Exception as error:  # noqa: BLE001 - the application runs on, whatever is wrong here
        sys.stderr.write(f"ep-harness record: this process is not recorded: {error}\n")
    _import_their_own()
