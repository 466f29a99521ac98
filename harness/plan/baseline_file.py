"""The file of a baseline, TOML: the results that targets are known to have on one class of machines."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harness.core.files.structure import FilePlace, deviations
from harness.core.records.cell import parse_cell_id
from harness.core.records.verdict import Family, Verdict, is_result
from harness.core.text.errors import Problem, UsageError, one_line, valid_names
from harness.plan.baselines import Baseline, of_targets
from harness.plan.matrix import read_toml
from harness.plan.plan import Plan
from harness.plan.selector import SelectorText
from harness.plan.where import WhereTable, conditions, where_from, where_problems

MOST_FILES = 1000
"""Baselines in one folder: a file for each class of machines."""

_SHOWN = 5
"""Number of problems of one file that are reported."""

FAILURES = tuple(one for one in Verdict if one.family is Family.FAILED and one is not Verdict.UNCLEAN_EXIT)
"""Failures that a baseline may know of a cell."""

RESULTS = tuple(one for one in Verdict if is_result(one) and one.family is not Family.FAILED)
"""Other results that it may know."""

_TABLES = {"failures": FAILURES, "results": RESULTS}
"""Tables of a target that have lists of cells -> the verdicts that are their keys."""

BaselineShare = Annotated[float, Meta(ge=0, le=1)]
Ids = Annotated[list[SelectorText], Meta(description="Ids of cells.")]


class BaselineTarget(msgspec.Struct, kw_only=True):
    """One target, where it ran."""

    name: Annotated[SelectorText, Meta(description="As in the matrix.")]
    provider: Annotated[SelectorText, Meta(description="The first provider of its chain.")]
    where: Annotated[
        WhereTable, Meta(description="The class of machines; all conditions must hold. As in `[[expect]]`.")
    ]
    failures: Annotated[
        dict[SelectorText, Ids],
        Meta(description=f"Verdict -> cells that have it there. Verdicts: {', '.join(FAILURES)}."),
    ] = {}
    results: Annotated[
        dict[SelectorText, Ids],
        Meta(
            description="Verdict -> cells that have it there; a worse one is unexpected. Verdicts: "
            f"{', '.join(RESULTS)}."
        ),
    ] = {}
    shares: Annotated[
        dict[SelectorText, BaselineShare],
        Meta(description="Cell that passes in part -> part of its compute on the EP, from 0 to 1."),
    ] = {}


class BaselineFile(msgspec.Struct, kw_only=True):
    """Known results on a class of machines, by `ep-harness baseline write`."""

    schema: Annotated[Literal[1], Meta(description="Version of the file format.")]
    target: Annotated[
        list[BaselineTarget], Meta(min_length=1, description="The known failures of each target.")
    ]


def load_baselines(path: Path) -> tuple[Baseline, ...]:
    """Read a baseline, or all ``*.toml`` files of a folder, sorted by name; an empty folder has none.

    Raises:
        UsageError: There is no such file or folder, or a file is not a baseline; the error has its problems.
    """
    if not path.exists() and path.suffix != ".toml":
        hint = "for a first run, make an empty folder of this name"
        raise UsageError.at(path, "there is no such folder of baselines", hint)
    if not path.is_dir():
        return baselines_from(read_toml(path), path)
    files = sorted(path.glob("*.toml"))
    if len(files) > MOST_FILES:
        raise UsageError.at(path, f"more than {MOST_FILES:,} baselines", "name those that are meant")
    return tuple(one for file in files for one in baselines_from(read_toml(file), file))


def baselines_from(table: dict[str, Any], path: Path) -> tuple[Baseline, ...]:
    """Check a baseline that ``tomllib`` has parsed; ``path`` names it in messages.

    Raises:
        UsageError: It is not a baseline; the error has its first problems.
    """
    place = FilePlace(str(path))
    problems = [*deviations(table, msgspec.inspect.type_info(BaselineFile), place)]
    if not problems:
        problems = [*_contradictions(table, place)]
    if problems:
        rest = len(problems) - _SHOWN
        more = [place.problem(f"and {rest:,} more problems")] if rest > 0 else []
        raise UsageError(*problems[:_SHOWN], *more)
    return tuple(
        Baseline(
            file=str(path),
            target=entry["name"],
            provider=entry["provider"],
            where=where_from(entry["where"]),
            failures=_by_verdict(entry.get("failures", {})),
            results=_by_verdict(entry.get("results", {})),
            shares={cell: float(share) for cell, share in entry.get("shares", {}).items()},
        )
        for entry in table["target"]
    )


def with_baselines(plan: Plan, paths: Sequence[Path]) -> Plan:
    """Return a plan whose verdicts are compared with baselines: files, or folders of them.

    Raises:
        UsageError: One is wrong, or a file has no target of the plan.
    """
    if not paths:
        return plan
    providers = plan.matrix.first_providers
    found: dict[str, tuple[Baseline, ...]] = {}
    for path in paths:
        its = load_baselines(path)
        found[str(path.absolute())] = known = of_targets(its, providers)
        if its and not known and not path.is_dir():
            names = ", ".join(
                f"{one_line(one.target, 60)!r} ({one_line(one.provider, 60)})" for one in its[:_SHOWN]
            )
            raise UsageError.at(
                path, f"knows no target of the matrix, but {names}", "choose another baseline"
            )
    baselines = tuple(one for its in found.values() for one in its)
    return msgspec.structs.replace(plan, matrix=msgspec.structs.replace(plan.matrix, baselines=baselines))


def baseline_text(baselines: tuple[Baseline, ...]) -> str:
    """Return the file for some baselines: sorted, one line for each cell."""
    lines = [
        "# Results that targets are known to have on one class of machines, as ep-harness baseline write",
        "# found them. Reasons of failures are in the matrix, as [[expect]].",
        "schema = 1",
    ]
    for one in sorted(baselines, key=lambda one: one.target):
        lines += ["", "[[target]]", f"name = {_toml(one.target)}", f"provider = {_toml(one.provider)}"]
        lines += ["", "[target.where]"]
        lines += [f"{key} = {_toml(wanted)}" for key, wanted in conditions(one.where).items()]
        for table, of in (("failures", one.failures), ("results", one.results)):
            lines += ["", f"[target.{table}]"] if of else []
            for verdict in sorted(of):
                lines += [
                    f"{verdict.value} = [",
                    *(f"    {_toml(cell)}," for cell in sorted(of[verdict])),
                    "]",
                ]
        lines += ["", "[target.shares]"] if one.shares else []
        lines += [f"{_toml(cell)} = {share:.3f}" for cell, share in sorted(one.shares.items())]
    return "\n".join(lines) + "\n"


def baseline_schema() -> dict[str, Any]:
    """Return the file as JSON Schema (2020-12), for editors; unknown keys are refused everywhere."""
    (root,), tables = msgspec.json.schema_components([BaselineFile], ref_template="#/$defs/{name}")
    for table in tables.values():
        table["additionalProperties"] = False
        table.pop("title")
    for name, verdicts in _TABLES.items():
        tables["BaselineTarget"]["properties"][name]["propertyNames"] = {"enum": [*verdicts]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ort-ep-harness baseline",
        **root,
        "$defs": tables,
    }


def _contradictions(table: Mapping[str, Any], place: FilePlace) -> Iterator[Problem]:
    """Yield errors that the types of a file do not show."""
    for index, entry in enumerate(table["target"]):
        here = place.key("target").item(index)
        yield from where_problems(entry["where"], here.key("where"))
        if "delivers" in entry["where"]:
            what = "the precision of single cells is no class of machines"
            yield here.key("where").key("delivers").problem(what, "remove it")
        seen: dict[str, str] = {}
        its = [(name, *item) for name in _TABLES for item in entry.get(name, {}).items()]
        for name, verdict, cells in its:
            below, valid = here.key(name).key(verdict), _TABLES[name]
            if verdict not in valid:
                what = "not a failure of a cell" if valid is FAILURES else "not a result without a failure"
                yield below.problem(what, valid_names(verdict, valid, len(valid)))
            for at, cell in enumerate(cells):
                if problem := _about(cell, entry["name"]):
                    yield below.item(at).problem(problem)
                elif seen.setdefault(cell, verdict) != verdict:
                    yield below.item(at).problem(
                        f"{one_line(cell, 60)!r} is {seen[cell]} as well", "leave one of them"
                    )
        for cell in entry.get("shares", {}):
            if problem := _about(cell, entry["name"]):
                yield here.key("shares").problem(problem)


def _by_verdict(of: Mapping[str, Sequence[str]]) -> dict[Verdict, tuple[str, ...]]:
    return {Verdict(verdict): tuple(sorted(cells)) for verdict, cells in of.items()}


def _about(cell: str, target: str) -> str:
    """Return what is wrong with the id of a cell; empty if it is valid."""
    try:
        its = parse_cell_id(cell)[2]
    except ValueError:
        return f"not a cell id: {one_line(cell, 60)!r}; it reads suite/model[target,axis=value]"
    if its == target:
        return ""
    return f"a cell of the target {one_line(its, 60)!r}, in the table of {one_line(target, 60)!r}"


def _toml(value: Any) -> str:
    """Return a text, a truth value or a list of texts in TOML, in which JSON's spelling is valid, too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
