"""Rules for cells that did not run to their end."""

from harness.core.records.cell_end import CellEnd
from harness.core.records.facts import Facts
from harness.core.records.fixed_sizes import fixed_words
from harness.core.records.verdict import Phase, Verdict
from harness.core.verdicts.judging import Judging
from harness.core.verdicts.own_cpu import lacks, lacks_kernels, lacks_operator, refuses_inputs, refusing_cpu
from harness.core.verdicts.ruling import Rule, Ruling


def harness_error(judging: Judging) -> Ruling | None:
    """An exception of the harness's own is no result of the EP, and never a pass."""
    return _ended(judging, "harness", Verdict.HARNESS_ERROR)


def file_changed(judging: Judging) -> Ruling | None:
    """A file of the model changed during the run, so that its results belong to no known model."""
    return _ended(judging, "changed", Verdict.NOT_RUN)


def not_tried(judging: Judging) -> Ruling | None:
    """The target cannot be used here, or the matrix declares that the cell is left out."""
    return _ended(judging, "unavailable", Verdict.UNAVAILABLE) or _ended(
        judging, "declared", Verdict.DECLARED
    )


def option_rejected(judging: Judging) -> Ruling | None:
    """A session can be made without an option, but not with it."""
    return _ended(judging, "rejected", Verdict.OPTION_REJECTED)


def invalid_model(judging: Judging) -> Ruling | None:
    """The model cannot be read, or onnx's checker refuses it, as the CPU EP of the target's own runtime does.

    Records of before the checker was asked have no rule; there the CPU EP's refusal decides.
    """
    if found := _ended(judging, "broken_model", Verdict.INVALID_MODEL):
        return found
    own = refusing_cpu(judging.facts)
    if own is None or lacks(own) or own.rule == "":
        return None
    told = f"{own.rule}; the CPU EP: {own.message}" if own.rule else own.message
    return Ruling(Verdict.INVALID_MODEL, told)


def cpu_refuses(judging: Judging) -> Ruling | None:
    """The CPU EP of the same runtime refuses a valid model, too, so nothing is known about another EP.

    For a target on the CPU EP, a missing kernel or operator, or an unknown version, is a clean refusal.
    Inputs that do not fit the model say nothing about the model.
    """
    own = refusing_cpu(judging.facts)
    if own is None:
        return None
    facts, ended = judging.facts, judging.facts.ended
    if refuses_inputs(own):
        return Ruling(Verdict.NO_INPUT, f"the data do not fit the model: {own.message}")
    clean = lacks(own) or lacks_operator(own) or (ended is not None and _is_refusal(facts, ended))
    if facts.is_cpu and clean:
        return Ruling(Verdict.UNSUPPORTED, own.message)
    return Ruling(
        Verdict.NO_GOLDEN, own.message if facts.is_cpu else f"the CPU EP refuses it too: {own.message}"
    )


def no_input(judging: Judging) -> Ruling | None:
    """No generated input runs on the CPU EP, so nothing is known of the model."""
    return _ended(judging, "no_input", Verdict.NO_INPUT)


def cpu_dies_too(judging: Judging) -> Ruling | None:
    """The CPU EP of the same runtime dies of the model, too, so the EP is not to blame.

    An EP that refuses the model cleanly, or runs out of memory, is judged as such.
    """
    ended, own = judging.facts.ended, judging.facts.own_cpu
    if ended is None or own is None or own.status not in {"died", "lost"}:
        return None
    if ended.how == "raised":
        applies = not (ended.out_of_memory or _is_refusal(judging.facts, ended))
    else:
        applies = ended.how in {"died", "hung"} and own.status == "died"
    return Ruling(Verdict.NO_GOLDEN, f"{own.message}; and here: {ended.message}") if applies else None


def out_of_memory(judging: Judging) -> Ruling | None:
    """Memory ran out, according to what was raised or printed."""
    ended = judging.facts.ended
    if ended is None or not ended.out_of_memory or ended.how not in {"raised", "died"}:
        return None
    return Ruling(Verdict.OUT_OF_MEMORY, ended.message + ended.note)


def crash_or_hang(judging: Judging) -> Ruling | None:
    """The process died, or did nothing more at a phase's limit, or worked for 10 times as long, alone."""
    return _ended(judging, "died", Verdict.CRASH) or _ended(judging, "hung", Verdict.HANG)


def timeout(judging: Judging) -> Ruling | None:
    """The process was still at work at the time limit of a phase: it may only be slow."""
    return _ended(judging, "timed_out", Verdict.TIMEOUT)


def refused(judging: Judging) -> Ruling | None:
    """The EP refuses the model cleanly while the session is created, or has no such scenario."""
    ended = judging.facts.ended
    if ended is not None and ended.how == "raised" and _is_refusal(judging.facts, ended):
        told = filter(None, (ended.message + ended.note, fixed_words(judging.facts.fixed)))
        return Ruling(Verdict.UNSUPPORTED, "; ".join(told))
    return _ended(judging, "unsupported", Verdict.UNSUPPORTED)


def beyond_data(judging: Judging) -> Ruling | None:
    """A window is larger than the generated data, which ONNX's text does not allow: no EP need take that."""
    facts = judging.facts
    raised = facts.ended is not None and facts.ended.how == "raised"
    if not facts.beyond or not (raised or judging.fault is not None):
        return None
    what = facts.ended.message if facts.ended is not None else judging.fault[1] if judging.fault else ""
    return Ruling(Verdict.NO_INPUT, f"the generated data are smaller than a window: {facts.beyond}; {what}")


def error(judging: Judging) -> Ruling | None:
    """The EP raised an error where the CPU EP works."""
    return _ended(judging, "raised", Verdict.ERROR)


def unfeedable(judging: Judging) -> Ruling | None:
    """The target's Python API cannot take or give a value: nothing is known about the EP."""
    return _ended(judging, "unfeedable", Verdict.NO_GOLDEN)


NOT_TRIED_RULES: tuple[Rule, ...] = (
    harness_error,
    file_changed,
    not_tried,
    option_rejected,
)
"""The rules of cells that were left out, or not run as asked, in the order in which they are tried."""

END_RULES: tuple[Rule, ...] = (
    invalid_model,
    cpu_refuses,
    no_input,
    cpu_dies_too,
    out_of_memory,
    crash_or_hang,
    timeout,
    refused,
    beyond_data,
    error,
    unfeedable,
)
"""The other rules, in their order. Those of variants come between the two."""


def _ended(judging: Judging, how: str, verdict: Verdict) -> Ruling | None:
    ended = judging.facts.ended
    if ended is None or ended.how != how:
        return None
    return Ruling(verdict, ended.message + ended.note)


def _is_refusal(facts: Facts, ended: CellEnd) -> bool:
    refuses = ended.kind == "NotImplemented" or ended.refused
    return facts.phase is Phase.CREATE and (lacks_kernels(facts) or refuses)
