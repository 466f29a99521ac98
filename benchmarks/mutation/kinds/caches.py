"""Files of the cache: suites, goldens, spreads, models, what was computed once."""

import shutil
from pathlib import Path

from benchmarks.mutation.attempt import Attempt
from benchmarks.mutation.changes import changed_bytes
from benchmarks.mutation.commands import Commands
from benchmarks.mutation.kinds.a_run import records_of_run, write_innocent

MATRIX = """schema = 1
[models]
suites = ["onnx-simple"]
folders = ["models"]
exclude = ["onnx-simple/test_[a-re-z]*", "onnx-simple/test_s[a-hj-z]*"]
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
"""


class Caches:
    """A run with a cache in which one to twenty files are damaged has the verdicts of one without."""

    def __init__(self, home: Path, commands: Commands) -> None:
        self._cache = home / "cache"
        for name in "ab":
            write_innocent(home / "valid" / "models" / name)
        self._valid = home / "valid"
        self._verdicts: dict[str, str] = {}

    def attempt(self, made: Attempt) -> None:
        """Damage files, and run."""
        shutil.copytree(self._valid, made.folder, dirs_exist_ok=True)
        if not self._verdicts:
            found = records_of_run(made, MATRIX, EP_HARNESS_CACHE=str(self._cache))
            self._verdicts = {cell: str(record.verdict) for cell, record in found.items()}
            shutil.rmtree(made.folder / "out")
        cache = made.folder / "cache"
        shutil.copytree(self._cache, cache)
        files = sorted(path for path in cache.rglob("*") if path.is_file() and not path.is_symlink())
        for path in made.rng.sample(files, min(len(files), made.rng.choice((1, 3, 20)))):
            path.chmod(0o644)
            path.write_bytes(changed_bytes(path.read_bytes(), made.rng))
        found = records_of_run(made, MATRIX, EP_HARNESS_CACHE=str(cache))
        for cell, verdict in self._verdicts.items():
            now = str(found[cell].verdict) if cell in found else "not there"
            made.expect(now == verdict, f"{cell} is {now}, not {verdict}")
