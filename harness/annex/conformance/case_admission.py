"""Admission of candidates to profiles: the golden of a case, or why there is no fair golden."""

from collections.abc import Mapping, Sequence

import numpy as np

from harness.core.comparison import wording
from harness.core.comparison.policy import Policy
from harness.core.comparison.weak_golden import why_weak
from harness.core.noise.noise import NoiseRule
from harness.core.noise.spread import Spread
from harness.core.text.errors import HarnessError
from harness.core.values.value import (
    DTYPES,
    STRING,
    Array,
    Floats,
    Map,
    NamedValues,
    Tensor,
    Value,
    leaves_of,
)
from harness.core.values.value import Sequence as ValueSequence
from harness.core.verdicts.half_zero import half_zero_passes
from harness.core.verdicts.judge_output import judge_row
from harness.corpus.case import Case
from harness.corpus.derived.inner_outputs import read_by_partials
from harness.corpus.model.element_types import NARROWER
from harness.corpus.model.origins import RANDOM_OPERATORS, ChosenFrom, DrawnBy, UnorderedWith
from harness.corpus.model.port import ValueType
from harness.corpus.model.undefined import undefined_outputs
from harness.engine.answers.compare_sets import compare_sets, flat, is_same
from harness.engine.answers.noise_rules import noise_rule
from harness.engine.questions.answer import forgiving
from harness.engine.tasks.task import QuestionKind
from harness.golden.golden_answer import Golden
from harness.golden.trust import doubt_about

Answers = Mapping[QuestionKind, Golden]
"""Kind of a question -> answer, of those that were answered."""

_LARGE = 1 / 4
"""Share of an output's size by which noise may move an element. A larger move is a jump, not rounding."""

_DOUBLE = 1e-12
"""Relative difference of two right answers in float64: some thousand times its precision.

Results computed in float64 are judged as in float32, which is eight digits coarser.
"""


class NotAdmittedError(HarnessError):
    """A candidate is no case; the text says why."""


def golden_of_candidate(case: Case, answers: Answers) -> tuple[NamedValues, ...]:
    """Return the golden of a candidate, before its noise is known.

    Answers in float64 are rounded once to the declared types. A model without a form in float64 has the CPU
    provider's answer, if another source confirms it bit by bit.

    Raises:
        NotAdmittedError: There is no golden, or it is drawn at random, undefined, tied or weak.
    """
    if case.external:
        raise NotAdmittedError("its weights are in other files")
    if drawn := _drawn(case):
        raise NotAdmittedError(f"it draws numbers: {', '.join(drawn)}")
    golden = _in_float64(case, answers) if case.facts.float_types & NARROWER else _exact(case, answers)
    _refuse_undefined(case, answers, golden)
    _refuse_ties(case, golden)
    if weak := why_weak(golden, Policy().tolerance_for):
        raise NotAdmittedError(f"weak: {weak}")
    return golden


def check_case_golden(
    case: Case, golden: Sequence[NamedValues], answers: Answers, spread: Spread, policy: Policy
) -> None:
    """Check a golden with its noise against all other sources.

    Raises:
        NotAdmittedError: Another source disagrees, none confirms it, noise moves it far, or excuses zeros in
            half of an output.
    """
    _refuse_jumps(golden, spread)
    noise = noise_rule(spread)
    _refuse_noisy(golden, noise, policy)
    confirmed = False
    cpu = answers.get(QuestionKind.ANSWER)
    if cpu is not None and cpu.status == "ok":
        compared = compare_sets(golden, cpu.outputs, policy.tolerance_for, noise=noise)
        for row in compared.outputs:
            if why := judge_row(row, policy).why:
                raise NotAdmittedError(f"disputed: the CPU provider differs: {why}")
        confirmed = True
    forgive = forgiving(case, policy.tolerance_for)
    evaluated = answers.get(QuestionKind.EVALUATED)
    sources = {"the expected data": tuple(one.expected for one in case.data_sets)}
    doubt = doubt_about(case.facts.operators, case.facts.float_types)
    if evaluated is not None and evaluated.status == "ok" and not doubt:
        sources["onnx.reference"] = evaluated.outputs
    for name, outputs in sources.items():
        if not any(outputs):
            continue
        compared = compare_sets(outputs, golden, forgive, only_known=True)
        if compared.verdict is not None:
            raise NotAdmittedError(f"disputed: {name} differs: {compared.message}")
        confirmed = True
    if not confirmed:
        raise NotAdmittedError("nothing confirms the answer in float64")


def _drawn(case: Case) -> list[str]:
    by_origin = {one.op for one in case.facts.origins.known.values() if isinstance(one, DrawnBy)}
    return sorted(
        (RANDOM_OPERATORS & case.facts.op_types.keys()) | by_origin | {*case.facts.origins.by_chance}
    )


def _in_float64(case: Case, answers: Answers) -> tuple[NamedValues, ...]:
    for kind in (QuestionKind.FLOAT64_EVALUATED, QuestionKind.FLOAT64):
        found = answers.get(kind)
        if found is not None and found.status == "ok":
            break
    else:
        why = next((one.message for one in answers.values() if one.message), "")
        raise NotAdmittedError(f"there is no answer in float64: {why}")
    types = dict(zip(case.outputs, case.output_types, strict=True))
    rounded = tuple(
        tuple((name, _rounded(value, types[name])) for name, value in outputs) for outputs in found.outputs
    )
    cpu = answers.get(QuestionKind.ANSWER)
    if cpu is not None and cpu.status == "ok":
        right, ours = dict(leaves_of(flat(rounded))), dict(leaves_of(flat(cpu.outputs)))
        for name, part in right.items():
            other = ours.get(name)
            whole = part is not None and part.dtype not in {*NARROWER, "float64", "complex64", "complex128"}
            if whole and (other is None or not _is_same(part, other)):
                raise NotAdmittedError(f"near a discontinuity: {name} is another one in float64")
    return rounded


def _exact(case: Case, answers: Answers) -> tuple[NamedValues, ...]:
    cpu = answers.get(QuestionKind.ANSWER)
    if cpu is None or cpu.status != "ok":
        raise NotAdmittedError(f"the CPU provider has no answer: {cpu.message if cpu else ''}")
    if cpu.disputed:
        raise NotAdmittedError(f"disputed: {cpu.disputed}")
    evaluated = answers.get(QuestionKind.EVALUATED)
    others = [tuple(one.expected for one in case.data_sets)]
    if evaluated is not None and evaluated.status == "ok":
        others.append(evaluated.outputs)
    own = dict(leaves_of(flat(cpu.outputs)))
    for outputs in others:
        found = dict(leaves_of(flat(outputs)))
        if found.keys() == own.keys() and all(_confirms(own[name], found[name]) for name in own):
            return cpu.outputs
    raise NotAdmittedError("neither expected data nor onnx.reference confirm the answer bit by bit")


def _confirms(one: Tensor | None, other: Tensor | None) -> bool:
    """Return whether two answers have the same bits; those in float64 may round otherwise."""
    if _is_same(one, other):
        return True
    if one is None or other is None or {one.dtype, other.dtype} != {"float64"}:
        return False
    if one.array.shape != other.array.shape:
        return False
    return bool(np.isclose(one.array, other.array, rtol=_DOUBLE, atol=0.0, equal_nan=True).all())


def _rounded(value: Value, declared: ValueType) -> Value:
    if isinstance(value, ValueSequence):
        item = declared.item or ValueType(kind="tensor")
        return ValueSequence(items=tuple(_rounded(one, item) for one in value.items))
    if isinstance(value, Map) or value is None:
        return value
    dtype = declared.item.dtype if declared.kind == "optional" and declared.item else declared.dtype
    if value.dtype == dtype or not dtype:
        return value
    if value.dtype != "float64" or dtype not in NARROWER:
        raise NotAdmittedError(f"an output is {dtype}, and {value.dtype} in float64")
    return Tensor(dtype=dtype, array=_round_once(value.array, dtype))


@np.errstate(all="ignore")
def _round_once(array: Array, dtype: str) -> Array:
    """Round float64 to a narrower type, to nearest.

    A direct way to bfloat16 by float32 would round twice. Rounding to odd first rounds only once: float32 has
    more than two bits beyond bfloat16 (Boldo, Melquiond: When double rounding is odd, 2005).
    """
    if dtype != "bfloat16":
        return array.astype(DTYPES[dtype])
    flat = array.reshape(-1).astype(np.float64)
    single = flat.astype(np.float32)
    below = np.where(np.abs(single) > np.abs(flat), np.nextafter(single, np.float32(0)), single)
    bits = below.view(np.uint32).copy()
    bits[np.isfinite(flat) & (below.astype(np.float64) != flat)] |= 1
    return bits.view(np.float32).astype(DTYPES[dtype]).reshape(array.shape)


def _refuse_undefined(case: Case, answers: Answers, golden: Sequence[NamedValues]) -> None:
    inside = answers.get(QuestionKind.UNDEFINED)
    if read_by_partials(case) and (inside is None or inside.status != "ok"):
        raise NotAdmittedError("it is not known whether ONNX defines its result for these values")
    for index, data_set in enumerate(case.data_sets):
        hidden = dict(inside.outputs[index]) if inside is not None and inside.outputs else {}
        values = {**dict(data_set.inputs), **dict(golden[index]), **hidden}
        if found := undefined_outputs(case.facts.partials, values):
            raise NotAdmittedError(f"undefined: {next(iter(found.values()))}")


def _refuse_ties(case: Case, golden: Sequence[NamedValues]) -> None:
    for name, origin in case.facts.origins.known.items():
        if isinstance(origin, UnorderedWith) or (isinstance(origin, ChosenFrom) and origin.unordered):
            raise NotAdmittedError(f"{name} may have any order")
        if not isinstance(origin, ChosenFrom):
            continue
        for index, data_set in enumerate(case.data_sets):
            data = {**dict(data_set.inputs), **dict(golden[index])}.get(origin.data)
            if not isinstance(data, Tensor) or _ties(data, origin):
                raise NotAdmittedError(f"tied: values by which {name} was chosen may be equal")


def _ties(data: Tensor, origin: ChosenFrom) -> bool:
    """Return whether two values are so near that another choice is right."""
    if origin.op == "NonZero" and not origin.computed:
        return False  # exact
    if origin.op not in {"ArgMax", "ArgMin", "TopK"} or not data.array.ndim or data.dtype == STRING:
        return True
    numbers = np.sort(data.array.astype(np.float64), axis=origin.axis)
    tolerance = Policy().tolerance_for(data.dtype)
    allowed = tolerance.atol + tolerance.rtol * np.abs(numbers)
    gaps = np.diff(numbers, axis=origin.axis)
    low = np.take(allowed, range(gaps.shape[origin.axis]), axis=origin.axis)
    return bool((~(gaps > 2 * low)).any())


def _refuse_jumps(golden: Sequence[NamedValues], spread: Spread) -> None:
    for index, outputs in enumerate(golden):
        for name, part in leaves_of(outputs):
            noise: Floats | None = spread.outputs[index].get(name)
            if noise is None or part is None:
                continue
            with np.errstate(all="ignore"):
                numbers = part.array.astype(np.float64)
                finite = numbers[np.isfinite(numbers)]
                size = float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0
            if size and float(noise.max(initial=0.0)) > _LARGE * size:
                raise NotAdmittedError(f"near a discontinuity: rounding moves {name} far")


def _refuse_noisy(golden: Sequence[NamedValues], noise: NoiseRule, policy: Policy) -> None:
    for leaf, part in leaves_of(flat(golden)):
        if part is not None and half_zero_passes(leaf, part, policy, None, noise):
            raise NotAdmittedError(f"weak: noise excuses zeros in half of {wording.output(leaf)}")


def _is_same(one: Tensor | None, other: Tensor | None) -> bool:
    return one is other if one is None or other is None else is_same(one, other)
