"""Which values the columns of a table take: by what a model of classic machine learning compares them with.

Such a model is trained on a table whose columns have ranges of their own: centimetres, dollars, towns.
Numbers around zero, and words that it has never seen, lead every row to the same leaf, where most wrong
answers are the right one. The graph tells the ranges: by the thresholds of trees, the support vectors, the
rows that it keeps, the scale of each column, the categories.

Values are followed from the inputs through what moves or scales columns. Only the outermost graph is read:
the converters of scikit-learn, XGBoost, LightGBM and CatBoost write no functions.
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from harness.core.values.value import STRING
from harness.corpus.inputs.tables.held_columns import MOST_COLUMNS, HeldColumn, HeldColumns, TablesSeen
from harness.corpus.inputs.tables.table_rules import COLUMN_RULES, PASS_GAPS
from harness.corpus.model.element_types import NUMBERS
from harness.corpus.model.nodes import constant_of, domain_of
from harness.corpus.model.port import model_text
from harness.corpus.work.size import SIZE_ERRORS
from harness.operators.row import KNOWN_DOMAINS
from harness.operators.value_domains import Domain, TableColumn

if TYPE_CHECKING:
    import onnx


def with_table_columns(domains: Mapping[str, Domain], model: "onnx.ModelProto") -> dict[str, Domain]:
    """Return the values that inputs may hold, those of the columns of tables included."""
    found = dict(domains)
    for name, columns in _columns_of(model).items():
        found[name] = found.get(name, Domain()).within(Domain(columns=columns))
    return found


def _columns_of(model: "onnx.ModelProto") -> dict[str, tuple[TableColumn, ...]]:
    seen = TablesSeen(model.graph)
    with np.errstate(all="ignore"):
        _walk(model.graph, seen)
    found: dict[str, tuple[TableColumn, ...]] = {}
    for name, text in seen.texts.items():
        facts = {at: one for (of, at), one in seen.facts.items() if of == name}
        columns = {at: column for at, one in facts.items() if (column := one.column(text=text))}
        if columns:
            width = 1 + max(seen.widths[name] - 1, *columns)
            other = columns.get(-1, TableColumn())
            found[model_text(name)] = tuple(columns.get(at, other) for at in range(width)) or (other,)
    return found


def _walk(graph: "onnx.GraphProto", seen: TablesSeen) -> None:
    """Follow the columns of inputs through the nodes of the outermost graph."""
    tables = _inputs(graph, seen)
    if not tables:
        return
    for node in graph.node:
        if node.op_type == "Constant" and (value := constant_of(node)) is not None:
            seen.constants[node.output[0]] = value
        given = [tables.get(name, ()) for name in node.input]
        if not any(given):
            continue
        rule = COLUMN_RULES.get(node.op_type) if domain_of(node) in KNOWN_DOMAINS else None
        made: Sequence[HeldColumn | None] = ()
        if rule is not None:
            with contextlib.suppress(*SIZE_ERRORS):  # a model that no runtime accepts either
                made = rule(seen, node, given)
        if made and node.output and len(made) <= MOST_COLUMNS:
            tables[node.output[0]] = tuple(made)
        if rule not in PASS_GAPS or not made:
            for held in (one for table in given for one in table if one and not one.filled):
                seen.of(held).no_gaps = True


def _inputs(graph: "onnx.GraphProto", seen: TablesSeen) -> dict[str, HeldColumns]:
    """Return the columns of the inputs that may be tables, by name."""
    tables: dict[str, HeldColumns] = {}
    for port in graph.input:
        width = None if port.name in seen.constants else _width(port)
        if width is not None:
            seen.texts[port.name] = port.type.tensor_type.elem_type == NUMBERS[STRING]
            seen.widths[port.name] = width
            columns = tuple(HeldColumn(port.name, at) for at in range(width))
            tables[port.name] = columns or (HeldColumn(port.name, -1),)
    return tables


def _width(port: "onnx.ValueInfoProto") -> int | None:
    """Return the number of columns of an input that may be a table, 0 if it is open; None for others."""
    if not port.type.tensor_type.HasField("shape"):
        return None
    dims = port.type.tensor_type.shape.dim
    if len(dims) == 1:
        return 1
    if len(dims) != 2:  # noqa: PLR2004 - rows and columns
        return None
    width = int(dims[1].dim_value)
    return width if 0 <= width <= MOST_COLUMNS else None
