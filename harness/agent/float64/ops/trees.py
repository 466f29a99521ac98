"""Ensembles of trees of ai.onnx.ml: thresholds and weights are the model's, sums are in float64."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from harness.agent.float64.ops.classic import transformed
from harness.agent.float64.versioned_node import AnyArray, VersionedNode
from harness.agent.target_errors import UnsupportedError

_TESTS: tuple[Any, ...] = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)
_NAMES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_LEAF, _MEMBER = -1, 6
_POSTS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_GATHERED = ("AVERAGE", "SUM", "MIN", "MAX")


class _Trees(NamedTuple):
    """All nodes of an ensemble; branches are indices of nodes.

    Attributes:
        features: Feature that a node tests.
        modes: Index of its test; ``_LEAF`` for a leaf.
        splits: Its threshold.
        yes: Next node if the test holds.
        no: Next node otherwise.
        tracks: Whether NaN counts as a test that holds.
        roots: First node of each tree.
        leaves: For each node pairs of a target and a weight.
    """

    features: AnyArray
    modes: AnyArray
    splits: AnyArray
    yes: AnyArray
    no: AnyArray
    tracks: AnyArray
    roots: list[int]
    leaves: dict[int, list[tuple[int, float]]]


def _numbers(node: VersionedNode, name: str) -> AnyArray:
    """Return numbers from a list or, in float64, a tensor."""
    if node.has(name + "_as_tensor"):
        from onnx import numpy_helper

        return numpy_helper.to_array(node.get(name + "_as_tensor")).astype(np.float64)
    return np.array(node.get(name) or [], np.float64)


def _texts(node: VersionedNode, name: str) -> list[str]:
    return [one.decode() if isinstance(one, bytes) else one for one in node.get(name) or []]


def _old_trees(node: VersionedNode, prefix: str) -> _Trees:
    """Return the trees of TreeEnsembleRegressor or TreeEnsembleClassifier."""
    trees, numbers = node.get("nodes_treeids"), node.get("nodes_nodeids")
    places = {key: index for index, key in enumerate(zip(trees, numbers))}
    modes = [_LEAF if one == "LEAF" else _NAMES.index(one) for one in _texts(node, "nodes_modes")]

    def behind(name: str) -> AnyArray:
        return np.array([places.get((tree, one), 0) for tree, one in zip(trees, node.get(name))])

    leaves: dict[int, list[tuple[int, float]]] = {}
    keys = zip(node.get(prefix + "_treeids"), node.get(prefix + "_nodeids"))
    for key, target, weight in zip(keys, node.get(prefix + "_ids"), _numbers(node, prefix + "_weights")):
        leaves.setdefault(places[key], []).append((int(target), float(weight)))
    firsts = {tree: index for index, tree in reversed(list(enumerate(trees)))}
    tracks = node.get("nodes_missing_value_tracks_true") or [0] * len(trees)
    return _Trees(
        np.array(node.get("nodes_featureids")),
        np.array(modes),
        _numbers(node, "nodes_values"),
        behind("nodes_truenodeids"),
        behind("nodes_falsenodeids"),
        np.array(tracks, bool),
        list(firsts.values()),
        leaves,
    )


def _new_trees(node: VersionedNode) -> _Trees:
    """Return the trees of TreeEnsemble; leaves follow inner nodes in the result."""
    from onnx import numpy_helper

    modes = numpy_helper.to_array(node.get("nodes_modes")).astype(np.int64)
    if (modes == _MEMBER).any():
        raise UnsupportedError("nothing computes TreeEnsemble with BRANCH_MEMBER in float64")
    count = len(modes)
    weights = numpy_helper.to_array(node.get("leaf_weights")).astype(np.float64)
    targets = node.get("leaf_targetids")
    total = count + len(weights)

    def all_of(values: Any, fill: Any = 0) -> AnyArray:
        return np.concatenate((np.asarray(values), np.full(total - count, fill)))

    def behind(name: str, leaf: str) -> AnyArray:
        return all_of(np.array(node.get(name)) + count * np.array(node.get(leaf)))

    tracks = node.get("nodes_missing_value_tracks_true") or [0] * count
    return _Trees(
        all_of(node.get("nodes_featureids")),
        all_of(modes, _LEAF),
        all_of(numpy_helper.to_array(node.get("nodes_splits")).astype(np.float64)),
        behind("nodes_truenodeids", "nodes_trueleafs"),
        behind("nodes_falsenodeids", "nodes_falseleafs"),
        all_of(tracks).astype(bool),
        list(node.get("tree_roots")),
        {count + at: [(int(targets[at]), float(weight))] for at, weight in enumerate(weights)},
    )


def _gathered(trees: _Trees, x: AnyArray, targets: int, how: str) -> AnyArray:
    """Return what the trees give for each row ``(N, targets)``."""
    parts = []
    rows = np.arange(len(x))
    for root in trees.roots:
        at = np.full(len(x), root)
        while (trees.modes[at] != _LEAF).any():
            value, modes = x[rows, trees.features[at]], trees.modes[at]
            holds = np.select(
                [modes == mode for mode in range(len(_TESTS))],
                [test(value, trees.splits[at]) for test in _TESTS],
            ).astype(bool)
            holds |= np.isnan(value) & trees.tracks[at]
            at = np.where(modes == _LEAF, at, np.where(holds, trees.yes[at], trees.no[at]))
        table = np.full((len(trees.modes), targets), np.nan if how in ("MIN", "MAX") else 0.0)
        for leaf in np.unique(at):
            for target, weight in trees.leaves.get(int(leaf), []):
                table[leaf, target] = np.nansum([table[leaf, target], weight])
        parts.append(table[at])
    whole = np.stack(parts)
    if how in ("MIN", "MAX"):
        return np.nan_to_num(np.nanmin(whole, 0) if how == "MIN" else np.nanmax(whole, 0))
    return whole.sum(0) / (len(parts) if how == "AVERAGE" else 1)


def _plain(post: str) -> None:
    if post != "NONE":
        raise UnsupportedError("implementations differ about post_transform %s of regressions" % post)


def tree_ensemble(node: VersionedNode, x: AnyArray) -> AnyArray:
    """TreeEnsemble."""
    how = _GATHERED[node.get("aggregate_function", 1)]
    _plain(_POSTS[node.get("post_transform", 0)])
    return _gathered(_new_trees(node), x.astype(np.float64), node.get("n_targets"), how)


def tree_ensemble_regressor(node: VersionedNode, x: AnyArray) -> AnyArray:
    """TreeEnsembleRegressor."""
    how, targets = node.get("aggregate_function", "SUM"), node.get("n_targets", 1)
    scores = _gathered(_old_trees(node, "target"), x.astype(np.float64), targets, how)
    base = _numbers(node, "base_values")
    _plain(node.get("post_transform", "NONE"))
    return scores + base if base.size else scores


def tree_ensemble_classifier(node: VersionedNode, x: AnyArray) -> Any:
    """TreeEnsembleClassifier, if each class has its own weights."""
    texts = _texts(node, "classlabels_strings")
    labels = np.array(texts, object) if texts else np.array(node.get("classlabels_int64s"), np.int64)
    if len(set(node.get("class_ids"))) < max(2, len(labels) - 1):
        raise UnsupportedError("no text defines TreeEnsembleClassifier with weights of one of two classes")
    scores = _gathered(_old_trees(node, "class"), x.astype(np.float64), len(labels), "SUM")
    base = _numbers(node, "base_values")
    scores = scores + base if base.size else scores
    return labels[scores.argmax(1)], transformed(scores, node.get("post_transform", "NONE"))
