"""A text classifier of ai.onnx.ml, from words to a label and its probabilities."""

from functools import partial
from typing import Any

import numpy as np

from harness.annex.made.zoo.graph_builder import BATCH_DIM, ML_DOMAIN, Architecture, GraphBuilder, SymbolicDim
from harness.annex.made.zoo.layers import reduce
from harness.core.values.value import Array

_WORDS = SymbolicDim("words", 12)

_LABELS = ("complaint", "order", "praise", "question")

_LABEL_TENSORS = 4
"""The version of ai.onnx.ml in which LabelEncoder takes tensors as attributes."""

_EMBEDDING = 16


def build(g: GraphBuilder, *, vocabulary: int, bigrams: int) -> None:
    """Add embeddings of words, and counts of words and pairs; a linear classifier takes both."""
    known = [f"word{index}" for index in range(vocabulary)]
    words = g.input("words", (BATCH_DIM, _WORDS), partial(_text, known))
    with g.scope("embedding"):
        ids = g.op("LabelEncoder", words, domain=ML_DOMAIN, **_encoder(g, known))
        x = g.op("Gather", g.normal("table", (vocabulary + 1, _EMBEDDING), 1.0), ids)
        x = reduce(g, "ReduceMax", x, (1,), keepdims=0)
    with g.scope("counts"):
        counts = g.op("TfIdfVectorizer", words, **_grams(known, bigrams, g.random("weights")))
    features = _EMBEDDING + vocabulary + bigrams
    label, scores = g.ops(
        2,
        "LinearClassifier",
        g.op("Concat", x, counts, axis=1),
        domain=ML_DOMAIN,
        coefficients=(g.random("coefficients").standard_normal(len(_LABELS) * features) * 0.3).tolist(),
        intercepts=(g.random("intercepts").standard_normal(len(_LABELS)) * 0.1).tolist(),
        classlabels_strings=list(_LABELS),
        post_transform="SOFTMAX",
    )
    named = g.op("ZipMap", scores, domain=ML_DOMAIN, classlabels_strings=list(_LABELS))
    g.output("label", label, "object", (BATCH_DIM,))
    g.output("scores", scores, "float32", (BATCH_DIM, len(_LABELS)))
    g.output_maps("probabilities", named)


def _text(known: list[str], random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw known words, half of them followed by the next of the vocabulary, and some unknown ones."""
    ids = random.integers(0, len(known), shape)
    for place in range(1, shape[1]):
        follows = random.random(shape[0]) < 0.5  # noqa: PLR2004 - the half of the docstring
        ids[:, place] = np.where(follows, (ids[:, place - 1] + 1) % len(known), ids[:, place])
    words = np.array(known, object)[ids]
    strange = np.array(["unbekannt", "größe", "🙂", ""], object)[random.integers(0, 4, shape)]
    return np.where(random.random(shape) < 0.2, strange, words)  # noqa: PLR2004 - a fifth


def _encoder(g: GraphBuilder, known: list[str]) -> dict[str, Any]:
    """Return indices from 1; unknown words are 0."""
    import onnx

    if g.ml_opset is not None and g.ml_opset >= _LABEL_TENSORS:
        values = np.arange(1, len(known) + 1, dtype=np.int64)
        return {
            "keys_tensor": onnx.numpy_helper.from_array(np.array(known, object), "keys"),
            "values_tensor": onnx.numpy_helper.from_array(values, "values"),
            "default_tensor": onnx.numpy_helper.from_array(np.array([0], np.int64), "default"),
        }
    return {"keys_strings": known, "values_int64s": list(range(1, len(known) + 1)), "default_int64": 0}


def _grams(known: list[str], bigrams: int, random: np.random.Generator) -> dict[str, Any]:
    """Return every known word, and pairs of neighbours in the vocabulary, with weights."""
    pairs = [word for index in range(bigrams) for word in known[index : index + 2]]
    count = len(known) + bigrams
    return {
        "mode": "TFIDF",
        "min_gram_length": 1,
        "max_gram_length": 2,
        "max_skip_count": 0,
        "ngram_counts": [0, len(known)],
        "ngram_indexes": list(range(count)),
        "pool_strings": [*known, *pairs],
        "weights": (0.5 + random.random(count)).tolist(),
    }


TEXT = Architecture(
    name="text",
    what="text classifier of ai.onnx.ml on strings: LabelEncoder, TfIdfVectorizer, LinearClassifier, ZipMap",
    build=build,
    sizes={"small": {"vocabulary": 40, "bigrams": 20}, "base": {"vocabulary": 4000, "bigrams": 2000}},
    ml_opsets=(3, _LABEL_TENSORS),
)
