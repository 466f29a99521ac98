"""The JSON contract of ``records.jsonl``."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.facts import Placement
from harness.core.records.record import SCHEMA, Record, decode_record, encode_record
from harness.core.records.verdict import Family, Phase, Verdict

TEXTS = st.text(max_size=10)
COUNTS = st.dictionaries(TEXTS, st.integers(0, 99), max_size=3)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
MS = st.floats(min_value=0, max_value=1e15)
METRICS = st.builds(
    OutputMetrics,
    name=TEXTS,
    dtype=TEXTS,
    shape=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    max_abs=st.none() | FLOATS,
    headroom=st.none() | FLOATS,
    frontier=st.lists(st.tuples(FLOATS, FLOATS), max_size=3).map(tuple),
)
RECORDS = st.builds(
    Record,
    schema=st.just(SCHEMA),
    cell=TEXTS,
    suite=TEXTS,
    model=TEXTS,
    target=TEXTS,
    provider=TEXTS,
    verdict=st.sampled_from(Verdict),
    family=st.sampled_from(Family),
    expected=st.booleans(),
    axes=st.dictionaries(TEXTS, TEXTS, max_size=3),
    phase=st.none() | st.sampled_from(Phase),
    reason=TEXTS,
    placement=st.none()
    | st.builds(
        Placement,
        ep_nodes=st.integers(0, 99),
        cpu_nodes=st.integers(0, 99),
        ep_ops=COUNTS,
        cpu_ops=COUNTS,
        partitions=st.integers(0, 9),
        source=st.sampled_from(["assignment", "profile"]),
    ),
    outputs=st.lists(METRICS, max_size=3).map(tuple),
    timings_ms=st.dictionaries(TEXTS, MS, max_size=3),
)


def minimal() -> Record:
    return Record(
        schema=SCHEMA,
        cell="s/m[t]",
        suite="s",
        model="m",
        target="t",
        provider="P",
        verdict=Verdict.PASS,
        family=Family.PASSED,
        expected=True,
    )


@given(RECORDS)
def test_a_record_survives_its_line(record: Record) -> None:
    line = encode_record(record)
    assert b"\n" not in line
    assert decode_record(line) == record


def test_a_field_with_nothing_to_say_is_left_out() -> None:
    assert json.loads(encode_record(minimal())) == {
        "schema": SCHEMA,
        "cell": "s/m[t]",
        "suite": "s",
        "model": "m",
        "target": "t",
        "provider": "P",
        "verdict": "pass",
        "family": "passed",
        "expected": True,
    }


def test_a_stored_line_is_written_as_it_was() -> None:
    line = (
        b'{"schema":1,"cell":"s/m[t]","suite":"s","model":"m","target":"t","provider":"P","verdict":"error",'
        b'"family":"failed","expected":false,"axes":{"scenario":"plain"},"phase":"run","reason":"why",'
        b'"golden":"cpu","policy":{"steps":1.0},"timings_ms":{"create":1.5},"started":"now","attempt":1,'
        b'"effect":{"options":["a"],"seen":true},"scenario":{"a":1},"process":{"pid":7,"session":1},'
        b'"artifacts":"x","no_spread":"why","repeats":{"runs":1,"sessions":1,"distinct":1,"max_abs":null,'
        b'"bit_equal":false,"differing":null},"ended":{"how":"raised","message":"m"},"precision":"float16",'
        b'"converted":true,"teardown":"died","answered":["noise"],"weak_golden":"zeros","unconfirmed":"no",'
        b'"fixed":{"sizes":{"n":1},"ep_nodes":2,"cpu_nodes":0}}'
    )
    assert encode_record(decode_record(line)) == line


def test_a_metric_without_a_value_is_null() -> None:
    metrics = json.loads(msgspec.json.encode(OutputMetrics(name="y", dtype="string", shape=(2,))))
    assert metrics["max_abs"] is None
    assert metrics["shape"] == [2]


def test_a_torn_line_and_a_foreign_one_raise_different_errors() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_record(encode_record(minimal())[:-5])
    with pytest.raises(msgspec.ValidationError, match="verdict"):
        decode_record(encode_record(minimal()).replace(b'"pass"', b'"passable"'))
