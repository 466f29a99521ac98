"""Decide every verdict again, from the metrics of its record and the rules of the profile."""

from collections.abc import Iterator

from harness.annex.conformance.level import case_label
from harness.annex.conformance.profiles.profile import ProfileCase, ProfileRules
from harness.annex.conformance.profiles.profile_suite import policy_of_case
from harness.annex.conformance.verify.finding import Finding, finding
from harness.core.comparison.output_metrics import Noise, OutputMetrics
from harness.core.records.record import Record
from harness.core.verdicts.decide import verdict_of
from harness.core.verdicts.judgement import is_rounded

_GOLDEN = "profile"
"""The source of the golden in records of a profile."""

_BY_DEFAULT = "float32"
"""The precision in records of cells that did not run."""


def verdict_findings(record: Record, case: ProfileCase, rules: ProfileRules) -> Iterator[Finding]:
    """Yield a verdict that does not follow from its record, and facts that would excuse a wrong answer."""
    where = case_label(case)
    excuses = [*_excuses(record, case)]
    yield from (finding("excuse", where, what) for what in excuses)
    if record.family is not record.verdict.family:
        yield finding("verdict", where, f"{record.verdict} is not of the family {record.family}")
    if excuses:
        return
    decided = verdict_of(record, policy_of_case(rules, case))
    if decided is not record.verdict:
        yield finding("verdict", where, f"the record has {record.verdict}, its metrics give {decided}")


def _excuses(record: Record, case: ProfileCase) -> Iterator[str]:
    """Yield facts by which a wrong answer could pass. A golden of a profile is beyond dispute."""
    # A case that ended early was judged at no precision, and its record has the default.
    if record.ended is None and record.precision != case.precision:
        yield f"judged at {record.precision}, where the profile has {case.precision}"
    if record.ended is not None and record.precision not in (_BY_DEFAULT, case.precision):
        yield f"{record.precision} of a case that ended early"
    if record.ended is None and record.golden != _GOLDEN:
        yield f"compared with the golden {record.golden or 'of nobody'!r}, not with that of the profile"
    if record.converted:
        yield "the model was converted to another precision"
    if record.delivers:
        yield f"judged as computed in {', '.join(record.delivers)}, which no profile grants"
    disputed = record.dispute or record.reference_check is not None or record.adjudication
    if disputed or record.undefined or record.drawn:
        yield "the golden is disputed or undefined, which no golden of a profile is"
    if record.weak_golden or record.no_golden or record.no_spread:
        yield "the golden or its noise is missing or weak, which none of a profile is"
    for row in (*record.outputs, *record.again, *record.other):
        if why := _row_excuse(row, case):
            yield f"output {row.name}: {why}"


def _row_excuse(row: OutputMetrics, case: ProfileCase) -> str:
    details = row.details
    if row.precision_error is not None:
        return "compared as the output of a converted model"
    if row.noise is not None and (why := _noise_excuse(row.noise, row, case)):
        return why
    if details is None:
        return ""
    if details.distribution or details.own:
        return "judged as random numbers, or by the CPU EP's own answer"
    if details.undefined:
        return "elements left out as undefined"
    return "excused by ties" if details.ties or details.ties_of or details.tie_frontier else ""


def _noise_excuse(noise: Noise, row: OutputMetrics, case: ProfileCase) -> str:
    if noise.precision != case.precision:
        return f"noise of {noise.precision}, where the profile has {case.precision}"
    if noise.wider or noise.delivers or noise.document:
        return "noise of another computation, which no profile allows"
    if noise.unmoved is not None and is_rounded(row):
        return "elements that noise moves, of an output that is rounded"
    return ""
