"""A new option of `run` takes its declaration and the function that takes it, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

from tests.changed_package import changed_package

CHANGES = {
    "harness/cli/run_command.py": {
        "    native = native_stack(options)\n": '    note = options.value("--note", "T", "print it", str)\n',
        "            native_stack=given[native],\n": "            note=given[note],\n",
    },
    "harness/cli/run.py": {
        "    native_stack: bool = False,\n": "    note: str | None = None,\n",
        "    atexit.register(gc.freeze)": "    print(note)\n",
    },
}


def test_a_declaration_and_a_parameter_are_enough(tmp_path: Path) -> None:
    home = changed_package(tmp_path / "changed", CHANGES)
    command = [sys.executable, "-m", "harness", "run", "absent.toml", "--note", "first of all"]
    env = {**os.environ, "PYTHONPATH": str(home)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "absent.toml" in done.stderr
    assert done.stdout.splitlines()[0] == "first of all"
