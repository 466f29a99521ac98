"""The limits of a bundle whose data sets are those of a scenario."""

from harness.annex.triage.played_sets import limits_of_sets
from harness.core.comparison.output_metrics import OutputMetrics


def row(name: str, mismatched: int, bits: float | None) -> OutputMetrics:
    """What a record has about an output that is off by 2 to the power of minus ``bits``."""
    return OutputMetrics(
        name=name,
        dtype="float32",
        shape=(3,),
        max_abs=1.0,
        max_rel=1.0,
        rmse=1.0,
        delivered_bits=bits,
        mismatched=mismatched,
        elements=3,
        rtol=0.0,
        atol=0.0,
        headroom=1.0,
    )


def test_the_smallest_error_of_an_output_in_any_data_set_limits_it() -> None:
    rows = (row("y", 0, None), row("1/y", 2, 1), row("2/y", 2, 2), row("1/part/z", 1, 0), row("w/1", 1, 3))
    assert dict(limits_of_sets(rows, 0.5)) == {"y": 0.125, "part/z": 0.5, "w/1": 0.0625}
