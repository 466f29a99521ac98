"""Checks of errors: an error in a job becomes its result, and the next job is served."""

from collections.abc import Callable

import numpy as np

from harness.annex.agent_check.bench import Bench, JobReply, NamedInputs
from harness.annex.agent_check.check_group import CheckGroup
from harness.annex.agent_check.early_ends import FaultError
from harness.annex.agent_check.jobs import X, negate
from harness.core.values.value import tensor
from harness.engine.processes.messages import Completed, NotFed, ScenarioRefused

ERRORS = CheckGroup("errors")


def _must_fail(answer: JobReply, *phases: str) -> None:
    result = answer.result
    if isinstance(result, Completed):
        raise FaultError("accepted", "it answered as if nothing had happened")
    if isinstance(result, NotFed | ScenarioRefused):
        return
    if result.phase not in phases:
        raise FaultError("error", f"the error is in phase {result.phase}, not {' or '.join(phases)}")
    if not result.message.strip() or not result.kind.strip():
        raise FaultError("error", "the error has no message, or no kind")


def _fails(model: str, inputs: NamedInputs, *phases: str) -> Callable[[Bench], None]:
    return lambda bench: _must_fail(bench.ask(bench.path(model), inputs), *phases)


@ERRORS.check("a model that does not exist")
def _missing_model(bench: Bench) -> None:
    bench.declines("paths")
    _must_fail(bench.ask(bench.setup.folder / "no such model.onnx", {"x": X}), "create")


@ERRORS.check("a model that is none")
def _garbage_model(bench: Bench) -> None:
    _must_fail(bench.ask(bench.path("garbage", b"no model" * 100), {"x": X}), "create")


ERRORS.add("an operator that does not exist", _fails("unknown", {"x": X}, "create"))
ERRORS.add("an input of a wrong shape", _fails("two", {"x": tensor(np.ones((2, 2), np.float32))}, "run"))
ERRORS.add("an input of a wrong type", _fails("two", {"x": tensor(np.ones(2, np.int64))}, "run"))
ERRORS.add("an input that is missing", _fails("subtracted", {"p": X}, "run"))
ERRORS.add("an input that the model does not have", _fails("two", {"x": X, "z": X}, "run", "create"))
ERRORS.add("after all these errors the next job is right", negate)
