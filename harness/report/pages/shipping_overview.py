"""What to ship, for a report of the user's own models: it leads the overview."""

from collections.abc import Collection, Iterator

import msgspec

from harness.core.agreement.agreement import agreements_words, answers_ratio
from harness.core.findings.shipping import (
    ShippedModel,
    Shipping,
    ShippingAnswer,
    ShippingChoice,
    rounds_of,
    what_to_ship,
)
from harness.core.text.errors import one_line
from harness.plan.matrix import Matrix
from harness.plan.target import Target
from harness.report.cells.margin import is_near_limit, lower_precision
from harness.report.view import Report
from harness.report.words.figures import ratio

_SHOWN_MODELS = 60
"""Models that are listed; the table of models has all."""

_TONES = {
    ShippingAnswer.SHIP: "passed",
    ShippingAnswer.WITH_OPTION: "partial",
    ShippingAnswer.NOT: "failed",
    ShippingAnswer.UNKNOWN: "skipped",
}
"""How an answer looks: the tone of its mark."""

_SYMBOLS = {
    ShippingAnswer.SHIP: "✓",
    ShippingAnswer.WITH_OPTION: "✓",
    ShippingAnswer.NOT: "✗",
    ShippingAnswer.UNKNOWN: "?",
}


class ShippingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One target of a model.

    Attributes:
        bits: Delivered bits of the worst output, or ``exact``; empty if nothing was computed.
        precision: The delivered precision if it is lower than requested, such as ``bf16``.
        near: Whether the output has hardly more bits than required.
        href: The table of models with this cell open.
        has_code: Whether the page *Code* has the code of its session.
    """

    target: str
    simulated: bool
    tone: str
    symbol: str
    answer: str
    option: str
    because: str
    is_fastest: bool
    bits: str
    precision: str
    near: bool
    answers: str
    tasks: str
    p50_ms: str
    times: str
    memory: str
    cell: str
    has_code: bool


class ShippingModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model with its rows; ``speed`` is why no target is the fastest."""

    name: str
    rows: tuple[ShippingRow, ...]
    speed: str


class ShippingTable(msgspec.Struct, frozen=True, kw_only=True):
    """The table.

    Attributes:
        shipped: Models that some target may ship.
        total: All models.
        timed: Whether anything was timed.
    """

    models: tuple[ShippingModel, ...]
    shipped: int
    total: int
    timed: bool

    @property
    def left_out(self) -> int:
        """Models that are not listed."""
        return self.total - len(self.models)


def shipping_table(report: Report) -> ShippingTable | None:
    """Return the table, or None for a report without the user's own models."""
    own = _own_suites(report)
    choices = [
        ShippingChoice(record=record, rounds=rounds_of(record))
        for _, record in report.run.records
        if record.suite in own
    ]
    targets = list(dict.fromkeys(column.target for column in report.columns))
    found = sorted(
        what_to_ship(choices, targets, report.run.simulated), key=lambda model: (model.suite, model.model)
    )
    if not found:
        return None
    known = targets_of(report)
    return ShippingTable(
        models=tuple(_model(model, report, known) for model in found[:_SHOWN_MODELS]),
        shipped=sum(any(row.ships for row in model.rows) for model in found),
        total=len(found),
        timed=any(choice.rounds for choice in choices),
    )


def targets_of(report: Report) -> dict[str, Target]:
    """Return name -> target of the matrix of a run; empty if another version of the harness wrote it."""
    try:
        matrix = msgspec.convert(report.run.matrix, Matrix)
    except msgspec.ValidationError:
        return {}
    return {target.name: target for target in matrix.targets}


def _own_suites(report: Report) -> set[str]:
    """Return the suites that are folders: the built-in ones are named in the matrix."""
    models = report.run.matrix.get("models")
    table = models if isinstance(models, dict) else {}
    if not table.get("folders"):
        return set()
    # ``fuzz:0:1500`` has the name ``fuzz-0``, and ``profile:cnn@1`` that of its profile.
    listed = [str(name) for name in table.get("suites") or ()]
    built_in = {"-".join(name.split(":")[:2]) if ":" in name else name for name in listed}
    if any(name.startswith("profile:") for name in listed):
        return set()
    return {record.suite for _, record in report.run.records} - built_in


def _model(model: ShippedModel, report: Report, targets: Collection[str]) -> ShippingModel:
    return ShippingModel(
        name=one_line(f"{model.suite}/{model.model}", 120),
        rows=tuple(_rows(model, report, targets)),
        speed=model.speed,
    )


def _rows(model: ShippedModel, report: Report, targets: Collection[str]) -> Iterator[ShippingRow]:
    for row in model.rows:
        record = row.choice.record
        yield ShippingRow(
            target=row.target,
            simulated=row.target in report.run.simulated,
            tone=_TONES[row.answer],
            symbol=_SYMBOLS[row.answer],
            answer=str(row.answer),
            option=row.option,
            because=one_line(row.because, 200),
            is_fastest=row.is_fastest and len(model.rows) > 1,
            bits=_bits(row),
            precision=lower_precision(record),
            near=is_near_limit(record),
            answers=answers_ratio(record.agreement),
            tasks=agreements_words(record.agreement),
            p50_ms=ratio(row.p50_ms) if row.p50_ms is not None else "",
            times=ratio(row.times) if row.times is not None else "",
            memory=f"{row.memory_mib:,.0f} MiB" if row.memory_mib is not None else "",
            cell=record.cell,
            has_code=row.ships and row.target in targets,
        )


def _bits(row: Shipping) -> str:
    if not row.choice.record.outputs:
        return ""
    return "exact" if row.bits is None else f"{round(row.bits, 1) + 0.0:.1f}"
