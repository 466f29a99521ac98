"""Early ends: the facts of a cell that did not run to its end, with onnxruntime's message made readable."""

import re
from collections.abc import Iterator
from pathlib import Path

from harness.agent.native_stack.block import without_stacks
from harness.core.comparison.policy import Policy
from harness.core.findings.cause import PRINTED, innermost, plain_cause, says_little
from harness.core.findings.lacking import OUT_OF_MEMORY, lacking
from harness.core.records.cell_end import CellEnd, How
from harness.core.records.facts import Facts
from harness.core.records.verdict import Cause, Phase
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.core.verdicts.decide import decide
from harness.corpus.case import Case
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.model.model_errors import (
    BoundError,
    ChangedFileError,
    InputError,
    MisnamedError,
    RefusedModelError,
)
from harness.engine.answers.cases import NoCase, NoInput, why_no_model
from harness.engine.tasks.outcome import (
    Died,
    Hung,
    Outcome,
    Raised,
    Ran,
    Rejected,
    Unavailable,
    Unfeedable,
    Unsupported,
)

LIMIT = 8192
"""Characters of a message that are read: twice what an agent sends; 300 of the result are shown."""

_PRINTED_CHARS = 200
"""Characters of the printed text that are shown."""

LONG = 1.1
"""Multiple of its limit from which on a reason states the time that a phase took as well as its limit."""

MORE = 10
"""Factor of the limit that is proposed instead."""

DEVICE_LOST = "DeviceLost"
"""Error kind by which an agent reports that the device of its EP is lost."""

PROCESS_DIED = "ProcessDied"
"""Error kind by which an agent reports that another process of a scenario died: ``SIGABRT: where``."""

COMPILED_MODEL = "CompiledModelError"
"""Error kind by which an agent reports that what the EP itself compiled fails: no refusal, in any words."""

_WORD = re.compile(r"\S+")
_FOLDERS = re.compile(r"(?:\b[A-Za-z]:)?[\\/]")
_FILE_AND_LINE = re.compile(r"\S*\.(?:cc|cpp|cxx|c|cu|cuh|h|hpp|inl|mm|rs):\d+:?")
_FUNCTION = re.compile(r"-(?=\s)|(?:\w+::)*(?:operator\(\)|[A-Z][a-z0-9]*(?:[A-Z][a-z0-9]*)+)(?=\s)")
"""The text after a file and a line: ``ov_compute.h:311 - ...``, ``shader_helper.cc:416 GenerateSourceCode
...``."""

_ERROR_LINE = re.compile(
    r"\[[EF]:onnxruntime:[^\]\n]{0,500}\] (?P<words>[^\n]{1,2000})"
    r"|^\[?(?:ERROR|FATAL)\b\]?:? (?P<other>[^\n]{1,2000})",
    re.MULTILINE,
)
"""A line that onnxruntime's logger, or an EP itself, prints as an error."""

_SOURCES = re.compile(r"/(?:onnxruntime_src|onnxruntime/(?:core|python))/")
_LINE = re.compile(r":\d+")
_STATUS = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : "
    # onnxruntime-web puts its own words before those of onnxruntime.
    r"|(?:Can't create a session|failed to call OrtRun\(\))\. ERROR_CODE: \d+, ERROR_MESSAGE: "
)
_AFTER_PARAMETERS = re.compile(r"::<lambda\([^)]*\)>|\s*\bconst\b|\s*\[with [^]]*\]")
_NO_LOCALE = re.compile(r"Failed to construct locale|locale name not valid")
_FUSED = re.compile(r"\b(?:\w*ExecutionProvider_)?(\w*ExecutionProvider)_\d{6,20}_(\d{1,9})(?:_\d{1,9})?\b")
"""The name of a node that an EP has compiled, with a hash of the model's path."""

_INLINED = re.compile(r"_inlfunc_.*No opset import for domain '\w*ExecutionProvider'", re.DOTALL)
_NOT_THE_EP = (
    "; the fault is onnxruntime's: it inlines a function whose body the EP has compiled, "
    "and leaves out the domain of fused nodes"
)
"""About ``SequenceMap``; see docs/explanation/real-providers.md."""

_INSTALL = "; the machine lacks this locale: install it there"
_REFUSAL = re.compile(r"not (?:yet )?(?:supported|implemented)|unsupported|NOT_IMPLEMENTED", re.IGNORECASE)


def ended(outcome: Outcome, case: Case | None = None) -> Facts:
    """Return the facts of a cell that did not run to its end."""
    how: How
    match outcome:
        case Raised():
            return _raised(outcome, case)
        case Unavailable():
            late = outcome.cause in {"no_device", "registration_failed"}
            phase, how = (Phase.REGISTER if late else Phase.START), "unavailable"
            reason = clean_error(outcome.reason)
        case Rejected():
            reason = clean_error(f"provider option {outcome.option!r} is refused: {outcome.reason}")
            phase, how = Phase.REGISTER, "rejected"
        case Unsupported():
            phase, how, reason = outcome.phase, "unsupported", clean_error(outcome.message)
        case Hung():
            phase, how, reason = outcome.phase, "timed_out" if outcome.at_work else "hung", _too_long(outcome)
        case Died():
            phase, how = outcome.phase, "died"
            reason = f"the process died in phase {phase}: {outcome.cause or 'it exited early'}"
            reason = "; ".join(filter(None, (reason, outcome.left)))
        case Unfeedable():
            phase, how, reason = Phase.RUN, "unfeedable", one_line(outcome.message)
        case Ran():
            raise TypeError("a cell that ran did not end early")
    printed = without_stacks(outcome.printed) if isinstance(outcome, Died) else ""
    cause = getattr(outcome, "cause", "")
    lacks = lacking(f"{cause} {printed}") if isinstance(outcome, Died) else ""
    return Facts(
        phase=phase,
        cause=cause,
        scenario=getattr(outcome, "scenario", {}),
        ended=CellEnd(how=how, message=reason, out_of_memory=tells_no_memory(printed), lacks=lacks),
    )


def _too_long(outcome: Hung) -> str:
    """Return how a phase exceeded its limit, and which limit to raise if its process was still at work."""
    phase, limit_s, told = outcome.phase, outcome.limit_s, outcome.told
    if outcome.at_work:
        higher = f"timeouts_s = {{ {phase} = {MORE * limit_s:g} }}"
        return f"still at work in phase {phase} at its limit of {limit_s:g} s: {told}; give it more: {higher}"
    reason = f"no end of phase {phase} within {limit_s:g} s; the process was killed"
    long = f", after {outcome.took_s:.3g} s" if outcome.took_s > LONG * limit_s else ""
    return "; ".join(filter(None, (f"{reason}{long}", told, outcome.left)))


def problem_of(verdict: Unavailable | Rejected) -> str:
    """Return why a target cannot be used, in one line."""
    return decide(ended(verdict), Policy()).reason


def tells_no_memory(text: str) -> bool:
    """Return whether a text reports that memory ran out."""
    return OUT_OF_MEMORY.search(text) is not None


def at_data_set(case: Case, number: int | None) -> str:
    """Return a prefix for a reason that names the data set; empty if there is only one."""
    if number is None or not 0 <= number < len(case.data_sets) > 1:
        return ""
    return f"with {case.data_sets[number].name}: "


def _raised(outcome: Raised, case: Case | None) -> Facts:
    if outcome.kind == PROCESS_DIED:
        cause, _, where = outcome.message.partition(": ")
        reason = one_line(f"the process of the scenario died {where}: {cause}")
        died = CellEnd(how="died", message=reason)
        return Facts(phase=outcome.phase, cause=one_line(cause, 100), ended=died, scenario=outcome.scenario)
    text = f"{outcome.kind}: {outcome.message}"
    if case is not None and case.package is not None:
        text = text.replace(f"{case.package.root}/", "")
    message = clean_error(text, case.model_path if case else None)
    lacks = lacking(text)
    if says_little(message) and (printed := _printed_cause(outcome.printed, message)):
        lacks = lacks or lacking(printed)
        message = f"{message.rstrip('.: ')}; {PRINTED}{printed}"
    if case is not None:
        message = one_line(at_data_set(case, outcome.data_set) + message)
    if _NO_LOCALE.search(text):
        told = f"{one_line(message, 300 - len(_INSTALL))}{_INSTALL}"
        ended = CellEnd(how="unavailable", message=told)
        return Facts(phase=outcome.phase, cause=Cause.LIBRARY_MISSING, ended=ended)
    note = ""
    if outcome.sick:
        sick = clean_error(outcome.sick)
        alike = plain_cause(sick) == plain_cause(message)  # repeating it would take its room
        sick = "another model fails alike" if alike else one_line(sick, 100)
        note = f"; the process was replaced: {sick}"
        message = one_line(message, 300 - len(note))
    elif _INLINED.search(text):
        note = _NOT_THE_EP
        message = one_line(message, 300 - len(note))
    how = CellEnd(
        how="raised",
        kind=one_line(outcome.kind, 100),
        message=message,
        out_of_memory=tells_no_memory(text),
        refused=outcome.kind != COMPILED_MODEL and _REFUSAL.search(text) is not None,
        note=note,
        lacks=lacks,
    )
    cause = "device_lost" if outcome.kind == DEVICE_LOST else ""
    return Facts(phase=outcome.phase, cause=cause, ended=how, scenario=outcome.scenario)


def _printed_cause(printed: str, message: str) -> str:
    """Return the first printed error; empty if the exception repeats it."""
    line = _ERROR_LINE.search(visible(without_stacks(printed)))
    if line is None:
        return ""
    words = one_line(clean_error(line["words"] or line["other"]), _PRINTED_CHARS)
    return "" if words in message or innermost(message) in words else words


def clean_error(message: str, model: Path | None = None) -> str:
    """Return an error message in one line, without status codes, places in sources, signatures and folders.

    onnxruntime puts ``file:line signature`` before the message; the signature alone can be longer than a
    line. Nested exceptions of OpenVINO have a file and a line each.
    """
    text = _FUSED.sub(r"\1_\2", _STATUS.sub("", message[:LIMIT]))
    if model is not None:
        text = _without_folders(text.replace(str(model), model.name), model.name)
    parts = []
    position = 0
    for start, end in _places(text):
        if start < position:
            continue
        parts.append(text[position:start])
        position = _after_signature(text, end)
    return one_line(_without_places("".join([*parts, text[position:]])))


def _without_folders(text: str, name: str) -> str:
    """Return a text with the plain name of a file that has another path where the agent is."""

    def plain(word: re.Match[str]) -> str:
        end = word[0].rfind(name)
        if end < 1 or word[0][end - 1] not in "\\/":
            return word[0]
        folders = _FOLDERS.search(word[0])
        return word[0][: folders.start()] + word[0][end:] if folders else word[0]

    return _WORD.sub(plain, text)


def _without_places(text: str) -> str:
    """Return a text without ``Exception from file:line:``, ``at file:line`` and ``file:line Function``."""
    parts, position = [], 0
    for word in _WORD.finditer(text):
        if word.start() < position or not _FILE_AND_LINE.fullmatch(word[0]):
            continue
        before = text[position : word.start()].rstrip()
        end = word.end()
        if before.endswith(" failed at"):
            parts += [before.removesuffix(" at"), ":"]
        else:
            parts.append(before.removesuffix("Exception from"))
            while text[end : end + 1].isspace():
                end += 1
            function = _FUNCTION.match(text, end)
            end = function.end() if function is not None else end
            parts.append(" ")
        position = end
    return "".join([*parts, text[position:]])


def _places(text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each ``path/of/onnxruntime/file:line`` and a blank.

    Word by word: a single pattern would try every part of a hostile path as its beginning.
    """
    for word in _WORD.finditer(text):
        sources = _SOURCES.search(word[0])
        colon = word[0].rfind(":")
        ended = text[word.end() : word.end() + 1] == " "
        if sources is None or not ended or not _LINE.fullmatch(word[0], max(colon, 0)):
            continue
        file = colon
        while file > sources.end() and (word[0][file - 1] in "._" or word[0][file - 1].isalnum()):
            file -= 1
        if file < colon:
            yield word.start() + _path_to(word[0], sources.start()), word.end() + 1


def _path_to(word: str, start: int) -> int:
    """Return the start of the folders of a place in a word."""
    while True:
        slash = word.rfind("/", 0, start)
        folder = word[slash + 1 : start]
        if slash < 0 or not folder or not all(char in "._+-" or char.isalnum() for char in folder):
            return start
        start = slash


def _after_signature(text: str, start: int) -> int:
    """Return the end of the signature that begins at ``start``; ``start`` itself without one."""
    opened = text.find("(", start)
    if opened < 0:
        return start
    depth = 0
    for position in range(opened, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if not depth:
            break
    else:
        return start  # truncated
    end = position + 1
    while suffix := _AFTER_PARAMETERS.match(text, end):
        end = suffix.end()
    return end + (len(text) > end and text[end] == " ")


def without_case(found: NoCase) -> Facts:
    """Return the facts of a cell whose model cannot be run."""
    reason = why_no_model(found)
    match found:
        case ChangedFileError():
            facts = Facts(ended=CellEnd(how="changed", message=reason))
        case Inapplicable() | MisnamedError():
            facts = Facts(ended=CellEnd(how="declared", message=reason))
        case RefusedModelError():
            facts = Facts(phase=Phase.CREATE, no_golden=f"the CPU EP refuses the model: {reason}")
        case BoundError():
            facts = Facts(phase=Phase.CREATE, no_golden=reason)
        case InputError():
            facts = Facts(phase=Phase.CREATE, ended=CellEnd(how="no_input", message=reason))
        case NoInput():
            facts = Facts(phase=Phase.RUN, ended=CellEnd(how="no_input", message=reason))
        case _:
            facts = Facts(phase=Phase.CREATE, ended=CellEnd(how="broken_model", message=reason))
    return facts
