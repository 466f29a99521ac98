"""`ep-harness advise`: find the fastest configuration that passes, for one model on this machine."""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.cli.advise_text import TextAdvice, as_plain, text_advice, text_lines, without_sharing
from harness.cli.output import notify, print_json, print_lines, wrapped
from harness.cli.targets import Request, Tested, wanted_matrix
from harness.core.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNEXPECTED, Problem, UsageError, one_line
from harness.core.facts import CPU_PROVIDER as CPU
from harness.core.record import Record
from harness.core.text import visible
from harness.core.verdict import Verdict
from harness.corpus.suites import Suite, open_model
from harness.plan.matrix import Matrix
from harness.plan.target import Target
from harness.run.summary import WIDTH
from harness.studies.advise import Advice, Tried, advise
from harness.studies.candidates import GENERATE
from harness.studies.decoders import genai_suite
from harness.studies.session_code import session_code

_FOR_SHARING = 0.1
"""Share of the time in which the winner is tried with a shared buffer."""

SHOWN = 20
"""Lines of one kind at most; --json has all."""


def advise_on(model: str, *, budget_s: float, as_json: bool, **request: Any) -> int:
    """Print a ranking, why other configurations are rejected, and Python code for the winner.

    Returns:
        0; 1 if nothing passes; 130 if interrupted, after printing the results so far.

    Raises:
        UsageError: An argument is wrong, or the model cannot be read.
    """
    until = time.monotonic() + budget_s
    if not 0 < budget_s < math.inf:
        raise UsageError(Problem(where="--budget", what=f"got {budget_s:g}", hint="valid: seconds above 0"))
    folder = Path(model) if Path(model).is_dir() else None
    suite = open_model(model) if folder is None else genai_suite(folder)
    models = Tested() if folder is None else Tested(decoders=("*",))
    matrix = _with_cpu(wanted_matrix(Request(models=models, **request)))
    names = ", ".join(target.name for target in matrix.targets)
    notify(f"trying       {one_line(visible(names), 200)}; at most {max(until - time.monotonic(), 0):.0f} s")
    found, text = _advise(suite, matrix, folder, until)
    if as_json:
        print_json(_as_json(found, suite) | ({} if text is None else {"text": as_plain(text)}))
    else:
        print_lines(_page(found, suite, model, text))
    if found.stopped_by == "interrupt":
        return EXIT_INTERRUPTED
    return EXIT_OK if found.ranked else EXIT_UNEXPECTED


def _advise(
    suite: Suite, matrix: Matrix, folder: Path | None, until: float
) -> tuple[Advice, TextAdvice | None]:
    """Return the advice, and for a folder of onnxruntime-genai what it says about generated text."""
    if folder is None:
        return advise(suite, matrix, until=until, notify=notify, show=show_tried), None
    search_until = until - _FOR_SHARING * max(until - time.monotonic(), 0.0)
    unshared = without_sharing(matrix)
    found = advise(suite, unshared, until=search_until, notify=notify, show=show_tried, scenario=GENERATE)
    winner = found.winner
    return found, None if winner is None else text_advice(found, winner, suite, matrix, folder, notify)


def show_tried(one: Tried) -> None:
    """Print one result of the running search."""
    what = f"{one.p50_ms:.4g} ms" if one.p50_ms is not None else one.fell_out
    notify("tried        " + one_line(visible(f"{one.candidate.name}: {what}"), WIDTH - 13))


def _page(found: Advice, suite: Suite, model: str, text: TextAdvice | None) -> Iterator[str]:
    """Yield lines of at most 80 columns, except for the code."""
    passed, count = len(found.ranked), len(found.ranked) + len(found.fell_out)
    yield f"{one_line(visible(model), 60)}: {count} tried in {found.elapsed_s:.0f} s, {passed} pass"
    yield ""
    run = "a run" if text is None else "one token, with the text before it in the cache"
    yield from _ranking(found, run)
    yield from _others(found)
    winner = found.winner
    if winner is None:
        yield "no configuration passes"
        return
    why = (
        "" if winner is found.ranked[0] else " (as fast as the fastest within noise, and simpler or exacter)"
    )
    yield from wrapped(f"winner: {one_line(visible(winner.candidate.name), 300)}{why}")
    if text is not None:
        yield from text_lines(text)
    yield ""
    yield _code(found, winner, suite)
    if text is not None:
        yield text.decode_code
        yield "or with onnxruntime-genai"
        yield ""
        yield text.genai_code


def _ranking(found: Advice, run: str) -> Iterator[str]:
    if not found.ranked:
        return
    front, fastest = found.front, found.ranked[0].p50_ms or 0.0
    yield f"{'':>2} {'p50 ms':>9} {'times':>6} {'create ms':>9} {'bits':>5} {'nodes':>7} configuration"
    for one in found.ranked[:SHOWN]:
        mark = "*" if one.candidate in front else ""
        p50_ms = one.p50_ms or 0.0
        bits = "exact" if one.bits == float("inf") else f"{one.bits:.1f}"
        create_ms = one.record.timings_ms.get("create", 0.0)
        times, nodes = p50_ms / fastest, _share(one.record)
        line = f"{mark:>2} {p50_ms:>9.4g} {times:>6.2f} {create_ms:>9.4g} {bits:>5} {nodes:>7} "
        yield from wrapped(visible(one.candidate.name), line)
    yield from _rest(len(found.ranked))
    yield from wrapped(
        f"* no other configuration is both faster and more exact. p50: median time of {run}. "
        "times: p50 / p50 of the fastest. create: creating the session. bits: precision of the worst output; "
        "float32 work has 20 and more, exact means equal to the CPU provider's result. "
        "nodes: run by the target / all compute nodes; the CPU ran the others."
    )
    if any(one.record.latency.disturbed for one in found.ranked if one.record.latency):
        yield from wrapped("Other programs used the processors meanwhile: the times are unreliable.")
    yield ""


def _share(record: Record) -> str:
    placement = record.placement
    if record.verdict is not Verdict.PASS_PARTIAL or placement is None:
        return "all"
    return f"{placement.ep_nodes}/{placement.ep_nodes + placement.cpu_nodes}"


def _others(found: Advice) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for one in found.fell_out:
        reasons.setdefault(visible(one.fell_out), []).append(visible(one.candidate.name))
    if reasons:
        yield "rejected"
        for reason, names in list(reasons.items())[:SHOWN]:
            yield from wrapped(f"{'; '.join(names)}: {one_line(reason, 300)}", "  ", "    ")
        yield from _rest(len(reasons))
        yield ""
    if found.not_tried:
        why = "interrupted" if found.stopped_by == "interrupt" else "the time is used up; raise --budget"
        yield f"not tried: {len(found.not_tried)} ({why}), the most promising first"
        names = [visible(candidate.name) for candidate in found.not_tried[:SHOWN]]
        yield from wrapped("; ".join(names), "  ", "    ")
        yield from _rest(len(found.not_tried))
        yield ""


def _rest(count: int) -> Iterator[str]:
    if count > SHOWN:
        yield f"   ... and {count - SHOWN} more; --json lists all"


def _code(found: Advice, one: Tried, suite: Suite) -> str:
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
                "front": one.candidate in front,
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
        "code": _code(found, winner, suite) if winner else None,
    }


def _with_cpu(matrix: Matrix) -> Matrix:
    """Add the CPU provider, the baseline of every comparison."""
    if any(target.provider == (CPU,) for target in matrix.targets):
        return matrix
    names = {target.name for target in matrix.targets}
    name = next(name for name in ("cpu", "cpu-provider", "the-cpu-provider") if name not in names)
    return msgspec.structs.replace(matrix, targets=(Target(name=name, provider=(CPU,)), *matrix.targets))
