"""Checks of a job's settings, of scenarios, and of jobs that do something other than run a model."""

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.annex.agent_check.bench import Bench, JobReply, floats
from harness.annex.agent_check.bitwise import same
from harness.annex.agent_check.check_group import CheckGroup
from harness.annex.agent_check.early_ends import FaultError
from harness.annex.agent_check.generate_check import plays_text
from harness.annex.agent_check.jobs import X, Y, negate
from harness.core.records.scenario import (
    CAPTURE,
    DYNAMIC_OPTIONS,
    GENERATE,
    PACKAGE_SCENARIO,
    SCENARIOS,
    agent_module,
)
from harness.core.values.value import tensor
from harness.corpus.derived.looped_copy import ITERATIONS
from harness.engine.processes.messages import Completed, Failed, ScenarioRefused
from harness.plan.scenarios import Scenarios

_TWICE = 2

SETTING_CHECKS = CheckGroup("settings")
SCENARIO = CheckGroup("scenarios")
SPECIAL_JOBS = CheckGroup("special jobs")


def _with(**fields: object) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        bench.declines(*fields, *(f"{key}:{value}" for key, value in fields.items()))
        negate(bench, **fields)

    return run


for level in ("disabled", "basic", "extended", "layout", "all"):
    SETTING_CHECKS.add(f"graph_optimization {level}", _with(graph_optimization=level))
for mode in ("sequential", "parallel"):
    SETTING_CHECKS.add(f"execution_mode {mode}", _with(execution_mode=mode))
SETTING_CHECKS.add("intra_op_threads", _with(intra_op_threads=2))
SETTING_CHECKS.add("entries", _with(entries={"session.disable_prepacking": "1"}))


@SETTING_CHECKS.check("other runs the inputs in reverse")
def _runs_other(bench: Bench) -> None:
    bench.declines("other")
    answer = negate(bench, other=True)
    if answer.ran is None or answer.ran.other is None:
        raise FaultError("value", "there is no other, and it is not declined")
    same(answer.ran.other[0][1], floats(3.0, 2.0, 1.0), "other")


@SETTING_CHECKS.check("repeat compares many runs")
def _repeats(bench: Bench) -> None:
    bench.declines("repeat")
    found = negate(bench, repeat={"runs": 3, "sessions": 2, "bit_equal": True}).result.repeats
    if found is None or (found.runs, found.sessions, found.distinct) != (3, 2, 1):
        raise FaultError("form", f"repeats is {found}, not 3 runs in 2 sessions with 1 distinct answer")


@SETTING_CHECKS.check("a run that takes long is repeated, too")
def _repeats_long_runs(bench: Bench) -> None:
    bench.declines("repeat", "other")
    repeat = {"runs": 2, "sessions": 1, "bit_equal": False}
    answer = bench.ask(bench.path("slow"), {"x": floats(1.0, 2.0, 3.0)}, repeat=repeat, other=True)
    same(answer.output, floats(1.0, 2.0, 3.0))
    if answer.result.repeats is None or answer.result.repeats.runs != _TWICE:
        raise FaultError("form", f"repeats is {answer.result.repeats}, not two runs: its time does not count")
    if answer.ran is None or answer.ran.other is None:
        raise FaultError("form", "there is no other: whether it is run is no matter of time")
    same(answer.ran.other[0][1], floats(3.0, 2.0, 1.0), "other")


@SETTING_CHECKS.check("latency times the runs")
def _times_runs(bench: Bench) -> None:
    bench.declines("latency")
    if negate(bench, latency={"warm_up": 1, "repeats": 5, "budget_s": 10.0}).result.latency is None:
        raise FaultError("form", "there is no latency, and it is not declined")


@SETTING_CHECKS.check("an unknown key of a job makes it unsupported")
def _unknown_key(bench: Bench) -> None:
    if not isinstance(bench.ask(bench.path("negated"), {"x": X}, no_such_key=True).result, ScenarioRefused):
        raise FaultError("accepted", "it answered a job with a key that it does not know")


@SETTING_CHECKS.check("an unknown scenario is not run")
def _unknown_scenario(bench: Bench) -> None:
    fields = {"scenario": "no_such", "scenario_settings": {}}
    bench.send_job(bench.shared(), 1, bench.path("negated"), {"x": X}, **fields)
    if isinstance(bench.answer(bench.shared(), 1).result, Completed):
        raise FaultError("accepted", "it ran a scenario that does not exist")


_OWN_SETTINGS: dict[str, dict[str, Any]] = {
    CAPTURE: {"option": ["ep_harness_captures", "1"]},
    DYNAMIC_OPTIONS: {
        "options": [["ep.dynamic.workload_type", ["Default", "Efficient"]]],
        "documented": False,
        "unknown": "unconfirmed",
    },
}
"""Scenario -> settings that follow from the target; the CPU EP takes any option of this kind."""


def _in_loop(bench: Bench, fields: dict[str, Any]) -> JobReply:
    """Let the shared process compute the same in a loop, whose length is an input."""
    once = {"x": X, ITERATIONS: tensor(np.array(1, np.int64))}
    answer = bench.ask(bench.path("looped"), once, **fields)
    same(answer.output, Y)
    return answer


def _scenario(name: str) -> Callable[[Bench], None]:
    module = agent_module(name)

    def run(bench: Bench) -> None:
        bench.declines("scenario", f"scenario:{module}")
        settings = _OWN_SETTINGS.get(name, Scenarios().settings(name))
        fields = {"scenario": module, "scenario_settings": settings} if module else {}
        answer = _in_loop(bench, fields) if name == "terminate" else negate(bench, **fields)
        if SCENARIOS[name].other_session and not answer.result.scenario:
            raise FaultError("form", "the result has no facts about the scenario")

    return run


for scenario in SCENARIOS:
    if scenario == PACKAGE_SCENARIO:  # no agent has to read a package
        continue
    SCENARIO.add(f"scenario {scenario}", plays_text if scenario == GENERATE else _scenario(scenario))


@SPECIAL_JOBS.check("make converts a model, or says why not")
def _makes(bench: Bench) -> None:
    bench.declines("make", "make:fp16")
    result = bench.ask(bench.path("weighted"), {"x": floats(1, 2, 3, 4)}, make="fp16").result
    if isinstance(result, Completed) and result.made is None and result.declined is None:
        raise FaultError("form", "the result has neither made nor declined")
    if isinstance(result, Failed):
        raise FaultError("error", f"the conversion failed: {result.message}")


SPECIAL_JOBS.add("evaluate computes with onnx.reference, or says why not", _with(evaluate=True))


@SPECIAL_JOBS.check("form returns the optimized graph")
def _returns_graph(bench: Bench) -> None:
    bench.declines("form", "form:onnx")
    if not negate(bench, form="onnx").result.graph:
        raise FaultError("form", "there is no graph, and form is not declined")


@SPECIAL_JOBS.check("declined features are refused on request")
def _asked_anyway(bench: Bench) -> None:
    """Ask for each declined setting of a job: the agent must not answer as if it supported it."""
    settings: dict[str, dict[str, Any]] = {"scenario": {"scenario_settings": {}}}
    for name in bench.greeting.declines if bench.greeting else {}:
        key, _, value = name.partition(":")
        if key not in {"scenario", "graph_optimization", "execution_mode", "make", "form"} or not value:
            continue
        answer = bench.ask(bench.path("negated"), {"x": X}, **{key: value}, **settings.get(key, {}))
        if isinstance(answer.result, Completed):
            raise FaultError("accepted", f"it declines {name}, and answers a job that asks for it")
