"""Python code that makes a model of onnxruntime-genai with a configuration, to paste into an application."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.core.records.cell import Cell
from harness.core.records.facts import CPU_PROVIDER as CPU
from harness.engine.tasks.configuration import Configuration, configuration
from harness.engine.workers.job import THREADS
from harness.plan.target import LIBRARY_SUFFIXES, Target

_SUFFIX = "ExecutionProvider"

_NAMES = {
    "cuda": "cuda",
    "qnn": "QNN",
    "webgpu": "WebGPU",
    "dml": "DML",
    "openvino": "OpenVINO",
    "vitisai": "VitisAI",
    "ryzenai": "RyzenAI",
    "nvtensorrtrtx": "NvTensorRtRtx",
    "amdgpu": "AMDGPU",
}
"""Provider, in small letters and without suffix -> its name in onnxruntime-genai.

https://github.com/microsoft/onnxruntime-genai, src/config.cpp: NormalizeProviderName.
"""

_DEVICE = {
    "type": "set_decoder_provider_options_hardware_device_type",
    "device_id": "set_decoder_provider_options_hardware_device_id",
    "vendor_id": "set_decoder_provider_options_hardware_vendor_id",
}
"""Key of a device filter -> the method of ``Config`` that sets it; the last two take numbers."""


def genai_code(target: Target, cell: Cell, folder: Path, *, shares: bool) -> str:
    """Return the code, which needs onnxruntime-genai 0.9 or later and defines ``model``.

    It is a comment if onnxruntime-genai does not know the provider. ``genai_config.json`` is in the folder;
    ``shares`` tells whether past and present share one buffer.
    """
    config = configuration(target, cell)
    provider = config.providers[0]
    name = _NAMES.get(provider.removesuffix(_SUFFIX).lower(), "")
    if provider != CPU and not name:
        return f"# onnxruntime-genai has no name for {provider}.\n"
    return "\n".join(_lines(config, cell, folder, name, shares=shares)) + "\n"


def _lines(config: Configuration, cell: Cell, folder: Path, name: str, *, shares: bool) -> Iterator[str]:
    if config.env:
        yield "import os"
        yield ""
        yield from (f"os.environ[{key!r}] = {value!r}" for key, value in config.env)
        yield ""
    yield "import onnxruntime_genai as og"
    if config.plugin is not None:
        is_library = Path(config.plugin).suffix in LIBRARY_SUFFIXES
        if not is_library:
            yield f"import {config.plugin}"
        library = repr(config.plugin) if is_library else f"{config.plugin}.get_library_path()"
        yield ""
        yield f"og.register_execution_provider_library({config.providers[0]!r}, {library})"
    yield ""
    yield f"config = og.Config({str(folder)!r})"
    yield "config.clear_providers()  # those of genai_config.json; without any, the CPU provider computes"
    if name:
        yield f"config.append_provider({name!r})"
        for key, value in config.options:
            yield f"config.set_provider_option({name!r}, {key!r}, {value!r})"
        yield from _device(config, name)
    for part in _overlays(config, cell, shares=shares):
        yield f"config.overlay({json.dumps(part)!r})"
    yield "model = og.Model(config)"


def _device(config: Configuration, name: str) -> Iterator[str]:
    for key, value in config.device:
        method = _DEVICE.get(key)
        shown = repr(value.lower()) if key == "type" else _number(value)
        if method is None or not shown:
            yield f"# onnxruntime-genai cannot choose a device by {key!r}: {value!r}."
        else:
            yield f"config.{method}({name!r}, {shown})"


def _overlays(config: Configuration, cell: Cell, *, shares: bool) -> Iterator[dict[str, Any]]:
    level = cell.axis("graph_optimization")
    spelled = {"disabled": "DISABLE_ALL", "layout": "ENABLE_ALL"}.get(level, f"ENABLE_{level.upper()}")
    session = {
        "graph_optimization_level": f"ORT_{spelled}",
        "intra_op_num_threads": int(cell.axis(THREADS) or "1"),
        "inter_op_num_threads": 1,
        **dict(config.session),
    }
    yield {"model": {"decoder": {"session_options": session}}}
    yield {"search": {"past_present_share_buffer": shares}}


def _number(value: str) -> str:
    """Return a number as code; empty if it is none."""
    try:
        return str(int(value, 0))
    except ValueError:
        return ""
