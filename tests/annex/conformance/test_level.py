"""The level of a result, by every verdict there is."""

import itertools

import msgspec
import pytest

from harness.annex.conformance.level import CaseResult, Standing, case_label, profile_result
from harness.annex.conformance.profiles.profile import CORE, Feature, Profile, ProfileCase, ProfileRules
from harness.annex.conformance.submission import Level, Totals
from harness.core.records.record import Record
from harness.core.records.scenario import PLAIN
from harness.core.records.verdict import Verdict
from tests.kit import bare_record

RULES = ProfileRules(tolerances={"float32": (1e-4, 1e-5)}, noise_rms=16.0, noise_max=64.0, steps=1.0)
FEATURES = (Feature(name="io_binding", meaning="bound"), Feature(name="float16", meaning="half"))

EXPECTED = {
    Standing.PASSED: {"pass"},
    Standing.MISSING: {"pass_partial", "fallback", "folded", "unsupported", "no_variant"},
    Standing.FAILED: {
        "crash", "hang", "out_of_memory", "option_rejected", "error", "fallback_at_run", "shape_mismatch",
        "dtype_mismatch", "nan_mismatch", "mismatch", "nondeterministic", "precision_loss",
        "wrong_device", "wrong_variant", "stale_variant", "unclean_exit",
    },
    Standing.OPEN: {
        "unavailable", "declared", "timeout", "invalid_model", "reference_disputed", "no_golden", "no_input",
        "undefined_input", "ill_conditioned", "not_run", "harness_error",
    },
}  # fmt: skip


def case(name: str, feature: str = CORE, scenario: str = PLAIN) -> ProfileCase:
    return ProfileCase(
        name=name,
        feature=feature,
        scenario=scenario,
        model="",
        inputs="",
        golden="",
        ops={},
        types=(),
        opset=21,
    )


def profile(*cases: ProfileCase) -> Profile:
    return Profile(
        schema=1,
        name="tiny",
        version=1,
        title="",
        about="",
        archive="",
        rules=RULES,
        features=FEATURES,
        cases=cases,
    )


def record(model: str, verdict: Verdict, scenario: str = PLAIN) -> Record:
    return bare_record(model, verdict, axes={"scenario": scenario})


def standing_of(verdict: Verdict) -> Standing:
    return CaseResult(case=case("a/x"), verdict=verdict, required=True).standing


def test_every_verdict_has_its_place() -> None:
    assert {str(verdict) for verdict in Verdict} == set().union(*EXPECTED.values())
    for standing, verdicts in EXPECTED.items():
        for verdict in verdicts:
            assert standing_of(Verdict(verdict)) is standing, verdict


@pytest.mark.parametrize("verdict", Verdict)
def test_one_required_case_decides(verdict: Verdict) -> None:
    levels = {
        Standing.PASSED: Level.CONFORMANT,
        Standing.MISSING: Level.PARTIAL,
        Standing.FAILED: Level.NOT,
        Standing.OPEN: Level.NOT,
    }
    of = profile(case("a/x"), case("a/y"))
    result = profile_result(of, (), [record("a/x", Verdict.PASS), record("a/y", verdict)])
    assert result.level is levels[standing_of(verdict)]
    assert result.missing == (() if verdict is Verdict.PASS else ("a/y",))
    assert result.features[CORE].cases == 2


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(Verdict, 2)))
def test_the_worse_of_two_verdicts_decides(one: Verdict, other: Verdict) -> None:
    def level(*verdicts: Verdict) -> Level:
        names = [f"a/{index}" for index, _ in enumerate(verdicts)]
        return profile_result(profile(*map(case, names)), (), map(record, names, verdicts)).level

    worst = max([level(one), level(other)], key=list(Level).index)
    assert level(one, other) is level(other, one) is worst


@pytest.mark.parametrize("verdict", Verdict)
def test_a_feature_counts_only_if_it_is_claimed(verdict: Verdict) -> None:
    of = profile(case("a/x"), case("a/h", "float16"))
    records = [record("a/x", Verdict.PASS), record("a/h", verdict)]
    without = profile_result(of, (), records)
    assert without.level is Level.CONFORMANT
    assert without.missing == ()
    claimed = profile_result(of, ("float16",), records)
    assert (claimed.level is Level.CONFORMANT) == (verdict is Verdict.PASS)
    assert claimed.missing == (() if verdict is Verdict.PASS else ("a/h",))
    assert without.features == claimed.features


def test_features_at_once_count_if_each_is_claimed() -> None:
    both = Feature(name="float16+io_binding", meaning="half, bound")
    of = msgspec.structs.replace(profile(case("a/x"), case("a/b", both.name)), features=(*FEATURES, both))
    records = [record("a/x", Verdict.PASS), record("a/b", Verdict.MISMATCH)]
    assert profile_result(of, ("float16",), records).level is Level.CONFORMANT
    assert profile_result(of, ("io_binding", "float16"), records).missing == ("a/b",)
    assert of.closed(("float16", "io_binding")) == {"float16", "io_binding", both.name}
    assert of.closed((both.name,)) == {both.name}


def test_totals_are_in_the_order_of_the_profile() -> None:
    of = profile(
        case("a/h", "float16"), case("a/x"), case("a/x", "io_binding", "io_binding"), case("a/y"), case("a/z")
    )
    result = profile_result(
        of,
        ("io_binding",),
        [
            record("a/h", Verdict.UNSUPPORTED),
            record("a/x", Verdict.PASS),
            record("a/x", Verdict.FALLBACK, "io_binding"),
            record("a/y", Verdict.MISMATCH),
        ],
    )
    assert list(result.features.items()) == [
        (CORE, Totals(cases=3, passed=1, missing=0, failed=1, open=1)),
        ("io_binding", Totals(cases=1, passed=0, missing=1, failed=0, open=0)),
        ("float16", Totals(cases=1, passed=0, missing=1, failed=0, open=0)),
    ]
    assert result.level is Level.NOT
    assert result.missing == ("a/x io_binding", "a/y", "a/z")
    assert [one.label for one in result.required(Standing.OPEN)] == ["a/z"]
    assert [one.label for one in result.required(Standing.FAILED)] == ["a/y"]
    assert [one.verdict for one in result.cases] == [
        Verdict.UNSUPPORTED,
        Verdict.PASS,
        Verdict.FALLBACK,
        Verdict.MISMATCH,
        Verdict.NOT_RUN,
    ]


def test_a_feature_without_cases_is_listed() -> None:
    result = profile_result(profile(case("a/x")), (), [record("a/x", Verdict.PASS)])
    assert result.features["float16"] == Totals(cases=0, passed=0, missing=0, failed=0, open=0)


def test_two_records_of_a_case_leave_it_open() -> None:
    result = profile_result(profile(case("a/x")), (), [record("a/x", Verdict.PASS)] * 2)
    assert (result.level, result.missing) == (Level.NOT, ("a/x",))


def test_records_of_other_cases_do_not_count() -> None:
    result = profile_result(
        profile(case("a/x")), (), [record("a/x", Verdict.PASS), record("a/q", Verdict.CRASH)]
    )
    assert (result.level, result.features[CORE].cases) == (Level.CONFORMANT, 1)


def test_a_claim_must_be_a_feature_of_the_profile() -> None:
    with pytest.raises(ValueError, match="tiny@1 has no feature 'flaot16'"):
        profile_result(profile(case("a/x")), ("flaot16",), [])


def test_a_label_names_a_scenario_that_is_not_plain() -> None:
    assert case_label(case("a/x")) == "a/x"
    assert case_label(case("a/x", scenario="ep_context")) == "a/x ep_context"
