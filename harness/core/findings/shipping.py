"""What to ship: for each model and target, whether its records allow it, and with which option. Pure.

Only right answers that a real device computed are worth shipping. Records that cannot decide this get such an
answer: a simulator and an unavailable provider say nothing about a device.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from harness.core.agreement.agreement import agreements_words, least_share
from harness.core.findings.compute_share import is_the_cpus, nodes_on_ep
from harness.core.records.cell import AXIS_DEFAULTS
from harness.core.records.facts import CPU_PROVIDER as CPU
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.core.timing.latency import Latency
from harness.core.timing.pace import Rounds, beats, best_ms, is_open, unbeaten

LEAST_AGREEMENT = 0.98
"""Share of the task's answers that must agree for a configuration to be worth shipping."""

SLOWER = "slower: "
"""The first word about a configuration that another one beats."""

_PLAYED = frozenset({"scenario"})
"""Axes that define how a session is used; they are not options of it."""


class ShippingAnswer(StrEnum):
    """The answer about one model on one target; the values are what readers see."""

    SHIP = "ship"
    WITH_OPTION = "ship with"
    NOT = "do not ship"
    UNKNOWN = "not known"


class ShippingChoice(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration of a target that was tried with a model.

    Attributes:
        rounds: Its measurements; empty if it was not timed.
    """

    record: Record
    rounds: tuple[Latency, ...] = ()

    @property
    def changes(self) -> tuple[str, ...]:
        """What differs from the target as it is, such as ``precision=ep:f32``, sorted."""
        return tuple(
            f"{axis.removeprefix('option.')}={value}"
            for axis, value in sorted(self.record.axes.items())
            if axis not in _PLAYED and AXIS_DEFAULTS.get(axis) != value
        )

    @property
    def is_played(self) -> bool:
        """Whether the session was used in another way than plainly; such a cell answers another question."""
        return any(self.record.axes.get(axis, AXIS_DEFAULTS[axis]) != AXIS_DEFAULTS[axis] for axis in _PLAYED)


class Shipping(msgspec.Struct, frozen=True, kw_only=True):
    """The answer about one model on one target.

    Attributes:
        option: What to change; empty if the target is shipped as it is, or not at all.
        because: The reason, in one line; empty where there is nothing to add.
        choice: The configuration that the answer is about.
        is_fastest: Whether nothing else that may be shipped is faster.
        times: Median as a multiple of the CPU provider's best; None if either is unknown.
    """

    target: str
    answer: ShippingAnswer
    option: str
    because: str
    choice: ShippingChoice
    is_fastest: bool = False
    times: float | None = None

    @property
    def ships(self) -> bool:
        """Whether this target may be shipped, with an option or without."""
        return self.answer in (ShippingAnswer.SHIP, ShippingAnswer.WITH_OPTION)

    @property
    def bits(self) -> float | None:
        """Delivered bits of the worst output; None if all outputs are exact, or none is float."""
        rows = self.choice.record.outputs
        return min((row.delivered_bits for row in rows if row.delivered_bits is not None), default=None)

    @property
    def p50_ms(self) -> float | None:
        """Best median in milliseconds; None if it was not timed."""
        return best_ms(self.choice.rounds)

    @property
    def memory_mib(self) -> float | None:
        """The most that the process held, in MiB; None if unknown."""
        return max((one.host_peak_mib or 0.0 for one in self.choice.rounds), default=0.0) or None


class ShippedModel(msgspec.Struct, frozen=True, kw_only=True):
    """The answers about one model, in the order of the targets.

    Attributes:
        speed: Why no target is the fastest; empty if one is, or nothing can be shipped.
    """

    suite: str
    model: str
    rows: tuple[Shipping, ...]
    speed: str


def what_to_ship(
    choices: Iterable[ShippingChoice], targets: Sequence[str], simulated: Mapping[str, str]
) -> tuple[ShippedModel, ...]:
    """Return the answers, models in the order of their first choices.

    ``targets`` gives the order of the rows; ``simulated`` names the program that stands for a target's
    device.
    """
    models: dict[tuple[str, str], dict[str, list[ShippingChoice]]] = {}
    for choice in choices:
        record = choice.record
        if not choice.is_played:
            of_model = models.setdefault((record.suite, record.model), {})
            of_model.setdefault(record.target, []).append(choice)
    order = {name: place for place, name in enumerate(targets)}
    return tuple(
        _model(
            suite, model, sorted(found.items(), key=lambda pair: order.get(pair[0], len(order))), simulated
        )
        for (suite, model), found in models.items()
    )


def why_not_shipped(record: Record) -> str:
    """Return why a configuration is not worth shipping; empty if its answer does not speak against it."""
    if record.family is not Family.PASSED:
        told = str(record.verdict).replace("_", " ")
        what = _MEANING.get(record.verdict, record.reason)
        return f"{told}: {what}" if what else told
    if is_the_cpus(record):
        return f"too little: it computes {nodes_on_ep(record)} nodes, the CPU provider the others"
    share = least_share(record.agreement)
    return "" if share is None or share >= LEAST_AGREEMENT else agreements_words(record.agreement)


def rounds_of(record: Record) -> tuple[Latency, ...]:
    """Return the measurements of a record: one, or none if it was not timed."""
    return () if record.latency is None else (record.latency,)


def compared_pace(mine: Rounds, others: Rounds, other: str) -> tuple[ShippingAnswer, str]:
    """Compare a configuration with another one, called ``other``; both have measurements.

    Returns:
        What to do with it by its speed, and why: empty unless it is slower, or may be.
    """
    times = f"{(best_ms(mine) or 0) / (best_ms(others) or 1):.3g} times the time of {other}"
    if beats(others, mine):
        return ShippingAnswer.NOT, f"{SLOWER}{times}"
    if is_open(mine, others):
        return ShippingAnswer.UNKNOWN, f"the machine was too busy to tell if it is slower: {times}"
    return ShippingAnswer.SHIP, ""


_MEANING = {Verdict.FALLBACK: "the CPU provider computed it", Verdict.FOLDED: "nothing was left to compute"}

_TELLS_NOTHING = frozenset({Family.EXCLUDED, Family.SKIPPED, Family.MISSING})


def _model(
    suite: str, model: str, found: Sequence[tuple[str, list[ShippingChoice]]], simulated: Mapping[str, str]
) -> ShippedModel:
    rows = [_row(target, its, simulated.get(target, "")) for target, its in found]
    cpu = next((row for row in rows if row.ships and row.choice.record.provider == CPU), None)
    rows = [_beside(row, cpu) for row in rows]
    shipped = [row for row in rows if row.ships]
    best = unbeaten(shipped, lambda row: row.choice.rounds)
    speed = _no_fastest(shipped, best)
    return ShippedModel(
        suite=suite,
        model=model,
        rows=tuple(
            msgspec.structs.replace(row, is_fastest=not speed and any(row is one for one in best))
            for row in rows
        ),
        speed=speed,
    )


def _no_fastest(shipped: Sequence[Shipping], best: Sequence[Shipping]) -> str:
    if not any(row.choice.rounds for row in shipped):
        return "not timed" if shipped else ""
    if not best:
        return "other programs used the processors: the times are not reliable"
    return "equally fast within noise: " + ", ".join(row.target for row in best) if len(best) > 1 else ""


def _row(target: str, choices: Sequence[ShippingChoice], simulated: str) -> Shipping:
    """Answer from the configurations of one target; the configuration without changes comes first."""
    plain, *others = sorted(choices, key=lambda choice: len(choice.changes))
    right = [
        choice
        for choice in (plain, *others)
        if not why_not_shipped(choice.record) and _is_seen(choice, plain)
    ]

    def answer(answer: ShippingAnswer, because: str, choice: ShippingChoice = plain) -> Shipping:
        option = ", ".join(choice.changes) if answer is ShippingAnswer.WITH_OPTION else ""
        return Shipping(target=target, answer=answer, option=option, because=because, choice=choice)

    if not right:
        nothing = plain.record.verdict.family in _TELLS_NOTHING
        return answer(
            ShippingAnswer.UNKNOWN if nothing else ShippingAnswer.NOT, why_not_shipped(plain.record)
        )
    if simulated:
        return answer(ShippingAnswer.UNKNOWN, f"right, but on {simulated}: try it on a device", right[0])
    told = [choice for choice in right if not choice.record.rests_on_weak_golden]
    if not told:
        return answer(ShippingAnswer.UNKNOWN, f"weak golden: {right[0].record.weak_golden}", right[0])
    best = _best(told)
    if not best.changes:
        return answer(ShippingAnswer.SHIP, "", best)
    without = "" if plain.changes else why_not_shipped(plain.record)
    return answer(
        ShippingAnswer.WITH_OPTION, f"without it: {without}" if without else _gain(best, plain), best
    )


def _is_seen(choice: ShippingChoice, plain: ShippingChoice) -> bool:
    """Return whether an option changes anything; one without effect is not listed."""
    effect = choice.record.effect
    return choice is plain or effect is None or effect.seen


def _best(right: Sequence[ShippingChoice]) -> ShippingChoice:
    """Return the first configuration that no other one beats; without reliable times the first of all."""
    return next(iter(unbeaten(right, lambda choice: choice.rounds)), right[0])


def _gain(choice: ShippingChoice, plain: ShippingChoice) -> str:
    one, other = best_ms(choice.rounds), best_ms(plain.rounds)
    return f"{other / one:.3g} times as fast" if one and other and choice is not plain else ""


def _beside(row: Shipping, cpu: Shipping | None) -> Shipping:
    """Compare with the CPU provider: what is slower gains nothing, and what may be slower is not known."""
    mine, cpus = row.p50_ms, cpu.p50_ms if cpu is not None else None
    if cpu is None or not mine or not cpus or not row.ships:
        return row  # a simulator's time is not compared
    row = msgspec.structs.replace(row, times=mine / cpus)
    if row.choice is cpu.choice:
        return row
    answer, because = compared_pace(row.choice.rounds, cpu.choice.rounds, cpu.target)
    if not because:
        return row
    return msgspec.structs.replace(row, answer=answer, option="", because=because)
