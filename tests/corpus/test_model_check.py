"""onnx's checker in another process: what it refuses, and what comes of a model that it cannot answer."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.corpus.suites import model_check
from harness.corpus.suites.helper_process import HelperProcess
from harness.corpus.suites.model_check import broken_rule, end_checker
from tests.kit import write_model

HEAD = '<ir_version: 9, opset_import: ["" : 17, "nowhere" : 1]> '
RIGHT = "agraph (float[2] x) => (float[2] y) { y = Relu(x) }"
WRONG = "agraph (float[2] x) => (float[2] y) { y = Foo(x) }"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache without the answers of other tests, on the disk and in memory."""
    monkeypatch.setenv("EP_HARNESS_CACHE", str(tmp_path / "cache"))
    broken_rule.cache_clear()


def rule_of(folder: Path, graph: str) -> str:
    path = folder / "model.onnx"
    write_model(path, HEAD + graph)
    return broken_rule(path, graph)


@pytest.mark.parametrize(
    ("graph", "rule"),
    [
        (RIGHT, ""),
        ("agraph (float[2] x) => (float[2] y) { y = nowhere.Op(x) }", ""),
        (WRONG, "No Op registered for Foo"),
        ("agraph (float[2] x, int32[2] z) => (float[2] y) { y = Add(x, z) }", "inconsistent type"),
    ],
)
def test_a_rule_is_found_in_one_line(tmp_path: Path, graph: str, rule: str) -> None:
    found = rule_of(tmp_path, graph)
    assert rule in found
    assert bool(found) is bool(rule)
    assert "\n" not in found


def test_a_model_that_kills_the_checker_has_broken_no_known_rule_and_the_next_one_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_checker()
    dying = tmp_path / "child.py"
    dying.write_text("import os\nos.abort()\n", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(model_check, "_CHECKER", HelperProcess(dying))
        assert rule_of(tmp_path, WRONG) == ""
    broken_rule.cache_clear()
    assert "Foo" in rule_of(tmp_path, WRONG)


def test_the_next_process_need_not_ask_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [rule_of(tmp_path, graph) for graph in (WRONG, RIGHT)]
    broken_rule.cache_clear()
    monkeypatch.setattr(model_check, "_CHECKER", None)
    assert [rule_of(tmp_path, graph) for graph in (WRONG, RIGHT)] == rules


def test_a_checker_that_comes_to_no_end_has_found_no_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_checker()
    stuck = tmp_path / "child.py"
    stuck.write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    monkeypatch.setattr(model_check, "_CHECKER", HelperProcess(stuck))
    monkeypatch.setattr(model_check, "CHECK_LIMIT_S", 0.3)
    assert broken_rule(tmp_path / "any.onnx", "no end") == ""


def test_a_checker_that_was_ended_by_something_else_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_checker()
    started: list[subprocess.Popen[bytes]] = []

    class Popen(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **fields: Any) -> None:
            super().__init__(*arguments, **fields)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    assert rule_of(tmp_path, "agraph (float[2] x) => (float[2] u) { u = Relu(x) }") == ""
    started[0].kill()
    assert "Bar" in rule_of(tmp_path, "agraph (float[2] x) => (float[2] v) { v = Bar(x) }")
    assert len(started) == 2
