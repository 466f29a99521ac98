"""The own operators in float64 beside formulas after ONNX's text, ``onnx.reference`` and the CPU EP."""

import contextlib
import itertools
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from benchmarks.reference_trust import specs_others, specs_values, specs_windows
from benchmarks.reference_trust.formulas import formula
from benchmarks.reference_trust.measure import answer_of_cpu, answer_of_reference
from benchmarks.reference_trust.node_tests import node_tests
from benchmarks.reference_trust.specs import subjects_of
from benchmarks.reference_trust.subject import Subject, in_float64, model_of
from harness.agent.float64.array_budget import ArrayBudget
from harness.agent.float64.float64_model import Model
from harness.agent.float64.reference_operators import FLOAT32_INSIDE
from harness.agent.float64.table import OWN
from harness.agent.target_errors import UnsupportedError
from harness.core.values.value import Tensor
from harness.corpus.load_case import load_case
from harness.corpus.model.nodes import operator_name
from harness.corpus.suites.suites import open_suite
from harness.golden.provenance import SESSION
from harness.golden.trust import shipped_trust, trusted_in_float64

onnxruntime: Any = pytest.importorskip("onnxruntime")
TARGET = types.SimpleNamespace(ort=onnxruntime)
TRUST = shipped_trust().float64
KEPT = 17
"""One of so many subjects is tried; all of them were, when the operators were written: see ``_right``."""

WINDOWS = {"BlackmanWindow", "HammingWindow", "HannWindow"}
SINGLE = {"Erf", "GroupNormalization", "GridSample", "Gelu", "DynamicQuantizeLinear", *WINDOWS}
"""What ``onnx.reference`` rounds to float32 on its way."""

ON_A_BORDER = {"Resize"}
"""Where the place of an element is between two others up to rounding, the CPU EP takes either."""


def computed(one: Subject) -> list[Any]:
    with np.errstate(all="ignore"):
        return Model(model_of(one), frozenset(), TARGET).run(dict(one.feeds), ArrayBudget(1 << 28))


def subjects() -> Iterator[tuple[str, Subject]]:
    every = [*specs_others.SPECS, *specs_values.SPECS, *specs_windows.SPECS]
    for one in itertools.islice(subjects_of(every), 0, None, KEPT):
        name = operator_name(one.key[0], one.key[1])
        if name in OWN:
            yield name, one


def right(name: str, one: Subject) -> tuple[list[Any], float] | None:
    """The right answer and the largest error, relative to the largest element; None if nobody has one."""
    with np.errstate(all="ignore"):
        try:
            by_text = formula(one)
            if by_text is not None:
                return by_text, 1e-10  # attributes are float32 here, and double there
            if one.since in TRUST.get(name, ()):
                return answer_of_reference(in_float64(one) or one), 1e-6 if name in SINGLE else 1e-12
            if name not in ON_A_BORDER:
                return answer_of_cpu(one), 2e-5
        except Exception:  # noqa: BLE001 - no kernel, or a form that a formula leaves out
            return None
    return None


def differ(found: Any, wanted: Any, limit: float) -> bool:
    if (
        found is None
        or wanted is None
        or isinstance(wanted, (list, dict))
        or np.asarray(wanted).dtype.kind in "OU"
    ):
        return False
    one, other = np.asarray(found), np.asarray(wanted)
    if one.shape != other.shape:
        return True
    one, other = one.astype(np.float64), other.astype(np.float64)
    known = np.isfinite(other)
    if not np.array_equal(np.isfinite(one), known):
        return True
    largest = np.abs(other[known]).max(initial=0)
    return bool((np.abs(one - other)[known] > limit * largest).any())


def test_own_operators_compute_what_their_text_says() -> None:
    wrong, tried = [], set()
    for name, one in subjects():
        oracle = right(name, one)
        if oracle is None:
            continue
        try:
            found = computed(one)
        except UnsupportedError:
            continue
        tried.add(name)
        if any(differ(a, b, oracle[1]) for a, b in zip(found, oracle[0], strict=False)):
            wrong.append((name, one.since, dict(one.about)))
    assert wrong == []
    assert len(tried) > 35


def test_own_operators_give_what_onnx_expects_of_them() -> None:
    """The expected data of ONNX's operator tests are float32, or what numpy had then."""
    wrong, tried = [], 0
    for one in itertools.islice(node_tests(), 0, None, 3):
        name = operator_name(one.key[0], one.key[1])
        if name not in OWN or not one.expected or one.dtype not in {"float32", "float64"}:
            continue
        try:
            found = computed(one)
        except UnsupportedError:
            continue
        tried += 1
        limit = 1e-2 if name == "DynamicQuantizeLinear" else 1e-4  # its test rests on a tie
        if any(differ(a, b, limit) for a, b in zip(found, one.expected, strict=False)):
            wrong.append((name, one.since, dict(one.about)))
    assert wrong == []
    assert tried > 100


def test_what_is_trusted_beside_them_computes_in_double() -> None:
    """Doubles that are no float32: whatever rounds on its way is off by 1e-8."""
    random = np.random.default_rng(3)
    every = [*specs_others.SPECS, *specs_values.SPECS, *specs_windows.SPECS]
    rounded = set()
    found: list[Any] = []
    exact = {"Cast", "CastLike", "Ceil", "Clip", "EyeLike", "Floor", "HardSigmoid", "Round", "Sign", "OneHot"}
    for one in itertools.islice(subjects_of(every), 0, None, 19):
        name = operator_name(one.key[0], one.key[1])
        wide = in_float64(one)
        if wide is None or name in OWN or one.since not in TRUST.get(name, ()) or name in exact:
            continue
        for key, value in wide.feeds.items():
            if isinstance(value, np.ndarray) and value.dtype == np.float64:
                wide.feeds[key] = value * (1 + random.uniform(1e-9, 4e-9, value.shape))  # type: ignore[index]
        with contextlib.suppress(Exception):  # what it cannot compute is refused
            found = answer_of_reference(wide)
        for value in found:
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                some = value[np.isfinite(value) & (np.abs(value) != 1) & (value != 0)]
                if value.dtype != np.float64 or (some.size > 3 and (some == some.astype(np.float32)).all()):
                    rounded.add(name)
    assert rounded <= set(FLOAT32_INSIDE)


def cpu_answers(path: Path, feeds: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    for key, value in SESSION.items():
        options.add_session_config_entry(key, value)
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


@pytest.mark.parametrize(("suite", "at_least"), [("generate", 25), ("zoo", 25)])
def test_models_as_they_are_shipped_have_an_answer_near_the_cpu_ep_s(suite: str, at_least: int) -> None:
    opened, wrong, tried = open_suite(suite), [], 0
    for name in opened.models():
        if suite == "zoo" and "-small-op" not in name:
            continue
        case = load_case(opened, name, {})
        data = case.data_sets[0].inputs
        feeds = {key: np.array(value.array) for key, value in data if isinstance(value, Tensor)}
        trusted = frozenset(trusted_in_float64(case.facts.operators))
        with np.errstate(all="ignore"):
            found = Model(onnx.load(str(case.model_path)), trusted, TARGET).run(feeds, ArrayBudget(1 << 30))
        golden = cpu_answers(case.model_path, feeds)
        limit = 5e-3 if "f16" in name else 5e-2 if "int8" in name else 1e-5
        tried += 1
        if any(differ(a, b, limit) for a, b in zip(found, golden, strict=True)):
            wrong.append(name)
    assert wrong == []
    assert tried >= at_least


def test_the_page_lists_every_own_operator() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/float64.md").read_text("utf-8")
    missing = [name for name in OWN if f"`{name.rpartition('.')[2]}`" not in page]
    assert missing == []
