"""Agents that send other messages than they should, beside one that does not."""

from pathlib import Path

from benchmarks.mutation.attempt import Attempt
from benchmarks.mutation.commands import Commands
from benchmarks.mutation.kinds.a_run import INNOCENT, records_of_run, write_innocent

ROOT = Path(__file__).parents[3]
STRANGE = Path(__file__).parents[1] / "strange"
MATRIX = """schema = 1
[models]
folders = ["models"]
[[target]]
name = "strange"
provider = "CPUExecutionProvider"
timeouts_s = {{ start = 20, create = 5, run = 5, teardown = 3 }}
env = {{ PYTHONPATH = "{path}", MUTATION_SEED = "{seed}" }}
[[target]]
name = "{innocent}"
provider = "CPUExecutionProvider"
"""


class Agents:
    """The agent of the package, with messages changed on their way."""

    def __init__(self, home: Path, commands: Commands) -> None:
        self._cache = str(home / "cache")

    def attempt(self, made: Attempt) -> None:
        """Run three models on both."""
        for name in "abc":
            write_innocent(made.folder / "models" / name)
            (made.folder / "models" / name / f"{INNOCENT}.onnx").rename(
                made.folder / "models" / f"{name}.onnx"
            )
        path = f"{STRANGE.as_posix()}:{ROOT.as_posix()}"
        matrix = MATRIX.format(path=path, seed=made.rng.randrange(1 << 30), innocent=INNOCENT)
        records_of_run(made, matrix, EP_HARNESS_CACHE=self._cache)
