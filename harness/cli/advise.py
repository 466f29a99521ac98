"""`ep-harness advise`: the fastest configuration that passes, for one model on this machine."""

import math
import sys
import textwrap
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from harness.cli.check import Request
from harness.cli.doctor import tell
from harness.cli.targets import wanted_matrix
from harness.core.errors import Problem, UsageError, one_line
from harness.core.exit_code import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNEXPECTED
from harness.core.record import Record
from harness.core.text import visible
from harness.core.verdict import Verdict
from harness.corpus.one_model import open_model
from harness.corpus.suites import Suite
from harness.engine.job import CPU
from harness.plan.matrix import Matrix
from harness.plan.target import Target
from harness.run.summary import WIDTH
from harness.studies.advise import Advice, Tried, advise
from harness.studies.session_code import session_code

SHOWN = 20
"""Lines of one kind; --json has all."""


def advise_on(model: str, where: str | None, request: Request, *, budget_s: float, as_json: bool) -> int:
    """Print what was found: a ranking, why others fell out, and code for the winner.

    Args:
        model: Path of a model, or ``suite/model``.
        where: Matrix file or provider; None for what can be used here.
        request: Arguments that go with a provider.
        budget_s: Seconds for all of it, the look for providers included.
        as_json: Print one JSON object instead.

    Returns:
        0, 1 where nothing passes, 130 where it was interrupted; then what is known is printed nevertheless.

    Raises:
        UsageError: An argument is wrong, or the model cannot be read.
    """
    until = time.monotonic() + budget_s
    if not 0 < budget_s < math.inf:
        raise UsageError(Problem(where="--budget", what=f"got {budget_s:g}", hint="valid: seconds above 0"))
    suite = open_model(model)
    matrix = _with_cpu(wanted_matrix(where, request))
    names = ", ".join(target.name for target in matrix.targets)
    tell(f"trying       {one_line(visible(names), 200)}; at most {max(until - time.monotonic(), 0):.0f} s")
    found = advise(suite, matrix, until=until, tell=tell, show=show_tried)
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(_plain(found, suite))).decode() + "\n")
    else:
        sys.stdout.write("\n".join(page(found, suite, model)) + "\n")
    if found.stopped_by == "interrupt":
        return EXIT_INTERRUPTED
    return EXIT_OK if found.ranked else EXIT_UNEXPECTED


def show_tried(one: Tried) -> None:
    """A line for one result, while the search goes on."""
    what = f"{one.p50_ms:.4g} ms" if one.p50_ms is not None else one.fell_out
    tell("tried        " + one_line(visible(f"{one.candidate.name}: {what}"), WIDTH - 13))


def page(found: Advice, suite: Suite, model: str) -> Iterator[str]:
    """The lines for a terminal, at most 80 columns wide but for the code."""
    passed, count = len(found.ranked), len(found.ranked) + len(found.fell_out)
    yield f"{one_line(visible(model), 60)}: {count} tried in {found.elapsed_s:.0f} s, {passed} pass"
    yield ""
    yield from _ranking(found)
    yield from _others(found)
    winner = found.winner
    if winner is None:
        yield "nothing that was tried passes"
        return
    why = (
        "" if winner is found.ranked[0] else " (as fast as the fastest but for noise, and the better choice)"
    )
    yield from _wrapped(f"winner: {one_line(visible(winner.candidate.name), 300)}{why}")
    yield ""
    yield _code(found, winner, suite)


def _ranking(found: Advice) -> Iterator[str]:
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
        yield from _wrapped(visible(one.candidate.name), line)
    yield from _rest(len(found.ranked))
    yield from _wrapped(
        "* the front of speed and precision: nothing is both faster and more exact. p50: median of a run. "
        "times: the fastest one's. create: making the session. bits: delivered by the worst output; float32 "
        "work has 20 and more, exact is what equals the CPU provider's answer, with which all are compared. "
        "nodes: those that the target ran, where it left some that compute to the CPU."
    )
    if any(one.record.latency.disturbed for one in found.ranked if one.record.latency):
        yield from _wrapped("Something else wanted the processors meanwhile: times are not to be trusted.")
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
        yield "fell out"
        for reason, names in list(reasons.items())[:SHOWN]:
            yield from _wrapped(f"{'; '.join(names)}: {one_line(reason, 300)}", "  ")
        yield from _rest(len(reasons))
        yield ""
    if found.not_tried:
        why = "interrupted" if found.stopped_by == "interrupt" else "the time was up; --budget gives more"
        yield f"not tried: {len(found.not_tried)} ({why}), the most promising first"
        names = [visible(candidate.name) for candidate in found.not_tried[:SHOWN]]
        yield from _wrapped("; ".join(names), "  ")
        yield from _rest(len(found.not_tried))
        yield ""


def _rest(count: int) -> Iterator[str]:
    if count > SHOWN:
        yield f"   ... and {count - SHOWN} more: --json"


def _code(found: Advice, one: Tried, suite: Suite) -> str:
    (model,) = suite.models()
    target = found.targets[one.candidate.target]
    return session_code(target, one.candidate.cell(suite.name, model), suite.model_path(model))


def _plain(found: Advice, suite: Suite) -> dict[str, Any]:
    """Everything as JSON has it."""
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
    """The CPU provider is what everything else has to beat."""
    if any(target.provider == (CPU,) for target in matrix.targets):
        return matrix
    names = {target.name for target in matrix.targets}
    name = next(name for name in ("cpu", "cpu-provider", "the-cpu-provider") if name not in names)
    return msgspec.structs.replace(matrix, targets=(Target(name=name, provider=(CPU,)), *matrix.targets))


def _wrapped(text: str, label: str = "") -> list[str]:
    indent = " " * (len(label) or 2) + ("  " if label.isspace() else "")
    return textwrap.wrap(text, WIDTH, initial_indent=label, subsequent_indent=indent, break_on_hyphens=False)
