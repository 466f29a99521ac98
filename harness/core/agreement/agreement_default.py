"""Default tasks of an output: chosen from the operator that computes it, its shape, values and name."""

import re

import numpy as np

from harness.core.agreement.box_matching import are_boxes, are_rows, roles_of
from harness.core.values.value import Array, Tensor

CLASSES = 300_000
"""Largest number of classes. The largest vocabularies have some 262,000 tokens (Gemma 3)."""

_TOP5_FROM = 6
"""Number of classes from which on a top 5 excludes some."""

_SUM_WITHIN = 0.02
"""How far sums of probabilities may be from 1, in float16 and bfloat16 too."""

_SCORES = re.compile(r"logit|score|prob|class|softmax|cls|pred|label|mask|seg", re.IGNORECASE)
_NO_SCORES = re.compile(
    r"embed|hidden|feature|pool|state|latent|encod|represent|vector|box|coord|landmark|point|regress|depth"
    r"|present|past|cache|key|value|offset|delta|noise|image|pose",
    re.IGNORECASE,
)
_SURE = re.compile(r"logit|prob|softmax", re.IGNORECASE)
"""If a name contains both words, such as ``pooled_logits``, this one decides."""

_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
_BOXES = re.compile("box|detection|dets", re.IGNORECASE)
_OF_ROWS, _OF_STEPS, _OF_PIXELS = 2, 3, 4


def default_tasks(name: str, head: str, golden: Tensor) -> tuple[str, ...]:
    """Return the tasks of an output of a network; none where its numbers have no known meaning.

    ``head`` is the operator that computes the output; see ``harness.corpus.model.heads``. Axes are those of
    the golden.
    """
    array = golden.array
    if golden.dtype not in _FLOATS or not array.size or not _OF_ROWS <= array.ndim <= _OF_PIXELS:
        return ()
    if head == "sigmoid":
        return () if array.ndim > _OF_ROWS and not _SCORES.search(name) else ("threshold",)
    at = 1 if array.ndim == _OF_PIXELS else -1
    classes = array.shape[at]
    if not 1 < classes <= CLASSES or not _are_scores(name, head, array, at):
        return ()
    if array.ndim > _OF_ROWS:
        return ("argmax:1",) if at == 1 else ("argmax",)
    return ("top1", "top5") if classes >= _TOP5_FROM else ("top1",)


def _are_scores(name: str, head: str, array: Array, axis: int) -> bool:
    """Return whether numbers look like scores of classes along an axis."""
    if not head or (_NO_SCORES.search(name) and not _SURE.search(name)):
        return False
    if head in {"softmax", "log_softmax"}:
        return _sums_to_one(array, axis, is_log=head == "log_softmax")
    return (array.ndim == _OF_ROWS or _SCORES.search(name) is not None) and not _is_unit(array)


def default_boxes(goldens: dict[str, Tensor]) -> str:
    """Return the output that has boxes with scores, in it or in another output; empty if none does."""
    for name, one in goldens.items():
        if not _BOXES.search(name) or one.dtype not in _FLOATS:
            continue
        others = {other: value for other, value in goldens.items() if other != name}
        if are_rows(one) or (are_boxes(one) and roles_of(one, others).scores):
            return name
    return ""


@np.errstate(all="ignore")
def _sums_to_one(array: Array, axis: int, *, is_log: bool) -> bool:
    numbers = array.astype(np.float64)
    sums = (np.exp(numbers) if is_log else numbers).sum(axis)
    known = sums[np.isfinite(sums)]
    return bool(known.size and (np.abs(known - 1) <= _SUM_WITHIN).all())


@np.errstate(all="ignore")
def _is_unit(array: Array) -> bool:
    """Return whether every row has length 1, as embeddings have."""
    lengths = np.square(array.astype(np.float64)).sum(-1)
    known = lengths[np.isfinite(lengths)]
    return bool(known.size and (np.abs(known - 1) <= _SUM_WITHIN).all())
