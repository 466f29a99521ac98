"""What was found of each planted fault, from the records of a run."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.generation.faults import AFTER, FAULTS, Fault
from benchmarks.generation.run import HEALTHY, SITES
from harness.core.records.cell import parse_cell_id

FAILED = "failed"
"""The family of the verdicts that find a fault."""

Record = Mapping[str, Any]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A fault in one model.

    Attributes:
        fault: Its name.
        model: The model.
        found: Whether the scenario ``generate`` fails.
        named: Whether its record names the foretold layer and position; None if none is foretold.
        once: Whether one forward pass fails at the same tolerance.
        text: Whether the greedy text is another one.
        reason: What the record says.
    """

    fault: str
    model: str
    found: bool
    named: bool | None
    once: bool
    text: bool
    reason: str


class Healthy(msgspec.Struct, frozen=True, kw_only=True):
    """A run without a fault: cell, whether it fails, and how many ways it played."""

    cell: str
    accused: bool
    reason: str
    ways: int = 0


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """A target of ``matrices/generate.toml`` whose cells ran without a planted fault.

    Attributes:
        target: Its name.
        cells: Cells that passed or failed: the EP computed at least a part, and there was a golden.
        ways: Ways that were played in them, without those of the next.
        expected: Cells that failed as the matrix expects, with a fault of the EP as the reason.
        accused: Other cells that failed.
        left_out: Verdict -> other cells, which say nothing about the EP's numbers.
    """

    target: str
    cells: int
    ways: int
    expected: int
    accused: int
    left_out: dict[str, int]


def records_of(run: Path) -> list[Record]:
    """Read the records of a run."""
    lines = (run / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def rows_of(records: Iterable[Record]) -> Iterator[Row]:
    """Yield a row for each fault and model, in the order of the kinds."""
    found = {(one["target"], one["model"], one["axes"]["scenario"]): one for one in records if "axes" in one}
    for name, fault in FAULTS.items():
        for model in fault.models[:SITES]:
            generated = found.get((name, model, "generate"))
            once = found.get((name, model, "plain"))
            right = found.get((f"{HEALTHY}-all", model, "generate"))
            if generated is None or once is None or right is None:
                continue
            yield Row(
                fault=name,
                model=model,
                found=generated["family"] == FAILED,
                named=named(fault, generated),
                once=once["family"] == FAILED,
                text=_text(generated) != _text(right),
                reason=generated.get("reason", ""),
            )


def healthy_of(records: Iterable[Record]) -> list[Healthy]:
    """Return the healthy runs of the scenario ``generate`` that give a verdict about the CPU EP."""
    return [
        Healthy(
            cell=one["cell"],
            accused=one["family"] == FAILED,
            reason=one.get("reason", ""),
            ways=_ways(one),
        )
        for one in records
        if one["target"].startswith(HEALTHY)
        and one["axes"]["scenario"] == "generate"
        and one["family"] in {"passed", FAILED}
    ]


def planned_in(run: Path) -> list[str]:
    """Read the ids of the cells that a run was to have."""
    return (run / "plan.txt").read_text(encoding="utf-8").splitlines()


def elsewhere_of(records: Sequence[Record], planned: Iterable[str] = ()) -> list[Elsewhere]:
    """Return what became of each target's healthy cells, by the names of the targets.

    Args:
        records: Those of a run.
        planned: Ids of its cells; what has no record was not run.
    """
    found = {one.get("cell", ""): one for one in records}
    absent = [cell for cell in planned if cell not in found]
    missing = [
        {"target": parse_cell_id(cell)[2], "family": "missing", "verdict": "not_run"} for cell in absent
    ]
    by_target: dict[str, list[Record]] = {}
    for one in (*records, *missing):
        by_target.setdefault(one["target"], []).append(one)
    return [_elsewhere(target, own) for target, own in sorted(by_target.items())]


def _elsewhere(target: str, records: Iterable[Record]) -> Elsewhere:
    judged, others = [], Counter[str]()
    for one in records:
        if one["family"] in {"passed", FAILED}:
            judged.append(one)
        else:
            others[one["verdict"]] += 1
    known = [one for one in judged if one["family"] == FAILED and one["expected"]]
    return Elsewhere(
        target=target,
        cells=len(judged),
        ways=sum(map(_ways, judged)) - sum(map(_ways, known)),
        expected=len(known),
        accused=sum(one["family"] == FAILED for one in judged) - len(known),
        left_out=dict(sorted(others.items())),
    )


def _ways(record: Record) -> int:
    return len(record.get("generation", {}).get("ways", ()))


def named(fault: Fault, record: Record) -> bool | None:
    """Whether a record names the layer and the positions that are foretold; None if nothing is."""
    if fault.layer is None and not fault.since:
        return None
    ways = [way for way in record.get("generation", {}).get("ways", ()) if _first(way) is not None]
    if not ways:
        return False
    firsts = {way["way"]: _first(way) for way in ways}
    foretold = {way: position for way, position in fault.since.items() if way in firsts}
    if fault.since and not foretold:
        return False
    if any(firsts[way] != position for way, position in foretold.items()):
        return False
    return fault.layer is None or _layer(ways[0]) == fault.layer


def _layer(way: Record) -> int:
    """The layer of the first bad cache that a way names."""
    digits = [word for word in way.get("first_cache", "").replace("_", ".").split(".") if word.isdecimal()]
    return int(digits[0]) if digits else AFTER


def _first(way: Record) -> int | None:
    """The first bad position, of the logits or the cache."""
    places = [way[key] for key in ("first_bad", "cache_from") if way.get(key) is not None]
    return min(places, default=None)


def _text(record: Record) -> tuple[int, ...]:
    return tuple(record.get("generation", {}).get("text", ()))
