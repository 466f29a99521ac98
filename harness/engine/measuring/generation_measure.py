"""Measure the scenario ``generate``: its ways against the golden, and against each other. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.noise.spread import Spread
from harness.core.records.facts import Facts
from harness.core.records.generation_figures import Generated, GenerationFigures
from harness.core.records.ways import WAYS, way_of
from harness.core.values.value import Floats, NamedValues, Tensor
from harness.core.verdicts.judge_output import judge_row
from harness.core.verdicts.position_comparison import (
    ComparedPositions,
    agreement,
    apart_positions,
    bad_positions,
    divergence,
    noise_by_position,
    perplexity,
    positions_of,
    rms_of_worst,
    round_figure,
    worst_position,
)
from harness.corpus.case import Case
from harness.corpus.decoders.generation_case import GenerationSupport
from harness.engine.answers.compare_sets import numbered
from harness.engine.answers.evidence import CellRule, Evidence
from harness.engine.tasks.outcome import Ran
from harness.golden.golden_answer import Golden

_TOP = (1, 5, 10)

_LOGITS_AXIS = 1
"""Axis of the positions of logits."""


class Playing(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A cell of the scenario that ran. ``dict`` is for cached properties.

    Attributes:
        outcome: The EP's outputs, without those of data sets that are left out.
        evidence: The answers, likewise, with only the outputs that are compared.
        left_out: Number of a data set -> why it shows nothing.
    """

    case: Case
    generation: GenerationSupport
    outcome: Ran
    evidence: Evidence
    policy: Policy
    left_out: dict[int, str] = {}

    @property
    def golden(self) -> Sequence[NamedValues]:
        """For each data set the right outputs; empty if there are none."""
        answer = self.evidence.full or self.evidence.golden
        return answer.outputs if answer is not None and answer.status == "ok" else ()

    @cached_property
    def parts(self) -> dict[str, ComparedPositions]:
        """The outputs by the names of their rows, by position; without outputs of another shape."""
        return self.compared(self.outcome.outputs)

    def compared(self, results: Sequence[NamedValues]) -> dict[str, ComparedPositions]:
        """Return results beside the golden, by the names of their rows and by position."""
        found = {}
        for index, outputs in enumerate(self.golden):
            given = dict(results[index])
            for name, right in outputs:
                one, axis = given.get(name), self.generation.axes.get(name)
                if axis is None or not isinstance(right, Tensor) or not isinstance(one, Tensor):
                    continue
                compared = positions_of(right, one, self.noise_of(index, name), axis)
                if compared is not None:
                    found[numbered(index, name)] = compared
        return found

    def noise_of(self, index: int, name: str) -> Floats | None:
        """Return the noise of an output; None if unknown."""
        noise = self.evidence.noise
        return noise.outputs[index].get(name) if isinstance(noise, Spread) else None


def playing_of(case: Case, outcome: Ran, evidence: Evidence, rule: CellRule, *, is_cpu: bool) -> Playing:
    """Return a cell of the scenario, without the ways that show nothing.

    These are ways that the target cannot play, and ways in which the CPU EP itself departs from its run over
    the whole text: an EP that departs in the same way is not to blame. The CPU EP itself is blamed for this,
    except with padding, which a model need not support.
    """
    assert rule.generation is not None  # noqa: S101 - only cells of this scenario come here
    whole = Playing(
        case=case, generation=rule.generation, outcome=outcome, evidence=evidence, policy=rule.policy
    )
    declined = outcome.generated.declined if outcome.generated is not None else {}
    departing = {
        index: why
        for index, why in _departing(whole).items()
        if not is_cpu or WAYS[way_of(rule.generation.plays[index].name)].needs_mask
    }
    left_out = departing | declined
    names = rule.generation.axes

    def kept(sets: Sequence[NamedValues]) -> tuple[NamedValues, ...]:
        return tuple(
            () if index in left_out else tuple((name, value) for name, value in outputs if name in names)
            for index, outputs in enumerate(sets)
        )

    def answer(given: Golden) -> Golden:
        return msgspec.structs.replace(given, outputs=kept(given.outputs))

    references = evidence.references
    return msgspec.structs.replace(
        whole,
        left_out=left_out,
        outcome=msgspec.structs.replace(
            outcome, outputs=kept(outcome.outputs), second=None if 0 in left_out else outcome.second
        ),
        evidence=msgspec.structs.replace(
            evidence,
            golden=evidence.golden and answer(evidence.golden),
            full=evidence.full and answer(evidence.full),
            references=references and {kind: answer(given) for kind, given in references.items()},
        ),
    )


def _departing(playing: Playing) -> dict[int, str]:
    """Return the data sets in which the CPU EP departs from its run over the whole text, and the position."""
    played = playing.evidence.played
    if played is None or played.status != "ok":
        return {}
    found = {}
    compared = playing.compared(played.outputs)
    for index in range(len(playing.golden)):
        bad = [
            int(flags.argmax())
            for name in playing.generation.axes
            if (part := compared.get(numbered(index, name))) is not None
            if (flags := bad_positions(part, playing.policy)).any()
        ]
        if bad:
            found[index] = f"on the CPU EP it also gives other results, from position {min(bad)} on"
    return found


def with_worst_positions(facts: Facts, playing: Playing) -> Facts:
    """Return facts whose rows judge each position by itself; without a golden if no way is left."""
    if len(playing.left_out) == len(playing.generation.plays):
        why = "; ".join(dict.fromkeys(playing.left_out.values()))
        return msgspec.structs.replace(facts, golden="", no_golden=f"no way shows anything: {why}")
    rows = tuple(_with_worst(row, playing.parts.get(row.name), playing.policy) for row in facts.outputs)
    return msgspec.structs.replace(facts, outputs=rows)


def _with_worst(row: OutputMetrics, compared: ComparedPositions | None, policy: Policy) -> OutputMetrics:
    """Return the row with the noise of its worst position, where it exceeds the noise of all."""
    if row.noise is None or compared is None or compared.spread is None:
        return row
    worst = rms_of_worst(compared, policy)
    if worst <= row.noise.rms:
        return row
    return msgspec.structs.replace(row, noise=msgspec.structs.replace(row.noise, rms=worst))


def ways_figures(rows: Sequence[OutputMetrics], playing: Playing) -> GenerationFigures:
    """Return what the record of a cell says about its ways; ``rows`` are those of its outputs."""
    generation, generated = playing.generation, playing.outcome.generated
    by_name = {row.name: row for row in rows}
    names = enumerate(play.name for play in generation.plays)
    left_out = {way_of(generation.plays[index].name): why for index, why in playing.left_out.items()}
    return GenerationFigures(
        ways=tuple(_way(playing, index, by_name) for index, _ in names if index not in playing.left_out),
        declined=generation.declined | left_out,
        disagreements=tuple(_disagreements(playing)),
        text=generated.text if generated is not None else (),
        golden_text=() if playing.evidence.played is None else playing.evidence.played.text,
        speed=generated.speed if generated is not None else None,
        stages=generated.stages if generated is not None else (),
    )


def _way(playing: Playing, index: int, rows: Mapping[str, OutputMetrics]) -> Generated:
    generation = playing.generation
    logits = generation.decoder.logits
    play = generation.plays[index]
    first_cache, cache_from = _first_cache(playing, index, rows)
    first_stage, first_value = _first_stage(playing, index, rows)
    whole = Generated(
        way=play.name,
        positions=play.length,
        first_cache=first_cache,
        cache_from=cache_from,
        first_stage=first_stage,
        first_value=first_value,
    )
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
        else round_figure(float(noise_by_position(compared)[1].max(initial=0))),
        first_bad=_first_bad(row, compared, playing.policy),
        golden_perplexity=perplexity(right, tokens.array),
        **top,
    )


def _first_bad(row: OutputMetrics, compared: ComparedPositions, policy: Policy) -> int | None:
    """Return the first position of an output that fails; the worst one if it fails only as a whole."""
    if judge_row(row, policy).fault is None:
        return None
    bad = bad_positions(compared, policy)
    return int(bad.argmax()) if bad.any() else worst_position(compared, policy)


def _first_cache(playing: Playing, index: int, rows: Mapping[str, OutputMetrics]) -> tuple[str, int | None]:
    """Return the cache tensor that fails first (in the order of the layers), and from which position on."""
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


def _first_stage(playing: Playing, index: int, rows: Mapping[str, OutputMetrics]) -> tuple[str, str]:
    """Return the first session of a folder that gives a wrong value, and the value; both empty for none.

    A session that the prompt alone has comes before all positions; at one position the order of the sessions
    decides.
    """
    generation = playing.generation
    play = generation.plays[index]
    prompt = sum(place >= 0 for place in play.layout[0][: play.ends[0]])
    found: list[tuple[int, int, str, str]] = []
    for value, (first, later) in generation.givers.items():
        row, compared = (each.get(numbered(index, value)) for each in (rows, playing.parts))
        since = None
        if isinstance(row, OutputMetrics) and isinstance(compared, ComparedPositions):
            since = _first_bad(row, compared, playing.policy)
        if since is not None:
            passed = generation.passed.get(value)
            at = -1 if passed is not None and passed.once else since
            stage = first if at < prompt or play.buffers == "none" else later
            found.append((at, generation.order.index(stage), stage, value))
    return min(found)[2:] if found else ("", "")


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
        bad = apart_positions(compared, playing.policy)
        if bad.any():
            names = [playing.generation.plays[each].name for each in (index, first)]
            yield f"{names[0]} differs from {names[1]} from position {int(bad.argmax())} on"
