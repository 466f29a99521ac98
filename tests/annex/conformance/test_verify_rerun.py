"""Some cases of a submission are run once more: what agrees, what does not, and what that shows."""

from collections.abc import Sequence
from typing import Any

import pytest

from harness.annex.conformance.level import case_key
from harness.annex.conformance.submitted_environment import submitted_environment_of
from harness.annex.conformance.verify.case_rerun import drawn_cases, other_fields, rerun_findings
from harness.annex.conformance.verify.finding import FINDING_KINDS, Finding, FindingWeight
from harness.core.records.record import Record
from tests.annex.conformance.small_profiles import frozen_of, tiny_profile
from tests.annex.conformance.submissions import FINGERPRINT, PROVIDER, Draft, changed, fallen, refused, wrong

PROFILE = tiny_profile(40)
TOLD = tuple(Draft(profile=PROFILE).records)


def found(here: Sequence[Record], other: Sequence[str] = ()) -> list[Finding]:
    return [*rerun_findings(PROFILE, frozen_of(PROFILE), TOLD, here, other, 7)]


def with_error(record: Record, max_abs: float) -> Record:
    return changed(record, outputs=(changed(record.outputs[0], max_abs=max_abs),))


def test_a_share_is_drawn_by_its_seed() -> None:
    drawn = drawn_cases(PROFILE, 0.25, 7)
    assert len(drawn) == 10
    assert drawn == drawn_cases(PROFILE, 0.25, 7)
    assert drawn != drawn_cases(PROFILE, 0.25, 8)
    assert [case.name for case in drawn] == sorted({case.name for case in drawn})
    assert drawn_cases(PROFILE, 1.0, 7) == PROFILE.cases
    assert len(drawn_cases(PROFILE, 1e-9, 7)) == 1


def test_the_same_results() -> None:
    keys = {case.key for case in drawn_cases(PROFILE, 0.25, 7)}
    (only,) = found([record for record in TOLD if case_key(record) in keys])
    assert only.name == "rerun-same"
    assert only.weight is FindingWeight.NOTED
    assert "10 of 10 cases drawn with seed 7" in only.what
    assert "not that the submission's did" in only.what


@pytest.mark.parametrize("edit", [refused, fallen, wrong])
def test_another_verdict_here(edit: Any) -> None:
    first, last = found([edit(TOLD[0])])
    assert (first.name, first.where) == ("rerun", "suite/case_000")
    assert first.weight is FindingWeight.MARKED
    assert "pass in the submission" in first.what
    assert last.what.startswith("0 of 1 cases")
    elsewhere, note = found([edit(TOLD[0])], other=("libraries", "devices"))
    assert elsewhere.name == "rerun-elsewhere"
    assert elsewhere.weight is FindingWeight.NOTED
    assert "with other libraries, devices" in note.what


@pytest.mark.parametrize("place", [0, 1])
def test_errors_that_only_noise_separates(place: int) -> None:
    told = TOLD[place].outputs[0].max_abs
    assert told
    assert [one.name for one in found([with_error(TOLD[place], told * 1.5)])] == ["rerun-same"]
    names = [one.name for one in found([with_error(TOLD[place], told + 1e-3)])]
    assert names == ["rerun", "rerun-same"]


def test_what_of_an_environment_decides() -> None:
    told = submitted_environment_of(PROVIDER, FINGERPRINT)
    assert other_fields(told, told) == ()
    assert other_fields(told, changed(told, platform="Windows-11", packages={})) == ()
    assert other_fields(told, changed(told, drivers={}, libraries={})) == ("libraries", "drivers")


def test_the_kinds_of_a_rerun() -> None:
    weights = {name: kind.weight for name, kind in FINDING_KINDS.items() if name.startswith("rerun")}
    assert weights == {
        "rerun": FindingWeight.MARKED,
        "rerun-elsewhere": FindingWeight.NOTED,
        "rerun-same": FindingWeight.NOTED,
    }
