"""Run folders: a line of records, the facts of the run, the plan; and what six commands make of them."""

import json
import shutil
from pathlib import Path

from benchmarks.mutation.attempt import Attempt
from benchmarks.mutation.changes import changed_json
from benchmarks.mutation.commands import Commands
from benchmarks.mutation.kinds.a_run import MATRIX, write_innocent
from benchmarks.mutation.kinds.submissions import changed_part

COMMANDS = (
    ("report", "strange", "--out", "report", "--format", "html,json"),
    ("report", "run", "strange", "--out", "report", "--format", "json,junit,markdown,csv"),
    ("diff", "run", "strange"),
    ("diff", "strange", "run", "--json"),
    ("gate", "run", "strange"),
    ("judge", "strange", "--policy", "default", "--out", "judged"),
    ("history", "add", "h.db", "strange"),
    ("query", "strange", "SELECT count(*) FROM records"),
    ("run", "m.toml", "--resume", "strange"),
    ("list", "m.toml", "--shard", "1/2", "--durations", "strange"),
)


class RunFolders:
    """A run of four models, changed."""

    def __init__(self, home: Path, commands: Commands) -> None:
        self._env = {"EP_HARNESS_CACHE": str(home / "cache")}
        self._home = home / "valid"
        for name in "abcd":
            write_innocent(self._home / "models" / name)
        (self._home / "m.toml").write_text(MATRIX, encoding="utf-8")
        ended = commands.run(("run", "m.toml", "--out", "run", "--no-report"), self._home, **self._env)
        if ended.code:
            raise RuntimeError(ended.err)
        self._lines = (self._home / "run" / "records.jsonl").read_bytes().splitlines()

    def attempt(self, made: Attempt) -> None:
        """Change a file, and run one of the commands."""
        rng = made.rng
        shutil.copytree(self._home, made.folder, dirs_exist_ok=True)
        shutil.copytree(made.folder / "run", made.folder / "strange")
        name = rng.choice(("records.jsonl", "records.jsonl", "run.json", "plan.txt"))
        path = made.folder / "strange" / name
        innocent: list[str] = []
        if name == "records.jsonl" and rng.random() < 0.7:
            lines, at = list(self._lines), rng.randrange(len(self._lines))
            lines[at] = changed_json(lines[at], rng)
            path.write_bytes(b"\n".join(lines) + b"\n")
            innocent = [cell_of(line) for line in self._lines if line in lines]
        else:
            path.write_bytes(changed_part(path.read_bytes(), name, rng))
        command = rng.choice(COMMANDS)
        ended = made.run(*command, **self._env)
        if command[:2] == ("report", "strange") and innocent and ended.code == 0:
            told = (made.folder / "report" / "report.json").read_text("utf-8")
            for cell in innocent:
                made.expect(cell in told, f"{cell} is not in the report")


def cell_of(line: bytes) -> str:
    """Return the cell of a record."""
    return str(json.loads(line)["cell"])
