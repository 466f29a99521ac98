"""The shipped profiles are whole, and a run of one asks nothing of the harness's own CPU provider."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.annex.conformance.profiles.profile import load_profile, profile_labels, profiles_folder
from harness.annex.conformance.profiles.profile_archive import read_profile_archive, write_archive
from harness.annex.conformance.profiles.profile_suite import checked_files, open_profile, profile_suite
from harness.core.records.record import Record
from harness.core.text.errors import UsageError
from harness.core.values.value import Tensor
from harness.corpus.load_case import load_case
from harness.corpus.model.protos import encode
from harness.corpus.suites.suite import Suite
from harness.engine.answers.references import Stores
from harness.engine.engine import Engine, StudySettings
from harness.plan.expand import expand
from harness.plan.matrix import Matrix, ModelSelection
from harness.plan.target import Target
from tests.kit import records_of

LABELS = profile_labels()
CPU = Target(name="cpu", provider=("CPUExecutionProvider",))


def run(suite: Suite, stores: Path) -> dict[str, Record]:
    """Run some cases on the CPU provider; its answers would be kept in ``stores``."""
    matrix = Matrix(path="test", schema=1, models=ModelSelection(), targets=(CPU,))
    plan = expand(matrix, {suite.name: suite.models()})
    engine = Engine(plan, {suite.name: suite}, study=StudySettings(stores=Stores.of_here(stores)))
    try:
        engine.submit(plan.cells)
        engine.drain()
        return {record.model: record for record in records_of(engine.events())}
    finally:
        engine.close()


def some(suite: Suite, count: int = 6) -> Suite:
    return msgspec.structs.replace(suite, names=suite.names[:count])


@pytest.mark.parametrize("label", LABELS)
def test_a_profile_is_whole(label: str) -> None:
    profile = load_profile(label)
    archive = profiles_folder() / f"{label}.zip"
    files = checked_files(profile, archive)
    assert files.keys() == {case.name for case in profile.cases}
    assert archive.stat().st_size <= 1_000_000
    keys = [case.key for case in profile.cases]
    assert keys == sorted(set(keys))
    assert {case.feature for case in profile.cases} <= {"core", *(one.name for one in profile.features)}
    assert {case.precision for case in profile.cases} <= profile.rules.tolerances.keys()


@pytest.mark.parametrize("label", LABELS)
def test_every_case_loads_with_its_golden(label: str) -> None:
    suite = open_profile(label)
    for model in suite.models():
        case = load_case(suite, model, {})
        assert case.frozen is not None
        assert case.recipe is None
        assert len(case.frozen.noise.outputs) == len(case.data_sets)


def test_a_run_asks_nothing_of_the_cpu_provider(tmp_path: Path) -> None:
    records = run(some(open_profile(LABELS[0])), tmp_path)
    assert {record.golden for record in records.values()} == {"profile"}
    assert {record.verdict for record in records.values()} == {"pass"}
    assert list(tmp_path.iterdir()) == []  # no answer was kept, so none was asked for


def test_the_golden_of_the_file_judges_whatever_the_cpu_provider_gives(tmp_path: Path) -> None:
    """A question for the golden, or for references, would find this golden wrong."""
    label = LABELS[0]
    profile, suite = load_profile(label), open_profile(label)
    name = next(one for one in suite.models() if is_float32(suite, one))
    case = load_case(suite, name, {})
    files = dict(read_profile_archive((profiles_folder() / f"{label}.zip").read_bytes()))
    output, value = case.data_sets[0].expected[0]
    assert isinstance(value, Tensor)
    wrong = Tensor(dtype="float32", array=np.asarray(value.array + np.float32(1)))
    files[f"{name}/test_data_set_0/output_0.pb"] = encode(wrong, case.output_types[0], output)
    for path, content in files.items():
        (tmp_path / "cases" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cases" / path).write_bytes(content)
    altered = msgspec.structs.replace(suite, root=tmp_path / "cases", names=(name,))
    (record,) = run(altered, tmp_path / "stores").values()
    assert record.verdict == "mismatch"
    assert record.reference_check is None
    assert not (tmp_path / "stores").exists() or not list((tmp_path / "stores").iterdir())

    # Such an archive is none of the profile's.
    archive = tmp_path / "altered.zip"
    archive.write_bytes(write_archive(files))
    with pytest.raises(UsageError, match="SHA-256"):
        profile_suite(msgspec.structs.replace(profile, title="other"), archive)


def is_float32(suite: Suite, model: str) -> bool:
    case = load_case(suite, model, {})
    return {kind.dtype for kind in case.output_types} == {"float32"} and not case.facts.origins.known


def test_an_unknown_profile_is_an_error_of_use() -> None:
    with pytest.raises(UsageError, match="there is no profile 'cnn@77'"):
        open_profile("cnn@77")
