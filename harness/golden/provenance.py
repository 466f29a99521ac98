"""What a CPU result depends on besides the model and its inputs."""

import functools
import hashlib
import importlib.util
import platform
import re
from pathlib import Path

_VERSION = re.compile(r"""^__version__\s*=\s*["']([^"']+)["']""", re.MULTILINE)


@functools.cache
def provenance() -> dict[str, str]:
    """Versions, processor and session settings of the CPU EP in the harness's own interpreter.

    Found without importing onnxruntime, which costs a fifth of a second and may fail; empty
    ``onnxruntime`` where there is none.
    """
    return {
        "onnxruntime": _onnxruntime_version(),
        "machine": platform.machine(),
        "processor": _processor(),
        "graph_optimization": "all",
        "intra_op_num_threads": "1",
    }


def _onnxruntime_version() -> str:
    # Whichever distribution owns the module (onnxruntime, -gpu, -openvino), its source says the version.
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        return ""
    found = _VERSION.search(Path(spec.origin).read_text(encoding="utf-8", errors="replace"))
    return found.group(1) if found else ""


def _processor() -> str:
    """Model and a digest of the instruction sets: the CPU EP picks kernels, and so roundings, by them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    features = facts.get("flags") or facts.get("Features", "")
    digest = hashlib.sha256(features.encode()).hexdigest()[:12]
    return f"{facts.get('model name') or facts.get('CPU part', '')} ({digest})"
