"""Ways to use a provider, each tried on one tiny model by the engine."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from harness.catalog.catalog import find_provider
from harness.catalog.provider import Provider
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.corpus.caches.cache import cache_root, fill_once
from harness.corpus.suites.suite import Suite, open_folder
from harness.engine.engine import Engine
from harness.engine.tasks.events import Finished, TargetReady
from harness.plan.expand import expand
from harness.plan.matrix import Matrix, ModelSelection
from harness.plan.target import Target
from harness.studies.ask import Notify, results

PROBE_FORMAT = 1
"""Version of the model; part of its folder's name."""

_PROBE = "probe.onnx"


class ProviderWay(msgspec.Struct, frozen=True, kw_only=True):
    """One way to try a provider. ``meaning`` is the difference from the default way."""

    target: Target
    meaning: str = ""


class TrialResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a way: the record of the only model, and the environment as far as it is known."""

    way: ProviderWay
    record: Record
    printed: str
    fingerprint: dict[str, Any]

    @property
    def target(self) -> Target:
        """The target that was tried."""
        return self.way.target

    @property
    def provider(self) -> Provider | None:
        """Its provider's entry in the catalogue; None if there is none."""
        return find_provider(self.target.provider[0])

    @property
    def cause(self) -> str:
        """Why it does not work: a ``Cause`` or, if a session was tried, the ``Verdict``."""
        return self.record.cause if self.record.verdict is Verdict.UNAVAILABLE else str(self.record.verdict)

    @property
    def nodes(self) -> int | None:
        """Number of nodes that the provider computed; None if nothing ran."""
        placement = self.record.placement
        return None if placement is None else placement.ep_nodes

    @property
    def works(self) -> bool:
        """Whether the answer was right, even if the CPU provider computed it."""
        return self.record.family in {Family.PASSED, Family.UNTESTED}


class ProviderTrial:
    """Tries several series of ways at once; of each series the next way if the former computed nothing.

    Args:
        series: Name -> its ways.
        waiting: Series that are tried only if their provider is in the build; processes for all others would
            take many seconds.
        asked: The series whose process reports the providers of the build; not one of ``waiting``.
    """

    def __init__(
        self,
        series: Mapping[str, tuple[ProviderWay, ...]],
        *,
        waiting: frozenset[str],
        asked: str,
        notify: Notify,
    ) -> None:
        self._series = series
        self._waiting = waiting
        self._asked = series[asked][0].target.name
        self._notify = notify
        self._found: dict[str, TrialResult] = {}
        self._under_way: dict[str, tuple[str, int]] = {}

    def run(self) -> dict[str, TrialResult]:
        """Try all series, and return the best result of each series that was tried.

        Raises:
            UsageError: The cache cannot be written.
        """
        suite = probe_suite()
        targets = tuple(way.target for ways in self._series.values() for way in ways)
        matrix = Matrix(
            path="doctor", schema=1, models=ModelSelection(folders=(str(suite.root),)), targets=targets
        )
        plan = expand(matrix, {suite.name: suite.models()})
        self._cells = {cell.target: cell for cell in plan.cells}
        with closing(Engine(plan, {suite.name: suite})) as self._engine:
            for name in self._series:
                if name not in self._waiting:
                    self._try(name, 0)
            self._consume()
        return self._found

    def _try(self, name: str, number: int) -> None:
        target = self._series[name][number].target.name
        self._under_way[target] = name, number
        self._engine.submit([self._cells[target]])

    def _consume(self) -> None:
        fingerprints: dict[str, dict[str, Any]] = {}
        for event in results(self._engine, self._notify):
            if isinstance(event, TargetReady):
                fingerprints[event.target] = event.fingerprint
                if event.target == self._asked:
                    available = event.fingerprint.get("available_providers", ())
                    for name in self._waiting:
                        if self._series[name][0].target.provider[0] in available:
                            self._try(name, 0)
            elif isinstance(event, Finished):
                self._take(event, fingerprints.get(event.record.target, {}))
            if not self._under_way:
                self._engine.drain()

    def _take(self, event: Finished, fingerprint: dict[str, Any]) -> None:
        name, number = self._under_way.pop(event.record.target)
        ways = self._series[name]
        found = TrialResult(
            way=ways[number], record=event.record, printed=event.printed, fingerprint=fingerprint
        )
        best = self._found.get(name)
        if best is None or (found.works, found.nodes or 0) > (best.works, best.nodes or 0):
            self._found[name] = found
        if not found.nodes and number + 1 < len(ways):
            self._try(name, number + 1)


def probe_suite() -> Suite:
    """Return the suite: one model with its expected output, kept in the cache so that its golden is reused.

    Its operators are Conv and Relu; nearly every provider supports one of them. All values are small
    integers, exact at every precision that a provider may use.

    Raises:
        UsageError: The cache cannot be written.
    """
    return open_folder(fill_once(cache_root() / f"probe-v{PROBE_FORMAT}", _write_probe))


def _write_probe(folder: Path) -> None:
    import onnx
    from onnx import helper, numpy_helper

    image = (np.arange(16, dtype=np.float32) % 5 - 2).reshape(1, 1, 4, 4)
    kernel = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]], np.float32).reshape(1, 1, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(image[0, 0], (3, 3))
    answer = np.maximum((windows * kernel[0, 0]).sum(axis=(2, 3)), 0).reshape(1, 1, 2, 2)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
            helper.make_node("Relu", ["c"], ["y"], name="relu"),
        ],
        "probe",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, image.shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, answer.shape)],
        [numpy_helper.from_array(kernel, "w")],
    )
    # An opset and IR version that the oldest supported runtime accepts.
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7), folder / _PROBE
    )
    data = folder / "test_data_set_0"
    data.mkdir()
    for name, value in (("input_0.pb", image), ("output_0.pb", answer.astype(np.float32))):
        (data / name).write_bytes(numpy_helper.from_array(value).SerializeToString())
