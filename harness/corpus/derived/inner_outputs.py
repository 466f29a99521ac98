"""A model with inner tensors as further outputs: their values decide how the other outputs are judged."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.derived.derived_models import MODEL_FILE, derive, digest_of
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.model.lean_model import LARGE, WEIGHTS_FILE
from harness.corpus.model.model_errors import blame
from harness.corpus.model.origins import ChosenFrom, Origins
from harness.corpus.model.port import ValueType
from harness.corpus.model.undefined import hidden_from

if TYPE_CHECKING:
    import onnx

_FORMAT = 3
"""Increase it when the written model changes although its source does not."""

_LARGEST = 512 << 20
"""Largest size in bytes of a model that is written again: it is held in memory several times."""


def hidden_tensors(case: Case) -> tuple[str, ...]:
    """Return the names of computed tensors by which positions were chosen and that are no outputs, sorted."""
    origins = judging_origins(case).known.values()
    chosen = {one.data for one in origins if isinstance(one, ChosenFrom) and one.computed}
    return tuple(sorted(chosen - set(case.outputs)))


def judging_origins(case: Case) -> Origins:
    """Return the origins of the outputs that judge a case: of a variant those of its reference."""
    return case.facts.origins if case.sibling is None else case.sibling.origins


def read_by_partials(case: Case) -> tuple[str, ...]:
    """Return the names of inner tensors that decide whether outputs are defined, sorted."""
    return hidden_from(case.facts.partials, [*case.outputs, *(port.name for port in case.ports)])


def revealed_case(case: Case, names: tuple[str, ...]) -> Case | Inapplicable:
    """Return the case with some of its tensors as further outputs; without expected outputs.

    Returns:
        Return ``Inapplicable`` if there are no names, and as ``rewritten``.

    Raises:
        ModelError: The model is broken or missing.
        UsageError: The cache cannot be written.
    """
    if not names:
        return Inapplicable("nothing inside the model decides how its outputs are judged")

    def change(model: "onnx.ModelProto") -> None:
        for name in names:
            model.graph.output.add().name = name  # onnxruntime infers its type

    made = rewritten(case, "revealed", digest_of("revealed", _FORMAT, case.digest, names), change)
    if isinstance(made, Inapplicable):
        return made
    return msgspec.structs.replace(
        made,
        outputs=(*case.outputs, *names),
        output_types=(*case.output_types, *(ValueType(kind="tensor") for _ in names)),
    )


def rewritten(
    case: Case, kind: str, digest: str, change: "Callable[[onnx.ModelProto], None]"
) -> Case | Inapplicable:
    """Return a case with another graph, without expected outputs; its model is written to the cache, once.

    ``kind`` is the folder of the cache, ``digest`` the name of the model there.

    Returns:
        Return ``Inapplicable`` if weights are in other files, or if the model is too large.

    Raises:
        ModelError: The model is broken or missing.
        UsageError: The cache cannot be written.
    """
    if case.external:
        return Inapplicable("the weights of the model are in other files")
    with blame(case.model_path):
        if case.model_path.stat().st_size > _LARGEST:
            return Inapplicable(f"the model takes more than {_LARGEST >> 20} MiB")
        stays = case.model_path.stat().st_size > LARGE

    def make(model: "onnx.ModelProto") -> dict[str, bytes]:
        change(model)
        return {MODEL_FILE: model.SerializeToString()}

    home = derive(case, kind, digest, make, with_file=stays)
    return msgspec.structs.replace(
        case,
        model_path=home / MODEL_FILE,
        external=(home / WEIGHTS_FILE,) if stays else (),
        data_sets=tuple(DataSet(name=one.name, inputs=one.inputs) for one in case.data_sets),
        digest=digest,
    )
