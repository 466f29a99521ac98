"""`ep-harness advise`: find the fastest configuration that passes, for one model on this machine.

For a folder of onnxruntime-genai it adds the speed of generated text, shared buffers, and more code.
"""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.annex.advise.command_advise_folder import LEAST_BUDGET_S, advise_on_folder
from harness.annex.advise.decode_code import decode_code
from harness.annex.advise.fastest import advise
from harness.annex.advise.genai_code import genai_code
from harness.annex.advise.search_result import Advice, TriedCandidate
from harness.annex.advise.session_code import session_code
from harness.annex.advise.sharing import SHARED_WAY, Sharing, shares_buffer, with_ways
from harness.cli.output import notify, print_result, wrapped
from harness.cli.targets import ProviderRequest, Tested, wanted_matrix
from harness.core.agreement.agreement import agreements_words, answers_ratio
from harness.core.findings.compute_share import nodes_on_ep
from harness.core.records.facts import CPU_PROVIDER as CPU
from harness.core.records.generation_figures import GenerationSpeed
from harness.core.records.scenario import GENERATE
from harness.core.records.ways import WAYS
from harness.core.text.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNEXPECTED, UsageError, one_line
from harness.core.text.visible_text import WIDTH, visible
from harness.core.timing.pace import is_reliable
from harness.corpus.beside.genai_config import CONFIG_NAME
from harness.corpus.decoders.decoder import Decoder, decoder_of
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import Suite, open_folder
from harness.corpus.suites.suites import open_model
from harness.plan.matrix import Matrix
from harness.plan.target import Target
from harness.report.words.figures import first_of, ratio
from harness.studies.decoders import genai_suite

_SHARING = {
    "right": "gives the right results",
    "wrong": "gives WRONG results",
    "declined": "is not possible",
    "unknown": "was not tried",
}

_FOR_SHARING = 0.1
"""Share of the time for trying the winner with a shared buffer."""

_DISTURBED = 4
"""Number of disturbed configurations that are named."""

_SHOWN = 20
"""Largest number of lines of one kind; --json has all."""


class TextAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the winner besides its place in the ranking.

    Attributes:
        speed: How fast it generates text; None if it was not measured.
        sharing: Whether past and present may share one buffer.
        decode_code: Generates text with the session of onnxruntime.
        genai_code: Makes the model of onnxruntime-genai.
    """

    speed: GenerationSpeed | None
    sharing: Sharing
    decode_code: str
    genai_code: str


def advise_on(
    model: str, request: ProviderRequest, *, budget_s: float | None, details: bool, as_json: bool
) -> int:
    """Print a ranking, why other configurations are rejected, and Python code for the winner.

    Of a folder of models, what to ship of each: see ``harness.annex.advise.command_advise_folder``.

    Returns:
        0; 1 if nothing passes; 130 if interrupted, after printing the results so far.
    """
    if budget_s is not None and not 0 < budget_s < math.inf:
        raise UsageError.at("--budget", f"got {budget_s:g}", "valid: seconds above 0")
    folder = Path(model) if Path(model).is_dir() else None
    if folder is not None and not (folder / CONFIG_NAME).exists():
        open_folder(folder)  # refused before the search for providers
        matrix = _with_cpu(wanted_matrix(_over(request, Tested(folders=(model,)))))
        return advise_on_folder(folder, matrix, budget_s=budget_s, details=details, as_json=as_json)
    if details:
        raise UsageError.at("--details", "is about a folder of models", "omit it: all is shown of one model")
    until = time.monotonic() + (LEAST_BUDGET_S if budget_s is None else budget_s)
    suite = open_model(model) if folder is None else genai_suite(folder)
    models = Tested() if folder is None else Tested(decoders=("*",))
    matrix = _with_cpu(wanted_matrix(_over(request, models)))
    names = ", ".join(target.name for target in matrix.targets)
    notify(f"trying       {one_line(visible(names), 200)}; at most {max(until - time.monotonic(), 0):.0f} s")
    found, text = _advise(suite, matrix, folder, until)
    told = _as_json(found, suite) | ({} if text is None else {"text": text})
    print_result(told, _page(found, suite, model, text), as_json=as_json)
    if found.stopped_by == "interrupt":
        return EXIT_INTERRUPTED
    return EXIT_OK if found.real else EXIT_UNEXPECTED


def _over(request: ProviderRequest, models: Tested) -> ProviderRequest:
    return msgspec.structs.replace(request, models=models)


def _advise(
    suite: Suite, matrix: Matrix, folder: Path | None, until: float
) -> tuple[Advice, TextAdvice | None]:
    """Return the advice and, for a folder of onnxruntime-genai, its facts about generated text."""
    if folder is None:
        return advise(suite, matrix, until=until, notify=notify, show=show_tried), None
    search_until = until - _FOR_SHARING * max(until - time.monotonic(), 0.0)
    unshared = _without_sharing(matrix)
    found = advise(suite, unshared, until=search_until, notify=notify, show=show_tried, scenario=GENERATE)
    winner = found.winner
    return found, None if winner is None else _text_advice(found, winner, suite, matrix, folder)


def show_tried(one: TriedCandidate) -> None:
    """Print one result of the running search."""
    what = f"{one.p50_ms:.4g} ms" if one.p50_ms is not None else one.fell_out
    notify("tried        " + one_line(visible(f"{one.candidate.name}: {what}"), WIDTH - 13))


def _without_sharing(matrix: Matrix) -> Matrix:
    """Return a matrix whose decoders do not share buffers: sharing is tried only with the winner.

    A configuration that is wrong with a shared buffer may be right without.
    """
    wanted = [way for way in matrix.scenarios.generate.ways if way != SHARED_WAY]
    return with_ways(matrix, wanted or [way for way in WAYS if way != SHARED_WAY])


def _text_advice(
    found: Advice, winner: TriedCandidate, suite: Suite, matrix: Matrix, folder: Path
) -> TextAdvice:
    """Return the facts about the winner's generated text.

    Raises:
        ModelError: The model has been changed meanwhile.
    """
    (model,) = suite.models()
    target = found.targets[winner.candidate.target]
    if found.stopped_by == "interrupt":
        sharing = Sharing(state="unknown", reason="interrupted")
    else:
        notify("trying       the winner with past and present in one buffer")
        sharing = shares_buffer(suite, matrix, target, winner.candidate, notify)
    case = load_case(suite, model, matrix.models.dimensions)
    decoder = decoder_of(case)
    cell = winner.candidate.cell(suite.name, model, GENERATE)
    generation = winner.record.generation
    return TextAdvice(
        speed=generation.speed if generation else None,
        sharing=sharing,
        decode_code=decode_code(case, decoder) if isinstance(decoder, Decoder) else "",
        genai_code=genai_code(target, cell, folder.absolute(), shares=sharing.state == "right"),
    )


def _text_lines(text: TextAdvice) -> Iterator[str]:
    """Yield the speed of the winner, and the result with a shared buffer."""
    if text.speed is not None:
        yield from wrapped(f"speed: {'; '.join(_speed(text.speed))}")
    reason = f": {one_line(visible(text.sharing.reason), 300)}" if text.sharing.reason else ""
    yield from wrapped(f"one buffer for past and present {_SHARING[text.sharing.state]}{reason}")


def _speed(speed: GenerationSpeed) -> Iterator[str]:
    for length, ms in sorted(speed.first_token_ms.items())[-1:]:
        yield f"first token {ms:.4g} ms after a prompt of {length:,}"
    for rows, rate in sorted(speed.tokens_per_s.items()):
        yield f"{ratio(rate)} tokens/s" + (f" with a batch of {rows:,}" if rows > 1 else "")
    if speed.cache_mib is not None:
        yield f"cache {speed.cache_mib:.4g} MiB"


def _page(found: Advice, suite: Suite, model: str, text: TextAdvice | None) -> Iterator[str]:
    """Yield lines of at most 80 columns, except for the code."""
    passed, count = len(found.ranked), len(found.ranked) + len(found.fell_out)
    yield f"{one_line(visible(model), 60)}: {count} tried in {found.elapsed_s:.0f} s, {passed} pass"
    yield ""
    run = "a run" if text is None else "one token, with the text before it in the cache"
    yield from _ranking(found, run)
    yield from _others(found)
    winner = found.winner
    if found.simulated:
        names = ", ".join(f"{name} ({one_line(by, 60)})" for name, by in found.simulated.items())
        yield from wrapped(f"simulated, so never the winner: {visible(names)}")
    if winner is None:
        yield from wrapped(_no_winner(found))
        for one in found.equal or found.real[:1]:
            yield ""
            yield f"# {one_line(visible(one.candidate.name), 300)}"
            yield _code(found, one, suite)
        return
    why = "" if winner is found.real[0] else " (as fast as the fastest within noise, and simpler or exacter)"
    yield from wrapped(f"winner: {one_line(visible(winner.candidate.name), 300)}{why}")
    if winner.record.agreement:
        yield from wrapped(f"answers: {one_line(visible(agreements_words(winner.record.agreement)), 300)}")
    if text is not None:
        yield from _text_lines(text)
    yield ""
    yield _code(found, winner, suite)
    if text is not None:
        yield text.decode_code
        yield "or with onnxruntime-genai"
        yield ""
        yield text.genai_code


def _no_winner(found: Advice) -> str:
    if found.equal:
        names = ", ".join(one_line(visible(one.candidate.name), 100) for one in found.equal)
        return f"no winner: equally fast within noise are {names}; the code of each is below"
    if found.real:
        return (
            "no winner: other programs used the processors, so the times are not reliable; try again on a "
            "machine that does nothing else. Below is the code of one that passes"
        )
    return "no configuration passes on a device" if found.ranked else "no configuration passes"


def _ranking(found: Advice, run: str) -> Iterator[str]:
    if not found.ranked:
        return
    front, fastest = found.front, found.ranked[0].p50_ms or 0.0
    has_answers = any(one.record.agreement for one in found.ranked)
    answers = f"{'answers':>7} " if has_answers else ""
    head = f"{'':>2} {'p50 ms':>9} {'times':>6} {'create ms':>9} {'bits':>5} "
    yield f"{head}{answers}{'nodes':>7} configuration"
    for one in found.ranked[:_SHOWN]:
        mark = "*" if one.candidate in front else ""
        p50_ms = one.p50_ms or 0.0
        bits = "exact" if one.bits == float("inf") else f"{one.bits:.1f}"
        create_ms = one.record.timings_ms.get("create", 0.0)
        times, nodes = p50_ms / fastest, nodes_on_ep(one.record) or "all"
        answers = f"{answers_ratio(one.record.agreement):>7} " if has_answers else ""
        line = f"{mark:>2} {p50_ms:>9.4g} {times:>6.2f} {create_ms:>9.4g} {bits:>5} {answers}{nodes:>7} "
        name = visible(one.candidate.name)
        yield from wrapped(f"{name} (simulated)" if one.candidate.target in found.simulated else name, line)
    yield from _rest(len(found.ranked))
    yield from wrapped(
        f"* no other configuration is both faster and more exact. p50: median time of {run}. "
        "times: p50 / p50 of the fastest. create: creating the session. bits: precision of the worst output; "
        "float32 work has 20 and more, exact means equal to the CPU provider's result. "
        "nodes: run by the target / all compute nodes; the CPU ran the others."
        + (" answers: those of the model's task that are the CPU provider's." if has_answers else "")
    )
    disturbed = [one for one in found.ranked if not is_reliable(one.rounds)]
    if disturbed:
        names = first_of([one_line(visible(one.candidate.name), 100) for one in disturbed], _DISTURBED)
        yield from wrapped(
            f"Other programs used the processors: not reliable are the times of {'; '.join(names)}."
        )
    yield ""


def _others(found: Advice) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for one in found.fell_out:
        reasons.setdefault(visible(one.fell_out), []).append(visible(one.candidate.name))
    if reasons:
        yield "rejected"
        for reason, names in list(reasons.items())[:_SHOWN]:
            yield from wrapped(f"{'; '.join(names)}: {one_line(reason, 300)}", "  ", "    ")
        yield from _rest(len(reasons))
        yield ""
    if found.not_tried:
        why = "interrupted" if found.stopped_by == "interrupt" else "the time is used up; raise --budget"
        yield f"not tried: {len(found.not_tried)} ({why}), the most promising first"
        names = [visible(candidate.name) for candidate in found.not_tried[:_SHOWN]]
        yield from wrapped("; ".join(names), "  ", "    ")
        yield from _rest(len(found.not_tried))
        yield ""


def _rest(count: int) -> Iterator[str]:
    if count > _SHOWN:
        yield f"   ... and {count - _SHOWN} more; --json lists all"


def _code(found: Advice, one: TriedCandidate, suite: Suite) -> str:
    (model,) = suite.models()
    target = found.targets[one.candidate.target]
    return session_code(target, one.candidate.cell(suite.name, model), suite.model_path(model))


def _as_json(found: Advice, suite: Suite) -> dict[str, Any]:
    front, winner = found.front, found.winner
    return {
        "ranked": [
            {
                "configuration": one.candidate.name,
                "target": one.candidate.target,
                "changes": dict(one.candidate.changes),
                "verdict": one.record.verdict,
                "p50_ms": one.p50_ms,
                "delivered_bits": None if one.bits == float("inf") else one.bits,
                "answers": agreements_words(one.record.agreement),
                "front": one.candidate in front,
                "simulated": one.candidate.target in found.simulated,
                "record": one.record,
            }
            for one in found.ranked
        ],
        "fell_out": [
            {"configuration": one.candidate.name, "why": one.fell_out, "record": one.record}
            for one in found.fell_out
        ],
        "not_tried": [candidate.name for candidate in found.not_tried],
        "stopped_by": found.stopped_by,
        "elapsed_s": round(found.elapsed_s, 1),
        "environments": found.fingerprints,
        "winner": winner.candidate.name if winner else None,
        "no_winner": "" if winner else _no_winner(found),
        "code": _code(found, winner, suite) if winner else None,
    }


def _with_cpu(matrix: Matrix) -> Matrix:
    """Add the CPU provider, the baseline of every comparison."""
    if any(target.provider == (CPU,) for target in matrix.targets):
        return matrix
    names = {target.name for target in matrix.targets}
    name = next(name for name in ("cpu", "cpu-provider", "the-cpu-provider") if name not in names)
    return msgspec.structs.replace(matrix, targets=(Target(name=name, provider=(CPU,)), *matrix.targets))
