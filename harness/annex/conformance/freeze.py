"""Freezing: turns candidates of a profile into the files of cases, or gives the reason why not.

Each candidate is first written in ONNX's test layout, so that every question uses exactly the bytes that are
frozen.
"""

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from harness.annex.conformance.case_admission import NotAdmittedError, check_case_golden, golden_of_candidate
from harness.annex.conformance.profiles.case_files import CASE_MODEL, digests_of, noise_file
from harness.annex.conformance.profiles.profile import CORE, ProfileCase, ProfileRules
from harness.annex.conformance.profiles.profile_suite import policy_of_case
from harness.annex.conformance.restamp import restamp
from harness.core.comparison.tolerance import computing_precision
from harness.core.noise.spread import Spread, spread_of
from harness.core.records.scenario import GENERATE, PLAIN, SCENARIOS
from harness.core.text.errors import one_line
from harness.core.values.value import Floats, NamedValues, leaves_of
from harness.corpus.case import Case
from harness.corpus.derived.inner_outputs import read_by_partials
from harness.corpus.derived.noisy import amplitudes_of, noisy_case
from harness.corpus.derived.scenario_case import Inapplicable, scenario_case
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.model.model_file import load_model
from harness.corpus.suites.suite import Suite, open_folder
from harness.corpus.suites.suites import open_suite
from harness.engine.tasks.events import Answered
from harness.engine.tasks.task import HOME, QuestionKind
from harness.golden.golden_answer import Golden
from harness.golden.recording import value_files
from harness.studies.ask import Notify, PlannedModels

_KINDS = (
    QuestionKind.ANSWER,
    QuestionKind.EVALUATED,
    QuestionKind.FLOAT64,
    QuestionKind.FLOAT64_EVALUATED,
    QuestionKind.UNDEFINED,
)

_NEWEST_OPSET = 24
"""The newest opset of a case: onnxruntime 1.24 is the first that loads it, and 1.23 ends with 23."""

_NOISE_BITS = 6
"""Bits of the mantissa that frozen noise keeps: at most 3.2 % too large, and an archive packs it well."""


class CaseCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A model of a suite that may become a case in a scenario, and the feature that it would belong to."""

    suite: str
    model: str
    scenario: str = PLAIN
    feature: str = CORE

    @property
    def name(self) -> str:
        """The name of the case: a scenario's own data give it another one."""
        plain = f"{self.suite.replace(':', '-')}/{self.model.removesuffix('.onnx')}"
        return f"{plain}-{self.scenario}" if SCENARIOS[self.scenario].other_data else plain

    @property
    def key(self) -> tuple[str, str]:
        """The key of the case."""
        return self.name, self.scenario


class FrozenCases(msgspec.Struct, frozen=True, kw_only=True):
    """The results of candidates.

    Attributes:
        cases: Sorted by name and scenario.
        files: Path in the archive -> content.
        refused: Name of a candidate -> why it is no case.
    """

    cases: tuple[ProfileCase, ...]
    files: dict[str, bytes]
    refused: dict[str, str]


def freeze(
    candidates: Sequence[CaseCandidate], rules: ProfileRules, scratch: Path, notify: Notify
) -> FrozenCases:
    """Freeze candidates under the profile's judging rules; the scratch folder is empty.

    Raises:
        UsageError: A suite does not exist, or the cache cannot be written.
    """
    refused = _doubles(candidates)
    candidates = [one for one in candidates if one.name not in refused]
    _write_candidates(candidates, scratch / "cases", refused)
    if all(one.name in refused for one in candidates):
        return FrozenCases(cases=(), files={}, refused=refused)
    suite = open_folder(scratch / "cases")
    names = {one.name: f"{one.name}/{CASE_MODEL}" for one in candidates if one.name not in refused}
    loaded: dict[str, Case] = {}
    for name, model in names.items():
        try:
            case = load_case(suite, model, {})
            if case.facts.opsets.get("ai.onnx", 0) > _NEWEST_OPSET:
                refused[name] = f"it needs an opset above {_NEWEST_OPSET}"
            else:
                loaded[name] = case
        except ModelError as error:
            refused[name] = one_line(error)
    answers = _answers(suite, loaded, notify)
    goldens: dict[str, tuple[NamedValues, ...]] = {}
    for name, case in loaded.items():
        try:
            goldens[name] = golden_of_candidate(case, answers[name])
        except NotAdmittedError as error:
            refused[name] = one_line(error)
    spreads = _spreads(loaded, goldens, scratch / "noisy", notify)
    cases: list[ProfileCase] = []
    files: dict[str, bytes] = {}
    for one in sorted(candidates, key=lambda one: one.key):
        if one.name not in goldens or one.name in refused:
            continue
        case, golden, spread = loaded[one.name], goldens[one.name], spreads[one.name]
        try:
            of_case = _files(case, golden, spread)
            entry = _entry(one, case, of_case)
            check_case_golden(case, golden, answers[one.name], spread, policy_of_case(rules, entry))
        except (NotAdmittedError, ValueError) as error:
            refused[one.name] = one_line(error)
            continue
        cases.append(entry)
        files |= {f"{one.name}/{path}": content for path, content in of_case.items()}
    return FrozenCases(cases=tuple(cases), files=files, refused=refused)


def _doubles(candidates: Sequence[CaseCandidate]) -> dict[str, str]:
    """Return the names under which several candidates would be one case; the intended one is unknown."""
    count = Counter(one.key for one in candidates)
    return {
        name: f"{number} candidates would be this case with the scenario {scenario}"
        for (name, scenario), number in count.items()
        if number > 1
    }


def _write_candidates(candidates: Sequence[CaseCandidate], folder: Path, refused: dict[str, str]) -> None:
    """Write each candidate with the inputs of its scenario, and with what its suite expects."""
    folder.mkdir(parents=True)
    suites: dict[str, Suite] = {}
    for one in {one.name: one for one in candidates}.values():
        try:
            suite = suites.get(one.suite) or suites.setdefault(one.suite, open_suite(one.suite))
            if one.model not in suite.models():
                refused[one.name] = "the suite has no such model"
                continue
            case = load_case(suite, one.model, {})
            played = scenario_case(case, one.scenario) if SCENARIOS[one.scenario].other_data else case
        except ModelError as error:
            refused[one.name] = one_line(error)
            continue
        if isinstance(played, Inapplicable) or one.scenario == GENERATE or case.external:
            why = played.reason if isinstance(played, Inapplicable) else "it needs more files than a case has"
            refused[one.name] = why
            continue
        model = load_model(played.model_path)
        restamp(model)
        _write(folder / one.name, model.SerializeToString(deterministic=True), _values(played))


def _answers(
    suite: Suite, cases: Mapping[str, Case], notify: Notify
) -> dict[str, dict[QuestionKind, Golden]]:
    found: dict[str, dict[QuestionKind, Golden]] = {name: {} for name in cases}
    for kind in _KINDS:
        asked = [
            name
            for name, case in cases.items()
            if kind is not QuestionKind.UNDEFINED or read_by_partials(case)
        ]
        for name, golden in _ask(suite, asked, kind, notify):
            found[name][kind] = golden
    return found


def _spreads(
    cases: Mapping[str, Case], goldens: Mapping[str, tuple[NamedValues, ...]], folder: Path, notify: Notify
) -> dict[str, Spread]:
    """Return the noise of each golden; that of a model without any form with noise has no leaves."""
    folder.mkdir(parents=True)
    amplitudes: dict[str, tuple[float, ...]] = {}
    for name in goldens:
        noisy = noisy_case(cases[name], _precision(cases[name]))
        if isinstance(noisy, Case):
            amplitudes[name] = amplitudes_of(noisy)
            _write(folder / name, noisy.model_path.read_bytes(), _values(noisy))
    found = {name: _none(cases[name]) for name in goldens}
    if amplitudes:
        for name, golden in _ask(open_folder(folder), list(amplitudes), QuestionKind.ANSWER, notify):
            if golden.status == "ok":
                precision = _precision(cases[name])
                spread = spread_of(goldens[name], golden.outputs, amplitudes[name], precision)
                outputs = tuple(
                    {leaf: _few_bits(one) for leaf, one in part.items()} for part in spread.outputs
                )
                found[name] = Spread(precision=precision, outputs=outputs)
    return found


def _none(case: Case) -> Spread:
    return Spread(precision=_precision(case), outputs=tuple({} for _ in case.data_sets))


def _ask(
    suite: Suite, names: Sequence[str], kind: QuestionKind, notify: Notify
) -> Iterator[tuple[str, Golden]]:
    """Yield what the CPU provider or ``onnx.reference`` answers, for candidates of a folder."""
    models = [(suite.name, f"{name}/{CASE_MODEL}") for name in names]
    for event in PlannedModels.of_folder(suite).answers(models, HOME, notify, kind):
        if isinstance(event, Answered) and event.golden is not None:
            yield event.model.removesuffix(f"/{CASE_MODEL}"), event.golden


def _precision(case: Case) -> str:
    return computing_precision(case.facts.float_types, "float32")


def _entry(one: CaseCandidate, case: Case, files: Mapping[str, bytes]) -> ProfileCase:
    digests = digests_of(files)
    values = [
        part for data_set in case.data_sets for _, part in leaves_of((*data_set.inputs, *data_set.expected))
    ]
    declared = {kind.dtype for kind in case.output_types if kind.dtype}
    return ProfileCase(
        name=one.name,
        feature=one.feature,
        scenario=one.scenario,
        model=digests.model,
        inputs=digests.inputs,
        golden=digests.golden,
        ops=dict(case.facts.op_types),
        types=tuple(sorted(declared | {part.dtype for part in values if part is not None})),
        opset=case.facts.opsets.get("ai.onnx", 0),
        precision=_precision(case),
    )


def _files(case: Case, golden: Sequence[NamedValues], spread: Spread) -> dict[str, bytes]:
    """Return the files of a case."""
    files = {CASE_MODEL: case.model_path.read_bytes(), **dict(value_files(case, golden))}
    for number, outputs in enumerate(golden):
        for index, (leaf, _) in enumerate(leaves_of(outputs)):
            if (noise := spread.outputs[number].get(leaf)) is not None:
                content = io.BytesIO()
                np.lib.format.write_array(content, noise, version=(1, 0), allow_pickle=False)
                files[noise_file(number, index)] = content.getvalue()
    return files


def _values(case: Case) -> Iterator[tuple[str, bytes]]:
    return value_files(case, tuple(data_set.expected for data_set in case.data_sets))


def _write(home: Path, model: bytes, values: Iterator[tuple[str, bytes]]) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / CASE_MODEL).write_bytes(model)
    (home / "test_data_set_0").mkdir(exist_ok=True)  # a model without inputs has an empty one
    for name, content in values:
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_bytes(content)


def _few_bits(noise: Floats) -> Floats:
    """Return noise with a short mantissa, rounded up."""
    mantissa, exponent = np.frexp(noise)
    scale = 2.0**_NOISE_BITS
    return np.ldexp(np.ceil(mantissa * scale) / scale, exponent)
