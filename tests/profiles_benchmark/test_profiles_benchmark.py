"""The benchmark that chooses the cases of profiles."""

import hashlib
from pathlib import Path

import msgspec
import numpy as np
import onnx.parser
import pytest

from benchmarks.profiles.admit import END, admit
from benchmarks.profiles.api_cases import NOT_FROZEN
from benchmarks.profiles.choose import Limits, candidates, cover, entries, held_out, limits_of
from benchmarks.profiles.command import in_fair_order
from benchmarks.profiles.finding import Finding
from benchmarks.profiles.freeze import features_of, frozen_cases
from benchmarks.profiles.lab import Lab
from benchmarks.profiles.measure import TOO_LARGE
from benchmarks.profiles.plans import AROUND, FEATURES, PLANS, SCENARIOS, feature_of, in_scope
from benchmarks.profiles.records import FUZZ, opened
from benchmarks.profiles.trial import failed_by_cpu
from harness.annex.conformance.freeze import CaseCandidate
from harness.annex.conformance.profiles.case_files import by_case, digests_of
from harness.annex.conformance.profiles.profile import Profile, load_profile, profiles_folder
from harness.annex.conformance.profiles.profile_archive import read_profile_archive, write_archive
from harness.annex.conformance.profiles.profile_suite import open_profile
from harness.core.records.scenario import SCENARIOS as HOW
from harness.core.values.value import Tensor
from harness.corpus.load_case import load_case
from harness.corpus.model.protos import encode
from harness.corpus.suites.suite import open_file
from harness.corpus.suites.suites import open_suite

pytest.importorskip("onnxruntime")

CONV = Finding(
    suite="s",
    model="conv",
    ops={"Conv": 1},
    types=("float32",),
    opset=11,
    ranks=4,
    nbytes=100,
    shown=("a: 1", "a: 2"),
)


def other(model: str, nbytes: int, *shown: str, **traits: object) -> Finding:
    given = {"suite": "s", "ops": {"Conv": 1}, "types": ("float32",), "opset": 11, "ranks": 4, **traits}
    return Finding(model=model, nbytes=nbytes, shown=shown, **given)  # type: ignore[arg-type]


def shown(*found: Finding) -> dict[tuple[str, str], frozenset[str]]:
    return {one.key: frozenset(one.shown) for one in found}


WIDE = Limits(nbytes=1_000_000, seconds=1.0)


def test_a_cover_takes_what_shows_most_for_its_bytes() -> None:
    found = [CONV, other("large", 1000, "a: 1", "a: 2", "a: 3"), other("same", 120, "a: 1")]
    chosen = cover(found, shown(*found), WIDE)
    assert [one.model for one in chosen] == ["conv", "large"]


def test_a_cover_takes_what_shows_most_for_its_time() -> None:
    slow = other("slow", 10, "a: 1", "a: 2", "a: 3", seconds=0.5)
    quick = other("quick", 10, "a: 1", "a: 2", seconds=0.1)
    assert [one.model for one in cover([slow, quick], shown(slow, quick), WIDE)] == ["quick", "slow"]


def test_a_cover_shows_each_fault_once_before_any_twice() -> None:
    pair = [other(name, 400_000, f"a: {name}", f"b: {name}") for name in ("one", "two")]
    again = other("again", 300_000, "a: one", "b: one")
    assert {one.model for one in cover([*pair, again], shown(*pair, again), WIDE, covered=1)} == {
        "again",
        "two",
    }
    wider = Limits(nbytes=1_200_000, seconds=1.0)
    assert [one.model for one in cover([*pair, again], shown(*pair, again), wider)] == [
        "again",
        "two",
        "one",
    ]


def test_a_cover_begins_with_what_is_kept() -> None:
    found = [CONV, other("large", 1000, "a: 1", "a: 2", "a: 3")]
    chosen = cover(found, shown(*found), WIDE, [("s", "large")])
    assert [one.model for one in chosen] == ["large", "conv"]  # the second shows two of them again


def test_a_cover_stays_within_its_limits() -> None:
    found = [CONV, other("huge", 10_000_000, "a: 9"), other("slow", 10, "a: 8", seconds=2.0)]
    assert cover(found, shown(*found), WIDE) == [CONV]
    limits = limits_of({("s", "a"): 30.0, ("s", "b"): 10.0})
    assert limits.seconds == pytest.approx(4.0)
    assert limits.nbytes < 1_000_000


def test_what_shows_no_fault_is_no_candidate() -> None:
    silent = other("silent", 10)
    assert candidates([CONV, silent], PLANS["cnn@1"], shown(CONV, silent)) == [CONV]


def test_held_out_faults_are_counted_only_where_they_were_unknown() -> None:
    both = other("both", 100, "a: 1", "b: 1")
    alone = other("alone", 100, "b: 2")
    held = {one.what: one for one in held_out([both, alone], shown(both, alone), WIDE, ())}
    assert (held["kind b"].faults, held["kind b"].found) == (2, 1)  # chosen for "a: 1" alone
    assert held["half 0"].faults + held["half 1"].faults == 3


@pytest.mark.parametrize(
    ("traits", "feature"),
    [
        ({}, ""),
        ({"types": ("float16",)}, "float16"),
        ({"types": ("int8", "float32"), "ops": {"Conv": 1, "QuantizeLinear": 1}}, "quantized"),
        ({"ranks": 5}, "large_rank"),
        ({"empty": True}, "zero_size"),
        ({"symbolic": True}, "symbolic_shapes"),
        ({"ranks": 5, "types": ("float16",)}, "float16+large_rank"),
        ({"types": ("float16", "int16"), "ranks": 5, "empty": True}, None),
    ],
)
def test_a_case_has_few_features(traits: dict[str, object], feature: str | None) -> None:
    assert feature_of(other("m", 1, **traits), PLANS["cnn@1"]) == feature


def test_quantized_tensors_are_the_core_of_qdq() -> None:
    case = other("m", 1, ops={"QuantizeLinear": 1}, types=("float32", "uint8"))
    assert feature_of(case, PLANS["qdq@1"]) == ""


def test_a_profile_has_no_later_opset_and_no_foreign_domain() -> None:
    core = PLANS["core-opset21@1"]
    assert in_scope(CONV, core)
    assert not in_scope(other("m", 1, opset=22), core)
    assert not in_scope(other("m", 1, ops={"com.microsoft.Gelu": 1}), core)
    assert not in_scope(other("m", 1, ops={"Add": 1}), PLANS["cnn@1"])
    assert "Add" in AROUND


def test_the_profile_of_the_api_has_each_scenario_that_a_case_can_play() -> None:
    profile = load_profile("api@1")
    assert {case.scenario for case in profile.cases} == {"plain", *HOW.keys() - NOT_FROZEN}
    assert all(case.feature == case.scenario for case in profile.cases if case.scenario != "plain")
    assert not PLANS[profile.label].by_fault


def test_scenarios_are_played_by_core_cases_where_they_run() -> None:
    half = other("half", 50, "x: 1", types=("float16",))
    spare = other("spare", 90, "a: 1")
    ran = {("s", "conv", "io_binding"), ("s", "half", "io_binding"), ("s", "spare", "ep_context")}
    made = entries("cnn@1", [CONV, half], [CONV, half, spare], ran)
    played = {(one.model, one.scenario) for one in made if one.scenario != "plain"}
    assert played == {("conv", "io_binding"), ("spare", "ep_context")}
    assert {one.feature for one in made} - {"core"} <= FEATURES.keys()
    assert set(SCENARIOS) <= FEATURES.keys()


def test_changing_shapes_are_played_by_small_cases_that_leave_dimensions_open() -> None:
    large = other("large", 500_000, "a: 3", symbolic=True)
    small = other("small", 50, "a: 4", symbolic=True)
    found = [large, small, CONV]
    ran = {(*one.key, scenario) for one in found for scenario in ("dynamic_shapes", "io_binding")}
    made = entries("cnn@1", found, found, ran)
    played = {(one.model, one.scenario) for one in made if one.scenario != "plain"}
    assert played == {("small", "dynamic_shapes"), ("conv", "io_binding")}


def test_an_interrupted_measurement_has_some_of_every_suite() -> None:
    kept = ("zoo", "unet-small-op17")
    keys = [("onnx-node", str(number)) for number in range(50)] + [("corners", "a"), kept]
    order = in_fair_order(keys)
    assert order[0] == kept
    assert ("corners", "a") in order[:4]
    assert sorted(order) == sorted(keys)


def test_features_have_an_order_and_a_meaning() -> None:
    names = {"large_rank", "float16+large_rank", "float16", "core"}
    found = features_of(names)
    assert [one.name for one in found] == ["float16", "large_rank", "float16+large_rank"]
    assert found[-1].meaning == "float16 tensors, with tensors of more than four dimensions"
    with pytest.raises(ValueError, match="'speed'"):
        features_of({"speed"})


def test_records_of_generated_models_name_the_suite_that_opens_them() -> None:
    assert opened("fuzz-1") == FUZZ
    assert opened("zoo") == "zoo"
    assert open_suite(FUZZ).name == "fuzz-1"


def test_an_admission_has_the_bytes_of_an_archive(tmp_path: Path) -> None:
    """Those of several cases add up to the whole archive, but for its end."""
    keys = [("onnx-node", "test_add"), ("onnx-node", "test_conv_with_strides_no_padding")]
    found = {one.model: one for one in admit(keys)}
    cases = [CaseCandidate(suite=suite, model=model) for suite, model in keys]
    profiles, files, refused = frozen_cases(cases, tmp_path)
    assert not refused
    assert [one.opset for one in profiles] == [14, 21]
    assert sum(one.nbytes for one in found.values()) + END == len(write_archive(files))
    assert found["test_add"].opset == 14


def test_a_large_model_is_not_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.profiles.admit.LARGEST", 100)
    (found,) = admit([("onnx-node", "test_add")])
    assert (found.why_not, found.nbytes) == (TOO_LARGE, 0)


def test_what_the_cpu_provider_does_not_pass_is_refused(tmp_path: Path) -> None:
    """A golden that is wrong stands for a case that the CPU EP fails."""
    label = "qdq@1"
    profile = load_profile(label)
    files = dict(read_profile_archive((profiles_folder() / f"{label}.zip").read_bytes()))
    parts = by_case(files, {one.name for one in profile.cases})
    right, wrong = [one for one in profile.cases if one.scenario == "plain" and one.feature == "core"][:2]
    case = load_case(open_profile(label), wrong.name, {})
    name, value = case.data_sets[0].expected[0]
    assert isinstance(value, Tensor)
    spoilt = Tensor(dtype=value.dtype, array=np.asarray(value.array[..., :-1], order="C"))
    output = "test_data_set_0/output_0.pb"
    parts[wrong.name][output] = encode(spoilt, case.output_types[0], name)
    archive, changed = altered(profile, {one.name: parts[one.name] for one in (right, wrong)})
    path = tmp_path / "profile.zip"
    path.write_bytes(archive)
    failed = failed_by_cpu(changed, path)
    assert failed.keys() == {wrong.key}
    assert "shape_mismatch" in failed[wrong.key]


def altered(profile: Profile, parts: dict[str, dict[str, bytes]]) -> tuple[bytes, Profile]:
    """Return an archive of some cases, and the profile that fits it."""
    archive = write_archive(
        {f"{name}/{path}": content for name, files in parts.items() for path, content in files.items()}
    )
    cases = tuple(
        msgspec.structs.replace(one, **msgspec.structs.asdict(digests_of(parts[one.name])))
        for one in profile.cases
        if one.name in parts and one.scenario == "plain"
    )
    return archive, msgspec.structs.replace(profile, archive=hashlib.sha256(archive).hexdigest(), cases=cases)


BODY = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[2,3] y) { t = Abs (x) y = Add (t, x) }"""


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(BODY).SerializeToString())
    return Lab(load_case(open_file(path), path.name, {}))


def test_a_fault_inside_a_model_reaches_its_output(lab: Lab) -> None:
    found = {name: lab.fails(result) for name, result in lab.planted()}
    assert found["simple: Abs float32: wrong"]
    assert found["simple: Add float32: unwritten"]
    assert found["form: Add: rank 2"]


def test_the_right_answer_does_not_fail(lab: Lab) -> None:
    assert not lab.fails(lab.golden)
