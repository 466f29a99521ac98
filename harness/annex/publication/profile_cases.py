"""The cases of one profile by provider, and the data of the page that compares any two submissions."""

from collections.abc import Iterable, Sequence

import msgspec
from markupsafe import Markup

from harness.annex.conformance.level import CaseResult, Standing, case_label
from harness.annex.conformance.profiles.profile import CORE, Profile, ProfileCase
from harness.annex.conformance.submission import Totals
from harness.annex.publication.devices import device_id
from harness.annex.publication.entry import AcceptedSubmission
from harness.annex.publication.lines import Line
from harness.annex.publication.operator_reach import Reach, reach_of
from harness.report.pages.any_two import (
    ComparedGroup,
    ComparedSide,
    VerdictLetters,
    compare_archive,
    side_text,
)
from harness.report.pages.page import packed_text
from harness.report.words.tone import SYMBOLS, spoken, tone

SEVERAL = "several operators"
"""Heading of the cases whose models have more than one operator."""


class CaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """One case; ``results`` are in the order of the columns.

    Attributes:
        shown: Words by which a filter selects it: ``failing`` if it does not pass everywhere, ``differing``
            if it passes only in some columns.
    """

    case: ProfileCase
    label: str
    results: tuple[CaseResult, ...]
    shown: tuple[str, ...]


class CaseGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The cases of one operator, or those of models under ``SEVERAL``.

    Reaches are in the order of the columns.
    """

    name: str
    reaches: tuple[Reach, ...]
    rows: tuple[CaseRow, ...]


class ProfileView(msgspec.Struct, frozen=True, kw_only=True):
    """The page of a profile.

    Attributes:
        columns: The newest submission of each line.
        features: Name, meaning, and totals in each column; ``core`` first.
    """

    profile: Profile
    columns: tuple[AcceptedSubmission, ...]
    features: tuple[tuple[str, str, tuple[Totals, ...]], ...]
    groups: tuple[CaseGroup, ...]


def view_of(profile: Profile, lines: Iterable[Line]) -> ProfileView:
    """Return the page of a profile, from lines with or without a submission of it."""
    columns = tuple(line.newest[profile.label] for line in lines if profile.label in line.newest)
    meanings = {feature.name: feature.meaning for feature in profile.features}
    results = list(zip(*(entry.result.cases for entry in columns), strict=True)) or [()] * len(profile.cases)
    rows = tuple(_row(case, found) for case, found in zip(profile.cases, results, strict=True))
    groups: dict[str, list[CaseRow]] = {}
    for row in rows:
        groups.setdefault(next(iter(row.case.ops)) if len(row.case.ops) == 1 else SEVERAL, []).append(row)
    return ProfileView(
        profile=profile,
        columns=columns,
        features=tuple(
            (name, meanings.get(name, ""), tuple(entry.result.features[name] for entry in columns))
            for name in (CORE, *meanings)
        ),
        groups=tuple(
            _group(name, groups[name]) for name in sorted(groups, key=lambda one: (one == SEVERAL, one))
        ),
    )


def archive_of(profile: Profile, lines: Iterable[Line]) -> Markup:
    """Return the data of all submissions of a profile for the comparing page.

    The addresses of a line and of a device mean their newest submission.
    """
    letters = VerdictLetters()
    groups: list[ComparedGroup] = []
    sides = []
    for line in lines:
        entries = line.of_profile(profile.label)
        if not entries:
            continue
        newest = entries[0]
        told = side_text(f"{newest.statement.product.name}, {newest.device}")
        groups.append(ComparedGroup(name=told, ids=(line.id, device_id(newest))))
        for entry in entries:
            where = entry.statement.environment
            version = f"{entry.label}, onnxruntime {where.onnxruntime}, {entry.statement.created[:10]}"
            sides.append(
                ComparedSide(
                    id=entry.id,
                    group=len(groups) - 1,
                    name=side_text(version),
                    verdicts="".join(_letter(letters, one) for one in entry.result.cases),
                )
            )
    return compare_archive([case_label(case) for case in profile.cases], letters, groups, sides)


def addresses_by_profile(lines: Iterable[Line], labels: Iterable[str]) -> Markup:
    """Return the ids that the comparison of each profile knows: base64 of zlib of JSON."""
    lines = tuple(lines)
    told = [
        (
            label,
            sorted(
                {
                    address
                    for line in lines
                    for entry in line.of_profile(label)
                    for address in (entry.id, line.id, device_id(entry))
                }
            ),
        )
        for label in labels
    ]
    return packed_text(msgspec.json.encode(told), 9)


def _letter(letters: VerdictLetters, one: CaseResult) -> str:
    tones = tone(one.verdict)
    return letters.of(f"{SYMBOLS[tones]} {spoken(one.verdict)}", tones, one.standing.value)


def _row(case: ProfileCase, results: Sequence[CaseResult]) -> CaseRow:
    passes = {one.standing is Standing.PASSED for one in results}
    shown = {"failing": False in passes, "differing": len(passes) > 1}
    return CaseRow(
        case=case,
        label=case_label(case),
        results=tuple(results),
        shown=tuple(word for word, holds in shown.items() if holds),
    )


def _group(name: str, rows: Sequence[CaseRow]) -> CaseGroup:
    columns = zip(*(row.results for row in rows), strict=True)
    return CaseGroup(name=name, reaches=tuple(reach_of(results) for results in columns), rows=tuple(rows))
