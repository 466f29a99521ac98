"""A case in the form that a scenario needs: with other data, or with other files."""

import hashlib
from collections.abc import Mapping

import msgspec

from harness.core.ways import TextSettings
from harness.corpus.case import Case
from harness.corpus.data_sets import DataSet, hash_data_set
from harness.corpus.external_copy import SMALLEST, external_copy
from harness.corpus.generation import data_sets_of, generation_of
from harness.corpus.shapes import GIVEN, empty_batch, other_shapes


class Inapplicable(msgspec.Struct, frozen=True):
    """The scenario does not apply to this model, for any execution provider; ``reason`` says why."""

    reason: str


def scenario_case(
    case: Case, scenario: str, refused: Mapping[str, str] | None = None, text: TextSettings | None = None
) -> Case | Inapplicable:
    """Return a plain case in the form that a scenario needs.

    Data sets that the CPU provider ``refused`` (their names, with its messages) are left out. ``text`` is the
    text that the scenario ``generate`` plays; defaults are used without it.

    Raises:
        ModelError: The model cannot be rewritten, because it is broken or missing.
        UsageError: The cache cannot be written.
    """
    if scenario == "dynamic_shapes":
        return _dynamic(case, refused or {})
    if scenario == "zero_size":
        data_sets = empty_batch(case)
        why = Inapplicable("no input has a batch dimension that may vary")
        return _with_data(case, scenario, data_sets) if data_sets else why
    if scenario == "generate":
        text = text or TextSettings()
        generation = generation_of(case, text)
        if isinstance(generation, str):
            return Inapplicable(generation)
        return _with_data(case, scenario, data_sets_of(case, generation, text))
    if scenario == "external_data":
        copy = external_copy(case)
        return copy or Inapplicable(f"no weight of the model takes {SMALLEST} bytes or more")
    return case


def _dynamic(case: Case, refused: Mapping[str, str]) -> Case | Inapplicable:
    data_sets = other_shapes(case)
    if not data_sets:
        which = f" of {', '.join(case.vary)}" if case.vary else ""
        return Inapplicable(f"no input has a dimension{which} that may vary")
    left = tuple(one for one in data_sets if one.name not in refused)
    if all(data_set.name == GIVEN for data_set in left):
        why = "; ".join(refused.values())
        return Inapplicable(f"the CPU EP runs no other shape than the given one: {why}")
    return _with_data(case, "dynamic_shapes", left)


def _with_data(case: Case, scenario: str, data_sets: tuple[DataSet, ...]) -> Case:
    digest = hashlib.sha256(f"{scenario} {case.digest}".encode())
    for data_set in data_sets:
        hash_data_set(digest, data_set)
    return msgspec.structs.replace(case, data_sets=data_sets, digest=digest.hexdigest())
