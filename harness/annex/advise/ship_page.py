"""The page *Code* of a report of one's own models: what makes the session of each configuration to ship."""

from collections.abc import Iterator
from pathlib import PurePath

import msgspec

from harness.annex.advise.session_code import session_code
from harness.core.records.cell import Cell
from harness.core.records.record import Record
from harness.plan.target import LIBRARY_SUFFIXES, Runtime, Target
from harness.report.pages.shipping_overview import ShippingRow, shipping_table, targets_of
from harness.report.site import SitePage
from harness.report.view import Report


class ShipCode(msgspec.Struct, frozen=True, kw_only=True):
    """The code for one model on one target.

    Attributes:
        anchor: Its id on the page, to which the row of the overview links.
    """

    anchor: str
    model: str
    row: ShippingRow
    code: str


class ShipCodePage(msgspec.Struct, frozen=True, kw_only=True):
    """The view of the page."""

    codes: tuple[ShipCode, ...]


def ship_code_pages(report: Report) -> Iterator[ShipCodePage]:
    """Yield the view if something can be shipped, and the matrix of the run is known."""
    table = shipping_table(report)
    targets = targets_of(report)
    if table is None:
        return
    records = {record.cell: record for _, record in report.run.records}
    codes = tuple(
        ShipCode(
            anchor=f"s{number}-{place}",
            model=model.name,
            row=row,
            code=_code(_without_paths(targets[row.target]), records[row.cell]),
        )
        for number, model in enumerate(table.models, start=1)
        for place, row in enumerate(model.rows, start=1)
        if row.has_code
    )
    if codes:
        yield ShipCodePage(codes=codes)


def _without_paths(target: Target) -> Target:
    """Return a target without paths of its machine: of a plugin library, its file name is left."""
    plugin = target.plugin
    if plugin is not None and PurePath(plugin).suffix in LIBRARY_SUFFIXES:
        plugin = plugin.replace("\\", "/").rpartition("/")[2]
    return msgspec.structs.replace(target, plugin=plugin, runtime=Runtime(packages=target.runtime.packages))


def _code(target: Target, record: Record) -> str:
    axes = tuple(sorted(record.axes.items()))
    cell = Cell(suite=record.suite, model=record.model, target=record.target, axes=axes)
    return session_code(target, cell, PurePath(record.suite, record.model))


SHIP_PAGE = SitePage(title="Code", stem="ship", template="page_ship.html", views=ship_code_pages)
