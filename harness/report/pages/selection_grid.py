"""The table of selection policies on the page *API*: which device each of them chooses, by machine."""

import msgspec

from harness.core.records.selection_study import SelectionAnswer, SelectionStudy
from harness.report.view import Report
from harness.report.words.tone import SYMBOLS


class SelectionHead(msgspec.Struct, frozen=True, kw_only=True):
    """A machine, with the libraries among which its policies choose.

    Attributes:
        libraries: In words.
        remarks: Libraries that take no part and why, or why nothing was tried.
    """

    run: str
    machine: str
    runtime: str
    libraries: str
    remarks: tuple[str, ...]


class SelectionChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy chooses.

    Attributes:
        choice: The device and its provider, in words.
        wrong: What is wrong with it; empty if nothing is.
        is_idle: Whether the provider computes nothing.
    """

    choice: str
    wrong: str
    is_idle: bool

    @property
    def tone(self) -> str:
        """The tone of its chip."""
        return "failed" if self.wrong else "untested" if self.is_idle else "passed"

    @property
    def symbol(self) -> str:
        """The symbol of its chip."""
        return SYMBOLS[self.tone]


class SelectionGrid(msgspec.Struct, frozen=True, kw_only=True):
    """Policies by machines; null where a runtime has no such policy."""

    heads: tuple[SelectionHead, ...]
    lines: tuple[tuple[str, tuple[SelectionChoice | None, ...]], ...]


def selection_grid(report: Report) -> SelectionGrid | None:
    """Return the table; None if no run tried a policy."""
    studies = report.run.policies
    if not studies:
        return None
    names = dict.fromkeys(answer.policy for _, study in studies for answer in study.answers)
    by_policy = [{answer.policy: answer for answer in study.answers} for _, study in studies]
    lines = [
        (
            name,
            tuple(
                _choice(study, found[name]) if name in found else None
                for (_, study), found in zip(studies, by_policy, strict=True)
            ),
        )
        for name in names
    ]
    return SelectionGrid(heads=tuple(_head(run, study) for run, study in studies), lines=tuple(lines))


def _head(run: str, study: SelectionStudy) -> SelectionHead:
    taking = [name for name, why in study.libraries.items() if not why]
    return SelectionHead(
        run=run,
        machine=study.machine,
        runtime=study.runtime,
        libraries=", ".join(taking) or "no plugin",
        remarks=(
            *([study.declined] if study.declined else []),
            *(f"{name} takes no part: {why}" for name, why in study.libraries.items() if why),
        ),
    )


def _choice(study: SelectionStudy, answer: SelectionAnswer) -> SelectionChoice:
    return SelectionChoice(choice=answer.choice, wrong=study.wrong(answer), is_idle=answer.is_idle)
