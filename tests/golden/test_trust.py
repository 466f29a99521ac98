"""Which models onnx.reference is believed alone about."""

import importlib.metadata
from collections.abc import Mapping

import onnx.defs
import pytest

from harness.engine.witnesses import NAMES, TRUTHS
from harness.golden.trust import (
    CPU_FLOAT64,
    REFERENCE,
    REFERENCE_FLOAT64,
    Checked,
    Finding,
    Standing,
    Trust,
    distrusted,
    doubts_of,
    shipped_trust,
)

BOTH = ("float32", "float64")


def row(op_type: str, standing: Standing, *findings: Finding, types: tuple[str, ...] = BOTH) -> Checked:
    return Checked(op_type=op_type, since=1, standing=standing, agreed=9, types=types, findings=findings)


WRONG = Finding(where="p = 1", checks=4, types=BOTH, by=0.6, right="cpu", third="formula")
IN_FLOAT64 = Finding(where="outputs = 3", checks=4, types=("float64",), right="cpu", third="formula")
CPU_WRONG = Finding(where="mode = odd", checks=4, types=BOTH, by=0.6, right="reference", third="formula")
TRUST = Trust(
    onnx="1.2.3",
    onnxruntime="4.5.6",
    numpy="7.8.9",
    specs=1,
    checks=2,
    refused=3,
    operators=(
        row("Right", "agrees"),
        row("Wrong", "disagrees", WRONG),
        row("WrongInFloat64", "disagrees", IN_FLOAT64),
        row("WrongOnCpu", "agrees", CPU_WRONG),
        row("Silent", "raises", types=()),
    ),
)


def why(*op_types: str, onnx_version: str = "1.2.3", **options: tuple[str, ...]) -> tuple[str, ...]:
    operators = {("", op_type): {1} for op_type in op_types}
    return distrusted(operators, TRUST, onnx_version=onnx_version, **options)


def doubts(*op_types: str, float_types: tuple[str, ...] = ("float32",)) -> dict[str, str]:
    operators = {("", op_type): {1} for op_type in op_types}
    versions = {"onnx_version": "1.2.3", "onnxruntime_version": "4.5.6"}
    return doubts_of(operators, TRUST, **versions, float_types=float_types)


def test_a_model_of_checked_operators_is_trusted() -> None:
    assert why("Right") == ()
    assert doubts("Right") == {}


def test_one_operator_is_enough_for_distrust() -> None:
    assert why("Right", "Wrong", "Silent") == ("Silent-1 (raises)", "Wrong-1 (disagrees)")
    assert doubts("Right", "Wrong").keys() == {REFERENCE, REFERENCE_FLOAT64}


def test_what_nobody_checked_is_not_trusted() -> None:
    assert why("Unheard") == ("Unheard-1 (not checked)",)
    unknown: Mapping[tuple[str, str], set[int]] = {("com.microsoft", "FastGelu"): {0}, ("", "Right"): {1, 2}}
    found = distrusted(unknown, TRUST, onnx_version="1.2.3")
    assert found == ("Right-2 (not checked)", "com.microsoft.FastGelu (not checked)")


def test_another_version_of_onnx_is_not_trusted() -> None:
    assert why("Right", onnx_version="1.2.4") == ("onnx 1.2.4",)


def test_other_floating_types_are_not_trusted() -> None:
    assert why("Right", float_types=("float16", "float32")) == ("float16 arithmetic (not checked)",)


def test_a_difference_in_float64_alone_does_not_count_against_float32() -> None:
    assert why("WrongInFloat64") == ()
    assert why("WrongInFloat64", float_types=("float64",)) == ("WrongInFloat64-1 (disagrees)",)
    assert doubts("WrongInFloat64").keys() == {REFERENCE_FLOAT64}


def test_a_known_fault_of_the_cpu_ep_leaves_one_to_judge() -> None:
    found = doubts("WrongOnCpu")
    assert found == {CPU_FLOAT64: "the CPU EP is not right for some uses of WrongOnCpu-1"}
    assert doubts("WrongOnCpu", "Wrong").keys() == {REFERENCE, REFERENCE_FLOAT64}
    other = doubts_of({("", "WrongOnCpu"): {1}}, TRUST, onnx_version="1.2.3", onnxruntime_version="4.5.7")
    assert other == {}


def test_a_reason_stays_short() -> None:
    reason = doubts("Wrong", "Silent", "Unheard", "Unseen", "Untold")[REFERENCE]
    assert reason.startswith("it is not right, or not checked, for Silent-1 (raises), Unheard-1")
    assert reason.endswith(" and 2 more")


def test_the_names_are_those_of_the_witnesses() -> None:
    assert REFERENCE in NAMES.values()
    assert set(TRUTHS.values()) == {CPU_FLOAT64, REFERENCE_FLOAT64}


# --- the table that is shipped ---

KNOWN_WRONG = ["BatchNormalization-9", "LpNormalization-1", "LpNormalization-22", "LRN-1", "LRN-13"]


def test_the_table_is_of_the_onnx_that_is_installed() -> None:
    assert shipped_trust().onnx == importlib.metadata.version("onnx")


@pytest.mark.parametrize("name", KNOWN_WRONG)
def test_operators_that_are_known_to_be_wrong_disagree(name: str) -> None:
    op_type, _, since = name.partition("-")
    found = [one for one in shipped_trust().operators if one.key == ("", op_type, int(since))]
    assert [one.standing for one in found] == ["disagrees"]
    assert found[0].findings[0].right == "cpu"
    assert found[0].findings[0].third == "formula"


def test_every_row_is_consistent() -> None:
    operators = shipped_trust().operators
    assert len({one.key for one in operators}) == len(operators)
    for one in operators:
        wrong = [found for found in one.findings if found.right != "reference"]
        assert (one.standing == "disagrees") == bool(wrong), one
        assert one.standing != "agrees" or one.agreed + sum(found.checks for found in one.findings) > 1, one
        assert onnx.defs.get_schema(one.op_type, one.since, one.domain).since_version == one.since


def test_common_operators_are_trusted() -> None:
    names = {"Add": 14, "Conv": 22, "Gemm": 13, "MatMul": 13, "Relu": 14, "Softmax": 13, "Transpose": 21}
    operators = {("", name): {since} for name, since in names.items()}
    version = importlib.metadata.version("onnx")
    assert distrusted(operators, shipped_trust(), onnx_version=version) == ()
