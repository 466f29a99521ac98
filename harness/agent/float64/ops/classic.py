"""Linear models and scalers of ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.versioned_node import AnyArray, VersionedNode
from harness.agent.target_errors import UnsupportedError


def transformed(scores: AnyArray, post: str) -> AnyArray:
    """Return scores after ``post_transform``."""
    if post == "NONE":
        return scores
    if post == "LOGISTIC":
        return 1.0 / (1.0 + np.exp(-scores))
    if post == "SOFTMAX":
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)
    raise UnsupportedError("nothing computes post_transform %s in float64" % post)


def scaler(node: VersionedNode, x: AnyArray) -> AnyArray:
    """Scaler."""
    return (x.astype(np.float64) - np.array(node.get("offset", [0.0]))) * np.array(node.get("scale", [1.0]))


def normalizer(node: VersionedNode, x: AnyArray) -> AnyArray:
    """Normalizer: a row of zeros stays so."""
    rows = x.astype(np.float64).reshape(x.shape if x.ndim > 1 else (1, -1))
    name = node.get("norm", "MAX")
    if name == "MAX":
        raise UnsupportedError("implementations differ about Normalizer of MAX for negative numbers")
    norm = {
        "L1": lambda: np.abs(rows).sum(1, keepdims=True),
        "L2": lambda: np.sqrt((rows**2).sum(1, keepdims=True)),
    }
    found = norm[name]()
    return np.where(found == 0, rows, rows / np.where(found == 0, 1.0, found)).reshape(x.shape)


def linear_regressor(node: VersionedNode, x: AnyArray) -> AnyArray:
    """LinearRegressor."""
    targets = node.get("targets", 1)
    rows = x.astype(np.float64).reshape(x.shape if x.ndim > 1 else (1, -1))
    scores = rows @ np.array(node.get("coefficients")).reshape(targets, -1).T
    bias = node.get("intercepts")
    return transformed(scores if not bias else scores + np.array(bias), node.get("post_transform", "NONE"))


def linear_classifier(node: VersionedNode, x: AnyArray) -> Any:
    """LinearClassifier of several classes, each with its own coefficients."""
    texts, numbers = node.get("classlabels_strings"), node.get("classlabels_ints")
    labels = np.array([one.decode() for one in texts], object) if texts else np.array(numbers, np.int64)
    bias = node.get("intercepts")
    rows = x.astype(np.float64).reshape(x.shape if x.ndim > 1 else (1, -1))
    coefficients = np.array(node.get("coefficients")).reshape(-1, rows.shape[1])
    if len(coefficients) != len(labels):
        raise UnsupportedError("nothing computes LinearClassifier with one row for two classes in float64")
    scores = rows @ coefficients.T + (0.0 if not bias else np.array(bias))
    return labels[scores.argmax(1)], transformed(scores, node.get("post_transform", "NONE"))


def zip_map(node: VersionedNode, x: AnyArray) -> Any:
    """ZipMap."""
    texts, numbers = node.get("classlabels_strings"), node.get("classlabels_int64s")
    keys = [one.decode() for one in texts] if texts else numbers
    rows = x.reshape(x.shape if x.ndim > 1 else (1, -1))
    return [dict(zip(keys, row)) for row in rows]
