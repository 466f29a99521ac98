"""What an agent may say and when."""

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engine.listener import parse_message
from harness.engine.processes.messages import ProtocolError
from harness.engine.tasks.task import Question, QuestionTask

TASK = QuestionTask(about=Question(suite="s", model="m"))
JOB = id(TASK)
AFTER = {"took_ms": 2, "teardown_ms": 0.5, "processor_ms": 2.5}
RESULT = {"status": "ok", "output": "", "names": ["y"]}
STARTING: dict[str, Any] = {"imported": False, "ready": False, "in_flight": deque(), "result": None}
IMPORTED = {**STARTING, "imported": True}
IDLE = {**IMPORTED, "ready": True}
AT_WORK = {**IDLE, "in_flight": deque([TASK])}
ANSWERED = {**AT_WORK, "result": object()}


def check(state: dict[str, Any], message: Any) -> str:
    """What is wrong with a message in a state; empty where nothing is."""
    try:
        parse_message(SimpleNamespace(**state), message)  # type: ignore[arg-type]
    except ProtocolError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (STARTING, ("imported",)),
        (STARTING, ("unavailable", "import_failed", "reason", "printed", {})),
        (IMPORTED, ("unavailable", "no_device", "reason", "printed", {"providers": ["x"]})),
        (IMPORTED, ("rejected", "key", "reason", "printed", {})),
        (IMPORTED, ("ready", {"onnxruntime": "1.31.1"})),
        (AT_WORK, ("phase", JOB, "create")),
        (AT_WORK, ("phase", JOB, "run")),
        (AT_WORK, ("result", JOB, RESULT)),
        (ANSWERED, ("done", JOB, {**AFTER, "rss_mib": None})),
        (ANSWERED, ("done", JOB, {**AFTER, "rss_mib": 99.5, "sick": "CUDA error 700"})),
    ],
)
def test_what_an_agent_says_is_parse(state: dict[str, Any], message: Any) -> None:
    assert check(state, message) == ""


@pytest.mark.parametrize(
    ("state", "message", "problem"),
    [
        (STARTING, ("started",), "no known form"),
        (STARTING, ("unavailable", "bad_luck", "reason", "printed", {}), "no known form"),
        (IMPORTED, ("imported",), "started twice"),
        (IMPORTED, ("result", JOB, RESULT), "does not run"),
        (IDLE, ("ready", {}), "started twice"),
        (IDLE, ("phase", JOB, "run"), "does not run"),
        (AT_WORK, ("phase", JOB + 1, "run"), "does not run"),
        (AT_WORK, ("phase", JOB, "register"), "no known form"),
        (AT_WORK, ("phase", None, "run"), "no known form"),
        (AT_WORK, ("phase", JOB, "run", "more"), "no known form"),
        (AT_WORK, ("result", JOB, {}), "no known form"),
        (AT_WORK, ("result", JOB, {**RESULT, "output": b"bytes"}), "no known form"),
        (AT_WORK, ("done", JOB, AFTER), "without a result"),
        (ANSWERED, ("done", JOB, {}), "no known form"),
        (ANSWERED, ("done", JOB, {**AFTER, "sick": 3}), "no known form"),
        (ANSWERED, ("done", JOB, {**AFTER, "took_ms": "1"}), "no known form"),
        (ANSWERED, ("done", JOB, {**AFTER, "processor_ms": float("nan")}), "no known form"),
        (ANSWERED, ("done", JOB, {**AFTER, "processor_ms": float("inf")}), "no known form"),
        (ANSWERED, ("done", JOB, {**AFTER, "rss_mib": -1.0}), "no known form"),
        (ANSWERED, ("result", JOB, RESULT), "after the result"),
        (ANSWERED, ("phase", JOB, "run"), "after the result"),
    ],
)
def test_anything_else_is_named(state: dict[str, Any], message: Any, problem: str) -> None:
    assert problem in check(state, message)


ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
VALUES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner).map(tuple) | st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=8,
)


@given(VALUES, st.sampled_from([STARTING, IMPORTED, IDLE, AT_WORK, ANSWERED]))
def test_no_message_is_too_strange(message: Any, state: dict[str, Any]) -> None:
    assert check(state, message) != ""


@given(
    st.tuples(st.sampled_from(["phase", "result", "done", "ready", "unavailable"]), VALUES, VALUES),
    st.sampled_from([IDLE, AT_WORK, ANSWERED]),
)
def test_a_known_word_before_anything_breaks_nothing(message: Any, state: dict[str, Any]) -> None:
    assert isinstance(check(state, message), str)
