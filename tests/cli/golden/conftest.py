"""`ep-harness golden` with a cache of its own, and a matrix of small models."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.corpus.caches.cache import ENVIRONMENT
from tests.kit import write_model
from tests.programs import write_program

FAKE = Path(__file__).parents[2] / "engine" / "fake_onnxruntime"


@pytest.fixture(autouse=True)
def _own_goldens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run `ep-harness golden`: exit code, output, errors."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(one) for one in ("golden", *arguments)])
        printed = capsys.readouterr()
        if "--json" not in arguments:
            assert all(len(line) <= 80 or line.startswith("wrote ") for line in printed.out.splitlines())
        return code, printed.out, printed.err

    return run


@pytest.fixture
def as_json(call: Callable[..., tuple[int, str, str]]) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Run `ep-harness golden` with ``--json``: exit code and object."""

    def run(*arguments: object) -> tuple[int, dict[str, Any]]:
        code, out, _ = call(*arguments, "--json")
        return code, json.loads(out)

    return run


@pytest.fixture
def write_matrix(tmp_path: Path) -> Callable[..., Path]:
    """Write models by file name and text, and a matrix over them with a target of a fake onnxruntime."""

    def write(**models: str) -> Path:
        (tmp_path / "models").mkdir()
        for name, text in models.items():
            write_model(tmp_path / "models" / f"{name}.onnx", text)
        program = tmp_path / "python"
        fake = f"PYTHONPATH={shlex.quote(str(FAKE))} FAKE_VERSION=1.30.0"
        write_program(program, f'#!/bin/sh\n{fake} exec {shlex.quote(sys.executable)} "$@"\n')
        matrix = tmp_path / "m.toml"
        matrix.write_text(
            'schema = 1\n[models]\nfolders = ["models"]\n'
            '[[target]]\nname = "cpu"\nprovider = "CPUExecutionProvider"\n'
            '[[target]]\nname = "fake"\nprovider = "CPUExecutionProvider"\n'
            f"runtime = {{ python = {json.dumps(str(program))} }}\n",
            encoding="utf-8",
        )
        return matrix

    return write
