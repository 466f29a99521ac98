"""The book has a row for every operator, and operators of one name agree."""

from collections import Counter, defaultdict

import onnx.defs
import pytest

from harness.corpus.nodes import operator_name
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


def test_every_schema_of_onnx_has_a_row() -> None:
    schemas = onnx.defs.get_all_schemas_with_history()
    names = {operator_name(schema.domain, schema.name) for schema in schemas}
    assert sorted(name for name in names if find_operator(name) is None) == []


def test_every_operator_of_the_cpu_ep_has_a_row() -> None:
    runtime = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    kernels = runtime.get_all_opkernel_def()
    names = {
        operator_name(kernel.domain, kernel.op_name)
        for kernel in kernels
        if kernel.provider == "CPUExecutionProvider"
    }
    assert sorted(name for name in names if find_operator(name) is None) == []


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
