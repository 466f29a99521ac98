"""Any line of records.jsonl is a record or is reported, and any record can be judged again and shown."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.comparison.output_metrics import Noise, OutputDetails, PrecisionError
from harness.core.comparison.policy import Policy
from harness.core.records.facts import Repeats
from harness.core.records.record import SCHEMA, ProcessState, Record, decode_record, encode_record
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from harness.core.verdicts.decide import decide
from harness.report.report_files import write_report
from harness.report.runs.read import read_run
from tests.kit import latency, record, write_run
from tests.mutations import each_replaced, mutated

FEW = settings(max_examples=200, derandomize=True, deadline=None, database=None)
POLICIES = (Policy(), Policy(judge_by="table"), Policy(precision="float16", converted=True))


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    """Records with everything that a record may have, as plain values."""
    full = record("b", verdict=Verdict.MISMATCH, bits=3.0)
    row = msgspec.structs.replace(
        full.outputs[0],
        noise=Noise(precision="float32", rms=5.0, max=40.0, worst=" at (1, 2)"),
        precision_error=PrecisionError(error=0.1, cpu_error=0.1, ratio=1.0, measured=True),
        details=OutputDetails(
            steps=1.0, ties=2, ties_of="float32", tie_frontier=((0.0, 0.1),), message="it differs"
        ),
        frontier=((0.0, 0.5), (1e-5, 0.0)),
        cosine=0.5,
        sqnr_db=18.0,
    )
    full = msgspec.structs.replace(
        full,
        outputs=(row,),
        again=(row,),
        latency=latency(1e-3, 2e-3, host_peak_mib=5.0, device_mib=0.0),
        repeats=Repeats(runs=2, sessions=2, distinct=1, max_abs=0.0),
        process=ProcessState(pid=1, session=1),
        scenario={"a": (1, 2.0, "x")},
        retries=(Verdict.PASS,),
        undefined={"y": "why"},
    )
    return [msgspec.json.decode(encode_record(record)) for record in (record("a"), full)]


@FEW
@given(st.data())
def test_any_record_that_is_read_can_be_judged(records: list[dict[str, Any]], data: st.DataObject) -> None:
    line = as_json(data.draw(mutated(data.draw(st.sampled_from(records)))))
    try:
        record = decode_record(line)
    except msgspec.DecodeError:
        return
    for policy in POLICIES:
        decide(record, policy)
    assert decode_record(encode_record(record)) == record


def test_each_part_of_a_record_may_be_another_thing(
    records: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    read: dict[str, Record] = {}
    for valid in records:
        for variant in each_replaced(valid, 29):
            try:
                record = decode_record(as_json(variant))
            except msgspec.DecodeError:
                continue
            for policy in POLICIES:
                decide(record, policy)
            read.setdefault(record.cell, record)
    assert len(read) > 2
    folder = write_run(
        tmp_path_factory.mktemp("run"), [record for record in read.values() if record.schema == SCHEMA]
    )
    write_report([folder], folder / "report")[0]


@FEW
@given(st.integers(0, 900), st.binary(max_size=12), st.integers(0, 40))
def test_any_line_is_a_record_or_none(
    records: list[dict[str, Any]], at: int, written: bytes, erased: int
) -> None:
    line = as_json(records[1])
    try:
        decode_record(line[:at] + written + line[at + erased :])
    except msgspec.DecodeError:
        return


@settings(FEW, max_examples=8)
@given(st.data())
def test_any_run_is_read_and_shown_or_is_an_error_of_use(
    records: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = write_run(tmp_path_factory.mktemp("run"), [record("c")], planned=9)
    lines = [as_json(data.draw(mutated(data.draw(st.sampled_from(records))))) for _ in range(6)]
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b"".join(line + b"\n" for line in lines))
    try:
        run = read_run(folder)
        assert len({record.cell for record in run.records}) + len(run.damaged) <= 1 + len(lines)
        assert record("c") in run.records
        write_report([folder], folder / "report")[0]
    except UsageError as error:
        check(error)


def check(error: UsageError) -> None:
    assert error.problems
    assert str(error)


def as_json(value: Any) -> bytes:
    """A value as one line; what JSON lacks is left to msgspec, and integers beyond 64 bits are written."""

    return json.dumps(value, default=lambda odd: odd.hex()).encode()
