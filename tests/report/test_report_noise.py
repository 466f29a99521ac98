"""Errors in multiples of rounding noise, and errors of converted models, in the report."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.comparison.noise_limits import DEFAULT_LIMITS
from harness.core.comparison.output_metrics import Noise, OutputDetails, PrecisionError
from harness.core.records.facts import Repeats
from harness.core.records.record import Record
from harness.core.records.reference_answer import Adjudication
from harness.core.records.verdict import Verdict
from harness.report.cells.column import Column
from harness.report.cells.conversion import column_conversion
from harness.report.cells.headroom import column_headroom
from harness.report.cells.noise_errors import SHOWN_FAR_OF_A_COLUMN, SHOWN_REASONS, column_noise, on_log_scale
from harness.report.cells.worst import most_headroom, worst_noise
from harness.report.formats.rows import cell_rows, target_rows
from harness.report.pages.precision_page import precision_view
from harness.report.runs.merged_run import MergedRun
from harness.report.view import Report, build_report
from harness.report.words.facts_in_words import evidence, noise_words
from tests.kit import merged, record, site

COLUMN = Column(target="npu", axes=(), provider="NpuExecutionProvider")
LIMITS = {"rms_limit": DEFAULT_LIMITS.rms, "max_limit": DEFAULT_LIMITS.max}


def noise(rms: float, **fields: object) -> Noise:
    given = {"precision": "float32", "rms": rms, "max": 5 * rms, "like": "float32", **fields}
    return msgspec.convert(given, Noise)


def with_output(record: Record, **fields: object) -> Record:
    outputs = tuple(msgspec.structs.replace(output, **fields) for output in record.outputs)
    return msgspec.structs.replace(record, outputs=outputs)


def built(run: MergedRun) -> Report:
    return build_report(run, lambda _folder, _record: "", {})


def noisy(model: str, rms: float, verdict: Verdict = Verdict.PASS, **fields: object) -> Record:
    return with_output(record(model, verdict=verdict, bits=20.0), noise=noise(rms, **fields))


def test_a_column_by_its_multiples() -> None:
    ratios = [0.1, 0.9, 1.0, 1.1, 1.2]
    found = [noisy(f"m{index}", ratio) for index, ratio in enumerate(ratios)]
    found += [noisy("wrong", 5000.0, Verdict.MISMATCH, like="float16")]
    # One element far off is far off, however little it is in the whole.
    found += [noisy("one", 0.5, Verdict.MISMATCH, max=1000.0)]
    found += [noisy("half", 1.3, precision="float16", like="float16"), record("exact")]
    found += [with_output(record("cpu", verdict=Verdict.FALLBACK), noise=noise(1e6))]
    first, second = column_noise(COLUMN, found)
    assert (first.precision, first.cells, first.above, first.below) == ("float32", 7, 2, 1)
    assert first.ratios.median == 1.0
    assert first.like == (("float32", 6), ("float16", 1))
    assert (second.precision, second.cells, second.ratios.median) == ("float16", 1, 1.3)
    assert column_noise(COLUMN, [record("exact")]) == ()


def test_a_cell_counts_with_its_worst_output() -> None:
    one = record("a", bits=20.0)
    (output,) = one.outputs
    spot = msgspec.structs.replace(output, name="spot", noise=noise(0.5, max=400.0))
    whole = msgspec.structs.replace(output, name="whole", noise=noise(2.0, max=9.0))
    found = worst_noise(msgspec.structs.replace(one, outputs=(output, whole, spot)))
    assert found is not None
    assert found[1].max == 400.0
    assert worst_noise(one) is None


def test_one_column_does_not_fill_the_list_of_the_farthest() -> None:
    found = [noisy(f"m{index}", 100.0 + index, Verdict.MISMATCH) for index in range(20)]
    other = with_output(record("m", target="gpu", verdict=Verdict.MISMATCH, bits=9.0), noise=noise(9.0))
    (page,) = precision_view(built(merged([*found, other, noisy("near", 2.0)])))
    far = [cell for _, cell in page.far]
    assert len(far) == SHOWN_FAR_OF_A_COLUMN + 1
    assert [cell.record.cell for cell in far[:1]] == ["onnx-node/m19[npu]"]
    assert far[-1].record.cell == "onnx-node/m[gpu]"
    assert far[0].href.startswith("cells.html#")


def test_why_there_is_no_noise_is_reported(tmp_path: Path) -> None:
    reasons = ["it holds <Loop>"] * 3 + [f"reason {number}" for number in range(SHOWN_REASONS + 3)]
    found = [record(f"m{index}", no_spread=reason) for index, reason in enumerate(reasons)]
    report = built(merged(found))
    (view,) = precision_view(report)
    assert view.without_noise[0] == ("it holds <Loop>", 3)
    assert view.without_noise[-1] == ("other reasons", 4)
    assert len(view.without_noise) == SHOWN_REASONS + 1
    page = site(tmp_path, report)["precision.html"]
    assert "it holds &lt;Loop&gt;" in page
    assert "Judged by the built-in table because the noise is unknown" in page


def test_the_plot_is_logarithmic_and_ends() -> None:
    assert [on_log_scale(ratio) for ratio in (0.0, 0.001, 0.1, 1.0, 10.0, 1e9)] == [0, 0, 25, 50, 75, 100]


def test_converted_models_by_their_three_numbers() -> None:
    def converted(model: str, error: float, cpu: float | None, verdict: Verdict = Verdict.PASS) -> Record:
        ratio = error / cpu if cpu else None
        unknown = "" if cpu else "the CPU EP has no answer of its own"
        lost = PrecisionError(error=error, cpu_error=cpu, ratio=ratio, unknown=unknown)
        return with_output(record(model, verdict=verdict, bits=9.0), precision_error=lost)

    found = [
        converted("a", 1e-3, 1e-3),
        converted("b", 3e-3, 1e-3, Verdict.MISMATCH),
        converted("c", 2e-3, None),
    ]
    zero = with_output(record("d"), precision_error=PrecisionError(unknown="the golden is all 0"))
    row = column_conversion(COLUMN, [*found, record("exact"), zero])
    assert row is not None
    assert (row.cells, row.error, row.cpu_error) == (3, 2e-3, 1e-3)
    assert row.unknown == (("the CPU EP has no answer of its own", 1), ("the golden is all 0", 1))
    assert row.ratios is not None
    assert (row.ratios.median, row.ratios.most) == (2.0, 3.0)
    assert column_conversion(COLUMN, [record("exact")]) is None


def test_rows_for_programs() -> None:
    judged = Adjudication(output="y", by="float64 on the CPU EP", golden=1e-8, ep=1e-3, nearer="golden")
    found = [
        noisy("a", 1.0),
        msgspec.structs.replace(
            noisy("b", 9.0, Verdict.MISMATCH),
            adjudication=(judged,),
            repeats=Repeats(runs=5, sessions=2, distinct=3),
        ),
        noisy("c", 1.5, precision="float16"),
    ]
    run = merged(found)
    (target,) = target_rows(built(run))
    assert (target.noise_precision, target.noise_cells, target.median_noise) == ("float32", 2, 5.0)
    assert (target.noise_beyond, target.noise_like, target.median_error_ratio) == (1, "float32", None)
    cells = {row.model: row for row in cell_rows(run)}
    assert (cells["a"].noise_rms, cells["a"].noise_max, cells["a"].nearer, cells["a"].results) == (
        1,
        5,
        "",
        None,
    )
    assert (cells["b"].nearer, cells["b"].results) == ("golden", 3)
    plain = merged([record("a")])
    (target,) = target_rows(built(plain))
    assert (target.noise_precision, target.median_noise, target.noise_like) == ("", None, "")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"no_spread": "it holds\nLoop"}, [("Rounding noise", "unknown: it holds Loop")]),
        (
            {"repeats": Repeats(runs=10, sessions=2, distinct=3, max_abs=1.25e-6, bit_equal=True)},
            [
                (
                    "Repeats",
                    (
                        "10 runs in each of 2 sessions: 3 different results, up to 1.25e-06 from the first; "
                        "equal bits are required"
                    ),
                )
            ],
        ),
        (
            {"repeats": Repeats(runs=1, sessions=3, distinct=1, max_abs=0.0)},
            [("Repeats", "1 run in each of 3 sessions: the same bits")],
        ),
        (
            {
                "adjudication": (
                    Adjudication(output="y", by="float64", golden=1e-3, ep=2e-8, nearer="ep"),
                    Adjudication(output="z", by="float64", golden=1e-8, ep=1e-8, nearer="equal"),
                )
            },
            [
                (
                    "Nearer the truth",
                    (
                        "y: the provider is nearer, by float64: golden 0.001, provider 2e-08; "
                        "z: both are equally near, by float64: golden 1e-08, provider 1e-08"
                    ),
                )
            ],
        ),
        ({}, []),
    ],
)
def test_what_a_verdict_rests_on(fields: dict[str, Any], told: Sequence[tuple[str, str]]) -> None:
    assert list(evidence(record("a", **fields))) == told


def test_an_error_like_that_of_the_cpu_is_no_share_of_a_tolerance() -> None:
    within = PrecisionError(error=2e-3, cpu_error=2e-3, ratio=1.0, within=True)
    one = with_output(record("a", bits=9.0), headroom=12.0, precision_error=within)
    assert most_headroom(one) is None
    assert most_headroom(with_output(one, precision_error=None)) == 12.0
    assert column_headroom(COLUMN, [one]).cells == 0


def test_the_three_numbers_in_words() -> None:
    lost = PrecisionError(error=2e-3, cpu_error=1e-3, ratio=2.0)
    told = dict(evidence(with_output(record("a"), precision_error=lost)))
    words = "y: error 0.002 against the model before conversion, the CPU EP's 0.001, ratio 2"
    assert told == {"Cost of the precision": words}
    zero = PrecisionError(cpu_error=0.0, unknown="the golden is all 0")
    told = dict(evidence(with_output(record("a"), precision_error=zero)))
    words = "y: the CPU EP's 0, numbers missing: the golden is all 0"
    assert told == {"Cost of the precision": words}


@pytest.mark.parametrize(
    ("details", "told"),
    [
        (OutputDetails(steps=1.0), "y: at most 1 × its quantization step off"),  # noqa: RUF001
        (
            OutputDetails(ties=2, signed_zeros=1),
            "y: 2 positions where the values tie, 1 zero of the other sign",
        ),
        (OutputDetails(distribution="uniform", unseen=0.01), "y: random values, judged as uniform"),
    ],
)
def test_what_values_are_besides_numbers(details: OutputDetails, told: str) -> None:
    assert dict(evidence(with_output(record("a"), details=details))) == {"Values": told}
    assert not dict(evidence(with_output(record("a"), details=OutputDetails())))


def test_noise_in_words() -> None:
    assert noise_words(None) == ""
    assert noise_words(noise(1.234)) == "1.23 × float32, 6.17 × in one element"  # noqa: RUF001
    assert noise_words(noise(6e4, like="bfloat16")).endswith("; like bfloat16")
    assert noise_words(noise(6e9, like="none")).endswith("; like no precision")


def test_pages_say_it_and_older_records_leave_it_out(tmp_path: Path) -> None:
    wrong = with_output(noisy("b", 90.0, Verdict.MISMATCH), noise=noise(90.0, like="<b>", **LIMITS))
    lost = with_output(
        record("a", axes={"precision": "fp16"}, bits=9.0), precision_error=PrecisionError(error=1e-3)
    )
    pages = site(tmp_path, built(merged([noisy("a", 1.0), wrong, lost])))
    precision, details = pages["precision.html"], pages["cells.html"]
    assert "Error against rounding noise" in precision
    assert "Cost of a lower precision" in precision
    assert "&lt;b&gt;" in precision
    assert "<b>" not in precision
    assert "3 × its noise, 32 × in one element" in details  # noqa: RUF001
    assert "90 × float32, 450 × in one element; like &lt;b&gt;" in details  # noqa: RUF001
    old = site(
        tmp_path, built(merged([record("a", bits=20.0), record("b", verdict=Verdict.MISMATCH, bits=8.0)]))
    )
    assert not any("rounding noise" in page or "Cost of a lower" in page for page in old.values())
    assert "Error / noise" not in old["cells.html"]
