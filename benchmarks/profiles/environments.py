"""The same profiles with several Pythons of the harness, and with another numpy in a target's runtime.

The verdict of a profile's case may depend on the target alone. So each Python here, with its own releases of
numpy, onnx and msgspec, judges the same targets, and every verdict and every metric has to be the same text.
"""

import glob
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.annex.conformance.profiles.profile import Profile, load_profile, profile_labels
from harness.annex.conformance.profiles.profile_suite import suite_name
from harness.core.records.scenario import PLAIN
from harness.corpus.caches.cache import ENVIRONMENT

_SHOWN = ("numpy", "onnx", "ml_dtypes", "msgspec", "onnxruntime")

_VERSIONS = f"""
import importlib.metadata, json, platform
found = {{name: importlib.metadata.version(name) for name in {_SHOWN!r}}}
print(json.dumps({{"Python": platform.python_version(), **found}}))
"""

_METRICS = ("outputs", "again", "other")
"""What a record tells of the errors of a cell; see docs/reference/records.md."""

_TARGETS = """
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"

[[target]]
name = "cpu-numpy-1.26"
provider = "CPUExecutionProvider"
runtime = {{ packages = ["onnxruntime=={onnxruntime}", "numpy==1.26.4"], python_version = "3.11" }}
"""

_QNN = """
[[target]]
name = "qnn"
provider = "QNNExecutionProvider"
plugin = "onnxruntime_qnn"
options = { backend_type = "htp" }
"""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What one Python gives.

    Attributes:
        versions: Package -> release.
        verdicts: Cell -> verdict.
        metrics: Cell -> metrics as JSON.
    """

    versions: dict[str, str]
    verdicts: dict[str, str]
    metrics: dict[str, str]

    def lines(self, target: str) -> bytes:
        """Return ``cell verdict`` lines of a target, sorted."""
        own = sorted(f"{cell} {verdict}\n" for cell, verdict in self.verdicts.items() if _is_of(cell, target))
        return "".join(own).encode()


def compare_environments(pythons: Sequence[str], labels: Sequence[str], folder: Path, *, qnn: bool) -> int:
    """Run profiles with several Pythons, print a table, and return 1 if any verdict differs."""
    found: list[Judged] = []
    for number, python in enumerate(pythons):
        versions = json.loads(_output(python, "-c", _VERSIONS))
        targets = _TARGETS.format(onnxruntime=versions["onnxruntime"]) + (_QNN if qnn else "")
        judged = Judged(versions=versions, verdicts={}, metrics={})
        for label in labels or profile_labels():
            home = folder / f"{number}-{label}"
            home.mkdir(parents=True)
            (home / "matrix.toml").write_text(f"{_models(load_profile(label))}{targets}", encoding="utf-8")
            _run(python, home, folder / f"cache-{number}")
            _read(home / "run" / "records.jsonl", judged)
        found.append(judged)
    for line in _table(found):
        print(line)
    return int(any(one.verdicts != found[0].verdicts for one in found))


def _models(profile: Profile) -> str:
    """Return the part of a matrix that names the cases of a profile, each in its scenarios."""
    keys = {case.key for case in profile.cases}
    scenarios = sorted({scenario for _, scenario in keys} | {PLAIN})
    lines = [
        "schema = 1",
        f'[models]\nsuites = ["profile:{profile.label}"]',
        f"[axes]\nscenario = {json.dumps(scenarios)}",
    ]
    for scenario in scenarios:
        others = sorted({name for name, _ in keys} - {name for name, one in keys if one == scenario})
        if others:
            models = [glob.escape(f"{suite_name(profile)}/{name}") for name in others]
            lines.append(f'[[exclude]]\nscenario = "{scenario}"\nmodel = {json.dumps(models)}')
    return "\n".join(lines) + "\n"


def _run(python: str, home: Path, cache: Path) -> None:
    command = [python, "-m", "harness", "run", "matrix.toml", "--out", "run", "--no-report"]
    beside = f"{Path(python).absolute().parent}{os.pathsep}{os.environ['PATH']}"
    variables = {**os.environ, ENVIRONMENT: str(cache.absolute()), "PATH": beside}
    with (home / "output.txt").open("wb") as output:
        subprocess.run(command, cwd=home, env=variables, stdout=output, stderr=output, check=False)


def _read(records: Path, into: Judged) -> None:
    for line in records.read_bytes().splitlines():
        record: dict[str, Any] = json.loads(line)
        into.verdicts[record["cell"]] = record["verdict"]
        into.metrics[record["cell"]] = json.dumps({name: record.get(name) for name in _METRICS})


def _table(found: Sequence[Judged]) -> Iterator[str]:
    """Yield a table in Markdown, and one line for each cell that differs from the first Python's."""
    columns = ("Python", "its packages", "target", "cells", "pass", "SHA-256 of verdicts", "other metrics")
    yield f"| {' | '.join(columns)} |"
    yield "|---|---|---|---:|---:|---|---:|"
    first = found[0]
    for one in found:
        packages = ", ".join(f"{name} {one.versions[name]}" for name in _SHOWN)
        for target in sorted({_target_of(cell) for cell in one.verdicts}):
            cells = [cell for cell in one.verdicts if _is_of(cell, target)]
            passed = sum(one.verdicts[cell] == "pass" for cell in cells)
            digest = hashlib.sha256(one.lines(target)).hexdigest()[:16]
            other = sum(one.metrics[cell] != first.metrics.get(cell) for cell in cells)
            counts = f"{len(cells)} | {passed} | `{digest}` | {other}"
            yield f"| {one.versions['Python']} | {packages} | `{target}` | {counts} |"
    for one in found[1:]:
        yield from (f"- {line}" for line in _differences(first.verdicts, one.verdicts))
        yield from (
            f"- {cell}: other metrics: {first.metrics[cell]}, {one.metrics[cell]}"
            for cell in sorted(first.metrics.keys() & one.metrics.keys())
            if first.metrics[cell] != one.metrics[cell]
        )


def _differences(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[str]:
    for cell in sorted(one.keys() | other.keys()):
        if one.get(cell) != other.get(cell):
            yield f"{cell}: {one.get(cell)}, {other.get(cell)}"


def _target_of(cell: str) -> str:
    return cell.rpartition("[")[2].removesuffix("]").partition(",")[0]


def _is_of(cell: str, target: str) -> bool:
    return _target_of(cell) == target


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
