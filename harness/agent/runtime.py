"""The onnxruntime of a target: import it, describe it, and say what keeps it from working."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import sys
from typing import Any

from harness.agent.errors import UnavailableError
from harness.agent.system import processor
from harness.agent.text import clean

MISSING_LIBRARY = re.compile(
    # Linux, with nothing between the name and the complaint: a loader names the asking library before it.
    r"([\w.+-]+\.so[.\d]*)[^\w\n]{1,6}(?:cannot open shared object file|not found|No such file)"
    r"|which depends on \"([^\"\n]+)\" which is missing"  # onnxruntime, on Windows
    r"|Library not loaded: ([^\s\"]+)"  # macOS
)

OF_INTEREST = re.compile("onnx|numpy", re.IGNORECASE)  # in the name of a distribution, and in its folder's

OTHER_NUMPY = re.compile(r"compiled using NumPy 1\.x cannot be run in\s+NumPy ([\d.]+)")


def import_onnxruntime() -> Any:
    """Import onnxruntime, or say why not."""
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


def describe_packages() -> dict[str, Any]:
    """Versions of what is installed; where several distributions own ``onnxruntime``, their names."""
    packages: dict[str, str] = {}
    owners: list[str] = []
    for distribution in importlib.metadata.distributions():
        folder = getattr(distribution, "_path", None)
        if folder is not None and not OF_INTEREST.search(folder.name):
            continue  # as nearly all: to read what each says of itself takes longer than onnxruntime needs
        name = distribution.metadata["Name"] or ""
        if "onnx" in name.lower() or name.lower() == "numpy":
            packages[name] = distribution.version or ""  # None in what pip left behind broken
        if name.lower().startswith("onnxruntime"):
            # One look at the text: to read it as a table takes longer than to import onnxruntime.
            files = "\n" + (distribution.read_text("RECORD") or "").replace("\\", "/")
            if "\nonnxruntime/__init__.py," in files:
                owners.append(name)
    return {"packages": packages, **({"owners": owners} if len(owners) > 1 else {})}


def describe_runtime(ort: Any) -> dict[str, Any]:
    """The versions that decide a result."""
    return {
        "onnxruntime": ort.__version__,
        "machine": platform.machine(),
        "processor": processor(),
        "available_providers": list(ort.get_available_providers()),
        "session": {"intra_op_num_threads": 1, "inter_op_num_threads": 1},
    }


def diagnose(cause: str, reason: str, printed: str, owners: list[str]) -> tuple[str, str]:
    """Look behind a failure to import or register: a cause that somebody can mend, where there is one."""
    if cause not in ("import_failed", "registration_failed"):
        return cause, reason
    # Some providers say on stderr alone what the loader did not find.
    found = MISSING_LIBRARY.search(reason) or MISSING_LIBRARY.search(printed)
    if found:
        library = os.path.basename(next(filter(None, found.groups())))
        return "library_missing", "%s is missing: %s" % (library, reason)
    found = OTHER_NUMPY.search(printed)  # numpy warns of it, the error that follows does not
    if found:
        return cause, "it is built for numpy<2 and finds numpy %s: %s" % (found.group(1), reason)
    if owners:
        return "version_conflict", "%s both own onnxruntime: %s" % (" and ".join(owners), reason)
    return cause, reason
