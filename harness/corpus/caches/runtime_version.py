"""The version of onnxruntime in the harness's own interpreter, without importing it."""

import importlib.util
import re
from pathlib import Path

_VERSION = re.compile(r"""^__version__\s*=\s*["']([^"']+)["']""", re.MULTILINE)


def onnxruntime_version() -> str:
    """Return the version; empty if there is none. An import takes 0.2 s, and may fail."""
    # Several distributions have this module (onnxruntime, -gpu, -openvino); its source has the version.
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        return ""
    found = _VERSION.search(Path(spec.origin).read_text(encoding="utf-8", errors="replace"))
    return found.group(1) if found else ""
