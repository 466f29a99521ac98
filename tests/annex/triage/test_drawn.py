"""A reduced model as a fault publishes it, and the id that names do not change."""

from typing import Any

import msgspec
import numpy as np
import onnx
import onnx.parser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from harness.annex.triage.published_model import NODES_SHOWN, TEXT_CHARS, drawn, fingerprint, shape_text
from harness.annex.triage.subject import Subject
from harness.core.records.fault import ReducedModel, Signature
from harness.core.records.verdict import Verdict

SIGNATURE = Signature(verdict=Verdict.MISMATCH, message="first run")
NAMES = st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable() or "\n" in text)


def model_of(
    names: dict[str, str] | None = None,
    *,
    size: int = 4,
    op_type: str = "Add",
    dtype: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    """Relu and a sum, with any names."""
    called = {name: name for name in ("x", "a", "w", "y", "first", "last")} | (names or {})
    value = helper.make_tensor_value_info
    weight = np.ones(size, helper.tensor_dtype_to_np_dtype(dtype))
    graph = helper.make_graph(
        [
            helper.make_node("Relu", [called["x"]], [called["a"]], name=called["first"]),
            helper.make_node(op_type, [called["a"], called["w"]], [called["y"]], name=called["last"]),
        ],
        "g",
        [value(called["x"], dtype, [size])],
        [value(called["y"], dtype, [size])],
        [numpy_helper.from_array(weight, called["w"])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def reduced_of(model: onnx.ModelProto, *guilty: str) -> ReducedModel:
    subject = Subject(model=model.SerializeToString(), inputs=())
    return drawn(subject, subject, guilty)


def id_of(model: onnx.ModelProto, signature: Signature = SIGNATURE, provider: str = "P") -> str:
    return fingerprint(reduced_of(model), signature, provider)


def test_faults_of_one_operator_in_two_scenarios_have_two_ids() -> None:
    ids = {
        fingerprint(reduced_of(model_of()), SIGNATURE, "P", scenario=scenario)
        for scenario in ("plain", "interleaved", "initializers")
    }
    assert len(ids) == 3
    assert id_of(model_of()) in ids


def test_nodes_tensors_and_guilt() -> None:
    found = reduced_of(model_of(), "last")
    assert [(node.name, node.op_type, node.guilty) for node in found.nodes] == [
        ("first", "Relu", False),
        ("last", "Add", True),
    ]
    assert {(one.name, one.role, one.dtype, one.shape) for one in found.tensors} == {
        ("x", "input", "float32", "4"),
        ("y", "output", "float32", "4"),
        ("w", "initializer", "float32", "4"),
    }
    assert (found.nodes_before, found.opsets) == (2, {"ai.onnx": 17})
    assert found.bytes == found.bytes_before == len(model_of().SerializeToString())


def test_a_node_without_a_name_goes_by_its_output() -> None:
    found = reduced_of(model_of({"first": "", "last": ""}), "a")
    assert [(node.name, node.guilty) for node in found.nodes] == [("a", True), ("y", False)]


@settings(max_examples=60)
@given(st.lists(NAMES, min_size=6, max_size=6, unique=True))
def test_names_do_not_change_the_id(names: list[str]) -> None:
    usual = ("x", "a", "w", "y", "first", "last")
    assert id_of(model_of(dict(zip(usual, names, strict=True)))) == id_of(model_of())


def test_sizes_do_not_change_the_id() -> None:
    assert id_of(model_of(size=4)) == id_of(model_of(size=400))


@pytest.mark.parametrize(
    "other",
    [
        {"model": model_of(op_type="Mul")},
        {"model": model_of(dtype=TensorProto.FLOAT16)},
        {"model": model_of({"w": "a"})},
        {"signature": Signature(verdict=Verdict.NAN_MISMATCH, message="first run")},
        {"signature": Signature(verdict=Verdict.MISMATCH, message="second run")},
        {"provider": "Q"},
    ],
    ids=["operator", "type", "connection", "verdict", "run", "provider"],
)
def test_what_changes_the_id(other: dict[str, Any]) -> None:
    usual = {"model": model_of(), "signature": SIGNATURE, "provider": "P"}
    assert id_of(**(usual | other)) != id_of(**usual)  # type: ignore[arg-type]


def test_attributes_change_the_id() -> None:
    def softmax(axis: int) -> onnx.ModelProto:
        return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
            agraph (float[2,3] x) => (float[2,3] y) {{ y = Softmax <axis = {axis}> (x) }}""")

    assert id_of(softmax(0)) != id_of(softmax(1))


def test_an_id_is_a_name_of_a_folder() -> None:
    found = id_of(model_of({"x": "../../etc", "first": "a/b\0c"}))
    assert found[0] == "F"
    assert len(found) == 11
    assert set(found[1:]) <= set("0123456789abcdef")


def test_attributes_are_short_text() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        agraph (bool go, float[2] x) => (float[2] y, float[3] k) {
            y = If (go) <then_branch = t () => (float[2] a) { a = Relu (x) },
                         else_branch = e () => (float[2] b) { m = Neg (x) b = Abs (m) }>
            k = Constant <value = float[3] {1, 2, 3}> ()
        }""")
    model.graph.node.append(
        helper.make_node("Own", ["x"], ["z"], text="a\nb" * 100, ratio=0.1, sizes=[1, 2], raw=b"\xff\xfe")
    )
    kinds, constant, own = reduced_of(model).nodes
    assert kinds.attributes == {"then_branch": "1 nodes", "else_branch": "2 nodes"}
    assert constant.attributes == {"value": "float32 3"}
    assert own.attributes["ratio"] == "0.1"
    assert own.attributes["sizes"] == "[1, 2]"
    assert "\n" not in own.attributes["text"]
    assert len(own.attributes["text"]) <= TEXT_CHARS
    assert own.attributes["raw"]


def test_unknown_sizes_and_types_that_are_no_tensors() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[N,3] x, seq(float[2]) s) => (float y) { y = SequenceAt (s, x) }""")
    found = {one.name: (one.dtype, one.shape) for one in reduced_of(model).tensors}
    assert found["x"] == ("float32", "Nx3")
    assert found["s"] == ("", "")


def test_a_model_that_stayed_large_is_cut_short() -> None:
    model = model_of()
    model.graph.node.extend([helper.make_node("Relu", ["x"], [f"o{n}"]) for n in range(NODES_SHOWN)])
    found = reduced_of(model)
    assert len(found.nodes) == NODES_SHOWN
    assert found.nodes_before == NODES_SHOWN + 2


def test_shapes_are_short() -> None:
    assert shape_text([1, 3, 8]) == "1x3x8"
    assert shape_text([]) == ""


def test_it_can_be_written_whatever_names_hold() -> None:
    found = reduced_of(model_of({"x": "</script>\u202e", "first": "\x1b[31m"}))
    assert msgspec.json.decode(msgspec.json.encode(found), type=ReducedModel) == found
