"""Whether float64 confirms that values are wrong."""

import pytest

from harness.core.confirmed import why_unconfirmed
from harness.core.output_metrics import OutputMetrics
from harness.core.reference import Adjudication, ReferenceCheck

ROWS = (
    OutputMetrics(name="y", dtype="float32", shape=(2,), mismatched=1, elements=2),
    OutputMetrics(name="z", dtype="float32", shape=(2,), elements=2),
)
NEARER = {"golden": (1e-8, 0.1), "equal": (0.1, 0.12), "ep": (0.1, 1e-8)}


def row(nearer: str, output: str = "y", doubt: str = "") -> Adjudication:
    golden, ep = NEARER[nearer]
    return Adjudication(
        output=output,
        by="float64, node by node",
        golden=golden,
        ep=ep,
        nearer=nearer,  # type: ignore[arg-type]
        doubt=doubt,
    )


@pytest.mark.parametrize(
    ("rows", "check", "says"),
    [
        ((row("golden"),), ReferenceCheck(), ""),
        ((row("golden"), row("ep")), ReferenceCheck(), ""),
        (
            (row("equal"),),
            ReferenceCheck(),
            "float64 does not confirm it: relative error 0.12 of the EP, 0.1 of",
        ),
        ((row("ep"),), ReferenceCheck(), "float64 does not confirm it"),
        ((row("golden", output="z"),), ReferenceCheck(no_float64="no kernel"), "could not be had: no kernel"),
        (
            (row("golden", doubt="wrong"),),
            ReferenceCheck(no_float64="no kernel"),
            "could not be had: no kernel",
        ),
        ((), None, "float64 could not be had: no reference was asked"),
        ((), ReferenceCheck(), ""),  # whole numbers, which have one right value
    ],
)
def test_only_a_golden_that_is_nearer_confirms_a_fault(
    rows: tuple[Adjudication, ...], check: ReferenceCheck | None, says: str
) -> None:
    found = why_unconfirmed(ROWS, rows, check)
    assert (says in found) if says else found == ""
