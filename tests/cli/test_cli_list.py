import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import main
from harness.corpus.suites.suites import suite_lines

Project = Callable[..., Path]


def test_the_ids_in_the_order_of_the_plan(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", str(project())]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "models/abs.onnx[cpu]",
        "models/neg.onnx[cpu]",
        "models/relu.onnx[cpu]",
    ]


def test_counts(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    main(["list", str(project()), "--count"])
    assert capsys.readouterr().out.split() == ["3", "cpu", "3", "cells", "in", "all"]


def test_json_has_every_axis(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    main(["list", str(project()), "--json", "--model", "abs.onnx"])
    assert json.loads(capsys.readouterr().out) == [
        {
            "cell": "models/abs.onnx[cpu]",
            "suite": "models",
            "model": "abs.onnx",
            "target": "cpu",
            "axes": {
                "execution_mode": "sequential",
                "graph_optimization": "all",
                "precision": "fp32",
                "scenario": "plain",
            },
        }
    ]


def test_suites(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--suites"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(suite_lines())
