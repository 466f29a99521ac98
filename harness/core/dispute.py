"""Judge a result whose golden is disputed by the answers that are left: expected data, and float64.

A disputed golden fails no EP, and it must not hide a faulty one. Pure: judged rows in, a finding out. Nothing
here depends on the tolerance of the run, except through the rows, so a record can be judged again.
"""

from collections.abc import Mapping
from collections.abc import Sequence as Seq
from typing import Literal

import msgspec

from harness.core.adjudicate import apart
from harness.core.judged import Judged
from harness.core.lost import relative_error
from harness.core.output_metrics import OutputMetrics
from harness.core.reference import EXPECTED, Adjudication
from harness.core.verdict import Verdict

MUCH_WORSE = 4.0
"""An error so many times as large as that of a disputed golden is a fault of the EP.

Healthy results are at most 1.8 times as far from float64 as their golden (see ``adjudicate.CLEARLY``). The
faulty DFT of the WebGPU EP, whose golden is disputed by a little, is 7 to 67 times as far off.
"""


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """What other answers find where the golden is disputed.

    Attributes:
        finding: Whether the EP is right or wrong.
        reason: One line for people, without the dispute.
    """

    finding: Literal["right", "wrong"]
    reason: str


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """One output against the expected data.

    Attributes:
        golden: The golden's.
        ep: The EP's.
    """

    golden: Judged
    ep: Judged


def settle(
    outputs: Seq[Judged],
    expected: Mapping[str, Held],
    adjudications: Seq[Adjudication],
    *,
    whole: bool,
    excused: float = 0.0,
) -> Settlement | None:
    """Judge a result without its golden; None where that stays open.

    The EP is wrong where its error in an output that fails against the golden is more than ``MUCH_WORSE``
    times the golden's: its distance from the expected data, if it fails against these as well, or from
    float64. It is right where each output agrees with the expected data. If expected data and float64
    contradict each other, the matter stays open.

    Args:
        outputs: The result against the golden.
        expected: Output -> how golden and result compare with the expected data; without outputs that have
            none, or in which golden and result are equal.
        adjudications: Distances from float64. A doubted one counts for nothing.
        whole: Whether the dispute is about every output; else it is about those that fail.
        excused: Relative error, as a norm, up to which values are not wrong whatever the golden's error is.
    """
    failed = [one.row for one in outputs if one.fault is not None]
    told = {row.output: row for row in adjudications if not row.doubt}
    about = [one.row for one in outputs] if whole else failed
    is_right = bool(about) and all(
        row.name in expected and expected[row.name].ep.fault is None for row in about
    )
    by_data = [held.ep.row for row in failed if (held := expected.get(row.name)) and _is_worse(held, excused)]
    by_float64 = [
        told[row.name] for row in failed if row.name in told and _is_further(told[row.name], row, excused)
    ]
    if is_right:
        return None if by_float64 else Settlement(finding="right", reason=f"right by {EXPECTED}")
    if by_data:
        if all(row.name in told and told[row.name].nearer == "ep" for row in failed):
            return None
        return Settlement(finding="wrong", reason=f"the EP differs from {EXPECTED}, {apart(by_data)}")
    if by_float64:
        worst = max(by_float64, key=lambda row: row.ep)
        errors = f"relative error {worst.ep:.2g} against {worst.golden:.2g}"
        where = f"output {worst.output!r} of the EP is further from {worst.by} than the golden is"
        return Settlement(finding="wrong", reason=f"{where}: {errors}")
    return None


def _is_worse(held: Held, excused: float) -> bool:
    """Whether the EP misses the expected data, and the golden does not, or by much less."""
    ep, golden = held.ep, held.golden
    if ep.fault in {None, Verdict.NO_GOLDEN} or _differs(ep.row):
        return _differs(ep.row)
    if _special(ep.row):
        return not (_special(golden.row) or _differs(golden.row))
    if (_relative(ep.row) or 0.0) <= excused and excused:
        return False
    return golden.fault is None or _is_much(ep.row, golden.row)


def _is_much(ep: OutputMetrics, golden: OutputMetrics) -> bool:
    """Whether finite values of the EP are off by much more than the golden's: the worst one, or all."""
    if _special(golden) or _differs(golden):
        return False
    errors = [(ep.max_abs, golden.max_abs), (_relative(ep), _relative(golden))]
    return any(
        of_ep is not None and of_golden is not None and of_ep > MUCH_WORSE * of_golden
        for of_ep, of_golden in errors
    )


def _is_further(told: Adjudication, row: OutputMetrics, excused: float) -> bool:
    """Whether the EP is much further from float64 than the golden is."""
    if row.details is not None and row.details.distribution:
        return False  # numbers drawn by lot are other ones each time
    is_special = _special(row) and told.nearer == "golden"
    return is_special or told.ep > max(excused, MUCH_WORSE * told.golden)


def _differs(row: OutputMetrics) -> bool:
    return row.details is not None and bool(row.details.differs)


def _special(row: OutputMetrics) -> bool:
    return row.details is not None and row.details.special > 0


def _relative(row: OutputMetrics) -> float | None:
    return None if row.delivered_bits is None else relative_error(row.delivered_bits)
