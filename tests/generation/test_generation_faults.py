"""Planted faults of decoders: each spoils its models, and is found with the place that it foretells."""

from pathlib import Path
from typing import Any

import msgspec
import onnx
import pytest

from benchmarks.generation.faults import AFTER, FAULTS, Fault
from benchmarks.generation.page import HEADING, section, section_of, with_section
from benchmarks.generation.plant import spoilt
from benchmarks.generation.rows import Healthy, Row, elsewhere_of, healthy_of, named, records_of, rows_of
from benchmarks.generation.run import HEALTHY, matrix, run
from harness.annex.made.decoders.roster import build, decoder_names

ort: Any = pytest.importorskip("onnxruntime")

UPSTREAM = {
    "onnxruntime-genai #2291",
    "onnxruntime #27079",
    "onnxruntime #29739",
    "onnxruntime #28195",
    "transformers.js #1728",
    "onnxruntime-genai #1110",
}
PLANTED = [(name, model) for name, fault in FAULTS.items() if fault.plant for model in fault.models]


def test_there_are_many_kinds_and_the_failures_in_products_among_them() -> None:
    assert len(FAULTS) >= 40
    assert {fault.upstream for fault in FAULTS.values()} - {""} == UPSTREAM
    for fault in FAULTS.values():
        assert set(fault.models) <= set(decoder_names())
        assert (fault.plant is None) != (fault.use is None)
        assert len(fault.what) > 10


@pytest.mark.real_ep
@pytest.mark.parametrize(("name", "model"), PLANTED)
def test_a_fault_changes_the_model_and_the_result_can_be_run(name: str, model: str) -> None:
    g = build(model)
    healthy = g.model(model)
    wrong = spoilt(healthy, name)
    assert wrong is not None
    assert wrong.SerializeToString() != healthy.SerializeToString()
    assert build(model).model(model) == healthy
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    made = ort.InferenceSession(wrong.SerializeToString(), options, providers=["CPUExecutionProvider"])
    made.run(None, g.inputs)


def test_a_model_that_is_no_decoder_is_left_alone() -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    port = onnx.helper.make_tensor_value_info("x", 1, [1])
    result = onnx.helper.make_tensor_value_info("y", 1, [1])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [port], [result]))
    assert spoilt(model, "rotary-base") is None


def record(family: str, ways: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"family": family, "generation": {"ways": ways, **more}, "reason": "why"}


def bad(way: str, position: int, cache: str) -> dict[str, Any]:
    return {"way": way, "first_bad": position + 1, "cache_from": position, "first_cache": cache}


@pytest.mark.parametrize(
    ("ways", "right"),
    [
        ([{"way": "at_once"}, bad("step", 32, "present.0.key")], True),
        ([bad("step", 32, "present.1.key")], False),
        ([bad("step", 31, "present.0.key")], False),
        ([bad("chunks", 32, "present.0.key")], False),
        ([{"way": "step"}], False),
        ([], False),
    ],
)
def test_a_place_is_named_if_it_is_the_foretold_one(ways: list[dict[str, Any]], *, right: bool) -> None:
    fault = Fault(name="f", what="w", models=("m",), layer=0, since={"step": 32})
    assert named(fault, record("failed", ways)) is right


def test_behind_the_last_layer_no_cache_is_named() -> None:
    fault = Fault(name="f", what="w", models=("m",), layer=AFTER)
    assert named(fault, record("failed", [{"way": "step", "first_bad": 0}]))
    ways = [bad("step", 0, "present_key_self_1")]
    assert not named(fault, record("failed", ways))
    assert named(Fault(name="f", what="w", models=("m",)), record("failed", ways)) is None


def test_the_section_replaces_the_one_of_before() -> None:
    rows = [
        Row(
            fault="rotary-base", model="gqa-h64", found=True, named=True, once=True, text=False, reason="a; b"
        ),
        Row(
            fault="tokens-doubled",
            model="gqa-h64",
            found=False,
            named=False,
            once=False,
            text=True,
            reason="c",
        ),
    ]
    text = section(rows, [Healthy(cell="c", accused=False, reason="")])
    assert "| generate | 50.0% (1 of 2) |" in text
    assert "* `tokens-doubled` in `gqa-h64`" in text
    once = with_section("# Page\n\nwords\n", text)
    assert with_section(once, text) == once
    assert section_of(once) == text.rstrip() + "\n"
    assert once.count(HEADING) == 1


def test_false_alarms_are_failures_that_no_fault_of_the_ep_explains() -> None:
    def cell(
        target: str, family: str, verdict: str, *, expected: bool = True, ways: int = 2
    ) -> dict[str, Any]:
        told = {"family": family, "verdict": verdict, "expected": expected, "target": target}
        return told | {"generation": {"ways": [{}] * ways}}

    records = [
        *[cell("gpu", "passed", "pass")] * 7,
        cell("gpu", "failed", "mismatch"),
        cell("gpu", "failed", "mismatch", expected=False),
        cell("gpu", "untested", "fallback"),
        cell("cpu", "passed", "pass"),
    ]
    cpu, gpu = elsewhere_of(records)
    assert (cpu.cells, cpu.ways, cpu.expected, cpu.accused, cpu.left_out) == (1, 2, 0, 0, {})
    assert (gpu.cells, gpu.ways, gpu.expected, gpu.accused) == (9, 16, 1, 1)
    assert gpu.left_out == {"fallback": 1}
    planned = ["generate/a[gpu,scenario=generate]", "generate/b[npu,scenario=generate]"]
    assert [one.left_out for one in elsewhere_of(records, planned)] == [
        {},
        {"fallback": 1, "not_run": 1},
        {"not_run": 1},
    ]
    row = Row(
        fault="rotary-base", model="gqa-h64", found=True, named=True, once=True, text=False, reason="a; b"
    )
    text = section([row], [Healthy(cell="c", accused=False, reason="")], [cpu, gpu])
    assert "| `gpu` | 9 | 16 | 1 | 12.5% (1 of 8) | 1 `fallback` |" in text
    assert "Of all of these, 10.0% (1 of 10) are false alarms." in text
    assert "possible at 95 %" not in text
    healthy = [Healthy(cell="c", accused=False, reason="", ways=12)] * 30
    text = section([row], healthy, [cpu])
    assert "None in 31 cells leaves a rate of\nup to 9.2% possible at 95 %; the 362 ways" in text


@pytest.mark.real_ep
def test_a_run_finds_faults_of_model_and_of_use_with_their_places(tmp_path: Path) -> None:
    chosen = [FAULTS[name] for name in ("position-one-later-in-decode", "tokens-doubled")]
    only = [msgspec.structs.replace(one, models=one.models[:1]) for one in chosen]
    text = matrix(only, healthy=True)
    assert text.count("[[target]]") == 2 + text.count(f'name = "{HEALTHY}')
    records = records_of(run(tmp_path, only, healthy=False))
    assert {one["axes"]["scenario"] for one in records} == {"plain", "generate"}
    found = {one["target"]: one for one in records if one["axes"]["scenario"] == "generate"}
    for fault in only:
        assert found[fault.name]["family"] == "failed", found[fault.name].get("reason")
        assert named(fault, found[fault.name])
    assert healthy_of(records) == []
    assert list(rows_of(records)) == []  # without healthy runs there is no text to compare with
