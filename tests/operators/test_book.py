"""The book has a row for every operator, and operators of one name agree."""

from collections import Counter, defaultdict

import onnx.defs
import onnxruntime.capi.onnxruntime_pybind11_state as runtime

from harness.corpus.model.nodes import operator_name
from harness.operators.book import ROWS, find_operator
from harness.operators.row import FACTS

OWN_DOMAIN_ONLY = frozenset(
    [
        "copies",
        "exact_where",
        "fit",
        "float32_inside",
        "keeps_values",
        "passes_scores",
        "restricts_as_first",
        "shape_inputs",
        "ties",
        "undefined",
        "values",
    ]
)
"""Facts that are read with the domain. Tables of the others go by names without one."""


def test_every_operator_has_one_row() -> None:
    named = Counter(name for row in ROWS for name in row.names)
    assert [name for name, count in named.items() if count > 1] == []


def onnx_names() -> set[str]:
    schemas = onnx.defs.get_all_schemas_with_history()
    return {operator_name(schema.domain, schema.name) for schema in schemas}


def kernel_names() -> set[str]:
    return {
        operator_name(kernel.domain, kernel.op_name)
        for kernel in runtime.get_all_opkernel_def()
        if kernel.provider == "CPUExecutionProvider"
    }


def test_every_schema_of_onnx_has_a_row() -> None:
    assert sorted(name for name in onnx_names() if find_operator(name) is None) == []


def test_every_operator_of_the_cpu_ep_has_a_row() -> None:
    assert sorted(name for name in kernel_names() if find_operator(name) is None) == []


def test_every_row_is_of_an_operator_that_exists() -> None:
    contributed = {operator_name(one.domain, one.name) for one in runtime.get_all_operator_schema()}
    known = onnx_names() | kernel_names() | contributed
    # An older onnx or onnxruntime lacks the newest.
    assert len([name for row in ROWS for name in row.names if name not in known]) <= 5


def test_what_is_exact_rounds_nowhere() -> None:
    assert [row.name for row in ROWS if row.exact and (row.even or row.rounds_inside or row.units != 1)] == []


def test_operators_of_one_name_agree_where_tables_go_by_names() -> None:
    rows = defaultdict(list)
    for row in ROWS:
        rows[row.name].append(row)
    differing = {
        (name, fact)
        for name, alike in rows.items()
        for fact in FACTS.keys() - OWN_DOMAIN_ONLY
        for row in alike
        if getattr(row, fact) != getattr(alike[0], fact)
    }
    assert differing == set()


def test_every_fact_has_its_meaning_and_source_and_is_used() -> None:
    for name, fact in FACTS.items():
        assert fact.meaning.endswith("."), name
        assert fact.source, name
        assert any(name in row.special() for row in ROWS), f"no operator has {name}"


def test_an_operator_that_onnx_does_not_have_is_found_by_its_full_name() -> None:
    gelu = find_operator("com.microsoft.Gelu")
    assert gelu is not None
    assert gelu.domains == ("com.microsoft",)
    assert find_operator("vendor.Gelu") is None
