"""A failure of the scenario ``generate`` as single runs of its model.

A part that triage cuts out of a decoder is no decoder, and cannot be played in ways. So single runs are
searched for the failure: a whole text at once, and the wrong step with the cache that the CPU EP computes.
Of a folder of several sessions, the model of the wrong one is run with what the CPU EP's others give.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise

import msgspec

from harness.annex.triage.failure import Failure
from harness.annex.triage.repetition import ALWAYS_AFTER
from harness.annex.triage.session_use import plain_axes
from harness.annex.triage.subject import Subject
from harness.annex.triage.time_budget import TimeBudget
from harness.core.records.fault import Repetition
from harness.core.records.generation_figures import Generated, where
from harness.core.records.ways import Play
from harness.core.values.value import NamedValues
from harness.corpus.decoders.decoder_step import step_inputs
from harness.corpus.decoders.generation_case import GenerationSupport
from harness.corpus.model.external import external_files
from harness.corpus.model.model_file import parse_model

MOST_TRIED = 12
"""Largest number of single runs that are tried; a model of long context has a prompt of each length."""

_MOST_NAMED = 4

ComputeGolden = Callable[[Subject], NamedValues | None]
"""Returns what the CPU EP computes; None if it fails."""


class SingleRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that may show the failure: its description, its inputs, and a plain run's signature."""

    words: str
    failure: Failure


def single_runs(failure: Failure, golden: ComputeGolden) -> Iterator[SingleRun]:
    """Yield the runs that may show a failure of ways, wrong stages and whole texts first; each input once."""
    generation = failure.generation
    if generation is None:
        return
    numbers = _failing_plays(failure, generation)
    tried: set[str] = set()
    texts = (
        (f"the whole text of {generation.plays[number].name}", failure.subjects[number]) for number in numbers
    )
    stages = _stages(failure, generation, numbers, golden)
    for words, subject in chain(stages, texts, _steps(failure, generation, numbers, golden)):
        if len(tried) == MOST_TRIED:
            return
        if subject.digest not in tried:
            tried.add(subject.digest)
            alone = msgspec.structs.replace(
                failure,
                subjects=(subject,),
                axes=plain_axes(failure.axes),
                generation=None,
            )
            yield SingleRun(words=words, failure=alone)


def how_often(failure: Failure, again: Callable[[], Failure], budget: TimeBudget) -> Repetition:
    """Repeat a cell whose failure appears in no single run, and return how often it fails."""
    trials, failures = 1, int(failure.fails_again)
    while trials < ALWAYS_AFTER and not budget.spent:
        trials += 1
        failures += again().fails_again
    return Repetition(
        outcome="always" if failures == trials else "sometimes" if failures else "never",
        trials=trials,
        failures=failures,
    )


def only_in_ways(failure: Failure, tried: Sequence[str]) -> str:
    """Return what is known about a failure that appears in no single run: its place, and what was tried."""
    place = where(failure.record.generation) or failure.record.reason
    others = len(tried) - _MOST_NAMED
    runs = "; ".join(tried[:_MOST_NAMED]) + (f"; {others} more" if others > 0 else "")
    return f"{place}; in scenario plain, with the CPU EP's cache, single runs do not fail: {runs}"


def _stages(
    failure: Failure, generation: GenerationSupport, numbers: Sequence[int], golden: ComputeGolden
) -> Iterator[tuple[str, Subject]]:
    """Yield the model of the first wrong session of a folder, with its inputs for a whole text."""
    folder = failure.again.case.chain if failure.again.case is not None else None
    bad = {way.way: way.first_stage for way in _ways(failure)}
    for number in numbers:
        name = bad.get(generation.plays[number].name, "")
        stage = next((one for one in folder.stages if one.name == name), None) if folder is not None else None
        call = (stage.prompt or stage.step) if stage is not None else None
        if stage is None or call is None:
            continue
        subject = failure.subjects[number]
        known = dict(golden(subject) or ()) | dict(subject.inputs)
        if not all(value in known for value in call.inputs.values()):
            continue  # a value between sessions that is not compared
        content = stage.file.read_bytes()
        inputs = tuple((own, known[value]) for own, value in call.inputs.items())
        external = stage.file.parent if external_files(parse_model(content), stage.file) else None
        yield f"the stage {name}", Subject(model=content, inputs=inputs, external=external)


def _steps(
    failure: Failure, generation: GenerationSupport, numbers: Sequence[int], golden: ComputeGolden
) -> Iterator[tuple[str, Subject]]:
    """Yield the wrong step of each way; with padding, no step has the cache of a plain run."""
    bad = {way.way: way for way in _ways(failure)}
    for number in numbers:
        play, subject = generation.plays[number], failure.subjects[number]
        if any(row != tuple(range(play.length)) for row in play.layout):
            continue
        computed = golden(subject)
        for start, end in _wrong_steps(play, bad.get(play.name)) if computed is not None else ():
            inputs = step_inputs(generation.decoder, subject.inputs, dict(computed or ()), start, end)
            if inputs is not None:
                places = f"position {start}" if end == start + 1 else f"positions {start} to {end - 1}"
                words = f"{places} of {play.name}"
                yield words, msgspec.structs.replace(subject, inputs=inputs)


def _wrong_steps(play: Play, way: Generated | None) -> Iterator[tuple[int, int]]:
    """Yield the steps of the first bad positions, then the first with a cache, and the last if none is known.

    For the last cache it is unknown which step spoilt a position: any step that read it may have.
    """
    steps = list(pairwise((0, *play.ends)))
    bad = _bad_positions(way)
    wrong = [step for one in bad for step in steps if step[0] <= one < step[1]]
    yield from dict.fromkeys((*wrong, *steps[1:2], *(() if bad else steps[-1:])))


def _bad_positions(way: Generated | None) -> list[int]:
    known = (way.first_bad, way.cache_from) if way is not None else ()
    return [one for one in known if one is not None]


def _failing_plays(failure: Failure, generation: GenerationSupport) -> list[int]:
    """Return the numbers of the failing plays; for an error the one it names; all if none is known."""
    bad = {way.way for way in _ways(failure) if _bad_positions(way)}
    names = [play.name for play in generation.plays]
    message = failure.record.ended.message if failure.record.ended is not None else ""
    bad = bad or {name for name in names if message.startswith(f"with {name}: ")}
    return [number for number, name in enumerate(names) if name in bad or not bad]


def _ways(failure: Failure) -> Sequence[Generated]:
    generation = failure.record.generation
    return generation.ways if generation is not None else ()
