"""`ep-harness record`: run an application, and save the inputs of its models."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import harness.record
from harness.cli.output import notify
from harness.core.text.errors import UsageError, one_line
from harness.record.recorder import RECORD_VARIABLE, RecorderSettings
from harness.record.saved_summary import events_summary

_INJECTED = Path(harness.record.__file__).parent / "inject"
_FROM_SHELL = 128
"""The number that shells add to the signal that ended a program."""


def record(command: list[str], calls: int, out: Path | None, max_mib: int) -> int:
    """Run an application and return its exit code; one line on stderr reports what was saved."""
    program = shutil.which(command[0])
    if program is None:
        what = f"there is no program {command[0]!r}"
        raise UsageError.at("record", what, "give the application's command after --")
    with tempfile.TemporaryDirectory(prefix="ep-harness-", ignore_cleanup_errors=True) as journal:
        settings = RecorderSettings(
            calls=calls,
            out="" if out is None else str(out.absolute()),
            journal=journal,
            most_bytes=max_mib << 20,
        )
        exit_code = _run([program, *command[1:]], settings)
        notify(f"ep-harness record: {events_summary(_events(Path(journal)))}")
    return exit_code


def _run(command: list[str], settings: RecorderSettings) -> int:
    path = os.environ.get("PYTHONPATH")
    environment = os.environ | {
        RECORD_VARIABLE: json.dumps(settings._asdict()),
        "PYTHONPATH": os.pathsep.join([str(_INJECTED), *([path] if path else [])]),
    }
    with subprocess.Popen(command, env=environment) as application:  # noqa: S603 - what the user runs
        while True:
            try:
                code = application.wait()
                break
            except KeyboardInterrupt:  # the application gets it, too, and may have something to save
                continue
    return code if code >= 0 else _FROM_SHELL - code


def _events(journal: Path) -> Iterator[dict[str, str]]:
    """Yield the processes' entries; a line that a process did not finish is left out."""
    for path in sorted(journal.glob("*.jsonl")):
        for line in path.read_text("utf-8", errors="replace").splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            yield {name: one_line(value) for name, value in event.items()}
