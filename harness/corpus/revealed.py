"""A model once more with tensors of its inside as further outputs: what tells how to judge the others."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.corpus.cache import cache_root, fill_once
from harness.corpus.case import Case
from harness.corpus.data_sets import DataSet
from harness.corpus.errors import blame
from harness.corpus.model_file import parse_model, read_model_file
from harness.corpus.origins import ChosenFrom
from harness.corpus.port import ValueType
from harness.corpus.scenario import Inapplicable
from harness.corpus.undefined import hidden_from

if TYPE_CHECKING:
    import onnx

FORMAT = 2
"""Rises when what is written changes although the model that it is made from does not."""

LARGEST = 512 << 20
"""Bytes of a model that is written again: it is held in memory several times."""

_MODEL = "model.onnx"


def hidden(case: Case) -> tuple[str, ...]:
    """Names of computed tensors that positions were chosen by and that are no outputs themselves, sorted."""
    origins = case.facts.origins.known.values()
    chosen = {one.data for one in origins if isinstance(one, ChosenFrom) and one.computed}
    return tuple(sorted(chosen - set(case.outputs)))


def read_by_partials(case: Case) -> tuple[str, ...]:
    """Names of tensors inside the model that decide whether its outputs are defined, sorted."""
    return hidden_from(case.facts.partials, [*case.outputs, *(port.name for port in case.ports)])


def revealed_case(case: Case, names: tuple[str, ...]) -> Case | Inapplicable:
    """The case with some of its tensors as further outputs; without expected outputs.

    The model is written into the cache, once.

    Returns:
        ``Inapplicable`` where there are no names, where weights lie in files beside the model, or where the
        model is larger than ``LARGEST``.

    Raises:
        ModelError: The model is broken or has gone.
        UsageError: The cache cannot be written.
    """
    if not names:
        return Inapplicable("nothing inside the model decides how its outputs are judged")
    if case.external:
        return Inapplicable("the weights of the model lie in other files")
    with blame(case.model_path):
        if case.model_path.stat().st_size > LARGEST:
            return Inapplicable(f"the model takes more than {LARGEST >> 20} MiB")
    digest = hashlib.sha256(f"revealed {FORMAT} {case.digest} {names}".encode()).hexdigest()
    path = cache_root() / "revealed" / digest / _MODEL
    if not path.is_file():
        with blame(case.model_path):
            model = parse_model(read_model_file(case.model_path))
            _reveal(model, names)
            content = model.SerializeToString()
        fill_once(path.parent, lambda folder: _write(content, folder))
    return msgspec.structs.replace(
        case,
        model_path=path,
        outputs=(*case.outputs, *names),
        output_types=(*case.output_types, *(ValueType(kind="tensor") for _ in names)),
        data_sets=tuple(DataSet(name=one.name, inputs=one.inputs) for one in case.data_sets),
        digest=digest,
    )


def _reveal(model: "onnx.ModelProto", names: tuple[str, ...]) -> None:
    for name in names:
        model.graph.output.add().name = name  # onnxruntime infers its type


def _write(content: bytes, folder: Path) -> None:
    (folder / _MODEL).write_bytes(content)
