from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.report.cells.column import Column, column_of, columns_in_order
from harness.report.cells.column_counts import summarise
from harness.report.cells.column_precision import measure_column
from harness.report.words.figures import Share, moment, spread
from harness.report.words.tone import TONES, WEAK, tone
from tests.kit import bare_record, record

COLUMN = Column(target="npu", axes=(), provider="NpuExecutionProvider")


@pytest.mark.parametrize(
    ("count", "total", "text"),
    [
        (1119, 1327, "1,119 of 1,327 (84.3%)"),
        (0, 5, "0 of 5 (0%)"),
        (5, 5, "5 of 5 (100%)"),
        # Rounding must not turn one failure in ten thousand into none.
        (9999, 10000, "9,999 of 10,000 (99.9%)"),
        (1, 10000, "1 of 10,000 (0.1%)"),
        (0, 0, "no data"),
    ],
)
def test_a_share_shows_its_denominator(count: int, total: int, text: str) -> None:
    assert Share(count, total).text == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-11-23T03:11:19.528+00:00", "2026-11-23 03:11:19 UTC"),
        ("2026-11-20T10:00:00Z", "2026-11-20 10:00:00 UTC"),
        ("2026-11-23T01:11:19+02:00", "2026-11-22 23:11:19 UTC"),
        ("2026-11-23T03:11:19", "2026-11-23T03:11:19"),
        ("0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00+01:00"),
        ("yesterday", "yesterday"),
        ("", ""),
    ],
)
def test_a_moment_is_shown_in_utc_and_anything_else_as_it_is(text: str, shown: str) -> None:
    assert moment(text) == shown


def test_quartiles() -> None:
    found = spread([4.0, 1.0, 2.0, 3.0, 5.0])
    assert found is not None
    assert (found.least, found.q1, found.median, found.q3, found.most) == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert spread([]) is None


@given(st.lists(st.floats(-10, 60), min_size=1))
def test_a_spread_is_ordered_and_within_its_values(values: list[float]) -> None:
    found = spread(values)
    assert found is not None
    slack = 1e-9
    assert found.least == min(values)
    assert found.most == max(values)
    assert found.least <= found.q1 + slack
    assert found.q1 <= found.median + slack
    assert found.median <= found.q3 + slack
    assert found.q3 <= found.most + slack


def test_the_denominators_of_one_target() -> None:
    counts = {
        Verdict.PASS: 1119,
        Verdict.FALLBACK: 200,
        Verdict.FOLDED: 8,
        Verdict.UNSUPPORTED: 150,
        Verdict.MISMATCH: 100,
        Verdict.CRASH: 18,
        Verdict.INVALID_MODEL: 289,
        Verdict.DECLARED: 9,
    }
    template = {verdict: record(verdict=verdict) for verdict in counts}
    row = summarise(
        COLUMN, (template[verdict] for verdict, n in counts.items() for _ in range(n)), complete=True
    )
    assert (row.cells, row.skipped, row.excluded, row.missing, row.tried) == (1893, 9, 289, 0, 1595)
    assert row.by_ep.text == "1,119 of 1,595 (70.2%)"
    assert row.partly.text == "0 of 1,595 (0%)"
    assert row.untested.text == "208 of 1,595 (13.0%)"
    assert row.failed.text == "118 of 1,595 (7.4%)"
    assert row.right.text == "1,327 of 1,595 (83.2%)"
    assert row.exercised.text == "1,119 of 1,327 (84.3%)"
    assert row.kinds["failed"] == (("mismatch", 100), ("crash", 18))


def test_nothing_tried_is_no_data() -> None:
    row = summarise(COLUMN, [record(verdict=Verdict.UNAVAILABLE)], complete=True)
    assert row.tried == 0
    assert row.failed.text == row.right.text == row.exercised.percent == "no data"


@given(st.lists(st.sampled_from(Verdict)))
def test_families_sum_to_the_cells(verdicts: list[Verdict]) -> None:
    records = [_bare(index, verdict) for index, verdict in enumerate(verdicts)]
    row = summarise(COLUMN, records, complete=True)
    assert row.cells == len(verdicts) == row.skipped + row.excluded + row.missing + row.tried
    parts = (row.by_ep, row.partly, row.untested, row.unsupported, row.failed)
    assert sum(part.count for part in parts) == row.tried
    assert {part.total for part in parts} == {row.tried}
    assert row.right.count == row.exercised.total == row.by_ep.count + row.partly.count + row.untested.count
    families = Counter(verdict.family.value for verdict in verdicts)
    assert {family: sum(n for _, n in kinds) for family, kinds in row.kinds.items()} == families
    tones = Counter(map(tone, verdicts))
    assert {s.key: s.count for s in row.bar} == tones
    assert [s.key for s in row.bar] == [name for name in TONES if tones[name]]
    if verdicts:
        assert sum(s.width for s in row.bar) == pytest.approx(100, abs=0.01)
        assert all(0 <= s.start < 100 for s in row.bar)


def test_a_right_answer_with_a_weak_golden_is_counted_apart() -> None:
    why = "the golden's output is zero"
    records = [
        record("a"),
        record("b", weak_golden=why),
        record("c", verdict=Verdict.PASS_PARTIAL, weak_golden=why),
        record("d", verdict=Verdict.MISMATCH, weak_golden=why),  # found all the same
        record("e", approximate="output 'y': 20 x the model's rounding noise"),
    ]
    row = summarise(column_of(records[0]), records, complete=True)
    assert (row.by_ep.count, row.partly.count, row.weak.count, row.failed.count) == (2, 0, 2, 1)
    assert row.approximate == 1
    assert {segment.key: segment.count for segment in row.bar} == {"passed": 2, WEAK: 2, "failed": 1}


def test_every_verdict_has_a_tone() -> None:
    assert {tone(verdict) for verdict in Verdict} == set(TONES) - {WEAK}
    assert {family.value for family in Family} < set(TONES)


def test_delivered_bits_tell_bfloat16_from_float32() -> None:
    default = [record(f"m{i}", bits=7.7 + i / 10, op="MatMul") for i in range(5)]
    # A float32 tolerance refuses what bfloat16 delivers; that must not hide the figure.
    wrong = [record(f"w{i}", verdict=Verdict.MISMATCH, bits=7.5, op="Conv") for i in range(3)]
    row = measure_column(COLUMN, default + wrong)
    assert row.bits is not None
    assert (row.measured, row.exact, row.bits.median, row.reading) == (8, 0, 7.75, "about bfloat16")
    f32 = measure_column(COLUMN, [record(f"m{i}", bits=20.3, op="Gemm") for i in range(3)])
    assert f32.reading == "about float32"
    assert measure_column(COLUMN, [record(bits=10.6, op="Conv")]).reading == "about float16"
    assert measure_column(COLUMN, [record(bits=1.0, op="Conv")]).reading == "less than bfloat16"
    both = measure_column(
        COLUMN, [record(f"m{i}", bits=b, op="MatMul") for i, b in enumerate((7.7, 7.8, 20, 21))]
    )
    assert both.reading == "mixed: about bfloat16 to float32"


def test_only_compute_heavy_float32_work_by_the_ep_is_measured() -> None:
    int8 = OutputMetrics(name="y", dtype="int8", shape=(1,), delivered_bits=3.0, elements=1, mismatched=0)
    row = measure_column(
        COLUMN,
        [
            record("relu", bits=3.0, op="Relu"),
            record("fell back", verdict=Verdict.FALLBACK),
            record("integer", op="MatMul", outputs=[int8]),
            record("exact", op="MatMul"),
        ],
    )
    assert (row.measured, row.exact, row.bits, row.reading) == (0, 1, None, "")


def test_a_cell_counts_with_its_least_precise_output() -> None:
    sample = record(bits=20.0, op="LSTM")
    worse = OutputMetrics(name="h", dtype="float32", shape=(1,), max_abs=0.1, delivered_bits=7.0, elements=1)
    row = measure_column(COLUMN, [record(op="LSTM", outputs=[*sample.outputs, worse])])
    assert row.bits is not None
    assert row.bits.median == 7.0


def test_columns_follow_the_targets_and_split_by_axes() -> None:
    records = [
        record("a", target="z", axes={"option.num_streams": "2"}),
        record("a", target="unlisted"),
        record("a", target="z", axes={"option.num_streams": "1"}),
        record("a", target="cpu"),
    ]
    labels = [column.label for column in columns_in_order(map(column_of, records), ["cpu", "z"])]
    assert labels == ["cpu", "z · option.num_streams=1", "z · option.num_streams=2", "unlisted"]
    assert column_of(records[3]).axes == ()


def _bare(index: int, verdict: Verdict) -> Record:
    return bare_record(f"m{index}", verdict, target="npu", provider="NpuExecutionProvider")
