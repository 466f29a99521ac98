"""Options outside the catalogue that change no bit of any answer."""

from collections.abc import Iterator

import msgspec

from harness.catalog.option_points import OptionPoints
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.core.timing.latency import TimedRuns, latency_of
from tests.kit import bare_record, placement_of, told_latency

VENDOR = "VendorExecutionProvider"


def record(model: str, value: str, rmse: float, *, provider: str = VENDOR, op: str = "MatMul") -> Record:
    verdict = Verdict.PASS
    return bare_record(
        model,
        verdict,
        cell=f"s/{model}[npu,option.math={value}]",
        target="npu",
        provider=provider,
        axes={"precision": "fp32", "option.math": value},
        golden_digest="d",
        placement=placement_of({op: 1}),
        outputs=(metrics(rmse),),
    )


def metrics(rmse: float) -> OutputMetrics:
    table = {
        "name": "y",
        "dtype": "float32",
        "shape": [4],
        "max_abs": rmse,
        "max_rel": rmse,
        "rmse": rmse,
        "cosine": 1.0,
        "sqnr_db": None,
        "delivered_bits": None,
        "mismatched": 0,
        "elements": 4,
        "rtol": 0.0,
        "atol": 0.0,
        "headroom": None,
        "frontier": [],
        "noise": None,
        "precision_error": None,
        "details": None,
    }
    return msgspec.convert(table, OutputMetrics)


def told(records: Iterator[Record] | list[Record]) -> list[str]:
    points = OptionPoints()
    for one in records:
        points.add(one)
    return [silent.words for silent in points.silent("npu")]


def pairs(count: int, step: float, **other: str) -> Iterator[Record]:
    for number in range(count):
        for value, rmse in (("fp32", 1e-7 * number), ("fp16", 1e-7 * number + step * (number == 0))):
            yield record(f"m{number}", value, rmse, **other)


def test_an_option_that_changes_nothing_is_told() -> None:
    assert told(pairs(35, 0.0)) == ["option math: fp32 and fp16 changed no bit of 35 answers"]


def test_one_answer_that_differs_is_enough_to_be_silent() -> None:
    assert told(pairs(35, 1e-4)) == []


def test_what_shows_nothing_does_not_count() -> None:
    assert told(pairs(2, 0.0)) == []  # too few answers
    assert told(pairs(35, 0.0, op="Transpose")) == []  # nothing there is rounded
    # The catalogue knows its options, and the engine asks about those that change numerics.
    known = [
        msgspec.structs.replace(
            one, provider="CUDAExecutionProvider", axes={"option.use_tf32": one.axes["option.math"]}
        )
        for one in pairs(35, 0.0)
    ]
    assert told(known) == []
    assert told([one for one in pairs(35, 0.0) if one.axes["option.math"] == "fp32"]) == []


def test_the_latency_is_told_where_every_cell_has_one() -> None:
    def timed(one: Record, slower: float) -> Record:
        ms = 2.0 * (slower if one.axes["option.math"] == "fp16" else 1.0)
        measured = msgspec.convert(told_latency([round(ms * 1e6)] * 9), TimedRuns)
        return msgspec.structs.replace(one, latency=latency_of(measured))

    assert told([timed(one, 1.0) for one in pairs(5, 0.0)])[0].endswith("; latency the same")
    assert told([timed(one, 1.5) for one in pairs(5, 0.0)])[0].endswith(
        "the slowest takes 1.50 x the time of the fastest"
    )
