"""Measure the scenario ``generate``: its ways against the golden, and against each other. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from harness.core.facts import Facts
from harness.core.generated import Generated
from harness.core.generated import Generation as Told
from harness.core.generation import (
    Positions,
    agreement,
    bad_positions,
    divergence,
    noise_by_position,
    perplexity,
    positions_of,
    rms_of_worst,
    rounded,
    worst_position,
)
from harness.core.judged import judge_row
from harness.core.output_metrics import OutputMetrics
from harness.core.policy import Policy
from harness.core.spread import Spread
from harness.core.value import Floats, NamedValues, Tensor
from harness.core.ways import way_of
from harness.corpus.case import Case
from harness.corpus.generation import Generation
from harness.engine.compare_sets import numbered
from harness.engine.evidence import Evidence, Rule
from harness.engine.outcome import Ran
from harness.golden.golden import Golden

_TOP = (1, 5, 10)

_LOGITS_AXIS = 1
"""Axis of the positions of logits."""


class Playing(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A cell of the scenario that ran. ``dict`` is for cached properties.

    Attributes:
        case: Its texts.
        generation: What was to be played.
        outcome: What the EP computed.
        golden: For each data set the right outputs; empty if there are none.
        policy: Judges.
        spread: The noise of the model, if it is known.
    """

    case: Case
    generation: Generation
    outcome: Ran
    golden: Sequence[NamedValues]
    policy: Policy
    spread: Spread | None = None

    @property
    def declined(self) -> Mapping[int, str]:
        """Data sets that the target cannot play, with the reason."""
        return self.outcome.generated.declined if self.outcome.generated is not None else {}

    @cached_property
    def parts(self) -> dict[str, Positions]:
        """The outputs by the names of their rows, by position; without those of another shape."""
        found = {}
        for index, outputs in enumerate(self.golden):
            results = dict(self.outcome.outputs[index])
            for name, right in outputs:
                given = results.get(name)
                if name in self.generation.axes and isinstance(right, Tensor) and isinstance(given, Tensor):
                    axis = self.generation.axes[name]
                    compared = positions_of(right, given, self.noise_of(index, name), axis)
                    if compared is not None:
                        found[numbered(index, name)] = compared
        return found

    def noise_of(self, index: int, name: str) -> Floats | None:
        """Return the noise of an output."""
        return None if self.spread is None else self.spread.outputs[index].get(name)


def of_played(evidence: Evidence, generation: Generation, outcome: Ran) -> Evidence:
    """Return answers with the outputs alone that are compared: logits and cache of what was played."""
    declined = outcome.generated.declined if outcome.generated is not None else {}

    def kept(answer: Golden) -> Golden:
        outputs = tuple(
            tuple((name, value) for name, value in one if name in generation.axes and index not in declined)
            for index, one in enumerate(answer.outputs)
        )
        return msgspec.structs.replace(answer, outputs=outputs)

    references = evidence.references
    return msgspec.structs.replace(
        evidence,
        golden=evidence.golden and kept(evidence.golden),
        full=evidence.full and kept(evidence.full),
        references=references and {kind: kept(answer) for kind, answer in references.items()},
    )


def playing_of(case: Case, outcome: Ran, evidence: Evidence, rule: Rule) -> Playing:
    """Return a cell of the scenario; ``evidence`` is that of ``of_played``."""
    assert rule.generation is not None  # noqa: S101 - only cells of this scenario come here
    answer = evidence.full or evidence.golden
    return Playing(
        case=case,
        generation=rule.generation,
        outcome=outcome,
        golden=answer.outputs if answer is not None and answer.status == "ok" else (),
        policy=rule.policy,
        spread=evidence.noise if isinstance(evidence.noise, Spread) else None,
    )


def with_worst_positions(facts: Facts, playing: Playing) -> Facts:
    """Return facts in whose rows each position counts by itself."""
    rows = tuple(_with_worst(row, playing.parts.get(row.name), playing.policy) for row in facts.outputs)
    return msgspec.structs.replace(facts, outputs=rows)


def _with_worst(row: OutputMetrics, compared: Positions | None, policy: Policy) -> OutputMetrics:
    """Return the row with the noise of its worst position, where that exceeds that of all."""
    if row.noise is None or compared is None or compared.spread is None:
        return row
    worst = rms_of_worst(compared, policy)
    if worst <= row.noise.rms:
        return row
    return msgspec.structs.replace(row, noise=msgspec.structs.replace(row.noise, rms=worst))


def told(rows: Sequence[OutputMetrics], playing: Playing) -> Told:
    """Return what the record of a cell tells about its ways; ``rows`` are those of its outputs."""
    generation, generated = playing.generation, playing.outcome.generated
    by_name = {row.name: row for row in rows}
    names = enumerate(play.name for play in generation.plays)
    refused = {way_of(generation.plays[index].name): why for index, why in playing.declined.items()}
    return Told(
        ways=tuple(_way(playing, index, by_name) for index, _ in names if index not in playing.declined),
        declined=generation.declined | refused,
        disagreements=tuple(_disagreements(playing)),
        text=generated.text if generated is not None else (),
        speed=generated.speed if generated is not None else None,
    )


def _way(playing: Playing, index: int, rows: Mapping[str, OutputMetrics]) -> Generated:
    generation = playing.generation
    logits = generation.decoder.logits
    play = generation.plays[index]
    first_cache, cache_from = _first_cache(playing, index, rows)
    whole = Generated(way=play.name, positions=play.length, first_cache=first_cache, cache_from=cache_from)
    name = numbered(index, logits)
    row, compared = rows.get(name), playing.parts.get(name)
    right, given = (
        dict(sets[index]).get(logits) if index < len(sets) else None
        for sets in (playing.golden, playing.outcome.outputs)
    )
    if not isinstance(given, Tensor):
        return whole
    tokens = dict(playing.case.data_sets[index].inputs)[generation.decoder.tokens]
    assert isinstance(tokens, Tensor)  # noqa: S101 - the harness has made it
    if given.array.shape[:2] == tokens.array.shape and given.array.ndim > _LOGITS_AXIS + 1:
        whole = msgspec.structs.replace(whole, perplexity=perplexity(given, tokens.array))
    if row is None or compared is None or not isinstance(right, Tensor):
        return whole
    texts = len(tokens.array)
    top = {f"top{count}": agreement(compared, texts, count) for count in _TOP}
    return msgspec.structs.replace(
        whole,
        kl=divergence(right, given),
        noise=None
        if compared.spread is None
        else rounded(float(noise_by_position(compared)[1].max(initial=0))),
        first_bad=_first_bad(row, compared, playing.policy),
        golden_perplexity=perplexity(right, tokens.array),
        **top,
    )


def _first_bad(row: OutputMetrics, compared: Positions, policy: Policy) -> int | None:
    """Return the first position of an output that fails; of one that fails only as a whole, the worst."""
    if judge_row(row, policy).fault is None:
        return None
    bad = bad_positions(compared, policy)
    return int(bad.argmax()) if bad.any() else worst_position(compared, policy)


def _first_cache(playing: Playing, index: int, rows: Mapping[str, OutputMetrics]) -> tuple[str, int | None]:
    """Return the first tensor of the cache, in the order of the layers, that fails first; and since where."""
    found: list[tuple[int, int, str]] = []
    for order, pair in enumerate(playing.generation.decoder.cache):
        name = numbered(index, pair.present)
        row, compared = rows.get(name), playing.parts.get(name)
        since = (
            _first_bad(row, compared, playing.policy) if row is not None and compared is not None else None
        )
        if since is not None:
            found.append((since, order, pair.present))
    since, _, name = min(found, default=(None, 0, ""))
    return name, since


def _disagreements(playing: Playing) -> Iterator[str]:
    """Yield each way whose logits differ beyond noise from those of the first way, for the same text."""
    logits = playing.generation.decoder.logits
    played = [
        (index, value)
        for index, outputs in enumerate(playing.outcome.outputs)
        if isinstance(value := dict(outputs).get(logits), Tensor) and value.array.ndim > _LOGITS_AXIS + 1
    ]
    if not played:
        return
    first, base = played[0]
    for index, value in played[1:]:
        positions = min(base.array.shape[1], value.array.shape[1])
        one, other = (Tensor(dtype=each.dtype, array=each.array[:1, :positions]) for each in (base, value))
        noise = playing.noise_of(index, logits)
        compared = positions_of(one, other, None if noise is None else noise[:1, :positions], _LOGITS_AXIS)
        if compared is None:
            continue
        bad = bad_positions(compared, playing.policy)
        if bad.any():
            names = [playing.generation.plays[each].name for each in (index, first)]
            yield f"{names[0]} differs from {names[1]} from position {int(bad.argmax())} on"
