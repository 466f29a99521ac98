"""Every scenario on every real execution provider that is usable here, and what each makes of it."""

import tomllib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness.core.records.record import Record
from harness.core.records.scenario import DYNAMIC_OPTIONS, PLAIN, SCENARIOS
from harness.core.records.verdict import Family, Phase, Verdict
from harness.data_files import data_root
from harness.engine.engine import Engine
from harness.engine.prepare import open_suites
from harness.plan.expand import expand
from tests.kit import make_matrix, records_of

pytestmark = pytest.mark.real_ep

HEAD = '<ir_version: 9, opset_import: ["" : 17]> agraph '
BODY = "{ a = MatMul(x, w) b = Relu(a) y = Softmax(b) }"
MODELS = {
    "static": f"(float[4, 16] x) => (float[4, 40] y) {BODY}",
    "free": f"(float[batch, 16] x) => (float[batch, 40] y) {BODY}",
    "product": "(float[batch, 16] x) => (float[batch, 40] y) { y = MatMul(x, w) }",
    "adapted": "(float[4, 16] x) => (float[4, 16] y) { a = MatMul(x, w) y = MatMul(a, v) }",
    "pair": "(float[4, 16] x) => (float[4, 40] y, float[4, 40] z) { y = MatMul(x, w) z = Relu(y) }",
}
FITS = {
    "dynamic_shapes": "product",
    "zero_size": "product",
    "free_dimensions": "free",
    "batch_slots": "product",
    "adapters": "adapted",
    "separate_outputs": "pair",
}
"""Scenario -> the model that it applies to, if that is not ``static``."""
LIFECYCLE = "lifecycle"
"""It is about the library, so one model will do."""
TARGETS = {"cpu", "openvino-f32", "qnn-htp", "webgpu-swiftshader"}

PLAYED = [name for name in SCENARIOS if name != "compile"]
"""It starts nine processes for each model: ``test_qnn_compiles_in_every_way``."""

Of = Callable[..., Record]


def models_of(scenario: str) -> set[str]:
    """Return the models that run in a scenario."""
    if scenario == LIFECYCLE:
        return {"static"}
    return set(MODELS) if scenario == "adapters" else set(MODELS) - {"adapted"}


def targets_in(home: Path, names: Collection[str]) -> list[dict[str, Any]]:
    """Targets of the local matrix."""
    local = tomllib.loads((data_root() / "matrices" / "local.toml").read_text(encoding="utf-8"))
    targets: list[dict[str, Any]] = [one for one in local["target"] if one["name"] in names]
    for target in targets:
        # Drivers of display servers look there; a runner may have none.
        target["env"] = {"XDG_RUNTIME_DIR": str(home), **target.get("env", {})}
    return targets


def run(table: dict[str, Any], home: Path, model: str | None = None) -> list[Record]:
    """The records of a matrix, or of one of its models."""
    matrix = make_matrix(table, home / "scenarios.toml")
    suites = open_suites(matrix)
    plan = expand(matrix, {name: suite.models() for name, suite in suites.items()})
    engine = Engine(plan, suites)
    engine.submit([cell for cell in plan.cells if model in {None, cell.model}])
    engine.drain()
    found = records_of(engine.events())
    engine.close()
    return found


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> dict[tuple[str, str, str], Record]:
    assert own_cache
    home = tmp_path_factory.mktemp("scenarios")
    weight = np.random.default_rng(0).standard_normal((16, 40)).astype(np.float32)
    (home / "models").mkdir()
    for name, graph in MODELS.items():
        model = onnx.parser.parse_model(HEAD + graph)
        model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
        if name == "adapted":
            model.graph.initializer.append(numpy_helper.from_array(weight.T.copy(), "v"))
        onnx.save(model, home / "models" / f"{name}.onnx")
    table = {
        "schema": 1,
        "models": {"folders": ["models"], "dimensions": {"batch": 3}},
        "axes": {"scenario": PLAYED},
        "scenarios": {
            "concurrent": {"threads": 3, "runs": 4},
            "lifecycle": {"rounds": 2},
            "sessions": {"count": 4},
        },
        "exclude": [
            {"scenario": name, "model": [f"models/{one}.onnx" for one in MODELS.keys() - models_of(name)]}
            for name in PLAYED
            if MODELS.keys() - models_of(name)
        ],
        "target": targets_in(home, TARGETS),
    }
    found = run(table, home)
    assert len(found) == sum(len(models_of(name)) for name in PLAYED) * len(TARGETS)
    return {
        (one.target, one.model.removesuffix(".onnx"), one.axes.get("scenario", PLAIN)): one for one in found
    }


@pytest.fixture(scope="module")
def of(records: dict[tuple[str, str, str], Record], require: Callable[[str, str], None]) -> Of:
    """The record of a target, a scenario and a model; skips where the target is not usable here."""

    def record(target: str, scenario: str, model: str = "static") -> Record:
        one = records[target, model, scenario]
        require(one.provider, one.reason if one.verdict is Verdict.UNAVAILABLE else "")
        return one

    return record


@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("scenario", PLAYED)
def test_no_scenario_is_a_failure_of_the_harness(of: Of, target: str, scenario: str) -> None:
    if (target, scenario) == ("webgpu-swiftshader", LIFECYCLE):
        return  # a fault of its own: see below
    for model in models_of(scenario):
        one = of(target, scenario, model)
        known = (scenario, model) == ("zero_size", "free") or (target, scenario) == (
            "qnn-htp",
            DYNAMIC_OPTIONS,
        )
        if one.provider != "OpenVINOExecutionProvider" and not known:
            assert one.family in {Family.PASSED, Family.UNSUPPORTED, Family.UNTESTED, Family.SKIPPED}, one


OF_ANY_MODEL = [name for name in PLAYED if name not in {PLAIN, "generate", "package"}]
"""None of these models is a package, nor a decoder: ``test_a_decoder_generates_text_on_webgpu`` has one."""


@pytest.mark.parametrize("scenario", [name for name in OF_ANY_MODEL if name != DYNAMIC_OPTIONS])
def test_each_scenario_really_ran_on_an_accelerator(of: Of, scenario: str) -> None:
    """But for dynamic options: WebGPU has none, and QNN ends the process."""
    target = "qnn-htp" if scenario in {"ep_context", LIFECYCLE} else "webgpu-swiftshader"
    one = of(target, scenario, FITS.get(scenario, "static"))
    # The loop itself is onnxruntime's.
    wanted = Verdict.PASS_PARTIAL if scenario == "terminate" else Verdict.PASS
    assert one.verdict is wanted, one
    assert one.placement is not None
    assert one.placement.ep_nodes > 0


def test_a_second_registration_ends_webgpu(of: Of) -> None:
    """onnxruntime refuses it, but releases a second factory of the library, which takes its state along."""
    one = of("webgpu-swiftshader", LIFECYCLE)
    assert (one.verdict, one.cause) == (Verdict.CRASH, "SIGSEGV")
    assert one.reason == "the process of the scenario died at session, registered twice: SIGSEGV"
    assert one.scenario["rounds"] == 2


def test_an_option_that_ends_the_process_is_told(of: Of) -> None:
    one = of("qnn-htp", DYNAMIC_OPTIONS)
    assert (one.verdict, one.phase) == (Verdict.CRASH, Phase.RUN)
    assert of("webgpu-swiftshader", DYNAMIC_OPTIONS).verdict is Verdict.UNSUPPORTED


def test_a_loop_that_a_provider_takes_as_a_whole_goes_on(of: Of) -> None:
    one = of("openvino-f32", "terminate")
    assert one.verdict is Verdict.ERROR
    assert "the run went on to its end" in one.reason


def test_a_decoder_generates_text_on_webgpu(
    tmp_path: Path, own_cache: Path, require: Callable[[str, str], None]
) -> None:
    assert own_cache
    table = {
        "schema": 1,
        "models": {"suites": ["generate"]},
        "axes": {"scenario": ["generate"]},
        "scenarios": {"generate": {"ways": ["step", "chunks"], "length": 12, "new_tokens": 4}},
        "tolerance": [{"noise": {}}],
        "target": targets_in(tmp_path, {"webgpu-swiftshader"}),
    }
    (one,) = run(table, tmp_path, model="gqa-h64-nodes")
    require(one.provider, one.reason if one.verdict is Verdict.UNAVAILABLE else "")
    assert one.family is Family.PASSED, one
    assert one.generation is not None
    assert [way.way for way in one.generation.ways] == ["step", "chunks"]
    assert one.placement is not None
    assert one.placement.ep_nodes > 0


def test_an_error_says_which_shape_it_is_about(of: Of) -> None:
    one = of("webgpu-swiftshader", "zero_size", "free")
    assert (one.verdict, one.phase) == (Verdict.ERROR, Phase.RUN)
    assert one.reason.startswith("with batch=0: ")
    assert "Softmax" in one.reason


def test_webgpu_binds_buffers_of_its_own(of: Of) -> None:
    facts = of("webgpu-swiftshader", "io_binding").scenario
    assert (facts["inputs_on"], facts["outputs_on"]) == (("x: webgpu",), ("y: webgpu",))
    assert facts["on_device"] is True
    assert facts["equal_to_plain"] is True
    assert (facts["copies_to_device"], facts["copies_from_device"]) == (1, 1)
    assert (facts["bytes_to_device"], facts["bytes_from_device"]) == (4 * 4 * 16, 4 * 4 * 40)
    assert "reason" not in facts


@pytest.mark.parametrize("target", ["cpu", "qnn-htp"])
def test_who_has_no_memory_of_its_own_says_so(of: Of, target: str) -> None:
    facts = of(target, "io_binding").scenario
    assert facts["on_device"] is False
    assert facts["reason"]


def test_qnn_loads_in_a_fresh_process_what_it_has_compiled(of: Of) -> None:
    one = of("qnn-htp", "ep_context")
    assert one.placement is not None
    assert one.placement.ep_ops == {"EPContext": 1}
    assert one.scenario["equal_to_compiled"] is True
    for fact in ("create_cold_ms", "create_warm_ms", "context_bytes"):
        value = one.scenario[fact]
        assert isinstance(value, int | float)
        assert value > 0


@pytest.mark.long
def test_qnn_compiles_in_every_way(
    tmp_path: Path, own_cache: Path, require: Callable[[str, str], None]
) -> None:
    """QNN 2.7.0 crashes where an application asks whether the result fits; all before that is right."""
    assert own_cache
    (tmp_path / "models").mkdir()
    model = onnx.parser.parse_model(
        HEAD + "(float[4, 16] x) => (float[4, 16] y) { a = Neg(x) y = Add(a, x) }"
    )
    onnx.save(model, tmp_path / "models" / "model.onnx")
    targets = targets_in(tmp_path, {"qnn-htp"})
    table = {"schema": 1, "models": {"folders": ["models"]}, "axes": {"scenario": ["compile"]}}
    (one,) = run({**table, "target": targets}, tmp_path)
    require(one.provider, one.reason if one.verdict is Verdict.UNAVAILABLE else "")
    assert one.verdict is Verdict.PASS or "asking whether a compiled model fits" in one.reason, one
    assert len(one.scenario["ways"]) == len(one.scenario["load_ms"]) == 5  # type: ignore[arg-type]
    assert one.scenario["contexts"] == 1
    # It uses the experimental functions for them, which onnxruntime has up to 1.30.
    assert "does not support the registered EPContext data write callback" in str(one.scenario["callbacks"])
    assert "EPContext node generated by 'QNNExecutionProvider'" in str(one.scenario["without_ep"])


@pytest.mark.parametrize("target", ["cpu", "webgpu-swiftshader"])
def test_who_compiles_nothing_says_so(of: Of, target: str) -> None:
    one = of(target, "ep_context")
    assert one.verdict is Verdict.UNSUPPORTED
    assert one.reason == "no EPContext node was written: the provider runs 3 of 3 nodes, and compiles none"


def test_a_refusal_to_leave_nodes_to_the_cpu_is_told_in_onnxruntime_s_words(of: Of) -> None:
    # The simulator takes no dimension that is not known.
    one = of("qnn-htp", "cpu_fallback_disabled", "free")
    assert one.verdict is Verdict.UNSUPPORTED
    assert "fallback to CPU EP has been explicitly disabled" in one.reason
    assert of("qnn-htp", "cpu_fallback_disabled").verdict is Verdict.PASS


def test_fixed_dimensions_bring_nodes_to_an_ep_that_takes_no_free_ones(of: Of) -> None:
    assert of("qnn-htp", PLAIN, "free").family is not Family.PASSED
    one = of("qnn-htp", "free_dimensions", "free")
    assert one.verdict is Verdict.PASS
    assert one.placement is not None
    assert one.placement.cpu_nodes == 0
