"""What a check tells of a package that is right: variants that gain nothing, and options without effect."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.annex.pack.checking import PackageCheck
from harness.annex.pack.command_pack_screen import check_screen
from harness.annex.pack.package_remarks import idle_options, speed_remarks
from harness.core.records.facts import OptionEffect
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.corpus.packages.package_suite import open_package
from harness.plan.target import Target
from tests.kit import latency, record
from tests.small_packages import CPU, classifier, write_package

OPENVINO = "OpenVINOExecutionProvider"

Alone = Mapping[tuple[str, str], Record]


def tried(name: str, ms: float | None, target: str = "ov", **fields: Any) -> Record:
    provider = CPU if target == "cpu" else OPENVINO
    found = None if ms is None else latency(*[ms] * 3, waiting_threads=fields.pop("waiting", 0.0))
    return record(f"main/{name}", target=target, provider=provider, latency=found, **fields)


def alone(*records: Record) -> dict[tuple[str, str], Record]:
    return {(one.model, one.target): one for one in records}


def selection(chosen: str, target: str = "ov") -> Alone:
    one = record("main", target=target, axes={"scenario": "package"}, scenario={"chosen": chosen})
    return {("main", target): one}


def slower(records: Alone, selected: Alone, **simulated: str) -> dict[str, str]:
    return {one.model: one.told for one in speed_remarks(records, selected, simulated)}


def test_a_variant_that_is_slower_than_the_cpus_is_told_and_a_faster_one_is_not() -> None:
    found = slower(alone(tried("cpu", 2.0, "cpu"), tried("slow", 5.0), tried("fast", 1.0)), {})
    assert found == {"main/slow": "2.5 times the time of main/cpu"}


@pytest.mark.parametrize(
    "variant",
    [
        tried("slow", 2.2),  # within what two single measurements differ by
        tried("slow", None),
        tried("slow", 5.0, verdict=Verdict.MISMATCH),
    ],
)
def test_nothing_is_told_without_two_times_that_differ(variant: Record) -> None:
    assert slower(alone(tried("cpu", 2.0, "cpu"), variant), selection("slow")) == {}


def test_a_busy_machine_tells_nothing_for_sure() -> None:
    (told,) = slower(alone(tried("cpu", 2.0, "cpu"), tried("ov", 5.0, waiting=0.5)), {}).values()
    assert told.startswith("the machine was too busy to tell")


def test_a_simulators_time_is_not_compared() -> None:
    records = alone(tried("cpu", 2.0, "cpu"), tried("ov", 5.0), tried("two", 1.0))
    assert slower(records, selection("ov"), ov="a simulator") == {}


def test_a_selection_that_is_not_the_fastest_right_one_is_told() -> None:
    right = alone(tried("ov", 5.0), tried("int8", 2.0), tried("fp16", 3.0))
    assert slower(right, selection("ov")) == {"main": "it selects main/ov: 2.5 times the time of main/int8"}
    assert slower(right, selection("int8")) == {}
    wrong = alone(tried("ov", 5.0), tried("int8", 2.0, verdict=Verdict.MISMATCH))
    assert slower(wrong, selection("ov")) == {}


def test_an_option_without_effect_is_told_with_what_the_catalogue_says(tmp_path: Path) -> None:
    body: dict[str, Any] = {"ep": OPENVINO, "ort": {"provider_options": {"num_streams": "1"}}}
    suite = open_package(write_package(tmp_path / "p", {"ov": classifier(), "two": classifier()}, ov=body))
    target = Target(name="ov", provider=(OPENVINO,), plugin="onnxruntime_ep_openvino")
    effect = OptionEffect(options=("num_streams",), seen=False)
    of_target = OptionEffect(options=("of_the_target",), seen=False)
    records = alone(tried("ov", 1.0, effect=effect), tried("two", 1.0, effect=of_target))
    (told,) = idle_options(suite, {"ov": target}, records)
    assert told.model == "main/ov"
    assert "bit-identical without num_streams" in told.told
    assert "takes 'num_streams' only in the build" in told.told
    found = PackageCheck(variants=(), alone={}, selected={}, fingerprints={}, idle=(told,))
    screen = list(check_screen(found))
    assert any(line.startswith("no effect main/ov on ov: ") for line in screen)
