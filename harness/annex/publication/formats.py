"""What other programs read: badges, the Atom feed, and ``data.json``."""

import csv
import io
import math
import uuid
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, Literal

import msgspec

from harness.annex.conformance.submission import Level, Statement
from harness.annex.publication.devices import DeviceFacts, SiteDevice, driver_of
from harness.annex.publication.entry import AcceptedSubmission
from harness.annex.publication.gather import Gathered, RefusedSubmission
from harness.annex.publication.lines import line_id
from harness.core.files.json_schema import json_schema_of
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.plan.device_identity import DeviceIdentity
from harness.report.formats.badge import Badge
from harness.report.words.inert import inert_csv

_SHIELDS = {Level.CONFORMANT: "green", Level.PARTIAL: "yellow", Level.NOT: "red"}

_DATA_OF_A_PAGE = 200
"""Submissions of one page of data: some 2 MB with a profile of 200 cases."""

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://in-toto.io/attestation/test-result/v0.1")


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """One submission in ``data.json``.

    Attributes:
        id: Its address is ``s/<id>/``.
        line: Address of its provider and device, ``l/<line>/``.
        level: Its level, decided again by the publisher.
        marks: Why a person has to examine it; empty if it is verified.
        signer: Identity or fingerprint of the key; empty if nobody signed.
        passed: Passed cases of core and claimed features.
        required: All cases of these features.
        simulated: The program that stands for its accelerator; empty without one, or if it is not known.
        facts: Its device and the build of its provider, as far as its run tells them.
        statement: Its ``statement.json``.
        cases: Label of a case -> its verdict.
    """

    id: str
    line: str
    level: Level
    marks: tuple[str, ...]
    signer: str
    passed: int
    required: int
    statement: Statement
    cases: dict[str, str]
    simulated: str = ""
    facts: DeviceIdentity = DeviceIdentity()


class PublicationData(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of ``data.json``; the newest submission first.

    Attributes:
        next: Address within the site of the page with older submissions; empty if there are none.
    """

    schema: Literal[1]
    submissions: tuple[Published, ...]
    refused: tuple[RefusedSubmission, ...]
    next: str = ""


class ListedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device in ``devices.json``.

    Attributes:
        id: Its address is ``d/<id>/``.
        facts: What its statements tell about it.
        submissions: Their number.
        newest: The day of the newest one.
        data: Address of its submissions, in the format of ``data.json``; ``history`` of a table of them, CSV.
    """

    id: str
    label: str
    facts: tuple[DeviceFacts, ...]
    drivers: tuple[str, ...]
    submissions: int
    newest: str
    data: str
    history: str


class DeviceList(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of ``devices.json``."""

    schema: Literal[1]
    devices: tuple[ListedDevice, ...]


class HistoryRow(msgspec.Struct, frozen=True, kw_only=True):
    """One submission in ``history.csv`` of a device; the newest first."""

    id: str
    created: str
    vendor: str
    product: str
    version: str
    provider: str
    onnxruntime: str
    driver: str
    firmware: str
    build: str
    profile: str
    level: str
    passed: int
    required: int
    signer: str


class DataPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the data of a site; attributes as in ``PublicationData``."""

    entries: tuple[AcceptedSubmission, ...]
    refused: tuple[RefusedSubmission, ...]
    next: str

    def contents(self) -> PublicationData:
        """Return what is written."""
        return data_of(self.entries, self.refused, self.next)


def data_of(
    entries: Iterable[AcceptedSubmission], refused: tuple[RefusedSubmission, ...] = (), next_page: str = ""
) -> PublicationData:
    """Return the contents of ``data.json``: of a site, of one page of it, or of one device."""
    submissions = tuple(map(_published, entries))
    return PublicationData(schema=1, submissions=submissions, refused=refused, next=next_page)


def data_pages(
    entries: Sequence[AcceptedSubmission], refused: tuple[RefusedSubmission, ...]
) -> Iterator[tuple[str, DataPage]]:
    """Yield the pages of a site's data by name: ``data.json`` has the newest submissions.

    The others are counted from the oldest on, so that a new submission changes ``data.json`` alone, or adds
    one page.
    """
    pages = max(1, math.ceil(len(entries) / _DATA_OF_A_PAGE))
    for page in range(pages, 0, -1):
        end = len(entries) - (page - 1) * _DATA_OF_A_PAGE
        yield (
            "data.json" if page == pages else f"data-{page}.json",
            DataPage(
                entries=tuple(entries[max(0, end - _DATA_OF_A_PAGE) : end]),
                refused=refused if page == pages else (),
                next=f"data-{page - 1}.json" if page > 1 else "",
            ),
        )


def devices_data(devices: Iterable[SiteDevice]) -> DeviceList:
    """Return the contents of ``devices.json``."""
    return DeviceList(
        schema=1,
        devices=tuple(
            ListedDevice(
                id=one.id,
                label=one.label,
                facts=one.facts,
                drivers=one.drivers,
                submissions=len(one.history),
                newest=one.newest,
                data=f"d/{one.id}/data.json",
                history=f"d/{one.id}/history.csv",
            )
            for one in devices
        ),
    )


def history_csv(device: SiteDevice) -> bytes:
    """Return the submissions of a device as a table for a spreadsheet: UTF-8 with a byte order mark."""
    lines = io.StringIO()
    writer = csv.writer(lines, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    writer.writerow(HistoryRow.__struct_fields__)
    for entry, *_ in device.history:
        values = msgspec.structs.astuple(_history_row(entry))
        writer.writerow([inert_csv(one) if isinstance(one, str) else one for one in values])
    return lines.getvalue().encode("utf-8-sig")


def _published(entry: AcceptedSubmission) -> Published:
    return Published(
        id=entry.id,
        line=line_id(entry),
        level=entry.level,
        marks=entry.marks,
        signer=entry.signer,
        passed=entry.share.count,
        required=entry.share.total,
        statement=entry.statement,
        simulated=entry.simulated,
        facts=entry.facts,
        cases={one.label: one.verdict.value for one in entry.result.cases},
    )


def _history_row(entry: AcceptedSubmission) -> HistoryRow:
    said, where = entry.statement, entry.statement.environment
    return HistoryRow(
        id=entry.id,
        created=said.created,
        vendor=said.product.vendor,
        product=said.product.name,
        version=said.product.version,
        provider=where.provider,
        onnxruntime=where.onnxruntime,
        driver=driver_of(entry),
        firmware=entry.facts.firmware,
        build=entry.facts.build,
        profile=entry.profile,
        level=entry.level.value,
        passed=entry.share.count,
        required=entry.share.total,
        signer=entry.signer,
    )


def shields(entry: AcceptedSubmission) -> Badge:
    """Return the badge for shields.io."""
    return Badge(
        label=_label(entry),
        message=_message(entry),
        color="lightgrey" if entry.computes_none else _SHIELDS[entry.level],
    )


def atom(gathered: Gathered, title: str) -> str:
    """Return the feed, RFC 4287, of all submissions; links are relative to it."""
    newest = gathered.entries[0].statement.created if gathered.entries else "1970-01-01T00:00:00Z"
    items = "".join(
        f"<entry><id>urn:uuid:{uuid.uuid5(_NAMESPACE, entry.id)}</id>"
        f"<title>{_xml(f'{entry.label}: {entry.word} to {entry.profile}')}</title>"
        f'<link href="s/{entry.id}/index.html"/><updated>{_xml(entry.statement.created)}</updated>'
        f"<author><name>{_xml(entry.statement.product.vendor)}</name></author></entry>\n"
        for entry in gathered.entries
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<id>urn:uuid:{uuid.uuid5(_NAMESPACE, title)}</id><title>{_xml(title)}</title>"
        f'<link href="index.html"/><updated>{_xml(newest)}</updated>\n{items}</feed>\n'
    )


def data_schema() -> dict[str, Any]:
    """Return the schema of ``data.json``: docs/reference/publication.schema.json."""
    return json_schema_of(PublicationData, "data.json")


def _label(entry: AcceptedSubmission) -> str:
    return one_line(visible(entry.profile), 40)


def _message(entry: AcceptedSubmission) -> str:
    marked = ", marked" if entry.marks else ""
    simulated = ", simulated" if entry.simulated else ""
    return f"{entry.word} {entry.share.count}/{entry.share.total}{simulated}{marked}"


def _xml(text: str) -> str:
    return escape(one_line(visible(text)))
