"""Models in float64: all is double, except what the model rounds and what has no doubles."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from onnx.reference import ReferenceEvaluator

from harness.core.values.value import Sequence, Tensor
from harness.corpus.case import Case
from harness.corpus.derived.external_copy import external_copy
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.derived.upcast import float64_case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_file

Write = Callable[..., Path]


@pytest.fixture
def upcast(write_model: Write, own_cache: Path) -> Callable[..., Case | Inapplicable]:
    assert own_cache

    def make(graph: str, **weights: Any) -> Case | Inapplicable:
        path = write_model(graph=graph)
        model = onnx.load(path)
        for name, array in weights.items():
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        onnx.save(model, path)
        return float64_case(load_case(open_file(path), path.name, {}))

    return make


def ran(case: Case | Inapplicable) -> tuple[Any, ...]:
    """What a case in float64 gives, by ONNX's own rules, which take each type at its word."""
    assert isinstance(case, Case), case.reason
    model = onnx.load(case.model_path)
    onnx.checker.check_model(model, full_check=True)
    feeds = {
        name: value.array if isinstance(value, Tensor) else [item.array for item in value.items]  # type: ignore[union-attr]
        for name, value in case.data_sets[0].inputs
    }
    return (*feeds.values(), *ReferenceEvaluator(model).run(None, feeds))


def ops(case: Case | Inapplicable) -> list[str]:
    assert isinstance(case, Case)
    return [node.op_type for node in onnx.load(case.model_path).graph.node]


def test_weights_inputs_and_outputs_are_double(upcast: Callable[..., Case]) -> None:
    weight = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    case = upcast("g (float[4] x) => (float[4] y) { z = Mul(x, w) y = Exp(z) }", w=weight)
    x, y = ran(case)
    assert x.dtype == y.dtype == np.float64
    np.testing.assert_array_equal(y, np.exp(x * weight.astype(np.float64)))
    assert case.facts.float_types == {"float64"}
    assert (
        [port.type.dtype for port in case.ports] == [kind.dtype for kind in case.output_types] == ["float64"]
    )
    assert case.data_sets[0].expected == ()


@pytest.mark.parametrize(
    "constant",
    ["Constant<value = float {0.1}>()", "Constant<value_float = 0.1>()", "Constant<value_floats = [0.1]>()"],
)
def test_constants_are_double(upcast: Callable[..., Case], constant: str) -> None:
    x, y = ran(upcast(f"g (float[4] x) => (float[4] y) {{ c = {constant} y = Mul(x, c) }}"))
    np.testing.assert_array_equal(y, x * np.float64(np.float32(0.1)))


def test_what_makes_tensors_makes_doubles(upcast: Callable[..., Case]) -> None:
    case = upcast(
        """g (float[4] x) => (float[4] y) {
            n = Shape(x) a = ConstantOfShape(n) b = ConstantOfShape<value = float[1] {0.5}>(n)
            e = EyeLike<dtype = 1>(m) r = ReduceSum<keepdims = 0>(e)
            s = Add(a, b) t = Add(s, r) y = Add(t, x) }""",
        m=np.eye(2, dtype=np.int64),
    )
    x, y = ran(case)
    np.testing.assert_array_equal(y, 0.5 + 2.0 + x)


def test_a_cast_to_a_narrower_type_rounds_as_before(upcast: Callable[..., Case]) -> None:
    case = upcast("g (float[4] x) => (float[4] y) { h = Cast<to = 10>(x) y = Cast<to = 1>(h) }")
    x, y = ran(case)
    np.testing.assert_array_equal(y, x.astype(np.float16).astype(np.float64))
    assert ops(case) == ["Cast"] * 3  # to float16, to double, and one that changes nothing
    case = upcast("g (float[4] x, float16[1] l) => (float[4] y) { h = CastLike(x, l) y = Cast<to = 1>(h) }")
    x, _, y = ran(case)
    np.testing.assert_array_equal(y, x.astype(np.float16).astype(np.float64))


def test_arithmetic_between_casts_is_not_rounded(upcast: Callable[..., Case]) -> None:
    case = upcast("g (float16[4] x) => (float[4] y) { h = Exp(x) y = Cast<to = 1>(h) }")
    x, y = ran(case)
    np.testing.assert_array_equal(y, np.exp(x))
    assert len(np.unique(y.astype(np.float16).astype(np.float64) == y)) == 1
    assert not (y.astype(np.float32) == y).all()


@pytest.mark.parametrize(
    ("graph", "operator"),
    [
        ("q = QuantizeLinear(x, c, zero) y = Exp(x)", "QuantizeLinear"),
        ("y = Erf(x) d = DequantizeLinear(zero, c)", "DequantizeLinear"),
        ("y = LayerNormalization(x, x)", "LayerNormalization"),
    ],
)
def test_a_model_with_an_operator_that_keeps_float32_is_no_float64(
    upcast: Callable[..., Case | Inapplicable], graph: str, operator: str
) -> None:
    found = upcast(f"g (float[4] x) => (float[4] y) {{ {graph} }}", c=np.float32(0.1), zero=np.uint8(100))
    assert isinstance(found, Inapplicable)
    assert operator in found.reason


def test_scales_that_are_float32_stay_so(upcast: Callable[..., Case]) -> None:
    case = upcast(
        'g (float[1, 1, 2, 2] x) => (float[1, 1, A, B] y) { y = Resize<mode = "nearest">(x, , scales) }',
        scales=np.array([1, 1, 2, 2], np.float32),
    )
    x, y = ran(case)
    np.testing.assert_array_equal(y, x.repeat(2, 2).repeat(2, 3))


def test_branches_and_bodies_are_double(upcast: Callable[..., Case]) -> None:
    case = upcast(
        """g (float[4] x, bool c) => (float[4] y) {
            t = If (c) <
                then_branch = a () => (float[4] u) { u = Mul(x, half) },
                else_branch = b () => (float[4] v) { k = Constant<value_float = 3.0>() v = Mul(x, k) }
            >
            y = Loop (trips, yes, t) <
                body = l (int64 i, bool ok, float[4] s) => (bool go, float[4] r) {
                    go = Identity(ok) r = Mul(s, half) }
            > }""",
        half=np.float32(0.1),
        trips=np.int64(2),
        yes=np.bool_(1),
    )
    x, is_then, y = ran(case)
    half = np.float64(np.float32(0.1))
    np.testing.assert_allclose(y, x * (half if is_then else 3.0) * half * half, rtol=1e-15)


def test_sequences_are_double(upcast: Callable[..., Case]) -> None:
    case = upcast(
        """g (float[4] x) => (float[4] y, seq(float[4]) s) {
            s = SequenceConstruct(x, x) z = Constant<value_int = 1>() t = SequenceAt(s, z) y = Exp(t) }"""
    )
    x, y, s = ran(case)
    np.testing.assert_array_equal(y, np.exp(x))
    assert [item.dtype for item in s] == [np.float64] * 2
    assert isinstance(case, Case)
    (inner,) = [kind.item for kind in case.output_types if kind.item]
    assert inner.dtype == "float64"


def test_fed_sequences_are_double(upcast: Callable[..., Case]) -> None:
    case = upcast(
        """g (seq(float[4]) s) => (float[4] y) {
            z = Constant<value_int = 0>() t = SequenceAt(s, z) y = Exp(t) }"""
    )
    ((_, value),) = case.data_sets[0].inputs
    assert isinstance(value, Sequence)
    assert {item.dtype for item in value.items if isinstance(item, Tensor)} == {"float64"}
    items, y = ran(case)
    np.testing.assert_array_equal(y, np.exp(items[0]))


def test_external_weights_come_into_the_model(own_cache: Path, write_model: Write) -> None:
    assert own_cache
    path = write_model(graph="g (float[512] x) => (float[512] y) { y = Mul(x, w) }")
    model = onnx.load(path)
    weight = np.linspace(0, 1, 512, dtype=np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, path)
    outside = external_copy(load_case(open_file(path), path.name, {}))
    assert outside is not None
    assert outside.external
    case = float64_case(outside)
    assert isinstance(case, Case)
    assert case.external == ()
    x, y = ran(case)
    np.testing.assert_array_equal(y, x * weight.astype(np.float64))


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        ("g (int64[4] x) => (int64[4] y) { y = Neg(x) }", "no float type|narrower than float64"),
        ("g (double[4] x) => (double[4] y) { y = Neg(x) }", "narrower than float64"),
        ("g (float[4] x) => (float[4] y) { y = acme.Do(x) }", "Do of acme is not ONNX's"),
        ("g (float[4] x) => (float[4] y) { y = Nothing(x) }", "Nothing of ai.onnx is not ONNX's"),
        ("g (float[4] x) => (float[4] y) { y = Neg(nowhere) }", "type of a value of Neg is unknown"),
        ("g (float[4] x) => (float[4] y) { y = Neg(x, x) }", "more inputs or outputs than its operator"),
    ],
)
def test_what_has_no_form_in_float64_is_inapplicable(
    upcast: Callable[..., Case | Inapplicable], graph: str, why: str
) -> None:
    found = upcast(graph)
    assert isinstance(found, Inapplicable)
    assert any(part in found.reason for part in why.split("|"))


def test_it_is_another_case_and_made_once(write_model: Write, own_cache: Path) -> None:
    case = load_case(open_file(write_model()), "one.onnx", {"N": 4})
    first, second = float64_case(case), float64_case(case)
    assert isinstance(first, Case)
    assert isinstance(second, Case)
    assert first.digest == second.digest != case.digest
    assert first.model_path.is_relative_to(own_cache)
    case.model_path.unlink()
    assert isinstance(float64_case(case), Case)
