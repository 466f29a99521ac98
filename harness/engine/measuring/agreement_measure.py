"""Measure whether the answers to a model's task equal the golden's. Pure; no verdict depends on it."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from harness.core.agreement.agree_key import FIRST_OUTPUT, NO_TASK, is_function
from harness.core.agreement.agreement import Agreement, summed
from harness.core.agreement.agreement_default import default_boxes, default_tasks
from harness.core.agreement.agreement_kinds import CannotAgreeError, Scores, count_answers, split_kind
from harness.core.agreement.box_matching import are_boxes, are_rows, detections_of, roles_of
from harness.core.comparison.tolerance import finest_precision
from harness.core.noise.noise import PRECISIONS
from harness.core.noise.spread import Spread
from harness.core.records.facts import Facts
from harness.core.text.errors import one_line
from harness.core.values.value import Floats, NamedValues, Tensor
from harness.corpus.case import Case
from harness.engine.answers.compare_sets import is_same, numbered
from harness.engine.answers.evidence import CellRule, Evidence
from harness.engine.tasks.outcome import Outcome, Ran

OutputTask = tuple[str, str]
"""An output and its task."""


def with_agreement(facts: Facts, case: Case, outcome: Outcome, evidence: Evidence, rule: CellRule) -> Facts:
    """Return facts with the number of answers that equal the golden's; generated text has its own figures.

    Functions of a matrix are not called here; see ``harness.engine.measuring.own_agreement``.
    """
    if not (case.tasks or case.facts.heads) or not isinstance(outcome, Ran) or rule.generation is not None:
        return facts
    answers = goldens_of(case, evidence)
    if not answers or facts.no_golden or case.facts.origins.by_chance:
        return facts
    asked = _asked(case, answers[0])
    default = [] if case.tasks.get(FIRST_OUTPUT) == NO_TASK else _by_default(case, answers[0])
    spreads = _slacks(case, evidence, rule)
    found: list[Agreement] = []
    for index, (golden, actual) in enumerate(zip(answers, outcome.outputs, strict=True)):
        of_set = _Set(_tensors(golden), _tensors(actual), _of_set(spreads, index, golden))
        for output, task in asked:
            found.append(_counted(of_set, output, task))
        found += [one for output, task in default if not (one := _counted(of_set, output, task)).failed]
    return msgspec.structs.replace(facts, agreement=summed(found))


def goldens_of(case: Case, evidence: Evidence) -> Sequence[NamedValues]:
    """Return the right outputs of each data set: those of the unconverted model, if the cell converts it."""
    golden = evidence.golden if evidence.full is None else evidence.full
    if golden is not None and golden.status == "ok":
        return golden.outputs
    expected = [data_set.expected for data_set in case.data_sets]
    return expected if evidence.full is None and all(expected) else ()


class _Set(msgspec.Struct, frozen=True):
    """One data set: tensors by output, and how far rounding may move the golden's."""

    golden: Mapping[str, Tensor]
    actual: Mapping[str, Tensor]
    slacks: Mapping[str, Floats]


def _asked(case: Case, answer: NamedValues) -> list[OutputTask]:
    """Return the tasks that a matrix or the model's own file names."""
    found = []
    for output, task in case.tasks.items():
        if is_function(task) or task == NO_TASK:
            continue
        name = output
        if output == FIRST_OUTPUT:
            name = case.outputs[0] if case.outputs else ""
            if split_kind(task)[0] == "boxes":
                forms = (
                    one for one, value in _tensors(answer).items() if are_rows(value) or are_boxes(value)
                )
                name = next(forms, name)
        found.append((name, task))
    return found


def _by_default(case: Case, answer: NamedValues) -> list[OutputTask]:
    """Return the default tasks of a network's outputs that have none."""
    named = {output or (case.outputs[0] if case.outputs else "") for output in case.tasks}
    if not case.facts.heads or any(is_function(task) for task in case.tasks.values()):
        return []
    goldens = _tensors(answer)
    found = [
        (output, task)
        for output, head in case.facts.heads.items()
        if output not in named and output in goldens
        for task in default_tasks(output, head, goldens[output])
    ]
    boxes = default_boxes(goldens)
    return [*found, (boxes, "boxes")] if boxes and boxes not in named else found


def _counted(of_set: _Set, output: str, task: str) -> Agreement:
    golden, actual = of_set.golden.get(output), of_set.actual.get(output)
    told = Agreement(output=output, kind=task)
    if golden is None or actual is None:
        whose = "golden has" if golden is None else "EP gives"
        return msgspec.structs.replace(told, failed=f"the {whose} no tensor there")
    same_bits = is_same(golden, actual)
    scores = Scores(golden=golden, actual=golden if same_bits else actual, slack=of_set.slacks.get(output))
    try:
        detections = None
        if split_kind(task)[0] == "boxes":
            roles = roles_of(golden, {name: one for name, one in of_set.golden.items() if name != output})
            ours = detections_of(golden, of_set.golden, roles, of_set.slacks)
            theirs = detections_of(actual, of_set.actual, roles)
            detections = None if ours is None or theirs is None else (ours, theirs)
        same, of, tied = count_answers(task, scores, detections=detections)
    except CannotAgreeError as error:
        return msgspec.structs.replace(told, failed=one_line(error))
    return msgspec.structs.replace(told, same=same, of=of, tied=tied)


def _tensors(values: NamedValues) -> dict[str, Tensor]:
    return {name: value for name, value in values if isinstance(value, Tensor)}


def _slacks(case: Case, evidence: Evidence, rule: CellRule) -> dict[str, Floats]:
    """Return how far rounding may move the golden, by output of all data sets; empty if unknown.

    The noise may be that of a coarser precision in which the EP computes. The golden's own noise is smaller
    by the ratio of the unit roundoffs.
    """
    noise = evidence.noise
    if not isinstance(noise, Spread) or noise.precision not in PRECISIONS:
        return {}
    own = "float32" if rule.policy.converted else finest_precision(case.facts.float_types, "float32")
    finer = min(1.0, PRECISIONS[own] / PRECISIONS[noise.precision])
    scale = rule.policy.limits.rms * finer
    return {
        numbered(index, name): spread * scale
        for index, one in enumerate(noise.outputs)
        for name, spread in one.items()
    }


def _of_set(spreads: Mapping[str, Floats], index: int, golden: NamedValues) -> dict[str, Floats]:
    found = {}
    for name, value in golden:
        spread = spreads.get(numbered(index, name))
        if spread is not None and isinstance(value, Tensor) and spread.shape == value.array.shape:
            found[name] = spread
    return found


def functions_of(case: Case) -> Iterator[OutputTask]:
    """Yield the tasks that are functions of the matrix."""
    return ((output, task) for output, task in case.tasks.items() if is_function(task))
