"""What a CPU result depends on besides the model and its inputs."""

import functools
import hashlib
import importlib.metadata
import platform
from pathlib import Path

from harness.corpus.caches.runtime_version import onnxruntime_version

SESSION = {"session.disable_quant_qdq": "1"}
"""Session configuration of goldens: quantized models are computed as ONNX defines them.

By default the CPU EP fuses the operators between DequantizeLinear and QuantizeLinear into integer kernels,
and int4 weights into ``MatMulNBits``, which rounds the activations to 8 bits. That is faster, but differs by
several quantization steps, and other EPs need not do the same.
"""

WHERE_POSSIBLE = {"session.x64quantprecision": "1"}
"""Further entries, for models whose session can be created with them: constant int8 weights become uint8.

On x86-64 processors without VNNI the CPU EP adds two products of uint8 and int8 in 16 bits, which saturate.
Of random bytes a MatMulInteger is off by a fifth, and a DynamicQuantizeMatMul by two fifths (onnxruntime
1.32.0 with AVX2). Then other EPs are right and the CPU EP is wrong. On other processors the entry changes
nothing. onnxruntime refuses it for models with int8 activations, whose kernels do not saturate.
"""

FLOAT64_FORMAT = "1"
"""Rises when results in float64 change although nothing else does."""


@functools.cache
def provenance() -> dict[str, str]:
    """Return versions, processor and session settings of the CPU EP in the harness's own interpreter.

    Does not import onnxruntime, which takes 0.2 s and may fail. ``onnxruntime`` is empty if it is not
    installed.
    """
    return {
        "onnxruntime": onnxruntime_version(),
        "machine": platform.machine(),
        "processor": _processor(),
        "graph_optimization": "all",
        "intra_op_num_threads": "1",
        **SESSION,
        **WHERE_POSSIBLE,
    }


@functools.cache
def evaluator_provenance() -> dict[str, str]:
    """Return what the results of ``onnx.reference`` depend on."""
    packages = ("onnx", "numpy", "ml_dtypes")
    return {"evaluator": "onnx.reference"} | {name: importlib.metadata.version(name) for name in packages}


@functools.cache
def composed_provenance() -> dict[str, str]:
    """Return what results in float64, node by node, depend on."""
    versions = evaluator_provenance() | {"onnxruntime": onnxruntime_version()}
    return versions | {"evaluator": "float64", "format": FLOAT64_FORMAT}


def may_saturate() -> bool:
    """Return whether the CPU EP here may saturate sums of products of uint8 and int8; False if it may not."""
    x86 = platform.machine().lower() in {"x86_64", "amd64", "i386", "i686", "x86"}
    return x86 and not {"avx_vnni", "avx512_vnni"} & set(cpu_features().split())


def cpu_features() -> str:
    """Return the instruction sets, separated by spaces, as the system lists them; empty if it lists none."""
    facts = _cpuinfo()
    return facts.get("flags") or facts.get("Features", "")


def _processor() -> str:
    """Return the model and a digest of the instruction sets, by which the CPU EP picks its kernels."""
    facts = _cpuinfo()
    if not facts:
        return platform.processor()
    digest = hashlib.sha256(cpu_features().encode()).hexdigest()[:12]
    return f"{facts.get('model name') or facts.get('CPU part', '')} ({digest})"


@functools.cache
def _cpuinfo() -> dict[str, str]:
    """Return what Linux says about the last processor; nothing on other systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
