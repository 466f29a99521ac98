"""Which onnxruntime the harness's own interpreter has, found without importing it."""

import importlib.util
import re
from pathlib import Path

_VERSION = re.compile(r"""^__version__\s*=\s*["']([^"']+)["']""", re.MULTILINE)


def onnxruntime_version() -> str:
    """Its release; empty where there is none. An import costs a fifth of a second, and may fail."""
    # Whichever distribution owns the module (onnxruntime, -gpu, -openvino), its source says the version.
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        return ""
    found = _VERSION.search(Path(spec.origin).read_text(encoding="utf-8", errors="replace"))
    return found.group(1) if found else ""
