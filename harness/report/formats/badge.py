"""Badges: pictures, and JSON from which shields.io makes some (https://shields.io/badges/endpoint-badge)."""

from collections.abc import Iterator, Sequence
from html import escape

import msgspec

from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.report.formats.rows import TargetRow
from harness.report.view import Report
from harness.report.words.figures import Share
from harness.report.words.target_file_names import target_file_names

_MAX_LABEL = 200


class Badge(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One badge, with the keys of shields.io."""

    schema_version: int = 1
    label: str
    message: str
    color: str


_COLOURS = {
    "green": "#2f7d46", "yellow": "#8a6d00", "orange": "#9a5200", "red": "#b03a17", "lightgrey": "#6f747c",
}  # fmt: skip
"""A colour of shields.io -> one on which white text can be read."""

_CHAR_PX = 7


def badge_svg(badge: Badge) -> str:
    """Return a badge as a self-contained picture."""
    left, right = (_CHAR_PX * len(text) + 10 for text in (badge.label, badge.message))
    label, message = escape(badge.label), escape(badge.message)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{label}: {message}"><title>{label}: {message}</title>'
        f'<rect width="{left}" height="20" fill="#444c56"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{_COLOURS[badge.color]}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="5" y="14">{label}</text><text x="{left + 5}" y="14">{message}</text>'
        "</g></svg>\n"
    )


def badges(report: Report, targets: Sequence[TargetRow]) -> Iterator[tuple[str, Badge]]:
    """Yield ``(file name, badge)``: ``badge.json`` for the whole report, one in ``badges/`` for each target.

    The message is the share of tried cells with a right answer in which the EP had a part, with both numbers.
    The label has the target with its releases, driver and device, and whether it is simulated.
    """
    passed = [row.passed + row.passed_in_part for row in targets]
    whole = Share(sum(passed), sum(row.tried for row in targets), not report.complete)
    simulated = sum(bool(row.simulated) for row in targets)
    label = f"{report.name} ({simulated:,} of {len(targets):,} simulated)" if simulated else report.name
    failed = sum(row.failed for row in targets)
    yield "badge.json", _badge(label, whole, failed, _unexpected(targets), report.not_run)
    known = {each.target: each.line for each in reversed(report.identities)}
    for row, name in zip(targets, target_file_names(row.label for row in targets), strict=True):
        share = Share(row.passed + row.passed_in_part, row.tried, not report.complete)
        what = known.get(row.target)
        label = f"{row.label} ({what})" if what else row.label
        yield f"badges/{name}.json", _badge(label, share, row.failed, _unexpected((row,)), row.not_run)


def _unexpected(targets: Sequence[TargetRow]) -> int:
    """Return how many cells, and ends of targets, are not as the matrix expects."""
    return sum(row.unexpected + (not row.exit_expected) for row in targets)


def _badge(label: str, share: Share, failed: int, unexpected: int, not_run: int) -> Badge:
    message = f"{share.text} pass" if share.total else share.text
    if failed:
        message += f", {failed:,} fail"
    if not_run:
        message += f", {not_run:,} not run"
    if unexpected:
        color = "red"
    elif not_run:
        color = "orange"
    elif failed:  # as the matrix expects
        color = "yellow"
    else:
        color = "green" if share.count else "lightgrey"
    return Badge(label=one_line(visible(label), _MAX_LABEL), message=message, color=color)
