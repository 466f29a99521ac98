"""Check the statement against its subjects: records, run.json, waivers.toml and the clock."""

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from harness.annex.conformance.attestation import Attestation, attestation_of
from harness.annex.conformance.level import ProfileResult, Standing
from harness.annex.conformance.submission import (
    ATTESTATION,
    STATEMENT,
    STATEMENT_SCHEMA,
    SUBMITTED_RUN,
    WAIVERS,
    Statement,
    Waiver,
)
from harness.annex.conformance.submitted_environment import submitted_environment_of, version_of
from harness.annex.conformance.verify.finding import Finding, finding
from harness.annex.conformance.waivers import covers
from harness.core.files.toml_text import toml_table
from harness.core.records.record import Record
from harness.core.records.run_info import RunInfo

MOST_WAIVERS = 1000
"""Waivers of a submission; each is compared with all cases."""

_CLOCKS = dt.timedelta(minutes=5)
"""Largest difference between two clocks."""


def result_findings(
    statement: Statement, result: ProfileResult, attestation: Attestation
) -> Iterator[Finding]:
    """Yield level, totals and missing cases that do not follow from the records."""
    if statement.schema != STATEMENT_SCHEMA:
        yield finding(
            "other-schema", STATEMENT, f"schema {statement.schema}, this version reads {STATEMENT_SCHEMA}"
        )
    if statement.level is not result.level:
        yield finding("level", STATEMENT, f"{statement.level}, and the records give {result.level}")
    if statement.features != result.features:
        names = [
            name
            for name in {*statement.features, *result.features}
            if statement.features.get(name) != result.features.get(name)
        ]
        yield finding("totals", STATEMENT, f"other totals of {', '.join(sorted(names))}")
    if statement.missing != result.missing:
        names = sorted({*statement.missing} ^ {*result.missing})
        yield finding("missing-list", STATEMENT, f"wrong about {', '.join(names[:5]) or 'the order'}")
    wanted = attestation_of({}, statement.profile, result)
    same = (attestation.type_, attestation.predicate_type, attestation.predicate)
    if same != (wanted.type_, wanted.predicate_type, wanted.predicate):
        yield finding("attestation", ATTESTATION, "its result or profile is not that of the records")


def run_findings(statement: Statement, run: RunInfo, records: Sequence[Record]) -> Iterator[Finding]:
    """Yield where ``run.json`` is about another run or environment."""
    targets = {record.target for record in records}
    if run.cells != len(records) or not run.complete:
        yield finding(
            "run", SUBMITTED_RUN, f"{run.cells} cells, complete: {run.complete}; {len(records)} records"
        )
    if not targets <= run.targets.keys():
        yield finding("run", SUBMITTED_RUN, "the target of the records is not in it")
        return
    for target in targets:
        yield from _environment(statement, run.targets[target])


def _environment(statement: Statement, fingerprint: dict[str, Any]) -> Iterator[Finding]:
    """Yield where the statement's environment differs from the agent's."""
    told = statement.environment
    try:
        found = submitted_environment_of(told.provider, fingerprint)
        version = version_of(found, fingerprint)
    except (AttributeError, TypeError, ValueError) as error:
        yield finding("run", SUBMITTED_RUN, f"no fingerprint of a target: {error}")
        return
    for field in told.__struct_fields__:
        stated, right = getattr(told, field), getattr(found, field)
        if stated != right:
            what = f"{field}: {stated or 'none'}, and {SUBMITTED_RUN} has {right or 'none'}"
            yield finding("other-environment", STATEMENT, what)
    if statement.product.version != version:
        what = f"version of the product: {statement.product.version}, and {SUBMITTED_RUN} has {version}"
        yield finding("other-environment", STATEMENT, what)
    providers = fingerprint.get("providers")
    if isinstance(providers, list) and providers and told.provider not in providers:
        yield finding("other-environment", STATEMENT, f"{told.provider} is no provider of {SUBMITTED_RUN}")


def time_findings(statement: Statement, records: Sequence[Record], now: dt.datetime) -> Iterator[Finding]:
    """Yield impossible times: cells that end after the statement, or a statement from the future."""
    created = _time(statement.created)
    if created is None:
        yield finding("time", STATEMENT, f"created is no time with its zone: {statement.created!r}")
        return
    if created > now + _CLOCKS:
        yield finding("future", STATEMENT, f"created {statement.created}, and it is {now.isoformat()}")
    for record in records:
        if not record.started:
            continue
        started = _time(record.started)
        if started is None:
            yield finding("time", record.cell, f"started is no time with its zone: {record.started!r}")
        elif started > created + _CLOCKS:
            yield finding("time", record.cell, f"started {record.started}, after {statement.created}")


def waiver_findings(
    statement: Statement, content: bytes | None, result: ProfileResult, now: dt.datetime
) -> Iterator[Finding]:
    """Yield waivers that are wrong, expired or unused, and those that only one of the two files has."""
    try:
        table = toml_table(content or b"")
        written = msgspec.convert(table.get("waiver", []), tuple[Waiver, ...])
    except (ValueError, msgspec.ValidationError, RecursionError) as error:
        yield finding("waivers", WAIVERS, error)
        return
    if len(statement.waivers) > MOST_WAIVERS:
        yield finding("waivers", WAIVERS, f"more than {MOST_WAIVERS:,} waivers")
        return
    if written != statement.waivers or set(table) - {"waiver"}:
        yield finding("waivers", WAIVERS, f"its waivers are not those of {STATEMENT}")
    for waiver in statement.waivers:
        covered = [one for one in result.cases if covers(waiver, one.label)]
        if not waiver.issue.startswith(("https://", "http://")) or not waiver.words.strip():
            yield finding("waivers", waiver.case, f"needs an http(s) issue and words; issue {waiver.issue!r}")
        if not covered:
            yield finding("waivers", waiver.case, "the profile has no such case")
        elif all(one.standing is Standing.PASSED for one in covered):
            yield finding("waiver-idle", waiver.case, "it covers only cases that pass")
        if waiver.expires <= now.date():
            yield finding("waiver-expired", waiver.case, f"expired on {waiver.expires}")


def _time(text: str) -> dt.datetime | None:
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None
