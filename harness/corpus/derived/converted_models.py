"""Models converted to another precision, in the cache.

Converters need onnxruntime, and they crash and hang. So they run in a process that may die; see
``harness.agent.precision``. Their results are kept here, one folder for each model and precision.
"""

import functools
import hashlib
import importlib.metadata
import json
from pathlib import Path

import msgspec

from harness.core.text.errors import one_line
from harness.core.values.value import Tensor
from harness.corpus.beside.data_sets import DataSet, hash_data_set
from harness.corpus.caches.cache import cache_root, fill_once, remove_entry
from harness.corpus.caches.runtime_version import onnxruntime_version
from harness.corpus.case import Case
from harness.corpus.derived.derived_facts import derived_facts
from harness.corpus.derived.derived_models import MODEL_FILE
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.model.model_errors import ModelError, blame

_FORMAT = 5
"""Increase it when converters are used in another way."""

_ROUNDED, _DIGESTS = "rounded.onnx", "sha256.json"
_REASON, _FAILED = "does_not_apply.txt", "failed.txt"


@functools.cache
def converters() -> str:
    """Return what a converted model also depends on: a digest of the converters' versions."""
    versions = (onnxruntime_version(), *map(importlib.metadata.version, ("onnx", "onnx-ir")))
    return hashlib.sha256(repr((_FORMAT, versions)).encode()).hexdigest()[:12]


def precision_entry(case: Case, precision: str) -> Path:
    """Return the folder of the cache with a converted model, or with the reason why there is none.

    The inputs of the original model are part of its key, because some converters calibrate on them.
    """
    return cache_root() / "precision" / precision / f"{case.digest}-{converters()}"


def precision_case(case: Case, precision: str) -> Case | Inapplicable | None:
    """Return a case with its model at a precision.

    Returns:
        It has the same inputs for the converted model, without expected outputs. If there is no such model,
        return the reason. Return None if it was not made yet, or was damaged and has been removed.

    Raises:
        ModelError: It is damaged, and cannot be removed.
    """
    entry = precision_entry(case, precision)
    if (entry / _REASON).is_file():
        return Inapplicable((entry / _REASON).read_text(encoding="utf-8"))
    if not entry.is_dir():
        return None
    if _is_intact(entry):
        return _with_model(case, entry / MODEL_FILE)
    if not remove_entry(entry):
        raise ModelError(entry / MODEL_FILE, "damaged, and in use by another process")
    return None


def rounded_case(case: Case) -> Case:
    """Return a case of ``precision_case`` for the CPU EP, with the roundings that the CPU EP leaves out.

    Raises:
        ModelError: The model in the cache is damaged.
    """
    path = case.model_path.with_name(_ROUNDED)
    return _with_model(case, path) if path.is_file() else case


def _is_intact(entry: Path) -> bool:
    """Return whether the files of a converted model are undamaged; a power loss may leave zeros."""
    try:
        digests = _digests(entry)
        return MODEL_FILE in digests and all(
            _digest_of(entry / name) == digest for name, digest in digests.items()
        )
    except (OSError, ValueError, TypeError, AttributeError):
        return False


def _digests(entry: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((entry / _DIGESTS).read_bytes())
    return found


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _with_model(case: Case, path: Path) -> Case:
    with blame(path):
        content_digest = _digests(path.parent)[path.name]
        # A conversion keeps the outputs and their task; its own nodes may hide the operators that compute
        # them.
        facts = msgspec.structs.replace(derived_facts(path, content_digest), heads=case.facts.heads)
    digest = hashlib.sha256(f"precision {content_digest}".encode())
    data_sets = tuple(DataSet(name=one.name, inputs=one.inputs) for one in case.data_sets)
    for data_set in data_sets:
        hash_data_set(digest, data_set)
    return msgspec.structs.replace(
        case, model_path=path, external=(), data_sets=data_sets, digest=digest.hexdigest(), facts=facts
    )


def keep_made(case: Case, precision: str, content: Tensor, rounded: Tensor | None = None) -> None:
    """Keep a converted model, serialized as uint8, and the model for the CPU EP if it differs.

    Raises:
        UsageError: The cache cannot be written.
    """

    def build(folder: Path) -> None:
        contents = {MODEL_FILE: content} | ({_ROUNDED: rounded} if rounded is not None else {})
        for name, tensor in contents.items():
            tensor.array.tofile(folder / name)
        digests = {name: hashlib.sha256(tensor.array.data).hexdigest() for name, tensor in contents.items()}
        _write(folder / _DIGESTS, json.dumps(digests))

    fill_once(precision_entry(case, precision), build)


def keep_declined(case: Case, precision: str, reason: str) -> None:
    """Keep the reason why a model cannot be converted, so that no later run tries again.

    Raises:
        UsageError: The cache cannot be written.
    """
    text = one_line(f"{precision} does not apply: {reason}")
    fill_once(precision_entry(case, precision), lambda folder: _write(folder / _REASON, text))


def keep_failed(case: Case, precision: str, reason: str) -> None:
    """Keep that a converter died or hung.

    The first failure may be the machine's fault. After a second failure, in a later run, the model is not
    converted again until a converter has a new release.

    Raises:
        UsageError: The cache cannot be written.
    """
    entry = precision_entry(case, precision)
    earlier = entry.with_name(f"{entry.name}-{_FAILED.removesuffix('.txt')}")
    if earlier.is_dir():
        keep_declined(case, precision, f"{reason}, and failed in an earlier run, too")
    else:
        fill_once(earlier, lambda folder: _write(folder / _FAILED, one_line(reason)))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
