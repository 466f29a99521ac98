"""Runs the modules of the JavaScript agent in Node.js."""

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from harness.runtimes.installer import InstallError
from harness.runtimes.javascript import AGENTS, find_node


@pytest.fixture(scope="session")
def node() -> str:
    """Node.js; without it the tests fail in CI, and are skipped elsewhere."""
    try:
        return find_node()
    except InstallError as error:
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def evaluate(node: str) -> Callable[..., Any]:
    """``evaluate(script, value)``: what a script that sees ``value`` writes with ``give``."""

    def run(script: str, value: Any = None) -> Any:
        program = (
            "import fs from 'node:fs';"
            "const value = JSON.parse(fs.readFileSync(0, 'utf8'));"
            "const give = (result) => process.stdout.write(JSON.stringify(result));" + script
        )
        done = subprocess.run(
            [node, "--input-type=module", "-e", program.replace("agent:", AGENTS.as_uri() + "/")],
            input=json.dumps(value),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
