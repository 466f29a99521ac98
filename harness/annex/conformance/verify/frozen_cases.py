"""The frozen facts of a profile's cases: models, goldens and noise, as the engine reads them."""

from pathlib import Path

import msgspec
import numpy as np

from harness.annex.conformance.profiles.profile import Profile
from harness.annex.conformance.profiles.profile_suite import profile_suite
from harness.core.comparison.metrics import widen
from harness.core.comparison.output_kind import OutputKind, Quantized
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.policy_terms import PolicyTerm, policy_terms
from harness.core.values.value import STRING, Floats, Tensor, Value, leaves
from harness.core.values.value_digest import short_digest
from harness.corpus.case import Case
from harness.corpus.load_case import load_case
from harness.engine.answers.compare_sets import by_name, compare_sets, flat
from harness.engine.measuring.cell_record import model_content
from harness.engine.measuring.output_kinds import output_kinds_of


class FrozenLeaf(msgspec.Struct, frozen=True, kw_only=True):
    """One output, or one leaf of a sequence or map.

    Attributes:
        right: The row of an answer that equals the golden.
        golden: Magnitudes of its finite elements, flat; None for strings, complex numbers and containers.
        spread: The noise of these elements; None if it has none.
        steps: Smallest and largest distance of two neighbouring values; None if it is not quantized.
    """

    right: OutputMetrics
    golden: Floats | None = None
    spread: Floats | None = None
    steps: tuple[float, float] | None = None


class FrozenCase(msgspec.Struct, frozen=True, kw_only=True):
    """The frozen facts of a case.

    Attributes:
        digest: Its ``Record.model_digest``.
        shape_only: Operators of the model that compute shapes only.
        ops: Operator type -> nodes, in the counting of a record.
        opsets: Domain -> version, and ``types`` and ``ranks`` of its inputs, as in a record.
        golden: Its ``Record.golden_digest``.
        terms: Its ``Record.policy``.
        leaves: By the name of their row.
        first: Names of the leaves of the first data set, which further runs repeat.
    """

    digest: str
    shape_only: frozenset[str]
    ops: dict[str, int]
    opsets: dict[str, int]
    types: tuple[str, ...]
    ranks: tuple[int, ...]
    golden: str
    terms: dict[str, PolicyTerm]
    leaves: dict[str, FrozenLeaf]
    first: frozenset[str]


def frozen_cases(profile: Profile, archive: Path) -> dict[str, FrozenCase]:
    """Return the frozen facts of each model of a profile, by name.

    Raises:
        UsageError: The archive is not that of the profile, or cannot be read.
        ModelError: A model or value of the archive cannot be read.
    """
    suite = profile_suite(profile, archive)
    names = sorted({case.name for case in profile.cases})
    return {name: frozen_case(load_case(suite, name, {})) for name in names}


def frozen_case(case: Case) -> FrozenCase:
    """Return the frozen facts of a case of a profile."""
    assert case.frozen is not None  # noqa: S101 - suites of profiles have no others
    answers = tuple(data_set.expected for data_set in case.data_sets)
    rule = case.frozen.policy.tolerance_for
    kinds = by_name(output_kinds_of(case, answers))
    spreads = by_name(case.frozen.noise.outputs)
    values = {leaf: part for name, value in flat(answers) for leaf, part in leaves(name, value)}
    known = {
        row.name: frozen_leaf(row, values.get(row.name), spreads.get(row.name), kinds.get(row.name))
        for row in compare_sets(answers, answers, rule).outputs
    }
    content = model_content(case)
    return FrozenCase(
        digest=case.model_digest,
        shape_only=case.facts.shape_only_ops,
        ops=dict(content.ops),
        opsets=dict(content.opsets),
        types=content.types,
        ranks=content.ranks,
        golden=short_digest(answers),
        terms=policy_terms(case.frozen.policy),
        leaves=known,
        first=frozenset(row.name for row in compare_sets(answers[:1], answers[:1], rule).outputs),
    )


def frozen_leaf(
    row: OutputMetrics, value: Value, spread: Floats | None = None, output_kind: OutputKind | None = None
) -> FrozenLeaf:
    """Return the frozen facts of one leaf, from the row of its golden compared with itself."""
    if not isinstance(value, Tensor) or value.dtype == STRING or value.dtype.startswith("complex"):
        return FrozenLeaf(right=row)
    numbers = widen(value.array.reshape(-1), value.dtype)
    finite = np.isfinite(numbers)
    steps = None
    if isinstance(output_kind, Quantized):
        scale = np.abs(output_kind.scale)
        steps = (float(scale.min()), float(scale.max()))
    return FrozenLeaf(
        right=row,
        golden=np.abs(numbers[finite]),
        spread=None if spread is None else spread.reshape(-1)[finite],
        steps=steps,
    )
