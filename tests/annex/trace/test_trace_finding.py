"""The sentence about a trace: made, everywhere, from a range, amplified, together, or nothing of the kind."""

import msgspec
import pytest

from harness.annex.trace.trace_finding import Traced, common_traits, found_of
from harness.core.records.trace import GoldenRange, TogetherGuilty, TracedNode, TraceError
from harness.core.records.verdict import Verdict
from tests.kit import record

ROUNDING = TraceError(noise=0.7, relative=1e-7)
WRONG = TraceError(noise=4000.0, relative=0.01)


def node(number: int, op_type: str = "Conv", **fields: object) -> TracedNode:
    usual = TracedNode(
        target="t",
        number=number,
        depth=number,
        node=f"n{number}",
        op_type=op_type,
        dtype="float32",
        shape=(1, 8),
        inputs=(f"n{number - 1}",) if number else (),
        whole=ROUNDING,
        made=ROUNDING,
    )
    return msgspec.structs.replace(usual, **fields)


def traced(*nodes: TracedNode, end: TraceError | None = ROUNDING, delivers: str = "float32") -> Traced:
    return Traced(own=record("m", Verdict.PASS), end=end, delivers=delivers, nodes=nodes)


def test_a_node_that_makes_more_than_rounding_is_named_and_who_inherits_is_not() -> None:
    found = found_of(
        traced(node(0), node(1, made=WRONG, whole=WRONG), node(2, whole=WRONG, inherited=4000.0), end=WRONG),
        None,
    )
    assert (found.finding, found.guilty) == ("made", ("n1",))
    assert found.sentence.startswith(
        "Made at Conv n1: on golden inputs 4e+03 times its rounding noise in float32"
    )


def test_what_guilty_nodes_share_and_healthy_ones_have_not() -> None:
    one, two = (node(number, made=WRONG, attributes="dilations=[2, 2]; group=1") for number in (0, 2))
    healthy = node(1, attributes="dilations=[1, 1]; group=1")
    assert common_traits([one, two], [one, healthy, two]) == ["operator Conv", "attribute dilations=[2, 2]"]
    sentence = found_of(traced(one, healthy, two), None).sentence
    assert (
        "Made at 2 nodes (n0, n2), which share Conv and attribute dilations=[2, 2]; 1 other Conv" in sentence
    )
    assert common_traits([one, node(3, "Add", dtype="float16")], [one]) == []


def test_delivered_precision() -> None:
    coarse = TraceError(noise=0.9, relative=2e-3)
    found = found_of(
        traced(node(0, made=coarse), node(1, made=coarse), end=coarse, delivers="bfloat16"), None
    )
    assert found.finding == "everywhere"
    assert "computes in bfloat16; nodes make 0.9 times its rounding noise (median of 2)" in found.sentence


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (GoldenRange(low=-1e5, high=3.0, too_large=0.25), "values reach 1e+05, beyond the range of float16"),
        (GoldenRange(low=0.0, high=1.0, clipped=0.125), "quantization clips 0.12 of the values"),
    ],
)
def test_a_range(limits: GoldenRange, words: str) -> None:
    infinite = TraceError(special=2)
    found = found_of(traced(node(0, made=infinite, range=limits), end=infinite, delivers="float16"), None)
    assert found.finding == "range"
    assert words in found.sentence


def test_a_mask_makes_the_range_of_what_softmax_reads_too_wide_for_int8() -> None:
    mask = node(0, "Add", range=GoldenRange(low=-1e4, high=8.0, below_step=0.5))
    softmax = node(1, "Softmax", made=WRONG, range=GoldenRange(low=0.0, high=1.0))
    found = found_of(traced(mask, softmax, end=WRONG, delivers="int8"), None)
    assert (found.finding, found.guilty) == ("range", ("n1",))
    words = (
        "quantization leaves nothing of 0.5 of the values that it reads from Add n0, whose range is -1e+04"
    )
    assert words in found.sentence


def test_a_cancellation_amplifies_a_healthy_error() -> None:
    before, after = TraceError(noise=0.8, relative=1e-4), TraceError(noise=0.8, relative=0.1)
    found = found_of(traced(node(0, whole=before), node(1, "Sub", whole=after), end=after), None)
    assert (found.finding, found.condition, found.guilty) == ("amplified", 1000.0, ())
    assert "Amplified at Sub n1, a cancellation: its relative error is 1e+03 times" in found.sentence


def test_nodes_that_are_wrong_only_together() -> None:
    together = TogetherGuilty(nodes=("n0", "n1"), op_types=("Conv", "Relu"), made=WRONG)
    found = found_of(traced(node(0), node(1, "Relu", whole=WRONG), end=WRONG), together)
    assert found.finding == "together"
    assert found.sentence.startswith(
        "Made by 2 nodes together (Conv, Relu; up to n0, n1), each of which is right"
    )


def test_what_is_not_located_is_said() -> None:
    found = found_of(traced(node(0), node(1, whole=WRONG), end=WRONG), None)
    assert found.finding == "unknown"
    assert "Not located: the outputs are beyond the noise, first at Conv n1" in found.sentence
    assert found_of(traced(end=None), None).finding == "unknown"
    fallback = Traced(own=record("m", Verdict.FALLBACK), end=ROUNDING, delivers="float32", nodes=())
    assert "so the CPU EP computes the model" in found_of(fallback, None).sentence


def test_rounding_alone() -> None:
    found = found_of(traced(node(0), node(1)), None)
    assert found.finding == "none"
    assert found.sentence.startswith("No error but rounding: no node makes more than 0.7 times")
