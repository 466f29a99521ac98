"""Any line of records.jsonl is a record or is reported, and any record can be judged again and shown."""

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.decide import decide
from harness.core.errors import UsageError
from harness.core.facts import Repeats
from harness.core.latency import latency_of
from harness.core.output_metrics import Noise, OutputDetails, PrecisionError
from harness.core.policy import Policy
from harness.core.record import SCHEMA, ProcessState, Record, decode_record, encode_record
from harness.core.verdict import Verdict
from harness.report.publish import write_report
from harness.report.read import read_run

Mutated = Callable[..., st.SearchStrategy[Any]]
Replaced = Callable[..., Iterator[Any]]
MakeRecord = Callable[..., Record]
WriteRun = Callable[..., Path]

FEW = settings(max_examples=200, derandomize=True, deadline=None, database=None)
POLICIES = (Policy(), Policy(judge_by="table"), Policy(precision="float16", converted=True))


@pytest.fixture(scope="module")
def records(module_record: MakeRecord) -> list[dict[str, Any]]:
    """Records with everything that a record may have, as plain values."""
    latency = {
        "samples_ns": [1000, 2000],
        "warm_up": 1,
        "stopped_by": "repeats",
        "io": "copied",
        "intra_op_threads": 1,
        "inter_op_threads": 1,
        "waiting_threads": None,
        "host_peak_mib": 5.0,
        "device_mib": 0.0,
    }
    full = module_record("b", verdict=Verdict.MISMATCH, bits=3.0)
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
        latency=latency_of(latency),
        repeats=Repeats(runs=2, sessions=2, distinct=1, max_abs=0.0),
        process=ProcessState(pid=1, session=1),
        scenario={"a": (1, 2.0, "x")},
        retries=(Verdict.PASS,),
        undefined={"y": "why"},
    )
    return [msgspec.json.decode(encode_record(record)) for record in (module_record("a"), full)]


@FEW
@given(st.data())
def test_any_record_that_is_read_can_be_judged(
    records: list[dict[str, Any]], mutated: Mutated, data: st.DataObject
) -> None:
    line = as_json(data.draw(mutated(data.draw(st.sampled_from(records)))))
    try:
        record = decode_record(line)
    except msgspec.DecodeError:
        return
    for policy in POLICIES:
        decide(record, policy)
    assert decode_record(encode_record(record)) == record


def test_each_part_of_a_record_may_be_another_thing(
    records: list[dict[str, Any]], each_replaced: Replaced, module_run: WriteRun
) -> None:
    read: dict[str, Record] = {}
    for valid in records:
        for variant in each_replaced(valid):
            try:
                record = decode_record(as_json(variant))
            except msgspec.DecodeError:
                continue
            for policy in POLICIES:
                decide(record, policy)
            read.setdefault(record.cell, record)
    assert len(read) > 2
    folder = module_run(uuid.uuid4().hex, [record for record in read.values() if record.schema == SCHEMA])
    write_report([folder], folder / "report")


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
    records: list[dict[str, Any]],
    mutated: Mutated,
    module_record: MakeRecord,
    module_run: WriteRun,
    data: st.DataObject,
) -> None:
    folder = module_run(uuid.uuid4().hex, [module_record("c")], planned=9)
    lines = [as_json(data.draw(mutated(data.draw(st.sampled_from(records))))) for _ in range(6)]
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b"".join(line + b"\n" for line in lines))
    try:
        run = read_run(folder)
        assert len({record.cell for record in run.records}) + len(run.damaged) <= 1 + len(lines)
        assert module_record("c") in run.records
        write_report([folder], folder / "report")
    except UsageError as error:
        check(error)


def check(error: UsageError) -> None:
    assert error.problems
    assert str(error)


def as_json(value: Any) -> bytes:
    """A value as one line; what JSON lacks is left to msgspec, and integers beyond 64 bits are written."""

    return json.dumps(value, default=lambda odd: odd.hex()).encode()
