"""A gradient-boosted classifier as exported by scikit-learn's converter."""

from typing import Any, NamedTuple

import numpy as np

from harness.annex.made.zoo.graph_builder import ML_DOMAIN, Architecture, GraphBuilder, SymbolicDim
from harness.core.values.value import Array

_ROWS = SymbolicDim("batch", 16)
"""Number of rows: enough for missing values, and for most branches of a tree."""

_CLASSES = 3
_FEATURES = 12

_TREE_ENSEMBLE = 5
"""The version of ai.onnx.ml that replaced TreeEnsembleRegressor by TreeEnsemble."""


class _Forest(NamedTuple):
    """Complete binary trees of one depth; each inner node tests one feature, each leaf adds to one class.

    Nodes of a tree are counted from its root, level by level: ``n`` leads to ``2 n + 1`` and ``2 n + 2``.

    Attributes:
        features: ``(trees, 2**depth - 1)`` of int64.
        splits: Their thresholds, float32.
        classes: ``(trees, 2**depth)`` of int64.
        scores: Number that a leaf adds, float32.
    """

    features: Array
    splits: Array
    classes: Array
    scores: Array


def build(g: GraphBuilder, *, trees: int, depth: int) -> None:
    """Add nodes that fill in missing values and scale features, then the trees, Softmax and ArgMax."""
    x = g.input("features", (_ROWS, _FEATURES), _measurements)
    random = g.random("forest")
    values = (5 * random.random(_FEATURES)).tolist()
    x = g.op("Imputer", x, domain=ML_DOMAIN, replaced_value_float=np.nan, imputed_value_floats=values)
    x = g.op("Scaler", x, domain=ML_DOMAIN, offset=[5.0] * _FEATURES, scale=[0.4] * _FEATURES)
    forest = _Forest(
        features=random.integers(0, _FEATURES, (trees, 2**depth - 1)),
        splits=random.standard_normal((trees, 2**depth - 1), np.float32),
        classes=random.integers(0, _CLASSES, (trees, 2**depth)),
        scores=random.standard_normal((trees, 2**depth), np.float32) / np.float32(trees**0.5),
    )
    if g.ml_opset is not None and g.ml_opset >= _TREE_ENSEMBLE:
        scores = g.op("TreeEnsemble", x, domain=ML_DOMAIN, **_as_ensemble(forest))
    else:
        scores = g.op("TreeEnsembleRegressor", x, domain=ML_DOMAIN, **_as_regressor(forest))
    label = g.op("ArgMax", scores, axis=1, keepdims=0)
    g.output("label", label, "int64", (_ROWS,))
    g.output("probabilities", g.op("Softmax", scores, axis=1), "float32", (_ROWS, _CLASSES))


def _measurements(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw float32 from 0 to 10, a tenth of them missing."""
    values = 10 * random.random(shape)
    values[random.random(shape) < 0.1] = np.nan  # noqa: PLR2004 - the share of the docstring
    return values.astype(np.float32)


def _as_regressor(forest: _Forest) -> dict[str, Any]:
    """Return all nodes of all trees in one list, leaves included."""
    trees, inner = forest.features.shape
    leaves = inner + 1
    nodes = np.arange(inner + leaves)
    leaf = nodes >= inner

    def per_node(of_inner: Array, of_leaf: float) -> Any:
        padded = np.full((trees, inner + leaves), of_leaf, of_inner.dtype)
        padded[:, :inner] = of_inner
        return padded.ravel().tolist()

    return {
        "n_targets": _CLASSES,
        "aggregate_function": "SUM",
        "post_transform": "NONE",
        "nodes_treeids": np.repeat(np.arange(trees), nodes.size).tolist(),
        "nodes_nodeids": np.tile(nodes, trees).tolist(),
        "nodes_featureids": per_node(forest.features, 0),
        "nodes_values": per_node(forest.splits, 0.0),
        "nodes_modes": np.tile(np.where(leaf, "LEAF", "BRANCH_LEQ"), trees).tolist(),
        "nodes_truenodeids": np.tile(np.where(leaf, 0, 2 * nodes + 1), trees).tolist(),
        "nodes_falsenodeids": np.tile(np.where(leaf, 0, 2 * nodes + 2), trees).tolist(),
        "target_treeids": np.repeat(np.arange(trees), leaves).tolist(),
        "target_nodeids": np.tile(nodes[leaf], trees).tolist(),
        "target_ids": forest.classes.ravel().tolist(),
        "target_weights": forest.scores.ravel().tolist(),
    }


def _as_ensemble(forest: _Forest) -> dict[str, Any]:
    """Return inner nodes and leaves in separate lists; children count from the start of a list."""
    import onnx

    trees, inner = forest.features.shape
    leaves = inner + 1
    nodes = np.arange(inner)
    to_leaf = 2 * nodes + 1 >= inner
    tree = np.arange(trees)[:, None]

    def children(offset: int) -> Any:
        local = 2 * nodes + offset
        return np.where(to_leaf, tree * leaves + local - inner, tree * inner + local).ravel().tolist()

    def tensor(name: str, values: Array) -> Any:
        return onnx.numpy_helper.from_array(values.ravel(), name)

    return {
        "n_targets": _CLASSES,
        "aggregate_function": 1,  # sum
        "post_transform": 0,  # none
        "tree_roots": (np.arange(trees) * inner).tolist(),
        "nodes_featureids": forest.features.ravel().tolist(),
        "nodes_splits": tensor("splits", forest.splits),
        "nodes_modes": tensor("modes", np.zeros(trees * inner, np.uint8)),  # at most the threshold
        "nodes_trueleafs": np.tile(to_leaf, trees).astype(int).tolist(),
        "nodes_falseleafs": np.tile(to_leaf, trees).astype(int).tolist(),
        "nodes_truenodeids": children(1),
        "nodes_falsenodeids": children(2),
        "leaf_targetids": forest.classes.ravel().tolist(),
        "leaf_weights": tensor("weights", forest.scores),
    }


TREES = Architecture(
    name="trees",
    what="tabular classifier of ai.onnx.ml: Imputer for missing values, Scaler, an ensemble of trees, ArgMax",
    build=build,
    sizes={"small": {"trees": 10, "depth": 4}, "base": {"trees": 200, "depth": 8}},
    ml_opsets=(3, _TREE_ENSEMBLE),
)
