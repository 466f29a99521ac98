"""Whether float64 confirms that an EP's values are wrong: without it nobody says who of the two is."""

from collections.abc import Iterable

from harness.core.output_metrics import OutputMetrics
from harness.core.reference import Adjudication, ReferenceCheck

NOT_ASKED = "no reference was asked"


def why_unconfirmed(
    outputs: Iterable[OutputMetrics], adjudication: Iterable[Adjudication], check: ReferenceCheck | None
) -> str:
    """Return why float64 does not confirm that wrong values are the EP's fault; empty where it does.

    It does if the golden is clearly nearer to it in an output that fails. A model without floats needs no
    float64: only one answer is right.

    Args:
        outputs: The result against the golden, as judged.
        adjudication: Of the outputs that failed.
        check: What references show; None if none was asked.
    """
    failed = {row.name for row in outputs if row.mismatched or row.differs}
    rows = [row for row in adjudication if row.output in failed and not row.doubt]
    if any(row.nearer == "golden" for row in rows):
        return ""
    if rows:
        worst = max(rows, key=lambda row: row.ep)
        return (
            f"float64 does not confirm it: relative error {worst.ep:.2g} of the EP,"
            f" {worst.golden:.2g} of the golden"
        )
    if check is None:
        return f"float64 could not be had: {NOT_ASKED}"
    return f"float64 could not be had: {check.no_float64}" if check.no_float64 else ""
