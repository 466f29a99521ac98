"""Ask both implementations about one subject, and hold what they say against each other."""

import contextlib
import importlib
import math
import signal
from collections.abc import Iterator
from collections.abc import Sequence as Seq
from typing import Any

import msgspec
import numpy as np
import onnx
from onnx import helper

from benchmarks.reference_trust.formulas import formula
from benchmarks.reference_trust.subject import Subject, model_of
from harness.agent.evaluate import gaps, in_wire_form
from harness.core.comparison.tolerance import Tolerance, default_tolerance
from harness.core.records.verdict import Verdict
from harness.core.text.errors import one_line
from harness.core.values.value import Sequence, Tensor, Value, from_wire, leaves, tensor
from harness.core.verdicts.compare import OutputComparison, compare_all

LIMIT_S = 20
"""Longest time that one answer may take."""

ROUNDING = {"float64": 2.0**-37, "float32": 2.0**-17, "float16": 2.0**-7}
"""Floating type -> an error beside the largest element of an output that rounding may explain.

That is 2**7 (float32), 2**16 (float64; some kernels compute parts in single precision) and 2**4 unit
roundoffs; the effect of an attribute that is not looked at is far above.
"""


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of one subject.

    Attributes:
        domain: Of the operator.
        op_type: The operator.
        since: Version of its schema.
        dtype: The floating type that computes; empty for none.
        status: ``agrees``, ``differs``, ``raises`` (the reference gives no answer), ``refused`` (the CPU EP
            does not run it) or ``undefined`` (drawn by lot).
        about: What distinguishes the subject.
        by: Largest relative error of an output, as a norm; null where it has none.
        right: Where they differ: which of them a third answer agrees with: ``cpu``, ``reference``,
            ``neither``, ``both`` or ``open`` for no third answer.
        how: What the third answer was: ``formula``, ``expected data``, or ``type and shape inference``.
        text: Why there is no answer, or how the answers differ.
        elements: Elements of the outputs.
    """

    domain: str
    op_type: str
    since: int
    dtype: str
    status: str
    about: dict[str, str] = {}
    by: float | None = None
    right: str = ""
    how: str = ""
    text: str = ""
    elements: int = 0


DRAWN = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
"""Operators whose values ONNX leaves open."""

Named = list[tuple[str, Value]]


def measure(one: Subject) -> Result:
    """Hold the reference against the CPU EP."""
    domain, op_type, since = one.key

    def result(status: str, **more: Any) -> Result:
        return Result(
            domain=domain,
            op_type=op_type,
            since=since,
            dtype=one.dtype,
            status=status,
            about=dict(one.about),
            **more,
        )

    if op_type in DRAWN or _is_drawn(one):
        return result("undefined", text="numbers are drawn by lot")
    try:
        cpu = answer_of_cpu(one)
    except Exception as error:  # noqa: BLE001 - whatever it is, the CPU EP gives no answer
        return result("refused", text=one_line(str(error)))
    try:
        told = answer_of_reference(one)
    except Exception as error:  # noqa: BLE001 - likewise
        return result("raises", text=one_line(f"{type(error).__name__}: {error}"))
    elements = sum(value.size for value in cpu if isinstance(value, np.ndarray))
    names = [name for name in one.node.output if name]
    found = compared(names, cpu, told)
    if found.verdict is None or _is_rounding(found.verdict, names, cpu, told):
        return result("agrees", elements=elements)
    if any(getattr(value, "dtype", np.dtype(bool)).type.__module__ != "numpy" for value in told):
        return result("refused", text="Python's onnxruntime gives no numbers of ml_dtypes")
    right, how = _judged(one, names, cpu, told)
    return result(
        "differs",
        by=_relative(cpu, told),
        right=right,
        how=how,
        text=one_line(found.message),
        elements=elements,
    )


def _is_drawn(one: Subject) -> bool:
    """Whether it is Dropout, or another operator, in training."""
    training = len(one.node.input) > 2 and one.node.op_type == "Dropout"
    return training and bool(np.any(one.feeds.get("i2", False)))


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"no answer within {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def answer_of_cpu(one: Subject) -> list[Any]:
    """What the CPU EP computes without optimizations; inputs become constants where it asks for that."""
    onnxruntime: Any = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    refusal: Exception | None = None
    later = [name for name, value in one.feeds.items() if name != "i0" and isinstance(value, np.ndarray)]
    for fixed in ([], later):
        model = model_of(one, fixed).SerializeToString()
        feeds = {name: value for name, value in one.feeds.items() if name not in fixed}
        try:
            session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
            return list(session.run(None, feeds))
        except Exception as error:  # noqa: BLE001 - the first refusal is told
            refusal = refusal or error
        if not later:
            break
    assert refusal is not None  # noqa: S101 - without an answer there is one
    raise refusal


def answer_of_reference(one: Subject) -> list[Any]:
    """What ``onnx.reference`` computes, where the harness asks it."""
    from onnx.reference import ReferenceEvaluator

    model = model_of(one)
    gap = next(gaps(model), "")
    if gap:
        raise NotImplementedError(f"the harness does not ask: onnx.reference computes {gap}")
    with _limited(), np.errstate(all="ignore"):
        feeds = {
            name: np.array(value) if isinstance(value, np.ndarray) else value
            for name, value in one.feeds.items()
        }
        return list(ReferenceEvaluator(model).run(None, feeds))


def _judged(one: Subject, names: list[str], cpu: list[Any], told: list[Any]) -> tuple[str, str]:
    """Which of two answers is right, by the first third answer that tells them apart, and what that is."""
    with np.errstate(all="ignore"):
        by_formula = formula(one)
    for third, how in ((by_formula, "formula"), (list(one.expected), "expected data")):
        if third:
            return _right(names, third, cpu, told), how
    return _by_inference(one, cpu, told)


def _by_inference(one: Subject, cpu: list[Any], told: list[Any]) -> tuple[str, str]:
    """Which of two answers has the types and shapes that ONNX's inference gives the outputs."""
    try:
        graph = onnx.shape_inference.infer_shapes(model_of(one, list(one.feeds)), data_prop=True).graph
    except Exception:  # noqa: BLE001 - inference is native code, and refuses what it does not like
        return "open", ""
    fits = [all(map(_fits, graph.output, answer)) for answer in (cpu, told)]
    if fits[0] == fits[1]:
        return "open", ""
    return ("cpu" if fits[0] else "reference"), "type and shape inference"


def _fits(info: onnx.ValueInfoProto, value: Any) -> bool:
    declared = info.type.tensor_type
    if not isinstance(value, np.ndarray) or not declared.elem_type:
        return True
    if value.dtype.kind not in "OUS" and value.dtype != helper.tensor_dtype_to_np_dtype(declared.elem_type):
        return False
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in declared.shape.dim]
    if not declared.HasField("shape"):
        return True
    return len(sizes) == value.ndim and all(
        size in {None, extent} for size, extent in zip(sizes, value.shape, strict=True)
    )


def _is_rounding(verdict: Verdict, names: list[str], right: Seq[Any], found: Seq[Any]) -> bool:
    """Whether values alone differ, and nowhere by more than rounding does beside the largest of them."""
    if verdict is not Verdict.MISMATCH:
        return False
    pairs = zip(_leaves(names, right), _leaves(names, found), strict=False)
    return all(_differ_by_rounding(one, other) for one, other in pairs)


def _leaves(names: list[str], values: Seq[Any]) -> list[Tensor | None]:
    return [part for name, value in named(names, values) for _, part in leaves(name, value)]


def _differ_by_rounding(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None or one.array.dtype.kind not in "fc":
        return one is None or other is None or np.array_equal(one.array, other.array)
    finite = np.isfinite(one.array) & np.isfinite(other.array)
    right, found = one.array[finite].astype(np.float64), other.array[finite].astype(np.float64)
    unit = ROUNDING.get(one.dtype, 0.0)
    return bool(np.all(np.abs(right - found) <= unit * np.max(np.abs(right), initial=0.0)))


def _right(names: list[str], third: list[Any], cpu: list[Any], told: list[Any]) -> str:
    rounded = [_as_type(value, of) for value, of in zip(third, cpu, strict=False)]
    known = names[: len(rounded)]
    sides = []
    for answer in (cpu, told):
        verdict = compared(known, rounded, answer[: len(rounded)]).verdict
        sides.append(verdict is None or _is_rounding(verdict, known, rounded, answer[: len(rounded)]))
    if all(sides) and len(known) < len(names):
        return "open"  # they differ in an output that the third answer lacks
    return {(True, False): "cpu", (False, True): "reference", (True, True): "both"}.get(
        (sides[0], sides[1]), "neither"
    )


def _as_type(value: Any, of: Any) -> Any:
    if isinstance(value, np.ndarray) and isinstance(of, np.ndarray) and of.dtype.kind == "f":
        return value.astype(of.dtype)
    return value


def compared(names: list[str], right: Seq[Any], found: Seq[Any]) -> OutputComparison:
    """How an answer compares with another by the built-in table of tolerances."""
    return compare_all(named(names, right), named(names, found), table)


def named(names: list[str], values: Seq[Any]) -> Named:
    """Outputs by name, as the harness holds them."""
    return [(name, _value(value)) for name, value in zip(names, values, strict=False)]


def _value(value: Any) -> Value:
    if isinstance(value, list):
        return Sequence(items=tuple(map(_value, value)))
    if isinstance(value, dict):
        return from_wire(in_wire_form(value))
    return None if value is None else tensor(np.asarray(value))


def table(dtype: str) -> Tolerance:
    """The built-in tolerance; of doubles that of doubles."""
    return default_tolerance(
        dtype, {"float64": "float64", "float16": "float16", "bfloat16": "bfloat16"}.get(dtype, "float32")
    )


def _relative(cpu: Seq[Any], told: Seq[Any]) -> float | None:
    errors = []
    for right, found in zip(cpu, told, strict=False):
        if not (
            isinstance(right, np.ndarray)
            and np.shape(right) == np.shape(found)
            and right.dtype.kind in "fiub"
        ):
            continue
        one, other = (np.asarray(value).astype(np.float64) for value in (right, found))
        both = np.isfinite(one) & np.isfinite(other)
        norm = float(np.linalg.norm(one[both]))
        if norm:
            errors.append(float(np.linalg.norm(other[both] - one[both])) / norm)
    largest = max(errors, default=None)
    return largest if largest is not None and math.isfinite(largest) else None
