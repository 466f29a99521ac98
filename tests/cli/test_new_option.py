"""A new option of `run` takes its declaration and the function that takes it, and nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHANGES = {
    "run_command.py": {
        "    native = native_stack(options)\n": '    note = options.value("--note", "T", "print it", str)\n',
        "            native_stack=given[native],\n": "            note=given[note],\n",
    },
    "run.py": {
        "    native_stack: bool = False,\n": "    note: str | None = None,\n",
        "    atexit.register(gc.freeze)": "    print(note)\n",
    },
}
"""Module of `harness/cli` -> what is added before which line."""


def test_a_declaration_and_a_parameter_are_enough(tmp_path: Path) -> None:
    package = tmp_path / "changed" / "harness"
    shutil.copytree(ROOT / "harness", package, ignore=shutil.ignore_patterns("__pycache__", "_data"))
    for name, changes in CHANGES.items():
        text = (ROOT / "harness" / "cli" / name).read_text("utf-8")
        for before, added in changes.items():
            assert text.count(before) == 1, before
            text = text.replace(before, added + before)
        (package / "cli" / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "harness", "run", "absent.toml", "--note", "first of all"]
    env = {**os.environ, "PYTHONPATH": str(package.parent)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "absent.toml" in done.stderr
    assert done.stdout.splitlines()[0] == "first of all"
