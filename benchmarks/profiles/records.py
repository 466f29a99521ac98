"""Records of runs over the candidates: which cases the CPU EP passes, and what real EPs get wrong."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from harness.annex.made.fuzz_suite import fuzz_suite_name, parse_fuzz
from harness.core.records.record import Record
from harness.core.records.scenario import PLAIN
from harness.core.records.verdict import Family, Verdict

CPU = "CPUExecutionProvider"

FUZZ = "fuzz:1:600"
"""The generated models of the corpus."""

Key = tuple[str, str]
"""Suite and model."""

Played = tuple[str, str, str]
"""Suite, model and scenario."""


def read_records(paths: Iterable[Path]) -> Iterator[Record]:
    """Yield the records of some files, at the model's own precision; those of a folder are in it."""
    for path in paths:
        file = path / "records.jsonl" if path.is_dir() else path
        for line in file.read_bytes().splitlines():
            record = msgspec.json.decode(line, type=Record)
            if record.axes.get("precision") == "fp32":
                yield msgspec.structs.replace(record, suite=opened(record.suite))


def opened(suite: str) -> str:
    """Return the name that opens the suite of a record: that of generated models has their number, too."""
    return FUZZ if suite == fuzz_suite_name(parse_fuzz(FUZZ)[0]) else suite


def plain(records: Iterable[Record]) -> list[Record]:
    """Return the records of the plain scenario."""
    return [one for one in records if one.axes.get("scenario") == PLAIN]


def scenarios_run(records: Iterable[Record]) -> set[Played]:
    """Return the scenarios that some real EP passes; nobody could be held to one that runs nowhere."""
    return {
        (one.suite, one.model, one.axes.get("scenario", PLAIN))
        for one in records
        if one.provider != CPU and one.verdict is Verdict.PASS
    }


def admitted(records: Iterable[Record]) -> tuple[Key, ...]:
    """Return the cases that the CPU EP passes alone, with a golden that tells right from wrong; sorted."""
    return tuple(
        sorted(
            {
                (one.suite, one.model)
                for one in records
                if one.provider == CPU and one.verdict is Verdict.PASS and not one.weak_golden
            }
        )
    )


def seconds_of(records: Iterable[Record]) -> dict[Key, float]:
    """Return how long each case takes on the CPU EP: creation of a session and the first run.

    Of several runs the least counts, which was disturbed least.
    """
    found: dict[Key, float] = {}
    for one in records:
        if one.target == "cpu":
            key = one.suite, one.model
            took = sum(one.timings_ms.get(part, 0.0) for part in ("create", "first_run")) / 1000
            found[key] = min(took, found.get(key, took))
    return found


def real_faults(records: Iterable[Record]) -> dict[Key, set[str]]:
    """Return what other EPs fail, by case: target, verdict and operators count as one fault."""
    found: dict[Key, set[str]] = {}
    for one in records:
        if one.provider != CPU and one.verdict.family is Family.FAILED:
            ops = sorted(one.content.ops) if one.content else [one.model]
            what = "+".join(ops) if len(ops) == 1 else f"{len(ops)} operators: {'+'.join(ops)[:80]}"
            name = f"real: {one.target}: {one.verdict.value}: {what}"
            found.setdefault((one.suite, one.model), set()).add(name)
    return found
