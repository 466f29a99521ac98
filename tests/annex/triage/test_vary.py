"""Each variation changes one thing, is valid ONNX, and runs."""

import warnings
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.checker
import onnx.parser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from harness.annex.triage.session_use import with_axes
from harness.annex.triage.subject import Subject
from harness.annex.triage.vary import LEVELS, Variation, chosen, model_variations, session_variations
from harness.core.records.fault import Condition
from harness.core.values.value import Sequence, Tensor, tensor

ort: Any = pytest.importorskip("onnxruntime")

POOL = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[2,3,8,8] x) => (float[2,3,4,4] y) <float[3,3,1,1] w> {
    c = Conv <dilations = [1, 1], group = 1> (x, w)
    y = MaxPool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 0> (c)
}"""
UPSAMPLE = """<ir_version: 4, opset_import: ["" : 9]>
agraph (float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1, 1, 2, 2}> {
    y = Upsample <mode = "nearest"> (x, s)
}"""
CAST = """<ir_version: 8, opset_import: ["" : 17]>
agraph (int32[4] i, float[4] x) => (float[4] y) {
    c = Cast <to = 1> (i)
    k = Constant <value = float[4] {1, 2, 3, 4}> ()
    s = Add (c, x)
    y = Mul (s, k)
}"""
TWO_TYPES = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[4] x, float16[4] h) => (float16[4] y) { c = Cast <to = 10> (x) y = Add (c, h) }"""
BODY = """<ir_version: 8, opset_import: ["" : 17]>
agraph (bool go, float[2] x) => (float[2] y) {
    y = If (go) <then_branch = t () => (float[2] a) { a = Relu (x) },
                 else_branch = e () => (float[2] b) { b = Neg (x) }> }"""


def subject_of(text: str, **inputs: Any) -> Subject:
    model = onnx.parser.parse_model(text)
    random = np.random.default_rng(3)
    for one in model.graph.value_info:  # a declaration alone stands for a weight
        sizes = [dim.dim_value for dim in one.type.tensor_type.shape.dim]
        values = random.standard_normal(sizes).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, one.name))
    del model.graph.value_info[:]
    fed = {
        info.name: random.standard_normal([dim.dim_value for dim in info.type.tensor_type.shape.dim]).astype(
            helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        )
        for info in model.graph.input
    }
    return Subject(
        model=model.SerializeToString(),
        inputs=tuple((name, tensor(np.asarray(array))) for name, array in (fed | inputs).items()),
    )


def run(subject: Subject) -> list[Any]:
    session = ort.InferenceSession(subject.model, providers=["CPUExecutionProvider"])
    return list(session.run(None, {name: value.array for name, value in subject.inputs}))  # type: ignore[union-attr]


def of_kind(subject: Subject, kind: str) -> dict[tuple[str, str], Variation]:
    found = [one for one in model_variations(subject, ()) if one.condition.kind == kind]
    named = {(one.condition.name, one.condition.value): one for one in found}
    assert len(named) == len(found)
    return named


SUBJECTS = {
    "pool": subject_of(POOL),
    "upsample": subject_of(UPSAMPLE),
    "cast": subject_of(CAST),
    "types": subject_of(TWO_TYPES),
    "body": subject_of(BODY),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_each_variation_is_valid_and_runs(name: str) -> None:
    subject = SUBJECTS[name]
    assert run(subject)
    found = list(model_variations(subject, ()))
    assert found
    for one in found:
        model = one.subject.proto()
        onnx.checker.check_model(model, full_check=True)
        assert one.subject.digest != subject.digest
        assert one.condition.fails is None
        if one.condition.value != "bfloat16":  # few operators of the CPU EP have it
            assert run(one.subject), one.condition
    assert subject == SUBJECTS[name]


def test_the_subject_itself_is_no_variation() -> None:
    digests = [one.subject.digest for one in model_variations(SUBJECTS["pool"], ())]
    assert len(set(digests)) == len(digests)


def test_levels_and_scenarios_of_a_session() -> None:
    def found(**axes: str) -> list[tuple[str, str, dict[str, str]]]:
        given = tuple(sorted(axes.items()))
        return [
            (one.condition.kind, one.condition.value, dict(one.axes))
            for one in session_variations(SUBJECTS["pool"], given)
        ]

    assert [(kind, value) for kind, value, _ in found()] == [
        ("graph_optimization", level) for level in LEVELS if level != "all"
    ]
    assert ("graph_optimization", "all") in [
        one[:2] for one in found(graph_optimization="basic", precision="fp16")
    ]
    concurrent = found(scenario="concurrent", graph_optimization="all")
    assert concurrent[-1] == ("scenario", "plain", {"scenario": "plain", "graph_optimization": "all"})
    assert all(axes["scenario"] == "concurrent" for kind, _, axes in concurrent[:-1])


def test_axes_stay_sorted() -> None:
    assert with_axes((("a", "1"), ("c", "3")), (("b", "2"),)) == (("a", "1"), ("b", "2"), ("c", "3"))
    assert with_axes((("a", "1"),), (("a", "2"),)) == (("a", "2"),)


def test_element_types_change_everywhere_at_once() -> None:
    found = of_kind(SUBJECTS["pool"], "dtype")
    assert set(found) == {("", "float16")}  # Conv has no bfloat16 before opset 22
    half = found["", "float16"].subject
    model = half.proto()
    types = {info.type.tensor_type.elem_type for info in (*model.graph.input, *model.graph.output)}
    types |= {one.data_type for one in model.graph.initializer}
    assert types == {TensorProto.FLOAT16}
    assert isinstance(half.inputs[0][1], Tensor)
    assert half.inputs[0][1].array.dtype == np.float16
    (right,), (other,) = run(SUBJECTS["pool"]), run(half)
    assert other.dtype == np.float16
    np.testing.assert_allclose(other.astype(np.float32), right, atol=0.1)
    wide = of_kind(SUBJECTS["cast"], "dtype")["", "bfloat16"].subject.inputs[1][1]
    assert isinstance(wide, Tensor)
    assert wide.array.dtype == ml_dtypes.bfloat16


def test_casts_and_constants_change_with_them() -> None:
    half = of_kind(SUBJECTS["cast"], "dtype")["", "float16"].subject
    assert run(half)[0].dtype == np.float16
    inputs = dict(half.inputs)
    assert isinstance(inputs["i"], Tensor)
    assert inputs["i"].array.dtype == np.int32  # whole numbers stay


@pytest.mark.parametrize("name", ["types", "body"])
def test_models_whose_types_cannot_all_change_keep_them(name: str) -> None:
    found = of_kind(SUBJECTS[name], "dtype")
    assert not found


def test_opsets_between_which_an_operator_changed() -> None:
    found = {value for _, value in of_kind(SUBJECTS["pool"], "opset")}
    # Conv got a new version at 22, MaxPool at 12 and at 22: 13 to 16 are the same.
    assert found <= {"18", "19", "20", "21"} | {str(one) for one in range(13, 17)}
    relu = subject_of("""<ir_version: 7, opset_import: ["" : 12]>
        agraph (float[2] x) => (float[2] y) { y = Relu (x) }""")
    assert {value for _, value in of_kind(relu, "opset")} == {"13", "14", "15", "16"}
    for (_, value), one in of_kind(relu, "opset").items():
        assert one.subject.proto().opset_import[0].version == int(value)


def test_upsample_becomes_resize() -> None:
    found = of_kind(SUBJECTS["upsample"], "opset")
    model = found["", "11"].subject.proto()
    assert [node.op_type for node in model.graph.node] == ["Constant", "Resize"]
    np.testing.assert_array_equal(run(found["", "11"].subject)[0], run(SUBJECTS["upsample"])[0])


def test_attributes_go_one_at_a_time_unless_they_are_required() -> None:
    found = of_kind(SUBJECTS["pool"], "attribute")
    assert {name for name, _ in found} == {
        "Conv.dilations",
        "Conv.group",
        "MaxPool.strides",
        "MaxPool.ceil_mode",
    }
    model = found["MaxPool.strides", "default"].subject.proto()
    assert [attribute.name for attribute in model.graph.node[1].attribute] == ["kernel_shape", "ceil_mode"]
    assert len(model.graph.node[0].attribute) == 2


def test_operators_that_onnx_does_not_know_keep_their_attributes() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        agraph (float[2] x) => (float[2] y) { y = com.microsoft.QuickGelu <alpha = 1.5> (x) }""")
    subject = Subject(
        model=model.SerializeToString(), inputs=(("x", tensor(np.array([1, -2], dtype=np.float32))),)
    )
    assert not of_kind(subject, "attribute")
    assert of_kind(subject, "values")


def test_values_of_floats_alone_change() -> None:
    subject = SUBJECTS["cast"]
    for one in of_kind(subject, "values").values():
        given, made = dict(subject.inputs), dict(one.subject.inputs)
        assert made["i"] is given["i"]
        assert isinstance(made["x"], Tensor)
        assert made["x"].array.dtype == np.float32
        assert one.subject.model == subject.model


def test_what_the_values_become() -> None:
    given = np.array([[-2.6, 0.4, 7.0]], dtype=np.float32)
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[1,3] x) => (float[1,3] y) { y = Neg (x) }""")
    subject = Subject(model=model.SerializeToString(), inputs=(("x", tensor(given)),))
    made = {
        value: one.subject.inputs[0][1].array.tolist()[0]  # type: ignore[union-attr]
        for (_, value), one in of_kind(subject, "values").items()
    }
    assert made["zeros"] == [0, 0, 0]
    assert made["ones"] == [1, 1, 1]
    assert made["absolute"] == pytest.approx([2.6, 0.4, 7.0])
    assert made["small whole numbers"] == [-3, 0, 3]
    assert made["1/1000 of the size"] == pytest.approx([-0.0026, 0.0004, 0.007])
    assert made["1000 times the size"] == pytest.approx([-2600, 400, 7000])


def test_the_first_and_the_last_dimension_have_other_sizes() -> None:
    found = of_kind(SUBJECTS["pool"], "shape")
    sizes = [value for name, value in found if name == "first dimension"]
    assert sizes == ["1", "3", "4", "5", "8"]  # it has 2
    assert {name for name, _ in found} == {"first dimension", "last dimension"}
    for value in sizes:
        (out,) = run(found["first dimension", value].subject)
        assert out.shape == (int(value), 3, 4, 4)
    for (name, value), one in found.items():
        if name == "last dimension":
            assert one.subject.inputs[0][1].array.shape[-1] == int(value)  # type: ignore[union-attr]
    np.testing.assert_array_equal(run(found["first dimension", "1"].subject)[0], run(SUBJECTS["pool"])[0][:1])


@pytest.mark.parametrize(
    "subject",
    [
        Subject(model=SUBJECTS["pool"].model, inputs=()),
        Subject(model=SUBJECTS["pool"].model, inputs=(("x", tensor(np.zeros((0, 3), np.float32))),)),
        Subject(model=SUBJECTS["pool"].model, inputs=(("x", tensor(np.array(1, np.float32))),)),
        Subject(
            model=SUBJECTS["pool"].model,
            inputs=(("x", tensor(np.ones(2, np.float32))), ("z", tensor(np.ones(3, np.float32)))),
        ),
        Subject(model=SUBJECTS["pool"].model, inputs=(("x", Sequence(items=())),)),
    ],
    ids=["none", "empty", "scalar", "several", "sequence"],
)
def test_other_inputs_keep_their_sizes(subject: Subject) -> None:
    assert not of_kind(subject, "shape")


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["opset", "dtype", "values"])), st.booleans())
def test_conditions_are_chosen_by_kind_and_result(kinds: list[Any], fails: bool) -> None:  # noqa: FBT001
    conditions = [
        Condition(kind=kind, value=str(number), fails=(None, True, False)[number % 3])
        for number, kind in enumerate(kinds)
    ]
    found = chosen(conditions, "opset", fails=fails)
    assert list(found) == [one for one in conditions if one.kind == "opset" and one.fails is fails]


def test_external_data_stays_where_it_is() -> None:
    subject = SUBJECTS["pool"]

    def kinds(one: Subject) -> Iterator[str]:
        yield from (variation.condition.kind for variation in model_variations(one, ()))

    import pathlib

    external = Subject(model=subject.model, inputs=subject.inputs, external=pathlib.Path("nowhere"))
    assert "dtype" in set(kinds(subject))
    assert not {"dtype", "opset"} & set(kinds(external))
    assert {"attribute", "values", "shape"} <= set(kinds(external))
    assert all(one.subject.external == external.external for one in model_variations(external, ()))


def test_values_that_are_too_large_for_a_type_cause_no_warning() -> None:
    huge = np.array([1e30, -1e30, 1.0, 2.0], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        varied = list(model_variations(subject_of(CAST, x=huge), ()))
    (half,) = [one.subject for one in varied if one.condition.value == "float16"]
    value = dict(half.inputs)["x"]
    assert isinstance(value, Tensor)
    assert value.array.tolist() == [np.inf, -np.inf, 1.0, 2.0]


INDEXED = """<ir_version: 8, opset_import: ["" : 17]> agraph (float[4, 6] x) => (float[3, 6] y)
    <int64[3] i = {-1, 2, -3}> { y = Gather(x, i) }"""


def test_negative_indices_are_counted_from_the_start() -> None:
    model = onnx.parser.parse_model(INDEXED)
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    given = Subject(model=model.SerializeToString(), inputs=(("x", tensor(x)),))
    varied = of_kind(given, "values")["", "whose indices are not negative"].subject
    (indices,) = varied.proto().graph.initializer
    assert onnx.numpy_helper.to_array(indices).tolist() == [3, 2, 1]
    np.testing.assert_array_equal(run(varied)[0], run(given)[0])
    assert ("", "whose indices are not negative") not in of_kind(varied, "values")
