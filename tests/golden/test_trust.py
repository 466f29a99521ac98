"""Models for which onnx.reference is trusted."""

import importlib.metadata

import onnx.defs
import pytest

from harness.golden.trust import Trust, doubt_about, shipped_trust

TRUST = Trust(
    onnx="1.2.3",
    float32={"Right": (1, 7), "RightInFloat32": (1,)},
    float64={"Right": (1, 7)},
)


def why(*names: str, types: tuple[str, ...] = ("float32",), onnx_version: str = "1.2.3") -> str:
    return doubt_about(dict.fromkeys(names, (1,)), types, TRUST, onnx_version)


def test_a_model_of_checked_operators_is_trusted() -> None:
    assert why("Right", "RightInFloat32") == ""
    assert why("Right", types=("float32", "float64")) == ""
    assert why("Right", types=()) == ""  # integers only
    assert why(types=()) == ""


def test_one_operator_is_enough_for_doubt() -> None:
    assert why("Right", "Wrong") == "it is wrong, or not checked, for Wrong-1"
    assert why("RightInFloat32", types=("float32", "float64")).endswith("for RightInFloat32-1")


def test_every_version_of_an_operator_counts() -> None:
    found = doubt_about({"Right": (1, 6, 7), "com.microsoft.FastGelu": (0,)}, {"float32"}, TRUST, "1.2.3")
    assert found == "it is wrong, or not checked, for Right-6, com.microsoft.FastGelu"


def test_another_version_of_onnx_and_other_types_are_not_checked() -> None:
    assert why("Right", onnx_version="1.2.4") == "it was checked in onnx 1.2.3, and this is onnx 1.2.4"
    assert why("Right", types=("float16", "float32")) == "it is not checked in float16"


def test_a_reason_stays_short() -> None:
    assert why("A", "B", "C", "D", "E").endswith("for A-1, B-1, C-1 and 2 more")


# --- the table that is shipped ---


def test_the_table_is_of_the_onnx_that_is_installed() -> None:
    assert shipped_trust().onnx == importlib.metadata.version("onnx")


@pytest.mark.parametrize(
    ("name", "since"),
    [
        ("BatchNormalization", 7),
        ("BatchNormalization", 9),
        ("LpNormalization", 1),
        ("LpNormalization", 22),
        ("LRN", 1),
        ("LRN", 13),
    ],
)
@pytest.mark.parametrize("float_type", ["float32", "float64"])
def test_known_wrong_operators_are_not_trusted(name: str, since: int, float_type: str) -> None:
    assert doubt_about({name: (since,)}, {float_type}).endswith(f"for {name}-{since}")


def test_common_operators_are_trusted() -> None:
    names = {"Add": 14, "Conv": 22, "Gemm": 13, "MatMul": 13, "Relu": 14, "Softmax": 13, "Transpose": 21}
    assert doubt_about({name: (since,) for name, since in names.items()}, {"float32"}) == ""


def test_every_entry_is_a_version_of_a_schema() -> None:
    trust = shipped_trust()
    for name, versions in [*trust.float32.items(), *trust.float64.items()]:
        domain, _, op_type = name.rpartition(".")
        for since in versions:
            assert onnx.defs.get_schema(op_type, since, domain).since_version == since, name
