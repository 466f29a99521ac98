"""Candidates of a suite are frozen to a profile that holds without any other source."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from harness.annex.conformance.freeze import CaseCandidate, FrozenCases, freeze
from harness.annex.conformance.profiles.profile import Profile, ProfileRules
from harness.annex.conformance.profiles.profile_archive import write_archive
from harness.annex.conformance.profiles.profile_suite import checked_files, profile_suite
from harness.core.values.value import Tensor
from harness.corpus.load_case import load_case

RULES = ProfileRules(
    tolerances={"float32": (1e-4, 1e-5), "float16": (1e-3, 2.5e-3)}, noise_rms=3.0, noise_max=32.0, steps=1.0
)


def of_onnx(model: str, **more: str) -> CaseCandidate:
    return CaseCandidate(suite="onnx-node", model=model, **more)


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> FrozenCases:
    candidates = [
        of_onnx("test_softmax_large_number"),
        of_onnx("test_add"),
        of_onnx("test_add", scenario="io_binding", feature="io_binding"),
        of_onnx("test_sub"),
        of_onnx("test_sub", feature="float16"),
        of_onnx("test_argmax_no_keepdims_example"),
        of_onnx("test_randomly_named"),
        of_onnx("test_and2d"),
    ]
    return freeze(candidates, RULES, tmp_path_factory.mktemp("freeze"), lambda _: None)


def profile_of(frozen: FrozenCases) -> Profile:
    return Profile(
        schema=1,
        name="tiny",
        version=1,
        title="Tiny",
        about="For tests.",
        archive=hashlib.sha256(write_archive(frozen.files)).hexdigest(),
        rules=RULES,
        features=(),
        cases=frozen.cases,
    )


def test_cases_are_sorted_and_a_scenario_shares_the_files(frozen: FrozenCases) -> None:
    assert [case.key for case in frozen.cases] == [
        ("onnx-node/test_add", "io_binding"),
        ("onnx-node/test_add", "plain"),
        ("onnx-node/test_and2d", "plain"),
        ("onnx-node/test_softmax_large_number", "plain"),
    ]
    bound, plain, *_ = frozen.cases
    assert (bound.model, bound.inputs, bound.golden) == (plain.model, plain.inputs, plain.golden)
    assert (bound.feature, plain.feature) == ("io_binding", "core")
    assert (plain.ops, plain.types, plain.opset, plain.precision) == ({"Add": 1}, ("float32",), 14, "float32")


def test_each_refused_candidate_has_its_reason(frozen: FrozenCases) -> None:
    assert frozen.refused == {
        "onnx-node/test_argmax_no_keepdims_example": "tied: values by which result was chosen may be equal",
        "onnx-node/test_randomly_named": "the suite has no such model",
        "onnx-node/test_sub": "2 candidates would be this case with the scenario plain",
    }


def test_the_archive_is_a_suite_with_goldens_and_noise(
    frozen: FrozenCases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EP_HARNESS_CACHE", str(tmp_path / "cache"))
    archive = tmp_path / "tiny@1.zip"
    archive.write_bytes(write_archive(frozen.files))
    profile = profile_of(frozen)
    assert checked_files(profile, archive).keys() == {case.name for case in frozen.cases}
    case = load_case(profile_suite(profile, archive), "onnx-node/test_add", {})
    (data_set,) = case.data_sets
    values = [value.array for _, value in (*data_set.inputs, *data_set.expected) if isinstance(value, Tensor)]
    x, y, golden = values
    np.testing.assert_array_equal(golden, (x.astype(np.float64) + y).astype(np.float32))
    assert case.frozen is not None
    (noise,) = case.frozen.noise.outputs
    assert noise["sum"].shape == golden.shape
    assert float(noise["sum"].max()) < 1e-5  # some units in the last place, not more
    exact = load_case(profile_suite(profile, archive), "onnx-node/test_and2d", {})
    assert exact.frozen is not None
    assert exact.frozen.noise.outputs == ({},)


def test_nothing_but_refused_candidates_gives_nothing(tmp_path: Path) -> None:
    found = freeze([of_onnx("test_no_such")], RULES, tmp_path, lambda _: None)
    assert (found.cases, found.files) == ((), {})
    assert found.refused == {"onnx-node/test_no_such": "the suite has no such model"}
