"""The onnxruntime of a target: import it, describe it, and diagnose why it does not work."""

from __future__ import annotations

import importlib
import os
import platform
import re
import sys
from typing import Any

from harness.agent.safe_text import clean
from harness.agent.system import processor
from harness.agent.target_errors import UnavailableError

_MISSING_LIBRARY = re.compile(
    # Linux; only a name directly before the complaint: a loader names the loading library first.
    r"([\w.+-]+\.so[.\d]*)[^\w\n]{1,6}(?:cannot open shared object file|not found|No such file)"
    r"|which depends on \"([^\"\n]+)\" which is missing"  # onnxruntime, on Windows
    r"|Library not loaded: ([^\s\"]+)"  # macOS
)

_NO_DEVICE = re.compile(r"no (?:CUDA|ROCm)-capable device|Failed to get a WebGPU adapter")

_API_VERSION = re.compile(r"The requested API version \[\d+\] is not available[^\n]*")

_OTHER_NUMPY = re.compile(r"compiled using NumPy 1\.x cannot be run in\s+NumPy ([\d.]+)")


def import_onnxruntime() -> Any:
    """Import onnxruntime.

    Raises:
        UnavailableError: It cannot be imported, or is incomplete.
    """
    try:
        ort = importlib.import_module("onnxruntime")
    except ModuleNotFoundError as error:
        if error.name != "onnxruntime":
            raise UnavailableError("import_failed", "import onnxruntime: %s" % clean(error)) from error
        raise UnavailableError(
            "not_installed", "no onnxruntime in %s; install one, such as 'onnxruntime'" % sys.executable
        ) from error
    except Exception as error:
        raise UnavailableError("import_failed", "import onnxruntime: %s" % clean(error)) from error
    if not hasattr(ort, "InferenceSession"):
        raise UnavailableError(
            "import_failed",
            "'onnxruntime' in %s is hollow: a distribution that shared it was removed" % sys.prefix,
        )
    return ort


def describe_runtime(ort: Any) -> dict[str, Any]:
    """Return the versions and settings that affect a result."""
    return {
        "onnxruntime": ort.__version__,
        "machine": platform.machine(),
        "processor": processor(),
        "available_providers": list(ort.get_available_providers()),
        "session": {"intra_op_num_threads": 1, "inter_op_num_threads": 1},
    }


def diagnose(cause: str, reason: str, printed: str, owners: list[str]) -> tuple[str, str]:
    """Return a more precise cause and reason of a failed import or registration, if the output has one."""
    if cause in ("no_device", "registration_failed"):
        found = _API_VERSION.search(printed)  # the library asks for an API that this onnxruntime lacks
        if found:
            reason = "%s; onnxruntime printed: %s" % (reason, found.group())
    if cause not in ("import_failed", "registration_failed"):
        return cause, reason
    # Some providers name a missing library only on stderr.
    found = _MISSING_LIBRARY.search(reason) or _MISSING_LIBRARY.search(printed)
    if found:
        library = os.path.basename(next(filter(None, found.groups())))
        return "library_missing", "%s is missing: %s" % (library, reason)
    found = _OTHER_NUMPY.search(printed)  # numpy's warning names it, the error does not
    if found:
        return cause, "it is built for numpy<2 and finds numpy %s: %s" % (found.group(1), reason)
    if _NO_DEVICE.search(reason):
        return "no_device", reason
    if owners:
        return "version_conflict", "%s both own onnxruntime: %s" % (" and ".join(owners), reason)
    return cause, reason
