"""From the times of an agent to the figures of a record."""

import statistics

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.records.record import decode_record, encode_record
from harness.core.timing.latency import MOST_TIMED_RUNS, latency_of, percentile
from tests.kit import bare_record, told_latency

times = st.lists(st.integers(0, 10**12), min_size=1, max_size=200)


@given(times)
@settings(deadline=None)
def test_figures_are_those_of_the_samples(samples_ns: list[int]) -> None:
    latency = latency_of(told_latency(samples_ns))
    ms = [ns / 1e6 for ns in samples_ns]
    assert latency.runs == len(ms)
    assert list(latency.samples_ms) == ms
    assert (latency.min_ms, latency.max_ms) == (min(ms), max(ms))
    assert latency.p50_ms == pytest.approx(statistics.median(ms), abs=1e-5)
    assert latency.mean_ms == pytest.approx(statistics.fmean(ms), abs=1e-5)
    assert (latency.stddev_ms is None) == (len(ms) == 1)
    assert (latency.p90_ms is None) == (len(ms) < 10)
    assert (latency.p99_ms is None) == (len(ms) < 100)
    assert latency.min_ms <= latency.p50_ms <= (latency.p90_ms or latency.max_ms) <= latency.max_ms


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=50), st.floats(0, 100))
@settings(deadline=None)
def test_percentiles_are_those_of_numpy(values: list[float], percent: float) -> None:
    assert percentile(sorted(values), percent) == pytest.approx(float(np.percentile(values, percent)))


@pytest.mark.parametrize(
    "nonsense",
    [
        {},
        told_latency([]),
        told_latency([-1]),
        told_latency([1.5]),
        told_latency(["1"]),
        told_latency([1 << 62]),
        told_latency([1] * (MOST_TIMED_RUNS + 1)),
        told_latency([1], warm_up=-1),
        told_latency([1], stopped_by="boredom"),
        told_latency([1], io="<script>"),
        told_latency([1], intra_op_threads=None),
        told_latency([1], waiting_threads=float("nan")),
        told_latency([1], host_peak_mib=float("nan")),
        told_latency([1], device_mib=float("inf")),
        told_latency([1], device_mib=-1.0),
        None,
    ],
)
def test_nonsense_is_refused(nonsense: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - what the engine listens for
        latency_of(nonsense)


def test_a_record_writes_every_field_of_a_latency_and_null_where_it_is_not_known() -> None:
    latency = latency_of(told_latency([1_234_567, 1_000_000], host_peak_mib=81.25))
    record = bare_record("m", latency=latency)
    line = encode_record(record)
    assert decode_record(line) == record
    written = msgspec.json.decode(line)["latency"]
    assert set(written) == set(latency.__struct_fields__)
    assert written["p90_ms"] is written["p99_ms"] is written["device_mib"] is None
    assert written["samples_ms"] == [1.234567, 1.0]
    assert b"latency" not in encode_record(msgspec.structs.replace(record, latency=None))
