"""Transformations of dimensions, values and names."""

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from harness.annex.triage.net import Net, load
from harness.annex.triage.plain_values import (
    GIVEN_VALUES,
    RANDOM,
    SINGLE,
    randomised,
    single,
    small_integers,
    speciality,
)
from harness.annex.triage.subject import Subject
from harness.annex.triage.transform.names import anonymous_names
from harness.annex.triage.transform.shrink import smaller_dimensions
from harness.annex.triage.transform.values import (
    integer_inputs,
    random_inputs,
    random_weights,
    single_inputs,
    single_weights,
    weights_of,
)
from harness.core.values.value import DTYPES, Array, Tensor, tensor
from tests.annex.triage.reducing.reductions import apply, first_output, subject

CONV = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[batch,3,32,32] x, float[8,3,3,3] w, float[8] b) => (float[batch,8,30,30] y) {
        [conv] y = Conv(x, w, b)
    }
"""


def conv_inputs() -> dict[str, Array]:
    random = np.random.default_rng(0)
    shapes = {"x": (4, 3, 32, 32), "w": (8, 3, 3, 3), "b": (8,)}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def shapes(net: Net) -> dict[str, tuple[int, ...]]:
    fed = {name: value.array.shape for name, value in net.fed.items() if isinstance(value, Tensor)}
    return fed | {name: weight.shape for name, weight in net.weights.items()}


def test_dimensions_shrink_together() -> None:
    start = subject(CONV, **conv_inputs())
    net = apply(smaller_dimensions, start, lambda model, fed: first_output(model, fed) is not None)
    assert shapes(net) == {"x": (1, 1, 1, 1), "w": (1, 1, 1, 1), "b": (1,)}


def test_a_size_that_matters_is_found_exactly() -> None:
    def judge(model: onnx.ModelProto, fed: dict[str, Array]) -> bool:
        found = first_output(model, fed)
        return found is not None and found.shape[1] >= 5 and found.shape[2] >= 9

    net = apply(smaller_dimensions, subject(CONV, **conv_inputs()), judge)
    assert shapes(net) == {"x": (1, 1, 11, 1), "w": (5, 1, 1, 1), "b": (5,)}


def test_shapes_that_are_constants_follow() -> None:
    start = subject(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2,12,64] x) => (float[2,12,4,16] y) <int64[4] shape = {2, 12, 4, 16}> {
            y = Reshape(x, shape)
        }""",
        x=np.ones((2, 12, 64), np.float32),
    )

    def judge(model: onnx.ModelProto, fed: dict[str, Array]) -> bool:
        return np.ndim(first_output(model, fed)) == 4

    net = apply(smaller_dimensions, start, judge)
    assert np.prod(shapes(net)["x"]) <= 8
    assert net.subject().proto() != start.proto()


def test_the_output_is_declared_anew() -> None:
    net = apply(smaller_dimensions, subject(CONV, **conv_inputs()))
    (info,) = net.outputs.values()
    dims = info.type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["batch", 1, 1, 1]


WEIGHTED = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[2,4] x) => (float[2,6] y) {
        m = MatMul(x, w)
        y = Add(m, b)
    }
"""


def weighted() -> Subject:
    random = np.random.default_rng(1)
    model = onnx.parser.parse_model(
        WEIGHTED.replace("(float[2,4] x)", "(float[2,4] x, float[4,6] w, float[6] b)")
    )
    del model.graph.input[1:]
    for name, shape in (("w", (4, 6)), ("b", (6,))):
        array = random.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    x = tensor(random.standard_normal((2, 4)).astype(np.float32))
    return Subject(model=model.SerializeToString(), inputs=(("x", x),))


def weight(net: Net, name: str) -> Array:
    return net.weights[name].value(None).array


def test_weights_become_random_numbers_of_the_same_range() -> None:
    start = weighted()
    before, after = load(start), apply(random_weights, start)
    for name in ("w", "b"):
        old, new = weight(before, name), weight(after, name)
        assert not np.isin(old, [old.min(), old.max()], invert=True).all()
        assert (old.min(), old.max(), (old < 0).sum()) == (new.min(), new.max(), (new < 0).sum())
        assert np.isin(new, old).mean() <= 4 / new.size


def test_ternary_weights_are_no_small_integers_that_may_stay() -> None:
    start = subject(
        """<ir_version: 8, opset_import: ["": 17]>
        g (int8[2,4] x) => (int32[2,6] y)
        <int8[4,6] w = {1, 0, -1, 1, 1, 1, -1, -1, -1, 0, 0, 1, 1, 0, -1, 0, 0, 0, -1, 1, 1, -1, -1, -1}> {
            y = MatMulInteger(x, w)
        }""",
        x=np.ones((2, 4), np.int8),
    )
    assert weights_of(load(start)) == "kept"
    net = apply(random_weights, start)
    assert weights_of(net) == "random"
    assert not np.array_equal(weight(net, "w"), weight(load(start), "w"))
    assert sorted(weight(net, "w").flat) == sorted(weight(load(start), "w").flat)
    assert weights_of(apply(single_weights, start)) == "single"


def test_weights_become_one_value() -> None:
    net = apply(single_weights, weighted())
    assert np.unique(weight(net, "w")).size == 1


@pytest.mark.parametrize("transformation", [random_weights, single_weights])
def test_weights_are_kept_if_that_is_asked_for(transformation: Any) -> None:
    start = weighted()
    assert apply(transformation, start, keep_weights=True).subject().digest == load(start).subject().digest


def test_a_weight_that_matters_is_kept() -> None:
    start = weighted()
    w = weight(load(start), "w")

    def judge(model: onnx.ModelProto, _: Any) -> bool:
        return any(
            one.name == "w" and np.array_equal(onnx.numpy_helper.to_array(one), w)
            for one in model.graph.initializer
        )

    net = apply(random_weights, start, judge)
    np.testing.assert_array_equal(weight(net, "w"), w)
    assert speciality(net.weights["b"].value(None)) == RANDOM
    assert weights_of(net) == "kept"


def test_inputs_become_plainer_step_by_step() -> None:
    start = weighted()
    for transformation, allowed in ((random_inputs, 2), (integer_inputs, 1), (single_inputs, 0)):
        net = apply(transformation, start)
        value = net.fed["x"]
        assert isinstance(value, Tensor)
        assert speciality(value) <= allowed
        start = net.subject()


@settings(max_examples=200, deadline=None)
@given(data=st.data(), dtype=st.sampled_from(sorted(DTYPES)))
def test_random_numbers_share_nothing_but_range_and_signs(data: st.DataObject, dtype: str) -> None:
    codes = data.draw(arrays.arrays(np.uint8, st.integers(2, 40)))
    array = codes.view(np.int8).astype(np.float32).astype(DTYPES[dtype])
    value = Tensor(dtype=dtype, array=array)
    made = randomised(value)
    assert made.array.dtype == array.dtype
    assert made.array.shape == array.shape
    again = randomised(made)
    assert again.array.tobytes() == made.array.tobytes()
    if not dtype.startswith("complex"):
        old, new = array.astype(np.float64), made.array.astype(np.float64)
        assert np.isnan(old).sum() == np.isnan(new).sum()
        numbers, others = old[~np.isnan(old)], new[~np.isnan(new)]
        assert not numbers.size or (numbers.min(), numbers.max()) == (others.min(), others.max())
        assert np.array_equal(np.sort(np.sign(old)), np.sort(np.sign(new)), equal_nan=True)
    one = single(value)
    assert one is None or speciality(one) == SINGLE
    few = small_integers(value)
    assert few is None or np.abs(few.array.astype(np.float64)).max() <= 3


def test_texts_are_special_until_they_are_equal() -> None:
    texts = tensor(np.array(["a name", "another"], dtype=object))
    assert speciality(texts) == GIVEN_VALUES
    made = single(texts)
    assert made is not None
    assert made.array.tolist() == ["a", "a"]


def test_names_tell_nothing() -> None:
    start = subject(
        """<ir_version: 9, opset_import: ["": 17, "com.secret": 1]>
        secret_graph (float[secret_n,3] secret_x, bool secret_c) => (float[secret_n,3] secret_y)
        <float secret_k = {2}> {
            [secret_1] secret_a = com.secret.secret_f(secret_x)
            [secret_2] secret_y = If (secret_c) <
                then_branch = secret_g1 () => (float[secret_n,3] secret_r) {
                    [secret_3] secret_r = Mul(secret_a, secret_k)
                },
                else_branch = secret_g2 () => (float[secret_n,3] secret_s) {
                    [secret_4] secret_s = Neg(secret_a)
                }
            >
        }
        <domain: "com.secret", opset_import: ["": 17]>
        secret_f (secret_v) => (secret_w) {
            [secret_5] secret_t = Abs(secret_v) [secret_6] secret_w = Sin(secret_t)
        }
        """,
        secret_x=np.ones((2, 3), np.float32),
        secret_c=np.array(True),  # noqa: FBT003
    )
    net = apply(anonymous_names, start)
    left = net.subject()
    assert left.model.count(b"secret") == 1  # the graph's own name, which another transformation drops
    assert [name for name, _ in left.inputs] == ["t0", "t1"]
    assert {net.origins[name] for node in net.nodes for name in node.names} == {
        f"secret_{n}" for n in range(1, 5)
    }


def test_nodes_whose_names_matter_keep_them() -> None:
    start = subject(CONV, **conv_inputs())
    net = apply(anonymous_names, start, lambda model, _: model.graph.node[0].name == "conv")
    assert [node.name for node in net.nodes] == ["conv"]
    assert list(net.inputs) == ["t0", "t1", "t2"]
