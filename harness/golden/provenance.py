"""What a CPU result depends on besides the model and its inputs."""

import functools
import hashlib
import importlib.metadata
import platform
from pathlib import Path

from harness.corpus.runtime_version import onnxruntime_version

SESSION = {"session.disable_quant_qdq": "1"}
"""Session configuration of goldens: what a model quantizes is computed as ONNX defines it.

By default the CPU EP fuses the operators between DequantizeLinear and QuantizeLinear into integer kernels,
and int4 weights into ``MatMulNBits``, which rounds the activations to 8 bits: quicker, and several steps of
the quantization off. That is the choice of one EP, and no measure for the others.
"""


@functools.cache
def provenance() -> dict[str, str]:
    """Versions, processor and session settings of the CPU EP in the harness's own interpreter.

    Found without importing onnxruntime, which costs a fifth of a second and may fail; empty
    ``onnxruntime`` where there is none.
    """
    return {
        "onnxruntime": onnxruntime_version(),
        "machine": platform.machine(),
        "processor": _processor(),
        "graph_optimization": "all",
        "intra_op_num_threads": "1",
        **SESSION,
    }


@functools.cache
def evaluator_provenance() -> dict[str, str]:
    """What the answers of ``onnx.reference`` depend on."""
    packages = ("onnx", "numpy", "ml_dtypes")
    return {"evaluator": "onnx.reference"} | {name: importlib.metadata.version(name) for name in packages}


def cpu_features() -> str:
    """The instruction sets as the system lists them, with spaces between; empty where it lists none."""
    facts = _cpuinfo()
    return facts.get("flags") or facts.get("Features", "")


def _processor() -> str:
    """Model and a digest of the instruction sets: the CPU EP picks kernels, and so roundings, by them."""
    facts = _cpuinfo()
    if not facts:
        return platform.processor()
    digest = hashlib.sha256(cpu_features().encode()).hexdigest()[:12]
    return f"{facts.get('model name') or facts.get('CPU part', '')} ({digest})"


@functools.cache
def _cpuinfo() -> dict[str, str]:
    """What Linux says of the last processor; nothing on other systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
