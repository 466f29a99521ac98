"""Values of the columns of tables, by what models of classic machine learning compare them with."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.core.values.value import Tensor
from harness.corpus.case import Case
from harness.corpus.inputs.open_sizes import TABLE_ROWS
from harness.corpus.inputs.tables.table_columns import with_table_columns
from harness.corpus.load_case import load_case
from harness.corpus.noise.tensors import ReadableTensors, makes_whole
from harness.corpus.suites.suite import open_folder
from harness.operators.value_domains import Domain, TableColumn

ML = "ai.onnx.ml"
FLOAT, STRING = TensorProto.FLOAT, TensorProto.STRING


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    domain = "" if op in PLAIN else "com.microsoft" if op in {"CDist", "Tokenizer"} else ML
    return helper.make_node(op, inputs.split(), outputs.split(), domain=domain, **attributes)


PLAIN = {"Add", "Cast", "Concat", "Div", "Gather", "Mul", "Relu", "Reshape", "Scan", "Sub", "TfIdfVectorizer"}


def trees(source: str, *thresholds: tuple[int, float], **attributes: Any) -> onnx.NodeProto:
    """A stump for each feature and threshold, whose leaf of larger values is one more than the one before."""
    count = len(thresholds)
    return node(
        "TreeEnsembleRegressor",
        source,
        "y",
        n_targets=1,
        nodes_treeids=[tree for tree in range(count) for _ in range(3)],
        nodes_nodeids=[0, 1, 2] * count,
        nodes_featureids=[at for feature, _ in thresholds for at in (feature, 0, 0)],
        nodes_values=[at for _, value in thresholds for at in (value, 0.0, 0.0)],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * count,
        nodes_truenodeids=[1, 0, 0] * count,
        nodes_falsenodeids=[2, 0, 0] * count,
        target_treeids=[tree for tree in range(count) for _ in range(2)],
        target_nodeids=[1, 2] * count,
        target_ids=[0] * (2 * count),
        target_weights=[float(at) for tree in range(count) for at in (0, tree + 1)],
        **attributes,
    )


def model_of(
    nodes: Sequence[onnx.NodeProto],
    width: int = 2,
    kind: int = FLOAT,
    names: Sequence[str] = ("x",),
    weights: dict[str, Any] | None = None,
) -> onnx.ModelProto:
    made = [numpy_helper.from_array(np.asarray(value), name) for name, value in (weights or {}).items()]
    inputs = [helper.make_tensor_value_info(name, kind, [None, width]) for name in names]
    outputs = [helper.make_tensor_value_info("y", FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, made)
    opsets = [
        helper.make_opsetid("", 17),
        helper.make_opsetid(ML, 3),
        helper.make_opsetid("com.microsoft", 1),
    ]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def columns(model: onnx.ModelProto, name: str = "x") -> tuple[TableColumn, ...]:
    return with_table_columns({}, model).get(name, Domain()).columns


@pytest.fixture
def fed(tmp_path: Path) -> Callable[[onnx.ModelProto], dict[str, Any]]:
    def arrays(model: onnx.ModelProto) -> dict[str, Any]:
        (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
        case: Case = load_case(open_folder(tmp_path), "m.onnx", {})
        return {name: value.array for name, value in case.data_sets[0].inputs if isinstance(value, Tensor)}

    return arrays


def test_rows_lie_on_both_sides_of_each_threshold_and_on_it(fed: Callable[..., dict[str, Any]]) -> None:
    x = fed(model_of([trees("x", (0, 30.0), (0, 40.0), (1, -0.5))]))["x"]
    assert x.shape == (TABLE_ROWS, 2)
    for column, limit in ((0, 30), (0, 40), (1, -0.5)):
        values = x[:, column]
        assert (values < limit).any()
        assert (values > limit).any()
        assert (values == limit).any()
    assert ((x[:, 0] > 30) & (x[:, 0] < 40)).any()


def test_thresholds_behind_a_scale_lead_back_over_it(fed: Callable[..., dict[str, Any]]) -> None:
    scaler = node("Scaler", "x", "s", offset=[1000.0, 0.0], scale=[0.01, 1.0])
    model = model_of([scaler, trees("s", (0, 2.0), (0, 3.0))])
    x = fed(model)["x"][:, 0]
    assert (x < 1200).any()
    assert ((x > 1200) & (x < 1300)).any()
    assert (x > 1300).any()
    assert not np.isin(x, [1200, 1300]).any()  # rounding would decide
    assert columns(model)[1] == TableColumn()


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Sub", "x mean", "a"), node("Div", "a deviation", "y")],
        [node("Mul", "x inverse", "a"), node("Add", "a less", "y")],
        [node("Cast", "x", "a", to=FLOAT), node("Sub", "a mean", "b"), node("Div", "b deviation", "y")],
    ],
)
def test_the_scale_of_a_column_is_that_by_which_it_is_divided(nodes: list[onnx.NodeProto]) -> None:
    weights = {
        "mean": np.array([50, -3], np.float32),
        "deviation": np.array([10, 0.5], np.float32),
        "inverse": np.array([0.1, 2], np.float32),
        "less": np.array([-5, 6], np.float32),
    }
    found = columns(model_of(nodes, weights=weights))
    assert [(round(one.centre, 4), round(one.spread, 4)) for one in found] == [(50, 10), (-3, 0.5)]


def test_one_number_for_all_columns_is_no_scale_of_a_table() -> None:
    assert (
        columns(model_of([node("Mul", "x factor", "y")], weights={"factor": np.array([32768.0], np.float32)}))
        == ()
    )


def test_all_categories_occur_and_no_other_text(fed: Callable[..., dict[str, Any]]) -> None:
    nodes = [
        node("Concat", "sex town", "both", axis=1),
        node("ArrayFeatureExtractor", "both second", "one"),
        node("OneHotEncoder", "one", "y", cats_strings=["Bern", "Uri", "Zug"], zeros=0),
        node("ArrayFeatureExtractor", "both first", "other"),
        node("LabelEncoder", "other", "z", keys_strings=["f", "m"], values_int64s=[0, 1]),
    ]
    weights = {"first": np.array([0], np.int64), "second": np.array([1], np.int64)}
    model = model_of(nodes, width=1, kind=STRING, names=("sex", "town"), weights=weights)
    inputs = fed(model)
    assert set(inputs["town"].ravel()) == {"Bern", "Uri", "Zug"}
    assert set(inputs["sex"].ravel()) == {"f", "m"}


def test_texts_consist_of_the_words_that_are_counted(fed: Callable[..., dict[str, Any]]) -> None:
    words = ["bad", "good", "plot"]
    nodes = [
        node("Tokenizer", "x", "t", mark=0, mincharnum=1, pad_value="#", separators=[" "]),
        node("TfIdfVectorizer", "t", "y", pool_strings=words, min_gram_length=1, max_gram_length=1,
             max_skip_count=0, mode="TF", ngram_counts=[0], ngram_indexes=[0, 1, 2]),
    ]  # fmt: skip
    texts = fed(model_of(nodes, width=1, kind=STRING))["x"].ravel()
    assert {word for text in texts for word in text.split()} == set(words)
    assert all(len(text.split()) > 1 for text in texts)


@pytest.mark.parametrize("op", ["SVMRegressor", "CDist"])
def test_rows_are_near_those_of_the_model(op: str, fed: Callable[..., dict[str, Any]]) -> None:
    known = np.array([[100, 0.1], [200, 0.2], [300, 0.3], [400, 0.4]], np.float32)
    if op == "CDist":
        model = model_of([node("CDist", "x known", "y", metric="euclidean")], weights={"known": known})
    else:
        vectors = known.ravel().tolist()
        more = {
            "kernel_type": "RBF",
            "kernel_params": [0.1, 0.0, 3.0],
            "coefficients": [1.0] * 4,
            "rho": [0.0],
        }
        model = model_of([node(op, "x", "y", n_supports=4, support_vectors=vectors, **more)])
    x = fed(model)["x"]
    distances = np.abs(x[:, None, :] / known[3] - known / known[3]).max(axis=-1)
    assert distances.min(axis=1).max() < 0.15
    assert set(distances.argmin(axis=1)) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("nodes", "gaps"),
    [
        ([trees("x", (0, 3.0), (1, 1.0), nodes_missing_value_tracks_true=[1, 0, 0] * 2)], True),
        ([trees("x", (0, 3.0), (1, 1.0))], False),
        (
            [
                trees("x", (0, 3.0), (1, 1.0), nodes_missing_value_tracks_true=[1, 0, 0] * 2),
                node("Relu", "x", "z"),
            ],
            False,
        ),
        (
            [
                node("Imputer", "x", "i", imputed_value_floats=[1.0], replaced_value_float=float("nan")),
                node("Relu", "i", "z"),
                trees("i", (0, 3.0), (1, 1.0)),
            ],
            True,
        ),
    ],
)
def test_values_are_missing_where_everything_that_reads_them_knows_it(
    nodes: list[onnx.NodeProto], fed: Callable[..., dict[str, Any]], *, gaps: bool
) -> None:
    x = fed(model_of(nodes))["x"]
    assert np.isnan(x).any() == gaps
    assert not np.isnan(x).all(axis=0).any()


def test_a_network_without_a_table_has_no_columns() -> None:
    assert columns(model_of([node("Relu", "x", "y")])) == ()


@pytest.mark.parametrize(
    ("attributes", "whole"),
    [({}, True), ({"base_values": [0.5]}, False), ({"aggregate_function": "AVERAGE"}, False)],
)
def test_leaves_of_whole_numbers_carry_no_rounding_noise(attributes: dict[str, Any], *, whole: bool) -> None:
    one = trees("x", (0, 1.0), **attributes)
    assert makes_whole(one, ReadableTensors()) is whole


def test_a_broken_ensemble_of_trees_says_nothing() -> None:
    broken = trees("x", (0, 1.0), (1, 2.0))
    next(one for one in broken.attribute if one.name == "nodes_values").floats.append(3.0)
    assert columns(model_of([broken])) == ()
    far = trees("x", (1 << 40, 1.0))
    assert columns(model_of([far])) == ()
    (every,) = columns(model_of([far], width=0))
    assert {1.0} < set(every.choices)
