"""The data sets that a scenario plays with the smallest model of a fault, which a bundle has to have."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.annex.triage.failure_check import FailureCheck
from harness.annex.triage.subject import Subject
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.scenario import GENERATE, PLAIN, SCENARIOS
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.derived.scenario_case import scenario_case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import Suite

_MODEL = "model.onnx"


class PlayedSets(msgspec.Struct, frozen=True, kw_only=True):
    """The model that a scenario runs, which may be a copy with further inputs, and its data sets."""

    model: bytes
    data_sets: tuple[DataSet, ...]


def played_sets(subject: Subject, check: FailureCheck) -> PlayedSets | None:
    """Return what a scenario with data of its own plays; data sets that the CPU EP refuses are left out.

    Returns:
        None for another scenario, for a model with external data, and if the scenario does not apply.
    """
    scenario = dict(check.axes).get("scenario", PLAIN)
    if not SCENARIOS[scenario].other_data or scenario == GENERATE or subject.external is not None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / _MODEL).write_bytes(subject.model)
        suite = Suite(name="played", root=Path(folder), kind="folder", names=(_MODEL,))
        case = load_case(suite, _MODEL, {})
        given = DataSet(name="given", inputs=subject.inputs)
        found = scenario_case(msgspec.structs.replace(case, data_sets=(given,), recipe=None), scenario)
        if not isinstance(found, Case):
            return None
        model = found.model_path.read_bytes()
    judged = (_with_golden(model, data_set, check) for data_set in found.data_sets)
    data_sets = tuple(data_set for data_set in judged if data_set is not None)
    return PlayedSets(model=model, data_sets=data_sets) if data_sets else None


def limits_of_sets(rows: tuple[OutputMetrics, ...], share: float) -> Iterator[tuple[str, float]]:
    """Yield for each output that is wrong in any data set the largest distance that is no fault.

    It is a ``share`` of the smallest error, because only the first data set has outputs to measure.
    """
    least: dict[str, float] = {}
    for row in rows:
        number, _, name = row.name.partition("/")
        name = name if number.isdecimal() and name else row.name
        if row.mismatched and row.relative_error:
            least[name] = min(least.get(name, 1.0), row.relative_error)
    yield from ((name, error * share) for name, error in least.items())


def _with_golden(model: bytes, data_set: DataSet, check: FailureCheck) -> DataSet | None:
    golden = check.lab.golden(Subject(model=model, inputs=data_set.inputs))
    return None if golden is None else DataSet(name="", inputs=data_set.inputs, expected=golden)
