"""The page *Precision*: its view, beside the bits, noise and conversion that the report has."""

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from harness.core.comparison.noise_limits import DEFAULT_LIMITS
from harness.core.comparison.output_metrics import Noise
from harness.report.cells.column_precision import on_scale
from harness.report.cells.headroom import BANDS, ColumnHeadroom, closest, column_headroom
from harness.report.cells.noise_errors import farthest, on_log_scale, without_noise
from harness.report.cells.report_cell import ReportCell
from harness.report.pages.effect import ColumnEffect, report_effects
from harness.report.pages.task_answers import ColumnAgreement, column_agreements
from harness.report.view import Report


class PrecisionPage(msgspec.Struct, frozen=True, kw_only=True):
    """The view of the page.

    Attributes:
        closest: Right answers closest to their limit, with their share of the allowed error.
        far: Cells that rounding noise does not explain, with the noise of their worst output.
        without_noise: ``(reason, cells)``: why the noise that should have judged is unknown.
    """

    headroom: tuple[ColumnHeadroom, ...]
    closest: tuple[tuple[float, ReportCell], ...]
    far: tuple[tuple[Noise, ReportCell], ...]
    without_noise: tuple[tuple[str, int], ...]
    effects: tuple[ColumnEffect, ...]
    agreements: tuple[ColumnAgreement, ...]

    bands: ClassVar = BANDS
    limits: ClassVar = DEFAULT_LIMITS
    on_scale = staticmethod(on_scale)
    on_log_scale = staticmethod(on_log_scale)


def precision_view(report: Report) -> Iterator[PrecisionPage]:
    """Yield the view."""
    yield PrecisionPage(
        headroom=tuple(column_headroom(column, report.by_column[column]) for column in report.columns),
        closest=closest(report.cells),
        far=farthest(report.cells),
        without_noise=without_noise(record for _, record in report.run.records),
        effects=tuple(report_effects(report)),
        agreements=tuple(column_agreements(report)),
    )
