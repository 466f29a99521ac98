"""Python code that creates the session of a configuration as the agent does, to paste into an application."""

import pprint
from collections.abc import Iterator
from pathlib import Path, PurePath

from harness.core.records.cell import Cell
from harness.core.records.facts import CPU_PROVIDER as CPU
from harness.engine.tasks.configuration import Configuration, configuration
from harness.engine.workers.job import THREADS
from harness.plan.target import LIBRARY_SUFFIXES, Runtime, Target

_FACTS = {
    "type": 'str(device.device.type).rsplit(".", 1)[-1]',
    "vendor": "device.device.vendor",
    "vendor_id": "str(device.device.vendor_id)",
    "device_id": "str(device.device.device_id)",
}
"""Key of a device filter -> its expression; other keys are in the metadata of the EP or the device."""


def session_code(target: Target, cell: Cell, model: PurePath) -> str:
    """Return the code for a target with the axes of a cell.

    It needs onnxruntime and the plugin's package, and defines ``session``.
    """
    return "\n".join(_lines(configuration(target, cell), cell, model)) + "\n"


def _lines(config: Configuration, cell: Cell, model: PurePath) -> Iterator[str]:
    yield from _environment(config)
    yield "import onnxruntime as ort"
    is_library = config.plugin is not None and Path(config.plugin).suffix in LIBRARY_SUFFIXES
    if config.plugin is not None and not is_library:
        yield f"import {config.plugin}"
    yield ""
    yield "options = ort.SessionOptions()"
    level = cell.axis("graph_optimization")
    spelled = "DISABLE_ALL" if level == "disabled" else f"ENABLE_{level.upper()}"
    yield f"options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_{spelled}"
    threads = cell.axis(THREADS) or "1"
    yield f"options.intra_op_num_threads = {int(threads)}" + (
        "  # one for each core" if threads == "0" else ""
    )
    yield "options.inter_op_num_threads = 1"
    for key, value in config.session:
        yield f"options.add_session_config_entry({key!r}, {value!r})"
    if config.plugin is None:
        yield from _of_the_build(config, model)
    else:
        library = repr(config.plugin) if is_library else f"{config.plugin}.get_library_path()"
        yield from _of_a_plugin(config, library, model)


def _environment(config: Configuration) -> Iterator[str]:
    if where := _where(config.runtime):
        yield f"# {where}"
    if config.env:
        yield "import os"
        yield ""
        yield "# Before onnxruntime is imported."
        for key, value in config.env:
            yield f"os.environ[{key!r}] = {value!r}"
        yield ""


def _where(runtime: Runtime) -> str:
    if runtime.packages:
        return f"In an environment with {', '.join(runtime.packages)}."
    if runtime.ssh or runtime.adb:
        return f"On {runtime.ssh or runtime.adb}."
    if runtime.agent:
        return f"With the agent {' '.join(runtime.agent)}."
    return f"With {runtime.python or runtime.command}." if runtime.python or runtime.command else ""


def _of_the_build(config: Configuration, model: PurePath) -> Iterator[str]:
    first, *others = config.providers
    yield "providers = ["
    yield from _indented(f"({first!r}, {_table(config.options)}),")
    yield from (f"    {name!r}," for name in [*others, *([] if CPU in config.providers else [CPU])])
    yield "]"
    yield from _session(model, "options, providers=providers")


def _of_a_plugin(config: Configuration, library: str, model: PurePath) -> Iterator[str]:
    name, *others = config.providers
    yield f"ort.register_execution_provider_library({name!r}, {library})"
    facts = dict(config.device)
    number = int(facts.pop("number", 1))
    wanted = [f"device.ep_name == {name!r}", *(_condition(key, value) for key, value in facts.items())]
    yield "device = ["
    yield "    device"
    yield "    for device in ort.get_ep_devices()"
    yield f"    if {wanted[0]}"
    yield from (f"    and {condition}" for condition in wanted[1:])
    yield f"][{number - 1}]"
    yield from _indented(f"options.add_provider_for_devices([device], {_table(config.options)})", by="")
    yield from (f"options.add_provider({other!r}, {{}})" for other in others if other != CPU)
    yield from _session(model, "options")


def _session(model: PurePath, arguments: str) -> Iterator[str]:
    yield "# Without enable_fallback=0, onnxruntime silently uses the CPU provider if this session fails."
    yield f"session = ort.InferenceSession({str(model)!r}, {arguments}, enable_fallback=0)"


def _condition(key: str, value: str) -> str:
    fact = _FACTS.get(key, f"{{**device.ep_metadata, **device.device.metadata}}.get({key!r}, '')")
    return f"{fact}.lower() == {value.lower()!r}"


def _table(options: tuple[tuple[str, str], ...]) -> str:
    return pprint.pformat(dict(options), width=100)


def _indented(text: str, by: str = "    ") -> Iterator[str]:
    return (by + line for line in text.splitlines())
