"""Nothing but the book lists operators; what the agent lists agrees with it."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import harness
from harness.agent.evaluate import _LAST_MEANING, _RECURRENT
from harness.agent.float64 import casts, control, kernels, reference_operators
from harness.agent.float64.reference_operators import _WITHOUT_SCHEMA
from harness.agent.float64.table import OWN
from harness.agent.precision.float16 import IDLE
from harness.agent.precision.int8_dynamic import INTEGER
from harness.operators.book import FAMILIES, ROWS, operators_by, operators_with

ROOT = Path(harness.__file__).parent
MADE_MODELS = (
    "annex/agent_check/models.py",
    "annex/made/",
    "corpus/inputs/recipes/",
)
"""Models that are made of operators name them, and so does how they are made."""

NAMES = frozenset(row.name for row in ROWS)
MANY = 3


def tables(source: str) -> Iterator[str]:
    """The constants of a module that name operators, as whole texts or as words of one."""
    for statement in ast.parse(source).body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        texts = [
            node.value
            for node in ast.walk(statement.value)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        named = {word for text in texts for word in text.replace(".", " ").split()} & NAMES
        if len(named) >= MANY:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            yield ast.unparse(target)


def test_no_module_but_the_book_has_a_table_of_operators() -> None:
    assert list(tables('A = {"Conv", "Gemm", "MatMul"}\nB = "Conv Gemm".split()\n')) == ["A"]
    found = [
        f"{name}: {table}"
        for path in sorted(ROOT.rglob("*.py"))
        if not (name := path.relative_to(ROOT).as_posix()).startswith((*MADE_MODELS, "agent/", "operators/"))
        for table in tables(path.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "names",
    [
        OWN,
        casts.CASTS,
        reference_operators.FLOAT32_INSIDE,
        _WITHOUT_SCHEMA,
        IDLE,
        INTEGER,
    ],
)
def test_every_operator_that_the_agent_names_has_a_row(names: Iterable[str]) -> None:
    known = NAMES | {name for row in ROWS for name in row.names}
    assert set(names) - known == set()


def test_the_families_of_the_agent_are_those_of_the_book() -> None:
    assert control.CONTROL_OPERATORS.keys() == {row.name for row in FAMILIES["control_flow"]}
    assert {row.name for row in FAMILIES["recurrent"]} == _RECURRENT


def test_what_the_agent_leaves_to_no_kernel_rounds_to_float32_inside() -> None:
    losses = {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}  # functions that cast to float32
    assert set(kernels.FLOAT32_KERNELS) - losses <= operators_with(lambda row: row.float32_inside)


def test_what_the_reference_computes_by_its_latest_meaning_flattened_axes_before() -> None:
    flattening = operators_by(lambda row: row.flattens_before)
    assert flattening.items() <= _LAST_MEANING.items()
