"""Options that should change what is computed: whether they did, and which cells can tell."""

import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.records.cell import Cell
from harness.core.records.cell_end import CellEnd
from harness.core.records.facts import Facts, OptionEffect
from harness.core.records.record import Record
from harness.core.records.variant_use import VariantUse
from harness.core.records.verdict import Verdict
from harness.core.values.value import Map, Sequence, Value, tensor
from harness.core.verdicts.decide import decide
from harness.engine.steps.effects import (
    NO_ANSWER,
    Doubt,
    Effects,
    baseline_of,
    can_tell,
    outputs_digest,
    with_effect,
)
from harness.engine.tasks.configuration import Configuration
from harness.engine.tasks.events import Event
from harness.engine.tasks.outcome import Ran
from harness.engine.tasks.task import BaselineTask, Task
from harness.engine.workers.queues import Queues
from harness.plan.plan import Plan
from harness.plan.target import Runtime
from tests.kit import (
    fake_target,
    of_folder,
    placement_of,
    plan_of,
    records_of,
    run_matrix,
    start_engine,
    write_model,
)

CUDA = "CUDAExecutionProvider"
OPENVINO = {"provider": "OpenVINOExecutionProvider", "plugin": "onnxruntime_ep_openvino"}

posix = pytest.mark.skipif(os.name != "posix", reason="the fake is for POSIX systems")


def plan_for(*targets: dict[str, Any]) -> Plan:
    named = [{"name": f"t{number}", **target} for number, target in enumerate(targets)]
    table = {"schema": 1, "models": {"suites": ["s"]}, "target": named}
    return plan_of(table, {"s": ["m"]})


def doubts(**target: Any) -> list[tuple[str, ...] | None]:
    plan = plan_for({"provider": CUDA, **target})
    found = [Effects(plan).doubt(cell) for cell in plan.cells]
    return [doubt.options if doubt else None for doubt in found]


def ran(value: Value, **fields: Any) -> Ran:
    ops = fields.pop("ops", {"Exp": 1})
    placed = placement_of(ops, ep_nodes=fields.pop("nodes", 1), source="profile")
    return Ran(outputs=((("y", value),),), placement=placed, timings_ms={}, **fields)


def measured(dtype: str = "float32", error: float | None = 1e-7) -> Facts:
    return Facts(outputs=(OutputMetrics(name="y", dtype=dtype, shape=(4,), max_abs=error),))


ONE = tensor(np.ones(4, np.float32))

# --- which options ---


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ({}, [None]),
        ({"options": {"device_id": 0}}, [None]),
        ({"options": {"use_tf32": 0}}, [("use_tf32",)]),
        # What holds anyhow is no wish for anything else.
        ({"options": {"use_tf32": True}}, [None]),
        ({"axes": {"option.use_tf32": ["1", "0"]}}, [None, ("use_tf32",)]),
        ({"axes": {"precision": ["fp32", "ep:tf32", "ep:fp32-strict"]}}, [None, None, ("use_tf32",)]),
        # CUDA refuses what it does not know, OpenVINO does not.
        ({"options": {"x": 1}, "unchecked_options": True}, [None]),
        ({**OPENVINO, "options": {"x": 1}, "unchecked_options": True}, [("x",)]),
        ({**OPENVINO, "options": {"load_config": "{}"}}, [None]),
        ({**OPENVINO, "axes": {"precision": ["ep:f32", "ep:bf16"]}}, [None, ("ep:bf16",)]),
        ({"provider": "AcmeExecutionProvider", "plugin": "acme", "options": {"x": 1}}, [None]),
    ],
)
def test_which_options_should_change_what_is_computed(
    target: dict[str, Any], options: list[tuple[str, ...] | None]
) -> None:
    assert doubts(**target) == options


def test_of_an_unknown_provider_the_options_that_a_package_brings_are_in_question() -> None:
    plan = plan_for({"provider": "AcmeExecutionProvider", "plugin": "acme", "options": {"a": 1, "b": 2}})
    (cell,) = plan.cells
    uses = {"s": {"m": VariantUse(options={"b": "2"}), "n": VariantUse()}}
    doubt = Effects(plan, uses=uses).doubt(cell)
    assert doubt is not None
    assert doubt.options == ("b",)
    assert doubt.without.options == (("a", "1"),)
    assert Effects(plan, uses=uses).doubt(msgspec.structs.replace(cell, model="n")) is None
    assert Effects(plan).doubt(cell) is None


def test_the_baseline_lacks_these_options_and_nothing_else() -> None:
    target = {"provider": CUDA, "options": {"use_tf32": 0, "device_id": 1}, "env": {"A": "1"}}
    plan = plan_for(target)
    doubt = Effects(plan).doubt(plan.cells[0])
    assert doubt is not None
    assert doubt.without == Configuration(
        runtime=Runtime(), env=(("A", "1"),), providers=(CUDA,), options=(("device_id", "1"),)
    )


def test_a_mode_is_left_out_as_a_whole() -> None:
    options = {"load_config": '{"CPU": {"NUM_STREAMS": "1"}}', "x": "1"}
    axes = {"precision": ["ep:bf16"]}
    plan = plan_for({**OPENVINO, "options": options, "unchecked_options": True, "axes": axes})
    doubt = Effects(plan).doubt(plan.cells[0])
    assert doubt is not None
    assert doubt.options == ("ep:bf16", "x")
    assert doubt.without.options == (("load_config", '{"CPU": {"NUM_STREAMS": "1"}}'),)


def test_a_target_without_the_options_serves_as_the_baseline() -> None:
    plan = plan_for({"provider": CUDA}, {"provider": CUDA, "options": {"use_tf32": 0}}, {"provider": CUDA})
    effects = Effects(plan)
    plain, changed, also_plain = plan.cells
    doubt = effects.doubt(changed)
    assert doubt is not None
    wanted = baseline_of(doubt.without, changed)
    assert effects.serves(plain) == effects.serves(also_plain) == wanted
    assert effects.serves(changed) is None
    effects.expect(plain)
    assert effects.is_coming(wanted)
    effects.keep(wanted, ran(ONE))
    assert not effects.is_coming(wanted)
    assert effects.digest(wanted) == outputs_digest(ran(ONE))


def test_other_session_settings_are_another_baseline() -> None:
    plan = plan_for(
        {"provider": CUDA, "options": {"use_tf32": 0}, "axes": {"graph_optimization": ["all", "basic"]}}
    )
    effects = Effects(plan)

    def baseline(cell: Cell) -> object:
        doubt = effects.doubt(cell)
        assert doubt is not None
        return baseline_of(doubt.without, cell)

    assert len({baseline(cell) for cell in plan.cells}) == 2


# --- which cells can tell ---


@pytest.mark.parametrize(
    ("facts", "verdict", "outcome", "tells"),
    [
        (measured(), Verdict.PASS, ran(ONE), True),
        (measured(), Verdict.MISMATCH, ran(ONE), True),
        (measured(), Verdict.REFERENCE_DISPUTED, ran(ONE), False),
        (measured(), Verdict.FALLBACK, ran(ONE, nodes=0), False),
        (measured(error=0.0), Verdict.PASS, ran(ONE), False),
        (measured(error=None), Verdict.PASS, ran(ONE), False),
        # Sums of products round, even where the golden has been rounded in the same way.
        (measured(error=0.0), Verdict.PASS, ran(ONE, ops={"MatMul": 1}), True),
        (measured(dtype="int8", error=1.0), Verdict.PASS, ran(ONE), False),
        (measured(dtype="int32", error=0.0), Verdict.PASS, ran(ONE, ops={"MatMul": 1}), False),
        (measured(), Verdict.PASS, ran(ONE, second=(("y", ONE),)), False),
    ],
)
def test_which_cells_can_tell(facts: Facts, verdict: Verdict, outcome: Ran, tells: bool) -> None:  # noqa: FBT001
    assert can_tell(facts, verdict, outcome) is tells


def test_bit_identical_outputs_are_no_effect() -> None:
    doubt = Doubt(options=("use_tf32",), without=Configuration(runtime=Runtime()))
    ones, zeros = (outputs_digest(ran(value)) for value in (ONE, tensor(np.zeros(4, np.float32))))
    same = with_effect(measured(), doubt, ones, ones)
    assert same.effect == OptionEffect(options=("use_tf32",), seen=False)
    other = with_effect(measured(), doubt, ones, zeros)
    assert other.effect == OptionEffect(options=("use_tf32",), seen=True)
    assert with_effect(measured(), doubt, ones, NO_ANSWER) == measured()


@pytest.mark.parametrize(("option", "reason"), [("use_tf32", ""), ("o" * 500, "x" * 1000)])
def test_a_reason_ends_with_the_note_that_no_effect_was_seen(option: str, reason: str) -> None:
    facts = Facts(
        ended=CellEnd(how="declared", message=reason), effect=OptionEffect(options=(option,), seen=False)
    )
    told = decide(facts, Policy()).reason
    assert "no effect seen: the outputs are bit-identical without" in told
    assert len(told) <= 300


def test_every_bit_counts() -> None:
    signed = tensor(np.array([0.0, -0.0], np.float32))
    values: list[Value] = [
        tensor(np.zeros(2, np.float32)),
        signed,
        tensor(np.zeros((2, 1), np.float32)),
        tensor(np.zeros(1, np.float64)),
        tensor(np.array(["a", "b"])),
        tensor(np.array(["ab"])),
        Sequence(items=(signed,)),
        Sequence(items=(signed, signed)),
        Map(keys=tensor(np.array([1])), values=signed),
        None,
    ]
    digests = [outputs_digest(ran(value)) for value in values]
    assert len(set(digests)) == len(values)
    assert digests == [outputs_digest(ran(value)) for value in values]


# --- in a run ---


def records(events: list[Event], name: str) -> list[Record]:
    found = [record for record in records_of(events) if record.target == name]
    return sorted(found, key=lambda record: record.model)


@posix
def test_a_run_tells_which_options_had_an_effect(tmp_path: Path) -> None:
    for stem in ("1_rounds", "2_rounds", "3_exact", "4_segv_in_run"):
        write_model(tmp_path / "models" / f"{stem}.onnx")
    strict = {"options": {"use_tf32": 0}}
    targets = [
        fake_target("hears", **strict, timeouts_s={"run": 20}),
        fake_target("deaf", **strict, env={"FAKE_DEAF": "1"}),
        fake_target("plain", options={"device_id": 0}),
    ]
    matrix = of_folder(*targets, tolerance=[{"rtol": 0.1, "atol": 0.1}])
    events = run_matrix(tmp_path, matrix, processes=2)
    for name, seen in (("hears", True), ("deaf", False)):
        first, second, exact, crashed = records(events, name)
        for record in (first, second):
            assert record.verdict is Verdict.PASS, record
            assert record.effect == OptionEffect(options=("use_tf32",), seen=seen)
            assert ("no effect seen" in record.reason) is not seen
        assert (exact.verdict, exact.effect) == (Verdict.PASS, None)
        assert (crashed.verdict, crashed.effect) == (Verdict.CRASH, None)
    assert all(record.effect is None for record in records(events, "plain"))


@posix
@pytest.mark.parametrize("plain_first", [True, False])
def test_a_target_of_the_plan_is_not_run_twice(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plain_first: bool,  # noqa: FBT001
) -> None:
    put, queued = Queues.put, []

    def watched(queues: Queues, task: Task) -> None:
        queued.append(task)
        put(queues, task)

    monkeypatch.setattr(Queues, "put", watched)
    for number in range(4):
        write_model(tmp_path / "models" / f"{number}_rounds.onnx")
    targets = [fake_target("plain"), fake_target("strict", options={"use_tf32": 0})]
    chosen = targets if plain_first else targets[::-1]
    engine = start_engine(tmp_path, of_folder(*chosen), processes=1)
    events = list(engine.events())
    assert [record.effect and record.effect.seen for record in records(events, "strict")] == [True] * 4
    assert not [task for task in queued if isinstance(task, BaselineTask)]


@posix
def test_a_baseline_that_crashes_leaves_the_question_open(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "1_frail.onnx")
    write_model(tmp_path / "models" / "2_rounds.onnx")
    only = fake_target("strict", options={"use_tf32": 0})
    matrix = of_folder(only, tolerance=[{"rtol": 0.1, "atol": 0.1}])
    events = run_matrix(tmp_path, matrix, processes=1)
    frail, sound = records(events, "strict")
    assert (frail.verdict, frail.effect) == (Verdict.PASS, None)
    assert sound.effect is not None


@posix
def test_a_flaky_cell_keeps_its_first_verdict_and_ends(tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "1_stumble_in_run.onnx")
    env = {"FAKE_MARKER": str(tmp_path / "marker")}
    only = fake_target("strict", options={"use_tf32": 0}, retries=2, env=env)
    events = run_matrix(tmp_path, of_folder(only))
    (record,) = records(events, "strict")
    assert (record.verdict, record.retries) == (Verdict.ERROR, (Verdict.PASS,))
