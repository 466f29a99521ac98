"""Models once more at another precision, as converters have made them, in the cache.

Converting takes onnxruntime, and converters crash and hang: a process that may die does it, see
``harness.agent.precision``. Here lies what came of it, one folder for each model and precision.
"""

import functools
import hashlib
import importlib.metadata
import json
from pathlib import Path

import msgspec

from harness.core.errors import one_line
from harness.core.value import Tensor
from harness.corpus.cache import cache_root, fill_once, remove_entry
from harness.corpus.case import Case
from harness.corpus.data_sets import DataSet, hash_data_set
from harness.corpus.errors import ModelError, blame
from harness.corpus.facts import model_facts
from harness.corpus.model_file import parse_model
from harness.corpus.scenario import Inapplicable

FORMAT = 3
"""Rises when converters are used in another way."""

MODEL, ROUNDED, DIGESTS = "model.onnx", "rounded.onnx", "sha256.json"
REASON, FAILED = "does_not_apply.txt", "failed.txt"


def precision_entry(case: Case, precision: str) -> Path:
    """Where a model at a precision lies in the cache, or why there is none, once that is known.

    Args:
        case: The model as it came; its inputs count, for some converters calibrate on them.
        precision: A key of ``harness.core.precision.CONVERSIONS``.
    """
    return cache_root() / "precision" / precision / f"{case.digest}-{_converters()}"


def precision_case(case: Case, precision: str) -> Case | Inapplicable | None:
    """A case with its model at a precision.

    Returns:
        The same inputs for another model, without expected outputs; why there is no such model; or None
        where nobody has tried to make it, or what was made is damaged, which is removed.

    Raises:
        ModelError: It is damaged, and cannot be removed.
    """
    entry = precision_entry(case, precision)
    if (entry / REASON).is_file():
        return Inapplicable((entry / REASON).read_text(encoding="utf-8"))
    path = entry / MODEL
    if not entry.is_dir():
        return None
    if _is_intact(entry):
        return _with_model(case, path)
    if not remove_entry(entry):
        raise ModelError(path, "damaged, and in use by another process")
    return None


def rounded_case(case: Case) -> Case:
    """A case of ``precision_case`` as the CPU EP is to compute it: with every rounding, where it makes none.

    Raises:
        ModelError: What lies in the cache is damaged.
    """
    path = case.model_path.with_name(ROUNDED)
    return _with_model(case, path) if path.is_file() else case


def _is_intact(entry: Path) -> bool:
    """Whether a converted model is what was written; a power cut may leave zeros in its place."""
    try:
        digests = json.loads((entry / DIGESTS).read_bytes())
        return MODEL in digests and all(
            hashlib.sha256((entry / name).read_bytes()).hexdigest() == digest
            for name, digest in digests.items()
        )
    except (OSError, ValueError, TypeError, AttributeError):
        return False


def _with_model(case: Case, path: Path) -> Case:
    with blame(path):
        content = path.read_bytes()
        facts = model_facts(parse_model(content))
    digest = hashlib.sha256(b"precision " + content)
    data_sets = tuple(DataSet(name=one.name, inputs=one.inputs, expected=()) for one in case.data_sets)
    for data_set in data_sets:
        hash_data_set(digest, data_set)
    return msgspec.structs.replace(
        case, model_path=path, external=(), data_sets=data_sets, digest=digest.hexdigest(), facts=facts
    )


def keep_made(case: Case, precision: str, content: Tensor, rounded: Tensor | None = None) -> None:
    """Take a converted model.

    Args:
        case: The model as it came.
        precision: What it was converted to.
        content: The serialized model, uint8.
        rounded: What the CPU EP is to compute in its place; None where that is the same.

    Raises:
        UsageError: The cache cannot be written.
    """

    def build(folder: Path) -> None:
        contents = {MODEL: content} | ({ROUNDED: rounded} if rounded is not None else {})
        for name, tensor in contents.items():
            tensor.array.tofile(folder / name)
        digests = {name: hashlib.sha256(tensor.array.data).hexdigest() for name, tensor in contents.items()}
        _write(folder / DIGESTS, json.dumps(digests))

    fill_once(precision_entry(case, precision), build)


def keep_declined(case: Case, precision: str, reason: str) -> None:
    """Take why a model has no form at a precision, so that it is not tried in each run.

    Raises:
        UsageError: The cache cannot be written.
    """
    text = one_line(f"{precision} does not apply: {reason}")
    fill_once(precision_entry(case, precision), lambda folder: _write(folder / REASON, text))


def keep_failed(case: Case, precision: str, reason: str) -> None:
    """Take that a converter died or hung.

    Once may be the machine's fault. What has failed in an earlier run, too, is not tried again, until another
    release of a converter.

    Raises:
        UsageError: The cache cannot be written.
    """
    entry = precision_entry(case, precision)
    earlier = entry.with_name(f"{entry.name}-{FAILED.removesuffix('.txt')}")
    if earlier.is_dir():
        keep_declined(case, precision, f"{reason}, and failed in an earlier run, too")
    else:
        fill_once(earlier, lambda folder: _write(folder / FAILED, one_line(reason)))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


@functools.cache
def _converters() -> str:
    """What a converted model depends on besides the model: who converts it, as a part of a file's name."""
    from harness.corpus.runtime_version import onnxruntime_version

    versions = (onnxruntime_version(), *map(importlib.metadata.version, ("onnx", "onnx-ir")))
    return hashlib.sha256(repr((FORMAT, versions)).encode()).hexdigest()[:12]
