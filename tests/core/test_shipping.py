"""What to ship of each model: which target, with which option, and why not."""

from typing import Any

import msgspec
import pytest

from harness.core.agreement.agreement import Agreement
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.findings.compute_share import is_the_cpus, nodes_on_ep, share_on_ep
from harness.core.findings.shipping import (
    ShippedModel,
    Shipping,
    ShippingAnswer,
    ShippingChoice,
    what_to_ship,
)
from harness.core.records.cell import AXIS_DEFAULTS
from harness.core.records.facts import OptionEffect, Placement
from harness.core.records.verdict import Verdict
from harness.core.timing.latency import Latency, latency_of
from tests.kit import bare_record, placement_of, told_latency

CPU = "CPUExecutionProvider"


def timed(ms: float, **told: Any) -> Latency:
    return latency_of(told_latency([int(ms * 1e6)], host_peak_mib=80.0, **told))


def choice(
    target: str,
    *rounds_ms: float,
    verdict: Verdict = Verdict.PASS,
    axes: dict[str, str] | None = None,
    disturbed: bool = False,
    **fields: Any,
) -> ShippingChoice:
    provider = CPU if target == "cpu" else "AcmeExecutionProvider"
    rounds = tuple(timed(ms, waiting_threads=0.5 if disturbed else 0.0) for ms in rounds_ms)
    record = bare_record(
        "m", verdict, target=target, provider=provider, axes=AXIS_DEFAULTS | (axes or {}), **fields
    )
    return ShippingChoice(record=record, rounds=rounds)


def answers(*choices: ShippingChoice, simulated: dict[str, str] | None = None) -> ShippedModel:
    (model,) = what_to_ship(choices, ["cpu", "npu"], simulated or {})
    return model


def row(target: str, *choices: ShippingChoice, simulated: dict[str, str] | None = None) -> Shipping:
    return next(one for one in answers(*choices, simulated=simulated).rows if one.target == target)


def partly(ep_nodes: int, cpu_nodes: int) -> Placement:
    return placement_of({}, ep_nodes=ep_nodes, cpu_nodes=cpu_nodes, partitions=1)


def test_the_fastest_of_those_that_may_be_shipped_is_marked() -> None:
    found = answers(choice("npu", 2.0, 2.1), choice("cpu", 4.0, 4.1))
    assert [(one.target, one.answer, one.is_fastest, one.times) for one in found.rows] == [
        ("cpu", ShippingAnswer.SHIP, False, 1.0),
        ("npu", ShippingAnswer.SHIP, True, 0.5),
    ]
    assert found.rows[1].memory_mib == 80.0
    assert found.speed == ""


def test_an_option_is_named_where_the_target_as_it_is_is_wrong() -> None:
    exact = choice("npu", 2.0, axes={"precision": "ep:f32", "option.streams": "2"})
    found = row("npu", choice("npu", verdict=Verdict.PRECISION_LOSS, reason="1.5 bits are left"), exact)
    assert (found.answer, found.option) == (ShippingAnswer.WITH_OPTION, "streams=2, precision=ep:f32")
    assert found.because == "without it: precision loss: 1.5 bits are left"
    assert found.choice == exact


def test_an_option_is_named_where_it_is_faster_by_more_than_chance() -> None:
    plain, quick = choice("npu", 3.0, 3.1), choice("npu", 1.5, 1.5, axes={"option.streams": "2"})
    found = row("npu", plain, quick)
    assert (found.answer, found.option, found.because) == (
        ShippingAnswer.WITH_OPTION,
        "streams=2",
        "2 times as fast",
    )
    hardly = choice("npu", 2.9, 3.0, axes={"option.streams": "2"})
    assert row("npu", plain, hardly).answer is ShippingAnswer.SHIP
    silent = msgspec.structs.replace(quick.record, effect=OptionEffect(options=("ep:x",), seen=False))
    assert row("npu", plain, ShippingChoice(record=silent, rounds=quick.rounds)).option == ""


@pytest.mark.parametrize(
    ("fields", "answer", "because"),
    [
        ({"verdict": Verdict.CRASH, "reason": "SIGSEGV"}, ShippingAnswer.NOT, "crash: SIGSEGV"),
        ({"verdict": Verdict.FALLBACK}, ShippingAnswer.NOT, "fallback: the CPU provider computed it"),
        (
            {"verdict": Verdict.UNAVAILABLE, "reason": "no device"},
            ShippingAnswer.UNKNOWN,
            "unavailable: no device",
        ),
        ({"verdict": Verdict.NO_INPUT, "reason": "none runs"}, ShippingAnswer.UNKNOWN, "no input: none runs"),
        (
            {"verdict": Verdict.PASS_PARTIAL, "placement": partly(2, 406)},
            ShippingAnswer.NOT,
            "too little: it computes 2/408 nodes, the CPU provider the others",
        ),
        ({"weak_golden": "only zeros"}, ShippingAnswer.UNKNOWN, "weak golden: only zeros"),
        (
            {"agreement": (Agreement(output="y", kind="top1", same=30, of=40),)},
            ShippingAnswer.NOT,
            "y: top-1 the same in 30 of 40",
        ),
    ],
)
def test_what_is_not_shipped_has_a_reason(
    fields: dict[str, Any], answer: ShippingAnswer, because: str
) -> None:
    found = row("npu", choice("npu", **fields))
    assert (found.answer, found.because) == (answer, because)


def test_a_simulator_says_nothing_about_a_device_but_its_wrong_answers_count() -> None:
    found = answers(choice("npu", 0.1, 0.1), choice("cpu", 4.0, 4.0), simulated={"npu": "SwiftShader"})
    assert [(one.target, one.answer, one.is_fastest) for one in found.rows] == [
        ("cpu", ShippingAnswer.SHIP, True),
        ("npu", ShippingAnswer.UNKNOWN, False),
    ]
    assert "SwiftShader" in found.rows[1].because
    wrong = choice("npu", verdict=Verdict.MISMATCH, reason="off")
    assert row("npu", wrong, simulated={"npu": "SwiftShader"}).answer is ShippingAnswer.NOT


def test_what_is_slower_than_the_cpu_gains_nothing() -> None:
    found = row("npu", choice("npu", 9.0, 9.1), choice("cpu", 3.0, 3.1))
    assert (found.answer, found.because) == (ShippingAnswer.NOT, "slower: 3 times the time of cpu")


@pytest.mark.parametrize(
    ("npu", "cpu", "answer"),
    [
        # In turns, twice as slow each time: no neighbour of all rounds explains it.
        (((24.0, 25.0), True), ((3.0, 3.1), False), ShippingAnswer.NOT),
        (((24.0, 25.0), True), ((3.0, 3.1), True), ShippingAnswer.NOT),
        # What is disturbed may be quicker than it looks.
        (((4.0, 4.1), True), ((3.0, 3.1), False), ShippingAnswer.UNKNOWN),
        (((24.0,), True), ((3.0,), False), ShippingAnswer.UNKNOWN),
        (((24.0,), True), ((3.0,), True), ShippingAnswer.UNKNOWN),
        (((3.0,), False), ((3.1,), True), ShippingAnswer.UNKNOWN),
        # The CPU provider would be quicker still without the disturbance.
        (((24.0,), False), ((3.0,), True), ShippingAnswer.NOT),
        # No slower, though something disturbed it.
        (((3.0,), True), ((3.1,), False), ShippingAnswer.SHIP),
        (((1.0, 1.1), True), ((3.0, 3.1), True), ShippingAnswer.SHIP),
    ],
)
def test_a_disturbed_time_never_makes_a_slower_provider_worth_shipping(
    npu: tuple[tuple[float, ...], bool], cpu: tuple[tuple[float, ...], bool], answer: ShippingAnswer
) -> None:
    pair = (choice(name, *ms, disturbed=busy) for name, (ms, busy) in (("npu", npu), ("cpu", cpu)))
    found = row("npu", *pair)
    assert found.answer is answer
    if answer is ShippingAnswer.UNKNOWN:
        assert found.because.startswith("the machine was too busy to tell if it is slower: ")
        assert found.because.endswith(" times the time of cpu")


def test_within_noise_and_without_reliable_times_none_is_the_fastest() -> None:
    equal = answers(choice("npu", 3.0, 3.1), choice("cpu", 3.05, 3.2))
    assert equal.speed == "equally fast within noise: cpu, npu"
    busy = answers(choice("npu", 1.0, 1.0, disturbed=True), choice("cpu", 1.2, 1.2))
    assert "other programs" in busy.speed
    untimed = answers(choice("npu"), choice("cpu"))
    assert untimed.speed == "not timed"
    for found in (equal, busy, untimed):
        assert [(one.answer, one.is_fastest) for one in found.rows] == [(ShippingAnswer.SHIP, False)] * 2


def test_other_ways_to_use_a_session_are_another_question() -> None:
    bound = choice("npu", verdict=Verdict.CRASH, axes={"scenario": "io_binding"})
    assert row("npu", choice("npu"), bound).answer is ShippingAnswer.SHIP


def test_the_share_on_the_ep_is_read_in_one_place() -> None:
    part = choice("npu", verdict=Verdict.PASS_PARTIAL, placement=partly(82, 2)).record
    assert (nodes_on_ep(part), is_the_cpus(part)) == ("82/84", False)
    assert share_on_ep(part.placement) == pytest.approx(82 / 84)
    assert share_on_ep(choice("npu").record.placement) is None
    assert nodes_on_ep(choice("npu", placement=partly(84, 0)).record) == ""


def test_bits_are_those_of_the_worst_output() -> None:
    outputs = tuple(
        OutputMetrics(name="y", dtype="float32", shape=(1,), delivered_bits=bits)
        for bits in (None, 21.0, 9.5)
    )
    assert row("npu", choice("npu", outputs=outputs)).bits == 9.5
