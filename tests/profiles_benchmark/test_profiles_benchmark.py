"""The benchmark that chooses the cases of profiles."""

from pathlib import Path

import onnx.parser
import pytest

from benchmarks.profiles.choose import candidates, cover, entries, held_out
from benchmarks.profiles.finding import Finding
from benchmarks.profiles.lab import Lab
from benchmarks.profiles.plans import AROUND, FEATURES, PLANS, SCENARIOS, feature_of, in_scope
from harness.corpus.case import load_case
from harness.corpus.suites import open_file

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


def test_a_cover_takes_what_shows_most_for_its_bytes() -> None:
    found = [CONV, other("large", 1000, "a: 1", "a: 2", "a: 3"), other("same", 120, "a: 1")]
    chosen = cover(found, shown(*found))
    assert [one.model for one in chosen] == ["conv", "large"]


def test_a_cover_begins_with_what_is_kept() -> None:
    found = [CONV, other("large", 1000, "a: 1", "a: 2", "a: 3")]
    assert [one.model for one in cover(found, shown(*found), [("s", "large")])] == ["large"]


def test_a_cover_stays_within_the_budget() -> None:
    found = [CONV, other("huge", 10_000_000, "a: 9")]
    assert cover(found, shown(*found)) == [CONV]


def test_what_shows_no_fault_is_no_candidate() -> None:
    silent = other("silent", 10)
    assert candidates([CONV, silent], PLANS["cnn@1"], shown(CONV, silent)) == [CONV]


def test_held_out_faults_are_counted_only_where_they_were_unknown() -> None:
    both = other("both", 100, "a: 1", "b: 1")
    alone = other("alone", 100, "b: 2")
    held = {one.what: one for one in held_out([both, alone], shown(both, alone), ())}
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
        ({"types": ("float16",), "ranks": 5}, None),
    ],
)
def test_a_case_has_one_feature(traits: dict[str, object], feature: str | None) -> None:
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


def test_scenarios_are_played_by_core_cases() -> None:
    made = entries("cnn@1", [CONV, other("half", 50, "x: 1", types=("float16",))])
    played = {(one.model, one.scenario) for one in made if one.scenario != "plain"}
    assert played == {("conv", "io_binding"), ("conv", "ep_context")}  # no dimension of it may vary
    assert {one.feature for one in made} - {"core"} <= FEATURES.keys()
    assert set(SCENARIOS) <= FEATURES.keys()


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
