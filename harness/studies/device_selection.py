"""What the selection policies of onnxruntime choose here, with every plugin library at hand registered.

Each policy has a process of its own, so a provider that crashes under one does not lose the others.
"""

import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from harness import agent
from harness.agent import selection_process
from harness.agent.bootstrap import BOOTSTRAP, program_of
from harness.agent.launcher import exit_cause
from harness.agent.sources import sources_in
from harness.agent.system import processor
from harness.catalog.catalog import load_catalog
from harness.core.records.selection_study import (
    ChosenProvider,
    OfferedDevice,
    SelectionAnswer,
    SelectionStudy,
)
from harness.core.text.errors import one_line
from harness.core.values.value import leaves_of
from harness.corpus.load_case import load_case
from harness.engine.processes.started import OUTPUT, start_process
from harness.runtimes.process_group import kill_group
from harness.studies.plugins import installed_plugins
from harness.studies.trial import probe_suite

_LIMIT_S = 60.0
"""Seconds of one process; the slowest plugin known takes 3 s."""

_START = "from harness.agent.selection_process import serve_selection; serve_selection(%r)"

Library = tuple[str, str]
"""A provider, and the package or the path of its plugin library."""


def study_selection(
    provider: str, plugin: str | None, env: Mapping[str, str], installed: Sequence[Library] | None = None
) -> tuple[SelectionStudy, ...]:
    """Try the policies with the plugin of one provider alone, then together with all installed plugins.

    Args:
        provider: The provider; policies choose among others, too.
        plugin: Its package, or the path of its library; None for a provider of the build.
        env: Environment variables of each process.
        installed: The installed plugins; by default they are looked for.

    Raises:
        UsageError: The cache cannot be written.
    """
    own = {} if plugin is None else {provider: plugin}
    found = installed_plugins(load_catalog()) if installed is None else installed
    every = own | {name: each for name, each in found if name not in own}
    sets = [own, every] if every != own else [own]
    return tuple(SelectionTrial(tuple(each.items()), env).run() for each in sets)


class _Told(msgspec.Struct, kw_only=True):
    """What one process told, the last value of each kind.

    Attributes:
        step: The last step that it began.
        refused: Library -> why it was not registered.
        devices: Provider, type and words of each that is offered.
        chosen: Providers of the session, each with the types and the words of its devices.
        ended: How and at which step it died; empty if it did not.
    """

    step: str = "start"
    runtime: str = ""
    declined: str = ""
    error: str = ""
    refused: dict[str, str] = {}
    policies: tuple[str, ...] = ()
    devices: tuple[tuple[str, str, str], ...] = ()
    chosen: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = ()
    nodes: dict[str, int] | None = None
    outputs: list[Any] | None = None
    ended: str = ""


class SelectionTrial:
    """Tries the policies of the onnxruntime of one interpreter.

    Args:
        libraries: Those that are registered, in this order.
        env: Environment variables of each process.
        python: The interpreter.
    """

    def __init__(
        self, libraries: Sequence[Library], env: Mapping[str, str], python: str = sys.executable
    ) -> None:
        self._libraries = list(libraries)
        self._env = dict(env)
        self._python = python
        own = Path(selection_process.__file__).read_text("utf-8")
        self._sources = {**sources_in(str(Path(agent.__file__).parent)), selection_process.__name__: own}
        suite = probe_suite()
        (name,) = suite.models()
        case = load_case(suite, name, {})
        (data,) = case.data_sets
        self._model = str(case.model_path)
        self._inputs = {key: value.array.tolist() for key, value in leaves_of(data.inputs) if value}
        self._expected = [value.array for _, value in leaves_of(data.expected) if value]

    def run(self) -> SelectionStudy:
        """Try each policy, and return what came of it."""
        takes_part = {name: "" for name, _ in self._libraries}
        survey = self._ask("")
        while survey.ended and (name := survey.step.removeprefix("register ")) in dict(self._libraries):
            # It would take every policy with it.
            takes_part[name] = survey.ended
            self._libraries = [each for each in self._libraries if each[0] != name]
            survey = self._ask("")
        offered = tuple(
            OfferedDevice(provider=name, type=kind, device=words) for name, kind, words in survey.devices
        )
        for name, ended in takes_part.items():
            # OpenVINO offers further providers whose names begin with its own.
            if not any(each.provider.startswith(name) for each in offered):
                takes_part[name] = ended or survey.refused.get(name, "it offers no device here")
        return SelectionStudy(
            machine=f"{processor()['model'] or platform.machine()}, {platform.system()}",
            runtime=survey.runtime,
            libraries=takes_part if survey.policies else {},
            offered=offered,
            answers=tuple(map(self._answer, survey.policies)),
            declined="" if survey.policies else survey.declined or survey.error or survey.ended,
        )

    def _answer(self, policy: str) -> SelectionAnswer:
        told = self._ask(policy)
        chosen = tuple(
            ChosenProvider(
                provider=name,
                devices=tuple(
                    OfferedDevice(provider=name, type=kind, device=words)
                    for kind, words in zip(kinds, devices, strict=False)
                ),
                nodes=None if told.nodes is None else told.nodes.get(name, 0),
            )
            for name, kinds, devices in told.chosen
        )
        right = None if told.outputs is None else self._is_right(told.outputs)
        failed = one_line("; ".join(filter(None, (told.error, told.ended))), 300)
        return SelectionAnswer(policy=policy, chosen=chosen, right=right, failed=failed)

    def _is_right(self, outputs: list[Any]) -> bool:
        """Return whether the outputs are right: small integers, exact at every precision."""
        if len(outputs) != len(self._expected):
            return False
        return all(map(np.array_equal, outputs, self._expected))

    def _ask(self, policy: str) -> _Told:
        request = {
            "libraries": self._libraries,
            "model": self._model,
            "inputs": self._inputs,
            "policy": policy,
        }
        text = program_of(self._sources, self._sources["harness.agent.importer"], _START % request)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            try:
                popen = start_process((self._python, "-u", "-c", BOOTSTRAP), self._env, Path(folder))
            except (OSError, ValueError) as error:
                return _Told(ended=f"{self._python} cannot be started: {error}")
            try:
                printed, _ = popen.communicate(text, timeout=_LIMIT_S)
                end = exit_cause(popen.returncode)
            except subprocess.TimeoutExpired:
                kill_group(popen)
                printed, _ = popen.communicate()
                end = "hang"
            finally:
                kill_group(popen)
            told = _read(printed)
            if end:
                words = (Path(folder) / OUTPUT).read_text("utf-8", "replace").strip().splitlines()
                last = f": {words[-1]}" if told.step == "start" and words else ""
                told.ended = one_line(f"{end} at {told.step}{last}", 300)
            return told


def _read(printed: bytes) -> _Told:
    """Return the messages of a process; the last line may be cut off."""
    found: dict[str, Any] = {"refused": {}}
    try:
        for line in printed.decode("utf-8", "replace").splitlines(keepends=True):
            if line.endswith("\n"):
                kind, value = json.loads(line)
                if kind == "refused":
                    found[kind][value[0]] = one_line(value[1], 300)
                else:
                    found[kind] = value
        return msgspec.convert(found, _Told)
    except (ValueError, TypeError, LookupError):
        return _Told(error="its messages cannot be read")
