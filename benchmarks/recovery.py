"""From a crash, or a hang's time limit, to the start of the next cell.

Both moments are noted inside the target's processes, on the clock that all processes of a machine share:
an onnxruntime of a few lines (tests/engine/fake_onnxruntime) writes down when it is about to die or to hang,
and when the next process begins to make the next session. In between lie all of it: the system's taking
the process down, the harness noticing, settling the cell and handing the next one to another process.

With a spare ready, a process stands by that has imported onnxruntime; the harness starts one once a target
has lost a process and goes on. Without, one crash follows another, and each next process starts from
nothing. Medians of 20.

Exit code 1: more than 50 ms with a spare ready.
"""

import argparse
import itertools
import sys
import tempfile
from pathlib import Path
from statistics import median

from fake import FAKE, MODEL
from processes import UNEXPECTED, heading, row, timed, verdict

# The file takes the fake's place, and has all of it.
NOTING = """
from pathlib import Path as _Path
exec(compile(_Path({fake!r}).read_text(encoding="utf-8"), {fake!r}, "exec"))

def _note(what):
    with open({notes!r}, "a", encoding="utf-8") as file:
        file.write(f"{{what}} {{time.monotonic()}}\\n")

def _noting(name, action):
    def noted():
        _note(name)
        action()
    return noted

for _name in ("segv", "hang"):
    ACTIONS[_name] = _noting(_name, ACTIONS[_name])
ACTIONS["pause"] = lambda: time.sleep({pause_s})

class InferenceSession(InferenceSession):
    def __init__(self, model, *args, **kwargs):
        if isinstance(model, str):
            _note("start")
        super().__init__(model, *args, **kwargs)
"""
MATRIX = """
schema = 1
[models]
folders = ["models"]
[[target]]
name = "fake"
provider = "CUDAExecutionProvider"
timeouts_s = {{ run = {limit_s} }}
env = {{ PYTHONPATH = {fake!r}, PYTHONDONTWRITEBYTECODE = "1" }}
"""
PAUSE_S = 2.0
"""Time for a spare process to start and import, on a machine that has other things to do as well."""
LIMIT_S = 0.5
MOST_MS = 50


def main() -> int:
    """Measure and print; 1 where a figure is not what it should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("times", type=int, nargs="?", default=20)
    times = parser.parse_args().times
    heading("next cell starts", "median", "fastest", "slowest")
    crash_ms = median(measure("after a crash, spare ready", "segv", times, spare=True))
    measure("after a hang's limit, spare ready", "hang", times, spare=True)
    measure("after a crash, no spare", "segv", times, spare=False)
    measure("after a hang's limit, no spare", "hang", times, spare=False)
    return 0 if verdict("ms from a crash to the next cell, spare ready", crash_ms, MOST_MS) else 1


def measure(what: str, fault: str, times: int, *, spare: bool) -> list[float]:
    """Print a row; milliseconds, each time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # The first loss makes the harness keep a spare from the next good cell on, and so is no figure.
        kinds = [f"{fault}_in_run", *(["ok", "pause_in_create"] * spare)]
        make(folder, [*kinds * (times + 1), "ok"])
        command: list[str | Path] = [sys.executable, "-m", "harness", "run", folder / "m.toml", "--no-report"]
        timed(
            [*command, "--out", "run"], env={"EP_HARNESS_CACHE": str(folder / "cache")}, codes=(UNEXPECTED,)
        )
        notes = [line.split() for line in (folder / "notes").read_text(encoding="utf-8").splitlines()]
    limit_s = LIMIT_S if fault == "hang" else 0.0
    took_ms = [
        1000 * (float(after) - float(before) - limit_s)
        for (kind, before), (_, after) in itertools.pairwise(notes)
        if kind == fault
    ][1:]
    if len(took_ms) != times:
        sys.exit(f"{what}: {times} were planned, {len(took_ms)} seen")
    row(what, *(f"{figure:.0f} ms" for figure in (median(took_ms), min(took_ms), max(took_ms))))
    return took_ms


def make(folder: Path, kinds: list[str]) -> None:
    """Write the models, the matrix and the onnxruntime that takes notes."""
    import onnx.parser

    model = onnx.parser.parse_model(MODEL).SerializeToString()
    (folder / "models").mkdir()
    for number, kind in enumerate(kinds):
        (folder / "models" / f"{number:03}_{kind}.onnx").write_bytes(model)
    fake = folder / "fake"
    (fake / "onnxruntime").mkdir(parents=True)
    source = str(FAKE / "onnxruntime" / "__init__.py")
    noting = NOTING.format(fake=source, notes=str(folder / "notes"), pause_s=PAUSE_S)
    (fake / "onnxruntime" / "__init__.py").write_text(noting, encoding="utf-8")
    (folder / "m.toml").write_text(MATRIX.format(fake=str(fake), limit_s=LIMIT_S), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
