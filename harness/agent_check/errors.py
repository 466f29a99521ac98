"""Checks of errors: what is wrong with a job becomes its result, and the next job is served."""

import numpy as np

from harness.agent_check import models
from harness.agent_check.bench import Answer, Bench
from harness.agent_check.check import FaultError, Group
from harness.agent_check.jobs import X, negate
from harness.core.value import tensor
from harness.engine.messages import Completed, NotFed, Refused

ERRORS = Group("errors")


def _must_fail(answer: Answer, *phases: str) -> None:
    result = answer.result
    if isinstance(result, Completed):
        raise FaultError("accepted", "it answered as if nothing had happened")
    if isinstance(result, NotFed | Refused):
        return
    if result.phase not in phases:
        raise FaultError("error", f"the error is in phase {result.phase}, not {' or '.join(phases)}")
    if not result.message.strip() or not result.kind.strip():
        raise FaultError("error", "the error has no message, or no kind")


@ERRORS.check("a model that does not exist")
def _missing_model(bench: Bench) -> None:
    bench.declines("paths")
    _must_fail(bench.ask(bench.setup.folder / "no such model.onnx", {"x": X}), "create")


@ERRORS.check("a model that is none")
def _garbage_model(bench: Bench) -> None:
    _must_fail(bench.ask(bench.path("garbage", b"no model" * 100), {"x": X}), "create")


@ERRORS.check("an operator that does not exist")
def _unknown_operator(bench: Bench) -> None:
    _must_fail(bench.ask(bench.path("unknown", models.unknown_operator()), {"x": X}), "create")


@ERRORS.check("an input of a wrong shape")
def _wrong_shape(bench: Bench) -> None:
    matrix = tensor(np.ones((2, 2), np.float32))
    _must_fail(bench.ask(bench.path("two", models.two_outputs()), {"x": matrix}), "run")


@ERRORS.check("an input of a wrong type")
def _wrong_type(bench: Bench) -> None:
    whole = tensor(np.ones(2, np.int64))
    _must_fail(bench.ask(bench.path("two", models.two_outputs()), {"x": whole}), "run")


@ERRORS.check("an input that is missing")
def _missing_input(bench: Bench) -> None:
    _must_fail(bench.ask(bench.path("subtracted", models.subtracted()), {"p": X}), "run")


@ERRORS.check("an input that the model does not have")
def _surplus_input(bench: Bench) -> None:
    _must_fail(bench.ask(bench.path("two", models.two_outputs()), {"x": X, "z": X}), "run", "create")


@ERRORS.check("after all these errors the next job is right")
def _goes_on(bench: Bench) -> None:
    negate(bench)
