"""A case in the form that a scenario needs: with other data, or with other files."""

import hashlib
from collections.abc import Callable, Mapping

import msgspec

from harness.core.records.scenario import PACKAGE_SCENARIO, SHAPED
from harness.core.records.ways import TextSettings
from harness.core.values.value import Tensor
from harness.corpus.beside.data_sets import DataSet, hash_data_set
from harness.corpus.case import Case
from harness.corpus.decoders.generation_case import data_sets_of, generation_of
from harness.corpus.derived.composed_model import chained_case
from harness.corpus.derived.external_copy import SMALLEST, external_copy
from harness.corpus.derived.looped_copy import looped_copy
from harness.corpus.derived.lora_copy import lora_copy
from harness.corpus.derived.shapes import GIVEN, Grid, batch_slots, empty_batch, other_shapes
from harness.corpus.derived.symbolic_sizes import fixed_sizes

MOST_WEIGHTS = 1 << 30
"""Bytes of weights up to which the scenario ``initializers`` holds several copies of them in memory."""


class Inapplicable(msgspec.Struct, frozen=True):
    """The scenario does not apply to this model, for any execution provider; ``reason`` says why."""

    reason: str


def scenario_case(
    case: Case,
    scenario: str,
    refused: Mapping[str, str] | None = None,
    text: TextSettings | None = None,
    grid: Grid | None = None,
) -> Case | Inapplicable:
    """Return a plain case in the form that a scenario needs.

    Data sets that the CPU provider ``refused`` (their names, with its messages) are left out. ``text`` is the
    text that the scenario ``generate`` plays; defaults are used without it. ``grid`` has the sizes of the
    scenario ``dynamic_shapes``; without it each symbol varies alone.

    Raises:
        ModelError: The model cannot be rewritten, because it is broken or missing.
        UsageError: The cache cannot be written.
    """
    if scenario == SHAPED:
        return _dynamic(case, refused or {}, grid or {})
    if scenario == "batch_slots":
        return _slots(case, refused or {})
    if scenario == "generate":
        return _generating(case, text or TextSettings())
    own = _OWN_CASES.get(scenario)
    return case if own is None else own(case)


def _empty_batch(case: Case) -> Case | Inapplicable:
    data_sets = empty_batch(case)
    why = Inapplicable("no input has a batch dimension that may vary")
    return _with_data(case, "zero_size", data_sets) if data_sets else why


def _generating(case: Case, text: TextSettings) -> Case | Inapplicable:
    whole = chained_case(case)
    if isinstance(whole, str):
        return Inapplicable(whole)
    generation = generation_of(whole, text)
    if isinstance(generation, str):
        return Inapplicable(generation)
    return _with_data(whole, "generate", data_sets_of(whole, generation, text))


def _slots(case: Case, refused: Mapping[str, str]) -> Case | Inapplicable:
    data_sets = batch_slots(case)
    if not data_sets:
        return Inapplicable("no input has a batch")
    left = tuple(one for one in data_sets if one.name not in refused)
    if all(data_set.name == GIVEN for data_set in left):
        why = "; ".join(refused.values())
        return Inapplicable(f"the CPU EP runs no other batch than the given one: {why}")
    return _with_data(case, "batch_slots", left)


def _with_external_data(case: Case) -> Case | Inapplicable:
    return external_copy(case) or Inapplicable(f"no weight of the model takes {SMALLEST} bytes or more")


def _in_loop(case: Case) -> Case | Inapplicable:
    made = looped_copy(case)
    return Inapplicable(made) if isinstance(made, str) else made


def _with_adapters(case: Case) -> Case | Inapplicable:
    return lora_copy(case) or Inapplicable(
        "it has fewer than two products (MatMul) with a matrix of float32 weights inside the model"
    )


def _with_weights_in_memory(case: Case) -> Case | Inapplicable:
    copy = _with_external_data(case)
    if isinstance(copy, Case) and sum(path.stat().st_size for path in copy.external) > MOST_WEIGHTS:
        return Inapplicable(f"its weights take more than {MOST_WEIGHTS >> 20} MiB")
    return copy


def _of_package(case: Case) -> Case | Inapplicable:
    return case if case.package is not None else Inapplicable("it is no component of a model package")


def _with_several_outputs(case: Case) -> Case | Inapplicable:
    return case if len(case.outputs) > 1 else Inapplicable("the model has a single output")


def _with_sizes(case: Case) -> Case | Inapplicable:
    """Return a case whose sessions know the sizes of its data before they are made."""
    sizes = {} if case.fixed else fixed_sizes(case, as_given=True)
    if not sizes:
        return Inapplicable("no input has a symbolic dimension that is free")
    shapes = {
        tuple(value.array.shape if isinstance(value, Tensor) else () for _, value in data_set.inputs)
        for data_set in case.data_sets
    }
    if len(shapes) > 1:
        return Inapplicable("its data sets have several sizes, and a session has one")
    return msgspec.structs.replace(case, fixed=sizes)


def _dynamic(case: Case, refused: Mapping[str, str], grid: Grid) -> Case | Inapplicable:
    data_sets = other_shapes(case, grid)
    if not data_sets and grid:
        return Inapplicable(f"no input has a dimension of the grid that may vary: {', '.join(grid)}")
    if not data_sets:
        which = f" of {', '.join(case.vary)}" if case.vary else ""
        return Inapplicable(f"no input has a dimension{which} that may vary")
    left = tuple(one for one in data_sets if one.name not in refused)
    if all(data_set.name == GIVEN for data_set in left):
        why = "; ".join(refused.values())
        return Inapplicable(f"the CPU EP runs no other shape than the given one: {why}")
    return _with_data(case, SHAPED, left)


def _with_data(case: Case, scenario: str, data_sets: tuple[DataSet, ...]) -> Case:
    digest = hashlib.sha256(f"{scenario} {case.digest}".encode())
    for data_set in data_sets:
        hash_data_set(digest, data_set)
    return msgspec.structs.replace(case, data_sets=data_sets, digest=digest.hexdigest())


_OWN_CASES: dict[str, Callable[[Case], Case | Inapplicable]] = {
    "external_data": _with_external_data,
    PACKAGE_SCENARIO: _of_package,
    "free_dimensions": _with_sizes,
    "terminate": _in_loop,
    "initializers": _with_weights_in_memory,
    "separate_outputs": _with_several_outputs,
    "adapters": _with_adapters,
    "zero_size": _empty_batch,
}
