"""Admit candidates: what freezing makes of each one, its bytes in an archive, or why it can be no case."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.profiles.freeze import frozen_cases
from benchmarks.profiles.measure import LARGEST, TOO_LARGE
from harness.annex.conformance.freeze import CaseCandidate
from harness.annex.conformance.profiles.case_files import by_case
from harness.annex.conformance.profiles.profile_archive import write_archive
from harness.corpus.suites.suites import open_suite

BATCH = 200
"""Candidates that are frozen at once: an interrupted admission loses no more."""

END = 22
"""Bytes at the end of a zip, which an archive has once."""


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate as it would be frozen.

    Attributes:
        suite: Its suite.
        model: Its model.
        nbytes: What it adds to an archive, headers included; 0 if it is no case.
        opset: Version of ONNX's operators, as far back as it goes; 0 if it imports none, or is no case.
        why_not: Why it can be no case; empty if it can.
    """

    suite: str
    model: str
    nbytes: int = 0
    opset: int = 0
    why_not: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Suite and model."""
        return self.suite, self.model


def read_admissions(path: Path) -> Iterator[Admission]:
    """Yield the admissions of a file of JSON lines."""
    for line in path.read_bytes().splitlines():
        yield msgspec.json.decode(line, type=Admission)


def admit(keys: Sequence[tuple[str, str]]) -> Iterator[Admission]:
    """Yield the admission of each candidate."""
    suites = {suite: open_suite(suite) for suite in {suite for suite, _ in keys}}
    small = []
    for suite, model in keys:
        if suites[suite].model_path(model).stat().st_size > LARGEST:
            yield Admission(suite=suite, model=model, why_not=TOO_LARGE)
        else:
            small.append(CaseCandidate(suite=suite, model=model))
    for start in range(0, len(small), BATCH):
        with tempfile.TemporaryDirectory() as scratch:
            yield from _admitted(small[start : start + BATCH], Path(scratch))


def _admitted(candidates: Sequence[CaseCandidate], scratch: Path) -> Iterator[Admission]:
    cases, files, refused = frozen_cases(candidates, scratch)
    found = {case.name: case for case in cases}
    parts = by_case(files, found.keys())
    for one in candidates:
        if one.key in refused:
            yield Admission(suite=one.suite, model=one.model, why_not=refused[one.key])
            continue
        archive = write_archive({f"{one.name}/{path}": part for path, part in parts[one.name].items()})
        yield Admission(
            suite=one.suite, model=one.model, nbytes=len(archive) - END, opset=found[one.name].opset
        )
