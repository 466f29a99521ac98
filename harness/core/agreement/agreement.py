"""Task agreement: whether the EP's answer to the task equals the golden's, beside the values themselves.

It never changes a verdict. ``harness.core.agreement.agreement_kinds`` has the tasks.
``harness.core.agreement.agreement_default`` chooses tasks where a matrix names none.
"""

from collections.abc import Iterable, Mapping

import msgspec


class Agreement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many answers to one task equal the golden's, over all data sets.

    Attributes:
        output: The output that has the answers; empty if a function takes all outputs.
        kind: The task as in a matrix, such as ``top1``, ``argmax:1`` or ``task:judge``.
        same: Answers that equal the golden's; a fraction of ``of`` if a function returns a share.
        of: Answers of the golden; 0 if it has none, or if ``failed`` gives a reason.
        tied: Answers that differ where the golden's own choice lies within rounding.
        failed: Why there is no figure, in one line; empty if there is one.
    """

    output: str
    kind: str
    same: int | float = 0
    of: int = 0
    tied: int = 0
    failed: str = ""

    @property
    def share(self) -> float | None:
        """The share of answers that do not disagree: ties included; None without a figure."""
        return (self.same + self.tied) / self.of if self.of else None

    @property
    def others(self) -> float:
        """Answers that disagree."""
        return self.of - self.same - self.tied


TASK_NAMES = {
    "top1": "top-1",
    "top5": "top-5",
    "argmax": "argmax",
    "threshold": "threshold",
    "ctc": "decoded text",
    "ids": "sequences",
    "boxes": "boxes",
}
"""Task of the harness -> its name in words; ``agreement_kinds`` counts the answers of each."""


def task_name(kind: str) -> str:
    """Return a task in words: ``top-1``, ``argmax along axis 1``, ``threshold 0.3``; a function as it is."""
    stem, _, number = kind.partition(":")
    name = TASK_NAMES.get(stem)
    if name is None:
        return kind
    if not number:
        return name
    words = {"argmax": f"along axis {number}", "boxes": f"by IoU {number}", "ctc": f"with blank {number}"}
    return f"{name} {words.get(stem, number)}"


def agreement_words(one: Agreement) -> str:
    """Return ``top-1 the same in 39 of 40, 1 tied``, without the name of the output."""
    name = task_name(one.kind)
    if not one.of:
        return f"{name} unknown: {one.failed}" if one.failed else f"{name}: no answer"
    if one.same != int(one.same):
        told = f"{name} agrees to {100 * one.same / one.of:.4g}%"
    else:
        told = f"{name} the same in {int(one.same):,} of {one.of:,}"
    tied = f", {one.tied:,} tied" if one.tied else ""
    return told + tied + (f" ({one.failed})" if one.failed else "")


def agreements_words(found: Iterable[Agreement]) -> str:
    """Return all figures in one line, each output named once."""
    by_output: dict[str, list[str]] = {}
    for one in found:
        by_output.setdefault(one.output, []).append(agreement_words(one))
    return "; ".join(
        (f"{output}: " if output else "") + ", ".join(words) for output, words in by_output.items()
    )


def summed(found: Iterable[Agreement]) -> tuple[Agreement, ...]:
    """Return one figure for each output and task, from those of single data sets, in their order."""
    total: dict[tuple[str, str], Agreement] = {}
    for one in found:
        key = (one.output, one.kind)
        before = total.get(key)
        total[key] = one if before is None else _sum(before, one)
    return tuple(total.values())


def _sum(one: Agreement, other: Agreement) -> Agreement:
    return msgspec.structs.replace(
        one,
        same=one.same + other.same,
        of=one.of + other.of,
        tied=one.tied + other.tied,
        failed=one.failed or other.failed,
    )


def answers_ratio(found: Iterable[Agreement]) -> str:
    """Return the first figure alone: ``39/40``, or ``93%`` for a share; empty without one."""
    one = next(iter(found), None)
    if one is None or not one.of:
        return "" if one is None else "?"
    is_whole = one.same == int(one.same)
    return f"{int(one.same):,}/{one.of:,}" if is_whole else f"{100 * one.same / one.of:.4g}%"


def least_share(found: Iterable[Agreement]) -> float | None:
    """Return the least part of answers that do not disagree; None without a figure."""
    return min((one.share for one in found if one.share is not None), default=None)


def changed_agreement(old: Iterable[Agreement], new: Iterable[Agreement]) -> str:
    """Return how figures changed between two runs: only those whose number of disagreeing answers changed."""
    before: Mapping[tuple[str, str], Agreement] = {(one.output, one.kind): one for one in old}
    told = []
    for one in new:
        was = before.get((one.output, one.kind))
        if was is None or (was.share, bool(was.failed)) == (one.share, bool(one.failed)):
            continue
        name = f"{one.output}: " if one.output else ""
        told.append(f"{name}{agreement_words(was)} -> {_figure(one)}")
    return "; ".join(told)


def _figure(one: Agreement) -> str:
    """Return the figure alone, where the name of the task stands before it."""
    words = agreement_words(one)
    name = task_name(one.kind)
    return words.removeprefix(f"{name} the same in ").removeprefix(f"{name} ")
